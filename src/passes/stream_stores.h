// Rows that a loop writes to global memory go around the caches where the tensor is larger than they are: the cache
// lines need not be read before they are written.
//
// Needs: a LoopProgram.
// Leaves: the same results. A vectorized loop that stores consecutive elements of one global tensor stores them to a
//   local row of at most 4 KiB (it stays in the nearest cache; measured on Zen 4: 51 GB/s read and written against 37),
//   and a Call of kStreamFunction moves the row: reads = {the row}, writes = {its place}, args = {is the tensor large}.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

inline constexpr const char* kStreamFunction = "stream";

// Is the tensor so large that its rows had better go around the caches? Known, or a question of bool for the call.
ir::Expr is_large(const ir::Buffer& tensor);

ir::LoopProgram stream_stores(ir::LoopProgram program);

}  // namespace tilewright::passes
