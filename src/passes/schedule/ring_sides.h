// The two sides of a launch's rings: what the loader brings, and what the threads that compute do with it.
#pragma once
#include "analysis/load_rings.h"
#include "passes/schedule/ring.h"
#include "plan/plan.h"

namespace tilewright::passes {

struct RingSides {
  ir::Body load, compute;
  ir::Body start;               // before both: fills of what nothing brings of the slots
  std::vector<SlotRing> rings;  // those that were found, with the slots and mbarriers that they get here
};
// The launch's body twice, as one warp loads and as its threads compute; of as many slots as the rings say, with loops
// in the plan's orders.
RingSides write_ring_sides(ir::TileProgram& program, const ir::Launch& launch, const analysis::FoundRings& found,
                           const plan::Plan& plan);

}  // namespace tilewright::passes
