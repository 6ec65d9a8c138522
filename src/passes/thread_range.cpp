#include "passes/thread_range.h"

namespace tilewright::passes {

using ir::Binary;
using ir::BinaryOp;
using ir::Expr;

std::optional<ThreadRange> threads_where(const Expr& condition, ir::VarId tx, ThreadRange here) {
  if (const auto* n = condition.as<ir::Unary>(); n && n->op == ir::UnaryOp::Not) {
    const auto x = threads_where(n->a, tx, here);
    return x ? x->rest_of(here) : std::nullopt;
  }
  const auto* b = condition.as<Binary>();
  if (!b) return std::nullopt;
  if (b->op == BinaryOp::And || b->op == BinaryOp::Or) {
    const auto x = threads_where(b->a, tx, here), y = threads_where(b->b, tx, here);
    if (!x || !y) return std::nullopt;
    return b->op == BinaryOp::And ? x->both(*y) : x->either(*y);
  }
  // tx, or tx // size
  auto group_of = [&](const Expr& e) -> std::optional<int64_t> {
    if (const auto* v = e.as<ir::Var>()) return v->id == tx ? std::optional<int64_t>(1) : std::nullopt;
    const auto* d = e.as<Binary>();
    if (!d || d->op != BinaryOp::FloorDiv) return std::nullopt;
    const auto* v = d->a.as<ir::Var>();
    const auto size = ir::constant_int(d->b);
    return v && v->id == tx && size && *size > 0 ? size : std::nullopt;
  };
  auto clipped = [&](int64_t begin, int64_t end) { return ThreadRange{begin, end}.both(here); };
  const auto left = group_of(b->a), right = group_of(b->b);
  if (const auto c = ir::constant_int(b->b); left && c && std::abs(*c) <= here.end) {
    if (b->op == BinaryOp::Lt) return clipped(here.begin, *c * *left);
    if (b->op == BinaryOp::Le) return clipped(here.begin, (*c + 1) * *left);
    if (b->op == BinaryOp::Eq) return clipped(*c * *left, (*c + 1) * *left);
  }
  if (const auto c = ir::constant_int(b->a); right && c && std::abs(*c) <= here.end) {
    if (b->op == BinaryOp::Lt) return clipped((*c + 1) * *right, here.end);
    if (b->op == BinaryOp::Le) return clipped(*c * *right, here.end);
    if (b->op == BinaryOp::Eq) return clipped(*c * *right, (*c + 1) * *right);
  }
  return std::nullopt;
}

}  // namespace tilewright::passes
