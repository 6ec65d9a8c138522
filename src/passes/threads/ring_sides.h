// The two sides of a launch's rings: what the loader brings, and what the threads that compute do with it.
#pragma once
#include "passes/threads/find_rings.h"

namespace tilewright::passes {

struct RingSides {
  ir::Body load, compute;
};
// The launch's body twice, as one warp loads and as its threads compute, with slots and mbarriers that the rings get
// here, as many slots as they say. `overlaps`: a product may run on while something else is done.
RingSides write_ring_sides(ir::TileProgram& program, const ir::Launch& launch, FoundRings& found, bool overlaps);

}  // namespace tilewright::passes
