#include "passes/known_conditions.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The one of two integers that a minimum or maximum always is.
std::optional<Expr> known_extreme(const Expr& e, const Intervals& ranges) {
  const auto* b = e.as<Binary>();
  if (!b || !e->type.is_int() || (b->op != BinaryOp::Min && b->op != BinaryOp::Max)) return std::nullopt;
  if (ranges.proves(binary(BinaryOp::Le, b->a, b->b))) return b->op == BinaryOp::Min ? b->a : b->b;
  if (ranges.proves(binary(BinaryOp::Le, b->b, b->a))) return b->op == BinaryOp::Min ? b->b : b->a;
  return std::nullopt;
}

}  // namespace

bool decide_known_conditions(Launch& launch, const Intervals& known) {
  const Intervals ranges = ranges_in(launch, known);
  bool changed = false;
  launch.body = rewrite_exprs(launch.body, [&](const Expr& e) -> std::optional<Expr> {
    std::optional<Expr> out;
    if (!e->type.is_bool()) {
      out = known_extreme(e, ranges);
    } else if (!constant_int(e)) {
      const Interval one = ranges.of(e);
      if (const auto decided = ranges.decides(e)) out = constant(boolean, int64_t{*decided});
      if (e.as<Var>() && one.low == one.high) out = constant(boolean, one.low);
    }
    changed = changed || out;
    return out;
  });
  return changed;
}

std::optional<Body> decided(const Stmt& s) {
  const auto* branch = s.as<If>();
  const auto value = branch ? constant_int(branch->condition) : std::nullopt;
  if (!value) return std::nullopt;
  return *value ? branch->then_body : branch->else_body;
}

Body without_decided_branches(const Body& body) {
  return rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
    if (s.as<If>()) return decided(s);
    const auto* map = s.as<Map>();
    const auto* loop = s.as<For>();
    const bool empty = (map && map->body.empty()) || (loop && loop->body.empty());
    return empty ? std::optional(Body{}) : std::nullopt;
  });
}

}  // namespace tilewright::passes
