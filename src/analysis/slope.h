// How an index goes with one of its variables.
#pragma once
#include <cstdint>
#include <optional>

#include "ir/expr.h"

namespace tilewright::analysis {

// The coefficient of a variable in an expression that is linear in it; none: it is not.
std::optional<int64_t> slope(const ir::Expr& e, ir::VarId v);

}  // namespace tilewright::analysis
