#include "passes/schedule/role_code.h"

#include "ir/match.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/intervals.h"

namespace tilewright::passes {

using namespace ir;

Body renamed(ProgramTables& p, Body body, std::unordered_map<VarId, VarId>* names) {
  std::unordered_map<VarId, VarId> fresh;
  Substitution uses;
  for (VarId v : bound_vars(body)) {
    fresh[v] = p.new_var(p.var(v).name, p.var(v).type);
    uses[v] = var(fresh[v], p.var(v).type);
  }
  auto rename = [&](VarId& v) {
    if (auto found = fresh.find(v); found != fresh.end()) v = found->second;
  };
  if (names) *names = fresh;
  body = substitute(body, uses);
  return rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
    return match(s->op, [&](auto op) -> std::optional<Body> {
      using T = decltype(op);
      T::fields(op, [&](const char*, auto& field) {
        using F = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<F, VarId>) rename(field);
        if constexpr (std::is_same_v<F, std::vector<VarId>>)
          for (VarId& v : field) rename(v);
      });
      return Body{make_stmt(std::move(op), s->location)};
    });
  });
}

Expr add_cluster_dimension(ProgramTables& p, Launch& launch, int64_t blocks) {
  const VarId part = p.new_var("part", i32);
  launch.cluster.assign(launch.grid.size(), 1);
  launch.cluster.push_back(blocks);
  launch.grid.push_back(constant(i32, blocks)), launch.block.push_back(part);
  return var(part, i32);
}

Map map_over(ProgramTables& p, const std::vector<Expr>& shape) {
  Map m;
  m.extents = shape;
  for (size_t d = 0; d < shape.size(); ++d) m.vars.push_back(p.new_var(fmt::format("i{}", d), i32));
  return m;
}

std::vector<Expr> point_of(const Map& map) {
  std::vector<Expr> out;
  for (VarId v : map.vars) out.push_back(var(v, i32));
  return out;
}

BufferId new_barriers(ProgramTables& p, const Launch& launch, BarrierUse use, std::string name, int64_t count,
                      int64_t arrivals) {
  Buffer b;
  b.use = use;
  b.name = std::move(name), b.type = u64, b.space = Space::Barrier, b.shape = {constant(i32, count)};
  b.arrive_counts.assign(static_cast<size_t>(count), arrivals);
  b.launch = static_cast<int32_t>(&launch - p.launches.data()), b.location = launch.location;
  return p.new_buffer(std::move(b));
}

Stmt arrive_by_warps(Element barrier, LocationId at, Expr block) {
  return make_stmt(Arrive{std::move(barrier), std::move(block), Queue::None, ArriveBy::Warp}, at);
}

std::set<VarId> vars_of_places(const Launch& launch, const std::vector<Stmt>& copies) {
  Intervals blocks;
  for (size_t d = 0; d < launch.grid.size(); ++d)
    if (const auto extent = constant_int(launch.grid[d])) blocks.set(launch.block[d], {0, *extent - 1});
  std::map<VarId, Expr> names;
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* let = s.as<Let>()) names[let->var] = let->value;
  });
  std::set<VarId> out;
  std::vector<Expr> next;
  for (const Stmt& s : copies) {
    if (const auto* copy = s.as<Copy>())
      next.insert(next.end(), copy->from.min.begin(), copy->from.min.end());
    else
      walk_exprs({s}, [&](const Expr& e) { next.push_back(e); });
  }
  while (!next.empty()) {
    const Expr e = next.back();
    next.pop_back();
    const Interval range = e->type.is_int() ? blocks.of(widen(e)) : Interval{0, 1};
    if (range.low == range.high) continue;
    for (VarId v : used_vars(e))
      if (out.insert(v).second && names.contains(v)) next.push_back(names.at(v));
  }
  return out;
}

}  // namespace tilewright::passes
