// Blocks that take neighbouring parts of the same rows go through the rows together.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Where a block is one loop over rows, and the blocks that follow one another read what lies side by side in them, one
// block does the work of all that share a row: it reads whole rows in order, where each alone would jump from row to
// row. An iteration falls into steps, loops and scalars in turn, and all parts of a row take a step before any takes
// the next: their reductions need not wait for one another, and what is computed once a part becomes a vector. Tiles
// that live from step to step have a copy for each part. Only where there are blocks enough for many cores, and copies
// fit into the nearest cache.
ir::LoopProgram side_by_side(ir::LoopProgram program);

}  // namespace tilewright::passes
