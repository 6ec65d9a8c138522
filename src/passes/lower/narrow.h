// Numbers of 64 bits that 32 bits hold as well.
#pragma once
#include "passes/lower/intervals.h"

namespace tilewright::passes {

// The same number, computed in int32, where by their ranges no step to it leaves that, in whatever order; none: one
// may, or is of another type. Constants, names and what is widened are narrow by themselves.
std::optional<ir::Expr> in_32_bits(const ir::Expr& e, const Intervals& ranges);

}  // namespace tilewright::passes
