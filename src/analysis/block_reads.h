// Which blocks bring the same from memory.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// Tensors that the program copies tiles from, of which no two blocks of a launch copy the same: where a copy begins
// says which block it is.
std::set<ir::BufferId> read_by_single_blocks(const ir::TileProgram& program);

}  // namespace tilewright::analysis
