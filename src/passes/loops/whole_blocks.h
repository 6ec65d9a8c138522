// Blocks whose tiles lie whole in their tensors go a way of their own, in which all loops over a tile have its range,
// so that they become one; of a grid all but the last ones do.
//
// Needs: a LoopProgram as lower_to_loops leaves it.
// Leaves: the same results. A block that counts how much of a tile lies in a tensor (`last = max(0, min(N - first,
//   n))`), or asks whether all does, asks for all of them once, at its begin, and has its code twice; the first has
//   names and tiles of its own. Not blocks with products, nor long ones.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

ir::LoopProgram whole_blocks(ir::LoopProgram program);

}  // namespace tilewright::passes
