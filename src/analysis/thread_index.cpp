#include "analysis/thread_index.h"

#include "analysis/value_at.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"

#include <algorithm>
#include <functional>
#include <map>

namespace tilewright::analysis {

using namespace ir;

bool is_own_element(const std::vector<Expr>& index, const Launch& launch, const std::set<VarId>& bound) {
  for (size_t d = 0; d < launch.thread.size(); ++d) {
    if (launch.threads[d] == 1) continue;
    const VarId thread = launch.thread[d];
    const bool found = std::any_of(index.begin(), index.end(), [&](const Expr& e) {
      std::vector<Term> terms{{1, e}};
      if (const auto* s = e.as<Sum>()) terms = s->terms;
      bool own = false;
      for (const Term& t : terms) {
        if (const auto* v = t.value.as<Var>(); v && v->id == thread) {
          own = true;
          continue;
        }
        bool uniform = true;
        walk(t.value, [&](const Expr& x) {
          const auto* v = x.as<Var>();
          const bool of_thread =
              v && std::find(launch.thread.begin(), launch.thread.end(), v->id) != launch.thread.end();
          uniform = uniform && !x.as<Load>() && !of_thread && !(v && bound.contains(v->id));
        });
        if (!uniform) return false;
      }
      return own;
    });
    if (!found) return false;
  }
  return true;
}

bool OwnElement::operator==(const OwnElement& o) const {
  const auto same = [](const Dimension& a, const Dimension& b) {
    if (a.anything || b.anything) return a.anything && b.anything;
    return a.digits == b.digits && a.constant == b.constant && a.columns == b.columns &&
           std::equal(a.base.begin(), a.base.end(), b.base.begin(), b.base.end(), [](const Term& x, const Term& y) {
             return x.coefficient == y.coefficient && equal(x.value, y.value);
           });
  };
  return std::equal(dimensions.begin(), dimensions.end(), o.dimensions.begin(), o.dimensions.end(), same);
}

OwnElements::OwnElements(const Launch& launch) : launch_(launch), bound_(bound_vars(launch.body)) {
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Let>()) named_[n->var] = n->value;
    if (const auto* n = s.as<For>()) {
      const auto begin = constant_int(n->begin), extent = constant_int(n->extent);
      counters_[n->var] = begin && extent && *extent > 0 ? Counter{*begin, *extent} : Counter{};
    }
  });
}

std::optional<OwnElement> OwnElements::of(const std::vector<Expr>& index, std::optional<Range> role) const {
  if (role && launch_.thread.size() != 1) return std::nullopt;
  const Range threads = role.value_or(Range{0, launch_.thread_count()});
  const OwnElement out = positional(index, threads);
  return covers_threads(out, 1, threads) ? std::optional(out) : std::nullopt;
}

std::optional<OwnElement> OwnElements::of_warps(const std::vector<Expr>& index, std::optional<Range> role) const {
  if (launch_.thread.size() != 1) return std::nullopt;
  const Range threads = role.value_or(Range{0, launch_.thread_count()});
  const OwnElement out = positional(index, threads);
  return covers_threads(out, kWarpThreads, threads) ? std::optional(out) : std::nullopt;
}

namespace {

// What both are a quotient and the rest of, and by how many: one number for two dimensions. None: they are not.
struct Split {
  Expr whole;
  int64_t columns = 0;
};
std::optional<Split> split(const Expr& row, const Expr& column) {
  const auto* q = row.as<Binary>();
  const auto* r = column.as<Binary>();
  if (!q || !r || q->op != BinaryOp::FloorDiv || r->op != BinaryOp::FloorMod || !equal(q->a, r->a)) return std::nullopt;
  const auto by = constant_int(q->b), of = constant_int(r->b);
  return by && of && *by == *of && *by > 0 ? std::optional(Split{q->a, *by}) : std::nullopt;
}

}  // namespace

OwnElement OwnElements::positional(const std::vector<Expr>& index, const Range& threads) const {
  OwnElement out;
  for (size_t i = 0; i < index.size(); ++i) {
    OwnElement::Dimension d, any;
    any.anything = true;
    const auto both = i + 1 < index.size() ? split(index[i], index[i + 1]) : std::nullopt;
    if (both && add(1, both->whole, d, threads) && is_positional(d)) {
      d.columns = both->columns;
      out.dimensions.push_back(std::move(d)), out.dimensions.push_back(any);
      ++i;
      continue;
    }
    d = {};
    if (!add(1, index[i], d, threads) || !is_positional(d)) d = any;
    out.dimensions.push_back(std::move(d));
  }
  return out;
}

int64_t OwnElements::threads_along(int dimension, const Range& threads) const {
  return launch_.thread.size() == 1 ? threads.end - threads.begin : launch_.threads[static_cast<size_t>(dimension)];
}

