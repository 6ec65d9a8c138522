// Bounds of loops and maps that their bodies change, and what a tile op is given by elements that it writes.
//
// A bound is read once, before the first turn. Passes may mention it again, in every turn: where the body changes the
// memory that it is read from, it gets a name before the loop. So do values, places and extents of an op, which is done
// element by element. Needs and leaves a TileProgram that verifies.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

void name_changing_bounds(ir::TileProgram& program, ir::Launch& launch);

}  // namespace tilewright::passes
