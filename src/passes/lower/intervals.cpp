#include "passes/lower/intervals.h"

#include <bit>
#include <limits>
#include <numeric>

#include "analysis/divisibility.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "support/symbol_room.h"

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
  if (type.bits > 60 && !bounded(i)) return all;
  return i.low < all.low || i.high > all.high ? all : i;
}

Interval times(Interval a, Interval b) {
  const __int128 products[] = {static_cast<__int128>(a.low) * b.low, static_cast<__int128>(a.low) * b.high,
                               static_cast<__int128>(a.high) * b.low, static_cast<__int128>(a.high) * b.high};
  return {clamp(*std::min_element(products, products + 4)), clamp(*std::max_element(products, products + 4))};
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

int64_t largest_shifted(DType type, int64_t by) {
  const auto largest = static_cast<uint64_t>(type.is_signed() ? INT64_MAX : -1) >> by;
  return static_cast<int64_t>(std::min(largest, static_cast<uint64_t>(kUnbounded)));
}

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
      // Nothing is left by 0: a program that divides by it is wrong there.
      return y.low >= 0 ? Interval{0, y.high < kUnbounded ? std::max<int64_t>(y.high - 1, 0) : kUnbounded}
                        : range_of_type(type);
    case BinaryOp::TruncMod:
      return y.low >= 0 && x.low >= 0
                 ? Interval{0, y.high < kUnbounded ? std::min(x.high, std::max<int64_t>(y.high - 1, 0)) : x.high}
                 : range_of_type(type);
    case BinaryOp::Min: return {std::min(x.low, y.low), std::min(x.high, y.high)};
    case BinaryOp::Max: return {std::max(x.low, y.low), std::max(x.high, y.high)};
    case BinaryOp::BitAnd:
      if (y.low >= 0) return {0, x.low >= 0 ? std::min(x.high, y.high) : y.high};
      return x.low >= 0 ? Interval{0, x.high} : range_of_type(type);
    case BinaryOp::BitOr:  // bits that two values have together are no more than the longer one's
    case BinaryOp::BitXor:
      if (x.low < 0 || y.low < 0 || std::max(x.high, y.high) >= kUnbounded) return range_of_type(type);
      return {0, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(x.high, y.high)) + 1)) - 1};
    case BinaryOp::Shr:
      return y.low == y.high && y.low >= 0 && y.low < type.bits && x.low >= 0
                 ? Interval{x.low >> y.low, bounded(x) ? x.high >> y.low : largest_shifted(type, y.low)}
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
  if (auto c = constant_int(e)) {
    const bool is_large = !e->type.is_signed() && *c < 0;  // 2^63 and more
    const int64_t value = is_large ? kUnbounded : clamp(*c);
    return {value, value};
  }
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
  if (const auto* b = e.as<Binary>(); b && e->type.is_int()) {
    const Interval range = of_binary(*b, of(b->a), of(b->b), e->type);
    const auto by = b->op == BinaryOp::FloorMod ? constant_int(b->b) : std::nullopt;
    if (!by || *by <= 0 || range.high != *by - 1) return range;
    // Of multiples, as long as they are of the divisor's divisor, multiples are left.
    return {range.low, *by - std::gcd(analysis::power_of_two_divisor(b->a), *by)};
  }
  if (const auto* s = e.as<Select>()) {
    const Interval a = of(s->a), b = of(s->b);
    return {std::min(a.low, b.low), std::max(a.high, b.high)};
  }
  if (const auto* c = e.as<Cast>(); c && c->value->type.is_integral() && e->type.is_integral())
    return within(of(c->value), e->type);
  return range_of_type(e->type);
}

bool Intervals::stays_in(const ir::Sum& n, DType type) const {
  __int128 low = std::min<int64_t>(n.constant, 0), high = std::max<int64_t>(n.constant, 0);
  for (const Term& t : n.terms) {
    const Interval range = of(t.value);
    if (!bounded(range)) return false;
    const __int128 x = static_cast<__int128>(t.coefficient) * range.low,
                   y = static_cast<__int128>(t.coefficient) * range.high;
    low += std::min<__int128>({x, y, 0}), high += std::max<__int128>({x, y, 0});
  }
  const __int128 half = static_cast<__int128>(1) << (type.bits - 1);
  return low >= -half && high < half;
}

