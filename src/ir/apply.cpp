// The frontends' side of ir/operators.h: promotion of mixed operands, and the user's mistakes.
#include "ir/operators.h"
#include "scalar/dtype_rows.h"
#include "scalar/functions.h"
#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

// Floats beat bfloat16, which beats float8, which beats float6, float4 which beats integers, which beat bool.
int rank_of(DType t) {
  switch (t.kind) {
    case Kind::Bool: return 0;
    case Kind::Int:
    case Kind::UInt: return 1;
    case Kind::Float4E2M1: return 2;
    case Kind::Float6E2M3FN:
    case Kind::Float6E3M2FN: return 3;
    case Kind::Float8E4M3FN:
    case Kind::Float8E5M2:
    case Kind::Float8E3M4:
    case Kind::Float8E4M3B11FNUZ:
    case Kind::Float8E4M3FNUZ:
    case Kind::Float8E5M2FNUZ:
    case Kind::Float8E8M0: return 4;
    case Kind::BFloat: return 5;
    case Kind::Float:
    case Kind::TFloat: return 6;
    case Kind::Pointer: return 7;
  }
  return 7;
}

const char* symbol_of(Operator op) {
  static constexpr const char* kNames[] = {"+",   "-",   "*",  "/", "//", "%",  "truncdiv", "truncmod",
                                           "min", "max", "&",  "|", "^",  "<<", ">>",       "and",
                                           "or",  "==",  "!=", "<", "<=", ">",  ">="};
  return kNames[static_cast<size_t>(op)];
}

[[noreturn]] void fail_types(Code code, const SourceLocation& at, const char* what, const char* wants, DType got,
                             std::string help = {}) {
  fail(code, at, fmt::format("{} {}, but an operand is {}", what, wants, got.name()), std::move(help));
}

std::pair<Expr, Expr> promoted(const char* what, const Expr& a, const Expr& b, const SourceLocation& at) {
  std::optional<DType> type = promote(a->type, b->type);
  if (!type)
    fail(Code::NoCommonType, at,
         fmt::format("{} of {} and {}: the two have no common type", what, a->type.name(), b->type.name()),
         "cast one of them, for example with cast(x, f32)");
  return {cast(a, *type), cast(b, *type)};
}

BinaryOp lowered(Operator op) {
  switch (op) {
    case Operator::Add: return BinaryOp::Add;
    case Operator::Sub: return BinaryOp::Sub;
    case Operator::Mul: return BinaryOp::Mul;
    case Operator::Div: return BinaryOp::Div;
    case Operator::FloorDiv: return BinaryOp::FloorDiv;
    case Operator::FloorMod: return BinaryOp::FloorMod;
    case Operator::TruncDiv: return BinaryOp::TruncDiv;
    case Operator::TruncMod: return BinaryOp::TruncMod;
    case Operator::Min: return BinaryOp::Min;
    case Operator::Max: return BinaryOp::Max;
    case Operator::BitAnd: return BinaryOp::BitAnd;
    case Operator::BitOr: return BinaryOp::BitOr;
    case Operator::BitXor: return BinaryOp::BitXor;
    case Operator::Shl: return BinaryOp::Shl;
    case Operator::Shr: return BinaryOp::Shr;
    case Operator::And: return BinaryOp::And;
    case Operator::Or: return BinaryOp::Or;
    case Operator::Eq: return BinaryOp::Eq;
    case Operator::Ne: return BinaryOp::Ne;
    case Operator::Lt:
    case Operator::Gt: return BinaryOp::Lt;
    case Operator::Le:
    case Operator::Ge: return BinaryOp::Le;
  }
  return BinaryOp::Add;
}

const char* text_of(Operands operands) {
  switch (operands) {
    case Operands::Float: return "floats";
    case Operands::Int: return "integers";
    case Operands::WideFloat: return "float32 or float64";
    case Operands::WideInt: return "integers of 8 bits or more";
    case Operands::Int32: return "int32 or uint32";
    case Operands::Number: return "numbers";
  }
  return "";
}

bool is_division(Operator op) { return op >= Operator::FloorDiv && op <= Operator::TruncMod; }
bool is_bitwise(Operator op) { return op >= Operator::BitAnd && op <= Operator::Shr; }

}  // namespace

