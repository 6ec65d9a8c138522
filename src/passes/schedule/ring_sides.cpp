#include "passes/schedule/ring_sides.h"

#include "analysis/accessed.h"
#include "analysis/beyond.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "passes/schedule/pair_blocks.h"
#include "passes/schedule/role_code.h"
#include "plan/loop_orders.h"
#include "target/wgmma.h"

namespace tilewright::passes {

using namespace ir;
using analysis::FoundRings;
using analysis::holds_copies;
using analysis::is_moved;
using plan::Made;
using plan::OverlappedProducts;
using plan::Promoted;
using plan::Skew;
using Ring = analysis::FoundRing;

namespace {

class SidesWriter {
 public:
  SidesWriter(TileProgram& p, const Launch& launch, const FoundRings& found, const plan::Plan& plan)
      : p_(p),
        launch_(launch),
        rings_(found.rings),
        results_(found.results),
        products_(p, launch, found.rings),
        plan_(plan) {}

  RingSides run() {
    make_slots();
    make_counters();
    RingSides out;
    out.start = rests();
    loading_ = true;
    out.load = start_counters();
    append(out.load, loader(launch_.body, {}));
    loading_ = false;
    out.compute = start_counters();
    append(out.compute, into_slots({}).body(math(launch_.body)));
    out.rings = std::move(slots_);
    return out;
  }

 private:
  static constexpr int64_t kGroup = target::kWarpgroupThreads;
  static constexpr int64_t kTurnsTogether = 4;  // of a loop with two accumulators
  // How many turns a loop has taken in all, for each side on its own.
  using Counters = std::map<VarId, BufferId>;  // by the loop's variable

  void make_slots() {
    for (const Ring& r : rings_) {
      std::string name;
      for (BufferId t : r.tiles) name += (name.empty() ? "" : "_") + p_.buffer(t).name;
      SlotRing slots{.tiles = r.tiles, .slots = r.slots, .bytes = r.by_tma};
      if (r.gathers()) slots.filled = SlotRing::Filled::Threads, slots.threads = loading_threads();
      if (std::ranges::find(r.tiles, plan_.work.shared()) != r.tiles.end()) slots.peer = other_block(launch_);
      slots_.push_back(open_ring(p_, launch_, name, std::move(slots), launch_.threads[0] / kWarpThreads));
    }
  }
  Body rests() const {
    Body out;
    for (const Ring& r : rings_)
      for (const Stmt& s : r.rests) {
        Fill f = *s.as<Fill>();
        const auto tile = static_cast<size_t>(std::ranges::find(r.tiles, f.to.buffer) - r.tiles.begin());
        Region all = whole(slots_of(r).slots_of[tile], p_);
        for (size_t d = 0; d < f.to.min.size(); ++d) all.min[d + 1] = f.to.min[d], all.extent[d + 1] = f.to.extent[d];
        f.to = std::move(all);
        out.push_back(make_stmt(std::move(f), s->location));
      }
    return out;
  }
  int64_t loading_threads() const {
    const auto loads = std::ranges::find(plan_.roles, plan::Role::Job::Load, &plan::Role::job);
    return loads == plan_.roles.end() ? launch_.threads[0] : loads->loading * kWarpThreads;
  }
  const SlotRing& slots_of(const Ring& r) const { return slots_[static_cast<size_t>(&r - rings_.data())]; }

