// What the next iteration of a loop over rows will read comes into the nearest cache while this one computes: a row
// that goes through several loops (its largest element, the exponentials and their sum, the division) leaves the memory
// idle in all but the first.
//
// Needs: a LoopProgram after stream_stores().
// Leaves: the same results: a Prefetch reads nothing that the program would see. Two cases, in each of which the caches
//   can hold what comes:
//   - a loop of which each iteration reads rows by chunks: the next iteration's rows, or behind the last the next
//     block's, by one of the loops over chunks, if there is one that reads no rows itself; and of each page of the rows
//     that it will store around the caches, a line (measured on Zen 4: a softmax of 4096 columns takes 8.8 ms, without
//     these lines 11.0, with nothing fetched 14.2); rows that the block has read before are near, and the next block's
//     come to the second cache in their place,
//   - other loops over the rows of a tile, in a block or in a loop over tiles: the next block's or tile's row, at the
//     end of the last loop over as many rows.
//   A product of few rows waits for memory as copies do: one after each tile's copy fetches the next tile, line by
//   line, as its rows `next`. Else the next block's or tile's box becomes the `next` of a Transpose, which fetches it.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

ir::LoopProgram prefetch_rows(ir::LoopProgram program);

}  // namespace tilewright::passes
