// What a tile keeps of a global tensor in more bytes is not kept: its elements are read and converted again, where they
// are used.
//
// Needs: a LoopProgram after side_by_side().
// Leaves: the same results. A tile goes if it is filled once, with elements of a global tensor that take fewer bits
//   there, and
//   - the launch stores nothing to that tensor, nor to another of its type: a call may give both the same memory,
//   - its index and that of the tensor's element are linear in each other.
//   The elements are near after they were read once; the tile would need as many stores, and more of the nearest cache.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

ir::LoopProgram read_again(ir::LoopProgram program);

}  // namespace tilewright::passes
