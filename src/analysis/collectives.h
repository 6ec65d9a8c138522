// Tile ops are done by all threads of their executing set together, so all of them must come by. Holds after
// canonicalize, which turns branches on ranges of threads into roles.
#pragma once
#include <vector>

#include "ir/program.h"

namespace tilewright::analysis {

// A finding for each tile op, block barrier or block vote under control that its executing set does not agree on.
std::vector<Diagnostic> check_collectives(const ir::TileProgram& program);

}  // namespace tilewright::analysis
