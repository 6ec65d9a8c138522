// What an index means: an offset that does not fit 32 bits is the one that was meant.
#pragma once
#include "ir/operators.h"
#include "ir/program.h"

namespace tilewright::ir {

inline Expr wide(int64_t value) { return constant(i64, value); }

// An index, or an extent of a tile, in 64 bits: sums and products of int32 are redone there. What stands inside
// divisions and functions keeps its own width, and so do narrower types, which wrap around.
Expr widen(const Expr& e);
// Whether the numbers of a sum of products of int32 might, signs aside, not fit int32 when it is taken apart; with the
// values of variables in their places.
bool leaves_32_bits(const Expr& e, const std::unordered_map<VarId, Expr>* values = nullptr);
// begin + by: in the type of the begin where that cannot wrap around what would not without.
Expr offset_by(const Expr& begin, const Expr& by);
std::vector<Expr> widened(const std::vector<Expr>& list);

}  // namespace tilewright::ir
