#include "passes/threads/iteration_teams.h"

#include <numeric>

#include "analysis/panels.h"
#include "analysis/stored_once.h"
#include "analysis/tma.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/threads/collectives.h"
#include "passes/threads/narrow_columns.h"
#include "passes/threads/role_code.h"
#include "passes/threads/shared_layout.h"
#include "passes/threads/slots.h"

namespace tilewright::passes {

using namespace ir;
using analysis::panel_span;
using analysis::tma_misfit;
using plan::IterationParts;
using plan::LoopTile;

namespace {

constexpr int64_t kTeam = target::kWarpgroupThreads, kWarps = kTeam / kWarpThreads;
constexpr int64_t kRowsAtOnce = 4;  // whose places are known before the first of them is asked for

// What one warp of the loader brings in each iteration, and who reads it last.
struct Ring {
  LoopTile of;
  BufferId tile, slots_of;  // a half of the tile, or the tile
  BufferId full, empty;
  int64_t slots = 2, bytes = 0;
  int64_t panels = 1;     // pieces of its columns that come one by one, each with an mbarrier of its own
  int64_t column = 0;     // of the tensor that is the tile's first, from where it would be
  int half = -1;          // of the values: team 0's or 1's; else read by the owner of the iteration only
  bool in_scores = true;  // so a team that has the scores need not wait for it
};

// An iteration: `pair` times two and `more`, or `more` and a number that is not known.
struct Count {
  Expr pair, base;
  int64_t more = 0;
  Expr number() const {
    Expr n = constant(i32, more);
    if (pair) n = add(mul(constant(i32, int64_t{2}), pair), n);
    return base ? add(base, n) : n;
  }
  Count before() const { return {pair, base, more - 1}; }
  // Where the slots are pairs too, which of two it is is no question of the pair.
  Turn in(int64_t slots) const {
    if (!pair || slots % 2 != 0) return turn_of(slots, number());
    const Expr two = constant(i32, int64_t{2});
    Turn t = turn_of(slots / 2, add(pair, constant(i32, more / 2)));
    t.slot = add(mul(two, t.slot), constant(i32, more % 2));
    return t;
  }
};

class Writer {
 public:
  Writer(TileProgram& p, Launch& launch, IterationParts parts, const plan::Plan& plan)
      : p_(p),
        launch_(launch),
        parts_(std::move(parts)),
        loop_(*parts_.loop),
        plan_(plan),
        stored_once_(analysis::stored_once(p, launch)) {
    for (const LoopTile& t : parts_.tiles) bring(t);
    check_internal(rings_.size() == plan_.rings.size(), "a plan of {} rings for a launch of {}", plan_.rings.size(),
                   rings_.size());
    make_shared();
  }

  std::vector<BufferId> run() {
    Body body;
    body.push_back(stmt(Role{2 * kTeam, 3 * kTeam, {stmt(SetRegisters{plan_.registers_of(plan::Role::Job::Load)})}}));
    const size_t last = rings_.size() < static_cast<size_t>(kWarps) ? static_cast<size_t>(kWarps) - 1 : 0;
    for (size_t warp = 0; warp < static_cast<size_t>(kWarps); ++warp) {
      Body work = warp == last ? bring_once() : Body{};
      if (warp < rings_.size()) append(work, bring_all(rings_[warp]));
      const int64_t begin = 2 * kTeam + static_cast<int64_t>(warp) * kWarpThreads;
      if (work.empty()) continue;
      body.push_back(stmt(Role{begin, begin + kWarpThreads, with_names(std::move(work))}));
    }
    for (int team : {0, 1}) body.push_back(stmt(Role{team * kTeam, (team + 1) * kTeam, of_team(team)}));
    share_what_is_brought();
    launch_.body = std::move(body);
    launch_.threads[0] = 3 * kTeam;
    return std::move(staged_);
  }

 private:
  template <class T>
  Stmt stmt(T op) const {
    return make_stmt(std::move(op), parts_.at);
  }
  template <class T>
  static Stmt stmt(T op, const Stmt& in_place_of) {
    return make_stmt(std::move(op), in_place_of->location);
  }
  static void append(Body& out, Body more) { out.insert(out.end(), more.begin(), more.end()); }
  static Expr number(int64_t value) { return constant(i32, value); }
  Stmt serial(VarId v, Expr turns, Body body) const {
    For loop;
    loop.var = v, loop.begin = number(0), loop.extent = std::move(turns), loop.body = std::move(body);
    return stmt(std::move(loop));
  }

