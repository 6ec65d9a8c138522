#include "passes/loops/transpose_tiles.h"

#include "analysis/body_order.h"
#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/loops/stream_stores.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kBlock = 16;  // extents are multiples of it: the largest block of the text

// One side of a copy by two loops: the dimensions that follow their variables, by how much, and where the box begins.
struct Side {
  BufferId buffer;
  std::vector<Expr> min;
  size_t outer = SIZE_MAX, inner = SIZE_MAX;  // dimensions of the outer and the inner loop's variable
  int64_t outer_step = 0, inner_step = 0;
};

struct CopyNest {
  int64_t outer_extent = 0, inner_extent = 0;
  Side from, to;
  int64_t unit = 1;  // neighbouring elements that stay together, by a loop of their own
};

// index = step * variable + rest: both. The step is 0 if the variable occurs in any other way.
std::pair<int64_t, Expr> without(const Expr& index, VarId v) {
  std::vector<Term> terms{{1, index}}, rest;
  int64_t constant = 0, step = 0;
  if (const auto* s = index.as<Sum>()) terms = s->terms, constant = s->constant;
  for (const Term& t : terms) {
    const Var* n = analysis::variable_of(t.value);
    if (n && n->id == v && step == 0)
      step = t.coefficient;
    else if (used_vars(t.value).contains(v))
      return {0, {}};
    else
      rest.push_back(t);
  }
  return {step, sum(std::move(rest), constant, i64)};
}

std::optional<Side> side_of(BufferId id, const std::vector<Expr>& index, VarId outer, VarId inner) {
  Side side;
  side.buffer = id;
  for (size_t d = 0; d < index.size(); ++d) {
    const std::set<VarId> used = used_vars(index[d]);
    const bool has_outer = used.contains(outer), has_inner = used.contains(inner);
    if (!has_outer && !has_inner) {
      side.min.push_back(index[d]);
      continue;
    }
    size_t& dim = has_outer ? side.outer : side.inner;
    const auto [step, rest] = without(index[d], has_outer ? outer : inner);
    if (step <= 0 || (has_outer && has_inner) || dim != SIZE_MAX) return std::nullopt;
    dim = d, (has_outer ? side.outer_step : side.inner_step) = step;
    side.min.push_back(rest);
  }
  if (side.outer == SIZE_MAX || side.inner == SIZE_MAX) return std::nullopt;
  for (const Expr& e : side.min) {
    bool reads = false;
    walk(e, [&](const Expr& x) { reads = reads || x.as<Load>(); });
    if (reads) return std::nullopt;
  }
  return side;
}

// The indices at the first of the elements that stay together, if the variable runs along the last dimension.
std::optional<std::vector<Expr>> at_first(std::vector<Expr> index, VarId part) {
  for (size_t d = 0; d < index.size(); ++d) {
    if (!used_vars(index[d]).contains(part)) {
      if (d + 1 == index.size()) return std::nullopt;
      continue;
    }
    const auto [step, rest] = without(index[d], part);
    if (step != 1 || d + 1 != index.size()) return std::nullopt;
    index[d] = rest;
  }
  return index;
}

constexpr int64_t kMostComputed = 32768;  // bytes of what is computed before it is transposed: the nearest cache's

class Transposing {
 public:
  Transposing(LoopProgram& program, const Body& block, int32_t launch)
      : program_(program), block_(block), launch_(launch) {}

  Body body(const Body& in) {
    Body out;
    for (const Stmt& s : in) {
      if (const auto nest = copy_nest(s); nest && transposes(*nest)) {
        CopyNest copy = *nest;
        if (!out.empty() && passes_over(out.back(), copy)) out.pop_back();
        out.push_back(transpose(copy, s->location));
        continue;
      }
      if (const std::optional<Stmt> rows = computed_in_rows(s)) {
        out.push_back(*rows);
        out.push_back(transpose(*copy_nest(copied_), s->location));
        continue;
      }
      out.push_back(inside(s));
    }
    return out;
  }

