#include "passes/fuse/accesses.h"

#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/fuse/panels.h"

namespace tilewright::passes {

using namespace ir;

namespace {

void add_loads(const Expr& e, Accesses& out) {
  walk(e, [&](const Expr& x) {
    if (const auto* n = x.as<Load>()) out.list.push_back({n->buffer, n->indices, false});
    if (const auto* n = x.as<Var>()) out.used.insert(n->id);
    if (x.as<Address>()) out.opaque = true;
  });
}

// Of a tile in panels the panel, if there is one; else anywhere.
void add_region(const Region& r, bool write, const ProgramTables& program, Accesses& out) {
  const Buffer& b = program.buffer(r.buffer);
  ElementAccess access{r.buffer, std::vector<Expr>(b.rank()), write};
  const bool one = b.tile && b.tile->width > 0 &&
                   constant_int(r.extent[static_cast<size_t>(b.tile->axis)]).value_or(0) <= b.tile->width;
  if (one) access.index[0] = panel_of(r, b);
  out.list.push_back(std::move(access));
}

void add(const Stmt& s, const ProgramTables& program, Accesses& out) {
  for_each_expr(s, [&](const Expr& e) { add_loads(e, out); });
  if (const auto* n = s.as<Store>()) {
    out.list.push_back({n->to.buffer, n->to.indices, true});
  } else if (const auto* n = s.as<Atomic>()) {
    out.list.push_back({n->to.buffer, n->to.indices, true});
    if (n->result.valid()) out.bound.insert(n->result);
  } else if (const auto* n = s.as<Let>()) {
    out.bound.insert(n->var);
  } else if (const auto* n = s.as<For>()) {
    out.bound.insert(n->var);
  } else if (const auto* n = s.as<Gemm>(); n && n->completion.immediate() && !n->next.present() && !n->is_sparse()) {
    for (const Region* r : {&n->a, &n->b, &n->c}) add_region(*r, r == &n->c, program, out);
    out.sums.insert(n->c.buffer);
  } else if (!s.as<If>()) {
    out.opaque = true;
  }
  for_each_body(s, [&](const Body& b) {
    for (const Stmt& inner : b) add(inner, program, out);
  });
}

// index = coefficient * variable + what is known before the loops + what the loops' own variables add.
struct Linear {
  int64_t coefficient = 0;
  std::vector<Term> invariant, inner;
  int64_t constant = 0;
};

Linear linear(const Expr& index, VarId variable, const std::set<VarId>& bound) {
  Linear out;
  std::vector<Term> terms{{1, index}};
  if (const Sum* s = analysis::sum_of(index)) terms = s->terms, out.constant = s->constant;
  if (const auto c = constant_int(index)) terms.clear(), out.constant = *c;
  for (const Term& t : terms) {
    const Var* v = analysis::variable_of(t.value);
    if (v && v->id == variable) {
      out.coefficient += t.coefficient;
      continue;
    }
    bool outside = true;
    walk(t.value, [&](const Expr& x) {
      const auto* used = x.as<Var>();
      outside = outside && !x.as<Load>() && !(used && (bound.contains(used->id) || used->id == variable));
    });
    (outside ? out.invariant : out.inner).push_back(t);
  }
  return out;
}

Interval range_of(const std::vector<Term>& terms, const Intervals& ranges) { return ranges.of(sum(terms, 0, i64)); }

bool known(Interval i) { return i.low > -kUnbounded && i.high < kUnbounded; }

// b - a without the part that follows the variable, if its bounds are known. Indices may have different types.
std::optional<Interval> gap(const Linear& a, const Linear& b, const Intervals& ranges) {
  std::vector<Term> difference = b.invariant;
  for (const Term& t : a.invariant) difference.push_back({-t.coefficient, t.value});
  const Interval outside = range_of(difference, ranges), x = range_of(a.inner, ranges), y = range_of(b.inner, ranges);
  if (!known(outside) || !known(x) || !known(y)) return std::nullopt;
  const int64_t shift = b.constant - a.constant;
  return Interval{outside.low + y.low - x.high + shift, outside.high + y.high - x.low + shift};
}

std::set<VarId> joined(const std::set<VarId>& a, const std::set<VarId>& b) {
  std::set<VarId> out = a;
  out.insert(b.begin(), b.end());
  return out;
}

}  // namespace

Accesses accesses_of(const Stmt& s, const ProgramTables& program) {
  Accesses out;
  add(s, program, out);
  return out;
}
Accesses accesses_of(const Body& body, const ProgramTables& program) {
  Accesses out;
  for (const Stmt& s : body) add(s, program, out);
  return out;
}

void note_ranges(const Body& body, Intervals& ranges) {
  std::map<VarId, Interval> found;
  auto note = [&](VarId v, Interval i) {
    const auto [at, fresh] = found.try_emplace(v, i);
    if (!fresh) at->second = {std::min(at->second.low, i.low), std::max(at->second.high, i.high)};
    ranges.set(v, at->second);
  };
  walk(body, [&](const Stmt& s) {
    if (const auto* n = s.as<Let>(); n && n->value->type.is_int()) note(n->var, ranges.of(n->value));
    const auto* f = s.as<For>();
    if (!f) return;
    const Interval begin = ranges.of(f->begin), end = ranges.of(add(f->begin, f->extent));
    note(f->var, known(begin) && known(end) ? Interval{begin.low, std::max(begin.low, end.high - 1)}
                                            : Interval{-kUnbounded, kUnbounded});
  });
}

bool Dependences::may_conflict(const ElementAccess& a, const ElementAccess& b) const {
  if (!a.write && !b.write) return false;
  const BufferId x = program_.root(a.buffer), y = program_.root(b.buffer);
  const Buffer &bx = program_.buffer(x), &by = program_.buffer(y);
  // A tensor made from an address may lie anywhere in global memory.
  if (x != y) return bx.space == Space::Global && by.space == Space::Global && (bx.address || by.address);
  return true;
}

bool Dependences::commute(const Accesses& a, const Accesses& b) const {
  if (a.opaque || b.opaque) return false;
  const auto meets = [](const std::set<VarId>& bound, const std::set<VarId>& used) {
    return std::any_of(bound.begin(), bound.end(), [&](VarId v) { return used.contains(v); });
  };
  // A loop may use a variable's name that another loop uses too; a Let's value must stay in front of its uses.
  std::set<VarId> a_free, b_free;
  for (VarId v : a.used)
    if (!a.bound.contains(v)) a_free.insert(v);
  for (VarId v : b.used)
    if (!b.bound.contains(v)) b_free.insert(v);
  if (meets(a.bound, b_free) || meets(b.bound, a_free)) return false;
  const std::set<VarId> bound = joined(a.bound, b.bound);
  for (const ElementAccess& x : a.list)
    for (const ElementAccess& y : b.list) {
      if (!may_conflict(x, y)) continue;
      if (x.buffer != y.buffer || x.index.size() != y.index.size()) return false;
      bool apart = false;
      for (size_t d = 0; d < x.index.size() && !apart; ++d) {
        if (!x.index[d] || !y.index[d]) continue;
        const auto g = gap(linear(x.index[d], {}, bound), linear(y.index[d], {}, bound), ranges_);
        apart = g && (g->low > 0 || g->high < 0);
      }
      if (!apart || program_.buffer(x.buffer).type.is_packed()) return false;
    }
  return true;
}

bool Dependences::only_at_same_iteration(const Accesses& a, const Accesses& b, VarId iteration) const {
  if (a.opaque || b.opaque) return false;
  const std::set<VarId> bound = joined(a.bound, b.bound);
  for (const ElementAccess& x : a.list)
    for (const ElementAccess& y : b.list) {
      if (!may_conflict(x, y)) continue;
      if (x.buffer != y.buffer || x.index.size() != y.index.size()) return false;
      // coefficient * (i - j) = gap, and a gap smaller than the coefficient leaves i = j alone.
      bool same = false;
      for (size_t d = 0; d < x.index.size() && !same; ++d) {
        if (!x.index[d] || !y.index[d]) continue;
        const Linear p = linear(x.index[d], iteration, bound), q = linear(y.index[d], iteration, bound);
        if (p.coefficient != q.coefficient) continue;
        const auto g = gap(p, q, ranges_);
        const int64_t step = std::abs(p.coefficient);
        same = g && (step > 0 ? g->low > -step && g->high < step : g->low > 0 || g->high < 0);
      }
      if (!same) return false;
    }
  return true;
}

}  // namespace tilewright::passes
