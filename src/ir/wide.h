// Indices in 64 bits.
#pragma once
#include "ir/operators.h"

namespace tilewright::ir {

inline Expr wide(int64_t value) { return constant(i64, value); }

// An index in 64 bits. Sums and products of 32-bit integers are redone in 64 bits, so that an offset that does not fit
// 32 bits is the one that was meant; what stands inside divisions and functions keeps its own width.
Expr widen(const Expr& e);
std::vector<Expr> widened(const std::vector<Expr>& list);

}  // namespace tilewright::ir
