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
bool reaches_blocks(const ProgramTables& program, const Stmt& s);
// Whether the copy goes from a block's own memory to the shared memory of another one.
bool is_to_peer(const ProgramTables& program, const Copy& copy);

// Whether a view has every element where the buffer that it views has it: the same tile of another block.
bool is_same_tile(const ProgramTables& program, const Buffer& view);

}  // namespace tilewright::ir
