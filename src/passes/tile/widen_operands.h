// Operands that no matrix instruction of a target multiplies as they are, as ones that it does.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// A gemm on chip without an instruction for its types or its depth, where one for float16 or bfloat16 has every value
// of both operands (floats of eight bits and less): each operand that is narrower is copied to a tile of that type in
// front of it, where shared memory has room. The products are the same, for they are exact in what instructions add up
// in. One of bytes in shared memory that does not lie along k, where instructions read words, is copied to one that
// does.
void widen_operands(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