 private:
  Stmt inside(const Stmt& s) {
    if (const auto* n = s.as<For>()) {
      For f = *n;
      f.body = body(n->body);
      return make_stmt(std::move(f), s->location);
    }
    if (const auto* n = s.as<If>())
      return make_stmt(If{n->condition, body(n->then_body), body(n->else_body)}, s->location);
    return s;
  }

  // Does the launch have one store to it and one load of it, and nothing else of it?
  bool passes_one_value(BufferId id) const {
    for (const Buffer& b : program_.buffers)
      if (b.is_view() && b.root == id) return false;
    size_t uses = 0;
    walk(block_, [&](const Stmt& s) {
      if (const auto* n = s.as<Store>()) uses += n->to.buffer == id;
      if (!s.as<Store>() && !s.as<For>() && !s.as<If>() && !s.as<Let>() && !s.as<While>())
        uses += 3 * used_buffers({s}).contains(id);
    });
    walk_exprs(block_, [&](const Expr& e) {
      if (const auto* n = e.as<Load>()) uses += n->buffer == id;
      if (const auto* n = e.as<Address>()) uses += 3 * (n->buffer == id);
    });
    return uses == 2;
  }

  // The value stored, behind a scalar that holds it for that moment alone.
  const Load* value_of(const Body& body, const Store*& store) const {
    if (body.empty() || body.size() > 2) return nullptr;
    store = body.back().as<Store>();
    const auto* value = store ? store->value.as<Load>() : nullptr;
    if (body.size() == 1 || !value) return value;
    const auto* first = body[0].as<Store>();
    const bool scalar = first && first->to.buffer == value->buffer && first->to.indices.empty() &&
                        program_.buffer(value->buffer).space == Space::Local;
    return scalar && passes_one_value(value->buffer) ? first->value.as<Load>() : nullptr;
  }
  std::optional<CopyNest> copy_nest(const Stmt& s) const {
    const auto* f = s.as<For>();
    const auto* g = f && f->body.size() == 1 ? f->body[0].as<For>() : nullptr;
    const bool any_order = g && g->kind != LoopKind::Grid && g->kind != LoopKind::Pipelined;
    if (!any_order || constant_int(f->begin) != 0 || constant_int(g->begin) != 0) return std::nullopt;
    const auto* parts = g->body.size() == 1 ? g->body[0].as<For>() : nullptr;
    if (parts && (constant_int(parts->begin) != 0 || constant_int(parts->extent) != 2)) return std::nullopt;
    const auto outer = constant_int(f->extent), inner = constant_int(g->extent);
    const Store* store = nullptr;
    const Load* value = value_of(parts ? parts->body : g->body, store);
    if (!outer || !inner || !value) return std::nullopt;
    const Buffer &a = program_.buffer(value->buffer), &b = program_.buffer(store->to.buffer);
    if (a.type != b.type || a.type.is_packed() || (parts && a.type.storage_bits() > 32)) return std::nullopt;
    if (analysis::may_overlap(value->buffer, store->to.buffer, program_)) return std::nullopt;
    std::optional<std::vector<Expr>> read = value->indices, written = store->to.indices;
    if (parts) read = at_first(*read, parts->var), written = at_first(*written, parts->var);
    if (!read || !written) return std::nullopt;
    const auto from = side_of(value->buffer, *read, f->var, g->var);
    const auto to = side_of(store->to.buffer, *written, f->var, g->var);
    if (!from || !to) return std::nullopt;
    CopyNest nest{*outer, *inner, *from, *to, parts ? 2 : 1};
    if (distance(*from, from->inner, from->inner_step) == nest.unit &&
        distance(*to, to->outer, to->outer_step) == nest.unit) {
      std::swap(nest.outer_extent, nest.inner_extent);
      for (Side* side : {&nest.from, &nest.to})
        std::swap(side->outer, side->inner), std::swap(side->outer_step, side->inner_step);
    }
    return nest;
  }
  // Elements of memory from one index of the dimension to the one that many further, where that is known.
  std::optional<int64_t> distance(const Side& side, size_t dim, int64_t step) const {
    const Buffer& b = program_.buffer(side.buffer);
    if (!b.strides.empty()) {
      const auto stride = constant_int(b.strides[dim]);
      return stride ? std::optional(*stride * step) : std::nullopt;
    }
    for (size_t d = dim + 1; d < b.rank(); ++d) {
      const auto extent = constant_int(b.shape[d]);
      if (!extent) return std::nullopt;
      step *= *extent;
    }
    return step;
  }
  // Is the distance a multiple of this, as far as extents are known?
  bool is_multiple(const Side& side, size_t dim, int64_t step, int64_t of) const {
    const Buffer& b = program_.buffer(side.buffer);
    if (!b.strides.empty()) return distance(side, dim, step).value_or(1) % of == 0;
    for (size_t d = dim + 1; d < b.rank(); ++d) step *= constant_int(b.shape[d]).value_or(1) % of == 0 ? of : 1;
    return step % of == 0;
  }
  bool transposes(const CopyNest& n) const {
    const bool whole_rows = n.unit == 1 || (is_multiple(n.to, n.to.outer, n.to.outer_step, n.unit) &&
                                            is_multiple(n.from, n.from.inner, n.from.inner_step, n.unit));
    return n.outer_extent % kBlock == 0 && n.inner_extent % kBlock == 0 && whole_rows &&
           distance(n.from, n.from.outer, n.from.outer_step) == n.unit &&
           distance(n.to, n.to.inner, n.to.inner_step) == n.unit;
  }

