#include "passes/schedule/async_rings.h"
#include "analysis/async_copies.h"
#include "analysis/brought_tiles.h"

#include <set>

#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/assume_fast_calls.h"
#include "passes/lower/intervals.h"
#include "passes/schedule/ring.h"
#include "passes/schedule/role_code.h"
#include "passes/threads/gemm_choice.h"

namespace tilewright::passes {

using namespace ir;
using analysis::BroughtTile;

namespace {

constexpr int64_t kFewestSlots = 2, kMostSlots = 16;  // of a ring: no program gains from more
// What the matrix unit multiplies in the 2000 clocks until a slot that is asked for is full (plan/price.cpp).
constexpr int64_t kFewMultiplies = int64_t{2000} * 2048;

class PipelinedLoops {
 public:
  PipelinedLoops(TileProgram& p, Launch& launch, bool may_gather,
                 std::vector<std::pair<LocationId, std::string>>& notes)
      : p_(p), launch_(launch), may_gather_(may_gather), notes_(notes) {}

  Body body(const Body& in, bool in_role) {
    return rewrite(in, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<For>();
      if (!n || n->kind != LoopKind::Pipelined) return std::nullopt;
      std::vector<BroughtTile> brought;
      std::string why = in_role ? "it stands in a role" : misfit(*n, brought);
      if (why.empty()) return ring(*n, s->location, brought);
      if (n->stages > 1) notes_.emplace_back(s->location, std::move(why));
      return std::nullopt;
    });
  }
  bool gathers() const { return gathers_; }

