// The launch plan: what a call checks and computes before the kernel runs, as data.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/int_program.h"
#include "tilewright/diagnostic.h"
#include "tilewright/dtype.h"
#include "tilewright/executable.h"

namespace tilewright::runtime {

// One parameter, in the order of the call.
struct Parameter {
  enum class Kind : uint8_t { Tensor, Scalar };
  Kind kind = Kind::Tensor;
  std::string name;
  DType dtype;
  // Tensors only. Without strides the tensor must be row-major without gaps.
  std::vector<IntProgram> shape;
  std::vector<IntProgram> strides;
  bool nullable = false;  // no launch uses it
  int alignment = 0;      // bytes the address must be a multiple of; 0: the size of an element
  bool written = false;   // a launch stores to it
};

// What one dimension or stride of a tensor says of a symbol: coefficient * symbol + rest = the tensor's value.
struct Equation {
  enum class Source : uint8_t { Shape, Stride };
  int parameter = 0;  // index among the parameters
  Source source = Source::Shape;
  int dim = 0;
  int64_t coefficient = 1;
  IntProgram rest;  // of other symbols and of scalar parameters; empty: 0
};

// A symbol is solved by the equation that it is, whose rest uses symbols before it alone; where that one's tensor is
// null, by the first of the others that says something. The checks of shapes see that all of them agree.
struct Symbol : Equation {
  std::string name;
  DType dtype = i64;   // the solution must fit it
  bool needed = true;  // whether anything else than its own parameter depends on it
  std::vector<Equation> others;
};

struct AssumeCheck {
  IntProgram condition;  // must not be 0
  std::string text;      // as the user wrote it
  SourceLocation location;
};

// Scratch memory in global space, kept by the executable between calls; its content is undefined at the start of a
// call.
struct Workspace {
  std::string name;
  DType dtype;
  IntProgram size;      // elements
  bool zeroed = false;  // it holds zeros at the start of a call, and the call's launches leave zeros
};

// A print, an assertion or a wait in the kernel; the kernel reports its row.
struct Site {
  enum class Kind : uint8_t {
    PrintMessage,  // no values
    PrintScalar,   // one value of type operands[0]
    PrintBuffer,   // index of the first element, then elements of the buffer operands[0]
    Assert,        // the values of the operands, shown in the error
    Stuck,         // the message says what will never come
    Overflow,      // the message says at what more threads arrive than it counts
  };
  struct Operand {
    std::string name;
    DType dtype;
  };
  Kind kind = Kind::PrintMessage;
  std::string message;
  SourceLocation location;
  std::vector<Operand> operands;
  bool is_print() const { return kind < Kind::Assert; }
};

struct LaunchPlan {
  enum class Memory : uint8_t { Host, Cuda };
  std::string name;              // of the program, in every message
  Memory memory = Memory::Host;  // where the tensors of a call must be; on Cuda all on one device
  std::vector<Parameter> parameters;
  std::vector<Symbol> symbols;
  std::vector<AssumeCheck> assumes;
  std::vector<Workspace> workspaces;
  std::vector<IntProgram> grids;  // extents of them that may have no value in their type
  std::vector<Site> sites;
};

inline constexpr int kMaxBuffers = 64;    // tensor parameters and workspaces of one plan
inline constexpr int kMaxIntegers = 128;  // symbols and scalar parameters of one plan

// LaunchError if the program asks for more than the limits above; InternalError if the plan contradicts itself. Once
// per plan.
void verify(const LaunchPlan& plan);

// A call whose arguments have been checked.
struct BoundCall {
  const LaunchPlan* plan = nullptr;
  std::span<const Argument> arguments;
  bool nothing_to_do = false;  // no tensor has elements
  int device_index = 0;        // with Memory::Cuda: the device of the tensors; 0 if there are none
  int buffer_count = 0;
  int integer_count = 0;
  // Tensor parameters in order, then workspaces (null until the executable lends them). Only the first buffer_count are
  // set.
  std::array<void*, kMaxBuffers> buffers;
  // By symbol: the equation that gave its value; null: no tensor that is there says it, and it is 0.
  std::array<const Equation*, kMaxIntegers> solved_by;
  // Symbols in order, then scalar parameters in order as kernel_abi.text.h writes values.
  std::array<int64_t, kMaxIntegers> integers;

  std::span<const int64_t> symbols() const { return {integers.data(), plan->symbols.size()}; }
  std::span<const int64_t> scalars() const {
    return {integers.data() + plan->symbols.size(), static_cast<size_t>(integer_count) - plan->symbols.size()};
  }
};

// Checks in this order and throws a LaunchError at the first mistake: count; per parameter kind, null, dtype, rank,
// device; symbols; shapes; strides; alignment; memory that is shared in part; assumptions; grids. Does not allocate
// when all is well.
void bind_call(const LaunchPlan& plan, std::span<const Argument> arguments, BoundCall& call);

}  // namespace tilewright::runtime
