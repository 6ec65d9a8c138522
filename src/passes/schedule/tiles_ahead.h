// Writes plans of blocks whose own threads bring the next tile.
#pragma once
#include "plan/plan.h"

namespace tilewright::passes {

// The launch as a loop over tiles, pipelined by as many stages as the plan's rings have slots: at its head the copies
// of the rings, to shared tiles from which fragments are then filled where the program fills them. async_rings lets
// them run ahead.
void bring_ahead(const plan::Plan& plan, ir::TileProgram& program, ir::Launch& launch);

}  // namespace tilewright::passes
