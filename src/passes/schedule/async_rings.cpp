#include "passes/schedule/async_rings.h"
#include "analysis/async_copies.h"
#include "analysis/brought_tiles.h"
#include "analysis/panels.h"
#include "analysis/tma.h"

#include <set>

#include "ir/any_in.h"
#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/assume_fast_calls.h"
#include "passes/lower/intervals.h"
#include "passes/schedule/drawn_tiles.h"
#include "passes/schedule/ring.h"
#include "passes/schedule/role_code.h"
#include "passes/threads/gemm_choice.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kFewestSlots = 2, kMostSlots = 16;  // of a ring: no program gains from more
// What the matrix unit multiplies in the 2000 clocks until a slot that is asked for is full (plan/price.cpp).
constexpr int64_t kFewMultiplies = int64_t{2000} * 2048;

class PipelinedLoops {
 public:
  PipelinedLoops(TileProgram& p, Launch& launch, bool may_gather, const target::GpuTarget* target,
                 std::vector<std::pair<LocationId, std::string>>& notes)
      : p_(p), launch_(launch), may_gather_(may_gather), target_(target), notes_(notes) {}

  Body body(const Body& in, bool in_role) {
    walk(in, [&](const Stmt& s) {
      if (!s.as<For>() && !s.as<While>()) return;
      for_each_body(s, [&](const Body& turn) { again_.merge(bound_vars(turn)); });
    });
    return rewrite(in, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<For>();
      if (!n || n->kind != LoopKind::Pipelined) return std::nullopt;
      std::vector<Brought> brought;
      std::string why = in_role ? "it stands in a role" : misfit(*n, brought);
      if (why.empty()) return ring(*n, s->location, brought);
      if (n->stages > 1) notes_.emplace_back(s->location, std::move(why));
      return std::nullopt;
    });
  }
  bool gathers() const { return gathers_; }
  std::string draw(const For& n, const Expr& blocks, const Expr& block, LocationId at, Body& out) {
    std::vector<Brought> brought;
    std::string why = misfit(n, brought);
    if (!why.empty()) return why;
    if (!comes_in_bulk(n, brought)) return "tiles that TMA does not bring in few copies are dealt";
    out = drawn_ring(n, DrawnTiles(p_, launch_, n.extent, blocks, block, n.stages), at, brought);
    return "";
  }

 private:
  // A statement of the loop that fills a tile.
  struct Brought : analysis::BroughtTile {
    std::vector<Expr> place = {};  // where a copy reads, by the loop's variable and elements that it does not write
    bool later = false;            // it stands behind the copies at the head of the loop
  };
  bool is_plain(const Copy& c) const { return analysis::comes_by_async_copies(c, p_.buffer(c.to.buffer), p_); }
  // The copies at the head of the loop, and what comes with them; names may stand between them.
  std::vector<Brought> leading(const For& n) const {
    std::vector<Brought> out;
    Substitution names;
    for (size_t i = 0; i < n.body.size(); ++i) {
      if (const auto* name = n.body[i].as<Let>()) {
        names[name->var] = substitute(name->value, names);
        continue;
      }
      const auto* c = n.body[i].as<Copy>();
      if (!c || !is_plain(*c) || looks_by_names(n, n.body[i])) break;
      out.push_back({{i, c->to.buffer}});
      for (const Expr& e : c->from.min) out.back().place.push_back(substitute(e, names));
    }
    return out;
  }
  // Whether a buffer of the statement is a view whose place the turn says.
  bool looks_by_names(const For& n, const Stmt& s) const {
    const std::set<VarId> inside = bound_vars(n.body);
    return std::ranges::any_of(used_buffers({s}),
                               [&](BufferId id) { return stands_by(p_, id, inside) || stands_by(p_, id, {n.var}); });
  }
  // What keeps the loop from a ring; none: `brought` fills its tiles.
  std::string misfit(const For& n, std::vector<Brought>& brought) const {
    if (n.stages < kFewestSlots) return "it has one stage";
    const std::vector<Brought> copies = leading(n);
    std::vector<Brought> later;
    for (size_t i = copies.empty() ? 0 : copies.back().at + 1; may_gather_ && i < n.body.size(); ++i)
      if (const auto found = analysis::brought_tile(p_, launch_, n, i)) {
        later.push_back({*found, {}, true});
        if (const auto* c = n.body[i].as<Copy>()) later.back().place = c->from.min;
      }
    if (copies.empty() && later.empty())
      return "it does not begin with copies of whole 16-byte rows from global to shared memory";
    if (may_jump(n.body)) return "its body jumps";
    std::set<BufferId> filled;
    for (const Brought& b : copies) {
      const Copy& c = *n.body[b.at].as<Copy>();
      if (!filled.insert(c.to.buffer).second) return fmt::format("'{}' is written twice", p_.buffer(c.to.buffer).name);
      if (std::string why = analysis::no_tile_of(p_, launch_, n, c.to.buffer); !why.empty()) return why;
      if (analysis::writes_of(n.body, p_.root(c.from.buffer), p_) > 0)
        return fmt::format("'{}' is written in the loop", p_.buffer(c.from.buffer).name);
      for (const Expr& e : b.place) {
        if (!is_known_ahead(n, e))
          return fmt::format("where '{}' is read depends on what the loop writes", p_.buffer(c.from.buffer).name);
        if (!may_gather_ && any_in(e, [](const Expr& x) { return x.as<Load>() != nullptr; }))
          return fmt::format("where '{}' is read depends on memory", p_.buffer(c.from.buffer).name);
      }
      brought.push_back(b);
    }
    std::erase_if(later, [&](const Brought& b) {
      return std::ranges::any_of(b.place, [&](const Expr& e) { return !is_known_ahead(n, e); });
    });
    brought.insert(brought.end(), later.begin(), later.end());
    return "";
  }

  // Whether what the elements hold is there before the turn, and may be read whatever the turn asks of it.
  bool is_known_ahead(const For& n, const Expr& e) const {
    bool known = true, chooses = false, on_chip = false;
    walk(e, [&](const Expr& x) {
      chooses = chooses || x.as<Select>();
      const auto* load = x.as<Load>();
      if (!load) return;
      const Space space = p_.buffer(load->buffer).space;
      on_chip = on_chip || space != Space::Global;
      known = known && (space == Space::Global || space == Space::Shared || space == Space::Local) &&
              analysis::writes_of(n.body, p_.root(load->buffer), p_) == 0 && !looks_by_names(n, make_stmt(Let{{}, x}));
    });
    // Beyond a tensor there are zeros; on chip only what a turn reads is there.
    return known && !(on_chip && (chooses || constant_int(n.extent).value_or(0) < 1));
  }
  // A scalar of each thread.
  BufferId new_variable(std::string name, DType type) {
    Buffer held;
    held.name = std::move(name), held.type = type, held.space = Space::Local;
    held.launch = static_cast<int32_t>(&launch_ - p_.launches.data());
    return p_.new_buffer(std::move(held));
  }
  // An element that says where a copy reads, read into a thread's own variable a turn before.
  struct Ahead {
    Expr element;
    BufferId held;
  };
  // Those of the copies, which then read the variables.
  std::vector<Ahead> read_ahead(std::vector<Brought>& brought) {
    std::vector<Ahead> out;
    for (Brought& b : brought)
      for (Expr& e : b.place)
        e = rewrite(e, [&](const Expr& x) -> std::optional<Expr> {
          if (!x.as<Load>()) return std::nullopt;
          auto found = std::ranges::find_if(out, [&](const Ahead& a) { return equal(a.element, x); });
          if (found == out.end()) {
            out.push_back({x, new_variable(p_.buffer(x.as<Load>()->buffer).name + "_next", x->type)});
            found = out.end() - 1;
          }
          return load(found->held, {}, x->type);
        });
    return out;
  }

  Body ring(const For& n, LocationId at, std::vector<Brought> brought) {
    const std::vector<Ahead> elements = read_ahead(brought);
    // More than there are turns would stay empty.
    const int64_t turns = std::max(constant_int(n.extent).value_or(kMostSlots), kFewestSlots);
    int64_t slots = std::min({n.stages, turns, kMostSlots});
    const DType type = p_.var(n.var).type;
    // A turn computes with one slot while the others are under way. As many as the program has stages are so at the
    // cost of one more slot, where all blocks have room for it at once; where there is none, and rows come from
    // anywhere, at the cost of another barrier: a slot is filled again in its own turn.
    if (slots < kMostSlots && turns > slots && has_room(slots + 1, brought)) ++slots;
    const bool in_turn = slots == kFewestSlots && waits_for_rows(n, brought);
    const bool in_bulk = !in_turn && target_ && target_->has.tma && comes_in_bulk(n, brought);
    SlotRing ring{.slots = slots,
                  .bytes = bytes_of(brought),
                  .filled = in_bulk ? SlotRing::Filled::TmaBytes : SlotRing::Filled::CpAsync,
                  .released = SlotRing::Released::Block,
                  .filled_in_turn = in_turn};
    for (const Brought& b : brought) ring.tiles.push_back(b.tile);
    const std::string name = p_.buffer(brought[0].tile).name;
    ring = open_ring(p_, launch_, name, std::move(ring), 0);
    auto turn = [&](const Expr& step) {
      return Turn{binary(BinaryOp::FloorMod, step, constant(type, slots)),
                  in_bulk ? turn_of(slots, step).parity : Expr{}};
    };
    auto in_slot = [&](const Expr& step) {
      std::map<BufferId, IntoSlots::Slot> all;
      use_slot(ring, turn(step).slot, p_, all);
      return IntoSlots(std::move(all));
    };
    const auto turn_of_copy = [&](const Brought& b, const Expr& index) {
      Stmt s = n.body[b.at];
      if (const auto* c = s.as<Copy>()) {
        Copy copy = *c;
        copy.from.min = b.place;
        s = make_stmt(std::move(copy), s->location);
      }
      return of_turn(n, s, index);
    };
    // Fills the slot of iteration `step` (counted from 0), if there is one.
    auto issue = [&](const Expr& step) {
      Body code;
      for (const Brought& b : brought) append(code, in_slot(step).body(turn_of_copy(b, add(n.begin, step))));
      return fill(ring, turn(step), {std::move(code)}, at, binary(BinaryOp::Lt, step, n.extent));
    };
    // Which rows that iteration gathers, and where its copies read, or the last one: there may be none after it.
    auto rows = [&](const Expr& step) {
      const Expr last = sub(add(n.begin, n.extent), constant(type, int64_t{1}));
      const Expr index = binary(BinaryOp::Min, add(n.begin, step), last);
      Body code;
      for (const Ahead& a : elements)
        code.push_back(make_stmt(Store{{a.held, {}}, substitute(a.element, {{n.var, index}})}, at));
      for (const Brought& b : brought)
        if (b.rows) append(code, of_turn(n, n.body[*b.rows], index));
      return code;
    };
    const int64_t ahead = in_turn ? slots : slots - 1;
    Body out;
    for (int64_t s = 0; s < ahead; ++s) {
      append(out, rows(constant(type, s)));
      append(out, issue(constant(type, s)));
    }
    if (!in_turn) append(out, rows(constant(type, ahead)));
    For loop = n;
    loop.kind = LoopKind::Serial, loop.stages = 0, loop.order.clear(), loop.stage.clear();
    const Expr step = sub(var(n.var, type), n.begin);
    loop.body = wait_full(ring, turn(step), at);
    if (!in_turn) append(loop.body, issue(add(step, constant(type, ahead))));
    append(loop.body, rows(add(step, constant(type, slots))));
    for (const Brought& b : brought) gathers_ = gathers_ || b.later || !elements.empty();
    Body rest = not_brought(n, brought);
    // The slot is filled again behind who reads it last.
    if (in_bulk) fence_reads(rest, brought, at);
    const size_t read = in_turn ? read_until(rest, brought) : rest.size();
    const auto from = rest.begin() + static_cast<std::ptrdiff_t>(read);
    append(loop.body, in_slot(step).body({rest.begin(), from}));
    if (in_turn) {
      loop.body.push_back(make_stmt(Sync{}, at));
      append(loop.body, issue(add(step, constant(type, ahead))));
    }
    append(loop.body, in_slot(step).body({from, rest.end()}));
    out.push_back(make_stmt(std::move(loop), at));
    return out;
  }
  // Of a loop that ends by itself.
  static int64_t most_turns(const Expr& tiles) {
    const int64_t counted = INT32_MAX - kMostSlots;  // so that those ahead are, too
    return std::min(constant_int(tiles).value_or(counted), counted);
  }
  // Fills are one turn less ahead than numbers are drawn.
  Body drawn_ring(const For& n, DrawnTiles draws, LocationId at, const std::vector<Brought>& brought) {
    const int64_t slots = n.stages;
    SlotRing ring{.slots = slots, .bytes = bytes_of(brought), .released = SlotRing::Released::Block};
    for (const Brought& b : brought) ring.tiles.push_back(b.tile);
    const std::string name = p_.buffer(brought[0].tile).name;
    ring = open_ring(p_, launch_, name, std::move(ring), 0);
    const auto place = [&](const Expr& turn) {
      return Turn{binary(BinaryOp::FloorMod, turn, constant(i32, slots)), turn_of(slots, turn).parity};
    };
    const auto in_slot = [&](const Expr& turn, const Body& code) {
      std::map<BufferId, IntoSlots::Slot> all;
      use_slot(ring, place(turn).slot, p_, all);
      return IntoSlots(std::move(all)).body(code);
    };
    // `exists`: there may be no such tile.
    const auto issue = [&](const Expr& turn, const Expr& tile, bool exists) {
      Body code{make_stmt(draws.known(tile), at)};
      for (const Brought& b : brought) append(code, in_slot(turn, of_turn(n, n.body[b.at], tile)));
      return fill(ring, place(turn), {std::move(code)}, at, exists ? draws.is_a_tile(tile) : Expr{});
    };
    const auto number = [&](const char* of, const Expr& value, Body& to) {
      const VarId id = p_.new_var(of, value->type);
      to.push_back(make_stmt(Let{id, value}, at));
      return var(id, value->type);
    };
    // The first tile does not wait for what is drawn.
    Body out = issue(constant(i32, int64_t{0}), draws.first(), false);
    append(out, draws.first_numbers());
    out.push_back(make_stmt(Sync{}, at));
    for (int64_t turn = 1; turn < slots - 1; ++turn)
      append(out, issue(constant(i32, turn), number("tile_ahead", draws.number_of(constant(i32, turn)), out), true));
    // The number of a turn is read in the one before, so that nobody waits for it.
    const BufferId next = new_variable("next", p_.var(n.var).type);
    out.push_back(make_stmt(Store{{next, {}}, draws.first()}, at));
    For loop;
    loop.var = p_.new_var("turn", i32), loop.begin = constant(i32, int64_t{0});
    loop.extent = constant(i32, most_turns(draws.tiles()));
    const Expr turn = var(loop.var, i32), filled = add(turn, constant(i32, slots - 1));
    const Expr tile = var(n.var, p_.var(n.var).type);
    loop.body.push_back(make_stmt(Let{n.var, load(next, {}, tile->type)}, at));
    loop.body.push_back(make_stmt(If{logical_not(draws.is_a_tile(tile)), {make_stmt(Break{}, at)}, {}}, at));
    loop.body.push_back(make_stmt(draws.known(tile), at));
    append(loop.body, wait_full(ring, place(turn), at));
    const Expr ahead = number("tile_ahead", draws.number_of(filled), loop.body);
    loop.body.push_back(make_stmt(Store{{next, {}}, draws.number_of(add(turn, constant(i32, int64_t{1})))}, at));
    append(loop.body, draws.ask(ahead));
    append(loop.body, issue(filled, ahead, true));
    Body rest = not_brought(n, brought);
    fence_reads(rest, brought, at);
    // Behind the last reduction the answer is there, and results leave after it.
    const auto last = std::ranges::find_if(rest.rbegin(), rest.rend(), [](const Stmt& s) { return s.as<Reduce>(); });
    const Body keep = draws.keep(turn);
    rest.insert(last == rest.rend() ? rest.end() : last.base(), keep.begin(), keep.end());
    append(loop.body, in_slot(turn, rest));
    out.push_back(make_stmt(std::move(loop), at));
    return out;
  }
  // How many of the statements there are up to the last that touches a tile of the ring.
  size_t read_until(const Body& rest, const std::vector<Brought>& brought) const {
    std::set<BufferId> tiles;
    for (const Brought& b : brought) tiles.insert(p_.root(b.tile));
    for (size_t i = rest.size(); i > 0; --i)
      for (BufferId id : used_roots({rest[i - 1]}, p_))
        if (tiles.contains(id)) return i;
    return 0;
  }
  // Reads of a slot are done before a copy that no thread makes fills it again. Where the turn stores its results
  // behind them, a fence at the next turn's barrier would wait for these stores.
  void fence_reads(Body& rest, const std::vector<Brought>& brought, LocationId at) const {
    size_t read = read_until(rest, brought);
    while (read < rest.size() && rest[read].as<Reduce>()) ++read;
    if (read == rest.size()) return;
    rest.insert(rest.begin() + static_cast<std::ptrdiff_t>(read), make_stmt(Fence{FenceProxy::Async, {}}, at));
  }
  int64_t bytes_of(const std::vector<Brought>& brought) const {
    int64_t bytes = 0;
    for (const Brought& b : brought) bytes += bytes_on_chip(p_.buffer(b.tile));
    return bytes;
  }
  // Whether few copies by TMA bring the tiles, which are much together. Products have ways of their own to read them.
  bool comes_in_bulk(const For& n, const std::vector<Brought>& brought) const {
    if (holds<Gemm>(n.body)) return false;
    if (again_.contains(n.var)) return false;  // its turns do not say how often slots have been filled
    std::vector<Copy> copies;
    for (const Brought& b : brought) {
      if (b.later) return false;
      copies.push_back(*n.body[b.at].as<Copy>());
    }
    return analysis::come_in_bulk(copies, p_);
  }
  // Whether all blocks of the launch still run at once where these tiles have so many slots.
  bool has_room(int64_t slots, const std::vector<Brought>& brought) const {
    if (!target_) return false;
    const auto blocks = constant_int(blocks_of(launch_));
    int64_t bytes = target_->multiprocessor.reserved_bytes;
    for (BufferId id : used_roots(launch_.body, p_))
      if (p_.buffer(id).space == Space::Shared) bytes += bytes_on_chip(p_.buffer(id));
    bytes += (slots - 1) * bytes_of(brought);
    const int64_t most = target_->multiprocessor.shared_bytes / bytes * target_->multiprocessors;
    return bytes <= target_->shared_bytes && blocks && *blocks <= most;
  }
  // Whether rows that a Map gathers, which come from anywhere, have not come when the products of a turn are done.
  static bool waits_for_rows(const For& n, const std::vector<Brought>& brought) {
    const bool gathers = std::ranges::any_of(brought, [&](const Brought& b) { return n.body[b.at].as<Map>(); });
    int64_t multiplies = 0;
    for (const Stmt& s : n.body)
      if (const auto* g = s.as<Gemm>()) {
        const auto [rows, columns, k] = extents_of(*g);
        multiplies += rows * columns * k;
      }
    return gathers && multiplies > 0 && multiplies < kFewMultiplies;
  }
  // The statement of the loop in that turn.
  Body of_turn(const For& n, const Stmt& s, const Expr& index) {
    const Body code = substitute(Body{s}, {{n.var, index}});
    return s.as<Map>() ? renamed(p_, code) : code;
  }
  // What is left of a turn when what fills the tiles stands elsewhere. Names that only the copies asked for are gone
  // with them.
  Body not_brought(const For& n, const std::vector<Brought>& brought) const {
    std::set<size_t> moved;
    for (const Brought& b : brought) {
      moved.insert(b.at);
      if (b.rows) moved.insert(*b.rows);
    }
    Body rest;
    for (size_t i = 0; i < n.body.size(); ++i)
      if (!moved.contains(i)) rest.push_back(n.body[i]);
    for (size_t i = rest.size(); i-- > 0;) {
      const auto* name = rest[i].as<Let>();
      if (!name) continue;
      const Body behind(rest.begin() + static_cast<int64_t>(i) + 1, rest.end());
      const bool places =
          std::ranges::any_of(used_buffers(behind), [&](BufferId id) { return stands_by(p_, id, {name->var}); });
      if (!places && !used_vars(behind).contains(name->var)) rest.erase(rest.begin() + static_cast<int64_t>(i));
    }
    return rest;
  }

  TileProgram& p_;
  Launch& launch_;
  const bool may_gather_;
  const target::GpuTarget* target_;
  std::vector<std::pair<LocationId, std::string>>& notes_;
  bool gathers_ = false;
  std::set<VarId> again_;  // bound in a loop
};

}  // namespace

std::string draw_tiles(TileProgram& p, Launch& launch, const For& tiles, const Expr& blocks, const Expr& block,
                       Body& out) {
  std::vector<std::pair<LocationId, std::string>> notes;
  return PipelinedLoops(p, launch, false, nullptr, notes).draw(tiles, blocks, block, launch.location, out);
}

AsyncRings materialize_async_rings(TileProgram program, const std::set<size_t>& without,
                                   const target::GpuTarget* target) {
  AsyncRings out{std::move(program), {}};
  for (size_t i = 0; i < out.program.launches.size(); ++i) {
    Launch& launch = out.program.launches[i];
    bool roles = false;
    walk(launch.body, [&](const Stmt& s) { roles = roles || s.as<Role>(); });
    PipelinedLoops loops(out.program, launch, !without.contains(i), target, out.notes);
    launch.body = loops.body(launch.body, roles);
    if (loops.gathers()) out.gathering.insert(i);
  }
  return out;
}

}  // namespace tilewright::passes
