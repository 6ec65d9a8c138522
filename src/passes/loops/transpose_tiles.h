// Nests that read down columns and write along rows become one statement, which the text does by square blocks in
// registers: a loop would gather every element by itself.
//
// Needs: a LoopProgram after fuse_loops().
// Leaves: the same results. Two loops of constant extents, one in the other, that copy B[.., i, .., j] = A[.., j, ..,
//   i] without converting are a Transpose; a third loop over two neighbours moves them as one. A tile A that only holds
//   a copy of global memory for it is passed over. B may be a tile in panels.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

ir::LoopProgram transpose_tiles(ir::LoopProgram program);

}  // namespace tilewright::passes