std::optional<DType> promote(DType a, DType b) {
  if (a == b) return a;
  if (a.is_pointer() || b.is_pointer()) return std::nullopt;
  const int ra = rank_of(a), rb = rank_of(b);
  if (ra != rb) return ra > rb ? a : b;
  if (ra == 3 || ra == 4) return std::nullopt;  // two different formats of 6 or of 8 bits
  if (a.bits != b.bits) return a.bits > b.bits ? a : b;
  if (a.is_int()) return DType{Kind::UInt, a.bits};
  return DType{Kind::Float, a.bits};  // float32 and tfloat32
}

namespace {
// What is not yet measured.
Expr applied(Operator op, const Expr& a, const Expr& b, const SourceLocation& at) {
  if (op == Operator::And || op == Operator::Or) return binary(lowered(op), as_condition(a, at), as_condition(b, at));
  auto [x, y] = promoted(symbol_of(op), a, b, at);
  const DType type = x->type;
  if (op == Operator::Div && type.is_integral())
    fail(Code::IntegerDivision, at, fmt::format("/ of {} and {}: / divides floats", a->type.name(), b->type.name()),
         "use floordiv(a, b), or ceildiv(a, b) for a number of blocks; or cast an operand to a float");
  if (is_division(op) && !type.is_int())
    fail_types(Code::NeedsIntegers, at, symbol_of(op), "takes integers", type,
               "cast to an integer first, or divide floats by /");
  if (is_bitwise(op)) {
    const bool shift = op == Operator::Shl || op == Operator::Shr;
    if (!type.is_int() && (shift || !type.is_bool()))
      fail_types(Code::NeedsIntegers, at, symbol_of(op), "takes integers", type,
                 "reinterpret the bits of a float as an integer first");
    if (auto amount = constant_int(y); shift && amount && (*amount < 0 || *amount >= type.bits))
      fail(Code::ShiftAmount, at, fmt::format("{} of {} by {}", symbol_of(op), type.name(), *amount),
           fmt::format("shift by 0 to {} bits", type.bits - 1));
  }
  if (is_division(op) && constant_int(y) == 0)
    fail(Code::DivisionByZero, at, fmt::format("{} by the constant 0", symbol_of(op)),
         "integers have no quotient by 0: look at how the divisor is computed");
  const bool sums_bools = type.is_bool() && (op == Operator::Add || op == Operator::Sub || op == Operator::Mul);
  if (const char* wants = wants_instead(lowered(op), type); wants && !sums_bools)
    fail_types(Code::NeedsNumbers, at, symbol_of(op), fmt::format("takes {}", wants).c_str(), type,
               type.is_pointer() ? "reinterpret an address as uint64 to compute with it" : "cast it to float32 first");
  if (op == Operator::Gt || op == Operator::Ge) return binary(lowered(op), y, x);
  if (sums_bools) return binary(lowered(op), cast(x, i32), cast(y, i32));
  return binary(lowered(op), x, y);
}
}  // namespace

Expr of_fit_size(Expr e, const SourceLocation& at) {
  if (e->depth <= kMaxDepth && e->size <= kMaxSize) return e;
  const bool deep = e->depth > kMaxDepth;
  fail(Code::ExpressionTooLarge, at,
       deep ? fmt::format("the expression is more than {} operations deep", kMaxDepth)
            : fmt::format("the expression has more than {} operations, where each use of a part counts", kMaxSize),
       "store a part of it in a variable (alloc_var), and go on with that");
}

Expr apply(Operator op, const Expr& a, const Expr& b, const SourceLocation& at) {
  return of_fit_size(applied(op, a, b, at), at);
}

Expr as_condition(const Expr& value, const SourceLocation& at) {
  if (value->type.is_bool()) return value;
  if (value->type.is_int()) return binary(BinaryOp::Ne, value, constant(value->type, int64_t{0}));
  fail(Code::NeedsCondition, at, fmt::format("a condition is a bool or an integer, but this is {}", value->type.name()),
       "compare it, for example x != 0");
}

Expr apply_ceildiv(const Expr& a, const Expr& b, const SourceLocation& at) {
  const Expr raised = apply(Operator::Add, a, apply(Operator::Sub, b, constant(1), at), at);
  return apply(Operator::FloorDiv, raised, b, at);
}

