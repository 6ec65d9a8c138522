// Results that leave the chip by TMA.
#pragma once
#include <set>

#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// How: in one piece; in chunks of columns (and rows) of which one is written while the one before is read; as the
// program says; straight from registers, to memory or to other registers, where the program goes by a shared buffer
// that nothing else needs. Chunks take less room and more barriers, registers none at all and write less to a line at a
// time.
enum class Staging : uint8_t { Whole, Chunks, None, Straight };

// Copies of whole fragments by `threads` threads to global memory go through shared memory, where TMA can take them
// from, the program's own way through it included. `staged` gets the fragments. Chunks want layouts that deal each of
// them to all threads. `once`: the body is run once, so that a result in one piece may leave by columns, the first of
// which are on their way while the others are written. `stored_once`: the tensors to which TMA may store
// (analysis/stored_once.h).
ir::Body stage_results(ir::TileProgram& program, ir::Body body, int64_t threads, Staging how, bool once,
                       const std::set<ir::BufferId>& stored_once, std::vector<ir::BufferId>& staged);

}  // namespace tilewright::passes
