// Blocks of a launch that run at the same time and reach each other's shared memory.
#pragma once
#include "ir/program.h"

namespace tilewright::ir {

// Blocks of the cluster along a dimension of the grid.
int64_t cluster_extent(const Launch& launch, size_t dim);
int64_t cluster_blocks(const Launch& launch);

// The number of a block in its cluster, x first, of the indices of blocks in the grid.
Expr rank_in_cluster(const Launch& launch);

// Whether the statement itself concerns other blocks of the cluster. A cluster without such is a matter of speed.
bool reaches_blocks(const Stmt& s);

}  // namespace tilewright::ir