  // How often the ring has been filled before this iteration says which slot it is, and which round of the slots.
  Turn turn(const Ring& r, const Substitution& names) const {
    Expr count = constant(i32, int64_t{0});
    auto step = [&](const For* loop) { return cast(sub(var(loop->var, p_.var(loop->var).type), loop->begin), i32); };
    if (r.gate)
      count = var(before_.at(r.nest.back()->var), i32);
    else if (r.counted)
      count = add(var(before_.at(r.nest.back()->var), i32), step(r.nest.back()));
    else
      for (const For* loop : r.nest) count = add(mul(count, cast(loop->extent, i32)), step(loop));
    return turn_of(r.slots, substitute(count, names));
  }
  void make_counters() {
    for (const Ring& r : rings_) {
      if (!r.counted) continue;
      for (Counters* side : {&loader_counters_, &math_counters_}) {
        if (side->contains(r.nest.back()->var)) continue;
        Buffer b;
        b.name = p_.var(r.nest.back()->var).name + "_before", b.type = i32, b.space = Space::Local;
        b.launch = static_cast<int32_t>(&launch_ - p_.launches.data());
        side->emplace(r.nest.back()->var, p_.new_buffer(std::move(b)));
      }
    }
  }
  Body start_counters() {
    Body out;
    for (const auto& [loop, id] : counters()) {
      out.push_back(make_stmt(Store{{id, {}}, constant(i32, int64_t{0})}, launch_.location));
      before_[loop] = p_.new_var(p_.buffer(id).name, i32);
    }
    return out;
  }
  const Counters& counters() const { return loading_ ? loader_counters_ : math_counters_; }
  // Tile operations of the loop that read a slot must not read a thread's own variable: the count has a name there.
  void name_turns(const For& loop, LocationId at, Body& out) const {
    if (const auto found = counters().find(loop.var); found != counters().end() && !is_gated(loop.var))
      out.push_back(make_stmt(Let{before_.at(loop.var), load(found->second, {}, i32)}, at));
  }
  void count_turns(const For& loop, const Substitution& names, LocationId at, Body& out) const {
    const auto found = counters().find(loop.var);
    if (found == counters().end() || is_gated(loop.var)) return;
    const Expr now = load(found->second, {}, i32), taken = cast(turns_of(loop), i32);
    out.push_back(make_stmt(Store{{found->second, {}}, add(now, substitute(taken, names))}, at));
  }
  bool is_gated(VarId loop) const {
    return std::ranges::any_of(rings_, [&](const Ring& r) { return r.gate && r.nest.back()->var == loop; });
  }
  // A side of a condition: where rings are filled in its turns alone, each counts one.
  Body gated(const Body& side, Body code, LocationId at) const {
    const auto r = std::ranges::find_if(rings_, [&](const Ring& ring) { return ring.gate == &side; });
    if (r == rings_.end()) return code;
    const VarId loop = r->nest.back()->var;
    const Expr fills = var(before_.at(loop), i32);
    Body out{make_stmt(Let{before_.at(loop), load(counters().at(loop), {}, i32)}, at)};
    append(out, std::move(code));
    out.push_back(make_stmt(Store{{counters().at(loop), {}}, add(fills, constant(i32, int64_t{1}))}, at));
    return out;
  }
  // A loop that ends before it begins has no turns.
  static Expr turns_of(const For& loop) {
    return binary(BinaryOp::Max, loop.extent, constant(loop.extent->type, int64_t{0}));
  }
  const Ring* begins(const Stmt& s) const {
    for (const Ring& r : rings_)
      if (&*r.copies[0] == &*s) return &r;
    return nullptr;
  }

