// Expressions that join two operands and that a vector of lanes computes as a scalar does.
#pragma once
#include "ir/expr.h"

namespace tilewright::ir {

// Has the expression nothing but the two operands and what vectors of the host compiler have operators for?
bool joins_in_vectors(const Expr& e, const Expr& a, const Expr& b);

}  // namespace tilewright::ir
