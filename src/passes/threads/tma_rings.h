// Rings that a loader role fills by TMA while the program's own threads compute.
#pragma once
#include "ir/program.h"
#include "passes/launch_order.h"
#include "passes/threads/stage_results.h"
#include "target/gpu.h"

namespace tilewright::passes {

// What is decided about one launch.
struct RingPlan {
  struct Ring {  // tiles that are brought and given back together
    std::vector<std::string> tiles;
    int64_t slots = 1, bytes = 0;  // of a slot
  };
  std::vector<Ring> rings;
  bool persistent = false;           // a block takes one tile of the grid after the other
  bool alternating = false;          // two teams of the program's threads take the tiles in turn
  bool by_iteration = false;         // ... the iterations of the loop (iteration_teams.h)
  std::string no_teams;              // why not, where the threads and rows would do
  std::string fitted;                // what was changed so that registers suffice (fit_registers.h)
  bool side_by_side = false;         // two blocks a multiprocessor, each with one warpgroup that computes
  bool next_tile = false;            // what a tile of the grid needs once comes while the one before is computed
  std::vector<ir::BufferId> staged;  // fragments that go to global memory through shared memory, by TMA
  int64_t loader_registers = 0, math_registers = 0;  // 0: as they come
  LaunchOrder order;                                 // among launches; kept around the roles, if there are any
  std::string why_not;                               // no loader role
  bool specialized() const { return why_not.empty(); }
};

struct RingLimits {
  int64_t slots = 8;                 // of a ring, however many stages the program asks for; below 2 (of blocks side
                                     // by side, below 1): no loader
  Staging staging = Staging::Whole;  // teams that take turns have no room for it: chunks
  bool overlap = true;               // a gemm may still run while the next step's operands are waited for
  bool alternating = true;           // two teams may take the tiles in turn
  bool by_iteration = true;          // ... the iterations of a loop
  bool side_by_side = true;          // two blocks may share a multiprocessor
  bool next_tile = true;             // a slot for what the next tile of the grid needs once
  bool one_branch = false;           // the roles are written as arms of one branch
  bool lean_loader = false;          // the loader leaves the others as many registers as it can
  bool plain_integers = false;       // integers are compared and chosen such that ptxas merges nothing
  // Registers that the tiles of a thread may take before other threads and steps than the program's are taken
  // (fit_registers.h): of the 232 and more that a computing thread has, some hold addresses and rows.
  int64_t live = 224;
  bool operator==(const RingLimits&) const = default;
};

// Launches with a gemm whose operands TMA can bring get one more warpgroup, one warp of which loads: rings of slots
// with mbarriers `full` and `empty`, written as the statements that users write. Needs canonical tile programs; leaves
// them so. What is not done is said in `plans`, one a launch.
struct TmaRings {
  ir::TileProgram program;
  std::vector<RingPlan> plans;
};
TmaRings materialize_tma_rings(ir::TileProgram program, const target::GpuTarget& target, RingLimits limits);

}  // namespace tilewright::passes
