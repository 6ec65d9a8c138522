// Expressions of .tile text. Types are checked before the constructors of ir/operators.h see an operand.
#include <charconv>

#include "ir/operators.h"
#include "ir/parse_text.h"

namespace tilewright::ir {
namespace {

struct Infix {
  std::string_view symbol;
  BinaryOp op;
  bool swapped = false;  // a > b is b < a
};
constexpr Infix kInfix[] = {
    {"or", BinaryOp::Or},   {"and", BinaryOp::And},     {"==", BinaryOp::Eq},      {"!=", BinaryOp::Ne},
    {"<", BinaryOp::Lt},    {"<=", BinaryOp::Le},       {">", BinaryOp::Lt, true}, {">=", BinaryOp::Le, true},
    {"|", BinaryOp::BitOr}, {"^", BinaryOp::BitXor},    {"&", BinaryOp::BitAnd},   {"<<", BinaryOp::Shl},
    {">>", BinaryOp::Shr},  {"+", BinaryOp::Add},       {"-", BinaryOp::Sub},      {"*", BinaryOp::Mul},
    {"/", BinaryOp::Div},   {"//", BinaryOp::FloorDiv}, {"%", BinaryOp::FloorMod},
};
constexpr Infix kFunctions[] = {
    {"truncdiv", BinaryOp::TruncDiv}, {"truncmod", BinaryOp::TruncMod}, {"min", BinaryOp::Min},
    {"max", BinaryOp::Max},           {"min_nan", BinaryOp::MinNan},    {"max_nan", BinaryOp::MaxNan},
};

const Infix* infix_of(const Token& token) {
  for (const Infix& row : kInfix)
    if (token.is(row.symbol)) return &row;
  return nullptr;
}

bool fits(DType type, bool negative, uint64_t magnitude) {
  if (magnitude == 0) return true;
  if (!type.is_signed()) return !negative && (type.bits >= 64 || magnitude >> type.bits == 0);
  const uint64_t limit = uint64_t{1} << (type.bits - 1);
  return negative ? magnitude <= limit : magnitude < limit;
}

}  // namespace

// ---- literals and types -------------------------------------------------------------------------------------------

Expr Parser::as_type(const Operand& operand, DType type) const {
  if (!operand.is_literal()) return operand.e;
  const std::string text = (operand.negative ? "-" : "") + std::string(operand.at->text);
  if (operand.literal == Operand::Literal::Float) {
    const double value = operand.negative ? -operand.real : operand.real;
    if (!type.is_float())
      fail(Code::TextNumberRange, place(*operand.at), fmt::format("{} is no value of {}", text, type.name()));
    Expr e = constant(type, value);
    if (std::isfinite(value) && !std::isfinite(*constant_float(e)))
      fail(Code::TextNumberRange, place(*operand.at), fmt::format("{} is too large for {}", text, type.name()));
    return e;
  }
  if (type.is_float()) {
    const auto value = static_cast<double>(operand.magnitude);
    return constant(type, operand.negative ? -value : value);
  }
  if (type.is_bool() || !fits(type, operand.negative, operand.magnitude))
    fail(Code::TextNumberRange, place(*operand.at), fmt::format("{} is no value of {}", text, type.name()),
         type.is_bool() ? "write true or false" : "write the type around it, for example int64(5000000000)");
  const uint64_t bits = operand.negative ? 0 - operand.magnitude : operand.magnitude;
  return constant(type, static_cast<int64_t>(bits));
}

Expr Parser::finished(const Operand& operand) const {
  return as_type(operand, operand.literal == Operand::Literal::Float ? f32 : i32);
}

Parser::Operand Parser::made(Expr e, int depth, const Token& at) const {
  if (depth > static_cast<int>(kMaxDepth))
    fail(Code::TextExpressionDepth, place(at),
         fmt::format("the expression has more than {} operators in a row", kMaxDepth), "bind parts of it to names");
  Operand operand;
  operand.e = std::move(e);
  operand.depth = depth;
  operand.at = &at;
  return operand;
}

void Parser::unify(std::span<Operand> operands, std::string_view what, const Token& at) {
  std::optional<DType> type;
  bool any_float = false;
  for (const Operand& operand : operands) {
    any_float = any_float || operand.literal == Operand::Literal::Float;
    if (operand.is_literal()) continue;
    if (type && *type != operand.e->type)
      fail(
          Code::TextOperandTypes, place(at),
          fmt::format("the operands of {} have different types: {} and {}", what, type->name(), operand.e->type.name()),
          fmt::format("cast one of them: {}(...)", type->name()));
    type = operand.e->type;
  }
  for (Operand& operand : operands) {
    if (!operand.is_literal()) continue;
    operand.e = as_type(operand, type.value_or(any_float ? f32 : i32));
    operand.literal = Operand::Literal::None;
  }
}

// ---- operators ----------------------------------------------------------------------------------------------------

Expr Parser::expression(std::optional<DType> known) {
  const Operand operand = infix(kAnyPrecedence);
  return known ? as_type(operand, *known) : finished(operand);
}

Expr Parser::condition() {
  const Token& at = peek();
  Expr e = expression();
  if (!e->type.is_bool())
    fail(Code::TextCondition, place(at), fmt::format("a condition is a bool, but this is {}", e->type.name()),
         "compare it, for example x != 0");
  return e;
}

Expr Parser::integer_expression(const char* what) {
  const Token& at = peek();
  Expr e = expression();
  if (!e->type.is_int())
    fail(Code::TextIndexType, place(at), fmt::format("{} is an integer, but this is {}", what, e->type.name()));
  return e;
}

std::vector<Expr> Parser::expressions_until(std::string_view close) {
  std::vector<Expr> list;
  if (take_if(close)) return list;
  do list.push_back(expression());
  while (take_if(","));
  expect(close, "after the list");
  return list;
}

Parser::Operand Parser::infix(int at_least) {
  const Nesting nesting(*this);
  Operand left;
  if (peek().is("not") && at_least <= kNotPrecedence) {
    const Token& at = take();
    const Operand operand = infix(kNotPrecedence);
    const Expr e = finished(operand);
    if (!e->type.is_bool())
      fail(Code::TextOperandType, place(at), fmt::format("not takes a bool, but its operand is {}", e->type.name()));
    left = made(unary(UnaryOp::Not, e), operand.depth + 1, at);
  } else {
    left = prefix();
  }
  while (const Infix* row = infix_of(peek())) {
    const int level = precedence_of(row->op);
    if (level < at_least) break;
    const Token& at = take();
    left = combine(row->op, std::move(left), infix(level + 1), row->swapped, at);
    const Infix* next = infix_of(peek());
    if (level == kComparePrecedence && next && precedence_of(next->op) == level)
      fail(Code::TextComparisonChain, place(peek()), "comparisons do not chain", "write a < b and b < c");
  }
  return left;
}

Parser::Operand Parser::combine(BinaryOp op, Operand a, Operand b, bool swapped, const Token& at) {
  const std::string spelling(at.text);
  Operand both[] = {std::move(a), std::move(b)};
  unify(both, spelling, at);
  const DType type = both[0].e->type;
  if (const char* takes = wants_instead(op, type))
    fail(Code::TextOperandType, place(at),
         fmt::format("{} takes {}, but its operands are {}", name_of(op), takes, type.name()));
  if (swapped) std::swap(both[0], both[1]);
  return made(binary(op, both[0].e, both[1].e), std::max(both[0].depth, both[1].depth) + 1, at);
}

Parser::Operand Parser::negated(Operand operand, const Token& at) {
  if (operand.is_literal()) {
    operand.negative = !operand.negative;
    return operand;
  }
  const DType type = operand.e->type;
  if ((!type.is_int() && !type.is_float()) || type == e8m0)
    fail(Code::TextOperandType, place(at), fmt::format("- takes signed numbers, but its operand is {}", type.name()));
  return made(neg(operand.e), operand.depth + 1, at);
}

Parser::Operand Parser::prefix() {
  if (!peek().is("-") && !peek().is("~")) return primary();
  const Nesting nesting(*this);
  const Token& at = take();
  Operand operand = prefix();
  if (at.is("-")) return negated(std::move(operand), at);
  const Expr e = finished(operand);
  if (!e->type.is_int())
    fail(Code::TextOperandType, place(at), fmt::format("~ takes integers, but its operand is {}", e->type.name()));
  return made(unary(UnaryOp::BitNot, e), operand.depth + 1, at);
}

Parser::Operand Parser::primary() {
  const Token& token = peek();
  if (token.kind == TokenKind::Int || token.kind == TokenKind::Float || token.is("inf") || token.is("nan"))
    return number();
  if (token.is("true") || token.is("false")) return made(constant(boolean, int64_t{take().is("true")}), 1, token);
  if (take_if("(")) {
    Operand inner = infix(kAnyPrecedence);
    expect(")", "to close the bracket");
    return inner;
  }
  if (token.is("not")) fail(Code::TextExpected, place(token), "not must stand in brackets here", "write a == (not b)");
  if (!token.is_name()) fail_expected("an expression", token);
  return token.kind == TokenKind::Name && peek(1).is("(") ? call() : named();
}

Parser::Operand Parser::number() {
  const Token& token = take();
  Operand operand = made({}, 1, token);
  operand.literal = Operand::Literal::Float;
  if (token.is("inf")) {
    operand.real = std::numeric_limits<double>::infinity();
  } else if (token.is("nan")) {
    operand.real = std::numeric_limits<double>::quiet_NaN();
  } else if (token.kind == TokenKind::Float) {
    const auto end = token.text.data() + token.text.size();
    const auto result = std::from_chars(token.text.data(), end, operand.real);
    if (result.ec == std::errc::result_out_of_range)
      fail(Code::TextNumberRange, place(token), fmt::format("{} is out of the range of float64", token.text));
    if (result.ptr != end) fail(Code::TextNumber, place(token), fmt::format("'{}' is no number", token.text));
  } else {
    operand.literal = Operand::Literal::Int;
    const bool hex = token.text.size() > 2 && (token.text[1] == 'x' || token.text[1] == 'X');
    const std::string_view digits = hex ? token.text.substr(2) : token.text;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), operand.magnitude, hex ? 16 : 10);
    if (result.ec != std::errc())
      fail(Code::TextNumberRange, place(token), fmt::format("{} does not fit 64 bits", token.text));
  }
  return operand;
}