  // The loops and names around the copies, and the copies. Variables get names of their own.
  Body loader(const Body& in, Substitution names) {
    Body out;
    for (const Stmt& s : in) {
      if (const auto* n = s.as<Let>(); n && !results_.contains(n->var)) {
        const VarId own = p_.new_var(p_.var(n->var).name, p_.var(n->var).type);
        out.push_back(make_stmt(Let{own, substitute(n->value, names)}, s->location));
        names[n->var] = var(own, p_.var(own).type);
      } else if (const Ring* r = begins(s)) {
        for (Stmt& x : fill(*r, in, names)) out.push_back(std::move(x));
      } else if (const auto* loop = s.as<For>(); loop && holds_copies(rings_, s)) {
        For f = serial(*loop);
        f.var = p_.new_var(p_.var(loop->var).name, p_.var(loop->var).type);
        f.begin = substitute(loop->begin, names), f.extent = substitute(loop->extent, names);
        name_turns(*loop, s->location, out);
        Substitution inside = names;
        inside[loop->var] = var(f.var, p_.var(f.var).type);
        append(out, rows_at(*loop, names, f.begin));
        f.body = loader(loop->body, inside);
        append(f.body, next_rows(*loop, names, f));
        out.push_back(make_stmt(std::move(f), s->location));
        count_turns(*loop, names, s->location, out);
      } else if (const auto* n = s.as<If>(); n && holds_copies(rings_, s)) {
        If f{substitute(n->condition, names), gated(n->then_body, loader(n->then_body, names), s->location),
             gated(n->else_body, loader(n->else_body, names), s->location)};
        out.push_back(make_stmt(std::move(f), s->location));
      }
    }
    return out;
  }
  // Which rows maps gather in that turn of the loop, which has no wait for memory then. `changing`: in each turn
  // others.
  Body rows_at(const For& loop, Substitution names, const Expr& turn, bool changing = false) {
    names[loop.var] = turn;
    Body out;
    for (const Ring& r : rings_)
      for (const Stmt& s : r.rows)
        if (!r.nest.empty() && r.nest.back() == &loop && (!changing || used_vars(Body{s}).contains(loop.var)))
          append(out, renamed(p_, substitute(Body{s}, names)));
    return out;
  }
  // Those of the turn behind `f`'s, or of the last: there may be none after it.
  Body next_rows(const For& loop, const Substitution& names, const For& f) {
    const DType type = p_.var(f.var).type;
    const Expr one = constant(type, int64_t{1}), last = sub(add(f.begin, f.extent), one);
    return rows_at(loop, names, binary(BinaryOp::Min, add(var(f.var, type), one), last), true);
  }
  static For serial(const For& n) {
    For f = n;
    if (f.kind == LoopKind::Pipelined) f.kind = LoopKind::Serial;
    f.stages = 0, f.order.clear(), f.stage.clear();
    return f;
  }
  Body fill(const Ring& r, const Body& in, const Substitution& names) const {
    const LocationId at = r.copies[0]->location;
    const bool clips = plan_.rings.at(static_cast<size_t>(&r - rings_.data())).boxes == plan::Ring::Boxes::Clipped;
    const auto beyond = [&](const Stmt& s) {
      const Copy& c = *s.as<Copy>();
      return clips && c.to.buffer != plan_.work.shared() ? analysis::beyond_its_tensor(c, *r.nest.back(), launch_, p_)
                                                         : std::nullopt;
    };
    const bool alone = std::ranges::count_if(in, [&](const Stmt& s) { return clips && r.has(s) && beyond(s); }) == 1;
    Body out, copies, gathers;
    passes::Part part{constant(boolean, int64_t{1}), {}, constant(i32, int64_t{0})};
    for (const Stmt& s : in) {
      if (!r.has(s)) continue;
      if (!s.as<Copy>()) {
        append(gathers, into_slots(names).body(renamed(p_, substitute(Body{s}, names))));
        continue;
      }
      Copy c = *substitute(Body{s}, names)[0].as<Copy>();
      // A block that brings half of a tile for both receives all of it.
      const int64_t bytes = bytes_in(c.to, p_);
      if (c.to.buffer == plan_.work.shared()) c = half_for_both(c, launch_);
      c.to = into_slots(names).region(c.to);
      if (const auto found = beyond(s))
        clip(c, *found, alone, bytes, s->location, out, part);
      else
        take_whole(c, bytes, s->location, part);
      copies.push_back(make_stmt(std::move(c), s->location));
    }
    append(copies, std::move(gathers));  // TMA is at work beside them
    append(out, clips ? passes::fill(slots_of(r), turn(r, names), std::move(copies), first_round(r, names, part), at)
                      : passes::fill(slots_of(r), turn(r, names), {std::move(copies)}, at));
    return out;
  }
  // In the first turns of the loop boxes bring zeros for what lies beyond, which stay.
  static passes::Part first_round(const Ring& r, const Substitution& names, passes::Part part) {
    const For& loop = *r.nest.back();
    const Expr turn = substitute(sub(var(loop.var, loop.extent->type), loop.begin), names);
    const Expr first = binary(BinaryOp::Lt, turn, constant(turn->type, r.slots));
    part.whole = binary(BinaryOp::Or, first, part.whole);
    return part;
  }
  static void take_whole(const Copy& c, int64_t bytes, LocationId at, passes::Part& part) {
    part.copies.push_back(make_stmt(Copy(c), at));
    part.bytes = add(part.bytes, constant(i32, bytes));
  }
  // What lies inside of the tensor, piece by piece; how many there are has a name before. Without another tile of the
  // ring that is clipped, some of this one is missing.
  void clip(const Copy& c, const analysis::Beyond& beyond, bool alone, int64_t bytes, LocationId at, Body& out,
            passes::Part& part) const {
    const int64_t whole = constant_int(c.from.extent[beyond.dim]).value_or(0);
    Expr inside = beyond.inside(c, p_);
    if (!constant_int(inside)) {
      const VarId count = p_.new_var(p_.buffer(c.from.buffer).name + "_inside", i32);
      out.push_back(make_stmt(Let{count, std::exchange(inside, var(count, i32))}, at));
    }
    const auto piece = [&](const Expr& number) {
      Copy some = c;
      const auto cut = [&](Region& r, size_t d) {
        r.min[d] = add(r.min[d], cast(mul(number, constant(i32, beyond.piece)), r.min[d]->type));
        r.extent[d] = constant(r.extent[d]->type, beyond.piece);
      };
      cut(some.from, beyond.dim), cut(some.to, some.to.extent.size() - (beyond.is_columns ? 1 : 2));
      return make_stmt(std::move(some), at);
    };
    // Where all of them come so does the box.
    const int64_t most = beyond.is_known ? beyond.pieces : beyond.pieces - 1;
    Body some;
    if (most > 1 && !beyond.is_columns) {
      For f;
      f.var = p_.new_var("piece", i32), f.begin = constant(i32, int64_t{0}), f.extent = inside;
      f.body = {piece(var(f.var, i32))};
      some.push_back(make_stmt(std::move(f), at));
    } else {
      // Panels begin at places that are known.
      for (int64_t i = 0; i < most; ++i) {
        const Expr comes = binary(BinaryOp::Lt, constant(i32, i), inside);
        const auto surely = constant_int(comes);
        if (surely == 0) continue;
        const Stmt one = piece(constant(i32, i));
        some.push_back(surely ? one : make_stmt(If{comes, {one}, {}}, at));
      }
    }
    Expr all = constant(boolean, int64_t{0}), brought = mul(inside, constant(i32, beyond.piece * bytes / whole));
    if (!beyond.is_known) all = binary(BinaryOp::Eq, inside, constant(i32, beyond.pieces));
    if (!beyond.is_known && !alone) {
      some = {make_stmt(If{all, {make_stmt(Copy(c), at)}, std::move(some)}, at)};
      brought = select(all, constant(i32, bytes), brought);
    }
    append(part.copies, std::move(some));
    part.bytes = add(part.bytes, brought);
    part.whole = logical_and(part.whole, all);
  }
  IntoSlots into_slots(const Substitution& names) const {
    std::map<BufferId, IntoSlots::Slot> all;
    for (const Ring& r : rings_) use_slot(slots_of(r), turn(r, names).slot, p_, all);
    return IntoSlots(std::move(all));
  }

