// A Map as the points of one thread. Neighbours along the last dimension that memory holds side by side are moved by
// one wide access, into or from registers, before or after the points are computed.
#include "analysis/divisibility.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/threads/collectives.h"
#include "passes/threads/elementwise.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kAccessBytes = 16;    // the widest access of one thread
constexpr int64_t kUnrolledPoints = 8;  // of a loop that touches no registers

// The coefficient of a variable in an index that is affine in it; none: it is not.
std::optional<int64_t> coefficient(const Expr& e, VarId v) {
  if (!used_vars(e).contains(v)) return 0;
  if (const auto* n = e.as<Var>(); n && n->id == v) return 1;
  if (const auto* n = e.as<Cast>(); n && n->value->type.is_int() && e->type.is_int() && e->type.bits >= 32)
    return coefficient(n->value, v);
  const auto* s = e.as<ir::Sum>();
  if (!s) return std::nullopt;
  int64_t total = 0;
  for (const Term& t : s->terms) {
    const auto c = coefficient(t.value, v);
    if (!c) return std::nullopt;
    total += *c * t.coefficient;
  }
  return total;
}

class MapLowering {
 public:
  MapLowering(const Map& map, const Team& team, CollectiveLowering& c, Queue queue = Queue::None)
      : map_(map), team_(team), c_(c), l_(c.l), queue_(queue) {}

  Body by_layout(const FragmentLayout& points) {
    bool registers = false;
    for (BufferId b : used_buffers(map_.body)) registers = registers || c_.registers.contains(b);
    Body code = deal(points, team_, l_, true, [&](const Held& at) { return element(at); });
    return registers || points.registers() <= kUnrolledPoints ? code : serial(code);
  }

  // Point p, in row-major order, belongs to thread p mod T.
  Body in_order() {
    Expr total = wide(1);
    for (const Expr& e : map_.extents) total = mul(total, widen(e));
    const Expr rounds = binary(BinaryOp::FloorDiv, add(total, wide(team_.count - 1)), wide(team_.count));
    const Expr round = l_.index("round", rounds);
    const Expr point = add(mul(round, wide(team_.count)), cast(team_.thread, i64));
    const VarId p = l_.program.new_var("point", i64);
    l_.intervals.set(p, {0, std::max<int64_t>(l_.intervals.of(total).high - 1, 0)});
    Expr rest = var(p, i64);
    Body bind;
    std::vector<Expr> index(map_.vars.size());
    for (size_t d = map_.vars.size(); d-- > 0;) {
      const Expr extent = widen(map_.extents[d]);
      index[d] = d == 0 ? rest : binary(BinaryOp::FloorMod, rest, extent);
      rest = binary(BinaryOp::FloorDiv, rest, extent);
      const DType type = l_.program.var(map_.vars[d]).type;
      const Interval range = l_.intervals.of(extent);
      const VarId v = l_.program.new_var(l_.program.var(map_.vars[d]).name, type);
      l_.intervals.set(v, {0, range.high < kUnbounded ? std::max<int64_t>(range.high - 1, 0) : kUnbounded});
      bind.push_back(l_.make(Let{v, cast(index[d], type)}));
      index[d] = var(v, type);
    }
    Substitution names;
    for (size_t d = 0; d < map_.vars.size(); ++d) names[map_.vars[d]] = index[d];
    const Body body = guard_accesses(substitute(map_.body, names), l_);
    bind.insert(bind.end(), body.begin(), body.end());
    Body inside{l_.make(Let{p, point})};
    inside.push_back(l_.make(If{binary(BinaryOp::Lt, var(p, i64), total), std::move(bind), {}}));
    return {loop(l_, round, wide(0), rounds, std::move(inside))};
  }

 private:
  // An access of neighbours in memory, as one.
  struct Wide {
    Expr load;           // the element's access, or
    BufferId stored;     // the buffer that is stored
    BufferId registers;  // the local array
    Element first;       // in memory
  };

