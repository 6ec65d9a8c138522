// What names stand for.
#pragma once
#include "ir/rewrite.h"

namespace tilewright::ir {

// Nodes of an expression that names are put into: a name of a name that is used twice doubles it at each step.
inline constexpr uint32_t kMostSpelled = 1024;

// The expression with what its names stand for in their places; none: it would have more than `most` nodes.
std::optional<Expr> spelled_out(const Expr& e, const Substitution& names, uint32_t most = kMostSpelled);

bool uses_any(const Expr& e, const std::set<VarId>& vars);

// Whether a value is no longer than a name of it: a variable, a constant, an element, or a cast of one.
bool is_simple(const Expr& e);

// How often statements from the given one on read a variable.
size_t uses_of(VarId v, const Body& body, size_t from = 0);

}  // namespace tilewright::ir
