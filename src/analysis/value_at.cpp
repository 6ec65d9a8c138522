#include "analysis/value_at.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

using Known = std::optional<int64_t>;

// Expressions share their parts, so that a short one may stand for a very long one.
constexpr int kMostNodes = 4096;

int64_t wrapped(DType type, uint64_t value) {
  if (type.is_bool()) return static_cast<int64_t>(value & 1);
  const int unused = 64 - type.bits;
  if (unused <= 0) return static_cast<int64_t>(value);
  const uint64_t high = value << unused;
  return type.is_signed() ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused);
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

class Evaluation {
 public:
  explicit Evaluation(const Point& point) : point_(point) {}

  Known of(const Expr& e) {
    if (++nodes_ > kMostNodes || !e->type.is_integral() || (e->type.bits == 64 && !e->type.is_signed())) return {};
    if (const auto constant = constant_int(e)) return constant;
    if (const auto* v = e.as<Var>()) return of_var(v->id);
    if (const auto* s = e.as<Sum>()) return of_sum(*s, e->type);
    if (const auto* b = e.as<Binary>()) return of_binary(*b, e->type);
    if (const auto* u = e.as<Unary>()) {
      const Known a = of(u->a);
      if (!a || u->op == UnaryOp::Neg) return {};
      return wrapped(e->type, u->op == UnaryOp::Not ? static_cast<uint64_t>(*a == 0) : ~static_cast<uint64_t>(*a));
    }
    if (const auto* s = e.as<Select>()) {
      const Known condition = of(s->condition);
      return condition ? of(*condition ? s->a : s->b) : std::nullopt;
    }
    if (const auto* c = e.as<Cast>()) {
      const Known value = of(c->value);
      if (!value) return {};
      return e->type.is_bool() ? int64_t{*value != 0} : wrapped(e->type, static_cast<uint64_t>(*value));
    }
    return {};
  }

  // Sums and products of int32 in 64 bits.
  Known of_index(const Expr& e) {
    const auto* b = e.as<Binary>();
    if (e->type != i32 || !(e.as<Sum>() || (b && b->op == BinaryOp::Mul))) return of(e);
    if (++nodes_ > kMostNodes) return {};
    if (b) {
      const Known x = of_index(b->a), y = x ? of_index(b->b) : std::nullopt;
      return x && y ? Known(static_cast<int64_t>(static_cast<uint64_t>(*x) * static_cast<uint64_t>(*y))) : Known();
    }
    const Sum& s = *e.as<Sum>();
    auto total = static_cast<uint64_t>(s.constant);
    for (const Term& t : s.terms) {
      const Known value = of_index(t.value);
      if (!value) return {};
      total += static_cast<uint64_t>(t.coefficient) * static_cast<uint64_t>(*value);
    }
    return static_cast<int64_t>(total);
  }

 private:
  Known of_var(VarId id) {
    if (const auto found = point_.values.find(id); found != point_.values.end()) return found->second;
    if (!point_.names) return {};
    const auto name = point_.names->find(id);
    return name == point_.names->end() ? std::nullopt : of(name->second);
  }

  Known of_sum(const Sum& s, DType type) {
    auto total = static_cast<uint64_t>(s.constant);
    for (const Term& t : s.terms) {
      const Known value = of(t.value);
      if (!value) return {};
      total += static_cast<uint64_t>(t.coefficient) * static_cast<uint64_t>(*value);
    }
    return wrapped(type, total);
  }

  // The right side is only evaluated where the left one leaves it open.
  Known of_logical(const Binary& b) {
    const Known left = of(b.a);
    const bool decides = b.op == BinaryOp::Or;
    if (left && (*left != 0) == decides) return int64_t{decides};
    const Known right = of(b.b);
    return left ? right : std::nullopt;
  }

  Known of_binary(const Binary& b, DType type) {
    if (b.op == BinaryOp::And || b.op == BinaryOp::Or) return of_logical(b);
    const Known left = of(b.a), right = left ? of(b.b) : std::nullopt;
    if (!left || !right) return {};
    const int64_t x = *left, y = *right;
    const auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
    const bool divides = y != 0 && !(y == -1 && x == INT64_MIN);
    const bool shifts = y >= 0 && y < type.bits;
    switch (b.op) {
      case BinaryOp::Mul: return wrapped(type, ux * uy);
      case BinaryOp::FloorDiv: return divides ? Known(wrapped(type, static_cast<uint64_t>(floor_div(x, y)))) : Known();
      case BinaryOp::FloorMod:
        return divides ? Known(wrapped(type, ux - static_cast<uint64_t>(floor_div(x, y)) * uy)) : Known();
      case BinaryOp::TruncDiv: return divides ? Known(wrapped(type, static_cast<uint64_t>(x / y))) : Known();
      case BinaryOp::TruncMod: return divides ? Known(x % y) : Known();
      case BinaryOp::Min: return std::min(x, y);
      case BinaryOp::Max: return std::max(x, y);
      case BinaryOp::BitAnd: return x & y;
      case BinaryOp::BitOr: return x | y;
      case BinaryOp::BitXor: return x ^ y;
      case BinaryOp::Shl: return shifts ? Known(wrapped(type, ux << y)) : Known();
      case BinaryOp::Shr: return shifts ? Known(x >> y) : Known();
      case BinaryOp::Eq: return x == y;
      case BinaryOp::Ne: return x != y;
      case BinaryOp::Lt: return x < y;
      case BinaryOp::Le: return x <= y;
      default: return {};
    }
  }

  const Point& point_;
  int nodes_ = 0;
};

}  // namespace

Substitution names_in(const Body& body) {
  Substitution out;
  walk(body, [&](const Stmt& s) {
    if (const auto* let = s.as<Let>()) out[let->var] = let->value;
  });
  return out;
}

std::optional<int64_t> value_at(const Expr& e, const Point& point) { return Evaluation(point).of(e); }
std::optional<int64_t> index_at(const Expr& e, const Point& point) { return Evaluation(point).of_index(e); }

}  // namespace tilewright::analysis
