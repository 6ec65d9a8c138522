// The coordinates of a block from its linear index.
#pragma once
#include "passes/lower/lowering.h"

namespace tilewright::passes {

// Whether the launch's swizzle changes the order of its blocks: a single row or column of them has but one.
bool reorders_blocks(const ir::Launch& launch);

// Whether the grid surely consists of whole clusters.
bool has_whole_clusters(const ir::Launch& launch);
// The blocks of a launch whose grid has become one dimension. Where the launch's grid is no whole clusters, its extent
// that they do not divide: no such launch begins, and the message of it has that number.
ir::Expr none_in_part_of_a_cluster(const ir::Launch& launch, ir::Expr blocks);

// Binds the block variables, in the launch's order (its swizzle), and tells the intervals what they are. They are
// computed in the type of `block`, which all blocks must fit. The grid is whole clusters, of which blocks have
// neighbouring numbers.
ir::Body bind_block(const ir::Launch& launch, const ir::Expr& block, Lowering& l);

}  // namespace tilewright::passes
