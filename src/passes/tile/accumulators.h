// Accumulators that a matrix instruction can have in registers, though what else is done with the fragment would take
// it from there, or its type is narrower than what instructions add up in.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// A gemm whose c is a shared tile, or a fragment that lives in shared memory for other statements' sake or is of fewer
// bits than it is summed in, adds to a fragment of its own; copies between the two stand around the largest run of
// statements that do nothing else with c. Where the matrix instruction is not had this way, and in launches with roles
// or jumps, all stays as it is.
void accumulate_in_registers(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
