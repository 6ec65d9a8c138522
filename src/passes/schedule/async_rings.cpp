#include "passes/schedule/async_rings.h"
#include "analysis/accessed.h"
#include "analysis/async_copies.h"
#include "analysis/body_order.h"
#include "analysis/slope.h"

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

namespace tilewright::passes {

using namespace ir;
using analysis::accesses_of;
using analysis::followed;
using analysis::names_as_a_whole;
using analysis::writes_whole;

namespace {

constexpr int64_t kFewestSlots = 2, kMostSlots = 16;  // of a ring: no program gains from more
// What a block's tiles may come to for a loop of one stage to have two slots: a block more on most multiprocessors.
constexpr int64_t kLittle = 65536;

class PipelinedLoops {
 public:
  PipelinedLoops(TileProgram& p, Launch& launch, bool may_gather,
                 std::vector<std::pair<LocationId, std::string>>& notes)
      : p_(p), launch_(launch), may_gather_(may_gather), notes_(notes) {}

  Body body(const Body& in, bool in_role) {
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

 private:
  // A statement of the loop that fills a tile.
  struct Brought {
    size_t at = 0;
    BufferId tile;
    std::optional<size_t> rows = {};  // the statement that says which rows are gathered
  };
  // How often statements of a body write the buffer.
  int writes(const Body& body, BufferId id) const {
    int count = 0;
    walk(body, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list)
        count +=
            e.access != Access::Read && e.region.valid() && analysis::may_overlap(p_.root(e.region.buffer), id, p_);
    });
    return count;
  }
  bool is_plain(const Copy& c) const { return analysis::comes_by_async_copies(c, p_.buffer(c.to.buffer), p_); }
  // The copies at the head of the loop, and what comes with them.
  size_t leading(const For& n) const {
    size_t count = 0;
    while (count < n.body.size() && n.body[count].as<Copy>() && is_plain(*n.body[count].as<Copy>())) ++count;
    return count;
  }
  // What keeps the loop from a ring; none: `brought` fills its tiles.
  std::string misfit(const For& n, std::vector<Brought>& brought) const {
    if (n.stages < kFewestSlots && !wants_two(n)) return "it has one stage";
    const size_t count = leading(n);
    std::vector<Brought> gathered;
    for (size_t i = count; may_gather_ && n.stages >= kFewestSlots && i < n.body.size(); ++i)
      if (const auto found = gather(n, i)) gathered.push_back(*found);
    if (count == 0 && gathered.empty())
      return "it does not begin with copies of whole 16-byte rows from global to shared memory";
    if (may_jump(n.body)) return "its body jumps";
    std::set<BufferId> filled;
    for (size_t i = 0; i < count; ++i) {
      const Copy& c = *n.body[i].as<Copy>();
      if (!filled.insert(c.to.buffer).second) return fmt::format("'{}' is written twice", p_.buffer(c.to.buffer).name);
      if (std::string why = no_tile_of(n, c.to.buffer); !why.empty()) return why;
      if (writes(n.body, p_.root(c.from.buffer)) > 0)
        return fmt::format("'{}' is written in the loop", p_.buffer(c.from.buffer).name);
      bool reads = false;  // what the copies' places depend on must be known ahead
      for (const Expr& e : c.from.min) walk(e, [&](const Expr& x) { reads = reads || x.as<Load>(); });
      if (reads) return fmt::format("where '{}' is read depends on memory", p_.buffer(c.from.buffer).name);
      brought.push_back({i, c.to.buffer});
    }
    brought.insert(brought.end(), gathered.begin(), gathered.end());
    return "";
  }
  // What keeps a buffer from being a tile of the loop's ring, wherever it comes from.
  std::string no_tile_of(const For& n, BufferId id) const {
    const std::string& name = p_.buffer(id).name;
    if (writes(n.body, id) != 1) return fmt::format("'{}' is written twice", name);
    if (names_as_a_whole(launch_.body, id)) return fmt::format("'{}' is used as a whole", name);
    if (accesses_of(launch_.body, id, p_) != accesses_of(n.body, id, p_))
      return fmt::format("'{}' is used outside of the loop", name);
    return "";
  }

