// Loops of one block that follow one another over the same range become one loop, so that what the first leaves for the
// second is still near: rows of a tile in the nearest cache, single elements in registers.
//
// Needs: a LoopProgram of lower_to_loops().
// Leaves: the same results. Two loops are fused if
//   - their ranges are equal (a vectorized loop is cut to the chunks and lanes of a reduction, where that makes them
//   so),
//   - what stands between them can be moved before the first or after the second,
//   - both touch a tile, and every element that one of them writes and the other touches is touched at the same
//     iteration of both: proven from the indices, else they stay apart,
//   - neither contains a jump, a gemm, a print or an assertion.
//   A tile of which an iteration of a loop touches nothing but what it wrote itself shrinks to that iteration's part;
//   one element becomes a local scalar.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

ir::LoopProgram fuse_loops(ir::LoopProgram program);

}  // namespace tilewright::passes
