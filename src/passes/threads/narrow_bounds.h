// Checks of bounds that points of a thread make of one place.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// An index of 64 bits between 0 and an extent is one comparison without sign. Where an unrolled loop asks it of several
// points, what they have in common is brought into 32 bits once, as the nearest number that those hold, and each point
// is compared there: no extent of 32 bits tells the two apart.
void narrow_bounds(ir::ThreadProgram& program);

}  // namespace tilewright::passes