  // A product of one stage would wait for memory in every turn, with all of its block: the next turn's tiles come
  // beside it, where they take little room.
  bool wants_two(const For& n) const {
    bool multiplies = false;
    walk(n.body, [&](const Stmt& s) { multiplies = multiplies || s.as<Gemm>() || s.as<Mma>(); });
    if (n.stages != 1 || !multiplies) return false;
    int64_t bytes = 0;
    for (BufferId id : used_roots(launch_.body, p_))
      if (p_.buffer(id).space == Space::Shared) bytes += bytes_on_chip(p_.buffer(id));
    for (size_t i = 0; i < leading(n); ++i) bytes += bytes_on_chip(p_.buffer(n.body[i].as<Copy>()->to.buffer));
    return bytes <= kLittle;
  }

  // ---- maps that gather
  // Whether a turn's statement is known before the turn: names of the loop's body do not say what it does.
  bool is_known_ahead(const For& n, const Stmt& s) const {
    const std::set<VarId> inside = bound_vars(n.body), own = bound_vars(Body{s});
    for (BufferId id : used_buffers({s}))
      if (stands_by(p_, id, inside) || stands_by(p_, id, {n.var})) return false;
    return std::ranges::none_of(used_vars(Body{s}), [&](VarId v) { return inside.contains(v) && !own.contains(v); });
  }
  // The Map of the loop at `i`, if it fills a tile with rows of a tensor by whole 16 bytes: of a row's number, what the
  // loop does not write says, or a fragment that another Map has filled with that alone.
  std::optional<Brought> gather(const For& n, size_t i) const {
    const auto* map = n.body[i].as<Map>();
    const auto* store = map && !map->body.empty() ? map->body.back().as<Store>() : nullptr;
    if (!store || store->queue != Queue::None || !is_known_ahead(n, n.body[i])) return std::nullopt;
    const BufferId id = store->to.buffer;
    const auto at = followed(store->to.indices, map->vars);
    if (p_.buffer(id).space != Space::Shared || !at || map->vars.size() != at->dims.size() ||
        at->dims.back() + 1 != static_cast<int>(map->vars.size()) || !writes_whole(n.body[i], id, p_) ||
        !is_wide(*map, *store))
      return std::nullopt;
    for (size_t k = 0; k < i; ++k)  // of the turn before
      if (accesses_of({n.body[k]}, id, p_) > 0) return std::nullopt;
    Brought out{i, id};
    for (BufferId read : analysis::read_by({n.body[i]}, p_)) {
      if (writes(n.body, read) == 0) continue;
      if (out.rows || p_.buffer(read).space != Space::Fragment) return std::nullopt;
      out.rows = rows_of(n, i, read);
      if (!out.rows) return std::nullopt;
    }
    return no_tile_of(n, id).empty() ? std::optional(out) : std::nullopt;
  }
  // The Map before statement `i` that fills the fragment, which that statement alone reads.
  std::optional<size_t> rows_of(const For& n, size_t i, BufferId fragment) const {
    for (size_t k = 0; k < i; ++k) {
      if (!n.body[k].as<Map>() || !analysis::written_by({n.body[k]}, p_).contains(fragment)) continue;
      bool fits = writes(n.body, fragment) == 1 && writes_whole(n.body[k], fragment, p_) &&
                  analysis::written_by({n.body[k]}, p_).size() == 1 && is_known_ahead(n, n.body[k]) &&
                  accesses_of(launch_.body, fragment, p_) ==
                      accesses_of({n.body[k]}, fragment, p_) + accesses_of({n.body[i]}, fragment, p_);
      for (BufferId id : analysis::read_by({n.body[k]}, p_)) fits = fits && writes(n.body, id) == 0;
      return fits ? std::optional(k) : std::nullopt;
    }
    return std::nullopt;
  }
  // Whether rows of the tile are whole 16-byte pieces of the tensor's, as they lie there, or zeros.
  bool is_wide(const Map& map, const Store& store) const {
    Substitution names;
    for (size_t k = 0; k + 1 < map.body.size(); ++k) {
      const auto* n = map.body[k].as<Let>();
      if (!n) return false;
      names[n->var] = substitute(n->value, names);
    }
    const auto* either = store.value.as<Select>();
    const auto* other = either ? either->b.as<Const>() : nullptr;
    if (either && (!other || other->bits != 0)) return false;
    const auto* from = (either ? either->a : store.value).as<Load>();
    if (!from || from->indices.empty()) return false;
    const VarId lane = map.vars.back();
    if (either && used_vars(substitute(either->condition, names)).contains(lane)) return false;
    std::vector<Expr> index;
    for (const Expr& e : from->indices) index.push_back(substitute(e, names));
    if (analysis::slope(index.back(), lane) != 1) return false;
    for (size_t d = 0; d + 1 < index.size(); ++d)
      if (used_vars(index[d]).contains(lane)) return false;
    Copy rows;
    rows.from.buffer = from->buffer, rows.from.min = index, rows.to = whole(store.to.buffer, p_);
    rows.from.min.back() = substitute(index.back(), {{lane, constant(p_.var(lane).type, int64_t{0})}});
    for (size_t d = 0; d < index.size(); ++d)
      rows.from.extent.push_back(d + 1 < index.size() ? constant(1) : map.extents.back());
    return p_.root(from->buffer) == from->buffer && !p_.buffer(from->buffer).address && is_plain(rows);
  }