  // ---- what is computed of columns and stored in rows
  // Its computation, by vectors along the columns, into a block of its own, which a copy (copied_) then transposes.
  std::optional<Stmt> computed_in_rows(const Stmt& s) {
    const auto* f = s.as<For>();
    const auto* g = f && f->body.size() == 1 ? f->body[0].as<For>() : nullptr;
    const auto* store = g && g->body.size() == 1 ? g->body[0].as<Store>() : nullptr;
    if (!store || constant_int(f->begin) != 0 || constant_int(g->begin) != 0) return std::nullopt;
    for (const For* n : {f, g})
      if (n->kind != LoopKind::Vectorized && n->kind != LoopKind::Serial) return std::nullopt;
    const auto outer = constant_int(f->extent), inner = constant_int(g->extent);
    const Buffer& to = program_.buffer(store->to.buffer);
    if (!outer || !inner || to.type.is_packed() || *outer * *inner * to.type.storage_bits() > 8 * kMostComputed)
      return std::nullopt;
    if (!reads_columns(store->value, *f, *g, store->to.buffer)) return std::nullopt;

    Buffer block;
    block.name = "columns", block.type = to.type, block.space = Space::Shared, block.launch = launch_;
    block.shape = {constant(i32, *inner), constant(i32, *outer)};
    const size_t buffers = program_.buffers.size();
    const BufferId id = program_.new_buffer(std::move(block));
    const DType i = program_.var(f->var).type, j = program_.var(g->var).type;
    const std::vector<Expr> index{cast(var(g->var, j), i64), cast(var(f->var, i), i64)};
    For copy = *f, row = *g;
    row.body = {make_stmt(Store{store->to, load(id, index, to.type)}, s->location)};
    copy.body = {make_stmt(std::move(row), s->location)};
    copied_ = make_stmt(std::move(copy), s->location);
    const auto nest = copy_nest(copied_);
    if (!nest || !transposes(*nest)) {
      program_.buffers.resize(buffers);
      return std::nullopt;
    }
    For lanes = *f, rows = *g;
    lanes.kind = LoopKind::Vectorized, rows.kind = LoopKind::Serial;
    lanes.body = {make_stmt(Store{{id, index}, store->value}, s->location)};
    rows.body = {make_stmt(std::move(lanes), s->location)};
    return make_stmt(std::move(rows), s->location);
  }
  // Is the value made of elements that lie side by side along the outer loop, and of none that the store may change?
  bool reads_columns(const Expr& value, const For& f, const For& g, BufferId to) const {
    bool all = !value.as<Load>(), some = false;
    walk(value, [&](const Expr& e) {
      if (e.as<Address>()) all = false;
      const auto* n = e.as<Load>();
      if (!n) return;
      all = all && !program_.buffer(n->buffer).type.is_packed() && !analysis::may_overlap(n->buffer, to, program_);
      const std::set<VarId> used = used_vars(e);
      if (!used.contains(f.var)) return;
      if (used.contains(g.var)) {
        const auto side = side_of(n->buffer, n->indices, f.var, g.var);
        all = all && side && distance(*side, side->outer, side->outer_step) == 1, some = true;
      } else {
        const bool along = !n->indices.empty() && without(n->indices.back(), f.var).first == 1 &&
                           program_.buffer(n->buffer).strides.empty();
        for (size_t d = 0; d + 1 < n->indices.size(); ++d) all = all && !used_vars(n->indices[d]).contains(f.var);
        all = all && along;
      }
    });
    return all && some;
  }

