#include "passes/schedule/team_loader.h"

#include <numeric>

#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/role_code.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kRowsAtOnce = 4;  // whose places are known before the first of them is asked for

Expr number(int64_t value) { return constant(i32, value); }

// The copy of the tile's columns.
Copy by_tma(const TeamLoop& l, const TeamTile& t) {
  Copy c = *t.of.stmt.as<Copy>();
  Expr &begin = c.from.min.back(), &columns = c.from.extent.back();
  begin = add(begin, constant(begin->type, t.column)), columns = l.p.buffer(t.tile).shape.back();
  c.to = whole(t.tile, l.p);
  return c;
}

Copy panel_by_tma(const TeamLoop& l, const TeamRing& r, int64_t panel) {
  Copy c = by_tma(l, r.brought);
  l.narrow(c.from, r.ring, panel), l.narrow(c.to, r.ring, panel);
  return c;
}

// ---- into the L2 cache

// A block's number that no tile of the loop depends on; invalid: there is none of several.
VarId brings_nothing(const TeamLoop& l) {
  const std::set<VarId> used = vars_of_rings(l);
  for (size_t d = 0; d < l.launch.grid.size(); ++d)
    if (!used.contains(l.launch.block[d]) && constant_int(l.launch.grid[d]) != 1) return l.launch.block[d];
  return {};
}

// What the slot gets next comes near while it is in use: from there it takes half the time, which nothing else hides
// behind so few slots. Of blocks that bring the same, each second piece is asked for by every second one. Where a
// block alone brings its tiles, memory is the limit, and asking earlier only takes from it (measured: 0.83 of the
// speed).
Body bring_near(const TeamLoop& l, const TeamRing& r, VarId v) {
  const VarId same = brings_nothing(l);
  if (!same.valid()) return {};
  const Count next{{}, add(var(v, i32), number(r.ring.slots)), 0};
  Body pieces[2];
  for (int64_t panel = 0; panel < r.ring.panels; ++panel) {
    Copy c = panel_by_tma(l, r, panel);
    c.completion = {Queue::Prefetch, {}};
    pieces[panel % 2].push_back(make_stmt(std::move(c), r.brought.of.stmt->location));
  }
  const Expr turn = r.ring.panels > 1 ? number(0) : var(v, i32);
  const Expr mine = binary(BinaryOp::FloorMod, add(var(same, i32), turn), number(2));
  If half{binary(BinaryOp::Eq, mine, number(0)), l.in_turn(pieces[0], next), l.in_turn(pieces[1], next)};
  return {l.stmt(If{binary(BinaryOp::Lt, next.number(), l.extent()), {l.stmt(std::move(half))}, {}})};
}

// ---- rows from anywhere

// Where row `row` of a gathered tile begins: the indices in the tensor, without the last one. Rows that a Map of the
// loop finds out are found out again here.
std::vector<Expr> row_of(const ProgramTables& p, const analysis::IterationParts& parts,
                         const analysis::LoopTile& gathered, const Expr& row) {
  const Map& map = *gathered.stmt.as<Map>();
  const auto* from = map.body[0].as<Store>()->value.as<Load>();
  auto at = [&](const Expr& e, VarId v) { return substitute(e, {{v, cast(row, p.var(v).type)}}); };
  std::vector<Expr> out;
  for (size_t d = 0; d + 1 < from->indices.size(); ++d) {
    out.push_back(rewrite(at(from->indices[d], map.vars[0]), [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Load>();
      for (const analysis::LoopTile& t : parts.tiles) {
        if (!n || t.tile != n->buffer) continue;
        const Map& rows = *t.stmt.as<Map>();
        return at(rows.body[0].as<Store>()->value, rows.vars[0]);
      }
      return std::nullopt;
    }));
  }
  return out;
}

// Places of rows, each known to one lane, in front of the wait for a slot: who waits has asked for them already.
struct Places {
  Body look_up;
  std::vector<std::vector<Expr>> of_lane;  // rows of the lane's number plus 0, 32, ...; the indices of each
};

