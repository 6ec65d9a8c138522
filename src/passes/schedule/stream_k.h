// Blocks that take equal runs of turns of a loop of products, over the tiles of a grid, as statements.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// The launch as one of so many blocks. Of all tiles but those of the last wave, and the whole one before it, each takes
// whole ones. The turns of the others, one tile behind the other, are cut into as many equal runs as there are blocks.
// A run that ends within a tile leaves its sums in a workspace. Whoever has the end of a tile that others began keeps
// its sums, and when all have come to the end of their runs, he does what is given back: adds those of the others to
// them, from the last to the first, whoever came when, and does the rest of the launch for the tile. It belongs behind
// a barrier of the grid, to the threads that compute, in their role: elsewhere the sums would take registers of other
// roles. Needs a launch whose loop can be streamed (analysis/summed_turns.h).
ir::Body stream_k(ir::TileProgram& program, ir::Launch& launch, int64_t blocks);

}  // namespace tilewright::passes
