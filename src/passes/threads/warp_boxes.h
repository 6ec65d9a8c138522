// Tiles in shared memory that warps bring away by themselves.
#pragma once
#include <map>
#include <vector>

#include "analysis/uniformity.h"
#include "passes/threads/placement.h"

namespace tilewright::passes {

// The box that a warp of a role writes of a tile: its index along a dimension begins at `first` + `of_warp` * (the
// warp's number in its warpgroup) + `of_group` * (the warpgroup's number).
struct WarpBox {
  struct Side {
    int64_t first = 0, of_warp = 0, of_group = 0, extent = 1;
  };
  std::vector<Side> sides;  // one a dimension
};

// By tile, where every warp of a role writes a box of its own from registers that hold it, TMA brings the tile to
// global memory and nobody else touches it, in turns of a loop of products or of one over blocks whose loops do more
// than multiply: what a warp has written it brings away itself, and waits for nobody. Elsewhere, and where stores keep
// their order, the role's threads meet, and one copies for all.
std::map<ir::BufferId, WarpBox> warp_boxes(const ir::ProgramTables& program, const ir::Launch& launch,
                                           const Placement& placement, const analysis::Uniformity& threads);

}  // namespace tilewright::passes
