// Conditions that always hold, or never, by the ranges of blocks, threads and loops.
//
// Needs: a TileProgram that verifies. Leaves: constants in their place. Arithmetic that might wrap is left alone.
#pragma once
#include "ir/program.h"
#include "passes/lower/intervals.h"

namespace tilewright::passes {

// What the variables of a launch can be: blocks, threads, counters of loops, points of maps, names of integers.
Intervals ranges_in(const ir::Launch& launch);

void decide_known_conditions(ir::Launch& launch);

}  // namespace tilewright::passes
