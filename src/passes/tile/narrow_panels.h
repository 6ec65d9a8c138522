// Panels of operands where whole ones do not divide what each warpgroup multiplies.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// wgmma reads whole panels of an operand whose rows run across k: 64 columns of 16 bits with the widest. Where the
// warpgroups of a gemm take columns of which that is no divisor (192 in two halves, 64 in two), the operand's buffer
// gets panels that are: 64 or 32 bytes. Where one instruction takes the whole row, its last panel may be a part of one:
// TMA brings a row of 208 columns in four boxes, not in thirteen of 32 bytes. A tile of which the program itself brings
// rows one by one has none: its rows lie one after the other. Needs tile programs; leaves them so.
// Nothing on GPUs without wgmma.
void narrow_panels(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
