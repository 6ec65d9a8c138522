// The CPU engine behind an Executable: loops, C++ text, the host compiler or the cache.
#pragma once
#include "codegen/cpu.h"
#include "driver/dump.h"
#include "ir/program.h"
#include "passes/loops/choose_lanes.h"
#include "runtime/cpu_kernel.h"

namespace tilewright {

// What a kernel's text reports, as the plan has it.
std::vector<runtime::Site> sites_of(const std::vector<codegen::ReportSite>& sites);

struct CpuKernel {
  std::string text;
  std::vector<runtime::Site> sites;
  std::vector<codegen::GemmReport> gemms;  // none where it was lowered before
  std::vector<passes::LaneChoice> lanes;   // likewise
  std::unique_ptr<runtime::Callee> callee;
  bool waits = false;                      // some of its code waits for other code of the call; not known likewise
  std::vector<SourceLocation> marks = {};  // of its lines "// file:line", in order; none likewise
};

// What of the processor decides what loops become.
target::CpuFeatures features_of(const runtime::ProcessorFeatures& processor);

// From a canonical program. CompileError for what the engine refuses, and where there is no host compiler.
CpuKernel build_cpu(const ir::TileProgram& program, Dump& dump);
// What a kernel is found by that was lowered before: all that its text follows from.
std::string cpu_origin(const ir::TileProgram& program, const runtime::ProcessorFeatures& features);
// The loops alone, verified.
ir::LoopProgram lower_cpu(const ir::TileProgram& program, const runtime::ProcessorFeatures& features);
// The text alone.
CpuKernel write_cpu(const ir::TileProgram& program, const runtime::ProcessorFeatures& features, Dump& dump);

}  // namespace tilewright