// ---- names and calls ----------------------------------------------------------------------------------------------

std::vector<Expr> Parser::indices(BufferId buffer, const Token& at) {
  std::vector<Expr> list;
  if (take_if("[")) {
    const Nesting nesting(*this);
    do list.push_back(integer_expression("an index"));
    while (take_if(","));
    expect("]", "after the indices");
  }
  const Buffer& row = program_.buffer(buffer);
  if (list.empty() && row.rank() > 0)
    fail(Code::TextNotIndexed, place(at), fmt::format("the buffer '{}' stands here without indices", row.name),
         "write its element, for example A[i, j]");
  if (list.size() != row.rank())
    fail(Code::TextIndexCount, place(at),
         fmt::format("'{}' has {} dimensions, but {} indices are given", row.name, row.rank(), list.size()));
  return list;
}

Parser::Operand Parser::named() {
  const Token& token = take();
  const std::string name = spelled(token);
  const Named* found = find(name);
  if (!found) fail(Code::TextUnknownName, place(token), fmt::format("nothing in scope is called '{}'", name));
  if (!found->is_buffer) return made(var(found->var, program_.var(found->var).type), 1, token);
  const BufferId buffer = found->buffer;
  std::vector<Expr> list = indices(buffer, token);
  return made(load(buffer, std::move(list), program_.buffer(buffer).type), 1, token);
}

