// From tiles to what one thread of a GPU block does.
//
// Needs: canonicalize. Leaves: a program whose fragments are registers of threads or shared memory, with every barrier
// written out, shared buffers at their places, and every access of global memory proven or guarded. Fails: what a block
// needs does not fit in its shared memory; what the target cannot do.
#pragma once
#include "ir/program.h"
#include "passes/threads/placement.h"
#include "passes/threads/tma_rings.h"
#include "target/gpu.h"

namespace tilewright::passes {

struct ThreadLowering {
  ir::ThreadProgram program;
  std::vector<Placement> placements;  // by launch
  std::vector<RingPlan> plans;
};
ThreadLowering lower_to_threads(const ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
