#include "ir/wide.h"

namespace tilewright::ir {

Expr widen(const Expr& e) {
  if (e->type == i64) return e;
  if (auto c = constant_int(e)) return constant(i64, *c);
  if (e->type.is_signed() && e->type.is_int()) {
    if (const auto* s = e.as<Sum>()) {
      std::vector<Term> terms;
      for (const Term& t : s->terms) terms.push_back({t.coefficient, widen(t.value)});
      return sum(std::move(terms), s->constant, i64);
    }
    if (const auto* b = e.as<Binary>(); b && b->op == BinaryOp::Mul) return mul(widen(b->a), widen(b->b));
  }
  return cast(e, i64);
}

std::vector<Expr> widened(const std::vector<Expr>& list) {
  std::vector<Expr> out;
  for (const Expr& e : list) out.push_back(widen(e));
  return out;
}

}  // namespace tilewright::ir
