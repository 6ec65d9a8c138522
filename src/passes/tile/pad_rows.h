// Products of fewer rows than a matrix instruction has, or of rows that do not divide among the warps.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// Where all products of a launch have the same rows, fewer than 16 or, as 48 for four warps, none that an instruction
// divides among them, its tiles get the next number of rows that does: a row never meets another one, so what the rows
// beyond hold does not matter, and nothing of them leaves the block. Launches of which that is not plain stay as they
// are, and those that get wgmma (pad_tiles.h). On canonical tile programs, for GPUs; leaves them so.
ir::TileProgram pad_rows(ir::TileProgram program, const target::GpuTarget& target);

}  // namespace tilewright::passes
