#include "ir/names.h"

#include <algorithm>

namespace tilewright::ir {

std::optional<Expr> spelled_out(const Expr& e, const Substitution& names, uint32_t most) {
  uint64_t size = e->size;
  walk(e, [&](const Expr& x) {
    const auto* v = x.as<Var>();
    const auto name = v ? names.find(v->id) : names.end();
    if (name != names.end()) size += name->second->size - 1;
  });
  return size <= most ? std::optional(substitute(e, names)) : std::nullopt;
}

bool uses_any(const Expr& e, const std::set<VarId>& vars) {
  return std::ranges::any_of(used_vars(e), [&](VarId v) { return vars.contains(v); });
}

bool is_simple(const Expr& e) {
  constexpr uint32_t kMostNodes = 16;  // an element, with its indices
  if (e->size > kMostNodes) return false;
  if (const auto* c = e.as<Cast>()) return is_simple(c->value);
  return e.as<Var>() || e.as<Const>() || e.as<Load>();
}

size_t uses_of(VarId v, const Body& body, size_t from) {
  size_t count = 0;
  const auto note = [&](const Expr& e) { count += e.as<Var>() && e.as<Var>()->id == v; };
  for (size_t i = from; i < body.size(); ++i) walk_exprs({body[i]}, note);
  return count;
}

}  // namespace tilewright::ir
