// The two sides of a launch's rings: what the loader brings, and what the threads that compute do with it.
#pragma once
#include "plan/load_rings.h"
#include "plan/plan.h"

namespace tilewright::passes {

struct RingSides {
  ir::Body load, compute;
};
// The launch's body twice, as one warp loads and as its threads compute, with slots and mbarriers that the rings get
// here, as many slots as they say, and loops in the plan's orders.
RingSides write_ring_sides(ir::TileProgram& program, const ir::Launch& launch, plan::FoundRings& found,
                           const plan::Plan& plan);

}  // namespace tilewright::passes
