// Copy and Fill as loops. What is out of bounds is cut off outside the loops, so the inner ones run without guards.
#include "analysis/im2col.h"
#include "passes/lower/lowering.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::im2col_element;

namespace {

// One side of the copy: where its elements are, and which part of the box exists.
struct Side {
  BufferId buffer;
  std::vector<Expr> index;      // of the element at the box variables, all dimensions
  std::vector<Expr> low, high;  // per box dimension; none: the whole extent exists
  Expr exists;                  // dimensions that are no box dimension; none: they do
};

bool is_one(const Expr& e) { return constant_int(e) == 1; }

struct Box {
  std::vector<Expr> vars, extents;
};

// A name for the value, so that loops do not compute it again.
Expr bind_value(const char* name, const Expr& value, Body& before, Lowering& l) {
  if (is_constant(value) || value.as<Var>()) return value;
  const VarId id = l.program.new_var(name, i64);
  l.intervals.set(id, l.intervals.of(value));
  before.push_back(l.make(Let{id, value}));
  return var(id, i64);
}

// A number far outside is outside nearer by as well, where sums with it do not wrap around.
Expr begin_of(const Expr& e) {
  constexpr int64_t kFarthest = int64_t{1} << 40;
  const auto number = constant_int(e);
  return number ? wide(std::clamp(*number, -kFarthest, kFarthest)) : widen(e);
}

Side make_side(const Region& region, const Box& box, Body& before, Lowering& l) {
  Side side{region.buffer, {}, std::vector<Expr>(box.vars.size()), std::vector<Expr>(box.vars.size()), {}};
  const Buffer& b = l.buffer(region.buffer);
  const bool bounded = l.is_global(region.buffer);
  const std::vector<Expr> shape = widened(b.shape);
  size_t at = 0;
  for (size_t d = 0; d < region.min.size(); ++d) {
    const Expr min = begin_of(region.min[d]);
    if (is_one(region.extent[d])) {
      side.index.push_back(min);
      const Expr inside = logical_and(binary(BinaryOp::Le, wide(0), min), binary(BinaryOp::Lt, min, shape[d]));
      if (bounded && !l.intervals.proves(inside)) side.exists = side.exists ? logical_and(side.exists, inside) : inside;
      continue;
    }
    const Expr& extent = box.extents[at];
    side.index.push_back(add(min, box.vars[at]));
    if (bounded && !l.intervals.proves(binary(BinaryOp::Le, wide(0), min)))
      side.low[at] = bind_value("first", maximum(wide(0), minimum(sub(wide(0), min), extent)), before, l);
    if (bounded && !l.intervals.proves(binary(BinaryOp::Le, add(min, extent), shape[d]))) {
      const Expr low = side.low[at] ? side.low[at] : wide(0);
      side.high[at] = bind_value("last", maximum(low, minimum(sub(shape[d], min), extent)), before, l);
    }
    ++at;
  }
  return side;
}

Expr fill_value(const Buffer& b) { return b.fill ? b.fill : constant(b.type, int64_t{0}); }

struct CopyNest {
  Lowering& l;
  const Copy& copy;
  Box box;
  Side from, to;

  Stmt element(bool outside) const {
    const Buffer& source = l.buffer(from.buffer);
    const DType type = l.type(to.buffer);
    const Expr value = cast(outside ? fill_value(source) : load(from.buffer, from.index, l.type(from.buffer)), type);
    if (copy.combine == Combine::None) return l.make(Store{{to.buffer, to.index}, value});
    Atomic a;
    a.op = atomic_op_of(copy.combine);
    a.to = {to.buffer, to.index}, a.value = value;
    return l.make(std::move(a));
  }
  bool vectorizable() const { return copy.combine == Combine::None && !l.buffer(to.buffer).type.is_packed(); }

