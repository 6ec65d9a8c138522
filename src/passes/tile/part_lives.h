// Shared tiles that are filled anew for something else.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// A shared tile that a loop brings, and that others fill for themselves: another loop, code beside the loop, or the
// same turn a second time. What is read of one filling never comes from the other, so each loop gets a tile of its own;
// rings take tiles of one loop alone, and those whose lives do not meet may lie over each other later (shared_reuse.h).
// Tiles for which a block has no room stay one.
void part_lives(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
