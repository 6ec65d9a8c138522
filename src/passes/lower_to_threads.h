// From tiles to what one thread of a GPU block does.
//
// Needs: canonicalize. Leaves: a program whose fragments are registers of threads or shared memory, with every barrier
// written out, shared buffers at their places, and every access of global memory proven or guarded. Fails: what a block
// needs does not fit in its shared memory; what the target cannot do.
#pragma once
#include <span>

#include "passes/plan_search.h"

namespace tilewright::passes {

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
