// Rows that a loop writes to global memory go around the caches where the tensor, or all that the launch moves, is
// larger than they are: the cache lines need not be read before they are written.
//
// Needs: a LoopProgram.
// Leaves: the same results. A vectorized loop that stores consecutive elements of one global tensor stores them to a
//   local row by chunks of a few cache lines, and a Stream moves each chunk while the next is computed (measured on Zen
//   4: 51 GB/s read and written against 37; rows of 4 KiB at a time: up to 20% slower). A last Stream moves what is
//   left.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Is the tensor so large that its rows had better go around the caches: larger than they are, or a good part of what
// the launch moves, if that is? Known, or a question of bool for the call.
ir::Expr is_large(const ir::LoopProgram& program, const ir::Body& launch, ir::BufferId tensor);

ir::LoopProgram stream_stores(ir::LoopProgram program);

}  // namespace tilewright::passes