Places places_of(const TeamLoop& l, const TeamTile& t) {
  Places out;
  const int64_t rows = *constant_int(l.p.buffer(t.tile).shape[0]);
  const Expr lane = binary(BinaryOp::FloorMod, var(l.launch.thread[0], i32), number(kWarpThreads));
  for (int64_t first = 0; first < rows; first += kWarpThreads) {
    std::vector<Expr>& indices = out.of_lane.emplace_back();
    for (const Expr& index : row_of(l.p, l.parts, t.of, add(lane, number(first)))) {
      const VarId place = l.p.new_var("place", index->type);
      out.look_up.push_back(l.stmt(Let{place, index}));
      indices.push_back(var(place, index->type));
    }
  }
  return out;
}

// Index `d` of the place of a row, told by the lane that knows it.
Shuffle told(const TeamLoop& l, const Places& places, size_t d, const Expr& row) {
  Shuffle out;
  out.lane = binary(BinaryOp::FloorMod, row, number(kWarpThreads));
  for (size_t n = places.of_lane.size(); n-- > 0;) {
    const Expr& mine = places.of_lane[n][d];
    const Expr here = binary(BinaryOp::Lt, row, number(static_cast<int64_t>(n + 1) * kWarpThreads));
    out.value = out.value ? select(here, mine, out.value) : mine;
  }
  out.result = l.p.new_var("place", out.value->type);
  return out;
}

// A few rows at a time: first their places, then the copies, none of which the warp waits for before the last.
Body gather(const TeamLoop& l, const TeamTile& t, const Places& places) {
  const Buffer& tile = l.p.buffer(t.tile);
  const auto& from = *t.of.stmt.as<Map>()->body[0].as<Store>()->value.as<Load>();
  const int64_t rows = *constant_int(tile.shape[0]), at_once = std::gcd(rows, kRowsAtOnce);
  const VarId v = l.p.new_var("row", i32);
  Body known, copies;
  for (int64_t i = 0; i < at_once; ++i) {
    const Expr row = add(mul(var(v, i32), number(at_once)), number(i));
    Copy c;
    c.from.buffer = from.buffer, c.completion.queue = Queue::CpAsync;
    for (size_t d = 0; d < places.of_lane[0].size(); ++d) {
      Shuffle place = told(l, places, d, row);
      const DType type = place.value->type;
      c.from.min.push_back(var(place.result, type)), c.from.extent.push_back(constant(type, int64_t{1}));
      known.push_back(l.stmt(std::move(place)));
    }
    c.from.min.push_back(number(t.column)), c.from.extent.push_back(tile.shape[1]);
    c.to = {t.tile, {row, number(0)}, {number(1), tile.shape[1]}};
    copies.push_back(make_stmt(std::move(c), t.of.stmt->location));
  }
  append(known, std::move(copies));
  return {l.serial(v, number(rows / at_once), std::move(known)), l.stmt(Commit{Queue::CpAsync}),
          l.stmt(Drain{Queue::CpAsync, 0, {}})};
}

}  // namespace

std::set<VarId> vars_of_rings(const TeamLoop& l) {
  std::vector<Stmt> all;
  for (const TeamRing& r : l.rings) all.push_back(r.brought.of.stmt);
  return vars_of_places(l.launch, all);
}

Body load_once(const TeamLoop& l) {
  if (l.once.empty()) return {};
  Body copies;
  for (const TeamTile& t : l.once) copies.push_back(make_stmt(by_tma(l, t), t.of.stmt->location));
  return fill(l.once_ring, {number(0), number(0)}, {std::move(copies)}, l.parts.at);
}

Body load_ring(const TeamLoop& l, const TeamRing& r) {
  const VarId v = l.p.new_var(l.p.var(l.loop.var).name, i32);
  const Count count{{}, var(v, i32), 0};
  const TeamTile& t = r.brought;
  Body first;
  std::vector<Body> panels;
  switch (t.of.by) {
    case LoopTile::By::Tma:
      for (int64_t panel = 0; panel < r.ring.panels; ++panel)
        panels.push_back({make_stmt(panel_by_tma(l, r, panel), t.of.stmt->location)});
      break;
    case LoopTile::By::Gather: {
      const Places places = places_of(l, t);
      first = places.look_up;
      panels.push_back(gather(l, t, places));
      break;
    }
    case LoopTile::By::Map: panels.push_back({t.of.stmt}); break;
  }
  append(first, fill(r.ring, count.in(r.ring.slots), std::move(panels), l.parts.at));
  Body body = l.in_turn(first, count);
  if (t.of.by == LoopTile::By::Tma) append(body, bring_near(l, r, v));
  return {l.serial(v, l.extent(), std::move(body))};
}

}  // namespace tilewright::passes
