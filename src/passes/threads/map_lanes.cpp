#include "passes/threads/map_lanes.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/threads/deal.h"
#include "passes/threads/quotients.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What the lane's number is divided by; none: it is something else.
Expr divisor_of(const Expr& e, VarId lane) {
  const auto* b = e.as<Binary>();
  const auto* v = b && b->op == BinaryOp::FloorDiv ? b->a.as<Var>() : nullptr;
  return v && v->id == lane ? b->b : Expr{};
}

}  // namespace

int lanes_along(const Map& map, const FragmentLayout& points, function_ref<bool(BufferId)> is_memory) {
  const int last = points.rank() - 1;
  bool in_memory = false;
  std::optional<int> along, shares;
  const auto may = [&](int d) { return neighbours_along(points, d) > 1; };
  const auto touches = [&](BufferId id, const std::vector<Expr>& index) {
    if (!is_memory(id) || index.empty()) return;
    in_memory = true;
    for (int d = 0; d <= last; ++d)
      if (may(d) && used_vars(index.back()).contains(map.vars[static_cast<size_t>(d)])) along = d;
  };
  walk(map.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Store>()) touches(n->to.buffer, n->to.indices);
  });
  walk_exprs(map.body, [&](const Expr& e) {
    if (const auto* n = e.as<Load>()) touches(n->buffer, n->indices);
    const auto* n = e.as<Binary>();
    if (!n || n->op != BinaryOp::Div || e->type != f32 || n->b.as<Const>()) return;
    const std::set<VarId> divisor = used_vars(n->b);
    for (int d = 0; d <= last; ++d)
      if (neighbours_along(points, d) >= kSharingLanes && !divisor.contains(map.vars[static_cast<size_t>(d)]))
        shares = d;
  });
  if (may(last) && in_memory) return last;
  return along ? *along : shares && !in_memory ? *shares : last;
}

int64_t lanes_of_quotient(const Expr& index, VarId lane, int64_t vector) {
  int64_t out = 1;
  walk(index, [&](const Expr& x) {
    if (const Expr by = divisor_of(x, lane)) out = constant_int(by).value_or(1);
  });
  return out > 1 && vector % out == 0 && vector > out ? out : 1;
}

Expr with_quotients(const Expr& index, VarId lane, int64_t lanes, const Expr& quotient) {
  return rewrite(index, [&](const Expr& x) -> std::optional<Expr> {
    const Expr by = divisor_of(x, lane);
    return by && constant_int(by) == lanes ? std::optional(cast(quotient, x->type)) : std::nullopt;
  });
}

}  // namespace tilewright::passes
