// ThreadProgram -> CUDA C++: self-contained, without includes, deterministic; one kernel a launch.
#pragma once
#include "codegen/c_reports.h"
#include "target/gpu.h"

namespace tilewright::codegen {

// How TMA sees a tensor.
struct CudaTensorMap {
  ir::BufferId buffer;
  std::vector<size_t> dims;   // of the tensor, that the map has
  std::vector<int64_t> box;   // elements, a number for each of them
  int64_t swizzle_bytes = 0;  // of a row in shared memory: 32, 64, 128; 0: none
  bool operator==(const CudaTensorMap&) const = default;
};
struct CudaArgument {  // one parameter of a kernel: a tensor or workspace, a symbol or scalar, or a tensor map
  ir::BufferId buffer;
  ir::VarId var;
  int map = -1;  // index in CudaSource::tensor_maps
};
struct CudaKernel {
  std::string function;
  std::vector<CudaArgument> arguments;
  bool reports = false;  // one more parameter at the end: tw_reports*
  int64_t shared_bytes = 0;
  bool cooperative = false;  // its blocks wait for each other
  bool waits = false;        // for the kernels before: it may begin while they run
};
struct CudaSource {
  std::string text;
  std::vector<CudaKernel> kernels;  // by launch
  std::vector<CudaTensorMap> tensor_maps;
  std::vector<ReportSite> sites;
  std::vector<SourceLocation> marks;  // of the lines "// file:line" of the kernels, in their order
};

struct CudaStyle {
  bool one_branch = false;       // roles are arms of one branch, not of one each
  bool approximate_div = false;  // of floats, by __fdividef
  bool plain_integers = false;   // minima, maxima, choices and equality of integers are such that ptxas merges none
};

// `report_head` stands before the text of a program that reports.
CudaSource emit_cuda(const ir::ThreadProgram& program, const target::GpuTarget& target, const std::string& report_head,
                     CudaStyle style = {});

}  // namespace tilewright::codegen
