#include "passes/threads/widen_maps.h"

#include "analysis/accessed.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Along a variable of a map: where in all fragments that follow it the map begins, and how long they are.
struct Side {
  int64_t first = 0, extent = 0;
  bool operator==(const Side&) const = default;
};

// The side of each variable that is followed by fragments; none: they do not agree, or follow no variables.
std::optional<std::map<size_t, Side>> sides_of(const Map& map, const ProgramTables& p) {
  std::map<size_t, Side> out;
  bool agree = true;
  const auto access = [&](BufferId id, const std::vector<Expr>& indices) {
    const Buffer& b = p.buffer(id);
    if (b.space != Space::Fragment) return;
    const auto box = analysis::followed(indices, map.vars);
    if (!box) return void(agree = false);
    const std::vector<int64_t> shape = analysis::constants(b.shape);
    for (size_t d = 0; d < box->dims.size(); ++d) {
      if (box->dims[d] < 0) continue;
      const Side side{box->first[d], shape[d]};
      agree = agree && out.try_emplace(static_cast<size_t>(box->dims[d]), side).first->second == side;
    }
  };
  walk(map.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Store>()) access(n->to.buffer, n->to.indices);
    if (const auto* n = s.as<Atomic>()) access(n->to.buffer, n->to.indices);
  });
  walk_exprs(map.body, [&](const Expr& e) {
    if (const auto* n = e.as<Load>()) access(n->buffer, n->indices);
  });
  return agree ? std::optional(out) : std::nullopt;
}

std::optional<Body> widened(TileProgram& p, const Stmt& s) {
  const Map& map = *s.as<Map>();
  const auto sides = sides_of(map, p);
  if (!sides) return std::nullopt;
  Map out = map;
  Expr inside;
  const auto require = [&](const Expr& e) { inside = inside ? logical_and(inside, e) : e; };
  for (const auto& [d, side] : *sides) {
    const auto points = constant_int(map.extents[d]);
    if (!points || side.first < 0 || side.first + *points > side.extent) return std::nullopt;
    if (*points == side.extent) continue;
    const DType type = map.extents[d]->type;
    if (side.extent > constant_int(max_value(type)).value_or(INT64_MAX)) return std::nullopt;
    out.vars[d] = p.new_var(p.var(map.vars[d]).name, type);
    out.extents[d] = constant(type, side.extent);
    const Expr at = var(out.vars[d], type);
    if (side.first > 0) require(binary(BinaryOp::Le, constant(type, side.first), at));
    if (side.first + *points < side.extent) require(binary(BinaryOp::Lt, at, constant(type, side.first + *points)));
    out.body = substitute(out.body, {{map.vars[d], sub(at, constant(type, side.first))}});
  }
  if (!inside) return std::nullopt;
  out.body = {make_stmt(If{inside, std::move(out.body), {}}, s->location)};
  return Body{make_stmt(std::move(out), s->location)};
}

bool stores_from(const Map& map, size_t buffers) {
  bool found = false;
  walk(map.body, [&](const Stmt& s) {
    const auto* n = s.as<Store>();
    found = found || (n && n->to.buffer.index >= buffers);
  });
  return found;
}

Placement placed(TileProgram& p, size_t number, const target::GpuTarget& target) {
  Launch& launch = p.launches[number];
  number_statements(launch);
  return place_fragments(p, launch, analysis::Uniformity(p, launch), target);
}

}  // namespace

Placement widen_maps(TileProgram& p, size_t number, const target::GpuTarget& target, size_t buffers) {
  Placement best = placed(p, number, target);
  Launch& launch = p.launches[number];
  Body as_best = launch.body;
  // A fragment that one map leaves in registers may be another's, over part of it.
  for (std::set<StmtId> cut = best.cut; !cut.empty();) {
    bool any = false;
    launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
      if (!s.as<Map>() || !cut.contains(s->id) || stores_from(*s.as<Map>(), buffers)) return std::nullopt;
      auto out = widened(p, s);
      any = any || out;
      return out;
    });
    if (!any) break;
    Placement now = placed(p, number, target);
    cut = now.cut;
    if (now.in_memory.size() < best.in_memory.size()) best = std::move(now), as_best = launch.body;
  }
  launch.body = as_best;
  return best;
}

}  // namespace tilewright::passes
