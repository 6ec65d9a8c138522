#include "passes/threads/wrap_sums.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/intervals.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Wrapping {
 public:
  explicit Wrapping(const Intervals& ranges) : ranges_(ranges) {}
  // What looks at a value with its sign, with operands that wrap.
  std::optional<Expr> looked_at(const Expr& e) const {
    if (const auto* n = e.as<Binary>(); n && is_consumer(n->op)) {
      const Expr x = wrapped(n->a), y = wrapped(n->b);
      return same(x, n->a) && same(y, n->b) ? std::nullopt : std::optional(binary(n->op, x, y));
    }
    if (const auto* n = e.as<Intrinsic>()) {
      Intrinsic own = *n;
      return wrap_all(own.args) ? std::optional(make_expr(std::move(own), e->type)) : std::nullopt;
    }
    const auto* n = e.as<Cast>();
    if (!n || !is_wider(*n, e->type)) return std::nullopt;
    const Expr x = wrapped(n->value);
    return same(x, n->value) ? std::nullopt : std::optional(cast(x, e->type, n->rounding, n->random));
  }
  // The same of what statements do with a value (name it, store it, hand it to another lane, end a loop by it):
  // compilers add sums of several statements up, and what wraps in one of them is undefined in all.
  std::optional<Body> kept(const Stmt& s) const {
    const Stmt own = with_values(s, [&](const Expr& e) { return wrapped(e); });
    return own.same(s) ? std::nullopt : std::optional(Body{own});
  }
  Expr wrapped(const Expr& e) const {
    if (std::vector<Expr> own = handed_on(e); !own.empty()) return wrap_all(own) ? with_operands(e, own) : e;
    if (!e->type.is_int() || !e->type.is_signed() || e->type.bits < 32) return e;
    const DType plain = e->type.bits == 32 ? u32 : u64;
    if (const auto* n = e.as<ir::Sum>()) {
      if (ranges_.stays_in(*n, e->type)) return e;
      std::vector<Term> terms;
      for (const Term& t : n->terms) terms.push_back({t.coefficient, without_sign(wrapped(t.value), plain)});
      return cast(sum(std::move(terms), n->constant, plain), e->type);
    }
    const auto* n = e.as<Binary>();
    if (!n || n->op != BinaryOp::Mul || fits(*n, e->type)) return e;
    return cast(mul(without_sign(wrapped(n->a), plain), without_sign(wrapped(n->b), plain)), e->type);
  }

 private:
  static bool same(const Expr& a, const Expr& b) { return &*a == &*b; }
  static bool is_consumer(BinaryOp op) {
    return is_comparison(op) || op == BinaryOp::FloorDiv || op == BinaryOp::FloorMod || op == BinaryOp::TruncDiv ||
           op == BinaryOp::TruncMod || op == BinaryOp::Shr || op == BinaryOp::Min || op == BinaryOp::Max;
  }
  static bool is_wider(const Cast& n, DType to) {
    return n.value->type.is_int() && n.value->type.is_signed() && (to.is_float() || to.bits > n.value->type.bits);
  }
  // What hands the bits of its operands on: their sums are looked at where it is.
  static std::vector<Expr> handed_on(const Expr& e) {
    if (!e->type.is_int()) return {};
    if (const auto* n = e.as<ir::Unary>()) return {n->a};
    if (const auto* n = e.as<Select>()) return {n->a, n->b};
    if (const auto* n = e.as<Cast>(); n && n->value->type.is_int()) return {n->value};
    const auto* n = e.as<Binary>();
    if (!n) return {};
    if (n->op == BinaryOp::Shl) return {n->a};
    if (n->op == BinaryOp::BitAnd || n->op == BinaryOp::BitOr || n->op == BinaryOp::BitXor) return {n->a, n->b};
    return {};
  }
  static Expr with_operands(const Expr& e, const std::vector<Expr>& own) {
    if (const auto* n = e.as<ir::Unary>()) return unary(n->op, own[0]);
    if (const auto* n = e.as<Select>()) return select(n->condition, own[0], own[1]);
    if (const auto* n = e.as<Cast>()) return cast(own[0], e->type, n->rounding, n->random);
    const auto* n = e.as<Binary>();
    return binary(n->op, own[0], own.size() > 1 ? own[1] : n->b);
  }
  // Whether any of them is another expression then.
  bool wrap_all(std::vector<Expr>& list) const {
    bool changed = false;
    for (Expr& e : list) {
      const Expr x = wrapped(e);
      changed = changed || !same(x, e), e = x;
    }
    return changed;
  }
  static bool in_range(__int128 low, __int128 high, DType type) {
    const __int128 half = static_cast<__int128>(1) << (type.bits - 1);
    return low >= -half && high < half;
  }
  bool fits(const Binary& n, DType type) const {
    const Interval a = ranges_.of(n.a), b = ranges_.of(n.b);
    for (const Interval& i : {a, b})
      if (i.low <= -kUnbounded || i.high >= kUnbounded) return false;
    __int128 low = 0, high = 0;
    for (int64_t x : {a.low, a.high})
      for (int64_t y : {b.low, b.high}) {
        low = std::min(low, static_cast<__int128>(x) * y), high = std::max(high, static_cast<__int128>(x) * y);
      }
    return in_range(low, high, type);
  }
  static Expr without_sign(const Expr& e, DType plain) {
    const auto* n = e.as<Cast>();
    return n && n->value->type == plain ? n->value : cast(e, plain);
  }

  const Intervals& ranges_;
};

}  // namespace

void wrap_sums(ThreadProgram& program) {
  for (Launch& launch : program.launches) {
    const Intervals ranges = ranges_in(launch, ranges_of_symbols(program));
    const Wrapping wrapping(ranges);
    launch.body = rewrite_exprs(launch.body, [&](const Expr& e) { return wrapping.looked_at(e); });
    launch.body = rewrite(launch.body, [&](const Stmt& s) { return wrapping.kept(s); });
  }
}

Expr wrapped(const Expr& value, const Intervals& ranges) { return Wrapping(ranges).wrapped(value); }

}  // namespace tilewright::passes
