#include "analysis/slope.h"

#include "ir/rewrite.h"

namespace tilewright::analysis {

namespace {

constexpr int kIndexBits = 32;

std::optional<int64_t> slope(const ir::Expr& e, ir::VarId v, bool through_casts) {
  if (!ir::used_vars(e).contains(v)) return 0;
  if (const auto* n = e.as<ir::Var>(); n && n->id == v) return 1;
  if (const auto* n = e.as<ir::Cast>(); n && through_casts && holds_indices(e->type, n->value->type))
    return slope(n->value, v, true);
  const ir::Sum* s = sum_of(e);
  if (!s) return std::nullopt;
  int64_t total = 0;
  for (const ir::Term& t : s->terms) {
    const auto c = slope(t.value, v, through_casts);
    if (!c) return std::nullopt;
    total += *c * t.coefficient;
  }
  return total;
}

}  // namespace

bool holds_indices(DType type, DType of) {
  if (!type.is_int() || !of.is_int()) return false;
  return type == of || type.bits >= kIndexBits || (type.bits > of.bits && (type.is_signed() || !of.is_signed()));
}

const ir::Sum* sum_of(const ir::Expr& index) { return index->type.bits >= kIndexBits ? index.as<ir::Sum>() : nullptr; }

const ir::Var* variable_of(const ir::Expr& index) {
  const auto* c = index.as<ir::Cast>();
  if (!c) return index.as<ir::Var>();
  return holds_indices(index->type, c->value->type) ? c->value.as<ir::Var>() : nullptr;
}

std::optional<int64_t> slope(const ir::Expr& e, ir::VarId v) { return slope(e, v, false); }

std::optional<int64_t> slope_through_casts(const ir::Expr& e, ir::VarId v) { return slope(e, v, true); }

}  // namespace tilewright::analysis