  // ---- tiles and what teams share
  void bring(const LoopTile& t) {
    const bool halved = parts_.halved.contains(t.tile);
    for (int half = 0; half < (halved ? 2 : 1); ++half) {
      Ring r;
      r.of = t, r.tile = t.tile;
      if (halved) {
        Buffer b = p_.buffer(t.tile);
        const int64_t columns = *constant_int(b.shape.back()) / 2;
        b.name += half == 0 ? "_left" : "_right", b.shape.back() = number(columns);
        r.tile = p_.new_buffer(std::move(b)), halves_[t.tile].push_back(r.tile);
        r.column = half * columns;
      }
      r.bytes = bytes_on_chip(p_.buffer(r.tile));
      if (!t.in_loop) {
        once_.push_back(std::move(r));
        continue;
      }
      if (t.tile == parts_.values) r.half = half;
      r.in_scores = used_buffers(parts_.scores).contains(t.tile);
      const std::string name = p_.buffer(r.tile).name;
      r.slots = plan_.rings[rings_.size()].slots;
      r.slots_of = ring_of(p_, r.tile, r.slots);
      if (r.half >= 0 && r.in_scores && t.by == LoopTile::By::Tma)
        r.panels = std::max<int64_t>(columns_of(r.tile) * p_.buffer(r.tile).type.bits / 8 / panel_span(p_, r.tile), 1);
      r.full = new_barriers(p_, launch_, BarrierUse::Full, name + "_full", r.slots * r.panels, 1);
      r.empty = new_barriers(p_, launch_, BarrierUse::Empty, name + "_empty", r.slots, kWarps);
      rings_.push_back(std::move(r));
    }
  }
  int64_t columns_of(BufferId tile) const { return *constant_int(p_.buffer(tile).shape.back()); }
  Element full(const Ring& r, const Expr& slot, int64_t panel) const {
    return {r.full, {r.panels == 1 ? slot : add(mul(slot, number(r.panels)), number(panel))}};
  }
  // The columns of a panel.
  void narrow(Region& r, const Ring& ring, int64_t panel) const {
    const int64_t columns = columns_of(ring.tile) / ring.panels;
    Expr& begin = r.min.back();
    begin = add(begin, constant(begin->type, panel * columns)), r.extent.back() = number(columns);
  }
  void make_shared() {
    if (!once_.empty()) once_full_ = new_barriers(p_, launch_, BarrierUse::Full, "once_full", 1, 1);
    ready_ = new_barriers(p_, launch_, BarrierUse::Ready, "ready", 2, kWarps);
    auto shared = [&](BufferId like, bool of_both) {
      Buffer b = p_.buffer(like);
      b.name += "_handed", b.space = Space::Shared, b.layout = {};
      if (of_both) b.shape.insert(b.shape.begin(), number(2));
      return p_.new_buffer(std::move(b));
    };
    exchange_ = shared(parts_.left, false);
    if (!parts_.handed_later.empty()) later_ = new_barriers(p_, launch_, BarrierUse::Ready, "ready_later", 2, kWarps);
    for (const std::set<BufferId>* ids : {&parts_.handed, &parts_.handed_later})
      for (BufferId id : *ids) handed_[id] = shared(id, true);
    for (int team : {0, 1}) {
      for (BufferId id : used_buffers(launch_.body)) {
        if (p_.buffer(id).space != Space::Fragment && id != parts_.left) continue;
        Buffer b = p_.buffer(id);
        b.space = Space::Fragment;
        if (id == parts_.result) b.shape[1] = number(parts_.half);
        own_[team][id] = p_.new_buffer(std::move(b));
      }
    }
  }
  std::set<VarId> vars_of_rings() const {
    std::vector<Stmt> all;
    for (const Ring& r : rings_) all.push_back(r.of.stmt);
    return vars_of_places(launch_, all);
  }
  // Blocks that bring the same tiles run side by side, so that the second finds them in the L2 cache.
  void share_what_is_brought() {
    if (launch_.swizzle.panel > 0) return;
    const std::set<VarId> used = vars_of_rings();
    std::vector<Expr> grid;
    std::vector<VarId> block;
    for (const bool brings : {false, true})
      for (size_t d = 0; d < launch_.grid.size(); ++d)
        if (used.contains(launch_.block[d]) == brings)
          grid.push_back(launch_.grid[d]), block.push_back(launch_.block[d]);
    launch_.grid = std::move(grid), launch_.block = std::move(block);
  }

