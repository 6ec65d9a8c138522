// Bounds checks of scalar code, and nests of loops over boxes: a Map's points, a block's threads.
//
// Every access of global memory that is not proven in bounds is guarded. Of a box, the checks that are affine in its
// variables are made once for its extreme points: if all hold, the loops run without them, else a second nest runs with
// a guard at each access.
#include <cstdlib>

#include "analysis/slope.h"
#include "ir/match.h"
#include "ir/names.h"
#include "passes/lower/layouts.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Nodes of a value that takes the place of its name in checks. Names of names would double it at each step.
constexpr uint32_t kLargestValue = 64;

class Guard {
 public:
  explicit Guard(Lowering& l) : l_(l) {}

  Expr expr(const Expr& e) {
    return rewrite(e, [&](const Expr& x) -> std::optional<Expr> {
      if (const auto* n = x.as<Load>()) return guarded_load(*n, x->type);
      if (const auto* n = x.as<Address>()) return address(n->buffer, widened(n->indices));
      if (const auto* n = x.as<Select>()) {
        const Expr chosen = under(n->condition, n->a);
        return l_.intervals.proves(n->condition) ? chosen : select(n->condition, chosen, n->b);
      }
      return std::nullopt;
    });
  }
  Body body(const Body& in) {
    Body out;
    for (const Stmt& s : in) {
      if (is_loop(s)) forget_written({s}, l_);  // an iteration before this one may have
      stmt(s, out);
      forget_written({s}, l_);
    }
    return out;
  }

  // Empty if proven.
  Expr in_bounds(BufferId buffer, const std::vector<Expr>& index) {
    if (!l_.is_global(buffer)) return {};
    Expr all;
    const std::vector<Expr> shape = widened(l_.buffer(buffer).shape);
    for (size_t d = 0; d < index.size(); ++d) {
      for (const Expr& check : {binary(BinaryOp::Le, wide(0), index[d]), binary(BinaryOp::Lt, index[d], shape[d])}) {
        if (l_.intervals.proves(check) || l_.intervals.proves(with_values(check))) continue;
        all = all ? logical_and(all, check) : check;
        if (std::none_of(checks.begin(), checks.end(), [&](const Expr& c) { return equal(c, check); }))
          checks.push_back(check);
      }
    }
    return all;
  }

  // The distinct checks that were not proven, and the integer values that variables stand for.
  std::vector<Expr> checks;
  Substitution values;

 private:
  Expr with_values(const Expr& e) const {
    if (values.empty()) return e;
    return rewrite(e, [&](const Expr& x) -> std::optional<Expr> {
      const auto* c = x.as<Cast>();
      const auto* v = x.as<Var>() ? x.as<Var>() : c && x->type == i64 ? c->value.as<Var>() : nullptr;
      if (!v || x->type != i64) return std::nullopt;
      auto found = values.find(v->id);
      return found == values.end() ? std::nullopt : std::optional<Expr>(found->second);
    });
  }
  Expr guarded_load(const Load& n, DType type) {
    std::vector<Expr> index = widened(n.indices);
    const Expr check = in_bounds(n.buffer, index);
    const Expr element = load(n.buffer, std::move(index), type);
    const Buffer& b = l_.buffer(n.buffer);
    return check ? select(check, element, b.fill ? b.fill : constant(type, int64_t{0})) : element;
  }
  // Guards inside `e` that the condition makes superfluous.
  Expr under(const Expr& condition, const Expr& e) {
    const size_t mark = l_.intervals.mark();
    l_.intervals.assume(condition);
    const Expr out = rewrite(e, [&](const Expr& x) -> std::optional<Expr> {
      const auto* s = x.as<Select>();
      return s && l_.intervals.proves(s->condition) ? std::optional<Expr>(s->a) : std::nullopt;
    });
    l_.intervals.forget(mark);
    return out;
  }

