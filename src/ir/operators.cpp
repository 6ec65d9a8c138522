#include "ir/operators.h"

#include "ir/match.h"
#include "scalar/functions.h"
#include "scalar/text.h"
#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

// The value as the type holds it: two's complement of its width, sign- or zero-extended.
int64_t wrap(DType type, int64_t value) {
  if (type.is_bool()) return value != 0;
  if (type.bits >= 64 || !type.is_int()) return value;
  const int shift = 64 - type.bits;
  const auto up = static_cast<uint64_t>(value) << shift;
  return type.is_signed() ? static_cast<int64_t>(up) >> shift : static_cast<int64_t>(up >> shift);
}

int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
bool is_unsigned64(DType type) { return type.kind == Kind::UInt && type.bits == 64; }

// To the nearest value of the type, once: through a float whose last bit is sticky where the type is narrower.
double round_to(DType type, double value) {
  switch (type.kind) {
    case Kind::TFloat: return scalar::round_tf32(scalar::odd_f64(value));
    case Kind::BFloat: return scalar::round_bf16(scalar::odd_f64(value));
    case Kind::Float8E4M3FN: return scalar::round_e4m3(scalar::odd_f64(value));
    case Kind::Float8E5M2: return scalar::round_e5m2(scalar::odd_f64(value));
    case Kind::Float8E3M4: return scalar::round_e3m4(scalar::odd_f64(value));
    case Kind::Float8E4M3B11FNUZ: return scalar::round_e4m3b11fnuz(scalar::odd_f64(value));
    case Kind::Float8E4M3FNUZ: return scalar::round_e4m3fnuz(scalar::odd_f64(value));
    case Kind::Float8E5M2FNUZ: return scalar::round_e5m2fnuz(scalar::odd_f64(value));
    case Kind::Float6E2M3FN: return scalar::round_e2m3(scalar::odd_f64(value));
    case Kind::Float6E3M2FN: return scalar::round_e3m2(scalar::odd_f64(value));
    case Kind::Float8E8M0: return scalar::round_e8m0(scalar::odd_f64(value));
    case Kind::Float4E2M1: return scalar::round_e2m1(scalar::odd_f64(value));
    default: break;
  }
  if (type == f16) return scalar::round_f16(scalar::odd_f64(value));
  return type == f32 ? static_cast<float>(value) : value;
}

// What an operation or a conversion gives; constant() leaves an infinity that is the type's own as it is.
Expr rounded(DType type, double value) {
  return make_expr(Const{std::bit_cast<uint64_t>(round_to(type, value))}, type);
}

bool less(DType type, int64_t a, int64_t b) {
  return is_unsigned64(type) ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

int64_t floor_mod(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

// Only what has one meaning is folded: division by zero and its like stay in the program, for the interpreter to
// report.
std::optional<int64_t> fold_int(BinaryOp op, DType type, int64_t a, int64_t b) {
  const bool divides = b != 0 && b != -1 && !is_unsigned64(type);
  switch (op) {
    case BinaryOp::Mul: return wrapping_mul(a, b);
    case BinaryOp::FloorDiv: return divides ? std::optional(floor_div(a, b)) : std::nullopt;
    case BinaryOp::FloorMod: return divides ? std::optional(floor_mod(a, b)) : std::nullopt;
    case BinaryOp::TruncDiv: return divides ? std::optional(a / b) : std::nullopt;
    case BinaryOp::TruncMod: return divides ? std::optional(a % b) : std::nullopt;
    case BinaryOp::Min:
    case BinaryOp::MinNan: return less(type, a, b) ? a : b;
    case BinaryOp::Max:
    case BinaryOp::MaxNan: return less(type, a, b) ? b : a;
    case BinaryOp::BitAnd: return a & b;
    case BinaryOp::BitOr: return a | b;
    case BinaryOp::BitXor: return a ^ b;
    case BinaryOp::Shl:
      return b >= 0 && b < type.bits ? std::optional(static_cast<int64_t>(static_cast<uint64_t>(a) << b))
                                     : std::nullopt;
    case BinaryOp::Shr:
      return b >= 0 && b < type.bits
                 ? std::optional(is_unsigned64(type) ? static_cast<int64_t>(static_cast<uint64_t>(a) >> b) : a >> b)
                 : std::nullopt;
    case BinaryOp::And: return a && b;
    case BinaryOp::Or: return a || b;
    case BinaryOp::Eq: return a == b;
    case BinaryOp::Ne: return a != b;
    case BinaryOp::Lt: return less(type, a, b);
    case BinaryOp::Le: return !less(type, b, a);
    default: return std::nullopt;
  }
}

// In double and then rounded: correct for every narrower type, since 53 >= 2 * 24 + 2 (Figueroa 1995).
std::optional<double> fold_float(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::Add: return a + b;
    case BinaryOp::Sub: return a - b;
    case BinaryOp::Mul: return a * b;
    case BinaryOp::Div: return a / b;
    default: break;
  }
  if (std::isnan(a) || std::isnan(b) || (a == 0 && b == 0)) return std::nullopt;
  if (op == BinaryOp::Min || op == BinaryOp::MinNan) return std::min(a, b);
  if (op == BinaryOp::Max || op == BinaryOp::MaxNan) return std::max(a, b);
  return std::nullopt;
}

std::optional<bool> fold_compare(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::Eq: return a == b;
    case BinaryOp::Ne: return a != b;
    case BinaryOp::Lt: return a < b;
    case BinaryOp::Le: return a <= b;
    default: return std::nullopt;
  }
}