  Body math(const Body& in) {
    Body out;
    for (const Stmt& s : in) {
      if (is_moved(rings_, s)) continue;
      for (const Ring& r : rings_)
        if (r.first_use == &*s) wait_full(r, {}, s->location, out);
      if (const auto* loop = s.as<For>()) name_turns(*loop, s->location, out);
      if (const auto* loop = s.as<For>()) {
        append(out, turns(*loop, s->location));
        count_turns(*loop, {}, s->location, out);
      } else if (const auto* n = s.as<If>(); n && holds_copies(rings_, s)) {
        out.push_back(make_stmt(If{n->condition, gated(n->then_body, math(n->then_body), s->location),
                                   gated(n->else_body, math(n->else_body), s->location)},
                                s->location));
      } else {
        out.push_back(s);
      }
      for (const Ring& r : rings_)
        if (r.last_use == &*s) give_back(r, turn(r, {}).slot, s->location, out);
    }
    return out;
  }
  // A loop, in the order of its turns that the plan says.
  Body turns(const For& loop, LocationId at) {
    using How = plan::Order::How;
    const auto how = plan_.order_of(loop.var);
    if (how == How::Skewed) {
      const auto parts = products_.skewed(loop);
      check_internal(parts.has_value(), "a loop whose products could be skewed cannot be");
      return skew(*parts, loop, at);
    }
    if (how == How::Alternating) {
      const auto parts = products_.promoted(loop);
      check_internal(parts.has_value(), "a loop whose product could alternate cannot");
      return alternate(*parts, loop, at);
    }
    For f = serial(loop);
    if (!how) {
      f.body = math(loop.body);
      return {make_stmt(std::move(f), at)};
    }
    const Made made = how == How::MadeBeside ? products_.makes_operand(loop) : Made{};
    const Ring* ring = how == How::MadeBeside ? made.brought : products_.feeds_one_gemm(loop);
    check_internal(ring, "a loop whose product could run on cannot be");
    f.body = overlap(*ring, loop);
    if (made.brought) f.body = into_two_slots(made.tile, loop, f.body);
    Body out{make_stmt(std::move(f), at)};
    finish(*ring, loop, at, out);
    return out;
  }
  // One group of wgmma stays open while the next slot is waited for; a slot goes back once the group after it is
  // issued.
  Body overlap(const Ring& r, const For& loop) {
    Body out;
    for (const Stmt& s : loop.body) {
      if (is_moved(rings_, s)) continue;
      if (!s.as<Gemm>()) {
        append(out, math({s}));
        continue;
      }
      const LocationId at = s->location;
      wait_full(r, {}, at, out);
      out.push_back(in_flight(s));
      out.push_back(make_stmt(Commit{Queue::Wgmma}, at));
      out.push_back(make_stmt(Drain{Queue::Wgmma, 1, {}}, at));
      const Expr k = var(loop.var, p_.var(loop.var).type);
      const Substitution before{{loop.var, sub(k, constant(k->type, int64_t{1}))}};
      Body release;
      give_back(r, turn(r, before).slot, at, release);
      out.push_back(make_stmt(If{binary(BinaryOp::Lt, loop.begin, k), std::move(release), {}}, at));
    }
    return out;
  }
  void finish(const Ring& r, const For& loop, LocationId at, Body& out) const {
    const DType type = p_.var(loop.var).type;
    const Substitution last{{loop.var, sub(add(loop.begin, loop.extent), constant(type, int64_t{1}))}};
    out.push_back(make_stmt(Drain{Queue::Wgmma, 0, {}}, at));
    Body release;
    give_back(r, turn(r, last).slot, at, release);
    const Expr any = binary(BinaryOp::Lt, constant(loop.extent->type, int64_t{0}), loop.extent);
    if (constant_int(any) == 1)
      append(out, std::move(release));
    else
      out.push_back(make_stmt(If{any, std::move(release), {}}, at));
  }
  Body into_two_slots(BufferId tile, const For& loop, const Body& in) {
    const DType type = p_.var(loop.var).type;
    const Expr turn = cast(sub(var(loop.var, type), loop.begin), i32);
    return IntoSlots({{tile, {ring_of(p_, tile, 2), turn_of(2, turn).slot}}}).body(in);
  }
  void wait_full(const Ring& r, const Substitution& names, LocationId at, Body& out) const {
    append(out, passes::wait_full(slots_of(r), turn(r, names), at));
  }
  // Statements of the loop's body as another turn runs them.
  Body at_turn(const Body& body, const Substitution& names) const {
    return into_slots(names).body(substitute(body, names));
  }
  static Stmt in_flight(const Stmt& s) {
    Gemm g = *s.as<Gemm>();
    g.completion.queue = Queue::Wgmma;
    return make_stmt(std::move(g), s->location);
  }
  // Turn 0 up to its second product; then each turn's first product beside the second of the one before; the last one.
  Body skew(const Skew& s, const For& loop, LocationId at) {
    const DType type = p_.var(loop.var).type;
    const Expr any = binary(BinaryOp::Lt, constant(type, int64_t{0}), loop.extent);
    if (constant_int(any) == 0) return {};
    const Expr i = var(loop.var, type), one = constant(type, int64_t{1});
    const Substitution first{{loop.var, loop.begin}}, before{{loop.var, sub(i, one)}},
        last{{loop.var, sub(add(loop.begin, loop.extent), one)}};
    Body head = s.head, tail = s.map, out;
    append(tail, s.pack);
    Body start = s.head;
    wait_full(*s.first.operand, {}, at, start);
    start.push_back(s.first.gemm);
    append(out, renamed(p_, at_turn(start, first)));
    give_back(*s.first.operand, turn(*s.first.operand, first).slot, at, out);
    append(out, renamed(p_, at_turn(tail, first)));

    For steady = serial(loop);
    steady.begin = add(loop.begin, one), steady.extent = sub(loop.extent, one);
    Body& body = steady.body;
    body = head;
    wait_full(*s.first.operand, {}, at, body);
    body.push_back(in_flight(s.first.gemm));
    body.push_back(make_stmt(Commit{Queue::Wgmma}, at));
    wait_full(*s.second.operand, before, at, body);
    append(body,
           into_slots(before).body({in_flight(s.second.gemm)}));  // what it reads elsewhere is the same every turn
    body.push_back(make_stmt(Commit{Queue::Wgmma}, at));
    body.push_back(make_stmt(Drain{Queue::Wgmma, 1, {}}, at));
    give_back(*s.first.operand, turn(*s.first.operand, {}).slot, at, body);
    append(body, s.map);
    // The device compiler moves the wait for the product up before the map, but not over another wait: that for v,
    // which has come and whose slot is still ours. Three warpgroups fill each other's gaps then (d 64: 454 to 530
    // TFLOP/s); two take turns of themselves while they wait early (487 against 463, d 128 702 against 678).
    if (launch_.threads[0] > 2 * kGroup) wait_full(*s.second.operand, before, at, body);
    body.push_back(make_stmt(Drain{Queue::Wgmma, 0, {}}, at));
    give_back(*s.second.operand, turn(*s.second.operand, before).slot, at, body);
    append(body, s.pack);
    out.push_back(make_stmt(std::move(steady), at));

    wait_full(*s.second.operand, last, at, out);
    append(out, at_turn({s.second.gemm}, last));
    give_back(*s.second.operand, turn(*s.second.operand, last).slot, at, out);
    return constant_int(any) == 1 ? out : Body{make_stmt(If{any, std::move(out), {}}, at)};
  }

