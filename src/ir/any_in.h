// Whether a body or an expression has something that is as asked, at any depth.
#pragma once
#include "ir/rewrite.h"

namespace tilewright::ir {

inline bool any_in(const Body& body, function_ref<bool(const Stmt&)> is) {
  bool found = false;
  walk(body, [&](const Stmt& s) { found = found || is(s); });
  return found;
}
inline bool any_in(const Expr& e, function_ref<bool(const Expr&)> is) {
  bool found = false;
  walk(e, [&](const Expr& x) { found = found || is(x); });
  return found;
}
// A statement of one of these kinds.
template <class... Ops>
bool holds(const Body& body) {
  return any_in(body, [](const Stmt& s) { return (... || (s.as<Ops>() != nullptr)); });
}

}  // namespace tilewright::ir
