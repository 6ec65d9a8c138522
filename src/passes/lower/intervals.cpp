#include "passes/lower/intervals.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr Interval kEverything{-kUnbounded, kUnbounded};

int64_t clamp(__int128 v) {
  return static_cast<int64_t>(std::clamp<__int128>(v, -static_cast<__int128>(kUnbounded), kUnbounded));
}
bool bounded(Interval i) { return i.low > -kUnbounded && i.high < kUnbounded; }
// Arithmetic of a type wraps: what may leave its range may be anything in it.
Interval within(Interval i, DType type) {
  const Interval all = range_of_type(type);
  return i.low < all.low || i.high > all.high ? all : i;
}

Interval times(Interval a, Interval b) {
  const __int128 products[] = {static_cast<__int128>(a.low) * b.low, static_cast<__int128>(a.low) * b.high,
                               static_cast<__int128>(a.high) * b.low, static_cast<__int128>(a.high) * b.high};
  return {clamp(*std::min_element(products, products + 4)), clamp(*std::max_element(products, products + 4))};
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

Interval of_binary(const Binary& b, Interval x, Interval y, DType type) {
  const bool divisor_positive = y.low == y.high && y.low > 0 && y.high < kUnbounded;
  switch (b.op) {
    case BinaryOp::Mul: return within(times(x, y), type);
    case BinaryOp::FloorDiv:
      if (divisor_positive && bounded(x)) return {floor_div(x.low, y.low), floor_div(x.high, y.low)};
      if (y.low > 0 && x.low >= 0) return {0, x.high};
      return range_of_type(type);
    case BinaryOp::TruncDiv:
      return divisor_positive && x.low >= 0 && bounded(x) ? Interval{x.low / y.low, x.high / y.low}
                                                          : range_of_type(type);
    case BinaryOp::FloorMod:
      if (y.low > 0 && x.low >= 0 && x.high < y.low) return x;
      return y.low > 0 ? Interval{0, y.high - 1} : range_of_type(type);
    case BinaryOp::TruncMod:
      return y.low > 0 && x.low >= 0 ? Interval{0, std::min(x.high, y.high - 1)} : range_of_type(type);
    case BinaryOp::Min: return {std::min(x.low, y.low), std::min(x.high, y.high)};
    case BinaryOp::Max: return {std::max(x.low, y.low), std::max(x.high, y.high)};
    case BinaryOp::BitAnd:
      if (y.low >= 0) return {0, x.low >= 0 ? std::min(x.high, y.high) : y.high};
      return x.low >= 0 ? Interval{0, x.high} : range_of_type(type);
    case BinaryOp::Shr:
      return y.low == y.high && y.low >= 0 && y.low < type.bits && x.low >= 0
                 ? Interval{x.low >> y.low, x.high >> y.low}
                 : range_of_type(type);
    default: return range_of_type(type);
  }
}

}  // namespace

Interval range_of_type(DType type) {
  if (type.is_bool()) return {0, 1};
  if (!type.is_int() || type.bits > 60) return type.is_signed() ? kEverything : Interval{0, kUnbounded};
  const int64_t half = int64_t{1} << (type.bits - 1);
  return type.is_signed() ? Interval{-half, half - 1} : Interval{0, 2 * half - 1};
}

Interval Intervals::of(const Expr& e) const {
  if (auto c = constant_int(e)) return {*c, *c};
  if (const auto* v = e.as<Var>()) {
    auto found = vars_.find(v->id);
    return found == vars_.end() ? range_of_type(e->type) : found->second;
  }
  if (const auto* s = e.as<Sum>()) {
    __int128 low = s->constant, high = s->constant;
    bool has_low = true, has_high = true;
    for (const Term& t : s->terms) {
      const Interval term = times({t.coefficient, t.coefficient}, of(t.value));
      low += term.low, high += term.high;
      has_low = has_low && term.low > -kUnbounded, has_high = has_high && term.high < kUnbounded;
    }
    if (!has_low) low = -kUnbounded;
    if (!has_high) high = kUnbounded;
    return within({clamp(low), clamp(high)}, e->type);
  }
  if (const auto* b = e.as<Binary>(); b && e->type.is_int()) return of_binary(*b, of(b->a), of(b->b), e->type);
  if (const auto* s = e.as<Select>()) {
    const Interval a = of(s->a), b = of(s->b);
    return {std::min(a.low, b.low), std::max(a.high, b.high)};
  }
  if (const auto* c = e.as<Cast>(); c && c->value->type.is_integral() && e->type.is_integral())
    return within(of(c->value), e->type);
  return range_of_type(e->type);
}

void for_each_conjunct(const Expr& condition, function_ref<void(const Expr&)> f) {
  if (const auto* b = condition.as<Binary>(); b && b->op == BinaryOp::And && condition->type.is_bool()) {
    for_each_conjunct(b->a, f);
    for_each_conjunct(b->b, f);
  } else {
    f(condition);
  }
}

