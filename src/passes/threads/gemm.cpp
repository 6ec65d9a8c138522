// Gemm by fused multiply-add, for every type and shape: each thread adds up its own elements of c, in ascending k.
#include "ir/operators.h"
#include "passes/threads/collectives.h"

namespace tilewright::passes {

using namespace ir;

Body lower_gemm(const Gemm& g, const FragmentLayout* points, const Team& team, CollectiveLowering& c) {
  Lowering& l = c.l;
  const FragmentLayout& layout = points ? *points : *c.placement.layout_of(g.c.buffer);
  const DType c_type = l.type(g.c.buffer), type = accumulator(c_type);
  const BufferId totals = l.temporary(l.buffer(g.c.buffer).name + "_sum", type, {layout.registers()}, Space::Local);
  const size_t rank = g.a.extent.size();
  const Expr k_extent = widen(g.transpose_a ? g.a.extent[rank - 2] : g.a.extent[rank - 1]);
  const Expr k = l.index("k", k_extent);
  const auto found = c.registers.find(g.c.buffer);
  auto element = [&](const Region& r, const Expr& row, const Expr& column) {
    std::vector<Expr> index;
    for (const Expr& e : r.min) index.push_back(widen(e));
    const size_t n = index.size();
    index[n - 2] = add(index[n - 2], widen(row)), index[n - 1] = add(index[n - 1], widen(column));
    return index;
  };
  auto operand = [&](const Region& r, const Expr& row, const Expr& column) {
    const Expr e = load(r.buffer, element(r, row, column), l.type(r.buffer));
    return cast(guard_accesses(e, l), type);
  };
  auto target = [&](const Held& at) {
    if (found != c.registers.end()) return Element{found->second, {register_of(layout, at, {0, 1})}};
    return Element{g.c.buffer, element(g.c, at.index[0], at.index[1])};
  };
  auto slot = [&](const Held& at) { return register_of(layout, at, {0, 1}); };
  Body out = deal(layout, team, l, false, [&](const Held& at) {
    Expr start = cast(guard_accesses(load(target(at).buffer, target(at).indices, c_type), l), type);
    if (g.clear) start = select(g.clear, constant(type, int64_t{0}), start);
    return Body{l.make(Store{{totals, {slot(at)}}, start})};
  });
  Body step = deal(layout, team, l, false, [&](const Held& at) {
    const Expr a = g.transpose_a ? operand(g.a, k, at.index[0]) : operand(g.a, at.index[0], k);
    const Expr b = g.transpose_b ? operand(g.b, at.index[1], k) : operand(g.b, k, at.index[1]);
    const Expr sum = load(totals, {slot(at)}, type);
    return Body{l.make(Store{{totals, {slot(at)}}, type.is_float() ? fma(a, b, sum) : add(mul(a, b), sum)})};
  });
  out.push_back(loop(l, k, wide(0), k_extent, std::move(step)));
  const Body back = deal(layout, team, l, false, [&](const Held& at) {
    const Body store = guard_accesses({l.make(Store{target(at), cast(load(totals, {slot(at)}, type), c_type)})}, l);
    return found == c.registers.end() && at.first_copy ? Body{l.make(If{at.first_copy, store, {}})} : store;
  });
  out.insert(out.end(), back.begin(), back.end());
  return out;
}

}  // namespace tilewright::passes
