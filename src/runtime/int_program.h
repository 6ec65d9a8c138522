// Integer expressions of symbols and scalar arguments, as postfix data: what a launch computes shapes, strides and
// sizes with.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tilewright/dtype.h"

namespace tilewright::runtime {

struct IntOp {
  enum class Kind : uint8_t {
    Constant,  // push value
    Symbol,    // push symbol number `value`
    Scalar,    // push integer scalar parameter number `value`
    Add,
    Sub,
    Mul,
    FloorDiv,
    FloorMod,
    Min,
    Max,
    Less,
    LessEqual,
    Equal,
    NotEqual,
    And,
    Or,  // 0 or 1
    Not,
    Fits,  // no value, unless it is one of an integer of `value` bits; of -`value` bits: a signed one
  };
  Kind kind = Kind::Constant;
  int64_t value = 0;
  bool operator==(const IntOp&) const = default;
};

struct IntProgram {
  std::vector<IntOp> ops;
  bool operator==(const IntProgram&) const = default;
  bool is_constant() const { return ops.size() == 1 && ops[0].kind == IntOp::Kind::Constant; }
};

// How the driver writes them: constant(2) * symbol(0) + scalar(1).
IntProgram constant(int64_t value);
IntProgram symbol(int index);
IntProgram scalar(int index);
IntProgram combine(IntOp::Kind kind, const IntProgram& a, const IntProgram& b);
IntProgram negate(const IntProgram& a);  // logical
IntProgram fitting(const IntProgram& a, DType type);

// Intermediate values that a program may need; verify() refuses deeper ones.
inline constexpr int kIntProgramDepth = 32;

// An InternalError unless the program leaves exactly one value and names only existing symbols and scalars.
void verify(const IntProgram& program, int symbols, int scalars);

// False on overflow of 64 bits, or of a type that it must fit, and on division by zero. Does not allocate; the program
// must be verified.
bool evaluate(const IntProgram& program, std::span<const int64_t> symbols, std::span<const int64_t> scalars,
              int64_t& result);

// The first type that a value must fit.
std::optional<DType> fitted_type(const IntProgram& program);

// Infix text with as few parentheses as its reading needs: "2 * K + 1", "M // 16 % 4".
std::string to_string(const IntProgram& program, std::span<const std::string> symbols,
                      std::span<const std::string> scalars);

}  // namespace tilewright::runtime
