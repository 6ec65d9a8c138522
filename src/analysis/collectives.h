// Tile ops are done by all threads of their executing set together, so all of them must come by. Holds after
// canonicalize, which turns branches on ranges of threads into roles.
#pragma once
#include <vector>

#include "analysis/uniformity.h"
#include "ir/program.h"

namespace tilewright::analysis {

// A finding for each tile op, block barrier or block vote under control that its executing set does not agree on.
std::vector<Diagnostic> check_collectives(const ir::TileProgram& program);

// Whether a copy by TMA is one thread's own, under control that lets no other of its executing set by, as in `if tx ==
// 0`. Elsewhere all come to it, and one of them asks for it.
bool is_of_one_thread(const ir::Stmt& stmt, const Uniformity& threads);

}  // namespace tilewright::analysis
