// Steps of products as their instruction has them.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// A pipelined loop of products whose step is no whole number of the instruction's (24, 40 or 72 elements of 16 bits),
// or of which TMA would bring narrow panels, is cut anew: into rows of 128 bytes, or of about as many as it has where
// threads bring them, if nothing but zeros lies behind its last step; else several steps are one. Sums keep their
// order.
void whole_steps(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
