// Expressions that join two operands and that a vector of lanes computes as a scalar does.
#pragma once
#include <optional>

#include "ir/expr.h"

namespace tilewright::ir {

// Has the expression nothing but the two operands and what vectors of the host compiler have operators for?
bool joins_in_vectors(const Expr& e, const Expr& a, const Expr& b);

// The greater (Max) or the lesser (Min) of a total so far, which is no NaN, and a float that may be one and then counts
// for nothing, in comparisons: compilers make vectors of them. Equal operands meet in the sign bit, for -0 is less than
// +0.
Expr extreme_so_far(BinaryOp op, const Expr& total, const Expr& x);
struct Extreme {
  BinaryOp op;
  Expr x;
};
// What is joined with that total so, if the expression is this.
std::optional<Extreme> extreme_of(const Expr& e, const Expr& total);

}  // namespace tilewright::ir
