// Reduce and Scan as loops. The order of a sum is fixed by the text written here, not by the host compiler: along the
// innermost dimension by lanes, which a fixed tree combines; along any other in ascending order.
#include "ir/extent.h"
#include "ir/joins.h"
#include "passes/lower/layouts.h"
#include "scalar/functions.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Lanes of a reduction along the innermost dimension: four AVX-512 registers of float hide the latency of an addition.
constexpr int64_t kLanes = 64, kFewLanes = 16;
constexpr int64_t kChains = 8;  // rows that are scanned side by side

// The box of a reduction: the kept dimensions with their variables, and the one along which it goes.
struct Walk {
  std::vector<Expr> vars, extents;  // kept, without those of extent 1
  Expr along, count;                // variable and extent of the other
  std::vector<Expr> from, to;       // indices of the elements
};

// `kept`: the dimension of `from` that each of `to` is; -1: none.
Walk make_walk(const Region& from, const Region& to, size_t dim, const std::vector<int>& kept, Lowering& l) {
  Walk w;
  w.count = widen(from.extent[dim]);
  w.along = l.index("k", w.count);
  std::vector<Expr> offsets;  // of `from`
  for (size_t d = 0; d < from.min.size(); ++d) {
    offsets.push_back(d == dim ? w.along : wide(0));
    if (d != dim && constant_int(from.extent[d]) != 1) {
      w.extents.push_back(widen(from.extent[d]));
      w.vars.push_back(l.index(w.vars.empty() ? "i" : "j", w.extents.back()));
      offsets.back() = w.vars.back();
    }
    w.from.push_back(add(widen(from.min[d]), offsets.back()));
  }
  for (size_t t = 0; t < to.min.size(); ++t)
    w.to.push_back(kept[t] < 0 ? widen(to.min[t]) : add(widen(to.min[t]), offsets[static_cast<size_t>(kept[t])]));
  if (w.to.empty()) w.to.push_back(wide(0));  // a vector reduced into a buffer of one element
  return w;
}

Expr magnitude(ReduceOp op, const Expr& e) {
  if (op != ReduceOp::AbsSum && op != ReduceOp::AbsMax) return e;
  if (e->type.is_bool() || (e->type.is_int() && !e->type.is_signed())) return e;
  return intrinsic(*function_named("abs"), {e});
}

struct ReduceNest {
  Lowering& l;
  const Reduce& r;
  Walk w;
  DType to_type, acc_type;

  Expr source(const Expr& k) const {
    const Expr element = substitute_along(load(r.from.buffer, w.from, l.type(r.from.buffer)), k);
    return magnitude(r.op, cast(cast(element, to_type), acc_type));
  }
  Expr substitute_along(const Expr& e, const Expr& k) const {
    return k.same(w.along) ? e : substitute(e, {{id_of(w.along), k}});
  }
  // `a` is a total so far, and no NaN. One of magnitudes is no negative zero either: a comparison is all it takes.
  Expr join(const Expr& a, const Expr& b) const {
    if (!a->type.is_float() || r.nan_propagate) return combine(r.op, a, b, r.nan_propagate);
    if (r.op == ReduceOp::AbsMax) return select(binary(BinaryOp::Lt, a, b), b, a);
    if (r.op != ReduceOp::Max && r.op != ReduceOp::Min) return combine(r.op, a, b, r.nan_propagate);
    return extreme_so_far(r.op == ReduceOp::Max ? BinaryOp::Max : BinaryOp::Min, a, b);
  }
  Expr start() const { return identity(r.op, acc_type); }
  Stmt finish(const Expr& total) const {
    const Expr old = cast(load(r.to.buffer, w.to, to_type), acc_type);
    return l.make(Store{{r.to.buffer, w.to},
                        as_result(r.op, r.clear ? total : combine(r.op, old, total, r.nan_propagate), to_type)});
  }
  Body outer_loops(Body body, size_t count) const {
    for (size_t d = count; d-- > 0;) body = {loop(l, w.vars[d], wide(0), w.extents[d], std::move(body))};
    return body;
  }

