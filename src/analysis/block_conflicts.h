// Blocks of a launch that surely get in each other's way.
#pragma once
#include <vector>

#include "ir/program.h"

namespace tilewright::analysis {

// A warning where two blocks add to one element of global memory by a load and a store, so that what one of them adds
// may be lost: the race with which the simulator refuses the program. A grid that only the call knows counts as several
// blocks. Nothing is said of launches in which blocks may wait for each other.
std::vector<Diagnostic> check_block_conflicts(const ir::TileProgram& program);

}  // namespace tilewright::analysis