  void note_value(VarId var, const Expr& value) {
    if (!value->type.is_int()) return;
    l_.intervals.set(var, l_.intervals.of(value));
    bool pure = true;
    walk(value, [&](const Expr& x) { pure = pure && !x.as<Load>() && !x.as<Intrinsic>(); });
    const Interval wide = l_.intervals.of(widen(value)), type = range_of_type(value->type);
    const bool fits = wide.low >= type.low && wide.high <= type.high;  // else it may not be what it looks like
    if (!pure || !fits || !value->type.is_signed()) return;
    const Expr whole = with_values(widen(value));
    values[var] = whole->size <= kLargestValue ? whole : widen(value);
  }

  void atomic(Atomic a, LocationId at, Body& out) {
    for (Expr& e : a.to.indices) e = widen(expr(e));
    if (a.value) a.value = expr(a.value);
    if (a.compare) a.compare = expr(a.compare);
    const Expr check = in_bounds(a.to.buffer, a.to.indices);
    if (!check) return out.push_back(make_stmt(std::move(a), at));
    if (!a.result.valid()) return out.push_back(make_stmt(If{check, {make_stmt(std::move(a), at)}, {}}, at));
    // The old value of an element that does not exist is 0.
    const VarId result = a.result;
    const DType type = l_.program.var(result).type;
    const BufferId old = l_.temporary("old", type, {}, Space::Local);
    a.result = l_.program.new_var(l_.program.var(result).name, type);
    const Expr value = var(a.result, type);
    out.push_back(make_stmt(Store{{old, {}}, constant(type, int64_t{0})}, at));
    out.push_back(make_stmt(If{check, {make_stmt(std::move(a), at), make_stmt(Store{{old, {}}, value}, at)}, {}}, at));
    out.push_back(make_stmt(Let{result, load(old, {}, type)}, at));
  }
  void store(const Store& n, LocationId at, Body& out) {
    Store s{{n.to.buffer, {}}, expr(n.value)};
    for (const Expr& e : n.to.indices) s.to.indices.push_back(widen(expr(e)));
    const Expr check = in_bounds(s.to.buffer, s.to.indices);
    if (check) {
      s.value = under(check, s.value);
      out.push_back(make_stmt(If{check, {make_stmt(std::move(s), at)}, {}}, at));
    } else {
      out.push_back(make_stmt(std::move(s), at));
    }
  }
  Body body_under(const Expr& condition, const Body& in) {
    const size_t mark = l_.intervals.mark();
    if (condition) l_.intervals.assume(with_values(condition)), l_.intervals.assume(condition);
    Body out = body(in);
    l_.intervals.forget(mark);
    return out;
  }

  void stmt(const Stmt& s, Body& out) {
    const LocationId at = s->location;
    if (const auto* n = s.as<Store>()) return store(*n, at, out);
    if (const auto* n = s.as<Atomic>()) return atomic(*n, at, out);
    if (const auto* n = s.as<Let>()) {
      const Expr value = expr(n->value);
      note_value(n->var, value);
      return out.push_back(make_stmt(Let{n->var, value}, at));
    }
    if (const auto* n = s.as<For>()) {
      For f = *n;
      f.begin = expr(f.begin), f.extent = expr(f.extent);
      if (f.kind != LoopKind::Unroll) f.kind = f.kind == LoopKind::Vectorized ? LoopKind::Unroll : LoopKind::Serial;
      f.stages = 0, f.order.clear(), f.stage.clear();
      const Interval begin = l_.intervals.of(f.begin), extent = l_.intervals.of(f.extent);
      if (std::abs(begin.low) < kUnbounded && extent.high < kUnbounded)
        l_.intervals.set(f.var, {begin.low, std::max(begin.low, begin.high + extent.high - 1)});
      const size_t mark = l_.intervals.mark();
      assume_turn(f, l_);
      f.body = body(f.body);
      l_.intervals.forget(mark);
      return out.push_back(make_stmt(std::move(f), at));
    }
    if (const auto* n = s.as<If>()) {
      const Expr condition = expr(n->condition);
      return out.push_back(make_stmt(If{condition, body_under(condition, n->then_body), body(n->else_body)}, at));
    }
    if (const auto* n = s.as<While>()) return out.push_back(make_stmt(While{expr(n->condition), body(n->body)}, at));
    for (const Stmt& r : rewrite_own(s)) out.push_back(r);
  }
  // Print, Assert, Assume and jumps: only expressions to guard.
  Body rewrite_own(const Stmt& s) {
    return rewrite_exprs({s}, [&](const Expr& x) -> std::optional<Expr> {
      if (const auto* n = x.as<Load>()) {
        const bool done = n->indices.empty() || n->indices[0]->type == i64;
        return done ? std::nullopt : std::optional<Expr>(guarded_load(*n, x->type));
      }
      if (const auto* n = x.as<Address>()) return address(n->buffer, widened(n->indices));
      return std::nullopt;
    });
  }

