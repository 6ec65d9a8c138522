#include "passes/tile/order_points.h"

#include "analysis/accessed.h"
#include "ir/rewrite.h"
#include "passes/schedule/settle_plan.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The map's dimensions in the order in which its fragments have them; none: they have no other, or not one alone.
std::optional<std::vector<size_t>> order_of(const Map& map, const ProgramTables& p) {
  std::vector<std::vector<int>> rows;  // of each access: the dimensions that it follows
  bool fits = true;
  const auto access = [&](BufferId id, const std::vector<Expr>& indices) {
    if (p.buffer(id).space != Space::Fragment) return;
    const auto box = analysis::followed(indices, map.vars);
    if (!box) return void(fits = false);
    std::vector<int> kept;
    for (int d : box->dims)
      if (d >= 0) kept.push_back(d);
    rows.push_back(std::move(kept));
  };
  walk(map.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Store>()) access(n->to.buffer, n->to.indices);
    fits = fits && !s.as<Atomic>();
  });
  walk_exprs(map.body, [&](const Expr& e) {
    if (const auto* n = e.as<Load>()) access(n->buffer, n->indices);
  });
  const auto sorted = [](const std::vector<int>& r) { return std::is_sorted(r.begin(), r.end()); };
  const auto other = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return !sorted(r); });
  if (!fits || other == rows.end()) return std::nullopt;
  // What this access follows stands in its order, at the places that these dimensions have.
  std::vector<int> places = *other;
  std::sort(places.begin(), places.end());
  std::vector<size_t> order(map.vars.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  for (size_t i = 0; i < places.size(); ++i) order[static_cast<size_t>(places[i])] = static_cast<size_t>((*other)[i]);
  std::vector<int> place_of(order.size());
  for (size_t d = 0; d < order.size(); ++d) place_of[order[d]] = static_cast<int>(d);
  for (const std::vector<int>& r : rows) {
    std::vector<int> now;
    for (int d : r) now.push_back(place_of[static_cast<size_t>(d)]);
    if (!sorted(now)) return std::nullopt;
  }
  return order;
}

Body ordered(const Body& body, const ProgramTables& p) {
  return rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
    const auto* map = s.as<Map>();
    const auto order = map ? order_of(*map, p) : std::nullopt;
    if (!order) return std::nullopt;
    Map out = *map;
    for (size_t d = 0; d < order->size(); ++d)
      out.vars[d] = map->vars[(*order)[d]], out.extents[d] = map->extents[(*order)[d]];
    return Body{make_stmt(std::move(out), s->location)};
  });
}

constexpr int64_t kSectorBytes = 32;

// Neighbours along a dimension that a warp has: a thread's vector, and the lanes beside it.
int64_t run_of(const std::vector<Factor>& factors) {
  int64_t run = factors.empty() ? 0 : 1;
  for (size_t i = factors.size(); i-- > 0;) {
    const bool vector = factors[i].home == Home::Register && i + 1 == factors.size();
    if (!vector && factors[i].home != Home::Lane) break;
    run *= factors[i].extent;
  }
  return run;
}

// Whether a warp moves whole sectors of what memory holds side by side: a transpose of a tile that registers have row
// by row goes through shared memory for that.
bool moves_sectors(const Map& map, const FragmentLayout& points, const ProgramTables& p) {
  bool whole = true;
  const auto access = [&](BufferId id, const std::vector<Expr>& indices) {
    const Buffer& b = p.buffer(id);
    if (b.space == Space::Fragment || b.space == Space::Local || indices.empty()) return;
    for (size_t d = 0; d < map.vars.size(); ++d) {
      if (!used_vars(indices.back()).contains(map.vars[d])) continue;
      whole = whole && run_of(points.dims()[d]) * b.type.storage_bits() / 8 >= kSectorBytes;
    }
  };
  walk(map.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Store>()) access(n->to.buffer, n->to.indices);
  });
  walk_exprs(map.body, [&](const Expr& e) {
    if (const auto* n = e.as<Load>()) access(n->buffer, n->indices);
  });
  return whole;
}

}  // namespace

void order_points(TileProgram& program, const target::GpuTarget& target) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    std::set<VarId> other;  // of the maps in question
    walk(program.launches[i].body, [&](const Stmt& s) {
      const auto* map = s.as<Map>();
      if (map && order_of(*map, program)) other.insert(map->vars.begin(), map->vars.end());
    });
    if (other.empty()) continue;
    TileProgram scratch = program;
    const Placement before = foreseen_placement(scratch, i, target);
    TileProgram with = program;
    with.launches[i].body = ordered(program.launches[i].body, program);
    scratch = with;
    const Placement after = foreseen_placement(scratch, i, target);
    const bool others = std::any_of(after.in_memory.begin(), after.in_memory.end(),
                                    [&](const auto& x) { return !before.in_memory.contains(x.first); });
    bool whole = true;
    walk(scratch.launches[i].body, [&](const Stmt& s) {
      const auto* map = s.as<Map>();
      const FragmentLayout* points = map && other.contains(map->vars[0]) ? after.points_of(s) : nullptr;
      whole = whole && (!points || moves_sectors(*map, *points, scratch));
    });
    if (whole && !others && after.in_memory.size() < before.in_memory.size()) program = std::move(with);
  }
}

}  // namespace tilewright::passes
