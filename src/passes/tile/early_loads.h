// Loads that need not wait for a product.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// In loops with a gemm, what a Map behind it, or in a pipelined loop before it, reads from global memory that the
// launch does not write, and that is the same along some of its dimensions or all (scales of rows, columns, blocks), is
// read before the gemm into a fragment or a name, and before the loop where it is the same in all turns: the memory's
// latency passes while the product runs, and nothing is on the way from its end to the Map. So is what such a Map reads
// from tiles that copies at the head of a pipelined loop bring into shared memory, unless it differs along the last of
// the Map's dimensions. Needs canonical tile programs; leaves them so.
ir::TileProgram load_early(ir::TileProgram program);

}  // namespace tilewright::passes
