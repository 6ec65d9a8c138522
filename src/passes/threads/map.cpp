// A Map as the points of one thread. Neighbours along the last dimension that memory holds side by side are moved by
// one wide access, into or from registers, before or after the points are computed.
#include "analysis/accessed.h"
#include "analysis/anywhere.h"
#include "analysis/body_order.h"
#include "analysis/divisibility.h"
#include "analysis/panels.h"
#include "analysis/slope.h"
#include "analysis/wide_atomics.h"
#include "ir/buffer_vars.h"
#include "ir/names.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "ir/zero.h"
#include "passes/assume_fast_calls.h"
#include "passes/named_barriers.h"
#include "passes/threads/collectives.h"
#include "passes/threads/copied_points.h"
#include "passes/threads/elementwise.h"
#include "passes/threads/fragment_box.h"
#include "passes/threads/lane_conditions.h"
#include "passes/threads/map_lanes.h"
#include "passes/threads/map_sums.h"
#include "passes/threads/matrix_stores.h"
#include "passes/threads/points_in_order.h"
#include "passes/threads/quotients.h"
#include "passes/threads/shared_loads.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::begins_anywhere;
using analysis::BodyOrder;
using analysis::followed;

namespace {

constexpr int64_t kAccessBytes = 16;    // the widest access of one thread
constexpr int64_t kUnrolledPoints = 8;  // of a loop that touches no registers
constexpr int64_t kQueuedPieces = 16;   // that a thread hands to a queue: an instruction each, and its address
constexpr int64_t kBytesAhead = 128;    // that a thread loads before it computes: an eighth of its registers
constexpr int64_t kBytesAlone = 256;    // where it has nothing else in registers
constexpr int64_t kMultiprocessors = 132, kFewBlocks = 2 * kMultiprocessors;
constexpr int64_t kRegisters = 65536, kMostRegisters = 255, kOtherRegisters = 96;  // of a multiprocessor; of a thread
constexpr int64_t kRegisterBits = 32;  // what is loaded by itself has a whole one

class MapLowering {
 public:
  MapLowering(const Map& map, const Team& team, CollectiveLowering& c, Queue queue = Queue::None)
      : map_(map),
        team_(team),
        c_(c),
        l_(c.l),
        sums_(map, team, l_),
        queue_(queue),
        changed_(changed_roots(map.body, l_.program)),
        by_one_copy_(changes_memory_alone(map, l_.program, [&](BufferId id) { return c_.is_memory(id); })) {}

  Body by_layout(const FragmentLayout& points) {
    Body out = sums_.begin();
    append(out, points_of(points));
    append(out, sums_.end());
    return out;
  }

  // What threads hold goes to shared memory by matrices. None: they may be out of bounds.
  std::optional<Body> by_matrices(const FragmentLayout& points, const MatrixStore& how) {
    const auto& store = *map_.body[0].as<Store>();
    const BufferId held = held_as(points, store.value);
    stored_ = held.valid() ? held
                           : l_.temporary(l_.buffer(store.to.buffer).name + "_words", l_.type(store.to.buffer),
                                          {points_of_thread(points)}, Space::Local);
    auto stores = store_matrices(map_, how, points, stored_, team_, l_);
    if (!stores) return stored_ = {}, std::nullopt;
    Body out = held.valid() ? Body{} : by_layout(points);
    append(out, std::move(*stores));
    return out;
  }

  // What one thread copies by the queue: zeros where `guard`, if there is one, is false. None: it cannot at once.
  std::optional<Body> by_thread(const Body& store, const Expr& guard) {
    Held at;
    at.lane = l_.index("lane", constant(0)), at.vector = *constant_int(map_.extents[0]);
    at.index = {at.lane};
    may_need_ = false;
    const auto [loads, stores, shifted] =
        accesses_of(substitute(store, {{map_.vars[0], cast(at.lane, l_.program.var(map_.vars[0]).type)}}), at);
    if (loads.size() != 1 || stores.size() != 1 || !is_async_width(loads[0], at)) return std::nullopt;
    if (!brings_zeros(loads[0])) return std::nullopt;
    return direct(loads[0], stores[0], at, guard);
  }

  // A loop of a thread's own whose iterations access neighbours; none: it accesses none.
  std::optional<Body> by_lanes(const Expr& lane, int64_t count) {
    Held at;
    at.lane = lane, at.vector = count;
    in_turns_ = true;
    const Body plain = without_lanes_in_quotients(with_plain_indices(map_.body, l_.program), id_of(lane), l_);
    const Body& body = accesses_of(plain, at).count() > accesses_of(map_.body, at).count() ? plain : map_.body;
    needs_.clear();
    if (accesses_of(body, at).count() == 0) return std::nullopt;
    Body wide = vector(body, at);
    if (needs_.empty()) return wide;
    Expr all;
    for (const Expr& e : needs_) all = all ? logical_and(all, e) : e;
    Body narrow{loop(l_, lane, constant(0), constant(count), guard_accesses(map_.body, l_), LoopKind::Unroll)};
    return Body{l_.make(If{all, std::move(wide), std::move(narrow)})};
  }

 private:
  // An access of neighbours in memory, as one.
  struct Wide {
    Expr load;                                // the element's access, or
    size_t store = 0;                         // the statement of the body that stores it, or adds to it
    BufferId registers;                       // the local array
    Expr slot;                                // where in it they begin
    Element first;                            // in memory
    std::set<size_t> tops = {};               // statements of the body that read what the load brings
    ir::Combine combine = ir::Combine::None;  // of what is stored
    int64_t share = 1;                        // lanes that have the same element
  };

  // A load of neighbours that begin beside a whole vector: they lie in two of them.
  struct Shifted {
    Expr load;
    size_t low, high;  // of the wide loads
    int64_t by;        // elements of the first of them that come before
    std::set<size_t> tops;
  };

  // What has been loaded ahead.
  struct Ahead {
    BufferId buffer, registers;
    bool common = false;  // once for all rounds
  };

