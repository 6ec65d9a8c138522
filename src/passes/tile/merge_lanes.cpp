#include "passes/tile/merge_lanes.h"

#include "analysis/body_order.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/role_code.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Whether turns of a loop over `lane` may be points, and a fragment follows it.
class Lanes {
 public:
  Lanes(const ProgramTables& p, const Body& in, VarId lane, VarId group) : p_(p), lane_(lane), group_(group) {
    body(in);
    for (const auto& [root, dims] : dims_) {
      apart_ = apart_ && (!written_.contains(root) || !dims.empty());
      for (BufferId other : written_) apart_ = apart_ && (other == root || !analysis::may_overlap(other, root, p_));
    }
  }
  bool are_points() const { return apart_ && of_fragment_; }

 private:
  void body(const Body& list) {
    for (const Stmt& s : list) {
      const auto* store = s.as<Store>();
      apart_ = apart_ && (s.as<Let>() || s.as<If>() || (store && store->queue == Queue::None));
      if (store) access(store->to.buffer, store->to.indices), written_.insert(p_.root(store->to.buffer));
      for_each_expr(s, [&](const Expr& whole) {
        walk(whole, [&](const Expr& e) {
          if (const auto* n = e.as<Load>()) access(n->buffer, n->indices);
        });
      });
      for_each_body(s, [&](const Body& inside) { body(inside); });
    }
  }
  void access(BufferId id, const std::vector<Expr>& indices) {
    const Buffer& b = p_.buffer(id);
    apart_ = apart_ && b.space != Space::Local;
    std::set<size_t> here;
    for (size_t d = 0; d < indices.size(); ++d) {
      const auto* v = indices[d].as<Var>();
      if (v && v->id == lane_) here.insert(d);
      // What followed the map before stays as it was.
      apart_ = apart_ && (b.space != Space::Fragment || !used_vars(indices[d]).contains(group_));
    }
    of_fragment_ = of_fragment_ || (b.space == Space::Fragment && !here.empty());
    const auto [at, is_first] = dims_.try_emplace(p_.root(id), std::move(here));
    if (!is_first) std::erase_if(at->second, [&](size_t d) { return !here.contains(d); });
    const auto [name, is_new] = names_.try_emplace(p_.root(id), id);
    if (!is_new && name->second != id) at->second.clear();
  }

  const ProgramTables& p_;
  const VarId lane_, group_;
  bool apart_ = true, of_fragment_ = false;
  std::map<BufferId, std::set<size_t>> dims_;  // at which every access of a tile has the lane
  std::map<BufferId, BufferId> names_;         // by which it is accessed
  std::set<BufferId> written_;
};

// The map of the loop's turns as points: `group * lanes + v` is the one variable in place of `group`.
std::optional<Stmt> merged(TileProgram& p, const Map& map, const Body& names, const Stmt& s) {
  const auto* loop = s.as<For>();
  const auto lanes = loop ? constant_int(loop->extent) : std::nullopt;
  if (!lanes || *lanes < 2 || constant_int(loop->begin) != 0 || loop->kind == LoopKind::Pipelined) return std::nullopt;
  for (size_t d = map.vars.size(); d-- > 0;) {
    const auto groups = constant_int(map.extents[d]);
    if (!groups || *groups < 1) continue;
    const DType type = p.var(map.vars[d]).type;
    if (p.var(loop->var).type != type) continue;
    const VarId lane = p.new_var(p.var(map.vars[d]).name, type);
    const Expr group = var(map.vars[d], type);
    const Expr turn = sub(var(lane, type), mul(group, constant(type, *lanes)));
    Body body = names;
    append(body, substitute(loop->body, {{loop->var, turn}}));
    if (!Lanes(p, body, lane, map.vars[d]).are_points()) continue;
    Map out = map;
    out.vars[d] = lane, out.extents[d] = constant(type, *groups * *lanes);
    out.body = substitute(body, {{map.vars[d], binary(BinaryOp::FloorDiv, var(lane, type), constant(type, *lanes))}});
    return make_stmt(std::move(out), s->location);
  }
  return std::nullopt;
}

std::optional<Body> without_lanes(TileProgram& p, const Stmt& s) {
  const auto* map = s.as<Map>();
  if (!map || map->body.empty()) return std::nullopt;
  Body out, names;
  for (const Stmt& inner : map->body) {  // what loops hand on to each other is in tiles
    if (inner.as<Let>() && out.empty()) {
      names.push_back(inner);
      continue;
    }
    auto made = merged(p, *map, names, inner);
    if (!made) return std::nullopt;
    append(out, out.empty() ? Body{std::move(*made)} : renamed(p, {std::move(*made)}));
  }
  return out.empty() ? std::nullopt : std::optional(std::move(out));
}

}  // namespace

TileProgram merge_lanes(TileProgram program) {
  for (Launch& launch : program.launches)
    launch.body = rewrite(launch.body, [&](const Stmt& s) { return without_lanes(program, s); });
  return program;
}

}  // namespace tilewright::passes
