// Sums into global memory, a tile at a time.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A Map that adds every element of a fragment to an element of global memory, in the order of both, is a copy that
// adds: TMA can take it. Needs canonical tile programs; leaves them so.
ir::TileProgram sums_as_copies(ir::TileProgram program);

}  // namespace tilewright::passes