  Body points_of(const FragmentLayout& points) {
    Body wide = loops(points);
    if (needs_.empty()) return wide;
    // Extents known at the call decide whether neighbours can be moved at once: the same for all threads.
    Expr all;
    for (const Expr& e : needs_) all = all ? logical_and(all, e) : e;
    may_need_ = false;
    return {l_.make(If{all, std::move(wide), loops(points)})};
  }
  Body loops(const FragmentLayout& points) {
    if (auto quotients = quotients_of(points)) return std::move(*quotients);
    bool registers = false;
    for (BufferId b : used_buffers(map_.body)) registers = registers || c_.registers.contains(b);
    const std::vector<int64_t> extents = dealt_loops(points, lanes_along(points));
    // What all rounds load is too much at times: then what those of the inner loops do, in each turn of the others.
    Body out;
    rounds_ = points.registers();
    const int64_t most = registers ? kBytesAhead : bytes_alone();
    for (size_t at = 0; load_ahead(points, most, out) && at < extents.size(); ++at) {
      // Of the outermost of them as many turns as are not too much.
      const int64_t all = rounds_, extent = extents[at];
      outer_.push_back({var(l_.program.new_var("r", i32), i32), 1});
      int64_t turns = extent / 2;
      for (; turns > 0; --turns) {
        outer_.back().inner = turns, rounds_ = all / extent * turns;
        if (extent % turns == 0 && (turns == 1 || !load_ahead(points, most, out))) break;
      }
      if (turns > 1) break;
      if (at + 1 == extents.size()) outer_.pop_back(), rounds_ = all;
    }
    if (ahead_.empty() && names_ahead_.empty()) outer_.clear(), out.clear();
    Body code = deal(
        points, team_, l_, lanes_along(points), [&](const Held& at) { return element(at); }, outer_);
    const bool unrolled = registers || !ahead_.empty() || !names_ahead_.empty();
    append(out, unrolled || points.registers() <= kUnrolledPoints ? code : serial(code, turns_at_once()));
    for (size_t i = outer_.size(); i-- > 0;)
      out = {loop(l_, outer_[i].var, constant(0), constant(extents[i] / outer_[i].inner), std::move(out),
                  registers ? LoopKind::Unroll : LoopKind::Serial)};
    ahead_.clear(), names_ahead_.clear(), outer_.clear();
    return out;
  }
  // A thread of few blocks has registers to itself, and nobody else's loads are under way meanwhile.
  int64_t bytes_alone() const {
    int64_t blocks = 1;
    for (const Expr& e : l_.launch.grid) {
      const auto extent = constant_int(e);
      if (!extent || *extent > kFewBlocks) return kBytesAlone;
      blocks *= *extent;
    }
    const int64_t together = std::max((blocks + kMultiprocessors - 1) / kMultiprocessors, l_.launch.min_blocks);
    const int64_t registers = std::min<int64_t>(kRegisters / (l_.launch.thread_count() * together), kMostRegisters);
    return std::max(kBytesAlone, (registers - kOtherRegisters) * kRegisterBits / 8);
  }
  // None: the code of one point after the other does as well.
  std::optional<Body> quotients_of(const FragmentLayout& points) {
    for (BufferId b : used_buffers(map_.body))
      if (!c_.registers.contains(b)) return std::nullopt;
    if (neighbours_along(points, lanes_along(points)) >= kSharingLanes) return std::nullopt;  // vectors do as well
    return shared_quotients(map_, points, team_, l_, [&](const Held& at) { return element_body(at).body; });
  }
  // What all rounds of the loops load from global memory, before the first of them stores: the compiler does not move a
  // load past a store that may be to the same place, nor out of a condition around a round. Points of a Map do not
  // depend on each other. True: it is more than `most` bytes, and not done.
  bool load_ahead(const FragmentLayout& points, int64_t most, Body& out) {
    bool stores = false;
    walk(map_.body, [&](const Stmt& s) {
      const auto* n = s.as<Store>();
      stores = stores || s.as<Atomic>() || (n && c_.is_memory(n->to.buffer));
    });
    ahead_.clear(), names_ahead_.clear();
    const bool conditional = points.is_padded() || !points.uses_all_threads();
    if ((!stores && !conditional) || queue_ != Queue::None) return false;
    if (!stores) most /= 2;  // what is computed is registers' as well
    int64_t bytes = 0;
    const auto kept = [&](BufferId root, DType type, int64_t count, int64_t together = 1) {
      const int64_t bits = type.storage_bits();
      bytes += count * (together * bits < kRegisterBits ? kRegisterBits / together : bits) / 8;
      return l_.temporary(l_.buffer(root).name + "_ahead", type, {count}, Space::Local);
    };
    Body once;  // what all rounds have in common
    const auto of_round = [&](const Held& held) {
      if (rounds_ == held.vector) return Body{};
      Held at = held;
      at.first_copy = {};
      const SharedLoads element = element_body(at);
      at = in_lanes(at);
      Body loads = element.names;
      for (size_t i = 0; i < element.names.size(); ++i) {
        if (!l_.is_global(element.roots[i])) continue;
        const Let& name = *element.names[i].as<Let>();
        names_ahead_.push_back(kept(element.roots[i], name.value->type, rounds_ / at.vector));
        loads.push_back(l_.make(Store{{names_ahead_.back(), {round_of(at, 1)}}, var(name.var, name.value->type)}));
      }
      Expr guard;
      const Body* inner = &element.body;
      for (const If* n = condition_of_all(*inner, id_of(at.lane)); n; n = condition_of_all(*inner, id_of(at.lane)))
        guard = guard ? logical_and(guard, n->condition) : n->condition, inner = &n->then_body;
      Body guarded;
      for (Wide& w : accesses_of(*inner, at).loads) {
        if (!l_.is_global(w.first.buffer)) continue;
        const bool anywhere = !guard || may_come_anyway(w.first);
        const bool common = anywhere && !conditional && !held.valid && is_common(w.first, at, element.names);
        w.registers = kept(w.first.buffer, l_.type(w.first.buffer), (common ? at.vector : rounds_) / w.share,
                           at.vector / w.share);
        w.slot = common ? constant(0) : round_of(at, at.vector / w.share);
        const size_t mark = l_.intervals.mark();
        if (!anywhere) l_.intervals.assume(guard);
        append(common     ? once
               : anywhere ? loads
                          : guarded,
               wide_load(w, elements_of(w, by_one_copy_ ? at : in_lanes(held))));
        l_.intervals.forget(mark);
        ahead_.push_back({w.first.buffer, w.registers, common});
      }
      if (guard && !guarded.empty()) guarded = {l_.make(If{guard, std::move(guarded), {}})};
      append(loads, std::move(guarded));
      if (by_one_copy_ && held.first_copy)
        for (Body* b : {&loads, &once})
          if (!b->empty()) *b = {l_.make(If{held.first_copy, std::move(*b), {}})};
      return loads;
    };
    Body rounds = deal(points, team_, l_, lanes_along(points), of_round, outer_);
    out = std::move(once);
    append(out, std::move(rounds));
    if (bytes <= most) {
      c_.streams = c_.streams || bytes > kBytesAlone;
      return false;
    }
    ahead_.clear(), names_ahead_.clear();
    return true;
  }
  // Whether a load may stand before the condition around it: where that is false the element may be another's to
  // change, an address lead nowhere, and a divisor be 0.
  bool may_come_anyway(const Element& e) const {
    const BufferId root = l_.program.root(e.buffer);
    if (l_.buffer(root).address || !analysis::may_look_anywhere(e.indices)) return false;
    return std::ranges::none_of(c_.changed, [&](BufferId id) { return analysis::may_overlap(id, root, l_.program); });
  }
  // With a lane, if it has none: a vector of one element.
  Held in_lanes(Held at) {
    if (at.lane) return at;
    const VarId lane = l_.program.new_var("lane", i32);
    l_.intervals.set(lane, {0, 0});
    at.lane = var(lane, i32);
    return at;
  }
  // Whether there are loads of one element of this memory.
  bool comes_alone(BufferId id) const { return l_.is_global(id) && l_.type(id).storage_bits() >= 8; }
  // Whether all rounds of the loops that are not around what loads ahead have the same element in mind, and no name of
  // theirs tells where it is.
  bool is_common(const Element& e, const Held& at, const Body& names) const {
    std::set<VarId> used;
    for (const Expr& index : e.indices) used.merge(used_vars(index));
    for (VarId v : bound_vars(names))
      if (used.contains(v)) return false;
    const std::vector<Digit>& digits = at.layout->digits();
    for (size_t i = 0; i < digits.size(); ++i) {
      if (digits[i].home != Home::Register || (at.lane && equal(at.digits[i], at.lane))) continue;
      for (VarId v : used_vars(at.digits[i])) {
        const bool lane = at.lane && v == id_of(at.lane);
        const bool around = std::ranges::any_of(outer_, [&](const Given& o) { return id_of(o.var) == v; });
        if (!lane && !around && used.contains(v)) return false;
      }
    }
    return true;
  }
  // Whether points add to memory where what they load says: the next point's load then waits for this one's addition.
  bool adds_to_memory() const {
    bool found = false;
    walk(map_.body, [&](const Stmt& s) {
      const auto* n = s.as<Atomic>();
      found = found || (n && !n->result.valid() && n->order == MemoryOrder::Relaxed && l_.is_global(n->to.buffer));
    });
    return found;
  }
  // The number of this round, times a weight.
  Expr round_of(const Held& at, int64_t weight) const {
    Expr out = constant(0);
    const std::vector<Digit>& digits = at.layout->digits();
    for (size_t i = 0; i < digits.size(); ++i) {
      if (digits[i].home != Home::Register || (at.lane && equal(at.digits[i], at.lane))) continue;
      const std::set<VarId> used = used_vars(at.digits[i]);
      const bool has_lane = at.lane && used.contains(id_of(at.lane));
      const auto around = std::ranges::find_if(outer_, [&](const Given& o) { return used.contains(id_of(o.var)); });
      Substitution first;  // of the lanes, and of the turns around
      if (has_lane) first[id_of(at.lane)] = constant(0);
      if (around != outer_.end()) first[id_of(around->var)] = constant(0);
      const Expr begin = substitute(at.digits[i], first);
      const Expr digit = has_lane ? binary(BinaryOp::FloorDiv, begin, constant(at.vector)) : begin;
      out = add(out, sum({{weight, digit}}, 0, i32));
      weight *= around != outer_.end() ? around->inner : digits[i].extent / (has_lane ? at.vector : 1);
    }
    return out;
  }
  int lanes_along(const FragmentLayout& points) const {
    return passes::lanes_along(map_, points, [&](BufferId id) { return c_.is_memory(id); });
  }
  // How many turns of a loop over points stand one behind the other: what they compute is then under way together, and
  // what all turns around have in common is computed before those.
  int64_t turns_at_once() const { return queue_ == Queue::None ? kUnrolledPoints : kQueuedPieces; }
  static Body serial(const Body& code, int64_t most) {
    return rewrite(code, [&](const Stmt& s) -> std::optional<Body> {
      const auto* f = s.as<For>();
      if (!f || f->kind != LoopKind::Unroll || constant_int(f->extent).value_or(0) <= most) return std::nullopt;
      For plain = *f;
      plain.kind = LoopKind::Serial, plain.factor = 0;
      return Body{make_stmt(std::move(plain), s->location)};
    });
  }