  // ---- the loader's warps
  Body with_names(Body work) {
    Body names;
    for (const Stmt& s : parts_.prologue)
      if (s.as<Let>()) names.push_back(s);
    return renamed(p_, named(names, std::move(work)));
  }
  // The code behind those of the names that it uses.
  static Body named(const Body& names, Body code) {
    std::set<VarId> used = used_vars(code);
    for (auto s = names.rbegin(); s != names.rend(); ++s) {
      const Let& let = *s->as<Let>();
      if (!used.contains(let.var)) continue;
      for (VarId v : used_vars(let.value)) used.insert(v);
      code.insert(code.begin(), *s);
    }
    return code;
  }
  // The copy of the tile's columns.
  Stmt by_tma(const Ring& r, const Element& full) const {
    Copy c = *r.of.stmt.as<Copy>();
    Expr &begin = c.from.min.back(), &columns = c.from.extent.back();
    begin = add(begin, constant(begin->type, r.column)), columns = p_.buffer(r.tile).shape.back();
    c.to = whole(r.tile, p_), c.completion.barrier = full;
    return stmt(std::move(c), r.of.stmt);
  }
  Body bring_once() const {
    Body out;
    int64_t bytes = 0;
    for (const Ring& r : once_) bytes += r.bytes;
    const Element full{once_full_, {number(0)}};
    if (bytes > 0) out.push_back(stmt(Expect{full, number(bytes), true}));
    for (const Ring& r : once_) out.push_back(by_tma(r, full));
    return out;
  }
  Body bring_all(const Ring& r) {
    const VarId v = p_.new_var(p_.var(loop_.var).name, i32);
    const Count count{{}, var(v, i32), 0};
    const Turn t = count.in(r.slots);
    Body body{stmt(Wait{{r.empty, {t.slot}}, binary(BinaryOp::BitXor, t.parity, number(1))})};
    const Element whole{r.full, {t.slot}};
    switch (r.of.by) {
      case LoopTile::By::Tma:
        for (int64_t panel = 0; panel < r.panels; ++panel) {
          body.push_back(stmt(Expect{full(r, t.slot, panel), number(r.bytes / r.panels), true}));
          Copy c = *by_tma(r, full(r, t.slot, panel)).as<Copy>();
          narrow(c.from, r, panel), narrow(c.to, r, panel);
          body.push_back(stmt(std::move(c), r.of.stmt));
        }
        break;
      case LoopTile::By::Gather: {
        const Places places = places_of(r);
        body.insert(body.begin(), places.look_up.begin(), places.look_up.end());
        append(body, gather(r, places));
        body.push_back(arrive_by_warps(whole, parts_.at));
        break;
      }
      case LoopTile::By::Map:
        body.push_back(r.of.stmt);
        body.push_back(arrive_by_warps(whole, parts_.at));
        break;
    }
    body = in_turn(body, count);
    if (r.of.by == LoopTile::By::Tma) append(body, bring_near(r, v));
    return {serial(v, extent(), std::move(body))};
  }
  // What the slot gets next comes near while it is in use: from there it takes half the time, which nothing else hides
  // behind so few slots. Of blocks that bring the same, each second piece is asked for by every second one. Where a
  // block alone brings its tiles, memory is the limit, and asking earlier only takes from it (measured: 0.83 of the
  // speed).
  Body bring_near(const Ring& r, VarId v) {
    const VarId same = brings_nothing();
    if (!same.valid()) return {};
    const Count next{{}, add(var(v, i32), number(r.slots)), 0};
    Body pieces[2];
    for (int64_t panel = 0; panel < r.panels; ++panel) {
      Copy c = *by_tma(r, {}).as<Copy>();
      narrow(c.from, r, panel), narrow(c.to, r, panel);
      c.completion = {Queue::Prefetch, {}};
      pieces[panel % 2].push_back(stmt(std::move(c), r.of.stmt));
    }
    const Expr turn = r.panels > 1 ? number(0) : var(v, i32);
    const Expr mine = binary(BinaryOp::FloorMod, add(var(same, i32), turn), number(2));
    If half{binary(BinaryOp::Eq, mine, number(0)), in_turn(pieces[0], next), in_turn(pieces[1], next)};
    return {stmt(If{binary(BinaryOp::Lt, next.number(), extent()), {stmt(std::move(half))}, {}})};
  }
  // A block's number that no tile of the loop depends on; invalid: there is none of several.
  VarId brings_nothing() const {
    const std::set<VarId> used = vars_of_rings();
    for (size_t d = 0; d < launch_.grid.size(); ++d)
      if (!used.contains(launch_.block[d]) && constant_int(launch_.grid[d]) != 1) return launch_.block[d];
    return {};
  }
  // Places of rows, each known to one lane, in front of the wait for a slot: who waits has asked for them already.
  struct Places {
    Body look_up;
    std::vector<std::vector<Expr>> of_lane;  // rows of the lane's number plus 0, 32, ...; the indices of each
  };
  Places places_of(const Ring& r) {
    Places out;
    const int64_t rows = *constant_int(p_.buffer(r.tile).shape[0]);
    const Expr lane = binary(BinaryOp::FloorMod, var(launch_.thread[0], i32), number(kWarpThreads));
    for (int64_t first = 0; first < rows; first += kWarpThreads) {
      std::vector<Expr>& indices = out.of_lane.emplace_back();
      for (const Expr& index : plan::row_of(p_, parts_, r.of, add(lane, number(first)))) {
        const VarId place = p_.new_var("place", index->type);
        out.look_up.push_back(stmt(Let{place, index}));
        indices.push_back(var(place, index->type));
      }
    }
    return out;
  }
  // A few rows at a time: first their places, then the copies, none of which the warp waits for before the last.
  Body gather(const Ring& r, const Places& places) {
    const Buffer& tile = p_.buffer(r.tile);
    const auto& from = *r.of.stmt.as<Map>()->body[0].as<Store>()->value.as<Load>();
    const int64_t rows = *constant_int(tile.shape[0]), at_once = std::gcd(rows, kRowsAtOnce);
    const VarId v = p_.new_var("row", i32);
    Body known, copies;
    for (int64_t i = 0; i < at_once; ++i) {
      const Expr row = add(mul(var(v, i32), number(at_once)), number(i));
      Copy c;
      c.from.buffer = from.buffer, c.completion.queue = Queue::CpAsync;
      for (size_t d = 0; d < places.of_lane[0].size(); ++d) {
        Shuffle told;
        told.lane = binary(BinaryOp::FloorMod, row, number(kWarpThreads));
        for (size_t n = places.of_lane.size(); n-- > 0;) {
          const Expr& mine = places.of_lane[n][d];
          const Expr here = binary(BinaryOp::Lt, row, number(static_cast<int64_t>(n + 1) * kWarpThreads));
          told.value = told.value ? select(here, mine, told.value) : mine;
        }
        const DType type = told.value->type;
        told.result = p_.new_var("place", type);
        c.from.min.push_back(var(told.result, type)), c.from.extent.push_back(constant(type, int64_t{1}));
        known.push_back(stmt(std::move(told)));
      }
      c.from.min.push_back(number(r.column)), c.from.extent.push_back(tile.shape[1]);
      c.to = {r.tile, {row, number(0)}, {number(1), tile.shape[1]}};
      copies.push_back(stmt(std::move(c), r.of.stmt));
    }
    append(known, std::move(copies));
    return {serial(v, number(rows / at_once), std::move(known)), stmt(Commit{Queue::CpAsync}),
            stmt(Drain{Queue::CpAsync, 0, {}})};
  }

