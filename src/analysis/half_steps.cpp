#include "analysis/half_steps.h"

#include <algorithm>

#include "analysis/body_order.h"
#include "analysis/slope.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr int64_t kFewestSteps = 64;

// Which dimension of a tile, or which variable of a Map, walks with the loop.
class Halves {
 public:
  Halves(const ProgramTables& p, const Launch& launch, const For& loop) : p_(p), launch_(launch), loop_(loop) {}

  bool find() {
    for (const Stmt& s : loop_.body)
      if (const auto* copy = s.as<Copy>(); copy && !from_tensor(*copy)) return false;
    if (step_ == 0) return false;
    for (bool more = true; more && fits_;) {
      const size_t known = cut_.size() + cut_vars_.size();
      for (const Stmt& s : loop_.body) follow(s);
      more = cut_.size() + cut_vars_.size() > known;
    }
    for (const Stmt& s : loop_.body) fits_ = fits_ && is_sum_of_halves(s);
    return fits_ && own_tiles() && halves_stay_apart();
  }

  bool can_be_cut() const { return step_ % 2 == 0 && step_ / 2 >= kFewestSteps; }
  // Each statement brings an operand from a tensor, or adds a product over the step.
  bool only_multiplies() const {
    return std::ranges::all_of(loop_.body, [&](const Stmt& s) {
      const auto* copy = s.as<Copy>();
      const auto* g = s.as<Gemm>();
      return copy ? is_global(copy->from.buffer) : g && cut_of(g->a.buffer) == dims_of(*g).depth_a;
    });
  }
  HalfSteps take(VarId loop) { return {loop, step_, std::move(cut_), std::move(cut_vars_)}; }

 private:
  bool uses_step(const Expr& e) const { return used_vars(e).contains(loop_.var); }
  bool is_global(BufferId id) const { return p_.buffer(p_.root(id)).space == Space::Global; }
  bool is_whole_tile(const Region& r) const {
    return !p_.buffer(r.buffer).is_view() && is_whole(r, p_.buffer(r.buffer));
  }

  // All of a tile, or its first rows or columns; along the step it has a whole one where both sides' extents say so.
  bool is_of_first(const Region& r) const {
    return !p_.buffer(r.buffer).is_view() &&
           std::ranges::all_of(r.min, [](const Expr& e) { return constant_int(e) == 0; });
  }

