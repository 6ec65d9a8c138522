// The constant zero.
#pragma once
#include "ir/expr.h"

namespace tilewright::ir {

// Whether all bits of a constant are 0, in whatever type they are read: no negative zero.
inline bool is_zero(const Expr& e) {
  const auto* c = e.as<Const>();
  return c && c->bits == 0;
}

}  // namespace tilewright::ir