 private:
  bool is_plain(const Copy& c) const { return analysis::comes_by_async_copies(c, p_.buffer(c.to.buffer), p_); }
  // The copies at the head of the loop, and what comes with them.
  size_t leading(const For& n) const {
    size_t count = 0;
    while (count < n.body.size() && n.body[count].as<Copy>() && is_plain(*n.body[count].as<Copy>())) ++count;
    return count;
  }
  // What keeps the loop from a ring; none: `brought` fills its tiles.
  std::string misfit(const For& n, std::vector<BroughtTile>& brought) const {
    if (n.stages < kFewestSlots) return "it has one stage";
    const size_t count = leading(n);
    std::vector<BroughtTile> gathered;
    for (size_t i = count; may_gather_ && i < n.body.size(); ++i)
      if (const auto found = analysis::brought_tile(p_, launch_, n, i)) gathered.push_back(*found);
    if (count == 0 && gathered.empty())
      return "it does not begin with copies of whole 16-byte rows from global to shared memory";
    if (may_jump(n.body)) return "its body jumps";
    std::set<BufferId> filled;
    for (size_t i = 0; i < count; ++i) {
      const Copy& c = *n.body[i].as<Copy>();
      if (!filled.insert(c.to.buffer).second) return fmt::format("'{}' is written twice", p_.buffer(c.to.buffer).name);
      if (std::string why = analysis::no_tile_of(p_, launch_, n, c.to.buffer); !why.empty()) return why;
      if (analysis::writes_of(n.body, p_.root(c.from.buffer), p_) > 0)
        return fmt::format("'{}' is written in the loop", p_.buffer(c.from.buffer).name);
      bool reads = false;  // what the copies' places depend on must be known ahead
      for (const Expr& e : c.from.min) walk(e, [&](const Expr& x) { reads = reads || x.as<Load>(); });
      if (reads) return fmt::format("where '{}' is read depends on memory", p_.buffer(c.from.buffer).name);
      brought.push_back({i, c.to.buffer});
    }
    brought.insert(brought.end(), gathered.begin(), gathered.end());
    return "";
  }
  Body ring(const For& n, LocationId at, const std::vector<BroughtTile>& brought) {
    // More than there are turns would stay empty.
    const int64_t turns = std::max(constant_int(n.extent).value_or(kMostSlots), kFewestSlots);
    const int64_t slots = std::min({n.stages, turns, kMostSlots});
    const DType type = p_.var(n.var).type;
    // A slot is filled again in the turn behind its own, or, at the cost of another barrier, at its own turn's end:
    // then all slots are under way while a turn waits.
    const bool at_end = slots == kFewestSlots && waits_for_rows(n, brought);
    SlotRing ring{.slots = slots,
                  .filled = SlotRing::Filled::CpAsync,
                  .released = SlotRing::Released::Block,
                  .filled_at_end = at_end};
    for (const BroughtTile& b : brought) ring.tiles.push_back(b.tile);
    ring = open_ring(p_, launch_, "", std::move(ring), 0);
    auto turn = [&](const Expr& step) { return Turn{binary(BinaryOp::FloorMod, step, constant(type, slots)), {}}; };
    auto in_slot = [&](const Expr& step) {
      std::map<BufferId, IntoSlots::Slot> all;
      use_slot(ring, turn(step).slot, p_, all);
      return IntoSlots(std::move(all));
    };
    // Fills the slot of iteration `step` (counted from 0), if there is one.
    auto issue = [&](const Expr& step) {
      Body code;
      for (const BroughtTile& b : brought)
        append(code, queued(in_slot(step).body(of_turn(n, b.at, add(n.begin, step)))));
      return fill(ring, turn(step), {std::move(code)}, at, binary(BinaryOp::Lt, step, n.extent));
    };
    // Which rows that iteration gathers, or the last one: there may be none after it.
    auto rows = [&](const Expr& step) {
      const Expr last = sub(add(n.begin, n.extent), constant(type, int64_t{1}));
      Body code;
      for (const BroughtTile& b : brought)
        if (b.rows) append(code, of_turn(n, *b.rows, binary(BinaryOp::Min, add(n.begin, step), last)));
      return code;
    };
    const int64_t ahead = at_end ? slots : slots - 1;
    Body out;
    for (int64_t s = 0; s < ahead; ++s) {
      append(out, rows(constant(type, s)));
      append(out, issue(constant(type, s)));
    }
    if (!at_end) append(out, rows(constant(type, ahead)));
    For loop = n;
    loop.kind = LoopKind::Serial, loop.stages = 0, loop.order.clear(), loop.stage.clear();
    const Expr step = sub(var(n.var, type), n.begin);
    loop.body = wait_full(ring, turn(step), at);
    if (!at_end) append(loop.body, issue(add(step, constant(type, ahead))));
    append(loop.body, rows(add(step, constant(type, slots))));
    std::set<size_t> moved;
    for (const BroughtTile& b : brought) {
      moved.insert(b.at);
      if (b.rows) moved.insert(*b.rows);
      gathers_ = gathers_ || b.at >= leading(n);
    }
    Body rest;
    for (size_t i = 0; i < n.body.size(); ++i)
      if (!moved.contains(i)) rest.push_back(n.body[i]);
    append(loop.body, in_slot(step).body(rest));
    if (at_end) {
      loop.body.push_back(make_stmt(Sync{}, at));
      append(loop.body, issue(add(step, constant(type, ahead))));
    }
    out.push_back(make_stmt(std::move(loop), at));
    return out;
  }
  // Whether rows that a Map gathers, which come from anywhere, have not come when the products of a turn are done.
  static bool waits_for_rows(const For& n, const std::vector<BroughtTile>& brought) {
    const bool gathers = std::ranges::any_of(brought, [&](const BroughtTile& b) { return n.body[b.at].as<Map>(); });
    int64_t multiplies = 0;
    for (const Stmt& s : n.body)
      if (const auto* g = s.as<Gemm>()) {
        const auto [rows, columns, k] = extents_of(*g);
        multiplies += rows * columns * k;
      }
    return gathers && multiplies > 0 && multiplies < kFewMultiplies;
  }
  // The statement of the loop in that turn.
  Body of_turn(const For& n, size_t i, const Expr& index) {
    const Body code = substitute(Body{n.body[i]}, {{n.var, index}});
    return n.body[i].as<Map>() ? renamed(p_, code) : code;
  }
  // What maps store is there once the queue is waited for.
  static Body queued(const Body& code) {
    return rewrite(code, [](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<Store>();
      if (!n) return std::nullopt;
      Store later = *n;
      later.queue = Queue::CpAsync;
      return Body{make_stmt(std::move(later), s->location)};
    });
  }

  TileProgram& p_;
  Launch& launch_;
  const bool may_gather_;
  std::vector<std::pair<LocationId, std::string>>& notes_;
  bool gathers_ = false;
};

}  // namespace

AsyncRings materialize_async_rings(TileProgram program, const std::set<size_t>& without) {
  AsyncRings out{std::move(program), {}};
  for (size_t i = 0; i < out.program.launches.size(); ++i) {
    Launch& launch = out.program.launches[i];
    bool roles = false;
    walk(launch.body, [&](const Stmt& s) { roles = roles || s.as<Role>(); });
    PipelinedLoops loops(out.program, launch, !without.contains(i), out.notes);
    launch.body = loops.body(launch.body, roles);
    if (loops.gathers()) out.gathering.insert(i);
  }
  return out;
}

}  // namespace tilewright::passes