void for_each_conjunct(const Expr& condition, function_ref<void(const Expr&)> f) {
  const auto* b = condition.as<Binary>();
  if (b && (b->op == BinaryOp::And || b->op == BinaryOp::BitAnd) && condition->type.is_bool()) {
    for_each_conjunct(b->a, f);
    for_each_conjunct(b->b, f);
  } else {
    f(condition);
  }
}

// Sums of bounded values are what they look like; of other nodes the sides of a comparison know nothing inside.
bool Intervals::is_exact(const Expr& wide) const {
  return wide.as<Sum>() || is_constant(wide) ? bounded(of(wide)) : true;
}

namespace {

// In 64 bits, narrow types as well: what the expression is where no sum of it wraps around.
Expr unwrapped(const Expr& e) {
  const bool narrow = e->type.is_int() && e->type.is_signed() && e->type.bits < 32;
  const auto* b = e.as<Binary>();
  if (narrow && b && b->op == BinaryOp::Mul) return mul(unwrapped(b->a), unwrapped(b->b));
  const auto* s = narrow ? e.as<Sum>() : nullptr;
  if (!s) return widen(e);
  std::vector<Term> terms;
  for (const Term& t : s->terms) terms.push_back({t.coefficient, unwrapped(t.value)});
  return sum(std::move(terms), s->constant, i64);
}

}  // namespace

Expr Intervals::normalized(const Expr& condition) const {
  const auto* b = condition.as<Binary>();
  if (!b || !is_comparison(b->op) || !b->a->type.is_int() || (!b->a->type.is_signed() && b->a->type.bits == 64))
    return condition;
  const Interval type = range_of_type(b->a->type);
  for (const Expr& side : {b->a, b->b}) {
    const Expr wide = unwrapped(side);
    if (!is_exact(wide)) return condition;
    if (b->a->type.bits >= 64) continue;
    const Interval range = of(wide);
    if (range.low < type.low || range.high > type.high) return condition;
  }
  return binary(b->op, unwrapped(b->a), unwrapped(b->b));
}

std::optional<Intervals::Order> Intervals::order_of(const Expr& normalized) const {
  const auto* b = normalized.as<Binary>();
  if (!b || b->a->type != i64 || (b->op != BinaryOp::Le && b->op != BinaryOp::Lt)) return std::nullopt;
  if (!is_exact(b->a) || !is_exact(b->b)) return std::nullopt;
  return Order{sub(b->b, b->a), b->op == BinaryOp::Lt ? 1 : 0};
}

void Intervals::count(VarId v, DType type, const Expr& extent) {
  set(v, {0, std::clamp<int64_t>(of(widen(extent)).high - 1, 0, range_of_type(type).high)});
  // What the range cannot say, where a call decides the extent.
  assume(binary(BinaryOp::Lt, widen(var(v, type)), widen(extent)));
}

void Intervals::assume(const Expr& condition) {
  const size_t first = known_.size();
  for_each_conjunct(condition, [&](const Expr& c) { known_.push_back(normalized(c)); });
  if (values_.empty()) return;
  for (size_t i = first, last = known_.size(); i < last; ++i)
    if (const Expr c = with_values(known_[i]); !equal(c, known_[i])) known_.push_back(c);
}

std::optional<Intervals::Bound> Intervals::bound_by(const Expr& normalized) const {
  const auto order = order_of(normalized);
  if (!order) return std::nullopt;
  // gap = coefficient * variable + constant
  const auto* s = order->gap.as<Sum>();
  std::vector<Term> terms{{1, order->gap}};
  if (s) terms = s->terms;
  if (terms.size() != 1 || std::abs(terms[0].coefficient) != 1) return std::nullopt;
  const auto* cast = terms[0].value.as<Cast>();
  const Expr value = cast ? cast->value : terms[0].value;
  if (!value.as<Var>() || (cast && (!value->type.is_int() || value->type.bits > 32))) return std::nullopt;
  const int64_t rest = (s ? s->constant : 0) - order->least;
  return Bound{value, terms[0].coefficient > 0 ? Interval{-rest, kUnbounded} : Interval{-kUnbounded, rest}};
}

namespace {
Interval both(Interval a, Interval b) { return {std::max(a.low, b.low), std::min(a.high, b.high)}; }
}  // namespace

