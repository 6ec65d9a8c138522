// Names for what is said again and again in a loop around rings: how many fills there have been, the slot, the parity
// of its phase. And no names that nobody reads.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

void name_slots(ir::ThreadProgram& program);

}  // namespace tilewright::passes