  // A second tile like this one, with views for all of its views.
  std::map<BufferId, BufferId> twins(BufferId root) {
    std::map<BufferId, BufferId> out;
    const auto twin = [&](BufferId id) {
      Buffer copy = p_.buffer(id);
      copy.name += "_other";
      if (copy.is_view()) copy.root = out.at(root);
      out[id] = p_.new_buffer(std::move(copy));
    };
    twin(root);
    for (uint32_t i = 0, count = static_cast<uint32_t>(p_.buffers.size()); i < count; ++i)
      if (p_.buffer({i}).is_view() && p_.buffer({i}).root == root) twin({i});
    return out;
  }
  // Not once for a tile of the grid.
  static bool is_filled_in(const Ring& r, const For& loop) { return !r.nest.empty() && r.nest.back() == &loop; }
  // Two accumulators, in turn: each product of a few turns beside what is made of the one before. The last of them is
  // waited for: ptxas 13.0 puts one product after the other where a loop begins with one under way whose registers it
  // reads later (C7514). Turns that are left are as they were.
  Body alternate(const Promoted& s, const For& loop, LocationId at) {
    const DType type = p_.var(loop.var).type;
    const auto number = [&](int64_t n) { return constant(type, n); };
    const BufferId own = p_.root(s.gemm.as<Gemm>()->c.buffer);
    const std::array<std::map<BufferId, BufferId>, 2> accumulators = {std::map<BufferId, BufferId>{}, twins(own)};
    const auto into = [&](Body body, const Expr& turn, size_t accumulator) {
      body = renamed(p_, at_turn(body, {{loop.var, turn}}));
      return with_buffers(body, accumulators[accumulator]);
    };
    const auto multiply = [&](const Expr& turn, size_t accumulator, Body& out) {
      for (const Ring& r : rings_)
        if (is_filled_in(r, loop)) wait_full(r, {{loop.var, turn}}, at, out);
      Body product = s.head;
      product.push_back(in_flight(s.gemm));
      append(out, into(std::move(product), turn, accumulator));
      out.push_back(make_stmt(Commit{Queue::Wgmma}, at));
    };
    const auto needs_product = [&](const Stmt& x) { return analysis::accessed_by({x}, p_).contains(own); };
    const auto waited = std::ranges::find_if(s.rest, needs_product) - s.rest.begin();
    const auto finish = [&](const Expr& at_turn, size_t accumulator, int64_t open, Body& out) {
      Body rest = into(s.rest, at_turn, accumulator);
      rest.insert(rest.begin() + waited, make_stmt(Drain{Queue::Wgmma, open, {}}, at));
      append(out, std::move(rest));
      for (const Ring& r : rings_)
        if (is_filled_in(r, loop)) give_back(r, turn(r, {{loop.var, at_turn}}).slot, at, out);
    };
    For steady = serial(loop);
    steady.var = p_.new_var(p_.var(loop.var).name + "_of_" + std::to_string(kTurnsTogether), type);
    steady.begin = number(0);
    steady.extent = binary(BinaryOp::FloorDiv, cast(turns_of(loop), type), number(kTurnsTogether));
    steady.body = {};
    const Expr first = add(loop.begin, mul(var(steady.var, type), number(kTurnsTogether)));
    for (int64_t i = 0; i < kTurnsTogether; ++i) {
      multiply(add(first, number(i)), static_cast<size_t>(i % 2), steady.body);
      if (i > 0) finish(add(first, number(i - 1)), static_cast<size_t>((i - 1) % 2), 1, steady.body);
    }
    finish(add(first, number(kTurnsTogether - 1)), (kTurnsTogether - 1) % 2, 0, steady.body);
    For left = serial(loop);
    const Expr done = mul(steady.extent, number(kTurnsTogether));
    left.begin = add(loop.begin, done), left.extent = sub(cast(turns_of(loop), type), done);
    left.body = {};
    multiply(var(loop.var, type), 0, left.body);
    finish(var(loop.var, type), 0, 0, left.body);
    Body out;
    if (constant_int(steady.extent) != 0) out.push_back(make_stmt(std::move(steady), at));
    if (constant_int(left.extent) != 0) out.push_back(make_stmt(std::move(left), at));
    return out;
  }

  void give_back(const Ring& r, const Expr& slot, LocationId at, Body& out) const {
    append(out, release(slots_of(r), slot, at));
  }

  TileProgram& p_;
  const Launch& launch_;
  const std::vector<Ring>& rings_;
  std::vector<SlotRing> slots_;  // of each ring
  const std::set<VarId>& results_;
  const OverlappedProducts products_;
  const plan::Plan& plan_;
  Counters loader_counters_, math_counters_;
  std::map<VarId, VarId> before_;  // names of the counts by the loop's variable, on the side that is being written
  bool loading_ = false;
};

}  // namespace

RingSides write_ring_sides(TileProgram& program, const Launch& launch, const FoundRings& found,
                           const plan::Plan& plan) {
  return SidesWriter(program, launch, found, plan).run();
}

}  // namespace tilewright::passes
