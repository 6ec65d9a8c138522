#include "codegen/cpu/vector_text.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::codegen {

using namespace ir;

std::optional<std::string> vector_text(const Expr& e, const Expr& a, const Expr& b) {
  auto part = [&](const Expr& x) { return vector_text(x, a, b); };
  if (equal(e, a)) return "a";
  if (equal(e, b)) return "b";
  if (const auto* n = e.as<Select>()) {
    const auto c = part(n->condition), x = part(n->a), y = part(n->b);
    return c && x && y ? std::optional(fmt::format("({} ? {} : {})", *c, *x, *y)) : std::nullopt;
  }
  if (const auto* n = e.as<Bitcast>()) {
    const auto x = part(n->value);
    const bool whole = e->type.is_float() || (e->type.is_int() && e->type.is_signed());
    return x && whole ? std::optional(fmt::format("({}){}", e->type.is_float() ? "V" : "I", *x)) : std::nullopt;
  }
  if (const auto* n = e.as<Sum>()) {
    if (n->terms.size() != 2 || n->constant != 0 || n->terms[0].coefficient != 1 || n->terms[1].coefficient != 1)
      return {};
    const auto x = part(n->terms[0].value), y = part(n->terms[1].value);
    return x && y ? std::optional(fmt::format("({} + {})", *x, *y)) : std::nullopt;
  }
  const auto* n = e.as<Binary>();
  const auto x = n ? part(n->a) : std::nullopt, y = n ? part(n->b) : std::nullopt;
  if (!x || !y) return {};
  const bool ints = n->a->type.is_int();
  switch (n->op) {
    case BinaryOp::Add: return fmt::format("({} + {})", *x, *y);
    case BinaryOp::BitAnd: return fmt::format("({} & {})", *x, *y);
    case BinaryOp::BitOr: return fmt::format("({} | {})", *x, *y);
    case BinaryOp::BitXor: return fmt::format("({} ^ {})", *x, *y);
    case BinaryOp::Lt: return fmt::format("({} < {})", *x, *y);
    case BinaryOp::Le: return fmt::format("({} <= {})", *x, *y);
    case BinaryOp::Min: return ints ? std::optional(fmt::format("({1} < {0} ? {1} : {0})", *x, *y)) : std::nullopt;
    case BinaryOp::Max: return ints ? std::optional(fmt::format("({0} < {1} ? {1} : {0})", *x, *y)) : std::nullopt;
    default: return {};
  }
}

}  // namespace tilewright::codegen
