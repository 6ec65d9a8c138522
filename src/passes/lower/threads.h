// Scalar code of a block's threads as loops over the threads ("loop fission").
//
// Statements between two points where threads wait for each other run thread by thread: `for t in 0 .. T`. Such points
// are barriers, shuffles, votes, tile ops, what happens once for the block, and accesses of one shared buffer that the
// language orders between threads. Divergent control flow around such a point becomes arrays of masks.
#pragma once
#include "passes/lower/lowering.h"

namespace tilewright::passes {

// The body of a launch, for one block. Local buffers and variables still stand as one thread sees them; l.boxes says
// which loops run on which threads.
ir::Body lower_block(const analysis::Uniformity& uniformity, Lowering& l);

// Gives the threads their own local buffers and variables: arrays over the threads for what one loop writes and another
// reads, scalars inside the loop for the rest. `uniform` are the local buffers on which all threads agree.
ir::Body privatize(const ir::Body& block, const std::set<ir::BufferId>& uniform, Lowering& l);

}  // namespace tilewright::passes
