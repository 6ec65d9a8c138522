// Tiles of rings that neighbouring blocks want in the same turns: each of a pair may bring half of one for both.
#pragma once
#include <optional>
#include <string>

#include "ir/program.h"

namespace tilewright::analysis {

struct SharedTile {
  ir::BufferId tile;
  size_t dim = 0;  // of the grid: neighbours along it want the same tile
};

// None: no pair of blocks can share the tile of that name, and `why` says why. Of a canonical launch.
std::optional<SharedTile> shared_tile(const ir::ProgramTables& program, const ir::Launch& launch,
                                      const std::string& name, std::string& why);
// Names of tiles that pairs of blocks can share.
std::vector<std::string> tiles_to_share(const ir::ProgramTables& program, const ir::Launch& launch);
// Whether anything is left of the statement when its block has ended.
bool writes_memory(const ir::ProgramTables& program, const ir::Stmt& s);

}  // namespace tilewright::analysis