  Body by_lanes() const {
    const int64_t count = constant_int(w.count).value_or(kLanes);
    int64_t lanes = count >= 2 * kLanes ? kLanes : count >= kFewLanes ? kFewLanes : 1;
    if (const auto& tile = l.buffer(r.from.buffer).tile; tile && tile->width > 0 && count >= tile->width)
      lanes = tile->width;  // then a chunk is a panel
    const BufferId acc = l.temporary("lanes", acc_type, {lanes}, Space::Local);
    const Expr lane = l.index("lane", wide(lanes)), chunk = l.index("chunk", w.count);
    auto lane_loop = [&](const Expr& extent, const Expr& value) {
      return loop(l, lane, wide(0), extent, {l.make(Store{{acc, {lane}}, value})}, LoopKind::Vectorized);
    };
    const Expr old = load(acc, {lane}, acc_type);
    const Expr turns = binary(BinaryOp::Max, w.count, wide(0));  // else chunks of fewer than none would leave some
    const Expr whole = binary(BinaryOp::FloorDiv, turns, wide(lanes)), done = mul(whole, wide(lanes));
    Body body{lane_loop(wide(lanes), start())};
    body.push_back(loop(l, chunk, wide(0), whole,
                        {lane_loop(wide(lanes), join(old, source(add(mul(chunk, wide(lanes)), lane))))}));
    if (constant_int(sub(turns, done)) != 0)
      body.push_back(lane_loop(sub(turns, done), join(old, source(add(done, lane)))));
    // Panels may have 3, 6 or 14 lanes: where a half is none, the upper one is the shorter.
    for (int64_t left = lanes; left > 1;) {
      const int64_t lower = (left + 1) / 2;
      body.push_back(lane_loop(wide(left - lower), join(old, load(acc, {add(lane, wide(lower))}, acc_type))));
      left = lower;
    }
    body.push_back(finish(load(acc, {wide(0)}, acc_type)));
    return outer_loops(std::move(body), w.vars.size());
  }

  // Along an outer dimension: rows are combined element by element, the innermost kept dimension in a vector.
  Body by_rows() const {
    const Expr j = w.vars.back(), n = w.extents.back();
    const auto width = constant_int(n);
    if (!width) return by_lanes();
    const BufferId acc = l.temporary("row", acc_type, {*width}, Space::Shared);
    const Element slot{acc, {j}};
    auto row_loop = [&](const Stmt& s) { return loop(l, j, wide(0), n, {s}, LoopKind::Vectorized); };
    Body body{row_loop(l.make(Store{slot, start()}))};
    body.push_back(loop(l, w.along, wide(0), w.count,
                        {row_loop(l.make(Store{slot, join(load(acc, {j}, acc_type), source(w.along))}))}));
    body.push_back(row_loop(finish(load(acc, {j}, acc_type))));
    return outer_loops(std::move(body), w.vars.size() - 1);
  }

  // Across panels, whose lanes are kept elements: each lane goes in ascending order. Empty if the panels do not divide
  // the box.
  Body by_panels() const {
    const Expr i = w.vars[0], n = w.extents[0];
    const BufferId acc = l.temporary("row", acc_type, {constant_int(n).value_or(1)}, Space::Shared);
    const Element slot{acc, {i}};
    const Expr old = load(acc, {i}, acc_type);
    const CutBox cut = cut_to_panels({i}, {n}, {l.make(Store{slot, join(old, source(w.along))})}, l);
    if (cut.lanes != 1 || cut.parts != 0) return {};
    auto row_loop = [&](const Stmt& s) { return loop(l, i, wide(0), n, {s}, LoopKind::Vectorized); };
    const Stmt lanes = loop(l, cut.vars[1], wide(0), cut.extents[1], cut.body, LoopKind::Vectorized);
    const Stmt along = loop(l, w.along, wide(0), w.count, {lanes});
    return {row_loop(l.make(Store{slot, start()})), loop(l, cut.vars[0], wide(0), cut.extents[0], {along}),
            row_loop(finish(old))};
  }
};

}  // namespace

