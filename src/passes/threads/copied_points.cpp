#include "passes/threads/copied_points.h"

#include "analysis/body_order.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;
using analysis::BodyOrder;

bool changes_memory_alone(const Map& map, const ProgramTables& program, function_ref<bool(BufferId)> in_memory) {
  const std::set<BufferId> changed = changed_roots(map.body, program);
  return std::all_of(changed.begin(), changed.end(), [&](BufferId id) { return in_memory(id); });
}

bool copies_would_meet(const Map& map, const ProgramTables& program, function_ref<bool(BufferId)> in_memory) {
  if (changes_memory_alone(map, program, in_memory)) return false;
  const std::set<BufferId> changed = changed_roots(map.body, program);
  if (std::none_of(changed.begin(), changed.end(), [&](BufferId id) { return in_memory(id); })) return false;
  const BodyOrder order(map.body, program);
  std::set<size_t> told;  // stores of the body whose values all threads have
  for (size_t i = 0; i < map.body.size(); ++i)
    walk_exprs({map.body[i]}, [&](const Expr& e) {
      const auto store = e.as<Load>() ? order.store_read_by(i, e) : std::nullopt;
      if (store) told.insert(*store);
    });
  bool meet = false;
  for (size_t i = 0; i < map.body.size(); ++i)
    walk(Body{map.body[i]}, [&](const Stmt& s) {
      const auto* store = s.as<Store>();
      const auto* atomic = s.as<Atomic>();
      const bool by_one = in_memory(store ? store->to.buffer : atomic ? atomic->to.buffer : BufferId{});
      meet = meet || (by_one && atomic && atomic->result.valid());
      // What is asked for on the way to memory, the thread that stores asks for alone.
      if (by_one && !(told.contains(i) && s.same(map.body[i]))) return;
      for_each_expr(s, [&](const Expr& e) {
        walk(e, [&](const Expr& x) {
          const auto* n = x.as<Load>();
          if (!n || !in_memory(n->buffer) || order.store_read_by(i, x)) return;
          meet = meet || std::any_of(changed.begin(), changed.end(),
                                     [&](BufferId id) { return analysis::may_overlap(id, n->buffer, program); });
        });
      });
    });
  return meet;
}

Map with_stored_values(const Map& map, Lowering& l, function_ref<bool(BufferId)> in_memory) {
  const BodyOrder order(map.body, l.program);
  std::map<size_t, Expr> values;  // of the stores that are read
  auto value_of = [&](size_t top, const Expr& e) -> Expr {
    if (!e.as<Load>() || !in_memory(e.as<Load>()->buffer)) return {};
    const auto store = order.store_read_by(top, e);
    if (!store) return {};
    Expr& value = values[*store];
    if (!value) value = var(l.program.new_var("stored", e->type), e->type);
    const Expr check = bounds_check(e.as<Load>()->buffer, e.as<Load>()->indices, l);
    const Buffer& b = l.buffer(e.as<Load>()->buffer);
    return check ? select(check, value, b.fill ? b.fill : constant(e->type, int64_t{0})) : value;
  };
  Body body;
  for (size_t i = 0; i < map.body.size(); ++i) {
    const Body one = rewrite_exprs({map.body[i]}, [&](const Expr& e) -> std::optional<Expr> {
      const Expr value = value_of(i, e);
      return value ? std::optional(value) : std::nullopt;
    });
    body.insert(body.end(), one.begin(), one.end());
  }
  Map out = map;
  out.body.clear();
  for (size_t i = 0; i < body.size(); ++i) {
    const auto found = values.find(i);
    if (found == values.end()) {
      out.body.push_back(body[i]);
      continue;
    }
    const auto* store = body[i].as<Store>();
    out.body.push_back(make_stmt(Let{id_of(found->second), store->value}, body[i]->location));
    out.body.push_back(make_stmt(Store{store->to, found->second}, body[i]->location));
  }
  return out;
}

}  // namespace tilewright::passes
