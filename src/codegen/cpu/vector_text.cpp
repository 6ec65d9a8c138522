#include "codegen/cpu/vector_text.h"

#include "ir/operators.h"
#include "support/diagnostic.h"

namespace tilewright::codegen {

using namespace ir;

std::string vector_text(const Expr& e, const Expr& a, const Expr& b) {
  auto part = [&](const Expr& x) { return vector_text(x, a, b); };
  if (equal(e, a)) return "a";
  if (equal(e, b)) return "b";
  if (const auto* n = e.as<Select>()) return fmt::format("({} ? {} : {})", part(n->condition), part(n->a), part(n->b));
  if (const auto* n = e.as<Bitcast>()) return fmt::format("({}){}", e->type.is_float() ? "V" : "I", part(n->value));
  if (const auto* n = e.as<Sum>()) return fmt::format("({} + {})", part(n->terms[0].value), part(n->terms[1].value));
  const auto* n = e.as<Binary>();
  check_internal(n, "a join that vectors have no operator for");
  const std::string x = part(n->a), y = part(n->b);
  switch (n->op) {
    case BinaryOp::Add: return fmt::format("({} + {})", x, y);
    case BinaryOp::BitAnd: return fmt::format("({} & {})", x, y);
    case BinaryOp::BitOr: return fmt::format("({} | {})", x, y);
    case BinaryOp::BitXor: return fmt::format("({} ^ {})", x, y);
    case BinaryOp::Lt: return fmt::format("({} < {})", x, y);
    case BinaryOp::Le: return fmt::format("({} <= {})", x, y);
    case BinaryOp::Min: return fmt::format("({1} < {0} ? {1} : {0})", x, y);
    case BinaryOp::Max: return fmt::format("({0} < {1} ? {1} : {0})", x, y);
    default: check_internal(false, "a join that vectors have no operator for");
  }
}

}  // namespace tilewright::codegen
