#include "passes/threads/map_sums.h"

#include "ir/operators.h"

namespace tilewright::passes {

using namespace ir;

namespace {

std::optional<ReduceOp> reduction(AtomicOp op, DType type) {
  if (op == AtomicOp::Add) return ReduceOp::Sum;
  if (type.is_float()) return std::nullopt;  // whose maximum of a NaN is for the atomic to say
  if (op == AtomicOp::Max) return ReduceOp::Max;
  if (op == AtomicOp::Min) return ReduceOp::Min;
  return std::nullopt;
}

// Variables that all threads see alike: of the grid, of the call, and of loops around the Map.
std::set<VarId> uniform_vars(const Map& map, const Lowering& l) {
  std::set<VarId> out(l.launch.block.begin(), l.launch.block.end());
  out.insert(l.program.symbols.begin(), l.program.symbols.end());
  for (const Param& p : l.program.params)
    if (!p.is_tensor()) out.insert(p.var);
  walk(l.launch.body, [&](const Stmt& s) {
    if (const auto* f = s.as<For>()) out.insert(f->var);
  });
  walk(map.body, [&](const Stmt& s) {
    if (const auto* f = s.as<For>()) out.erase(f->var);
  });
  return out;
}

}  // namespace

MapSums::MapSums(const Map& map, const Team& team, Lowering& l) : team_(team), l_(l) {
  if (std::all_of(map.extents.begin(), map.extents.end(), [](const Expr& e) { return constant_int(e) == 1; })) return;
  std::set<BufferId> touched;  // by anything but atomics that add to it and ask for nothing
  walk_exprs(map.body, [&](const Expr& e) {
    if (const auto* n = e.as<Load>()) touched.insert(l.program.root(n->buffer));
    if (const auto* n = e.as<Address>()) touched.insert(l.program.root(n->buffer));
  });
  walk(map.body, [&](const Stmt& s) {
    if (s.as<Call>())
      for (const auto* list : {&s.as<Call>()->reads, &s.as<Call>()->writes})
        for (const Region& r : *list) touched.insert(l.program.root(r.buffer));
    if (const auto* n = s.as<Store>()) touched.insert(l.program.root(n->to.buffer));
    // What a point asks for, or does in an order, has to be there.
    if (const auto* n = s.as<Atomic>(); n && (n->result.valid() || n->order != MemoryOrder::Relaxed))
      touched.insert(l.program.root(n->to.buffer));
  });
  const std::set<VarId> uniform = uniform_vars(map, l);
  walk(map.body, [&](const Stmt& s) {
    const auto* n = s.as<Atomic>();
    if (!n || sum_of(*n) || !may_meet(*n, uniform, touched)) return;
    // All threads come by the element in the end, also where no point does: there must be one.
    if (!is_sure(map, s) && !is_there(n->to)) return;
    const Buffer& b = l_.buffer(n->to.buffer);
    sums_.push_back({n->to, n->op, l_.temporary(b.name + "_part", b.type, {1}, Space::Local)});
  });
}

bool MapSums::is_sure(const Map& map, const Stmt& s) {
  return std::ranges::all_of(map.extents, [](const Expr& e) { return constant_int(e).value_or(0) > 0; }) &&
         std::ranges::any_of(map.body, [&](const Stmt& top) { return top.same(s); });
}

bool MapSums::is_there(const Element& e) const {
  const Buffer& b = l_.buffer(e.buffer);
  for (size_t d = 0; d < e.indices.size(); ++d) {
    const Expr i = widen(e.indices[d]);
    if (!l_.intervals.proves(binary(BinaryOp::Le, wide(0), i)) ||
        !l_.intervals.proves(binary(BinaryOp::Lt, i, widen(b.shape[d]))))
      return false;
  }
  return true;
}

bool MapSums::may_meet(const Atomic& n, const std::set<VarId>& uniform, const std::set<BufferId>& touched) const {
  const Buffer& b = l_.buffer(n.to.buffer);
  if (b.space != Space::Shared && b.space != Space::Fragment) return false;
  if (b.is_view() || touched.contains(n.to.buffer) || !reduction(n.op, b.type)) return false;
  if (b.type.bits < 32) return false;  // every addition to these is rounded: the parts would be other numbers
  for (const Expr& e : n.to.indices) {
    for (VarId v : used_vars(e))
      if (!uniform.contains(v)) return false;
    bool loads = false;
    walk(e, [&](const Expr& x) { loads = loads || x.as<Load>(); });
    if (loads) return false;
  }
  return true;
}

const MapSums::Sum* MapSums::sum_of(const Atomic& n) const {
  for (const Sum& s : sums_) {
    bool same = s.to.buffer == n.to.buffer && s.op == n.op;
    for (size_t d = 0; same && d < s.to.indices.size(); ++d) same = equal(s.to.indices[d], n.to.indices[d]);
    if (same) return &s;
  }
  return nullptr;
}

Expr MapSums::part(const Sum& s) const { return load(s.part, {constant(0)}, l_.type(s.part)); }

Body MapSums::begin() {
  Body out;
  for (const Sum& s : sums_) {
    const DType type = l_.type(s.part);
    out.push_back(l_.make(Store{{s.part, {constant(0)}}, identity(*reduction(s.op, type), type)}));
  }
  return out;
}

std::optional<Body> MapSums::take(const Stmt& s, const Held& at) const {
  const auto* n = s.as<Atomic>();
  const Sum* sum = n ? sum_of(*n) : nullptr;
  if (!sum) return std::nullopt;
  const DType type = l_.type(sum->part);
  const Expr joined = combine(*reduction(sum->op, type), part(*sum), cast(n->value, type), false);
  const Stmt store = make_stmt(Store{{sum->part, {constant(0)}}, joined}, s->location);
  return Body{at.first_copy ? make_stmt(If{at.first_copy, {store}, {}}, s->location) : store};
}

Body MapSums::end() {
  Body out;
  const bool whole_warps = team_.count % kWarpThreads == 0 && team_.begin % kWarpThreads == 0;
  for (const Sum& s : sums_) {
    const DType type = l_.type(s.part);
    for (int64_t step = kWarpThreads / 2; whole_warps && step > 0; step /= 2) {
      Shuffle other;
      other.kind = ShuffleKind::Xor, other.result = l_.program.new_var("other", type), other.value = part(s);
      other.lane = constant(step), other.converged = true;
      const Expr joined = combine(*reduction(s.op, type), part(s), var(other.result, type), false);
      out.push_back(l_.make(other));
      out.push_back(l_.make(Store{{s.part, {constant(0)}}, joined}));
    }
    Atomic whole;
    whole.op = s.op, whole.to = s.to, whole.value = part(s);
    Body change = guard_accesses({l_.make(whole)}, l_);
    if (whole_warps) {
      const Expr lane = binary(BinaryOp::FloorMod, team_.thread, constant(kWarpThreads));
      change = {l_.make(If{binary(BinaryOp::Eq, lane, constant(0)), std::move(change), {}})};
    }
    out.insert(out.end(), change.begin(), change.end());
  }
  return out;
}

}  // namespace tilewright::passes
