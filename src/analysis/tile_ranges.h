// Accesses that surely leave a tile.
#pragma once
#include <set>
#include <vector>

#include "ir/program.h"

namespace tilewright::analysis {

// A finding for each index or region of a buffer on chip that is outside at a point that is surely come to.
std::vector<Diagnostic> check_tile_ranges(const ir::TileProgram& program);

// The buffers of those findings.
std::set<ir::BufferId> tiles_surely_left(const ir::TileProgram& program);

}  // namespace tilewright::analysis