  Body element(const Held& held) {
    Held at = held;
    if (by_one_copy_) at.first_copy = {};
    Body out = element_of(at);
    return by_one_copy_ && held.first_copy ? Body{l_.make(If{held.first_copy, std::move(out), {}})} : out;
  }
  Body element_of(const Held& at) {
    SharedLoads element = element_body(at);
    size_t ahead = 0;
    for (size_t i = 0; i < element.names.size() && !names_ahead_.empty(); ++i) {
      if (!l_.is_global(element.roots[i])) continue;
      const Let& name = *element.names[i].as<Let>();
      const Expr value = load(names_ahead_[ahead++], {round_of(at, 1)}, name.value->type);
      element.names[i] = l_.make(Let{name.var, value});
    }
    Body out = std::move(element.names);
    if (at.lane || !ahead_.empty())
      append(out, vector(std::move(element.body), in_lanes(at)));
    else
      append(out, guard_accesses(by_first_copy(element.body, at), l_));
    return out;
  }
  SharedLoads element_body(const Held& at) {
    Substitution names;
    for (size_t d = 0; d < map_.vars.size(); ++d)
      names[map_.vars[d]] = cast(at.index[d], l_.program.var(map_.vars[d]).type);
    // Loads and stores of fragments first: they name the Map's variables.
    Body body = rewrite_exprs(map_.body,
                              [&](const Expr& e) -> std::optional<Expr> { return c_.in_registers(e, at, map_.vars); });
    body = rewrite(body, [&](const Stmt& s) { return s.as<Atomic>() ? sums_.take(s, at) : own_store(s, at); });
    body = substitute(body, names);
    const auto order = [&](const Body& b) { return order_of(b, at); };
    const auto is_memory = [&](BufferId id) { return c_.is_memory(id); };
    const auto is_there = [&](const Load& n) { return surely_there(n, at) && !may_change_meanwhile(body, n); };
    if (!at.lane) {
      const auto is_global = [&](BufferId id) { return is_memory(id) && l_.is_global(id); };
      return rounds_ > 1 && adds_to_memory() ? name_shared_loads(std::move(body), {}, l_, order, is_global, is_there)
                                             : SharedLoads{{}, {}, std::move(body)};
    }
    body = without_lanes_in_quotients(body, id_of(at.lane), l_);
    SharedLoads out = name_shared_loads(std::move(body), id_of(at.lane), l_, order, is_memory, is_there);
    const auto wide = [&](const Body& b) { return accesses_of(under_conditions(b, id_of(at.lane)), at).count(); };
    const Body plain = with_plain_indices(out.body, l_.program);
    for (const Body& other : {plain, under_common_conditions(out.body, at), under_common_conditions(plain, at)})
      if (wide(other) > wide(out.body)) out.body = other;
    return out;
  }
  std::optional<Body> own_store(const Stmt& s, const Held& at) {
    const auto* store = s.as<Store>();
    if (!store) return std::nullopt;
    if (stored_.valid()) return Body{make_stmt(Store{{stored_, {number_of_point(at)}}, store->value}, s->location)};
    const auto slot =
        c_.in_registers(load(store->to.buffer, store->to.indices, l_.type(store->to.buffer)), at, map_.vars);
    if (!slot) return std::nullopt;
    const auto* n = slot->as<Load>();
    return Body{make_stmt(Store{{n->buffer, n->indices}, store->value}, s->location)};
  }
  // Of all threads that run a point, one writes to memory, and prints.
  Body by_first_copy(const Body& body, const Held& at) const {
    if (!at.first_copy) return body;
    return rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* store = s.as<Store>();
      const auto* atomic = s.as<Atomic>();
      const BufferId to = store ? store->to.buffer : atomic ? atomic->to.buffer : BufferId{};
      if (!s.as<Print>() && (!to.valid() || !c_.is_memory(to))) return std::nullopt;
      check_internal(!atomic || !atomic->result.valid(), "the result of an atomic in a layout with copies");
      return Body{make_stmt(If{at.first_copy, {s}, {}}, s->location)};
    });
  }

  // ---- neighbours
  // Whether the elements at lane 0, 1, ... are neighbours, the first one aligned, and all in bounds if the first is.
  // What must hold for that and is known at the call alone goes to `needs`.
  bool is_wide(BufferId id, const std::vector<Expr>& index, const Held& at, const std::set<VarId>& bound,
               std::vector<Expr>& needs) const {
    const Buffer& b = l_.buffer(id);
    if (at.vector > 1 && begins_anywhere(l_.buffer(l_.program.root(id)))) return false;
    if (stands_by(l_.program, id, bound)) return false;
    if (!c_.is_memory(id) || index.empty()) return false;
    if (at.vector > 1 && !b.strides.empty() && constant_int(b.strides.back()) != 1) return false;
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t along = at.vector > 1 && d + 1 == index.size() ? 1 : 0;
      if (analysis::slope_through_casts(index[d], id_of(at.lane)) != along) return false;
      for (VarId v : used_vars(index[d]))
        if (bound.contains(v)) return false;
      bool reads = false;
      walk(index[d], [&](const Expr& x) { reads = reads || x.as<Load>(); });
      if (reads) return false;
    }
    auto divided = [&](const Expr& e) { return analysis::power_of_two_divisor(widen(e), l_.program) % at.vector == 0; };
    auto divided_at_call = [&](const Expr& e) {
      if (divided(e)) return true;
      if (!may_need_ || constant_int(e) || !l_.is_global(id)) return false;
      needs.push_back(binary(BinaryOp::Eq, binary(BinaryOp::FloorMod, widen(e), wide(at.vector)), wide(0)));
      return true;
    };
    if (const Expr& address = l_.buffer(l_.program.root(id)).address) {
      if (!may_need_) return false;
      const int64_t bytes = at.vector * l_.type(id).bits / 8;
      needs.push_back(binary(BinaryOp::Eq, binary(BinaryOp::FloorMod, bitcast(address, u64), constant(u64, bytes)),
                             constant(u64, int64_t{0})));
    }
    const std::vector<Expr> first = at_lane_zero(index, at);
    if (!divided(first.back()) || (b.offset && !divided(b.offset))) return false;
    Expr stride = widen(b.shape.back());
    for (size_t d = index.size() - 1; d-- > 0;) {
      const Expr step = b.strides.empty() ? stride : widen(b.strides[d]);
      if (!divided(mul(widen(first[d]), step)) && !divided_at_call(b.strides.empty() ? b.shape.back() : b.strides[d]))
        return false;
      stride = mul(stride, widen(b.shape[d]));
    }
    return !l_.is_global(id) || divided_at_call(b.shape.back());
  }
  static std::vector<Expr> at_lane_zero(const std::vector<Expr>& index, const Held& at) {
    std::vector<Expr> out;
    for (const Expr& e : index) out.push_back(substitute(e, {{id_of(at.lane), constant(0)}}));
    return out;
  }

  struct Accesses {
    std::vector<Wide> loads, stores;
    std::vector<Shifted> shifted = {};
    size_t count() const { return loads.size() + stores.size(); }
  };
  // Loads go before the loop over the lanes and stores behind it, where nothing of the body comes between.
  Accesses accesses_of(const Body& body, const Held& at) {
    const BodyOrder order = order_of(body, at);
    std::set<VarId> bound = bound_vars(body);
    Accesses out;
    // Stores at the top of the body, one a buffer.
    std::map<BufferId, int> writes;
    walk(body, [&](const Stmt& s) {
      if (const auto* n = s.as<Store>()) ++writes[l_.program.root(n->to.buffer)];
      if (const auto* n = s.as<Atomic>()) writes[l_.program.root(n->to.buffer)] += 2;
    });
    std::vector<Expr> needs;
    auto is_one = [&](BufferId id, const std::vector<Expr>& index) {
      needs.clear();
      if (!is_wide(id, index, at, bound, needs)) return false;
      for (const Expr& e : needs) need(e);
      return true;
    };
    for (size_t i = 0; i < body.size(); ++i) {
      std::vector<Expr> seen;
      walk_exprs({body[i]}, [&](const Expr& e) {
        const auto* n = e.as<Load>();
        if (!n || !c_.is_memory(n->buffer) || (at.vector == 1 && !comes_alone(n->buffer))) return;
        if (std::any_of(seen.begin(), seen.end(), [&](const Expr& known) { return equal(known, e); })) return;
        seen.push_back(e);
        if (!order.reads_what_was(i, e)) return;
        const auto is_this = [&](const auto& known) { return equal(known.load, e); };
        if (auto same = std::ranges::find_if(out.loads, is_this); same != out.loads.end())
          return void(same->tops.insert(i));
        if (auto same = std::ranges::find_if(out.shifted, is_this); same != out.shifted.end())
          return void(same->tops.insert(i));
        if (!order.surely_reads(i, e) && (at.vector == 1 || !surely_there(*n, at) || may_change_meanwhile(body, *n)))
          return;
        if (is_one(n->buffer, n->indices))
          return out.loads.push_back({e, 0, {}, constant(0), {n->buffer, at_lane_zero(n->indices, at)}, {i}});
        if (const int64_t by = shift_of(*n, at)) {
          const auto vector_at = [&](int64_t begin) {
            std::vector<Expr> indices = n->indices;
            indices.back() = add(indices.back(), constant(indices.back()->type, begin - by));
            return load(n->buffer, std::move(indices), e->type);
          };
          const Expr parts[] = {vector_at(0), vector_at(at.vector)};
          const auto indices = [](const Expr& part) { return part.as<Load>()->indices; };
          if (is_one(n->buffer, indices(parts[0])) && is_one(n->buffer, indices(parts[1]))) {
            size_t places[2];
            for (size_t k : {0, 1}) {
              const auto known =
                  std::ranges::find_if(out.loads, [&](const Wide& w) { return equal(w.load, parts[k]); });
              places[k] = static_cast<size_t>(known - out.loads.begin());
              if (known == out.loads.end())
                out.loads.push_back({parts[k], 0, {}, constant(0), {n->buffer, at_lane_zero(indices(parts[k]), at)}});
            }
            return out.shifted.push_back({e, places[0], places[1], by, {i}});
          }
        }
        const int64_t share = lanes_of_quotient(n->indices.back(), id_of(at.lane), at.vector);
        if (share <= 1) return;
        Held few = at;
        few.vector /= share, few.lane = var(l_.program.new_var("lane", i32), i32);
        std::vector<Expr> indices;
        bool all = true;
        for (const Expr& index : n->indices) {
          indices.push_back(with_quotients(index, id_of(at.lane), share, few.lane));
          all = all && !used_vars(indices.back()).contains(id_of(at.lane));
        }
        if (!all) return;
        needs.clear();
        if (!is_wide(n->buffer, indices, few, bound, needs) || !needs.empty()) return;
        out.loads.push_back(
            {e, 0, {}, constant(0), {n->buffer, at_lane_zero(indices, few)}, {i}, ir::Combine::None, share});
      });
    }
    for (size_t i = 0; i < body.size() && at.vector > 1; ++i) {
      const auto* n = body[i].as<Store>();
      const auto* atomic = body[i].as<Atomic>();
      if (atomic && !analysis::adds_in_vectors(*atomic, l_.program)) continue;
      const Element* to = n ? &n->to : atomic ? &atomic->to : nullptr;
      if (!to || writes[l_.program.root(to->buffer)] != (n ? 1 : 2) || !order.may_be_last(i)) continue;
      if (is_one(to->buffer, to->indices))
        out.stores.push_back({{},
                              i,
                              {},
                              constant(0),
                              {to->buffer, at_lane_zero(to->indices, at)},
                              {},
                              n ? ir::Combine::None : ir::Combine::Add});
    }
    return out;
  }
  // How far behind a whole vector of global memory the neighbours begin; 0: they are one, or nobody knows.
  int64_t shift_of(const Load& n, const Held& at) const {
    const auto* index = n.indices.back().as<ir::Sum>();
    if (at.vector == 1 || !index || !l_.is_global(n.buffer) || changes(l_.program.root(n.buffer)) ||
        analysis::changes_elsewhere(l_.launch, map_.body, n.buffer, l_.program))
      return 0;
    return (index->constant % at.vector + at.vector) % at.vector;
  }
  BodyOrder order_of(const Body& body, const Held& at) const {
    if (!in_turns_) return BodyOrder(body, l_.program);
    return BodyOrder(body, l_.program, BodyOrder::Turns{id_of(at.lane), at.vector});
  }
  // Whether points that do not come to read the element may read what another one stores: the body stores elsewhere in
  // the same memory, as partners do that exchange what they have; or another block, where another statement stores.
  bool may_change_meanwhile(const Body& body, const Load& n) const {
    const BufferId root = l_.program.root(n.buffer);
    bool out = analysis::changes_elsewhere(l_.launch, map_.body, root, l_.program);
    walk(body, [&](const Stmt& s) {
      const auto* store = s.as<Store>();
      const auto* atomic = s.as<Atomic>();
      const Element* to = store ? &store->to : atomic ? &atomic->to : nullptr;
      out = out ||
            (to && l_.program.root(to->buffer) == root && !(to->buffer == n.buffer && equal(to->indices, n.indices)));
    });
    return out;
  }
  // Whether the element is there for all lanes even where the program does not come to read it. Of global memory the
  // load asks by itself; an address may lead nowhere, and where a divisor is 0 there is no index.
  bool surely_there(const Load& n, const Held& at) const {
    if (!analysis::may_look_anywhere(n.indices)) return false;
    if (l_.is_global(n.buffer)) return !l_.buffer(l_.program.root(n.buffer)).address;
    const Buffer& b = l_.buffer(n.buffer);
    for (size_t d = 0; d < n.indices.size(); ++d)
      for (int64_t lane : {int64_t{0}, at.vector - 1}) {
        const Expr i = widen(substitute(n.indices[d], {{id_of(at.lane), constant(lane)}}));
        if (!l_.intervals.proves(binary(BinaryOp::Le, wide(0), i)) ||
            !l_.intervals.proves(binary(BinaryOp::Lt, i, widen(b.shape[d]))))
          return false;
      }
    return true;
  }

  Body under_common_conditions(const Body& body, const Held& at) {
    std::vector<Expr> needs;
    const Body out =
        passes::under_common_conditions(body, {id_of(at.lane), at.vector}, l_.program, may_need_ ? &needs : nullptr);
    for (const Expr& e : needs) need(e);
    return out;
  }
  void need(const Expr& e) {
    if (std::ranges::none_of(needs_, [&](const Expr& known) { return equal(known, e); })) needs_.push_back(e);
  }
  Body vector(const Body& body, const Held& at) {
    const If* all = condition_of_all(body, id_of(at.lane));
    if (!all || queue_ != Queue::None) return vector_of(body, at);
    const size_t mark = l_.intervals.mark();
    l_.intervals.assume(all->condition);
    Body inside = vector(all->then_body, at);
    l_.intervals.forget(mark);
    return {l_.make(If{all->condition, std::move(inside), {}})};
  }
  Body vector_of(Body body, const Held& at) {
    auto [loads, stores, shifted] = accesses_of(body, at);
    if (queue_ != Queue::None && loads.size() == 1 && stores.size() == 1 && loads[0].share == 1 &&
        is_async_width(loads[0], at) && brings_zeros(loads[0])) {
      Substitution names;  // which do not come along
      for (const Stmt& s : body)
        if (const auto* n = s.as<Let>())
          if (const auto whole = spelled_out(n->value, names)) names[n->var] = *whole;
      const Expr value = spelled_out(body[stores[0].store].as<Store>()->value, names).value_or(Expr{});
      if (value && equal(value, loads[0].load)) return direct(loads[0], stores[0], at);
      const Expr guard = value ? guard_of(value, loads[0].load, at) : Expr{};
      if (guard && !uses_any(guard, bound_vars(body))) return direct(loads[0], stores[0], at, guard);
    }
    size_t ahead = 0;
    std::vector<bool> is_ahead;
    for (Wide& w : loads) {
      is_ahead.push_back(ahead < ahead_.size() && l_.is_global(w.first.buffer));
      if (is_ahead.back()) {
        const Ahead& known = ahead_[ahead++];
        check_internal(known.buffer == w.first.buffer, "loads of other buffers than before");
        w.registers = known.registers, w.slot = known.common ? constant(0) : round_of(at, at.vector / w.share);
      } else {
        w.registers = new_registers(w.first.buffer, elements_of(w, at));
      }
    }
    for (Wide& w : stores) w.registers = new_registers(w.first.buffer, at);
    body = in_vectors(body, loads, stores, shifted, at);
    Body out;
    for (size_t i = 0; i < loads.size(); ++i)
      if (!is_ahead[i]) append(out, wide_load(loads[i], elements_of(loads[i], at)));
    const auto is_memory = [&](BufferId id) { return c_.is_memory(id); };
    body = with_quotients_of_all(std::move(body), at.lane, at.vector, l_, is_memory, out);
    Body code = guard_accesses(by_first_copy(body, at), l_);
    if (at.vector > 1)
      out.push_back(loop(l_, at.lane, constant(0), constant(at.vector), std::move(code), LoopKind::Unroll));
    else
      append(out, substitute(code, {{id_of(at.lane), constant(0)}}));
    for (const Wide& w : stores) append(out, wide_store(w, at));
    return out;
  }
  // The body of one lane with registers in place of what is loaded before it and stored behind it.
  Body in_vectors(const Body& body, const std::vector<Wide>& loads, const std::vector<Wide>& stores,
                  const std::vector<Shifted>& shifted, const Held& at) {
    const BodyOrder order = order_of(body, at);
    Body out;
    for (size_t i = 0; i < body.size(); ++i) {
      const Body one = rewrite_exprs({body[i]}, [&](const Expr& e) -> std::optional<Expr> {
        if (!e.as<Load>()) return std::nullopt;
        for (const Wide& w : loads)
          if (w.tops.contains(i) && equal(w.load, e)) {
            const Expr lane = w.share > 1 ? binary(BinaryOp::FloorDiv, at.lane, constant(w.share)) : at.lane;
            return load(w.registers, {add(w.slot, lane)}, e->type);
          }
        for (const Shifted& s : shifted) {
          if (!s.tops.contains(i) || !equal(s.load, e)) continue;
          const Expr place = add(at.lane, constant(s.by));
          const Expr in_vector = binary(BinaryOp::FloorMod, place, constant(at.vector));
          const auto part = [&](size_t k) {
            return load(loads[k].registers, {add(loads[k].slot, in_vector)}, e->type);
          };
          return select(binary(BinaryOp::Lt, place, constant(at.vector)), part(s.low), part(s.high));
        }
        for (const Wide& w : stores) {
          if (!order.reads_what_is_stored(i, e, w.store)) continue;
          const Expr value = load(w.registers, {at.lane}, e->type), check = exists(w);
          return check ? select(check, value, outside(w.first.buffer)) : value;
        }
        return std::nullopt;
      });
      const auto* n = one[0].as<Store>();
      const auto* atomic = one[0].as<Atomic>();
      const auto to = std::find_if(stores.begin(), stores.end(), [&](const Wide& w) { return w.store == i; });
      if (to == stores.end())
        append(out, one);
      else
        out.push_back(make_stmt(Store{{to->registers, {at.lane}}, n ? n->value : atomic->value}, one[0]->location));
    }
    return out;
  }
  static void append(Body& out, Body code) { out.insert(out.end(), code.begin(), code.end()); }

  // The access has fewer elements than there are lanes, if lanes share them.
  static Held elements_of(const Wide& w, const Held& at) {
    Held out = at;
    out.vector /= w.share;
    return out;
  }
  BufferId new_registers(BufferId of, const Held& at) {
    const Buffer& b = l_.buffer(of);
    return l_.temporary(b.name + "_vector", b.type, {at.vector}, Space::Local);
  }
  // Accesses of at most 16 bytes; the memory behind them must be aligned so.
  template <class F>
  void pieces(const Wide& w, const Held& at, F&& f) {
    Buffer& root = l_.program.buffers[l_.program.root(w.first.buffer).index];
    const int64_t bits = l_.type(w.first.buffer).storage_bits();
    const int64_t step = std::min(at.vector, 8 * kAccessBytes / bits);
    root.alignment = std::max(root.alignment, step * bits / 8);
    for (int64_t i = 0; i < at.vector; i += step) {
      Region memory{w.first.buffer, w.first.indices, {}};
      for (size_t d = 0; d < memory.min.size(); ++d)
        memory.extent.push_back(constant(d + 1 == memory.min.size() ? step : 1));
      for (Expr& e : memory.min) e = widen(e);
      memory.min.back() = add(memory.min.back(), wide(i));
      f(memory, Region{w.registers, {add(w.slot, constant(i))}, {constant(step)}});
    }
  }
  bool changes(BufferId id) const {
    return std::any_of(changed_.begin(), changed_.end(),
                       [&](BufferId to) { return analysis::may_overlap(to, id, l_.program); });
  }
  // Whether the first element exists; none: it does.
  Expr exists(const Wide& w) const { return bounds_check(w.first.buffer, w.first.indices, l_); }
  // What reading gives where there is no element.
  Expr outside(BufferId id) const {
    const Buffer& b = l_.buffer(id);
    return b.fill ? b.fill : constant(b.type, int64_t{0});
  }
  Body wide_load(const Wide& w, const Held& at) {
    Body move, fill;
    const auto one = [&](const Expr& value) { return l_.make(Store{{w.registers, {w.slot}}, value}); };
    if (at.vector == 1)
      move.push_back(one(load(w.first.buffer, w.first.indices, l_.type(w.first.buffer))));
    else
      pieces(w, at, [&](const Region& memory, const Region& registers) {
        Copy copy;
        copy.from = memory, copy.to = registers;
        move.push_back(l_.make(std::move(copy)));
      });
    Expr check = exists(w);
    // What the body changes, and no other copy of the point stores, only who stores may read (copied_points.h).
    if (at.first_copy && changes(w.first.buffer)) check = check ? logical_and(at.first_copy, check) : at.first_copy;
    if (!check) return move;
    if (at.vector == 1) return {l_.make(If{check, std::move(move), {one(outside(w.first.buffer))}})};
    const Expr lane = l_.index("lane", wide(at.vector));
    fill.push_back(loop(l_, lane, wide(0), wide(at.vector),
                        {l_.make(Store{{w.registers, {add(widen(w.slot), lane)}}, outside(w.first.buffer)})},
                        LoopKind::Unroll));
    return {l_.make(If{check, std::move(move), std::move(fill)})};
  }
  // cp.async moves 4, 8 or 16 bytes (PTX ISA 9.7.9.25.3).
  bool is_async_width(const Wide& w, const Held& at) const {
    const int64_t bits = l_.type(w.first.buffer).storage_bits();
    const int64_t step = std::min(at.vector, 8 * kAccessBytes / bits) * bits / 8;
    return (step == 4 || step == 8 || step == kAccessBytes) && at.vector * bits / 8 % step == 0;
  }
  // Whether what the queue brings of elements that do not exist is what reading them gives.
  bool brings_zeros(const Wide& w) const {
    const Expr& fill = l_.buffer(w.first.buffer).fill;
    return !fill || is_zero(fill) || !exists(w);
  }
  // What decides for all lanes whether they get what is loaded, or zeros; none: something else does.
  Expr guard_of(const Expr& value, const Expr& loaded, const Held& at) const {
    const auto* either = value.as<Select>();
    if (!either || !equal(either->a, loaded) || !is_zero(either->b)) return {};
    bool memory = false;
    walk(either->condition, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      memory = memory || (n && c_.is_memory(n->buffer));
    });
    return memory || used_vars(either->condition).contains(id_of(at.lane)) ? Expr{} : either->condition;
  }
  // From memory to memory, past the registers; nothing is read, and zeros are written, where a guard says so.
  Body direct(const Wide& from, const Wide& to, const Held& at, const Expr& guard = {}) {
    std::vector<Region> sources, targets;
    pieces(from, at, [&](const Region& memory, const Region&) { sources.push_back(memory); });
    pieces(to, at, [&](const Region& memory, const Region&) { targets.push_back(memory); });
    const size_t mark = l_.intervals.mark();
    if (guard) l_.intervals.assume(guard);  // what it says of bounds is not asked again
    Expr check = exists(from);
    l_.intervals.forget(mark);
    if (guard) check = check ? logical_and(guard, check) : guard;
    Body move;
    for (size_t i = 0; i < sources.size(); ++i) {
      Copy copy;
      copy.from = sources[i], copy.to = targets[i], copy.completion.queue = queue_;
      Expr& read = copy.from.extent.back();
      if (check) read = select(check, read, constant(read->type, int64_t{0}));
      move.push_back(l_.make(std::move(copy)));
    }
    return move;
  }
  Body wide_store(const Wide& w, const Held& at) {
    Body move;
    pieces(w, at, [&](const Region& memory, const Region& registers) {
      Copy copy;
      copy.from = registers, copy.to = memory, copy.combine = w.combine;
      move.push_back(l_.make(std::move(copy)));
    });
    Expr check = exists(w);
    if (at.first_copy) check = check ? logical_and(at.first_copy, check) : at.first_copy;
    return check ? Body{l_.make(If{check, std::move(move), {}})} : move;
  }

  // The registers that hold just these values, one of each point; none: they must be computed.
  BufferId held_as(const FragmentLayout& points, const Expr& value) const {
    const auto* n = value.as<Load>();
    const auto found = n ? c_.registers.find(n->buffer) : c_.registers.end();
    if (found == c_.registers.end() || *c_.placement.layout_of(n->buffer) != points) return {};
    if (points.registers() != points_of_thread(points)) return {};
    for (size_t d = 0; d < n->indices.size(); ++d) {
      const Var* v = analysis::variable_of(n->indices[d]);
      if (!v || v->id != map_.vars[d]) return {};
    }
    return found->second;
  }

  const Map& map_;
  const Team& team_;
  CollectiveLowering& c_;
  Lowering& l_;
  MapSums sums_;
  const Queue queue_;
  const std::set<BufferId> changed_;   // roots, by the body
  const bool by_one_copy_;             // of threads with copies of a point, one runs it
  bool in_turns_ = false;              // the lanes are turns of a loop, one after the other
  bool may_need_ = true;               // accesses may be wide under conditions
  std::vector<Expr> needs_;            // those conditions
  std::vector<Ahead> ahead_;           // in the order of the loads
  std::vector<BufferId> names_ahead_;  // and what lanes share of that
  std::vector<Given> outer_;           // loops around what loads ahead
  BufferId stored_;                    // what takes the values in place of memory
  int64_t rounds_ = 0;                 // registers' points in a turn of those
};

}  // namespace