Expr apply_not(const Expr& a, const SourceLocation& at) { return of_fit_size(logical_not(as_condition(a, at)), at); }

Expr apply_bit_not(const Expr& a, const SourceLocation& at) {
  if (a->type.is_bool()) return logical_not(a);
  if (!a->type.is_int())
    fail_types(Code::NeedsIntegers, at, "~", "takes integers", a->type,
               "reinterpret the bits of a float as an integer first");
  return of_fit_size(unary(UnaryOp::BitNot, a), at);
}

Expr apply_neg(const Expr& a, const SourceLocation& at) {
  if (a->type.is_bool()) return neg(cast(a, i32));
  if (a->type.is_pointer() || a->type == e8m0)
    fail_types(Code::NeedsNumbers, at, "unary -", "takes numbers that have a sign", a->type,
               "cast it to a type that has negative values");
  return of_fit_size(neg(a), at);
}

Expr apply_select(const Expr& condition, const Expr& a, const Expr& b, const SourceLocation& at) {
  auto [x, y] = promoted("if_then_else", a, b, at);
  return of_fit_size(select(as_condition(condition, at), x, y), at);
}

Expr apply_function(Function function, std::vector<Expr> args, const SourceLocation& at) {
  const FunctionInfo& row = info(function);
  if (static_cast<int>(args.size()) != row.arity)
    fail(Code::FunctionArity, at, fmt::format("{} of {} arguments", row.name, args.size()),
         fmt::format("{} takes {}", row.name, row.arity));
  DType type = args[0]->type;
  for (const Expr& e : args) {
    std::optional<DType> common = promote(type, e->type);
    if (!common)
      fail(Code::NoCommonType, at,
           fmt::format("{} of {} and {}: the two have no common type", row.name, type.name(), e->type.name()),
           "cast one of them, for example with cast(x, f32)");
    type = *common;
  }
  if (!accepts(function, type))
    fail(Code::FunctionType, at,
         fmt::format("{} takes {}, but an operand is {}", row.name, text_of(row.operands), type.name()),
         "cast the operand first");
  for (Expr& e : args) e = cast(e, type);
  return of_fit_size(intrinsic(function, std::move(args)), at);
}

Expr apply_cast(const Expr& value, DType type, const SourceLocation& at) {
  if (value->type.is_pointer() != type.is_pointer())
    fail(Code::BadCast, at, fmt::format("{} cannot be cast to {}", value->type.name(), type.name()),
         "use reinterpret between addresses and 64-bit integers");
  return of_fit_size(cast(value, type), at);
}

Expr apply_bitcast(const Expr& value, DType type, const SourceLocation& at) {
  if (!can_bitcast(value->type, type))
    fail(Code::BadBitcast, at,
         fmt::format("reinterpret of {} as {}: they have {} and {} bits", value->type.name(), type.name(),
                     value->type.bits, type.bits),
         value->type.is_bool() || type.is_bool() ? "a bool is no bit pattern: compare or cast instead"
                                                 : "reinterpret between types of one width, or cast");
  return of_fit_size(bitcast(value, type), at);
}

Expr infinity(DType type, const SourceLocation& at) {
  if (!(type == f16 || type == bf16 || type == f32 || type == f64 || type == tf32 || type == e5m2 || type == e3m4))
    fail(Code::FunctionType, at, fmt::format("infinity({}): this type has no infinity", type.name()),
         "use max_value(dtype)");
  return constant(type, std::numeric_limits<double>::infinity());
}
Expr max_value(DType type) {
  if (type.is_float()) return constant(type, dtype_row(type)->largest);
  if (type.is_bool()) return constant(type, int64_t{1});
  return constant(type, static_cast<int64_t>(~uint64_t{0} >> (64 - type.bits + (type.is_signed() ? 1 : 0))));
}
Expr min_value(DType type) {
  if (type == e8m0) return constant(type, 0x1p-127);
  if (type.is_float()) return constant(type, -dtype_row(type)->largest);
  return constant(type, type.is_signed() ? INT64_MIN >> (64 - type.bits) : int64_t{0});
}

}  // namespace tilewright::ir
