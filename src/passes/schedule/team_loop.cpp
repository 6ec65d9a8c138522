#include "passes/schedule/team_loop.h"

#include "analysis/panels.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/role_code.h"
#include "plan/words.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::panel_span;

namespace {

int64_t columns_of(const ProgramTables& p, BufferId tile) { return *constant_int(p.buffer(tile).shape.back()); }

// A half of the tile's columns.
TeamTile half_of(TeamLoop& l, const LoopTile& t, int half) {
  const int64_t columns = columns_of(l.p, t.tile) / 2;
  Buffer b = l.p.buffer(t.tile);
  b.name += plan::word(plan::kHalfWords, half + 1), b.shape.back() = constant(columns);
  const BufferId id = l.p.new_buffer(std::move(b));
  l.halves[t.tile].push_back(id);
  return {t, id, half * columns, t.in_loop && t.tile == l.parts.values ? half : -1};
}

TeamRing ring_of_tile(const TeamLoop& l, TeamTile t, int64_t slots) {
  const Buffer tile = l.p.buffer(t.tile);
  const bool tma = t.of.by == LoopTile::By::Tma;
  const bool in_scores = used_buffers(l.parts.scores).contains(t.of.tile);
  SlotRing ring{.tiles = {t.tile}, .slots = slots, .bytes = bytes_on_chip(tile)};
  ring.filled = tma ? SlotRing::Filled::TmaBytes : SlotRing::Filled::Arrive;
  if (t.half >= 0 && in_scores && tma)
    ring.panels = std::max<int64_t>(columns_of(l.p, t.tile) * tile.type.bits / 8 / panel_span(l.p, t.tile), 1);
  return {std::move(t), open_ring(l.p, l.launch, tile.name, std::move(ring), kTeamWarps), in_scores};
}

}  // namespace

Expr Count::number() const {
  Expr n = constant(i32, more);
  if (pair) n = add(mul(constant(i32, int64_t{2}), pair), n);
  return base ? add(base, n) : n;
}

// Where the slots are pairs too, which of two it is is no question of the pair.
Turn Count::in(int64_t slots) const {
  if (!pair || slots % 2 != 0) return turn_of(slots, number());
  const Expr two = constant(i32, int64_t{2});
  Turn t = turn_of(slots / 2, add(pair, constant(i32, more / 2)));
  t.slot = add(mul(two, t.slot), constant(i32, more % 2));
  return t;
}

Stmt TeamLoop::serial(VarId v, Expr turns, Body body) const {
  For out;
  out.var = v, out.begin = constant(i32, int64_t{0}), out.extent = std::move(turns), out.body = std::move(body);
  return stmt(std::move(out));
}

Expr TeamLoop::extent() const { return cast(loop.extent, i32); }

const TeamRing* TeamLoop::ring(BufferId tile) const {
  const auto found =
      std::find_if(rings.begin(), rings.end(), [&](const TeamRing& r) { return r.brought.tile == tile; });
  return found == rings.end() ? nullptr : &*found;
}

Body TeamLoop::in_turn(const Body& body, const Count& count) const {
  const DType type = p.var(loop.var).type;
  std::map<BufferId, IntoSlots::Slot> slots;
  for (const TeamRing& r : rings) use_slot(r.ring, count.in(r.ring.slots).slot, p, slots);
  const Body at =
      substitute(behind_names(parts.names, body), {{loop.var, add(loop.begin, cast(count.number(), type))}});
  return renamed(p, IntoSlots(std::move(slots)).body(at));
}

void TeamLoop::narrow(Region& r, const SlotRing& ring, int64_t panel) const {
  const int64_t columns = columns_of(p, ring.tiles[0]) / ring.panels;
  Expr& begin = r.min.back();
  begin = add(begin, constant(begin->type, panel * columns)), r.extent.back() = constant(i32, columns);
}

TeamLoop open_team_loop(TileProgram& p, const Launch& launch, const IterationParts& parts, const plan::Plan& plan) {
  TeamLoop l{p, launch, parts, *parts.loop, {}, {}, {}, {}};
  for (const LoopTile& t : parts.tiles) {
    const bool halved = parts.halved.contains(t.tile);
    for (int half = 0; half < (halved ? 2 : 1); ++half) {
      TeamTile piece = halved ? half_of(l, t, half) : TeamTile{t, t.tile};
      if (t.in_loop)
        l.rings.push_back(ring_of_tile(l, std::move(piece), plan.rings.at(l.rings.size()).slots));
      else
        l.once.push_back(std::move(piece));
    }
  }
  check_internal(l.rings.size() == plan.rings.size(), "a plan of {} rings for a launch of {}", plan.rings.size(),
                 l.rings.size());
  if (l.once.empty()) return l;
  l.once_ring.released = SlotRing::Released::Never;
  for (const TeamTile& t : l.once)
    l.once_ring.tiles.push_back(t.tile), l.once_ring.bytes += bytes_on_chip(p.buffer(t.tile));
  l.once_ring = open_ring(p, launch, "once", std::move(l.once_ring), 0);
  return l;
}

Body behind_names(const Body& names, Body code) {
  std::set<VarId> used = used_vars(code);
  for (auto s = names.rbegin(); s != names.rend(); ++s) {
    const Let& let = *s->as<Let>();
    if (!used.contains(let.var)) continue;
    for (VarId v : used_vars(let.value)) used.insert(v);
    code.insert(code.begin(), *s);
  }
  return code;
}

}  // namespace tilewright::passes