template <>
Body lower(const Reduce& r, Lowering& l) {
  const DType to_type = l.type(r.to.buffer);
  const auto dim = static_cast<size_t>(r.dim);
  ReduceNest nest{l, r, make_walk(r.from, r.to, dim, kept_dims(r), l), to_type, accumulator(to_type)};
  if (const auto& tile = l.buffer(r.from.buffer).tile;
      tile && tile->width > 0 && tile->axis != r.dim && nest.w.vars.size() == 1) {
    if (Body body = nest.by_panels(); !body.empty()) return body;
  }
  bool innermost = true;  // no kept dimension after dim
  for (size_t d = dim + 1; d < r.from.extent.size(); ++d) innermost = innermost && constant_int(r.from.extent[d]) == 1;
  return innermost || nest.w.vars.empty() ? nest.by_lanes() : nest.by_rows();
}

template <>
Body lower(const Scan& s, Lowering& l) {
  const DType to_type = l.type(s.to.buffer), acc_type = accumulator(to_type);
  const auto dim = static_cast<size_t>(s.dim);
  std::vector<int> kept;
  const int more = static_cast<int>(s.from.min.size()) - static_cast<int>(s.to.min.size());
  for (int t = 0; t < static_cast<int>(s.to.min.size()); ++t) kept.push_back(std::max(t + more, -1));
  Walk w = make_walk(s.from, s.to, dim, kept, l);
  const Expr position = s.reverse ? sub(sub(w.count, wide(1)), w.along) : w.along;
  auto at_position = [&](std::vector<Expr> index) {
    for (Expr& e : index) e = substitute(e, {{id_of(w.along), position}});
    return index;
  };
  // Several chains at a time, so that one addition need not wait for the one before: the innermost kept dimension, all
  // of it where it is the contiguous one, a few rows where they are rows.
  Substitution rows;
  Expr row = wide(0), count = wide(1);
  LoopKind kind = LoopKind::Serial;
  const auto extent = w.vars.empty() ? std::nullopt : constant_int(w.extents.back());
  const bool contiguous = dim + 1 < s.from.extent.size() && constant_int(s.from.extent.back()) != 1;
  if (extent && (contiguous || *extent % kChains == 0)) {
    row = l.index("row", wide(contiguous ? *extent : kChains));
    count = wide(contiguous ? *extent : kChains);
    kind = contiguous ? LoopKind::Vectorized : LoopKind::Unroll;
    if (contiguous) {
      rows[id_of(w.vars.back())] = row;
      w.vars.pop_back(), w.extents.pop_back();
    } else {
      const Expr group = l.index("rows", wide(*extent / kChains));
      rows[id_of(w.vars.back())] = sum({{kChains, group}, {1, row}}, 0, i64);
      w.vars.back() = group, w.extents.back() = wide(*extent / kChains);
    }
  }
  if (l.type(s.to.buffer).is_packed() && kind == LoopKind::Vectorized) kind = LoopKind::Serial;
  const BufferId total = l.temporary("total", acc_type, {constant_int(count).value_or(1)}, Space::Local);
  const Expr element = cast(cast(load(s.from.buffer, at_position(w.from), l.type(s.from.buffer)), to_type), acc_type);
  const Expr sum_so_far = load(total, {row}, acc_type);
  auto chains = [&](Body body) {
    if (constant_int(row)) return body;
    return Body{loop(l, row, wide(0), count, substitute(body, rows), kind)};
  };
  const Body step = chains({l.make(Store{{total, {row}}, combine(s.op, sum_so_far, element, false)}),
                            l.make(Store{{s.to.buffer, at_position(w.to)}, as_result(s.op, sum_so_far, to_type)})});
  Body body = chains({l.make(Store{{total, {row}}, scan_start(s.op, acc_type)})});
  body.push_back(loop(l, w.along, wide(0), w.count, step));
  for (size_t d = w.vars.size(); d-- > 0;) body = {loop(l, w.vars[d], wide(0), w.extents[d], std::move(body))};
  return body;
}

// Every contribution is there at once.
template <>
Body lower(const FinalizeReducer&, Lowering&) {
  return {};
}

}  // namespace tilewright::passes
