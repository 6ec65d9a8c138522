// Fragments that are copies of shared tiles and would live in shared memory themselves.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// A fragment that holds nothing but what one copy brings from a shared tile, that maps beside the copy read before that
// tile changes, and that does not stay in registers (B_local[i, j // 2]): the maps read the tile, and the copy goes.
void read_originals(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
