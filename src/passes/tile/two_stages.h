// Loops of one stage whose next turn may come beside this one.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A loop that brings tiles or fragments in each turn, and does nothing else that another block would see the order of,
// waits for memory in every turn. Where twice of what it brings takes little room, it is a pipelined loop of two
// stages: rings and fragments that are loaded ahead do the rest.
ir::TileProgram two_stages(ir::TileProgram program);

}  // namespace tilewright::passes
