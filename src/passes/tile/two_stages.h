// Loops of one stage whose next turn may come beside this one.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// A loop that brings shared tiles in each turn, and does nothing else that another block would see the order of, waits
// for memory in every turn. Where more of what it brings takes little room, it is a pipelined loop of two stages, or of
// some more where they are short: a ring does the rest. Fragments that it loads come through shared memory with them,
// and turns that bring little are brought several at once.
ir::TileProgram two_stages(ir::TileProgram program, const target::GpuTarget& target);

}  // namespace tilewright::passes
