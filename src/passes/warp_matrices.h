// Matrices that the lanes of a warp hold together in arrays of their own: loads and products of them as instructions,
// and as what threads do that exchange elements by shuffles.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// Every Mma and LoadMatrix of a tile program as shuffles and sums: for machines that have no warps.
ir::TileProgram spell_matrices(ir::TileProgram program);

// Those for which the target has no instruction, or that stand where it cannot be: not all lanes come by together, or a
// row of a matrix may not be 16 bytes in shared memory. The others name their instruction.
ir::TileProgram choose_matrix_instructions(ir::TileProgram program, const target::GpuTarget& target);

}  // namespace tilewright::passes