  Lowering& l_;
};

// Checks that are still made somewhere in the body: those under a condition of the user's that implies them are not.
std::vector<Expr> remaining(const std::vector<Expr>& checks, const Body& body) {
  std::vector<Expr> made;
  auto note = [&](const Expr& condition) { for_each_conjunct(condition, [&](const Expr& c) { made.push_back(c); }); };
  walk(body, [&](const Stmt& s) {
    if (const auto* n = s.as<If>()) note(n->condition);
  });
  walk_exprs(body, [&](const Expr& e) {
    if (const auto* n = e.as<Select>()) note(n->condition);
  });
  std::vector<Expr> out;
  for (const Expr& check : checks)
    if (std::any_of(made.begin(), made.end(), [&](const Expr& m) { return equal(m, check); })) out.push_back(check);
  return out;
}

// What keeps coefficient * value, one of so many terms, from a sum that wraps around: nothing where ranges say so.
Expr holds_back(const Expr& value, int64_t coefficient, size_t terms, const Lowering& l) {
  const int64_t most = kUnbounded / static_cast<int64_t>(terms + 2);
  const int64_t limit = coefficient == INT64_MIN ? 0 : most / std::max<int64_t>(std::abs(coefficient), 1);
  const Interval range = l.intervals.of(value);
  if (range.low >= -limit && range.high <= limit) return {};
  return logical_and(binary(BinaryOp::Le, wide(-limit), value), binary(BinaryOp::Le, value, wide(limit)));
}

// The check at the point of the box where it is hardest to meet, or none if that cannot be said outside the loops.
Expr hardest(const Expr& check, const std::vector<Expr>& vars, const std::vector<Expr>& extents,
             const std::set<VarId>& bound, const Substitution& values, const Lowering& l) {
  const auto* b = check.as<Binary>();
  if (!b) return {};  // it never holds
  Expr gap = sub(b->b, b->a);
  for (int pass = 0; pass < 4 && !values.empty(); ++pass)
    gap = rewrite(gap, [&](const Expr& x) -> std::optional<Expr> {
      const auto* c = x.as<Cast>();
      const auto* v = x->type != i64 ? nullptr : c ? c->value.as<Var>() : x.as<Var>();
      auto found = v ? values.find(v->id) : values.end();
      return found == values.end() ? std::nullopt : std::optional<Expr>(found->second);
    });
  std::vector<Term> terms{{1, gap}};
  int64_t total = 0;
  if (const auto* s = gap.as<Sum>()) terms = s->terms, total = s->constant;
  if (std::abs(total / 2) > kUnbounded / 4) return {};
  Expr least = wide(total), small;
  auto keep_small = [&](const Expr& value, int64_t coefficient) {
    if (const Expr h = holds_back(value, coefficient, terms.size(), l)) small = small ? logical_and(small, h) : h;
  };
  for (const Term& t : terms) {
    const auto* c = t.value.as<Cast>();
    const auto* v = (c ? c->value : t.value).as<Var>();
    const auto at = std::find_if(vars.begin(), vars.end(), [&](const Expr& x) { return v && id_of(x) == v->id; });
    if (at != vars.end()) {
      const Expr extent = widen(extents[static_cast<size_t>(at - vars.begin())]);
      keep_small(extent, t.coefficient);
      if (t.coefficient < 0) least = add(least, sum({{t.coefficient, sub(extent, wide(1))}}, 0, i64));
      continue;
    }
    for (VarId used : used_vars(t.value)) {
      const bool inside = bound.contains(used) ||
                          std::any_of(vars.begin(), vars.end(), [&](const Expr& x) { return id_of(x) == used; });
      if (inside) return {};
    }
    bool reads = false;
    walk(t.value, [&](const Expr& x) { reads = reads || x.as<Load>(); });
    if (reads) return {};
    keep_small(t.value, t.coefficient);
    least = add(least, sum({t}, 0, i64));
  }
  const Expr met = binary(b->op, wide(0), least);
  return small ? logical_and(small, met) : met;
}

