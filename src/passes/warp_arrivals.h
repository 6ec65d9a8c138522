// Arrivals of warps, and the same in the words of threads, which have none for them.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// The warp meets, then its first thread arrives. `thread`: the linear index of the thread in the block.
ir::Body by_first_threads(const ir::Arrive& arrive, const ir::Expr& thread, ir::LocationId at);

// All of a program.
ir::TileProgram spell_warp_arrivals(ir::TileProgram program);
// Where a program says it in these words: the arrival, if `at` and the statement behind it are one of a warp; else
// null.
const ir::Arrive* spelled_arrival(const ir::Body& body, size_t at, const ir::Launch& launch);

}  // namespace tilewright::passes