  void add_loop(Body& out, size_t d, const Expr& begin, const Expr& end, bool outside) const {
    const auto b = constant_int(begin), e = constant_int(end);
    if (b && e && *b >= *e) return;
    const bool innermost = d + 1 == box.vars.size();
    out.push_back(loop(l, box.vars[d], begin, end, nest(d + 1, outside),
                       innermost && vectorizable() ? LoopKind::Vectorized : LoopKind::Serial));
  }
  Body nest(size_t d, bool outside) const {
    if (d == box.vars.size()) return {element(outside)};
    Body out;
    const Expr low = to.low[d] ? to.low[d] : wide(0), high = to.high[d] ? to.high[d] : box.extents[d];
    if (outside) {
      add_loop(out, d, low, high, true);
      return out;
    }
    // to.low <= first <= end <= to.high, with the parts outside the source before and after
    const Expr first = from.low[d] ? maximum(low, minimum(from.low[d], high)) : low;
    const Expr end = from.high[d] ? maximum(first, minimum(from.high[d], high)) : high;
    if (from.low[d]) add_loop(out, d, low, first, true);
    add_loop(out, d, first, end, false);
    if (from.high[d]) add_loop(out, d, end, high, true);
    return out;
  }
};

Body when(const Expr& condition, Body then_body, Body else_body, Lowering& l) {
  if (!condition) return then_body;
  return {l.make(If{condition, std::move(then_body), std::move(else_body)})};
}

Box box_of(const Region& region, Lowering& l) {
  static constexpr const char* kNames[] = {"i", "j", "k", "m", "n", "p"};
  Box box;
  for (const Expr& extent : region.extent) {
    if (is_one(extent)) continue;
    box.extents.push_back(widen(extent));
    box.vars.push_back(l.index(kNames[std::min<size_t>(box.vars.size(), 5)], box.extents.back()));
  }
  return box;
}

// Element (i, j) of the tile is pixel row_block * rows + i and patch column column_block * columns + j.
Body lower_im2col(const Copy& copy, Lowering& l) {
  const Buffer& image = l.buffer(copy.from.buffer);
  const Box box = box_of(copy.to, l);
  std::vector<Expr> point;
  size_t at = 0;
  for (const Expr& extent : copy.to.extent) point.push_back(is_one(extent) ? wide(0) : box.vars[at++]);
  const Expr value = load(copy.from.buffer, im2col_element(copy, image.shape, point), image.type);
  Element to{copy.to.buffer, {}};
  for (size_t d = 0; d < point.size(); ++d) to.indices.push_back(add(widen(copy.to.min[d]), point[d]));
  return lower_box(box.vars, box.extents, {l.make(Store{to, cast(value, l.buffer(to.buffer).type)})}, l);
}

std::vector<Expr> indices(const Region& r, const Box& box) {
  std::vector<Expr> out;
  size_t at = 0;
  for (size_t d = 0; d < r.min.size(); ++d)
    out.push_back(is_one(r.extent[d]) ? widen(r.min[d]) : add(widen(r.min[d]), box.vars[at++]));
  return out;
}

bool in_panels(const Region& r, const Lowering& l) {
  const auto& tile = l.buffer(r.buffer).tile;
  return tile && tile->width > 0;
}

// Tiles in panels: the loops follow the panels, and the block's edge is one question before them.
Body copy_panels(const Copy& copy, const Box& box, Lowering& l) {
  const Expr element = load(copy.from.buffer, indices(copy.from, box), l.type(copy.from.buffer));
  const Store store{{copy.to.buffer, indices(copy.to, box)}, cast(element, l.type(copy.to.buffer))};
  return lower_box(box.vars, box.extents, {l.make(store)}, l);
}

// e / 2 if that is sure to be whole.
std::optional<Expr> half(const Expr& e) {
  const Expr w = widen(e);
  if (auto c = constant_int(w)) return *c % 2 == 0 ? std::optional(wide(*c / 2)) : std::nullopt;
  const auto* s = w.as<Sum>();
  if (!s || s->constant % 2 != 0) return std::nullopt;
  std::vector<Term> terms = s->terms;
  for (Term& t : terms) {
    if (t.coefficient % 2 != 0) return std::nullopt;
    t.coefficient /= 2;
  }
  return sum(std::move(terms), s->constant / 2, i64);
}

// The region of 4-bit elements as whole bytes, through a view of its own, if its rows begin and end at bytes.
std::optional<Region> as_bytes(const Region& r, Lowering& l) {
  Buffer b = l.buffer(r.buffer);
  if (b.rank() == 0 || b.tile || b.fill || b.address || l.buffer(l.program.root(r.buffer)).address) return std::nullopt;
  if (!b.strides.empty() && constant_int(b.strides.back()) != 1) return std::nullopt;
  const size_t last = b.rank() - 1;
  const auto shape = half(b.shape[last]), min = half(r.min[last]), extent = half(r.extent[last]);
  if (!shape || !min || !extent) return std::nullopt;
  for (size_t d = 0; d < b.strides.size() && d < last; ++d) {
    const auto stride = half(b.strides[d]);
    if (!stride) return std::nullopt;
    b.strides[d] = *stride;
  }
  if (b.offset) {
    const auto offset = half(b.offset);
    if (!offset) return std::nullopt;
    b.offset = *offset;
  }
  b.root = l.program.root(r.buffer), b.type = u8, b.shape[last] = *shape, b.workspace = false;
  Region out = r;
  out.min[last] = *min, out.extent[last] = *extent;
  out.buffer = l.program.new_buffer(std::move(b));
  return out;
}

}  // namespace

template <>
Body lower(const Copy& copy, Lowering& l) {
  if (copy.im2col.present()) return lower_im2col(copy, l);
  if (l.type(copy.from.buffer).is_packed() && l.type(copy.from.buffer) == l.type(copy.to.buffer) &&
      copy.combine == Combine::None) {
    const auto from = as_bytes(copy.from, l), to = as_bytes(copy.to, l);
    if (from && to && !is_one(from->extent.back()) && !is_one(to->extent.back())) {
      Copy bytes = copy;
      bytes.from = *from, bytes.to = *to;
      return lower(bytes, l);
    }
  }
  Body out;
  const Box box = box_of(copy.to, l);
  if (in_panels(copy.from, l) || in_panels(copy.to, l)) return copy_panels(copy, box, l);
  CopyNest nest{l, copy, box, make_side(copy.from, box, out, l), make_side(copy.to, box, out, l)};
  Body inside = nest.nest(0, false);
  Body outside = nest.from.exists ? nest.nest(0, true) : Body{};
  Body body = when(nest.to.exists, when(nest.from.exists, std::move(inside), std::move(outside), l), {}, l);
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

template <>
Body lower(const Fill& fill, Lowering& l) {
  Body out;
  const Box box = box_of(fill.to, l);
  if (in_panels(fill.to, l))
    return lower_box(box.vars, box.extents, {l.make(Store{{fill.to.buffer, indices(fill.to, box)}, fill.value})}, l);
  const Side to = make_side(fill.to, box, out, l);
  Body body{l.make(Store{{to.buffer, to.index}, guard_accesses(fill.value, l)})};
  const bool vectorizable = !l.buffer(to.buffer).type.is_packed();
  for (size_t d = box.vars.size(); d-- > 0;) {
    const LoopKind kind = vectorizable && d + 1 == box.vars.size() ? LoopKind::Vectorized : LoopKind::Serial;
    body = {
        loop(l, box.vars[d], to.low[d] ? to.low[d] : wide(0), to.high[d] ? to.high[d] : box.extents[d], body, kind)};
  }
  body = when(to.exists, std::move(body), {}, l);
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

}  // namespace tilewright::passes