// Straight-line code whose points share nothing but what they may race for anyway.
bool is_vectorizable(const Body& body, const Lowering& l) {
  return std::all_of(body.begin(), body.end(), [&](const Stmt& s) {
    if (s.as<Let>()) return true;
    if (const auto* n = s.as<Store>()) return !l.buffer(n->to.buffer).type.is_packed();
    if (const auto* n = s.as<If>()) return is_vectorizable(n->then_body, l) && is_vectorizable(n->else_body, l);
    return false;
  });
}

// How well a loop over the variable walks memory: unit steps count for it, strides against it, stores twice.
int contiguity(const Expr& v, const Body& body, const Lowering& l) {
  int score = 0;
  Substitution names;
  auto access = [&](BufferId buffer, const std::vector<Expr>& index, int weight) {
    const Buffer& b = l.buffer(buffer);
    for (size_t d = 0; d < index.size(); ++d) {
      const Expr at = substitute(index[d], names);
      if (!used_vars(at).contains(id_of(v))) continue;
      const bool last = b.strides.empty() ? d + 1 == index.size() : constant_int(b.strides[d]) == 1;
      const auto step = analysis::slope_through_casts(at, id_of(v));  // none: a quotient, a bound
      score += !last || (step && std::abs(*step) > 1) ? -weight : step ? weight : 0;
    }
  };
  walk(body, [&](const Stmt& s) {
    for_each_expr(s, [&](const Expr& whole) {
      walk(whole, [&](const Expr& e) {
        if (const auto* n = e.as<Load>()) access(n->buffer, n->indices, 1);
      });
    });
    if (const auto* n = s.as<Store>()) access(n->to.buffer, n->to.indices, 2);
    if (const auto* n = s.as<Let>(); n && n->value->type.is_int())
      if (const auto value = spelled_out(n->value, names, kLargestValue)) names[n->var] = *value;
  });
  return score;
}

constexpr int64_t kCacheWays = 8;

// Lanes of panels innermost, with what stands together at one lane inside.
Body make_panel_nest(CutBox box, Lowering& l) {
  const bool by_lines = cut_to_lines(box, l);
  // Rows of global memory are walked from end to end, as long as the panels they are dealt to are no more than a
  // first-level cache has ways: panels lie a power of two apart.
  const std::set<BufferId> used = used_buffers(box.body);
  const bool global = std::any_of(used.begin(), used.end(), [&](BufferId b) { return l.is_global(b); });
  if (!by_lines && global && box.lanes == 1 && constant_int(box.extents[0]).value_or(kCacheWays + 1) <= kCacheWays) {
    const long before_lane = static_cast<long>(box.vars.size() - box.parts - 1);
    std::rotate(box.vars.begin(), box.vars.begin() + 1, box.vars.begin() + before_lane);
    std::rotate(box.extents.begin(), box.extents.begin() + 1, box.extents.begin() + before_lane);
  }
  Body body = box.body;
  const bool vectorizable = !by_lines && is_vectorizable(body, l);
  const size_t first_part = box.vars.size() - box.parts, last_lane = first_part - 1;
  for (size_t d = box.vars.size(); d-- > 0;) {
    const LoopKind kind = d >= first_part                  ? LoopKind::Unroll
                          : d == last_lane && vectorizable ? LoopKind::Vectorized
                                                           : LoopKind::Serial;
    body = {loop(l, box.vars[d], constant(box.vars[d]->type, int64_t{0}), cast(box.extents[d], box.vars[d]->type),
                 std::move(body), kind)};
  }
  return body;
}