// thread, thread / a, thread % b, thread / a % b, and thread % b / a where a divides b; `thread` from the first of the
// role on
std::optional<OwnElement::Digit> OwnElements::digit(const Expr& e, const Range& threads) const {
  if (const auto* v = e.as<Var>()) {
    const auto found = std::find(launch_.thread.begin(), launch_.thread.end(), v->id);
    if (found != launch_.thread.end()) {
      const auto d = static_cast<int>(found - launch_.thread.begin());
      if (threads.begin != 0) return std::nullopt;
      return OwnElement::Digit{1, threads_along(d, threads), d, 1};
    }
    const auto named = named_.find(v->id);
    return named == named_.end() ? std::nullopt : digit(named->second, threads);
  }
  if (const auto* s = e.as<ir::Sum>()) {
    const auto* v = s->terms.size() == 1 && s->terms[0].coefficient == 1 ? s->terms[0].value.as<Var>() : nullptr;
    if (!v || threads.begin == 0 || s->constant != -threads.begin || v->id != launch_.thread[0]) return std::nullopt;
    return OwnElement::Digit{1, threads_along(0, threads), 0, 1};
  }
  const auto* b = e.as<Binary>();
  if (!b || (b->op != BinaryOp::FloorDiv && b->op != BinaryOp::FloorMod)) return std::nullopt;
  auto out = digit(b->a, threads);
  const auto by = constant_int(b->b);
  if (!out || !by || *by <= 0) return std::nullopt;
  if (b->op == BinaryOp::FloorMod) {
    out->extent = std::min(out->extent, *by);  // below both: the rest of a rest, where one divides the other
    const int64_t all = (threads_along(out->thread, threads) + out->divisor - 1) / out->divisor;
    const auto before = digit(b->a, threads)->extent;
    return before == all || before % *by == 0 || before <= *by ? out : std::nullopt;
  }
  const int64_t all = (threads_along(out->thread, threads) + out->divisor - 1) / out->divisor;
  if (out->extent != all && out->extent % *by != 0) return std::nullopt;
  out->extent = (out->extent + *by - 1) / *by, out->divisor *= *by;
  return out;
}

bool OwnElements::add(int64_t weight, const Expr& e, OwnElement::Dimension& to, const Range& threads) const {
  if (auto d = digit(e, threads)) {
    d->weight = weight;
    to.digits.push_back(*d);
    return true;
  }
  if (const auto* s = e.as<Sum>()) {
    to.constant += weight * s->constant;
    return std::all_of(s->terms.begin(), s->terms.end(),
                       [&](const Term& t) { return add(weight * t.coefficient, t.value, to, threads); });
  }
  if (const auto c = constant_int(e)) {
    to.constant += weight * *c;
    return true;
  }
  if (const auto* c = e.as<Cast>(); c && e->type.is_int() && c->value->type.is_int() &&
                                    e->type.bits >= c->value->type.bits &&
                                    e->type.is_signed() == c->value->type.is_signed())
    return add(weight, c->value, to, threads);
  if (const auto* v = e.as<Var>()) {
    if (const auto named = named_.find(v->id); named != named_.end()) return add(weight, named->second, to, threads);
    if (const auto counter = counters_.find(v->id); counter != counters_.end()) {
      to.constant += weight * counter->second.begin;
      to.digits.push_back({weight, counter->second.extent, -1, 1});
      return true;
    }
  }
  bool agreed = true;
  walk(e, [&](const Expr& x) {
    const auto* v = x.as<Var>();
    agreed = agreed && !x.as<Load>() && !(v && bound_.contains(v->id)) &&
             !(v && std::find(launch_.thread.begin(), launch_.thread.end(), v->id) != launch_.thread.end());
  });
  to.base.push_back({weight, e});
  return agreed;
}

bool OwnElements::is_positional(OwnElement::Dimension& d) {
  std::erase_if(d.digits, [](const OwnElement::Digit& x) { return x.extent == 1; });
  std::stable_sort(d.digits.begin(), d.digits.end(), [](const OwnElement::Digit& x, const OwnElement::Digit& y) {
    return std::abs(x.weight) < std::abs(y.weight);
  });
  int64_t reached = 0;  // by the digits below
  for (const OwnElement::Digit& x : d.digits) {
    if (std::abs(x.weight) <= reached) return false;
    if (x.extent == 0) return &x == &d.digits.back();
    reached += std::abs(x.weight) * (x.extent - 1);
  }
  return true;
}

// Whether the digits tell every thread, or every so many `together`, from the others.
bool OwnElements::covers_threads(const OwnElement& e, int64_t together, const Range& threads) const {
  for (size_t d = 0; d < launch_.thread.size(); ++d) {
    std::map<int64_t, int64_t> extents;  // by divisor
    for (const OwnElement::Dimension& dimension : e.dimensions)
      for (const OwnElement::Digit& x : dimension.digits)
        if (x.thread == static_cast<int>(d)) extents[x.divisor] = std::max(extents[x.divisor], x.extent);
    int64_t known = together;
    for (const auto& [divisor, extent] : extents)
      if (known % divisor == 0) known = std::max(known, divisor * extent);
    if (known < threads_along(static_cast<int>(d), threads)) return false;
  }
  return true;
}

std::optional<int64_t> only_thread(const Expr& condition, const Launch& launch, OwnElements::Range among,
                                   const Substitution* names) {
  std::vector<Expr> all{condition};
  for (size_t i = 0; i < all.size(); ++i) {
    const auto* n = all[i].as<Binary>();
    if (n && n->op == BinaryOp::And) all.insert(all.end(), {n->a, n->b});
  }
  Point point{{}, names};
  std::optional<int64_t> only;
  for (int64_t number = among.begin; number < among.end; ++number) {
    int64_t rest = number;
    for (size_t d = 0; d < launch.thread.size(); rest /= launch.threads[d++])
      point.values[launch.thread[d]] = rest % launch.threads[d];
    if (std::any_of(all.begin(), all.end(), [&](const Expr& e) { return value_at(e, point) == 0; })) continue;
    if (only) return std::nullopt;
    only = number;
  }
  return only;
}

}  // namespace tilewright::analysis
