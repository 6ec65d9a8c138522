// Expressions: pure, typed, without locations, so that equal expressions are equal. Built by the functions of
// ir/operators.h only: they fold constants and keep the normal forms stated here.
#pragma once
#include <array>
#include <optional>
#include <string_view>

#include "ir/node.h"
#include "scalar/convert.h"

namespace tilewright {
enum class Function : uint8_t;  // scalar/functions.h
}

namespace tilewright::ir {

enum class UnaryOp : uint8_t { Neg /* floats */, Not /* bool */, BitNot /* ints */ };

// Both operands have the same type; the result has it too, but for comparisons, which give bool.
enum class BinaryOp : uint8_t {
  Add,
  Sub,  // floats only: integers use Sum
  Mul,  // floats; integers when neither side is constant (else Sum)
  Div,  // floats
  FloorDiv,
  FloorMod,  // integers, rounding toward minus infinity
  TruncDiv,
  TruncMod,  // integers, as C
  Min,
  Max,  // the operand that is not NaN
  MinNan,
  MaxNan,  // NaN if either is NaN
  BitAnd,
  BitOr,
  BitXor,
  Shl,
  Shr,  // integers; And, Or, Xor also bool
  And,
  Or,  // bool; the right side is only evaluated when needed
  Eq,
  Ne,
  Lt,
  Le,
};

// A constant. Integers: the value sign- or zero-extended to 64 bits. Floats: the bits of the double that equals it.
struct Const {
  uint64_t bits = 0;
  static void fields(auto& n, auto&& f) { f("bits", n.bits); }
};
struct Var {
  VarId id;
  static void fields(auto& n, auto&& f) { f("id", n.id); }
};
// constant + sum of coefficient * value, over integers of one type, modulo 2^bits. Terms are distinct, have non-zero
// coefficients, are no Sum themselves, and stand in order of first appearance (equality ignores the order). A Sum is
// never a single term with coefficient 1 and constant 0.
struct Term {
  int64_t coefficient = 1;
  Expr value;
};
struct Sum {
  std::vector<Term> terms;
  int64_t constant = 0;
  static void fields(auto& n, auto&& f) { f("terms", n.terms), f("constant", n.constant); }
};
struct Unary {
  UnaryOp op;
  Expr a;
  static void fields(auto& n, auto&& f) { f("op", n.op), f("a", n.a); }
};
struct Binary {
  BinaryOp op;
  Expr a, b;
  static void fields(auto& n, auto&& f) { f("op", n.op), f("a", n.a), f("b", n.b); }
};
// a * b + c with one rounding, floats.
struct Fma {
  Expr a, b, c;
  static void fields(auto& n, auto&& f) { f("a", n.a), f("b", n.b), f("c", n.c); }
};
// Only the chosen side is evaluated.
struct Select {
  Expr condition, a, b;
  static void fields(auto& n, auto&& f) { f("condition", n.condition), f("a", n.a), f("b", n.b); }
};
struct Cast {
  Expr value;
  Rounding rounding = Rounding::Nearest;
  Expr random;  // uint32, with Rounding::Stochastic only
  static void fields(auto& n, auto&& f) { f("value", n.value), f("rounding", n.rounding), f("random", n.random); }
};
// The same bits read as another type of the same width.
struct Bitcast {
  Expr value;
  static void fields(auto& n, auto&& f) { f("value", n.value); }
};
// A global element out of bounds reads the buffer's fill value; on chip it is an error.
struct Load {
  BufferId buffer;
  std::vector<Expr> indices;
  static void fields(auto& n, auto&& f) { f("buffer", n.buffer), f("indices", n.indices); }
};
// The address of a global element.
struct Address {
  BufferId buffer;
  std::vector<Expr> indices;
  static void fields(auto& n, auto&& f) { f("buffer", n.buffer), f("indices", n.indices); }
};
struct Intrinsic {
  Function function;
  std::vector<Expr> args;
  static void fields(auto& n, auto&& f) { f("function", n.function), f("args", n.args); }
};

using ExprOp = std::variant<Const, Var, Sum, Unary, Binary, Fma, Select, Cast, Bitcast, Load, Address, Intrinsic>;

struct ExprNode {
  ExprOp op;
  DType type;
  uint64_t hash = 0;
  uint32_t depth = 1;  // nodes on the longest way down
  uint32_t size = 1;   // nodes of the tree, one that is shared once for each use; stays at the largest number
};
// Walks recurse, and visit what is shared once for each use: what is deeper or larger is refused where it is made.
inline constexpr uint32_t kMaxDepth = 1000, kMaxSize = 1 << 16;

// Structural equality: pointer, hash, fields.
bool equal(const Expr& a, const Expr& b);
bool equal(const std::vector<Expr>& a, const std::vector<Expr>& b);
inline uint64_t hash(const Expr& e) { return e ? e->hash : 0; }
// Makes a node and its hash. For ir/operators.cpp and ir/rewrite.cpp only.
Expr make_expr(ExprOp op, DType type);

bool is_comparison(BinaryOp op);
const char* name_of(BinaryOp op);
const char* name_of(UnaryOp op);

// The value of an integer or bool constant.
std::optional<int64_t> constant_int(const Expr& e);
// The value of a float constant.
std::optional<double> constant_float(const Expr& e);
bool is_constant(const Expr& e);

struct ExprHash {
  size_t operator()(const Expr& e) const { return hash(e); }
};
struct ExprEqual {
  bool operator()(const Expr& a, const Expr& b) const { return equal(a, b); }
};

}  // namespace tilewright::ir
