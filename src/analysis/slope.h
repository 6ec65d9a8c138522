// How an index goes with one of its variables.
#pragma once
#include <cstdint>
#include <optional>

#include "ir/expr.h"

namespace tilewright::analysis {

// The coefficient of a variable in an expression that is linear in it; none: it is not.
std::optional<int64_t> slope(const ir::Expr& e, ir::VarId v);

// The same where a cast of a sum counts as the sum: of an index that might wrap, if that makes no difference.
std::optional<int64_t> slope_through_casts(const ir::Expr& e, ir::VarId v);

}  // namespace tilewright::analysis