bool CollectiveLowering::is_memory(BufferId id) const {
  const Space space = l.buffer(l.program.root(id)).space;
  return space == Space::Global || space == Space::Shared || (space == Space::Fragment && !registers.contains(id));
}

Stmt CollectiveLowering::barrier(const Team& team) const {
  Sync sync;
  if (team.count == kWarpThreads) {
    sync.scope = SyncScope::Warp;
  } else if (!team.barrier) {
    no_named_barrier(l.program, l.at, team.begin, team.begin + team.count);
  } else if (*team.barrier > 0) {
    sync.scope = SyncScope::Named, sync.barrier = constant(*team.barrier), sync.count = team.count;
  }
  return l.make(std::move(sync));
}

std::optional<Expr> CollectiveLowering::in_registers(const Expr& e, const Held& at,
                                                     const std::vector<VarId>& vars) const {
  const auto* n = e.as<Load>();
  if (!n) return std::nullopt;
  const auto found = registers.find(n->buffer);
  if (found == registers.end()) return std::nullopt;
  const auto box = followed(n->indices, vars);
  const FragmentLayout& layout = *placement.layout_of(n->buffer);
  const auto part = box ? box_of(layout, *box, at.layout->shape()) : std::nullopt;
  check_internal(part.has_value(), "registers are accessed by other threads' variables");
  return load(found->second, {add(register_of(layout, at, box->dims), constant(part->base.reg))}, e->type);
}

