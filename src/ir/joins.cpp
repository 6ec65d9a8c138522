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

}  // namespace tilewright::ir