  Body ring(const For& n, LocationId at, const std::vector<Brought>& brought) {
    // More than there are turns would stay empty.
    const int64_t turns = std::max(constant_int(n.extent).value_or(kMostSlots), kFewestSlots);
    const int64_t slots = std::min({std::max(n.stages, kFewestSlots), turns, kMostSlots});
    const DType type = p_.var(n.var).type;
    SlotRing ring{.slots = slots, .filled = SlotRing::Filled::CpAsync, .released = SlotRing::Released::Block};
    for (const Brought& b : brought) ring.tiles.push_back(b.tile);
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
      for (const Brought& b : brought) append(code, queued(in_slot(step).body(of_turn(n, b.at, add(n.begin, step)))));
      return fill(ring, turn(step), {std::move(code)}, at, binary(BinaryOp::Lt, step, n.extent));
    };
    // Which rows that iteration gathers, or the last one: there may be none after it.
    auto rows = [&](const Expr& step) {
      const Expr last = sub(add(n.begin, n.extent), constant(type, int64_t{1}));
      Body code;
      for (const Brought& b : brought)
        if (b.rows) append(code, of_turn(n, *b.rows, binary(BinaryOp::Min, add(n.begin, step), last)));
      return code;
    };
    Body out;
    for (int64_t s = 0; s + 1 < slots; ++s) {
      append(out, rows(constant(type, s)));
      append(out, issue(constant(type, s)));
    }
    append(out, rows(constant(type, slots - 1)));
    For loop = n;
    loop.kind = LoopKind::Serial, loop.stages = 0, loop.order.clear(), loop.stage.clear();
    const Expr step = sub(var(n.var, type), n.begin);
    loop.body = wait_full(ring, turn(step), at);
    append(loop.body, issue(add(step, constant(type, slots - 1))));
    append(loop.body, rows(add(step, constant(type, slots))));
    std::set<size_t> moved;
    for (const Brought& b : brought) {
      moved.insert(b.at);
      if (b.rows) moved.insert(*b.rows);
      gathers_ = gathers_ || n.body[b.at].as<Map>();
    }
    Body rest;
    for (size_t i = 0; i < n.body.size(); ++i)
      if (!moved.contains(i)) rest.push_back(n.body[i]);
    append(loop.body, in_slot(step).body(rest));
    out.push_back(make_stmt(std::move(loop), at));
    return out;
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
