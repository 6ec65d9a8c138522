// What becomes of copies of a tile that pairs of blocks share (analysis/shared_tiles.h).
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// The copy of a tile that a pair shares: this block's half of its rows, into both blocks.
ir::Copy half_for_both(const ir::Copy& copy, const ir::Launch& launch);
// The other block of the pair.
ir::Expr other_block(const ir::Launch& launch);

}  // namespace tilewright::passes
