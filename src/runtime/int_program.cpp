#include "runtime/int_program.h"

#include "runtime/scalar_value.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

using Kind = IntOp::Kind;

bool is_leaf(Kind kind) { return kind <= Kind::Scalar; }

// Floor division; b is not 0 and the quotient fits.
int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

bool divides(int64_t a, int64_t b) { return b != 0 && !(b == -1 && a == std::numeric_limits<int64_t>::min()); }

bool apply(Kind kind, int64_t a, int64_t b, int64_t& result) {
  switch (kind) {
    case Kind::Add: return !__builtin_add_overflow(a, b, &result);
    case Kind::Sub: return !__builtin_sub_overflow(a, b, &result);
    case Kind::Mul: return !__builtin_mul_overflow(a, b, &result);
    case Kind::FloorDiv:
      if (!divides(a, b)) return false;
      result = floor_div(a, b);
      return true;
    case Kind::FloorMod:
      if (!divides(a, b)) return false;
      result = a - floor_div(a, b) * b;
      return true;
    case Kind::Min: result = std::min(a, b); return true;
    case Kind::Max: result = std::max(a, b); return true;
    case Kind::Less: result = a < b; return true;
    case Kind::LessEqual: result = a <= b; return true;
    case Kind::Equal: result = a == b; return true;
    case Kind::NotEqual: result = a != b; return true;
    case Kind::And: result = a != 0 && b != 0; return true;
    case Kind::Or: result = a != 0 || b != 0; return true;
    default: return false;
  }
}

DType type_of(const IntOp& fits) {
  return {fits.value < 0 ? tilewright::Kind::Int : tilewright::Kind::UInt,
          static_cast<uint8_t>(fits.value < 0 ? -fits.value : fits.value)};
}

struct Spelling {
  const char* text;
  int binding;  // the higher, the tighter; 0: written as a function
};

Spelling spelling(Kind kind) {
  switch (kind) {
    case Kind::Add: return {"+", 5};
    case Kind::Sub: return {"-", 5};
    case Kind::Mul: return {"*", 6};
    case Kind::FloorDiv: return {"//", 6};
    case Kind::FloorMod: return {"%", 6};
    case Kind::Min: return {"min", 0};
    case Kind::Max: return {"max", 0};
    case Kind::Less: return {"<", 4};
    case Kind::LessEqual: return {"<=", 4};
    case Kind::Equal: return {"==", 4};
    case Kind::NotEqual: return {"!=", 4};
    case Kind::And: return {"and", 2};
    case Kind::Or: return {"or", 1};
    default: fail_internal("no binary operator", __FILE__, __LINE__);
  }
}

struct Text {
  std::string text;
  int binding;
};
constexpr int kTightest = 9;

std::string within(const Text& operand, int binding) {
  return operand.binding < binding ? fmt::format("({})", operand.text) : operand.text;
}

Text join(Kind kind, const Text& a, const Text& b) {
  const auto [word, binding] = spelling(kind);
  if (binding == 0) return {fmt::format("{}({}, {})", word, a.text, b.text), kTightest};
  // Left-associative; comparisons do not chain.
  const int left = binding == 4 ? binding + 1 : binding;
  return {fmt::format("{} {} {}", within(a, left), word, within(b, binding + 1)), binding};
}

}  // namespace

IntProgram constant(int64_t value) { return {{{Kind::Constant, value}}}; }
IntProgram symbol(int index) { return {{{Kind::Symbol, index}}}; }
IntProgram scalar(int index) { return {{{Kind::Scalar, index}}}; }

IntProgram combine(IntOp::Kind kind, const IntProgram& a, const IntProgram& b) {
  IntProgram result = a;
  result.ops.insert(result.ops.end(), b.ops.begin(), b.ops.end());
  result.ops.push_back({kind, 0});
  return result;
}

IntProgram negate(const IntProgram& a) {
  IntProgram result = a;
  result.ops.push_back({Kind::Not, 0});
  return result;
}

IntProgram fitting(const IntProgram& a, DType type) {
  IntProgram result = a;
  result.ops.push_back({Kind::Fits, type.is_signed() ? -type.bits : type.bits});
  return result;
}

std::optional<DType> fitted_type(const IntProgram& program) {
  for (const IntOp& op : program.ops)
    if (op.kind == Kind::Fits) return type_of(op);
  return std::nullopt;
}

void verify(const IntProgram& program, int symbols, int scalars) {
  int depth = 0;
  for (const IntOp& op : program.ops) {
    if (is_leaf(op.kind)) {
      if (op.kind != Kind::Constant) {
        const int limit = op.kind == Kind::Symbol ? symbols : scalars;
        check_internal(op.value >= 0 && op.value < limit, "a launch expression names operand {} of {}", op.value,
                       limit);
      }
      check_internal(++depth <= kIntProgramDepth, "a launch expression needs more than {} values", kIntProgramDepth);
    } else {
      const int operands = op.kind == Kind::Not || op.kind == Kind::Fits ? 1 : 2;
      check_internal(depth >= operands, "a launch expression lacks an operand");
      depth -= operands - 1;
    }
  }
  check_internal(depth == 1, "a launch expression leaves {} values", depth);
}

bool evaluate(const IntProgram& program, std::span<const int64_t> symbols, std::span<const int64_t> scalars,
              int64_t& result) {
  std::array<int64_t, kIntProgramDepth> stack;
  size_t top = 0;
  for (const IntOp& op : program.ops) {
    switch (op.kind) {
      case Kind::Constant: stack[top++] = op.value; break;
      case Kind::Symbol: stack[top++] = symbols[static_cast<size_t>(op.value)]; break;
      case Kind::Scalar: stack[top++] = scalars[static_cast<size_t>(op.value)]; break;
      case Kind::Not: stack[top - 1] = stack[top - 1] == 0; break;
      case Kind::Fits:
        if (!integer_fits(type_of(op), stack[top - 1])) return false;
        break;
      default:
        --top;
        if (!apply(op.kind, stack[top - 1], stack[top], stack[top - 1])) return false;
    }
  }
  result = stack[0];
  return true;
}

std::string to_string(const IntProgram& program, std::span<const std::string> symbols,
                      std::span<const std::string> scalars) {
  std::vector<Text> stack;
  for (const IntOp& op : program.ops) {
    const size_t index = static_cast<size_t>(op.value);
    switch (op.kind) {
      case Kind::Constant: stack.push_back({std::to_string(op.value), op.value < 0 ? 5 : kTightest}); break;
      case Kind::Symbol: stack.push_back({symbols[index], kTightest}); break;
      case Kind::Scalar: stack.push_back({scalars[index], kTightest}); break;
      case Kind::Fits: break;
      case Kind::Not: stack.back() = {fmt::format("not {}", within(stack.back(), 4)), 3}; break;
      default: {
        const Text b = stack.back();
        stack.pop_back();
        stack.back() = join(op.kind, stack.back(), b);
      }
    }
  }
  return stack.empty() ? "" : stack.back().text;
}

}  // namespace tilewright::runtime
