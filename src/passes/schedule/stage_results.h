// Results that leave the chip by TMA.
#pragma once
#include "analysis/stored_once.h"
#include "plan/plan.h"

namespace tilewright::passes {

using plan::Staging;

// Copies of whole fragments by `threads` threads to global memory go through shared memory, where TMA can take them
// from, the program's own way through it included. `staged` gets the fragments. Chunks want layouts that deal each of
// them to all threads. `once`: the body is run once, so that a result in one piece may leave by columns, the first of
// which are on their way while the others are written. `stored`: the tensors to which TMA may store.
ir::Body stage_results(ir::TileProgram& program, ir::Body body, int64_t threads, Staging how, bool once,
                       const analysis::StoredTensors& stored, std::vector<ir::BufferId>& staged);

}  // namespace tilewright::passes
