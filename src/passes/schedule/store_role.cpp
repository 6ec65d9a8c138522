// A role that stores what loops of the computing threads leave in their turns. Each tile on its way is a ring: those
// who compute fill a place and arrive, the warp that stores waits, begins the store, and gives the place back when TMA
// has read it.
#include "analysis/turns_apart.h"
#include "ir/effects.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/ring.h"
#include "passes/schedule/role_code.h"
#include "passes/schedule/schedules.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class StoreRole {
 public:
  StoreRole(TileProgram& p, const Launch& launch, int64_t places, int64_t warps, const Body& compute)
      : p_(p), launch_(launch), places_(places), warps_(warps), compute_(compute) {
    walk(compute, [&](const Stmt& s) {
      if (const auto* let = s.as<Let>()) names_[let->var] = let->value;
    });
  }

  OwnWarp run(Body& compute) {
    look_at(compute_, {});
    if (moved_.empty()) return {.why = "no loop leaves a tile by TMA in its turns"};
    if (why_.empty()) look_at_tensors();
    if (!why_.empty()) return {.why = why_};
    Body own = slice(compute_, {}), rest = without(compute_);
    compute = start(true), append(compute, std::move(rest));
    Body code = start(false);
    append(code, std::move(own));
    return {.code = std::move(code), .names = std::move(own_names_)};
  }

 private:
  // Places of a tile that is on its way, and how often they have been filled, as each side knows it.
  struct Way {
    SlotRing ring;
    BufferId filled, stored;
  };
  // A tile goes down to shared memory, and away from there by a store that is a group of its own.
  struct Leaving {
    const Copy *down, *away;
    bool waits = false, in_order = false;  // for stores before, until they have read; until they are written
    size_t begin = 0, end = 0;             // statements of the body
  };
  static std::optional<Leaving> leaving(const Body& body, size_t i, const ProgramTables& p) {
    const auto* drain = body[i].as<Drain>();
    Leaving out{.down = nullptr, .away = nullptr, .begin = i};
    if (drain && drain->queue == Queue::BulkStore) out.waits = true, out.in_order = drain->written, ++i;
    if (i + 2 >= body.size()) return std::nullopt;
    out.down = body[i].as<Copy>(), out.away = body[i + 1].as<Copy>(), out.end = i + 3;
    const auto* commit = body[i + 2].as<Commit>();
    const bool is_one = out.down && out.away && commit && commit->queue == Queue::BulkStore &&
                        out.away->completion.queue == Queue::BulkStore && out.down->completion.immediate() &&
                        p.buffer(out.down->from.buffer).space == Space::Fragment &&
                        out.down->to.buffer == out.away->from.buffer && equal(out.down->to.min, out.away->from.min) &&
                        equal(out.down->to.extent, out.away->from.extent) && out.away->from.min.size() == 3;
    return is_one ? std::optional(out) : std::nullopt;
  }

  // ---- which there are, and what keeps another warp from storing them
  void look_at(const Body& body, std::vector<const For*> nest) {
    for (size_t i = 0; i < body.size(); ++i) {
      const Stmt& s = body[i];
      const auto* loop = s.as<For>();
      if (loop || s.as<If>()) {
        std::vector<const For*> inside = nest;
        if (loop) inside.push_back(loop);
        const size_t before = moved_.size();
        for_each_body(s, [&](const Body& inner) { look_at(inner, inside); });
        if (moved_.size() == before) continue;
        around_.insert(&*s);
        if (loop && may_jump(loop->body)) refuse("a loop that leaves tiles may end before its last turn");
        for_each_expr(s, [&](const Expr& e) { need(e); });
        continue;
      }
      const auto found = leaving(body, i, p_);
      if (!found) continue;
      i = found->end - 1;
      const bool in_turns = std::ranges::any_of(nest, [](const For* n) { return n->kind != LoopKind::Grid; });
      if (!in_turns) continue;
      moved_.insert(found->away);
      for (const Expr& e : found->away->to.min) need(e);
      const BufferId tile = found->away->from.buffer;
      if (!ways_.contains(tile)) ways_.emplace(tile, way_of(tile, *found->away));
    }
  }
  void refuse(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }
  // What the other warp computes for itself: from names, numbers of blocks, and memory that stays as it is.
  void need(const Expr& e) {
    if (!analysis::keeps_loads(p_, launch_, compute_, e)) refuse("where a tile goes is read from memory that changes");
    walk(e, [&](const Expr& x) {
      const auto* load = x.as<Load>();
      if (load && p_.buffer(p_.root(load->buffer)).space != Space::Global)
        refuse("where a tile goes is known to those who compute alone");
    });
    for (VarId v : used_vars(e)) {
      if (std::ranges::find(launch_.thread, v) != launch_.thread.end())
        refuse("where a tile goes depends on the thread");
      const auto name = names_.find(v);
      if (name != names_.end() && needed_.insert(v).second) need(name->second);
    }
  }
  // Another warp's stores have no order with those of others.
  void look_at_tensors() {
    std::set<BufferId> tensors;
    for (const Copy* away : moved_) tensors.insert(p_.root(away->to.buffer));
    walk(compute_, [&](const Stmt& s) {
      if (const auto* copy = s.as<Copy>(); copy && moved_.contains(copy)) return;
      if (s.as<For>() || s.as<If>() || s.as<Role>()) return;
      for (const Effect& e : effects_of(s).list)
        if (e.region.valid() && e.access != Access::Order && tensors.contains(p_.root(e.region.buffer)))
          refuse(fmt::format("'{}' is touched elsewhere, too", p_.buffer(e.region.buffer).name));
    });
  }

  // ---- rings
  Way way_of(BufferId tile, const Copy& away) {
    Buffer b = p_.buffer(tile);
    b.shape = {constant(i32, places_), away.from.extent[1], away.from.extent[2]};
    Way out{
        .ring = {.tiles = {tile}, .slots = places_, .filled = SlotRing::Filled::Arrive}, .filled = {}, .stored = {}};
    out.ring.full = new_barriers(p_, launch_, BarrierUse::Full, b.name + "_full", places_, warps_);
    out.ring.empty = new_barriers(p_, launch_, BarrierUse::Empty, b.name + "_empty", places_, 1);
    for (BufferId* count : {&out.filled, &out.stored}) {
      Buffer number;
      number.name = b.name + (count == &out.filled ? "_filled" : "_stored"), number.type = i32;
      number.space = Space::Local, number.launch = static_cast<int32_t>(&launch_ - p_.launches.data());
      *count = p_.new_buffer(std::move(number));
    }
    out.ring.slots_of = {p_.new_buffer(std::move(b))};
    return out;
  }
  Body start(bool fills) const {
    Body out;
    for (const auto& [tile, way] : ways_)
      out.push_back(
          make_stmt(Store{{fills ? way.filled : way.stored, {}}, constant(i32, int64_t{0})}, launch_.location));
    return out;
  }
  // Code of one fill, by its number.
  template <class Code>
  Body counted(const Way& way, bool fills, LocationId at, Code code) {
    const BufferId count = fills ? way.filled : way.stored;
    const VarId name = p_.new_var(p_.buffer(count).name, i32);
    const Expr number = var(name, i32);
    Body out{make_stmt(Let{name, load(count, {}, i32)}, at)};
    append(out, code(turn_of(way.ring.slots, number)));
    out.push_back(make_stmt(Store{{count, {}}, add(number, constant(i32, int64_t{1}))}, at));
    return out;
  }
  static Region place(const Way& way, const Expr& slot, Region r) {
    r.buffer = way.ring.slots_of[0], r.min[0] = slot;
    return r;
  }

  // ---- the two sides
  Body without(const Body& in) {
    Body out;
    for (size_t i = 0; i < in.size(); ++i) {
      const auto found = leaving(in, i, p_);
      if (found && moved_.contains(found->away)) {
        const LocationId at = in[found->end - 3]->location;
        const Way& way = ways_.at(found->away->from.buffer);
        append(out, counted(way, true, at, [&](const Turn& turn) {
                 Copy down = *found->down;
                 down.to = place(way, turn.slot, down.to);
                 return fill(way.ring, turn, {Body{make_stmt(std::move(down), at)}}, at);
               }));
        i = found->end - 1;
      } else if (const auto* loop = in[i].as<For>()) {
        For f = *loop;
        f.body = without(loop->body);
        out.push_back(make_stmt(std::move(f), in[i]->location));
      } else if (const auto* n = in[i].as<If>()) {
        out.push_back(make_stmt(If{n->condition, without(n->then_body), without(n->else_body)}, in[i]->location));
      } else {
        out.push_back(in[i]);
      }
    }
    return out;
  }
  // The loops, names and conditions around what is moved, and that. Variables get names of their own.
  Body slice(const Body& in, Substitution names) {
    Body out;
    const auto own = [&](VarId v) {
      const VarId fresh = p_.new_var(p_.var(v).name, p_.var(v).type);
      names[v] = var(fresh, p_.var(v).type);
      own_names_.emplace_back(v, fresh);
      return fresh;
    };
    for (size_t i = 0; i < in.size(); ++i) {
      const LocationId at = in[i]->location;
      const auto found = leaving(in, i, p_);
      if (const auto* let = in[i].as<Let>(); let && needed_.contains(let->var)) {
        const Expr value = substitute(let->value, names);
        out.push_back(make_stmt(Let{own(let->var), value}, at));
      } else if (found && moved_.contains(found->away)) {
        append(out, stored(*found, names, in[found->end - 2]->location));
        i = found->end - 1;
      } else if (!around_.contains(&*in[i])) {
        continue;
      } else if (const auto* loop = in[i].as<For>()) {
        Substitution outer = names;
        For f = *loop;
        f.begin = substitute(loop->begin, names), f.extent = substitute(loop->extent, names);
        f.var = own(loop->var), f.body = slice(loop->body, names);
        names = std::move(outer);
        out.push_back(make_stmt(std::move(f), at));
      } else if (const auto* n = in[i].as<If>()) {
        out.push_back(
            make_stmt(If{substitute(n->condition, names), slice(n->then_body, names), slice(n->else_body, names)}, at));
      }
    }
    return out;
  }
  Body stored(const Leaving& found, const Substitution& names, LocationId at) {
    const Way& way = ways_.at(found.away->from.buffer);
    return counted(way, false, at, [&](const Turn& turn) {
      Body out = wait_full(way.ring, turn, at);
      if (found.in_order) out.push_back(make_stmt(Drain{Queue::BulkStore, 0, {}, true}, at));
      Copy away = *substitute(Body{make_stmt(Copy(*found.away), at)}, names)[0].as<Copy>();
      away.from = place(way, turn.slot, away.from);
      out.push_back(make_stmt(std::move(away), at));
      out.push_back(make_stmt(Commit{Queue::BulkStore}, at));
      out.push_back(make_stmt(Drain{Queue::BulkStore, 0, {}}, at));
      append(out, release(way.ring, turn.slot, at));
      return out;
    });
  }

  TileProgram& p_;
  const Launch& launch_;
  const int64_t places_, warps_;
  const Body compute_;
  std::map<VarId, Expr> names_;
  std::set<VarId> needed_;            // names that the other warp needs
  std::set<const Copy*> moved_;       // stores that it does
  std::set<const StmtNode*> around_;  // loops and conditions
  std::map<BufferId, Way> ways_;      // by the tile in shared memory, as it was
  std::vector<std::pair<VarId, VarId>> own_names_;
  std::string why_;
};

}  // namespace

OwnWarp store_role(TileProgram& p, const Launch& launch, const plan::Use& use, int64_t warps, Body& compute) {
  return StoreRole(p, launch, use.number, warps, compute).run(compute);
}

}  // namespace tilewright::passes
