// What the CPU engine makes of a program's tile operations, and what they cost, as facts: each is computed from the
// program, from the loops it becomes or from the gemm text's own report.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "driver/arguments.h"
#include "runtime/processor.h"

namespace tilewright {

// One tile operation. Numbers are of one execution; empty where they depend on what is not known.
struct OperationFacts {
  std::string operation;  // "gemm", "copy", ...
  std::string text;       // its first line
  SourceLocation location;
  std::optional<int64_t> executions;  // of one call: blocks times trips of the loops around it
  bool conditional = false;           // an If stands around it: `executions` is the most there are
  std::optional<int64_t> flops;       // additions, multiplications, functions, comparisons of floats; fma is two
  std::optional<int64_t> bytes;       // between global memory and the chip, before bounds
  int64_t loops = 0, vectorized = 0;  // innermost loops on the CPU, and how many of them are vectorized
  std::vector<std::string> becomes;   // a gemm: its kernel, the layout of each operand
  std::vector<std::string> warnings;  // slow paths
};

struct OnChipBuffer {
  std::string name, space, dtype;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  bool is_view = false;
};

struct LaunchFacts {
  std::string name;
  std::vector<std::string> grid;
  std::optional<int64_t> blocks;
  std::vector<int64_t> threads;
  std::vector<OnChipBuffer> buffers;
  int64_t bytes_on_chip = 0;  // views left out
  std::vector<OperationFacts> operations;
};

struct Explanation {
  std::string program;
  std::string processor;
  std::vector<LaunchFacts> launches;
  std::optional<int64_t> flops, moved_bytes;  // of one call: all operations
  std::optional<int64_t> tensor_bytes;        // of the parameters, each once
  std::vector<Diagnostic> warnings;
  std::optional<Diagnostic> refused;  // by the CPU engine; then the facts on loops are missing
};

// `values` may leave symbols out. CompileError if the program is not valid.
Explanation explain(const ir::TileProgram& program, const NamedValues& values,
                    const runtime::ProcessorFeatures& processor);

}  // namespace tilewright