  bool cut(BufferId id, size_t dim) {
    const auto [at, is_new] = cut_.emplace(id, dim);
    if (at->second != dim || constant_int(p_.buffer(id).shape[dim]) != step_) return fits_ = false;
    return is_new;
  }
  std::optional<size_t> cut_of(BufferId id) const {
    const auto found = cut_.find(id);
    return found == cut_.end() ? std::nullopt : std::optional(found->second);
  }
  // The dimensions of both sides of a copy that move elements, in order.
  static std::vector<std::pair<size_t, size_t>> pairs(const Copy& c) {
    const std::vector<size_t> a = moving_dims(c.from), b = moving_dims(c.to);
    std::vector<std::pair<size_t, size_t>> out;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) out.emplace_back(a[i], b[i]);
    return out;
  }

  // What comes from a tensor says how long a step is, and which dimension of the tile it is.
  bool from_tensor(const Copy& c) {
    if (!is_global(c.from.buffer)) return true;
    if (c.im2col.present() || is_global(c.to.buffer) || !is_of_first(c.to)) return false;
    for (const auto& [from, to] : pairs(c)) {
      if (!uses_step(c.from.min[from])) continue;
      const auto extent = constant_int(c.from.extent[from]);
      if (!extent || slope(c.from.min[from], loop_.var) != extent || (step_ != 0 && step_ != *extent)) return false;
      step_ = *extent;
      if (!cut(c.to.buffer, to) && !fits_) return false;
    }
    return true;
  }

  // ---- what a statement says of the tiles that it touches
  void follow(const Stmt& s) {
    if (const auto* n = s.as<Copy>()) {
      for (const auto& [from, to] : pairs(*n)) {
        if (cut_of(n->from.buffer) == from && !is_global(n->to.buffer)) cut(n->to.buffer, to);
        if (cut_of(n->to.buffer) == to && !is_global(n->from.buffer)) cut(n->from.buffer, from);
      }
    } else if (const auto* g = s.as<Gemm>()) {
      follow(*g);
    } else if (const auto* m = s.as<Map>()) {
      follow(*m);
    } else if (const auto* r = s.as<Reduce>()) {
      const std::vector<int> kept = kept_dims(*r);
      for (size_t to = 0; to < kept.size(); ++to) {
        if (kept[to] < 0) continue;
        const auto d = static_cast<size_t>(kept[to]);
        if (cut_of(r->from.buffer) == d) cut(r->to.buffer, to);
        if (cut_of(r->to.buffer) == to) cut(r->from.buffer, d);
      }
    }
  }
  // The dimensions of a gemm: rows, columns and depth, as operands have them.
  struct Dims {
    size_t rows_a, depth_a, depth_b, columns_b, rows_c, columns_c;
  };
  static Dims dims_of(const Gemm& g) {
    const size_t a = g.a.min.size(), b = g.b.min.size(), c = g.c.min.size();
    return {g.transpose_a ? a - 1 : a - 2,
            g.transpose_a ? a - 2 : a - 1,
            g.transpose_b ? b - 1 : b - 2,
            g.transpose_b ? b - 2 : b - 1,
            c - 2,
            c - 1};
  }
  void follow(const Gemm& g) {
    const Dims d = dims_of(g);
    auto same = [&](const Region& x, size_t dx, const Region& y, size_t dy) {
      if (cut_of(x.buffer) == dx && !is_global(y.buffer)) cut(y.buffer, dy);
      if (cut_of(y.buffer) == dy && !is_global(x.buffer)) cut(x.buffer, dx);
    };
    same(g.a, d.rows_a, g.c, d.rows_c);
    same(g.b, d.columns_b, g.c, d.columns_c);
    same(g.a, d.depth_a, g.b, d.depth_b);
  }
  void follow(const Map& m) {
    each_element(m, [&](BufferId id, const std::vector<Expr>& index) {
      if (is_global(id)) {
        for (const Expr& e : index)
          if (uses_step(e)) cut_var_of(m, e);
        return;
      }
      for (size_t d = 0; d < index.size(); ++d) {
        const auto* v = index[d].as<Var>();
        if (!v) continue;
        const bool mine = std::find(m.vars.begin(), m.vars.end(), v->id) != m.vars.end();
        if (cut_of(id) == d && mine) cut_vars_.insert(v->id);
        if (cut_vars_.contains(v->id)) cut(id, d);
      }
    });
  }
  void cut_var_of(const Map& m, const Expr& index) {
    for (VarId v : m.vars)
      if (slope(index, v).value_or(0) != 0 && *slope(index, v) * step_ == slope(index, loop_.var).value_or(0))
        cut_vars_.insert(v);
  }
  static void each_element(const Map& m, function_ref<void(BufferId, const std::vector<Expr>&)> f) {
    walk(m.body, [&](const Stmt& s) {
      if (const auto* n = s.as<Store>()) f(n->to.buffer, n->to.indices);
      if (const auto* n = s.as<Atomic>()) f(n->to.buffer, n->to.indices);
    });
    walk_exprs(m.body, [&](const Expr& e) {
      if (const auto* n = e.as<Load>()) f(n->buffer, n->indices);
    });
  }

  // ---- whether both halves of a step, one after the other, are the step
  bool is_sum_of_halves(const Stmt& s) const {
    if (const auto* n = s.as<Fill>()) return cut_of(n->to.buffer) && is_whole_tile(n->to) && !uses_step(n->value);
    if (const auto* n = s.as<Copy>()) return is_halved(*n);
    if (const auto* n = s.as<Gemm>()) return is_halved(*n);
    if (const auto* n = s.as<Map>()) return is_halved(*n);
    const auto* n = s.as<Reduce>();
    return n && is_whole_tile(n->from) && is_whole_tile(n->to) && cut_of(n->to.buffer) &&
           cut_of(n->from.buffer) != static_cast<size_t>(n->dim);
  }
  bool is_halved(const Copy& c) const {
    if (!c.completion.immediate() || c.im2col.present()) return false;
    const Region& tile = is_global(c.to.buffer) ? c.from : c.to;
    const Region& other = is_global(c.to.buffer) ? c.to : c.from;
    if (!cut_of(tile.buffer) || !is_of_first(tile)) return false;
    if (!is_global(other.buffer) && !is_whole_tile(tile)) return false;
    if (!is_global(other.buffer)) return cut_of(other.buffer) && is_whole_tile(other);
    size_t walked = 0;
    for (const auto& [from, to] : pairs(c)) {
      const auto [of_tile, of_tensor] = is_global(c.to.buffer) ? std::pair(from, to) : std::pair(to, from);
      if (cut_of(tile.buffer) != of_tile) continue;
      if (slope(other.min[of_tensor], loop_.var) != step_ || constant_int(other.extent[of_tensor]) != step_)
        return false;
      ++walked;
    }
    size_t mentions = 0;
    for (const Expr& e : other.min) mentions += uses_step(e);
    return walked == 1 && mentions == 1;
  }
  bool is_halved(const Gemm& g) const {
    if (!g.completion.immediate() || g.is_sparse()) return false;
    for (const Region* r : {&g.a, &g.b, &g.c})
      if (is_global(r->buffer) || !is_whole_tile(*r)) return false;
    const Dims d = dims_of(g);
    const bool clears = g.clear && constant_int(g.clear) != 0;
    if (g.clear && uses_step(g.clear)) return false;
    // Over the step: both halves are added, one after the other.
    if (cut_of(g.a.buffer) == d.depth_a) return !cut_of(g.c.buffer) && !clears;
    return cut_of(g.c.buffer).has_value();
  }
  bool is_halved(const Map& m) const {
    std::optional<size_t> walked;
    for (size_t i = 0; i < m.vars.size(); ++i) {
      if (!cut_vars_.contains(m.vars[i])) continue;
      if (walked || constant_int(m.extents[i]) != step_) return false;
      walked = i;
    }
    if (!walked) return false;
    const VarId v = m.vars[*walked];
    bool fits = true;
    walk(m.body, [&](const Stmt& s) { fits = fits && (s.as<Let>() || s.as<Store>() || s.as<Atomic>()); });
    each_element(m, [&](BufferId id, const std::vector<Expr>& index) {
      const auto dim = cut_of(id);
      bool named = false;  // the point's own half
      for (size_t d = 0; d < index.size(); ++d) {
        const bool here = used_vars(index[d]).contains(v);
        if (dim) fits = fits && here == (d == *dim) && (!here || index[d].as<Var>());
        named = named || here;
      }
      fits = fits && (dim.has_value() || is_global(id) || !named);
    });
    // Every point writes elements of its own half, or adds to some.
    walk(m.body, [&](const Stmt& s) {
      const auto* store = s.as<Store>();
      if (!store) return;
      bool named = false;
      for (const Expr& e : store->to.indices) named = named || used_vars(e).contains(v);
      fits = fits && named;
    });
    // The step and the point stand in sums only, where they say which element of the whole it is.
    auto check = [&](const Expr& e) {
      walk(e, [&](const Expr& x) {
        const auto* n = x.as<ir::Sum>();
        if (!n) return;
        const auto of_step = slope(x, loop_.var), of_point = slope(x, v);
        fits = fits && of_step && of_point && (*of_step == 0 || *of_step == *of_point * step_);
        steps_in_sums_ += of_step.value_or(0) != 0,
            points_in_sums_ += of_step.value_or(0) == 0 && of_point.value_or(0) != 0;
      });
    };
    int in_all = 0;
    steps_in_sums_ = points_in_sums_ = 0;
    walk_each(m.body, [&](const Expr& e) {
      check(e);
      walk(e, [&](const Expr& x) { in_all += x.as<Var>() && x.as<Var>()->id == loop_.var; });
    });
    fits = fits && in_all == steps_in_sums_;
    // A point's number without the step's is another one in the second half, unless it only says which element.
    return fits && !numbers_points(m, v);
  }
  static void walk_each(const Body& body, function_ref<void(const Expr&)> f) {
    walk(body, [&](const Stmt& s) { for_each_expr(s, f); });
  }
  // Whether the variable is used as a number, without the step, elsewhere than as the index of a tile that is cut.
  bool numbers_points(const Map& m, VarId v) const {
    int uses = 0, known = 0;
    walk_each(m.body, [&](const Expr& e) {
      walk(e, [&](const Expr& x) {
        uses += x.as<Var>() && x.as<Var>()->id == v;
        const auto* n = x.as<ir::Sum>();
        known += n && slope(x, v).value_or(0) != 0 && slope(x, loop_.var).value_or(0) != 0;
      });
    });
    each_element(m, [&](BufferId id, const std::vector<Expr>& index) {
      const auto dim = cut_of(id);
      known += dim && index[*dim].as<Var>() && index[*dim].as<Var>()->id == v;
    });
    return uses != known;
  }
  // A fill, with a constant, of all of the step that a tile has: of any other step it does the same.
  bool is_alike_along(const Stmt& s) const {
    const auto* n = s.as<Fill>();
    const auto dim = n ? cut_of(n->to.buffer) : std::nullopt;
    return dim && n->value.as<Const>() && constant_int(n->to.min[*dim]) == 0 &&
           constant_int(n->to.extent[*dim]) == step_;
  }
  // What is cut lives in the loop alone, but for such fills.
  bool own_tiles() const {
    std::map<BufferId, int> inside, all;
    auto count = [](std::map<BufferId, int>& to) {
      return [&to](const Stmt& s) {
        for (BufferId id : used_buffers({s})) ++to[id];
      };
    };
    for (const Stmt& s : loop_.body) count(inside)(s);
    for (const Stmt& s : launch_.body) {
      if (s.as<For>() == &loop_) continue;
      if (!is_alike_along(s)) count(all)(s);
    }
    for (const auto& [id, dim] : cut_) {
      const Buffer& b = p_.buffer(id);
      if (b.is_view() || !b.strides.empty() || b.memory || b.reducer || b.space == Space::Local) return false;
      if (all.contains(id) || first_reads(id)) return false;
      for (const Buffer& other : p_.buffers)
        if (other.is_view() && other.root == id) return false;
    }
    return !cut_.empty();
  }
  // What is not cut, and changes: the second half would find what the first has made of it, were it not for itself.
  bool halves_stay_apart() const {
    for (const Stmt& s : loop_.body)
      for (BufferId changed : changed_roots({s}, p_)) {
        if (cut_.contains(changed)) continue;
        for (const Stmt& other : loop_.body) {
          if (&*other == &*s) continue;
          for (BufferId id : used_buffers({other}))
            if (may_overlap(id, changed, p_)) return false;
        }
      }
    return true;
  }
  // Whether a step reads what the one before left.
  bool first_reads(BufferId id) const {
    for (const Stmt& s : loop_.body) {
      bool reads = false, writes = false;
      walk({s}, [&](const Stmt& x) {
        for (const Effect& e : effects_of(x).list) {
          if (!e.region.valid() || p_.root(e.region.buffer) != id) continue;
          reads = reads || e.access != Access::Write, writes = writes || e.access == Access::Write;
        }
      });
      if (reads) return true;
      if (writes) return false;
    }
    return true;
  }

  const ProgramTables& p_;
  const Launch& launch_;
  const For& loop_;
  int64_t step_ = 0;
  bool fits_ = true;
  std::map<BufferId, size_t> cut_;
  std::set<VarId> cut_vars_;
  mutable int steps_in_sums_ = 0, points_in_sums_ = 0;
};