  // ---- iterations
  Expr extent() const { return cast(loop_.extent, i32); }
  // Code of the loop's body as iteration `count` runs it.
  Body in_turn(const Body& body, const Count& count) {
    const DType type = p_.var(loop_.var).type;
    std::map<BufferId, IntoSlots::Slot> slots;
    for (const Ring& r : rings_) slots[r.tile] = {r.slots_of, count.in(r.slots).slot};
    const Body at = substitute(named(parts_.names, body), {{loop_.var, add(loop_.begin, cast(count.number(), type))}});
    return renamed(p_, IntoSlots(std::move(slots)).body(at));
  }
  void wait_full(const Ring& r, const Count& count, Body& out, int64_t panel = 0) const {
    const Turn t = count.in(r.slots);
    out.push_back(stmt(Wait{full(r, t.slot, panel), t.parity}));
  }
  void give_back(const Ring& r, const Count& count, Body& out) const {
    out.push_back(arrive_by_warps({r.empty, {count.in(r.slots).slot}}, parts_.at));
  }
  void give_back_half(int team, const Count& count, Body& out) const {
    for (const Ring& r : rings_)
      if (r.half == team) give_back(r, count, out);
  }
  void wait_for_values(int team, const Count& count, Body& out) const {
    for (const Ring& r : rings_)
      if (r.half == team && !r.in_scores) wait_full(r, count, out);
  }
  const Ring* ring(BufferId tile) const {
    const auto found = std::find_if(rings_.begin(), rings_.end(), [&](const Ring& r) { return r.tile == tile; });
    return found == rings_.end() ? nullptr : &*found;
  }
  Stmt drain(int64_t pending) const { return stmt(Drain{Queue::Wgmma, pending, {}}); }