std::optional<Expr> fold(BinaryOp op, const Expr& a, const Expr& b) {
  if (auto x = constant_int(a), y = constant_int(b); x && y) {
    if (auto v = fold_int(op, a->type, *x, *y)) return constant(is_comparison(op) ? boolean : a->type, *v);
  }
  if (auto x = constant_float(a), y = constant_float(b); x && y) {
    if (is_comparison(op)) {
      if (auto v = fold_compare(op, *x, *y)) return constant(boolean, static_cast<int64_t>(*v));
    } else if (auto v = fold_float(op, *x, *y)) {
      return rounded(a->type, *v);
    }
  }
  return std::nullopt;
}

// x op constant where the result is known without x's value.
std::optional<Expr> fold_identity(BinaryOp op, const Expr& a, const Expr& b) {
  const auto x = constant_int(a), y = constant_int(b);
  switch (op) {
    case BinaryOp::FloorDiv:
    case BinaryOp::TruncDiv:
      if (y == 1) return a;
      break;
    case BinaryOp::FloorMod:
    case BinaryOp::TruncMod:
      if (y == 1) return constant(a->type, int64_t{0});
      break;
    case BinaryOp::And:
      if (x) return *x ? b : a;
      if (y) return *y ? a : b;
      break;
    case BinaryOp::Or:
      if (x) return *x ? a : b;
      if (y) return *y ? b : a;
      break;
    case BinaryOp::BitAnd:
    case BinaryOp::BitOr:
      if (a->type.is_bool() && x) return (op == BinaryOp::BitAnd) == (*x != 0) ? b : a;
      if (b->type.is_bool() && y) return (op == BinaryOp::BitAnd) == (*y != 0) ? a : b;
      break;
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      if (y == 0) return a;
      break;
    case BinaryOp::Min:
    case BinaryOp::Max:
      if (a->type.is_integral() && equal(a, b)) return a;
      break;
    case BinaryOp::Eq:
    case BinaryOp::Le:
      if (a->type.is_integral() && equal(a, b)) return constant(boolean, int64_t{1});
      break;
    case BinaryOp::Ne:
    case BinaryOp::Lt:
      if (a->type.is_integral() && equal(a, b)) return constant(boolean, int64_t{0});
      break;
    default: break;
  }
  return std::nullopt;
}

// A sum under construction. Terms of a few are looked for one by one, of many by their hashes.
class Adder {
 public:
  explicit Adder(int64_t constant) : total_(constant) {}

  void add(int64_t coefficient, const Expr& e) {
    if (auto c = constant_int(e)) {
      total_ = wrapping_add(total_, wrapping_mul(coefficient, *c));
    } else if (const auto* s = e.as<Sum>()) {
      total_ = wrapping_add(total_, wrapping_mul(coefficient, s->constant));
      for (const Term& t : s->terms) add(wrapping_mul(coefficient, t.coefficient), t.value);
    } else if (Term* same = find(e)) {
      same->coefficient = wrapping_add(same->coefficient, coefficient);
    } else {
      terms_.push_back({coefficient, e});
      if (terms_.size() > kFew) places_.emplace(e, terms_.size() - 1);
    }
  }
  Expr result(DType type) {
    for (Term& t : terms_) t.coefficient = wrap(type, t.coefficient);
    std::erase_if(terms_, [](const Term& t) { return t.coefficient == 0; });
    total_ = wrap(type, total_);
    if (terms_.empty()) return constant(type, total_);
    if (terms_.size() == 1 && terms_[0].coefficient == 1 && total_ == 0) return terms_[0].value;
    return make_expr(Sum{std::move(terms_), total_}, type);
  }

 private:
  static constexpr size_t kFew = 16;
  Term* find(const Expr& e) {
    for (size_t i = 0; i < std::min(kFew, terms_.size()); ++i)
      if (equal(terms_[i].value, e)) return &terms_[i];
    const auto found = places_.find(e);
    return found == places_.end() ? nullptr : &terms_[found->second];
  }
  std::vector<Term> terms_;
  std::unordered_map<Expr, size_t, ExprHash, ExprEqual> places_;  // of those behind the first few
  int64_t total_;
};