std::vector<Parser::Operand> Parser::arguments(const std::string& function, size_t count, const Token& at) {
  std::vector<Operand> list;
  if (!take_if(")")) {
    do list.push_back(infix(kAnyPrecedence));
    while (take_if(","));
    expect(")", "after the arguments");
  }
  if (list.size() != count)
    fail(Code::TextArgumentCount, place(at),
         fmt::format("{} takes {} argument{}, but got {}", function, count, count == 1 ? "" : "s", list.size()));
  return list;
}

Parser::Operand Parser::call() {
  const Nesting nesting(*this);
  const Token& token = take();
  const std::string function(token.text);
  take();  // the bracket
  if (auto type = parse_dtype(function)) return cast_call(*type, token);
  for (const Infix& row : kFunctions) {
    if (row.symbol != function) continue;
    std::vector<Operand> args = arguments(function, 2, token);
    return combine(row.op, std::move(args[0]), std::move(args[1]), false, token);
  }
  if (function == "select" || function == "fma" || function == "bitcast" || function == "address")
    return builtin_call(function, token);
  if (auto known = function_named(function)) return function_call(*known, function, token);
  fail(Code::TextUnknownFunction, place(token), fmt::format("no function is called '{}'", function));
}

Parser::Operand Parser::cast_call(DType type, const Token& at) {
  const Operand operand = infix(kAnyPrecedence);
  Rounding rounding = Rounding::Nearest;
  Operand random;
  if (take_if(",")) {
    rounding = word<Rounding>("rounding");
    if (rounding == Rounding::Stochastic) {
      expect(",", "before the random bits of a stochastic cast");
      random = infix(kAnyPrecedence);
      random.e = as_type(random, u32);
      if (random.e->type != u32)
        fail(Code::TextOperandType, place(at),
             fmt::format("the random bits of a cast are uint32, but these are {}", random.e->type.name()));
    }
  }
  expect(")", "after the operand of the cast");
  if (operand.is_literal() && rounding == Rounding::Nearest) return made(as_type(operand, type), 1, at);
  const Expr value = finished(operand);
  const DType from = value->type;
  if (from.is_pointer() != type.is_pointer())
    fail(Code::TextCast, place(at), fmt::format("{} cannot be cast to {}", from.name(), type.name()),
         "use bitcast(type, x) for addresses");
  if (!can_round(type, rounding))
    fail(Code::TextCast, place(at), fmt::format("no cast to {} rounds {}", type.name(), name_of(rounding)),
         "leave the rounding out: it is to nearest");
  return made(cast(value, type, rounding, random.e), std::max(operand.depth, random.depth) + 1, at);
}