Intervals::Ranges Intervals::narrow(const Expr& condition) {
  Ranges before;
  for_each_conjunct(condition, [&](const Expr& raw) {
    const auto bound = bound_by(normalized(raw));
    if (!bound) return;
    const VarId id = bound->var.as<Var>()->id;
    before.emplace_back(id, of(bound->var));
    vars_[id] = both(before.back().second, bound->range);
  });
  return before;
}
void Intervals::restore(const Ranges& before) {
  for (size_t i = before.size(); i-- > 0;) vars_[before[i].first] = before[i].second;
}

Interval Intervals::known_range(const Expr& var) const {
  Interval range = of(var);
  for (const Expr& k : known_)
    if (const auto bound = bound_by(k); bound && bound->var.as<Var>()->id == var.as<Var>()->id)
      range = both(range, bound->range);
  return range;
}

// Sums of narrow types wrap around: each turn of them is looked at.
bool Intervals::may_lie_in(const Expr& e, Interval range) const {
  const Interval exact = of(widen(e)), type = range_of_type(e->type);
  if (e->type.bits > 32 || !bounded(exact)) return true;
  const int64_t turn = type.high - type.low + 1;
  if (exact.low < type.low - turn || exact.high > type.high + turn) return true;
  for (int64_t by : {-turn, int64_t{0}, turn}) {
    const Interval here = both(both({exact.low + by, exact.high + by}, type), range);
    if (here.low <= here.high) return true;
  }
  return false;
}

// With the values of variables in their places. Of a minimum, the side that it can only be.
Expr Intervals::with_values(const Expr& condition) const {
  return rewrite(condition, [&](const Expr& x) -> std::optional<Expr> {
    const auto* c = x.as<Cast>();
    const Expr name = x->type != i64 ? Expr{} : c ? c->value : x;
    const auto found = name && name.as<Var>() ? values_.find(name.as<Var>()->id) : values_.end();
    if (found == values_.end()) return std::nullopt;
    Expr value = found->second;
    if (const auto* b = value.as<Binary>(); b && (b->op == BinaryOp::Min || b->op == BinaryOp::Max)) {
      const Interval range = known_range(name);
      if (!may_lie_in(b->a, range))
        value = b->b;
      else if (!may_lie_in(b->b, range))
        value = b->a;
    }
    const Interval exact = of(widen(value)), type = range_of_type(value->type);
    if (exact.low < type.low || exact.high > type.high) return std::nullopt;
    return widen(value);
  });
}

bool Intervals::knows_reads() const {
  bool reads = false;
  for (const Expr& k : known_) walk(k, [&](const Expr& x) { reads = reads || x.as<Load>(); });
  return reads;
}

void Intervals::drop_reads(function_ref<bool(BufferId)> changed) {
  for (Expr& k : known_) {
    bool reads = false;
    walk(k, [&](const Expr& x) { reads = reads || (x.as<Load>() && changed(x.as<Load>()->buffer)); });
    if (reads) k = constant(boolean, int64_t{1});
  }
}

// A quotient rounded down is less than k where its dividend is less than k times the divisor, and at least k where that
// is at least as much.
std::optional<Intervals::Order> Intervals::of_dividend(const Order& order) const {
  const auto* s = order.gap.as<Sum>();
  const std::vector<Term> terms = s ? s->terms : std::vector<Term>{{1, order.gap}};
  for (const Term& t : terms) {
    const auto* cast = t.value.as<Cast>();
    const Expr quotient = cast && cast->value->type.is_signed() ? cast->value : t.value;
    const auto* b = quotient.as<Binary>();
    if (!b || (b->op != BinaryOp::FloorDiv && b->op != BinaryOp::Shr) || std::abs(t.coefficient) != 1) continue;
    const bool shifts = b->op == BinaryOp::Shr;
    const auto by = constant_int(b->b);
    if (!by || *by < (shifts ? 0 : 1) || *by >= (shifts ? quotient->type.bits - 1 : kUnbounded)) continue;
    const int64_t divisor = shifts ? int64_t{1} << *by : *by;
    const Expr dividend = widen(b->a), rest = sub(order.gap, mul(constant(i64, t.coefficient), t.value));
    const Interval range = of(dividend), type = range_of_type(b->a->type);
    const Interval scaled = times({divisor, divisor}, of(rest)),
                   least = times({divisor, divisor}, {order.least, order.least});
    // Sums that wrap around are not what they look like.
    if (!bounded(range) || range.low < type.low || range.high > type.high || !bounded(scaled) || !bounded(least))
      return std::nullopt;
    const Expr all = add(mul(constant(i64, divisor), rest), mul(constant(i64, t.coefficient), dividend));
    return Order{all, least.low - (t.coefficient < 0 ? divisor - 1 : 0)};
  }
  return std::nullopt;
}

