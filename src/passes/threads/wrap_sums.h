// Integer arithmetic that may wrap around, as unsigned arithmetic.
#pragma once
#include "passes/lower/intervals.h"

namespace tilewright::passes {

// Signed integers wrap in the language; in CUDA C++ they may not, and NVRTC takes (x * 6) / 3 for x * 2, x * x for
// positive, and adds constants of several statements up. Where a sum or a product may leave its type, and a statement
// or a function has it as a value, it is computed without a sign and read as signed again. What fits stays as it is:
// counters are as large as their loops and grids. Indices of memory stay too: what becomes of them in 64 bits, code
// generators know.
void wrap_sums(ir::ThreadProgram& program);
// The same of one value.
ir::Expr wrapped(const ir::Expr& value, const Intervals& ranges);

}  // namespace tilewright::passes
