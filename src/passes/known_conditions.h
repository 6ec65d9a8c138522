// Conditions that always hold, or never, by the ranges of blocks, threads and loops.
//
// Needs: a TileProgram that verifies. Leaves: constants in their place. Arithmetic that might wrap is left alone.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

void decide_known_conditions(ir::Launch& launch);

}  // namespace tilewright::passes
