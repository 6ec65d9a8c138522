// Integer arithmetic that may wrap around, as unsigned arithmetic.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Signed integers wrap in the language; in CUDA C++ they may not, and NVRTC takes (x * 6) / 3 for x * 2 and x * x for
// positive. Where something looks at the sign or the size of a sum or a product (a division, a comparison, a function,
// a wider type, the end of a loop), and it may leave its type, it is computed without a sign and read as signed again.
// What fits stays as it is: counters are as large as their loops and grids.
void wrap_sums(ir::ThreadProgram& program);

}  // namespace tilewright::passes