// What is left by a divisor is less than the divisor.
std::optional<Intervals::Order> Intervals::of_remainder(const Order& order) const {
  const auto* s = order.gap.as<Sum>();
  const std::vector<Term> terms = s ? s->terms : std::vector<Term>{{1, order.gap}};
  for (const Term& t : terms) {
    const auto* cast = t.value.as<Cast>();
    const auto* b = (cast && cast->value->type.is_int() ? cast->value : t.value).as<Binary>();
    const bool remains = b && (b->op == BinaryOp::FloorMod || (b->op == BinaryOp::TruncMod && of(b->a).low >= 0));
    if (!remains || t.coefficient >= 0 || constant_int(b->b) || of(b->b).low < 0) continue;
    const Expr of_term = mul(constant(i64, t.coefficient), t.value),
               most = mul(constant(i64, t.coefficient), sub(widen(b->b), constant(i64, int64_t{1})));
    return Order{add(sub(order.gap, of_term), most), order.least};
  }
  return std::nullopt;
}

namespace {

// How often a term of the second sum is in the first; 0: it is not, or so often that a product might wrap around.
int64_t multiple_in(const Expr& all, const Expr& part) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const auto terms_of = [](const Expr& e) {
    const auto* s = e.as<Sum>();
    return s ? s->terms : std::vector<Term>{{1, e}};
  };
  const auto is_small = [](int64_t n) { return n > -kMost && n < kMost; };
  const std::vector<Term> parts = terms_of(part);
  const bool small = std::ranges::all_of(parts, [&](const Term& t) { return is_small(t.coefficient); });
  if (!small || (part.as<Sum>() && !is_small(part.as<Sum>()->constant))) return 0;
  for (const Term& of : parts)
    for (const Term& t : terms_of(all))
      if (equal(t.value, of.value) && is_small(t.coefficient) && t.coefficient % of.coefficient == 0)
        return std::max<int64_t>(0, t.coefficient / of.coefficient);
  return 0;
}

}  // namespace

std::optional<Intervals::Either> Intervals::of_sides(const Order& order) const {
  const auto* s = order.gap.as<Sum>();
  const std::vector<Term> terms = s ? s->terms : std::vector<Term>{{1, order.gap}};
  for (const Term& t : terms) {
    const auto* cast = t.value.as<Cast>();
    const Expr value = cast && cast->value->type.is_int() && cast->value->type.is_signed() ? cast->value : t.value;
    const auto* b = value.as<Binary>();
    if (!b || (b->op != BinaryOp::Min && b->op != BinaryOp::Max) || std::abs(t.coefficient) != 1) continue;
    const Expr coefficient = constant(i64, t.coefficient), rest = sub(order.gap, mul(coefficient, t.value));
    const Interval type = range_of_type(value->type);
    Either out{{}, (b->op == BinaryOp::Min) == (t.coefficient < 0)};
    for (size_t i = 0; i < 2; ++i) {
      const Expr side = widen(i == 0 ? b->a : b->b);
      const Interval range = of(side);
      if (!bounded(range) || range.low < type.low || range.high > type.high) return std::nullopt;
      out.sides[i] = {add(rest, mul(coefficient, side)), order.least};
    }
    return out;
  }
  return std::nullopt;
}

bool Intervals::proves(const Order& order) const {
  if (of(order.gap).low >= order.least) return true;
  const bool follows = std::any_of(known_.begin(), known_.end(), [&](const Expr& k) {
    const auto known = order_of(k);
    if (!known) return false;
    const auto is_more = [&](int64_t times) {
      const Interval more = of(sub(order.gap, mul(constant(i64, times), known->gap)));
      return more.low > -kUnbounded && more.low + times * known->least >= order.least;
    };
    const int64_t times = multiple_in(order.gap, known->gap);
    return is_more(1) || (times > 1 && is_more(times));
  });
  if (follows) return true;
  if (const auto remainder = of_remainder(order); remainder && proves(*remainder)) return true;
  if (const auto either = of_sides(order)) {
    const bool first = proves(either->sides[0]);
    return either->one_suffices == first ? first : proves(either->sides[1]);
  }
  const auto dividend = of_dividend(order);
  return dividend && proves(*dividend);
}

