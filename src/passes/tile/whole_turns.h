// Turns of a While that all threads end at one place, where they may meet before its condition is read again.
//
// Needs a TileProgram that verifies; leaves it so.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Where the condition reads memory that threads share, what stands behind a `continue` becomes a branch around it.
void end_turns_together(ir::TileProgram& program, ir::Launch& launch);

}  // namespace tilewright::passes
