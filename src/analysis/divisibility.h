// What is known to divide an integer.
#pragma once
#include "ir/expr.h"

namespace tilewright::analysis {

// The largest power of two, at most 2^20, that is known to divide the value. It holds even where the arithmetic wraps.
int64_t power_of_two_divisor(const ir::Expr& e);

}  // namespace tilewright::analysis
