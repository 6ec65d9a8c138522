// Products of rows or columns that no wgmma has.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// Tiles of products that warpgroups do not divide (96 rows of one warpgroup, 80 of a transposed `a`, 104 columns of a
// row-major b of each of two) get more rows or columns, of zeros in shared memory, where wgmma then multiplies in less
// time than what multiplies now, by the price, and there is room for as many slots. Nothing but products, and what is
// alike for any number of rows, touches those: what comes from memory or goes there is what the program says. On
// canonical tile programs.
void pad_tiles(ir::TileProgram& program, const target::GpuTarget& target);
// Whether that, or doing them the other way round, gives the products of a launch wgmma.
bool will_have_wgmma(const ir::TileProgram& program, size_t launch, const target::GpuTarget& target);

}  // namespace tilewright::passes