  // Is the source a tile that the statement before filled from global memory, and that nothing else touches?
  bool passes_over(const Stmt& before, CopyNest& copy) const {
    const auto fill = copy_nest(before);
    const BufferId tile = copy.from.buffer;
    if (!fill || fill->to.buffer != tile || program_.buffer(tile).space == Space::Global) return false;
    const bool one_by_one = copy.unit == 1 && fill->unit == 1 && fill->to.outer_step == 1 && fill->to.inner_step == 1 &&
                            copy.from.outer_step == 1 && copy.from.inner_step == 1;
    if (!one_by_one) return false;
    const Buffer& source = program_.buffer(program_.root(fill->from.buffer));
    const BufferId target = program_.root(copy.to.buffer);
    if (source.space != Space::Global || source.address || program_.buffer(target).address ||
        program_.root(fill->from.buffer) == target)
      return false;
    // The tile's rows are the source's: both loops of the filling run along the same dimensions of both.
    const bool same_box = fill->to.outer == copy.from.inner && fill->to.inner == copy.from.outer &&
                          fill->outer_extent == copy.inner_extent && fill->inner_extent == copy.outer_extent &&
                          equal(fill->to.min, copy.from.min) &&
                          distance(fill->from, fill->from.inner, fill->from.inner_step) == 1;
    if (!passes_one_value(tile) || !same_box) return false;
    copy.from = fill->from;
    std::swap(copy.from.outer, copy.from.inner), std::swap(copy.from.outer_step, copy.from.inner_step);
    return true;
  }

  static Matrix matrix(const Side& side, size_t down, int64_t down_step, size_t along, int64_t along_step) {
    return {{side.buffer, side.min}, static_cast<int64_t>(down), down_step, static_cast<int64_t>(along), along_step};
  }
  Stmt transpose(const CopyNest& n, LocationId at) const {
    const bool global = program_.buffer(program_.root(n.to.buffer)).space == Space::Global;
    Transpose t;
    t.from = matrix(n.from, n.from.inner, n.from.inner_step, n.from.outer, n.from.outer_step);
    t.to = matrix(n.to, n.to.outer, n.to.outer_step, n.to.inner, n.to.inner_step);
    t.rows = n.outer_extent, t.columns = n.inner_extent, t.unit = n.unit;
    t.large = global ? is_large(program_, block_, n.to.buffer) : constant(boolean, int64_t{0});
    return make_stmt(std::move(t), at);
  }

  LoopProgram& program_;
  const Body& block_;
  int32_t launch_;
  Stmt copied_;
};

}  // namespace

LoopProgram transpose_tiles(LoopProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Body before = program.launches[i].body;
    program.launches[i].body = Transposing(program, before, static_cast<int32_t>(i)).body(before);
  }
  return program;
}

}  // namespace tilewright::passes
