// Tiles that a loop brings, and changes where they arrive.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// A shared tile that a pipelined loop brings from memory and of which a map then changes every element where it is
// (scaled, masked, a function of it) arrives in a tile of its own, which the map reads: a ring may bring that one turns
// ahead. Where shared memory has room for both.
void arrive_apart(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