Expr linear(int64_t ca, const Expr& a, int64_t cb, const Expr& b) {
  Adder adder(0);
  adder.add(ca, a);
  adder.add(cb, b);
  return adder.result(a->type);
}

}  // namespace

Expr constant(DType type, int64_t value) {
  if (type.is_float()) return constant(type, static_cast<double>(value));
  return make_expr(Const{static_cast<uint64_t>(wrap(type, value))}, type);
}

Expr constant(DType type, double value) {
  if (!type.is_float()) return constant(type, static_cast<int64_t>(value));
  if (type == e5m2 && std::isinf(value)) return make_expr(Const{std::bit_cast<uint64_t>(value)}, type);
  return rounded(type, value);
}

Expr var(VarId id, DType type) { return make_expr(Var{id}, type); }
Expr load(BufferId buffer, std::vector<Expr> indices, DType type) {
  return make_expr(Load{buffer, std::move(indices)}, type);
}
Expr address(BufferId buffer, std::vector<Expr> indices) {
  return make_expr(Address{buffer, std::move(indices)}, pointer);
}

Expr sum(std::vector<Term> terms, int64_t total, DType type) {
  Adder adder(total);
  for (const Term& t : terms) adder.add(t.coefficient, t.value);
  return adder.result(type);
}

Expr add(const Expr& a, const Expr& b) { return binary(BinaryOp::Add, a, b); }
Expr sub(const Expr& a, const Expr& b) { return binary(BinaryOp::Sub, a, b); }
Expr mul(const Expr& a, const Expr& b) { return binary(BinaryOp::Mul, a, b); }

Expr neg(const Expr& a) { return a->type.is_int() ? linear(-1, a, 0, a) : unary(UnaryOp::Neg, a); }

Expr binary(BinaryOp op, const Expr& a, const Expr& b) {
  check_internal(a->type == b->type, "operands of {} have types {} and {}", name_of(op), a->type.name(),
                 b->type.name());
  // Of truths the smaller is true where both are.
  if (a->type.is_bool() && op == BinaryOp::Min) return binary(BinaryOp::And, a, b);
  if (a->type.is_bool() && op == BinaryOp::Max) return binary(BinaryOp::Or, a, b);
  if (a->type.is_int()) {
    if (op == BinaryOp::Add) return linear(1, a, 1, b);
    if (op == BinaryOp::Sub) return linear(1, a, -1, b);
    if (op == BinaryOp::Mul) {
      if (auto c = constant_int(b)) return linear(*c, a, 0, a);
      if (auto c = constant_int(a)) return linear(*c, b, 0, b);
    }
  }
  if (auto folded = fold(op, a, b)) return *folded;
  if (auto folded = fold_identity(op, a, b)) return *folded;
  return make_expr(Binary{op, a, b}, is_comparison(op) ? boolean : a->type);
}

Expr unary(UnaryOp op, const Expr& a) {
  if (auto c = constant_int(a)) {
    if (op == UnaryOp::Not) return constant(boolean, static_cast<int64_t>(*c == 0));
    if (op == UnaryOp::BitNot) return constant(a->type, ~*c);
  }
  if (auto c = constant_float(a); c && op == UnaryOp::Neg && a->type != e8m0) return constant(a->type, -*c);
  if (const auto* inner = a.as<Unary>(); inner && inner->op == op) return inner->a;
  return make_expr(Unary{op, a}, a->type);
}

Expr fma(const Expr& a, const Expr& b, const Expr& c) { return make_expr(Fma{a, b, c}, a->type); }

Expr select(const Expr& condition, const Expr& a, const Expr& b) {
  check_internal(a->type == b->type, "sides of a select have types {} and {}", a->type.name(), b->type.name());
  if (auto c = constant_int(condition)) return *c ? a : b;
  if (equal(a, b)) return a;
  return make_expr(Select{condition, a, b}, a->type);
}

Expr cast(const Expr& value, DType type, Rounding rounding, const Expr& random) {
  if (value->type == type) return value;
  if (rounding == Rounding::Nearest) {
    if (auto c = constant_int(value); c && !type.is_pointer()) {
      if (!type.is_float()) return constant(type, *c);
      const bool exact = is_unsigned64(value->type) ? *c >= 0 : true;
      const auto d = static_cast<double>(*c);
      if (exact && std::abs(d) <= 0x1p53) return constant(type, d);
    }
    if (auto c = constant_float(value)) {
      if (type.is_float()) return rounded(type, *c);
      if (type.is_bool()) return constant(type, static_cast<int64_t>(*c != 0));
      if (type.is_int() && std::abs(*c) < 0x1p31) {
        const auto whole = static_cast<int64_t>(*c);
        if (wrap(type, whole) == whole && (whole >= 0 || type.is_signed())) return constant(type, whole);
      }
    }
  }
  return make_expr(Cast{value, rounding, random}, type);
}