std::optional<HalfSteps> steps_of(const ProgramTables& program, const Launch& launch, size_t at,
                                  bool (Halves::*fits)() const) {
  const auto* loop = launch.body[at].as<For>();
  if (!loop || loop->kind != LoopKind::Pipelined || loop->stages < 1) return std::nullopt;
  Halves halves(program, launch, *loop);
  if (!halves.find() || !(halves.*fits)()) return std::nullopt;
  return halves.take(loop->var);
}

}  // namespace

std::optional<HalfSteps> half_steps(const ProgramTables& program, const Launch& launch, size_t at) {
  return steps_of(program, launch, at, &Halves::can_be_cut);
}

std::optional<HalfSteps> product_steps(const ProgramTables& program, const Launch& launch, size_t at) {
  return steps_of(program, launch, at, &Halves::only_multiplies);
}

bool ends_with_tensors(const ProgramTables& p, const For& loop, int64_t step_of) {
  for (const Stmt& s : loop.body) {
    const auto* c = s.as<Copy>();
    if (!c) continue;
    const Buffer& tensor = p.buffer(c->from.buffer);
    if (tensor.fill || tensor.is_view()) return false;
    for (size_t d = 0; d < c->from.min.size(); ++d) {
      if (slope(c->from.min[d], loop.var).value_or(0) == 0) continue;
      const auto from = constant_int(substitute(c->from.min[d], {{loop.var, loop.begin}}));
      const Expr whole = tensor.shape[d], step = constant(whole->type, step_of);
      const Expr turns = binary(BinaryOp::FloorDiv, add(whole, constant(whole->type, step_of - 1)), step);
      const auto taken = constant_int(loop.extent), elements = constant_int(whole);
      const bool all =
          taken && elements ? *taken * step_of >= *elements : equal(cast(turns, loop.extent->type), loop.extent);
      if (from != 0 || !all) return false;
    }
  }
  return true;
}

}  // namespace tilewright::analysis
