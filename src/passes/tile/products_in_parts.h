// Products in parts, where their accumulators have no room beside others.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// In a pipelined loop of which a thread's accumulators, and what maps add to, are more than its registers hold, a
// fragment that a gemm makes in each turn is made some columns at a time, with all that is made of them, or some rows,
// where columns would be few. Sums that a map adds them to (of blocks with scales) stay whole. What needs all columns
// (a maximum before exponentials of it) waits for all, and the columns are then made again: products are cheaper than
// registers that come and go by way of memory. What is computed of an element stays the same; sums over columns and
// over the depth of a product are added up part by part. Needs canonical tile programs; leaves them so.
void products_in_parts(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
