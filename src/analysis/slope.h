// How an index goes with one of its variables.
#pragma once
#include <cstdint>
#include <optional>

#include "ir/expr.h"

namespace tilewright::analysis {

// The coefficient of a variable in an expression that is linear in it; none: it is not.
std::optional<int64_t> slope(const ir::Expr& e, ir::VarId v);

// Whether an index of the one type is the same number in the other: one of 32 bits, which are taken for granted to be
// enough, or a wider one that has its sign. In others it wraps around.
bool holds_indices(DType type, DType of);

// The sum that an index is; null: it is none, or of a type in which it wraps around.
const ir::Sum* sum_of(const ir::Expr& index);

// The variable that an index is, as it is or cast to a type that holds it.
const ir::Var* variable_of(const ir::Expr& index);

// The slope where a cast of a sum counts as the sum: of an index that might wrap, if that makes no difference.
std::optional<int64_t> slope_through_casts(const ir::Expr& e, ir::VarId v);

}  // namespace tilewright::analysis
