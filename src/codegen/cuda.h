// ThreadProgram -> CUDA C++: self-contained, without includes, deterministic; one kernel a launch.
#pragma once
#include "codegen/c_reports.h"
#include "target/gpu.h"

namespace tilewright::codegen {

struct CudaArgument {  // one parameter of a kernel: a tensor or workspace, or a symbol or scalar
  ir::BufferId buffer;
  ir::VarId var;
};
struct CudaKernel {
  std::string function;
  std::vector<CudaArgument> arguments;
  bool reports = false;  // one more parameter at the end: tw_reports*
  int64_t shared_bytes = 0;
};
struct CudaSource {
  std::string text;
  std::vector<CudaKernel> kernels;  // by launch
  std::vector<ReportSite> sites;
};

// `report_head` stands before the text of a program that reports.
CudaSource emit_cuda(const ir::ThreadProgram& program, const target::GpuTarget& target, const std::string& report_head);

}  // namespace tilewright::codegen