Body make_nest(const std::vector<Expr>& vars, const std::vector<Expr>& extents, Body body, Lowering& l) {
  if (touches_panels(body, l)) {
    const CutBox box = cut_to_panels(vars, extents, body, l);
    if (box.lanes > 0) return make_panel_nest(box, l);
  }
  std::vector<size_t> order(vars.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  if (vars.size() > 1) {
    size_t best = vars.size() - 1;
    for (size_t d = best; d-- > 0;)
      if (contiguity(vars[d], body, l) > contiguity(vars[best], body, l)) best = d;
    order.erase(order.begin() + static_cast<long>(best));
    order.push_back(best);
  }
  LoopKind kind = is_vectorizable(body, l) ? LoopKind::Vectorized : LoopKind::Serial;
  for (size_t d = order.size(); d-- > 0; kind = LoopKind::Serial) {
    const Expr& v = vars[order[d]];
    body = {loop(l, v, constant(v->type, int64_t{0}), cast(extents[order[d]], v->type), std::move(body), kind)};
  }
  return body;
}

}  // namespace

Body guard_accesses(const Body& body, Lowering& l) { return Guard(l).body(body); }
Expr guard_accesses(const Expr& e, Lowering& l) { return Guard(l).expr(e); }
Stmt with_sure_operands(const Stmt& op, Body& names, Lowering& l) {
  const auto may_miss = [&](const Expr& x) {
    const auto* n = x.as<Load>();
    return n && bounds_check(n->buffer, n->indices, l);
  };
  const auto named = [&](const Expr& e) {
    const Expr value = guard_accesses(e, l);
    const VarId v = l.program.new_var("operand", value->type);
    if (value->type.is_int()) l.intervals.set(v, l.intervals.of(value));
    names.push_back(l.make(Let{v, value}));
    return var(v, value->type);
  };
  return with_exprs(op, [&](const Expr& e) {
    bool misses = false, chooses = false;
    walk(e, [&](const Expr& x) {
      const auto* b = x.as<Binary>();
      misses = misses || may_miss(x);
      chooses = chooses || x.as<Select>() || (b && (b->op == BinaryOp::And || b->op == BinaryOp::Or));
    });
    if (!misses) return e;
    if (chooses) return named(e);  // what is not chosen is not evaluated
    return rewrite(e, [&](const Expr& x) { return may_miss(x) ? std::optional(named(x)) : std::nullopt; });
  });
}
Expr bounds_check(BufferId buffer, const std::vector<Expr>& index, Lowering& l) {
  return Guard(l).in_bounds(buffer, widened(index));
}

Body lower_box(const std::vector<Expr>& vars, const std::vector<Expr>& extents, const Body& body, Lowering& l) {
  for (size_t d = 0; d < vars.size(); ++d) {
    const Interval extent = l.intervals.of(extents[d]);
    l.intervals.set(id_of(vars[d]), {0, extent.high < kUnbounded ? std::max<int64_t>(extent.high - 1, 0) : kUnbounded});
  }
  Guard guard(l);
  Body guarded = guard.body(body);
  std::set<VarId> bound = bound_vars(body);
  bound.insert(l.thread_vars.begin(), l.thread_vars.end());
  Expr inside;
  const size_t mark = l.intervals.mark();
  for (const Expr& check : remaining(guard.checks, guarded)) {
    const Expr h = hardest(check, vars, extents, bound, guard.values, l);
    if (!h || constant_int(h) == 0) continue;
    l.intervals.assume(check);
    inside = inside ? logical_and(inside, h) : h;
  }
  if (!inside) return make_nest(vars, extents, std::move(guarded), l);
  Body fast = make_nest(vars, extents, Guard(l).body(body), l);
  l.intervals.forget(mark);
  return {l.make(If{inside, std::move(fast), make_nest(vars, extents, std::move(guarded), l)})};
}

}  // namespace tilewright::passes
