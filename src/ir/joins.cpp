#include "ir/joins.h"

#include "ir/operators.h"

namespace tilewright::ir {

bool joins_in_vectors(const Expr& e, const Expr& a, const Expr& b) {
  auto joins = [&](const Expr& x) { return joins_in_vectors(x, a, b); };
  if (equal(e, a) || equal(e, b)) return true;
  if (const auto* n = e.as<Select>()) return joins(n->condition) && joins(n->a) && joins(n->b);
  if (const auto* n = e.as<Bitcast>())
    return (e->type.is_float() || (e->type.is_int() && e->type.is_signed())) && joins(n->value);
  if (const auto* n = e.as<Sum>())
    return n->terms.size() == 2 && n->constant == 0 && n->terms[0].coefficient == 1 && n->terms[1].coefficient == 1 &&
           joins(n->terms[0].value) && joins(n->terms[1].value);
  const auto* n = e.as<Binary>();
  if (!n || !joins(n->a) || !joins(n->b)) return false;
  switch (n->op) {
    case BinaryOp::Add:
    case BinaryOp::BitAnd:
    case BinaryOp::BitOr:
    case BinaryOp::BitXor:
    case BinaryOp::Lt:
    case BinaryOp::Le: return true;
    case BinaryOp::Min:
    case BinaryOp::Max: return n->a->type.is_int();
    default: return false;
  }
}

Expr extreme_so_far(BinaryOp op, const Expr& total, const Expr& x) {
  const bool most = op == BinaryOp::Max;
  auto ordered = [&](BinaryOp compare) { return most ? binary(compare, total, x) : binary(compare, x, total); };
  const DType word = total->type == f64 ? i64 : i32;
  const Expr one = bitcast(select(ordered(BinaryOp::Lt), x, total), word), other = bitcast(x, word);
  const Expr both = binary(most ? BinaryOp::BitAnd : BinaryOp::BitOr, one, other);
  return select(ordered(BinaryOp::Le), bitcast(both, total->type), total);
}

std::optional<Extreme> extreme_of(const Expr& e, const Expr& total) {
  const auto* s = e.as<Select>();
  const auto* c = s ? s->condition.as<Binary>() : nullptr;
  if (!c || !total->type.is_float()) return std::nullopt;
  for (const auto& [op, x] : {std::pair{BinaryOp::Max, c->b}, {BinaryOp::Min, c->a}})
    if (x->type == total->type && equal(e, extreme_so_far(op, total, x))) return Extreme{op, x};
  return std::nullopt;
}

}  // namespace tilewright::ir
