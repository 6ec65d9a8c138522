// From tiles to what one thread of a GPU block does.
//
// Needs: canonicalize. Leaves: a program whose fragments are registers of threads or shared memory, with every barrier
// written out, shared buffers at their places, and every access of global memory proven or guarded. Fails: what a block
// needs does not fit in its shared memory; what the target cannot do.
#pragma once
#include <span>

#include "passes/gpu_passes.h"
#include "plan/price.h"

namespace tilewright::passes {

// Under which limits a plan of a launch was made, and why it was not taken; empty: it was.
struct TriedPlan {
  size_t launch = 0;
  PlanAttempt attempt;
  std::string why_not;
};

// The plan that was taken, `tiles` with rings and roles, of which the placements speak, and the threads' program.
struct ThreadLowering : GpuProgram {
  std::vector<TriedPlan> tried;                    // in this order, those that were taken last
  std::vector<std::optional<plan::Price>> prices;  // by launch, of the plans that were taken
};
// The best plan under the limits that fits. The observer sees the passes of all plans that are tried.
ThreadLowering lower_to_threads(
    const ir::TileProgram& program, const target::GpuTarget& target, plan::Limits limits = {},
    GpuObserver observer = [](auto&&...) {});

// For each launch a line, and the lines of its plan.
std::string print_plans(const ThreadLowering& lowered);

// Limits to plan under, one after the other, for as long as the device compiler finds too few registers. The first are
// those of lower_to_threads.
std::span<const plan::Limits> limits_in_turn();

}  // namespace tilewright::passes