  static Body serial(const Body& code) {
    return rewrite(code, [](const Stmt& s) -> std::optional<Body> {
      const auto* f = s.as<For>();
      if (!f || f->kind != LoopKind::Unroll || constant_int(f->extent).value_or(0) <= kUnrolledPoints)
        return std::nullopt;
      For plain = *f;
      plain.kind = LoopKind::Serial;
      return Body{make_stmt(std::move(plain), s->location)};
    });
  }

  Body element(const Held& at) {
    Substitution names;
    for (size_t d = 0; d < map_.vars.size(); ++d)
      names[map_.vars[d]] = cast(at.index[d], l_.program.var(map_.vars[d]).type);
    // Loads and stores of fragments first: they name the Map's variables.
    Body body = rewrite_exprs(map_.body,
                              [&](const Expr& e) -> std::optional<Expr> { return c_.in_registers(e, at, map_.vars); });
    body = rewrite(body, [&](const Stmt& s) { return own_store(s, at); });
    body = substitute(body, names);
    return at.lane ? vector(std::move(body), at) : guard_accesses(by_first_copy(body, at), l_);
  }
  std::optional<Body> own_store(const Stmt& s, const Held& at) {
    const auto* store = s.as<Store>();
    if (!store) return std::nullopt;
    const auto slot =
        c_.in_registers(load(store->to.buffer, store->to.indices, l_.type(store->to.buffer)), at, map_.vars);
    if (!slot) return std::nullopt;
    const auto* n = slot->as<Load>();
    return Body{make_stmt(Store{{n->buffer, n->indices}, store->value}, s->location)};
  }
  // Of all threads that run a point, one writes to memory.
  Body by_first_copy(const Body& body, const Held& at) const {
    if (!at.first_copy) return body;
    return rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* store = s.as<Store>();
      const auto* atomic = s.as<Atomic>();
      const BufferId to = store ? store->to.buffer : atomic ? atomic->to.buffer : BufferId{};
      if (!to.valid() || !c_.is_memory(to)) return std::nullopt;
      check_internal(!atomic || !atomic->result.valid(), "the result of an atomic in a layout with copies");
      return Body{make_stmt(If{at.first_copy, {s}, {}}, s->location)};
    });
  }

  // ---- neighbours
  Expr flat_offset(BufferId id, const std::vector<Expr>& index) const {
    const Buffer& b = l_.buffer(id);
    Expr at = b.offset ? widen(b.offset) : wide(0), stride = wide(1);
    for (size_t d = index.size(); d-- > 0;) {
      at = add(at, mul(widen(index[d]), b.strides.empty() ? stride : widen(b.strides[d])));
      stride = mul(stride, widen(b.shape[d]));
    }
    return at;
  }
  // Whether the elements at lane 0, 1, ... are neighbours, the first one aligned, and all in bounds if the first is.
  bool is_wide(BufferId id, const std::vector<Expr>& index, const Held& at, const std::set<VarId>& bound) const {
    const Buffer& b = l_.buffer(id);
    if (!c_.is_memory(id) || b.type.is_packed() || b.type.is_bool() || index.empty() || b.address) return false;
    if (l_.buffer(l_.program.root(id)).address) return false;
    if (!b.strides.empty() && constant_int(b.strides.back()) != 1) return false;
    for (size_t d = 0; d < index.size(); ++d) {
      if (coefficient(index[d], id_of(at.lane)) != (d + 1 == index.size() ? 1 : 0)) return false;
      for (VarId v : used_vars(index[d]))
        if (bound.contains(v)) return false;
      bool reads = false;
      walk(index[d], [&](const Expr& x) { reads = reads || x.as<Load>(); });
      if (reads) return false;
    }
    const int64_t width = at.vector;
    const Expr first = flat_offset(id, at_lane_zero(index, at));
    const Expr last = at_lane_zero(index, at).back();
    const bool whole = !l_.is_global(id) || (analysis::power_of_two_divisor(widen(last)) % width == 0 &&
                                             analysis::power_of_two_divisor(widen(b.shape.back())) % width == 0);
    return whole && analysis::power_of_two_divisor(first) % width == 0;
  }
  static std::vector<Expr> at_lane_zero(const std::vector<Expr>& index, const Held& at) {
    std::vector<Expr> out;
    for (const Expr& e : index) out.push_back(substitute(e, {{id_of(at.lane), constant(0)}}));
    return out;
  }

  Body vector(Body body, const Held& at) {
    std::set<VarId> bound = bound_vars(body);
    std::vector<Wide> loads, stores;
    // Stores at the top of the body, one a buffer.
    std::map<BufferId, int> writes;
    walk(body, [&](const Stmt& s) {
      if (const auto* n = s.as<Store>()) ++writes[l_.program.root(n->to.buffer)];
      if (const auto* n = s.as<Atomic>()) writes[l_.program.root(n->to.buffer)] += 2;
    });
    auto find_load = [&](const Expr& e) {
      const auto* n = e.as<Load>();
      if (!n || !is_wide(n->buffer, n->indices, at, bound)) return;
      if (writes.contains(l_.program.root(n->buffer)) && body.size() > 1) return;
      if (std::any_of(loads.begin(), loads.end(), [&](const Wide& w) { return equal(w.load, e); })) return;
      loads.push_back({e, {}, new_registers(n->buffer, at), {n->buffer, at_lane_zero(n->indices, at)}});
    };
    walk_exprs(body, find_load);
    for (const Stmt& s : body) {
      const auto* n = s.as<Store>();
      if (!n || writes[l_.program.root(n->to.buffer)] != 1 || !is_wide(n->to.buffer, n->to.indices, at, bound))
        continue;
      stores.push_back(
          {{}, n->to.buffer, new_registers(n->to.buffer, at), {n->to.buffer, at_lane_zero(n->to.indices, at)}});
    }
    if (queue_ != Queue::None && loads.size() == 1 && stores.size() == 1) return direct(loads[0], stores[0], at);
    body = rewrite_exprs(body, [&](const Expr& e) -> std::optional<Expr> {
      for (const Wide& w : loads)
        if (equal(w.load, e)) return load(w.registers, {at.lane}, e->type);
      return std::nullopt;
    });
    body = rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<Store>();
      for (const Wide& w : stores)
        if (n && n->to.buffer == w.stored)
          return Body{make_stmt(Store{{w.registers, {at.lane}}, n->value}, s->location)};
      return std::nullopt;
    });
    Body out;
    for (const Wide& w : loads) append(out, wide_load(w, at));
    out.push_back(loop(l_, at.lane, constant(0), constant(at.vector), guard_accesses(by_first_copy(body, at), l_),
                       LoopKind::Unroll));
    for (const Wide& w : stores) append(out, wide_store(w, at));
    return out;
  }
  static void append(Body& out, Body code) { out.insert(out.end(), code.begin(), code.end()); }

  BufferId new_registers(BufferId of, const Held& at) {
    const Buffer& b = l_.buffer(of);
    return l_.temporary(b.name + "_vector", b.type, {at.vector}, Space::Local);
  }
  // Accesses of at most 16 bytes; the memory behind them must be aligned so.
  template <class F>
  void pieces(const Wide& w, const Held& at, F&& f) {
    Buffer& root = l_.program.buffers[l_.program.root(w.first.buffer).index];
    const int64_t bytes = l_.type(w.first.buffer).storage_bits() / 8;
    const int64_t step = std::min(at.vector, kAccessBytes / bytes);
    root.alignment = std::max(root.alignment, step * bytes);
    for (int64_t i = 0; i < at.vector; i += step) {
      Region memory{w.first.buffer, w.first.indices, {}};
      for (size_t d = 0; d < memory.min.size(); ++d)
        memory.extent.push_back(constant(d + 1 == memory.min.size() ? step : 1));
      for (Expr& e : memory.min) e = widen(e);
      memory.min.back() = add(memory.min.back(), wide(i));
      f(memory, Region{w.registers, {constant(i)}, {constant(step)}});
    }
  }
  // Whether the first element exists; none: it does.
  Expr exists(const Wide& w) {
    const Expr guarded = guard_accesses(load(w.first.buffer, w.first.indices, l_.type(w.first.buffer)), l_);
    const auto* s = guarded.as<Select>();
    return s ? s->condition : Expr{};
  }
  Body wide_load(const Wide& w, const Held& at) {
    Body move, fill;
    pieces(w, at, [&](const Region& memory, const Region& registers) {
      Copy copy;
      copy.from = memory, copy.to = registers;
      move.push_back(l_.make(std::move(copy)));
    });
    const Expr check = exists(w);
    if (!check) return move;
    const Buffer& b = l_.buffer(w.first.buffer);
    const Expr lane = l_.index("lane", wide(at.vector));
    fill.push_back(loop(l_, lane, wide(0), wide(at.vector),
                        {l_.make(Store{{w.registers, {lane}}, b.fill ? b.fill : constant(b.type, int64_t{0})})},
                        LoopKind::Unroll));
    return {l_.make(If{check, std::move(move), std::move(fill)})};
  }
  // From memory to memory, past the registers.
  Body direct(const Wide& from, const Wide& to, const Held& at) {
    std::vector<Region> sources, targets;
    pieces(from, at, [&](const Region& memory, const Region&) { sources.push_back(memory); });
    pieces(to, at, [&](const Region& memory, const Region&) { targets.push_back(memory); });
    Body move, fill;
    const Expr zero = constant(l_.type(to.first.buffer), int64_t{0});
    for (size_t i = 0; i < sources.size(); ++i) {
      Copy copy;
      copy.from = sources[i], copy.to = targets[i], copy.completion.queue = queue_;
      move.push_back(l_.make(std::move(copy)));
    }
    const Expr check = exists(from);
    if (!check) return move;
    std::vector<Expr> index = widened(to.first.indices);
    const Expr lane = l_.index("lane", wide(at.vector));
    index.back() = add(index.back(), lane);
    fill.push_back(
        loop(l_, lane, wide(0), wide(at.vector), {l_.make(Store{{to.first.buffer, index}, zero})}, LoopKind::Unroll));
    return {l_.make(If{check, std::move(move), std::move(fill)})};
  }
  Body wide_store(const Wide& w, const Held& at) {
    Body move;
    pieces(w, at, [&](const Region& memory, const Region& registers) {
      Copy copy;
      copy.from = registers, copy.to = memory;
      move.push_back(l_.make(std::move(copy)));
    });
    Expr check = exists(w);
    if (at.first_copy) check = check ? logical_and(at.first_copy, check) : at.first_copy;
    return check ? Body{l_.make(If{check, std::move(move), {}})} : move;
  }

  const Map& map_;
  const Team& team_;
  CollectiveLowering& c_;
  Lowering& l_;
  const Queue queue_;
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
  } else if (team.barrier > 0) {
    sync.scope = SyncScope::Named;
    sync.barrier = constant(static_cast<int64_t>(team.barrier)), sync.count = team.count;
  }
  return l.make(std::move(sync));
}

