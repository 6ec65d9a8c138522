// A grid of blocks as a loop over tiles.
#pragma once
#include <optional>

#include "ir/program.h"

namespace tilewright::passes {

// A grid of fewer blocks than it has tiles.
struct FewBlocks {
  ir::Body names;  // of the numbers
  ir::Expr tiles, blocks, block;
};
// The launch as one of at most so many blocks, or, where they are `even`, of as few as make no more waves; its body is
// as it was. None, and nothing is done: one wave takes all tiles.
std::optional<FewBlocks> with_few_blocks(ir::TileProgram& program, ir::Launch& launch, int64_t most, bool even);

// Block b of G takes tiles b, b + G, ... of the launch's grid, in an order that shares operands: as few blocks as make
// no more waves, at most `blocks`. Where tiles are `uneven`, who had much gets little: tiles are dealt in pairs that
// take as long as others, if it is known along which dimension they take longer (analysis/uneven_along.h); else every
// second wave is dealt backwards. False, and nothing is done: one wave takes all.
bool walk_tiles(ir::TileProgram& program, ir::Launch& launch, int64_t blocks, bool uneven);

// Names for the coordinates of the tile of that number, in the order in which tiles are walked. `inside`: it is known
// that there is such a tile; else what is divided says so.
ir::Body bind_tile(ir::TileProgram& program, const ir::Launch& launch, const ir::Expr& tile, bool inside = false);

// The launch, in an order in which tiles that are taken at a time share operands, where it is known to be of one
// product and has no order of its own.
ir::Launch with_order(const ir::ProgramTables& program, ir::Launch launch);

}  // namespace tilewright::passes
