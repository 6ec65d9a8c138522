#include "ir/widen.h"

#include "ir/operators.h"

namespace tilewright::ir {

Expr widen(const Expr& e) {
  if (e->type == i64) return e;
  if (auto c = constant_int(e)) return constant(i64, *c);
  if (e->type == i32) {
    if (const auto* s = e.as<Sum>()) {
      std::vector<Term> terms;
      for (const Term& t : s->terms) terms.push_back({t.coefficient, widen(t.value)});
      return sum(std::move(terms), s->constant, i64);
    }
    if (const auto* b = e.as<Binary>(); b && b->op == BinaryOp::Mul) return mul(widen(b->a), widen(b->b));
  }
  return cast(e, i64);
}

namespace {

double magnitude(const Expr& e, const std::unordered_map<VarId, Expr>* values) {
  if (e->type != i32) return 1;
  if (const auto c = constant_int(e)) return std::max(1.0, std::abs(static_cast<double>(*c)));
  if (const auto* s = e.as<Sum>()) {
    double total = std::abs(static_cast<double>(s->constant));
    for (const Term& t : s->terms) total += std::abs(static_cast<double>(t.coefficient)) * magnitude(t.value, values);
    return total;
  }
  if (const auto* b = e.as<Binary>(); b && b->op == BinaryOp::Mul)
    return magnitude(b->a, values) * magnitude(b->b, values);
  const auto* v = e.as<Var>();
  const auto found = v && values ? values->find(v->id) : decltype(values->end()){};
  return v && values && found != values->end() ? magnitude(found->second, nullptr) : 1;
}

}  // namespace

bool leaves_32_bits(const Expr& e, const std::unordered_map<VarId, Expr>* values) {
  const bool may = e->type == i32 && (e.as<Sum>() || e.as<Binary>());
  return may && magnitude(e, values) >= 0x1p31;
}

Expr offset_by(const Expr& begin, const Expr& by) {
  const bool narrow = begin->type == i32 && !constant_int(begin) && !leaves_32_bits(begin);
  if (begin->type == i64 || narrow) return add(begin, cast(by, begin->type));
  const auto number = constant_int(begin);
  if (begin->type == i32 && number && std::abs(*number) < int64_t{1} << 30) return add(begin, cast(by, i32));
  return add(widen(begin), cast(by, i64));
}

std::vector<Expr> widened(const std::vector<Expr>& list) {
  std::vector<Expr> out;
  for (const Expr& e : list) out.push_back(widen(e));
  return out;
}

}  // namespace tilewright::ir
