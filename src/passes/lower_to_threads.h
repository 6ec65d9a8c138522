// From tiles to what one thread of a GPU block does.
//
// Needs: canonicalize. Leaves: a program whose fragments are registers of threads or shared memory, with every barrier
// written out, shared buffers at their places, and every access of global memory proven or guarded. Fails: what a block
// needs does not fit in its shared memory; what the target cannot do.
#pragma once
#include <span>

#include "ir/program.h"
#include "passes/threads/hand_over.h"
#include "passes/threads/placement.h"
#include "passes/threads/tma_rings.h"
#include "target/gpu.h"

namespace tilewright::passes {

// Limits under which plans were made, and why none of these was taken; empty: it was.
struct TriedPlan {
  RingLimits limits;
  bool reuse = false;  // buffers over each other
  std::string why_not;
};

struct ThreadLowering {
  ir::ThreadProgram program;
  std::vector<Placement> placements;  // by launch
  std::vector<RingPlan> plans;
  ir::TileProgram planned;  // with rings and roles, in words that a user has too
  // Decisions, for people: the tiles of the plan, with rings and roles, of which the placements speak; why pipelined
  // loops run without cp.async; the plans in the order in which they were tried, the one that was taken last.
  ir::TileProgram tiles;
  std::vector<std::pair<ir::LocationId, std::string>> notes;
  std::vector<TriedPlan> tried;
  std::vector<std::vector<HandOver>> handed_over;  // by launch: between roles, without a barrier of the program's
};
// The best plan under the limits that fits.
ThreadLowering lower_to_threads(const ir::TileProgram& program, const target::GpuTarget& target,
                                RingLimits limits = {});

// Limits to plan under, one after the other, for as long as the device compiler finds too few registers. The first are
// those of lower_to_threads.
std::span<const RingLimits> limits_in_turn();

}  // namespace tilewright::passes
