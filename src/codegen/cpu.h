// LoopProgram -> the C++ text of a CPU kernel: self-contained, without includes, deterministic.
//
// Buffers of a call: the tensor parameters in order, then the workspaces in the order of the buffer table. Integers:
// the symbols in order, then the scalar parameters.
#pragma once
#include "codegen/c_reports.h"
#include "target/cpu.h"

namespace tilewright::codegen {

// What became of a gemm, for reports.
struct GemmReport {
  SourceLocation location;
  int64_t m = 0, n = 0, k = 0;
  std::string kernel;                        // instructions and the block in registers
  std::string a_layout, b_layout, c_layout;  // "strided (64, 1)", "in panels of 32"
  bool packs_a = false, packs_b = false;     // copied into the kernel's form at every call
  bool updates_elements = false;             // some or all of c is updated element by element
};

struct CpuKernelSource {
  std::string text;
  std::vector<ReportSite> sites;
  std::vector<GemmReport> gemms;
  bool waits = false;                 // some of its code waits for other code of the call
  std::vector<SourceLocation> marks;  // of the lines "// file:line", in their order
};

// What lower_to_loops() needs to know of the gemm text.
target::CpuTarget cpu_target(const target::CpuFeatures& features);

// CompileError CpuGemmTypes if a gemm has types that the CPU does not multiply.
CpuKernelSource emit_cpu(const ir::LoopProgram& program, const target::CpuFeatures& features);

}  // namespace tilewright::codegen