template <>
Body lower_for_thread(const Map& map, const Stmt& s, const Team& team, CollectiveLowering& c) {
  const FragmentLayout* points = c.placement.points_of(s);
  if (!points) return points_in_order(map, team, c.l);
  if (const auto how = c.placement.matrix_stores.find(s->id); how != c.placement.matrix_stores.end())
    if (auto stores = MapLowering(map, team, c).by_matrices(*points, how->second)) return std::move(*stores);
  const auto* store = map.body.empty() ? nullptr : map.body.back().as<Store>();
  if (points->copy_count() == 1)
    return MapLowering(map, team, c, store ? store->queue : Queue::None).by_layout(*points);
  if (changes_memory_alone(map, c.l.program, [&](BufferId id) { return c.is_memory(id); }))
    return MapLowering(map, team, c).by_layout(*points);
  const Map copied = with_stored_values(map, c.l, [&](BufferId id) { return c.is_memory(id); });
  return MapLowering(copied, team, c).by_layout(*points);
}

std::optional<Body> lower_lanes(const For& lanes, const Team& team, CollectiveLowering& c) {
  const auto begin = constant_int(lanes.begin), count = constant_int(lanes.extent);
  if (begin != 0 || !count || *count < 2 || *count > kMaxLanes || (*count & (*count - 1)) != 0) return std::nullopt;
  const Expr lane = unrolled_index(c.l, "r", *count);
  Map map;
  map.vars = {lanes.var}, map.extents = {lanes.extent};
  const DType type = c.l.program.var(lanes.var).type;
  map.body = substitute(lanes.body, {{lanes.var, cast(lane, type)}});
  // What is assumed holds in every lane, so of all that an access of several moves.
  for (const Stmt& s : lanes.body)
    for (int64_t i = 0; s.as<Assume>() && i < *count; ++i)
      c.l.intervals.assume(substitute(s.as<Assume>()->condition, {{lanes.var, constant(type, i)}}));
  return MapLowering(map, team, c).by_lanes(lane, *count);
}

