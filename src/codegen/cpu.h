// LoopProgram -> the C++ text of a CPU kernel: self-contained, without includes, deterministic.
//
// Buffers of a call: the tensor parameters in order, then the workspaces in the order of the buffer table. Integers:
// the symbols in order, then the scalar parameters.
#pragma once
#include "ir/program.h"
#include "target/cpu.h"

namespace tilewright::codegen {

// A print or an assertion of the kernel, which reports it by its number.
struct ReportSite {
  enum class Kind : uint8_t { PrintMessage, PrintScalar, PrintBuffer, Assert };
  struct Operand {
    std::string name;
    DType type;
  };
  Kind kind = Kind::PrintMessage;
  std::string message;
  SourceLocation location;
  std::vector<Operand> operands;
};

struct CpuKernelSource {
  std::string text;
  std::vector<ReportSite> sites;
};

// What lower_to_loops() needs to know of the gemm text.
target::CpuTarget cpu_target(const target::CpuFeatures& features);

// CompileError CpuGemmTypes if a gemm has types that the CPU does not multiply.
CpuKernelSource emit_cpu(const ir::LoopProgram& program, const target::CpuFeatures& features);

}  // namespace tilewright::codegen
