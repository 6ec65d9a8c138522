// Dimensions of tiles that no matrix instruction takes, with zeros behind them.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// Products over, or of columns of, a dimension of which an instruction takes no whole number (72 elements of 16 bits of
// a head), where every tile that has it ends with the tensors that it comes from and goes to: all of them get more of
// it. What comes from behind a tensor's end is zero, what goes there goes nowhere.
void pad_widths(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
