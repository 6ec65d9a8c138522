// Pairs of blocks that share a tile (plan/pairs.h): the launch as one of clusters, and what a copy of the tile becomes.
#pragma once
#include "ir/program.h"
#include "plan/pairs.h"

namespace tilewright::passes {

// Neighbours along the shared tile's dimension of the grid form clusters. Where there may be an odd number of them, the
// grid has one more, whose block leaves nothing.
void pair_blocks(const ir::ProgramTables& program, ir::Launch& launch, const plan::SharedTile& shared);

// The copy of a tile that a pair shares: this block's half of its rows, into both blocks.
ir::Copy half_for_both(const ir::Copy& copy, const ir::Launch& launch);
// The other block of the pair.
ir::Expr other_block(const ir::Launch& launch);

}  // namespace tilewright::passes
