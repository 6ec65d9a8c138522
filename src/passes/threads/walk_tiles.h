// A grid of blocks as a loop over tiles.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// Block b of G takes tiles b, b + G, ... of the launch's grid, in an order that shares operands: as few blocks as make
// no more waves. False, and nothing is done: one wave takes all.
bool walk_tiles(ir::TileProgram& program, ir::Launch& launch, const target::GpuTarget& target);

}  // namespace tilewright::passes
