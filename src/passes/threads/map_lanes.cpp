#include "passes/threads/map_lanes.h"

#include "ir/buffer_vars.h"
#include "ir/names.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/threads/deal.h"
#include "passes/threads/quotients.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr uint32_t kLargestIndex = 256;  // nodes of an index, or a condition, with the values of names in it

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
  std::optional<int> shares;
  const auto may = [&](int d) { return neighbours_along(points, d) > 1; };
  const auto var_of = [&](int d) { return map.vars[static_cast<size_t>(d)]; };
  // Accesses along each dimension: of an element for each neighbour, then of what they share.
  std::vector<std::pair<int, int>> along(map.vars.size());
  const auto touches = [&](BufferId id, const std::vector<Expr>& index) {
    if (!is_memory(id) || index.empty()) return;
    in_memory = true;
    std::set<VarId> used;
    for (const Expr& e : index) used.merge(used_vars(e));
    bool each = true;
    for (int d = 0; d <= last; ++d) each = each && (!may(d) || used.contains(var_of(d)));
    for (int d = 0; d <= last; ++d)
      if (may(d) && used_vars(index.back()).contains(var_of(d)))
        ++(each ? along[static_cast<size_t>(d)].first : along[static_cast<size_t>(d)].second);
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
  int best = last;
  for (int d = last; d-- > 0;)
    if (along[static_cast<size_t>(d)] > along[static_cast<size_t>(best)]) best = d;
  return !in_memory && shares ? *shares : best;
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

Body with_plain_indices(const Body& body, const ProgramTables& p) {
  std::set<VarId> wanted;
  auto indices = [&](const std::vector<Expr>& list) {
    for (const Expr& e : list) wanted.merge(used_vars(e));
  };
  walk(body, [&](const Stmt& s) {
    if (const auto* n = s.as<Store>()) indices(n->to.indices);
    if (const auto* n = s.as<Atomic>()) indices(n->to.indices);
    if (const auto* n = s.as<If>()) wanted.merge(used_vars(n->condition));
  });
  walk_exprs(body, [&](const Expr& e) {
    if (const auto* n = e.as<Load>()) indices(n->indices);
  });
  Substitution names;
  walk(body, [&](const Stmt& s) {
    const auto* n = s.as<Let>();
    if (!n || !n->value->type.is_int()) return;
    bool loads = false;
    walk(n->value, [&](const Expr& e) { loads = loads || e.as<Load>(); });
    if (const auto whole = loads ? std::nullopt : spelled_out(n->value, names, kLargestIndex)) names[n->var] = *whole;
  });
  const std::set<VarId> of_buffers = vars_of_buffers(p);
  std::erase_if(names,
                [&](const auto& name) { return !wanted.contains(name.first) || of_buffers.contains(name.first); });
  if (names.empty()) return body;
  const Body without = rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
    const auto* n = s.as<Let>();
    return n && names.contains(n->var) ? std::optional(Body{}) : std::nullopt;
  });
  return substitute(without, names);
}

}  // namespace tilewright::passes
