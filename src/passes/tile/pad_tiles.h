// Products of rows or columns that no wgmma has.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// Tiles of products that warpgroups do not divide (96 rows of one warpgroup, 80 of a transposed `a`, 104 columns of a
// row-major b of each of two) get more rows or columns where wgmma then multiplies more than mma.sync does, by the
// price, and shared memory has room for as many stages. Nothing but products, and what is alike for any number of rows,
// touches those: what comes from memory or goes there is what the program says. On canonical tile programs.
void pad_tiles(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