namespace {

// One store of such a loop.
std::optional<Body> async_store(const Store& store, const For& loop, const Team& team, CollectiveLowering& c) {
  const auto* either = store.value.as<Select>();
  const auto* other = either ? either->b.as<Const>() : nullptr;
  const Expr value = other && other->bits == 0 ? either->a : store.value;
  if (!value.as<Load>() || !c.l.is_global(value.as<Load>()->buffer)) return std::nullopt;
  const Expr guard = either ? guard_accesses(either->condition, c.l) : Expr{};
  if (guard && used_vars(guard).contains(loop.var)) return std::nullopt;
  // Places that are looked up are looked up once.
  Body names;
  const auto named = [&](std::vector<Expr> indices) {
    for (Expr& e : indices) {
      bool loads = false;
      walk(e, [&](const Expr& x) { loads = loads || x.as<Load>(); });
      if (!loads || used_vars(e).contains(loop.var)) continue;
      const VarId place = c.l.program.new_var("place", e->type);
      names.push_back(c.l.make(Let{place, guard_accesses(e, c.l)}));
      e = var(place, e->type);
    }
    return indices;
  };
  const auto* from = value.as<Load>();
  const Expr read = load(from->buffer, named(from->indices), value->type);
  const Map map{{loop.var}, {loop.extent}, {}};
  auto copied = MapLowering(map, team, c, Queue::CpAsync)
                    .by_thread({c.l.make(Store{{store.to.buffer, named(store.to.indices)}, read})}, guard);
  if (copied) copied->insert(copied->begin(), names.begin(), names.end());
  return copied;
}

// Whether each of these stores may be made for all turns before the next: what the queue brings is there for nobody
// before it is waited for, but no place may be looked up in what is written.
bool are_independent(const std::vector<const Store*>& stores, const ProgramTables& p) {
  std::set<BufferId> written;
  for (const Store* s : stores) written.insert(p.root(s->to.buffer));
  if (stores.size() > 1 && written.size() < stores.size()) return false;
  bool apart = true;
  const auto reads = [&](const Expr& e) {
    walk(e, [&](const Expr& x) { apart = apart && !(x.as<Load>() && written.contains(p.root(x.as<Load>()->buffer))); });
  };
  for (const Store* s : stores) {
    reads(s->value);
    for (const Expr& e : s->to.indices) reads(e);
  }
  return apart;
}

}  // namespace

std::optional<Body> lower_async_store(const For& loop, const Team& team, CollectiveLowering& c) {
  if (loop.body.empty() || constant_int(loop.begin) != 0 || !constant_int(loop.extent)) return std::nullopt;
  std::vector<const Store*> stores;
  for (const Stmt& s : loop.body) {
    stores.push_back(s.as<Store>());
    if (!stores.back() || stores.back()->queue != Queue::CpAsync) return std::nullopt;
  }
  if (!are_independent(stores, c.l.program)) return std::nullopt;
  Body out;
  for (const Store* store : stores) {
    auto copied = async_store(*store, loop, team, c);
    if (!copied) return std::nullopt;
    out.insert(out.end(), copied->begin(), copied->end());
  }
  return out;
}

Body lower_async_copy(const Copy& copy, const FragmentLayout& points, const Team& team, CollectiveLowering& c) {
  Copy plain = copy;
  plain.completion = {};
  const Map map = map_of(plain, c.l.program, c.l.at);
  return MapLowering(map, team, c, copy.completion.queue).by_layout(points);
}

}  // namespace tilewright::passes
