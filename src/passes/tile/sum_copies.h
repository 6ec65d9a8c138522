// Maps that are copies: sums into global memory, results, and tiles that a pipelined loop brings, a tile at a time.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A Map that adds every element of a fragment to an element of global memory, in the order of both, is a copy that
// adds: TMA can take it. Needs canonical tile programs; leaves them so.
ir::TileProgram sums_as_copies(ir::TileProgram program);

// A Map behind a loop of products that stores what it makes of a fragment's elements, which nothing else wants any
// more, in the order of both, makes it in that fragment, and a copy stores it: TMA can take it, by way of shared
// memory. Needs canonical tile programs; leaves them so.
ir::TileProgram stores_as_copies(ir::TileProgram program);

// A Map of a pipelined loop that fills a tile in shared memory with a box of a tensor, in the order of both, is a copy:
// a ring can bring it ahead. Where a loader would bring the launch's other tiles and not this one, it stays. Needs
// canonical tile programs; leaves them so.
ir::TileProgram loads_as_copies(ir::TileProgram program);

}  // namespace tilewright::passes