Expr bitcast(const Expr& value, DType type) {
  if (value->type == type) return value;
  check_internal(value->type.bits == type.bits, "bitcast of {} to {}", value->type.name(), type.name());
  if (const auto* inner = value.as<Bitcast>()) return bitcast(inner->value, type);
  return make_expr(Bitcast{value}, type);
}

namespace {
struct FunctionOperator {
  BinaryOp op;
  Function function;
};
constexpr FunctionOperator kFunctionOperators[] = {
    {BinaryOp::Add, Function::Add},           {BinaryOp::Sub, Function::Sub},
    {BinaryOp::Mul, Function::Mul},           {BinaryOp::Div, Function::Div},
    {BinaryOp::FloorDiv, Function::FloorDiv}, {BinaryOp::FloorMod, Function::FloorMod},
    {BinaryOp::TruncDiv, Function::TruncDiv}, {BinaryOp::TruncMod, Function::TruncMod},
    {BinaryOp::Min, Function::Min},           {BinaryOp::Max, Function::Max},
    {BinaryOp::MinNan, Function::MinNan},     {BinaryOp::MaxNan, Function::MaxNan},
    {BinaryOp::Shl, Function::Shl},           {BinaryOp::Shr, Function::Shr},
};

// Functions of the table that are operators of the IR: one meaning, one node. Add, Sub, Mul and Div stay functions:
// they are what users write (ieee_fmul) to be rounded by themselves, never contracted.
std::optional<BinaryOp> as_operator(Function function) {
  for (const auto& [op, f] : kFunctionOperators)
    if (f == function && op > BinaryOp::Div) return op;
  return std::nullopt;
}
}  // namespace

std::optional<Function> function_of(BinaryOp op) {
  for (const auto& [o, function] : kFunctionOperators)
    if (o == op) return function;
  return std::nullopt;
}

bool can_bitcast(DType from, DType to) { return from.bits == to.bits && !from.is_bool() && !to.is_bool(); }

const char* wants_instead(BinaryOp op, DType type) {
  const bool computes = type.is_float() && type != e8m0;  // powers of two are compared and converted, no more
  switch (op) {
    case BinaryOp::Add:
    case BinaryOp::Sub:
    case BinaryOp::Mul: return type.is_int() || computes ? nullptr : "numbers";
    case BinaryOp::Div: return computes ? nullptr : "floats";
    case BinaryOp::FloorDiv:
    case BinaryOp::FloorMod:
    case BinaryOp::TruncDiv:
    case BinaryOp::TruncMod:
    case BinaryOp::Shl:
    case BinaryOp::Shr: return type.is_int() ? nullptr : "integers";
    case BinaryOp::BitAnd:
    case BinaryOp::BitOr:
    case BinaryOp::BitXor: return type.is_integral() ? nullptr : "integers or bools";
    case BinaryOp::And:
    case BinaryOp::Or: return type.is_bool() ? nullptr : "bools";
    case BinaryOp::Min:
    case BinaryOp::Max: return type.is_integral() || computes ? nullptr : "numbers";
    case BinaryOp::MinNan:
    case BinaryOp::MaxNan: return computes ? nullptr : "floats";
    case BinaryOp::Eq:
    case BinaryOp::Ne:
    case BinaryOp::Lt:
    case BinaryOp::Le: break;
  }
  return nullptr;
}

Expr intrinsic(Function function, std::vector<Expr> args) {
  if (auto op = as_operator(function)) return binary(*op, args[0], args[1]);
  if (function == Function::Fma) return fma(args[0], args[1], args[2]);
  if (function == Function::Neg) return neg(args[0]);
  const DType type = result_type(function, args[0]->type);
  return make_expr(Intrinsic{function, std::move(args)}, type);
}

Expr logical_and(const Expr& a, const Expr& b) { return binary(BinaryOp::And, a, b); }

Expr logical_not(const Expr& a) {
  if (const auto* b = a.as<Binary>(); b && b->a->type.is_integral()) {  // not so for floats: NaN
    if (b->op == BinaryOp::Lt) return binary(BinaryOp::Le, b->b, b->a);
    if (b->op == BinaryOp::Le) return binary(BinaryOp::Lt, b->b, b->a);
    if (b->op == BinaryOp::Eq) return binary(BinaryOp::Ne, b->a, b->b);
    if (b->op == BinaryOp::Ne) return binary(BinaryOp::Eq, b->a, b->b);
  }
  return unary(UnaryOp::Not, a);
}

Expr ceildiv(const Expr& a, const Expr& b) {
  return binary(BinaryOp::FloorDiv, add(a, sub(b, constant(b->type, int64_t{1}))), b);
}

}  // namespace tilewright::ir