namespace {
// Comparisons of integers in 64 bits, so that the user's and ours look the same.
Expr normalized(const Expr& condition) {
  const auto* b = condition.as<Binary>();
  if (!b || !is_comparison(b->op) || !b->a->type.is_int() || (!b->a->type.is_signed() && b->a->type.bits == 64))
    return condition;
  return binary(b->op, widen(b->a), widen(b->b));
}
}  // namespace

void Intervals::assume(const Expr& condition) {
  for_each_conjunct(condition, [&](const Expr& c) { known_.push_back(normalized(c)); });
}

Intervals::Ranges Intervals::narrow(const Expr& condition) {
  Ranges before;
  for_each_conjunct(condition, [&](const Expr& raw) {
    const Expr c = normalized(raw);
    const auto* b = c.as<Binary>();
    if (!b || b->a->type != i64 || (b->op != BinaryOp::Lt && b->op != BinaryOp::Le)) return;
    // gap = coefficient * variable + constant, which must be at least 1 or 0.
    const Expr gap = sub(b->b, b->a);
    const auto* s = gap.as<Sum>();
    std::vector<Term> terms{{1, gap}};
    if (s) terms = s->terms;
    if (terms.size() != 1 || std::abs(terms[0].coefficient) != 1) return;
    const auto* cast = terms[0].value.as<Cast>();
    const auto* v = (cast ? cast->value : terms[0].value).as<Var>();
    if (!v) return;
    const int64_t rest = (s ? s->constant : 0) - (b->op == BinaryOp::Lt ? 1 : 0);
    Interval range = of(cast ? cast->value : terms[0].value);
    before.emplace_back(v->id, range);
    if (terms[0].coefficient > 0)
      range.low = std::max(range.low, -rest);
    else
      range.high = std::min(range.high, rest);
    vars_[v->id] = range;
  });
  return before;
}
void Intervals::restore(const Ranges& before) {
  for (size_t i = before.size(); i-- > 0;) vars_[before[i].first] = before[i].second;
}

bool Intervals::proves(const Expr& condition) const {
  bool all = true;
  for_each_conjunct(condition, [&](const Expr& raw) {
    const Expr c = normalized(raw);
    if (auto value = constant_int(c)) return void(all = all && *value);
    if (const auto* b = c.as<Binary>(); b && b->a->type == i64) {
      const Interval gap = of(sub(b->b, b->a));
      if (b->op == BinaryOp::Le && gap.low >= 0) return;
      if (b->op == BinaryOp::Lt && gap.low > 0) return;
    }
    all = all && std::any_of(known_.begin(), known_.end(), [&](const Expr& k) { return equal(k, c); });
  });
  return all;
}

namespace {
// 64 bits wrap beyond what an Interval tells: nothing in it may be that large.
bool is_exact(const Expr& e, const Intervals& ranges) {
  bool exact = true;
  walk(e, [&](const Expr& x) {
    exact = exact && !(x->type.is_integral() && x->type.bits > 60 && !bounded(ranges.of(x)));
  });
  return exact;
}
}  // namespace

std::optional<bool> Intervals::decides(const Expr& comparison) const {
  const auto* c = comparison.as<Binary>();
  if (!c || !is_comparison(c->op) || !c->a->type.is_int()) return std::nullopt;
  const Interval a = of(c->a), b = of(c->b);
  const bool below = a.high<b.low, above = a.low> b.high;
  const bool same = a.low == a.high && b.low == b.high && a.low == b.low;
  std::optional<bool> out;
  switch (c->op) {
    case BinaryOp::Lt:
      if (below || a.low >= b.high) out = below;
      break;
    case BinaryOp::Le:
      if (above || a.high <= b.low) out = !above;
      break;
    case BinaryOp::Eq:
      if (below || above || same) out = same;
      break;
    case BinaryOp::Ne:
      if (below || above || same) out = !same;
      break;
    default: break;
  }
  return out && is_exact(comparison, *this) ? out : std::nullopt;
}

Expr widen(const Expr& e) {
  if (e->type == i64) return e;
  if (auto c = constant_int(e)) return constant(i64, *c);
  if (e->type.is_signed() && e->type.is_int()) {
    if (const auto* s = e.as<Sum>()) {
      std::vector<Term> terms;
      for (const Term& t : s->terms) terms.push_back({t.coefficient, widen(t.value)});
      return sum(std::move(terms), s->constant, i64);
    }
    if (const auto* b = e.as<Binary>(); b && b->op == BinaryOp::Mul) return mul(widen(b->a), widen(b->b));
  }
  return cast(e, i64);
}

}  // namespace tilewright::passes