  // The products of the scores in the order in which their slots are given back: what only they read, then the half of
  // the values that is this team's.
  Body products(int team) const {
    Body out, halves;
    auto put = [&](Gemm g, const Stmt& s, Body& to) {
      g.clear = {}, g.completion.queue = Queue::Wgmma, g.policy = GemmPolicy::Square;
      if (out.empty() && halves.empty()) g.clear = clears() ? constant(boolean, int64_t{1}) : first_product().clear;
      to.push_back(stmt(std::move(g), s));
    };
    for (const Stmt& s : parts_.scores)
      if (s.as<Gemm>()->b.buffer != parts_.values) put(*s.as<Gemm>(), s, out);
    for (const Stmt& s : parts_.scores)
      for (const int half : {team, 1 - team}) {
        Gemm g = *s.as<Gemm>();
        if (g.b.buffer != parts_.values) continue;
        for (Region* r : {&g.a, &g.b}) *r = whole(halves_.at(r->buffer)[static_cast<size_t>(half)], p_);
        put(std::move(g), s, halves);
      }
    append(out, std::move(halves));
    return out;
  }
  const Gemm& first_product() const { return *parts_.scores[0].as<Gemm>(); }
  // Whether zeros before the first product are all that is there.
  bool clears() const {
    if (parts_.before.size() != 1 || first_product().clear) return false;
    const auto* fill = parts_.before[0].as<Fill>();
    const auto* zero = fill ? fill->value.as<Const>() : nullptr;
    return zero && zero->bits == 0 && fill->to.buffer == first_product().c.buffer;
  }
  Body scores(int team, const Count& count) {
    Body code;
    if (!clears()) append(code, parts_.before);
    std::set<BufferId> here;
    for (Stmt& s : products(team)) {
      const Gemm& g = *s.as<Gemm>();
      const Ring* panels = ring(g.b.buffer);
      if (panels && panels->panels > 1) {
        for (int64_t panel = 0; panel < panels->panels; ++panel) {
          wait_full(*panels, count, code, panel);
          Gemm part = g;
          narrow(part.a, *panels, panel), narrow(part.b, *panels, panel);
          if (panel > 0) part.clear = {};
          code.push_back(stmt(std::move(part), s));
        }
        continue;
      }
      for (const Region* r : {&g.a, &g.b})
        if (const Ring* brought = ring(r->buffer); brought && here.insert(r->buffer).second)
          wait_full(*brought, count, code);
      code.push_back(std::move(s));
    }
    code.push_back(stmt(Commit{Queue::Wgmma}));
    return in_turn(code, count);
  }
  // result = result * scale + left values, for the team's columns.
  void add_product(int team, BufferId left, const Count& count, Body& out) {
    Body code;
    for (const Stmt& s : parts_.rescale) code.push_back(of_columns(s, team));
    Gemm g = *parts_.product.as<Gemm>();
    g.a = whole(left, p_), g.b = whole(halves_.at(parts_.values)[static_cast<size_t>(team)], p_);
    g.c.extent.back() = number(parts_.half);
    g.policy = GemmPolicy::Square, g.completion.queue = Queue::Wgmma;
    code.push_back(stmt(std::move(g), parts_.product)), code.push_back(stmt(Commit{Queue::Wgmma}));
    append(out, in_turn(code, count));
  }
  Stmt of_columns(const Stmt& s, int team) {
    auto out = narrowed(p_, s, parts_.result, team * parts_.half, parts_.half);
    check_internal(out.has_value(), "columns that were apart are not");
    return *out;
  }
  Region of_owner(BufferId id, int team) const {
    Region r = whole(handed_.at(id), p_);
    r.min[0] = number(team), r.extent[0] = number(1);
    return r;
  }
  void take(const std::set<BufferId>& handed, BufferId ready, int peer, const Count& count, Body& out) const {
    if (!ready.valid()) return;
    out.push_back(stmt(Wait{{ready, {number(peer)}}, count.in(2).parity}));
    for (BufferId id : handed) out.push_back(copy(of_owner(id, peer), whole(id, p_)));
  }
  void hand(const std::set<BufferId>& handed, BufferId ready, int team, Body& out) const {
    for (BufferId id : handed) out.push_back(copy(whole(id, p_), of_owner(id, team)));
    out.push_back(arrive_by_warps({ready, {number(team)}}, parts_.at));
  }
  // The other team waited for the values before it told that its scores are ready.
  void take_over(int team, const Count& count, Body& out) {
    take(parts_.handed, ready_, 1 - team, count, out);
    wait_for_values(team, count, out);
    add_product(team, exchange_, count, out);
  }
  Stmt copy(Region from, Region to) const {
    Copy c;
    c.from = std::move(from), c.to = std::move(to);
    return stmt(std::move(c));
  }
  // `beside`: the product with the other team's scores may still run.
  void own_iteration(int team, const Count& count, bool beside, Body& out) {
    out.push_back(drain(beside ? 1 : 0));
    for (const Ring& r : rings_)
      if (r.half < 0 && !r.of.in_own) give_back(r, count, out);
    for (const Ring& r : rings_)
      if (r.of.in_own && !r.in_scores) wait_full(r, count, out);
    append(out, in_turn(parts_.own, count));
    for (const Ring& r : rings_)
      if (r.of.in_own) give_back(r, count, out);
    if (beside) {
      out.push_back(drain(0));
      give_back_half(team, count.before(), out);
    }
    out.push_back(copy(whole(parts_.left, p_), whole(exchange_, p_)));
    hand(parts_.handed, ready_, team, out);
    wait_for_values(team, count, out);
    add_product(team, parts_.left, count, out);
    if (beside) take(parts_.handed_later, later_, 1 - team, count.before(), out);
    append(out, in_turn(parts_.later, count));
    if (later_.valid()) hand(parts_.handed_later, later_, team, out);
    out.push_back(drain(0));
    give_back_half(team, count, out);
  }
  Body all_iterations(int team) {
    Body out;
    if (team == 0) {  // nobody is in front of the first one
      append(out, scores(team, {}));
      own_iteration(team, {}, false, out);
    }
    const VarId v = p_.new_var("pair", i32);
    const Count count{var(v, i32), {}, 2 - team};
    const Expr extent_of_pairs = binary(BinaryOp::FloorDiv, add(extent(), number(team - 1)), number(2));
    Body pairs = scores(team, count);
    take_over(team, count.before(), pairs);
    own_iteration(team, count, true, pairs);
    out.push_back(serial(v, extent_of_pairs, std::move(pairs)));
    const Count last{{}, extent(), -1};
    Body rest;
    take_over(team, last, rest);
    take(parts_.handed_later, later_, 1 - team, last, rest);
    rest.push_back(drain(0));
    const Expr of_peer = binary(BinaryOp::Eq, binary(BinaryOp::FloorMod, last.number(), number(2)), number(1 - team));
    out.push_back(stmt(If{of_peer, std::move(rest), {}}));
    return out;
  }

