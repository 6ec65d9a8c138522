// What an engine makes of a program's tile operations, and what they cost, as facts: each is computed from the
// program, from what it is lowered to, or from what a compiler reports.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/arguments.h"
#include "driver/explain_gpu.h"
#include "runtime/processor.h"

namespace tilewright {

struct DeviceChoice;

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
  std::vector<std::string> becomes;   // a gemm: its kernel, the layout of each operand; on a GPU: the instructions
  std::vector<std::string> rejected;  // on a GPU: candidates that were not taken, each with the reason
  std::vector<std::string> warnings;  // slow paths
  std::optional<int64_t> products;    // of a gemm: multiplications and additions, integers too
  double rate = 0;                    // on a GPU: operations a second of the units that take it, on the whole device
  // Of a copy between global memory and the chip on a GPU that has TMA: whether it is one, and why not.
  std::optional<bool> by_tma;
  std::string not_tma;
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
  std::string processor;        // the CPU's features
  std::optional<GpuFacts> gpu;  // of a GPU in its place
  std::vector<LaunchFacts> launches;
  std::optional<int64_t> flops, moved_bytes;  // of one call: all operations
  std::optional<int64_t> tensor_bytes;        // of the parameters, each once
  std::vector<Diagnostic> warnings;
  std::optional<Diagnostic> refused;  // by the engine; then its facts are missing
};

// `values` may leave symbols out. CompileError if the program is not valid.
Explanation explain(const ir::TileProgram& program, const NamedValues& values,
                    const runtime::ProcessorFeatures& processor);
// On "sm_90a" and its like. `compile`: with NVRTC, where there is one, for registers and spills. `plans`: how many
// beside the taken one of each launch.
// `chosen` is shown what the facts are computed from, with the text of each pass.
Explanation explain_gpu(const ir::TileProgram& program, const NamedValues& values, const std::string& arch,
                        bool compile = true, size_t plans = 2,
                        const std::function<void(const DeviceChoice&)>& chosen = {});

// As `tilewright explain` prints it, and its --json.
std::string to_text(const Explanation& explanation);
std::string to_json(const Explanation& explanation);

}  // namespace tilewright
