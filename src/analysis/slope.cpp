#include "analysis/slope.h"

#include "ir/rewrite.h"

namespace tilewright::analysis {

std::optional<int64_t> slope(const ir::Expr& e, ir::VarId v) {
  if (!ir::used_vars(e).contains(v)) return 0;
  if (const auto* n = e.as<ir::Var>(); n && n->id == v) return 1;
  const auto* s = e.as<ir::Sum>();
  if (!s) return std::nullopt;
  int64_t total = 0;
  for (const ir::Term& t : s->terms) {
    const auto c = slope(t.value, v);
    if (!c) return std::nullopt;
    total += *c * t.coefficient;
  }
  return total;
}

}  // namespace tilewright::analysis
