// Smart constructors of expressions. Two families:
//   same-type constructors (add, mul, compare, ...): operands already have one type; they fold constants and keep
//   normal forms.
//     Passes use these.
//   apply(): what frontends use: promotes mixed operands by the rules of the language, and reports the user's mistakes.
#pragma once
#include <string>

#include "ir/expr.h"
#include "tilewright/diagnostic.h"

namespace tilewright::ir {

// ---- constants and leaves
Expr constant(DType type, int64_t value);  // integers, bool; wraps to the type; a float type gets the nearest value
Expr constant(DType type, double value);   // floats: rounded to the type; an integer type truncates
inline Expr constant(int64_t value) { return constant(i32, value); }
Expr var(VarId id, DType type);
Expr load(BufferId buffer, std::vector<Expr> indices, DType type);
Expr address(BufferId buffer, std::vector<Expr> indices);

// ---- same type in
Expr add(const Expr& a, const Expr& b);
Expr sub(const Expr& a, const Expr& b);
Expr mul(const Expr& a, const Expr& b);
Expr neg(const Expr& a);
Expr binary(BinaryOp op, const Expr& a, const Expr& b);  // any operator; Add, Sub, Mul of integers become Sums
Expr unary(UnaryOp op, const Expr& a);
Expr fma(const Expr& a, const Expr& b, const Expr& c);
Expr select(const Expr& condition, const Expr& a, const Expr& b);
Expr cast(const Expr& value, DType type, Rounding rounding = Rounding::Nearest, const Expr& random = {});
Expr bitcast(const Expr& value, DType type);
Expr intrinsic(Function function, std::vector<Expr> args);
Expr logical_and(const Expr& a, const Expr& b);
Expr logical_not(const Expr& a);
Expr ceildiv(const Expr& a, const Expr& b);
// What a binary operator takes ("integers"), if operands of this type are something else; null if they are not. As a
// node, Add and Sub take floats only: of integers they are Sums.
const char* wants_instead(BinaryOp op, DType operands);
// Whether the bits of one type can be read as the other: of one width, and no bool, which is no bit pattern.
bool can_bitcast(DType from, DType to);
// The scalar function that means this operator, where there is one.
std::optional<Function> function_of(BinaryOp op);
// Rebuilds a Sum from its parts.
Expr sum(std::vector<Term> terms, int64_t constant, DType type);

// ---- mixed types in: what users write
// The type both operands are converted to. Empty if the pair has none (two different float8 formats).
std::optional<DType> promote(DType a, DType b);
enum class Operator : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  FloorMod,
  TruncDiv,
  TruncMod,
  Min,
  Max,
  BitAnd,
  BitOr,
  BitXor,
  Shl,
  Shr,
  And,
  Or,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
};
Expr apply(Operator op, const Expr& a, const Expr& b, const SourceLocation& at = {});
Expr apply_ceildiv(const Expr& a, const Expr& b, const SourceLocation& at = {});
Expr apply_not(const Expr& a, const SourceLocation& at = {});
Expr apply_bit_not(const Expr& a, const SourceLocation& at = {});
Expr apply_neg(const Expr& a, const SourceLocation& at = {});
Expr apply_select(const Expr& condition, const Expr& a, const Expr& b, const SourceLocation& at = {});
Expr apply_function(Function function, std::vector<Expr> args, const SourceLocation& at = {});
Expr apply_cast(const Expr& value, DType type, const SourceLocation& at = {});
Expr apply_bitcast(const Expr& value, DType type, const SourceLocation& at = {});
// Constants of a type.
Expr infinity(DType type, const SourceLocation& at = {});
Expr max_value(DType type);
Expr min_value(DType type);
// The expression, unless it is too deep or too large for walks over it.
Expr of_fit_size(Expr e, const SourceLocation& at);
// A condition: bool as it is; integers compare with zero.
Expr as_condition(const Expr& value, const SourceLocation& at = {});

}  // namespace tilewright::ir