bool Intervals::proves(const Expr& condition) const {
  bool all = true;
  for_each_conjunct(condition, [&](const Expr& raw) {
    if (!all) return;
    const Expr c = normalized(raw);
    const auto holds = [&](const Expr& e) {
      if (auto value = constant_int(e)) return *value != 0;
      if (std::any_of(known_.begin(), known_.end(), [&](const Expr& k) { return equal(k, e); })) return true;
      const auto order = order_of(e);
      return order && proves(*order);
    };
    all = holds(c);
    if (!all && !values_.empty() && order_of(c)) all = holds(with_values(c));
  });
  return all;
}

std::optional<bool> Intervals::decides(const Expr& comparison) const {
  const auto* c = comparison.as<Binary>();
  if (!c || !is_comparison(c->op) || !c->a->type.is_int()) return std::nullopt;
  const Interval a = of(c->a), b = of(c->b);
  const bool below = a.high<b.low, above = a.low> b.high;
  const bool same = bounded(a) && a.low == a.high && b.low == b.high && a.low == b.low;
  std::optional<bool> out;
  switch (c->op) {
    case BinaryOp::Lt:
      if (below || (a.low >= b.high && a.low > -kUnbounded && b.high < kUnbounded)) out = below;
      break;
    case BinaryOp::Le:
      if (above || (a.high <= b.low && a.high < kUnbounded && b.low > -kUnbounded)) out = !above;
      break;
    case BinaryOp::Eq:
      if (below || above || same) out = same;
      break;
    case BinaryOp::Ne:
      if (below || above || same) out = !same;
      break;
    default: break;
  }
  return out;
}

// No extent of a call is negative, but a stride may be: that of rows in reverse.
static bool may_be_negative(VarId symbol, const ProgramTables& program) {
  bool stride = false, extent = false;
  for (const Param& param : program.params) {
    if (!param.is_tensor()) continue;
    const Buffer& b = program.buffer(param.buffer);
    for (const Expr& e : b.strides) stride = stride || used_vars(e).contains(symbol);
    for (const Expr& e : b.shape) extent = extent || (e.as<Var>() && e.as<Var>()->id == symbol);
  }
  return stride && !extent;
}

Intervals ranges_of_symbols(const ProgramTables& program) {
  Intervals out;
  for (VarId v : program.symbols) {
    const DType type = program.var(v).type;
    const Interval all = range_of_type(type);
    if (type.bits == 32) out.set(v, {may_be_negative(v, program) ? all.low : 0, all.high - kSymbolRoom});
  }
  return out;
}

Intervals ranges_in(const Launch& launch, Intervals out) {
  // Of begin, begin + 1, ..., end - 1, where the last of them is one of the type's.
  const auto counter = [&](VarId v, int64_t begin, int64_t end, DType type) {
    const int64_t last = end >= kUnbounded ? kUnbounded : end - 1;
    out.set(v, {begin, std::clamp(last, begin, range_of_type(type).high)});
  };
  for (size_t d = 0; d < launch.grid.size(); ++d) counter(launch.block[d], 0, out.of(launch.grid[d]).high, i32);
  for (size_t d = 0; d < launch.threads.size(); ++d) out.set(launch.thread[d], {0, launch.threads[d] - 1});
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* n = s.as<For>()) {
      const Interval begin = out.of(n->begin), end = out.of(add(n->begin, cast(n->extent, n->begin->type)));
      int64_t last = begin.high + out.of(n->extent).high;
      // Neither wraps around: of begin : end - begin the end says more.
      if (begin.low >= 0 && end.low >= 0) last = std::min(last, std::max(end.high, begin.high + 1));
      counter(n->var, begin.low, last, n->begin->type);
    } else if (const auto* n = s.as<Map>()) {
      for (size_t d = 0; d < n->vars.size(); ++d)
        counter(n->vars[d], 0, out.of(n->extents[d]).high, n->extents[d]->type);
    } else if (const auto* n = s.as<Let>(); n && n->value->type.is_integral()) {
      const auto known = out.decides(n->value);
      out.set(n->var, known ? Interval{*known, *known} : out.of(n->value));
    }
  });
  return out;
}

}  // namespace tilewright::passes
