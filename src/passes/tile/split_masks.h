// Masks that only some tiles need.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// A Map that stores `select(condition, 0, other)` into a tile that the next statement, a gemm, adds to: where the
// condition holds at every point, which is asked once for the tile, the Map is not run and the gemm starts from zero.
// Conditions are conjunctions of comparisons that are linear in the Map's variables. Not where registers are
// short of what the products of the launch want. Needs canonical tile programs; leaves them so.
void split_masks(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