Parser::Operand Parser::builtin_call(const std::string& function, const Token& at) {
  if (function == "address") {
    const BufferId buffer = buffer_named("the buffer of the element");
    std::vector<Expr> list = indices(buffer, at);
    expect(")", "after the element");
    return made(address(buffer, std::move(list)), 1, at);
  }
  if (function == "bitcast") {
    const DType to = type();
    expect(",", "after the type of a bitcast");
    const std::vector<Operand> args = arguments("bitcast", 1, at);
    const Expr value = finished(args[0]);
    if (!can_bitcast(value->type, to))
      fail(Code::TextBitcast, place(at),
           fmt::format("bitcast of {} to {}: they have {} and {} bits", value->type.name(), to.name(), value->type.bits,
                       to.bits));
    return made(bitcast(value, to), args[0].depth + 1, at);
  }
  std::vector<Operand> args = arguments(function, 3, at);
  const int depth = std::max({args[0].depth, args[1].depth, args[2].depth}) + 1;
  if (function == "fma") {
    unify(args, function, at);
    if (wants_instead(BinaryOp::Div, args[0].e->type))
      fail(Code::TextOperandType, place(at),
           fmt::format("fma takes floats, but its operands are {}", args[0].e->type.name()));
    return made(fma(args[0].e, args[1].e, args[2].e), depth, at);
  }
  const Expr condition = finished(args[0]);
  if (!condition->type.is_bool())
    fail(Code::TextCondition, place(at), fmt::format("a condition is a bool, but this is {}", condition->type.name()),
         "compare it, for example x != 0");
  unify(std::span(args).subspan(1), function, at);
  return made(select(condition, args[1].e, args[2].e), depth, at);
}

Parser::Operand Parser::function_call(Function function, const std::string& spelling, const Token& at) {
  std::vector<Operand> args = arguments(spelling, info(function).arity, at);
  unify(args, spelling, at);
  const DType type = args[0].e->type;
  if (!accepts(function, type))
    fail(Code::TextOperandType, place(at), fmt::format("{} does not take {}", spelling, type.name()),
         "cast the operand first");
  std::vector<Expr> list;
  int depth = 0;
  for (Operand& arg : args) {
    depth = std::max(depth, arg.depth);
    list.push_back(std::move(arg.e));
  }
  return made(intrinsic(function, std::move(list)), depth + 1, at);
}

}  // namespace tilewright::ir
