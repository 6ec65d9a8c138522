// Pipelined loops by cp.async: the copies from global to shared memory at the head of the loop run ahead of the rest by
// as many iterations as the ring has slots but one.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Every pipelined loop of more than one stage whose leading copies fill whole shared buffers that nothing else writes:
// those buffers get a slot a stage, and Copy, Commit and Drain of the queue cp_async stand where the hardware does
// them. Other pipelined loops stay, and run one turn after the other; `notes` says why.
struct AsyncRings {
  ir::TileProgram program;
  std::vector<std::pair<ir::LocationId, std::string>> notes;
};
AsyncRings materialize_async_rings(ir::TileProgram program);

}  // namespace tilewright::passes
