// Which plan a launch gets: rings that a loader role fills by TMA while the program's own threads compute.
#pragma once
#include "ir/program.h"
#include "plan/plan.h"
#include "target/gpu.h"

namespace tilewright::passes {

// Below these there is another plan to try.
struct PlanLimits {
  int64_t slots = 8;  // of a ring, however many stages the program asks for; below 2 (of blocks side
                      // by side, below 1): no loader
  plan::Staging staging = plan::Staging::Whole;  // teams that take turns have no room for it: chunks
  bool overlap = true;                           // a gemm may still run while the next step's operands are waited for
  bool alternating = true;                       // two teams may take the tiles in turn
  bool by_iteration = true;                      // ... the iterations of a loop
  bool side_by_side = true;                      // two blocks may share a multiprocessor
  bool next_tile = true;                         // a slot for what the next tile of the grid needs once
  bool one_branch = false;                       // the roles are written as arms of one branch
  bool lean_loader = false;                      // the loader leaves the others as many registers as it can
  bool plain_integers = false;                   // integers are compared and chosen such that ptxas merges nothing
  // Registers that the tiles of a thread may take before other threads and steps than the program's are taken
  // (fit_registers.h): of the 232 and more that a computing thread has, some hold addresses and rows.
  int64_t live = 224;
  bool operator==(const PlanLimits&) const = default;
};

// The plan of a launch of a canonical program. Launches with a gemm whose operands TMA can bring get one more
// warpgroup, one warp of which loads; others no roles, and the reason. Changes nothing.
plan::Plan decide_plan(const ir::TileProgram& program, size_t launch, const target::GpuTarget& target,
                       const PlanLimits& limits);

}  // namespace tilewright::passes
