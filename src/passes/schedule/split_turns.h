// A loop of products whose turns the blocks of a cluster share, as statements.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Every tile of the grid gets a cluster of so many blocks, by a dimension of its own. Each runs a contiguous part of
// the loop's turns, those before the others one more where they do not divide evenly; then all but the first write
// their sums to its shared memory, each to a tile of its own, and it adds them in the order of the blocks and does the
// rest of the launch. Needs a launch that can be split (analysis/summed_turns.h).
void split_turns(ir::TileProgram& program, ir::Launch& launch, int64_t blocks);

}  // namespace tilewright::passes