std::optional<Expr> CollectiveLowering::in_registers(const Expr& e, const Held& at,
                                                     const std::vector<VarId>& vars) const {
  const auto* n = e.as<Load>();
  if (!n) return std::nullopt;
  const auto found = registers.find(n->buffer);
  if (found == registers.end()) return std::nullopt;
  std::vector<int> dims;
  for (const Expr& index : n->indices) {
    const auto* c = index.as<Cast>();
    const auto* v = (c ? c->value : index).as<Var>();
    const auto place = v ? std::find(vars.begin(), vars.end(), v->id) : vars.end();
    dims.push_back(place == vars.end() ? -1 : static_cast<int>(place - vars.begin()));
  }
  return load(found->second, {register_of(*placement.layout_of(n->buffer), at, dims)}, e->type);
}

Body lower_map(const Map& map, const FragmentLayout* points, const Team& team, CollectiveLowering& c) {
  MapLowering lowering(map, team, c);
  return points ? lowering.by_layout(*points) : lowering.in_order();
}

Body lower_async_copy(const Copy& copy, const FragmentLayout& points, const Team& team, CollectiveLowering& c) {
  Copy plain = copy;
  plain.completion = {};
  const Map map = map_of(plain, c.l.program, c.l.at);
  return MapLowering(map, team, c, copy.completion.queue).by_layout(points);
}

}  // namespace tilewright::passes