  // ---- a team, from its first statement to its last
  Body of_team(int team) {
    Body out;
    for (const Stmt& s : parts_.prologue) append(out, around(s, team));
    if (!once_.empty()) out.push_back(stmt(Wait{{once_full_, {number(0)}}, number(0)}));
    const Expr any = binary(BinaryOp::Lt, number(0), extent());
    Body turns = all_iterations(team);
    if (constant_int(any) == 1)
      append(out, std::move(turns));
    else
      out.push_back(stmt(If{any, std::move(turns), {}}));
    for (const Stmt& s : parts_.epilogue) append(out, around(s, team));
    out = with_buffers(out, own_[team]);
    out.insert(out.begin(), stmt(SetRegisters{plan_.registers_of(plan::Role::Job::Compute)}));
    return renamed(p_, std::move(out));
  }
  bool touches_result(const Stmt& s) const { return used_buffers({s}).contains(parts_.result); }
  Body around(const Stmt& s, int team) {
    if (touches_result(s)) {
      const Stmt mine = of_columns(s, team);
      const auto* leaves = mine.as<Copy>();
      return leaves ? leave(*leaves, team) : Body{mine};
    }
    bool leaves = false;
    walk({s}, [&](const Stmt& x) {
      const auto* store = x.as<Store>();
      const auto* moved = x.as<Copy>();
      const BufferId to = store ? store->to.buffer : moved ? moved->to.buffer : BufferId{};
      leaves = leaves || (to.valid() && p_.buffer(to).space == Space::Global);
    });
    return leaves && team == 1 ? Body{} : Body{s};
  }
  // A half of the result goes by TMA from where the same half of a tile was that no scores need any more: who has taken
  // the last iteration knows that both teams have read it.
  Body leave(const Copy& c, int team) {
    if (!stored_once_.contains(p_.root(c.to.buffer))) return {stmt(c)};
    for (const auto& [tile, halves] : halves_) {
      const BufferId half = halves[static_cast<size_t>(team)];
      const Buffer& b = p_.buffer(half);
      const bool is_once = std::any_of(once_.begin(), once_.end(), [&](const Ring& r) { return r.tile == half; });
      if (!is_once || b.type != p_.buffer(c.to.buffer).type || constant_int(b.shape[0]) != target::kWgmmaRows ||
          constant_int(b.shape[1]) != parts_.half)
        continue;
      Copy away;
      away.from = whole(half, p_), away.to = c.to, away.completion.queue = Queue::BulkStore;
      if (!tma_misfit(away, p_).empty()) continue;
      if (team == 0) staged_.push_back(c.from.buffer);
      return {copy(c.from, whole(half, p_)), stmt(std::move(away)), stmt(Commit{Queue::BulkStore}),
              stmt(Drain{Queue::BulkStore, 0, {}})};
    }
    return {stmt(c)};
  }

  TileProgram& p_;
  Launch& launch_;
  const IterationParts parts_;
  const For loop_;
  const plan::Plan& plan_;
  const std::set<BufferId> stored_once_;
  std::vector<BufferId> staged_;
  std::vector<Ring> rings_, once_;
  std::map<BufferId, std::vector<BufferId>> halves_;  // of tiles that come in two
  BufferId once_full_, ready_, later_, exchange_;
  std::map<BufferId, BufferId> handed_;  // of fragments: one slot a team
  std::map<BufferId, BufferId> own_[2];  // fragments of the teams
};

}  // namespace

std::vector<BufferId> take_iterations_in_turn(TileProgram& program, Launch& launch, const plan::Plan& plan) {
  std::string why;
  auto parts = plan::iteration_parts(program, launch, plan::brought_tiles(plan::find_rings(program, launch)), why);
  check_internal(parts.has_value(), "teams that could take the iterations in turn cannot: {}", why);
  return Writer(program, launch, std::move(*parts), plan).run();
}

}  // namespace tilewright::passes
