// The CUDA engine behind an Executable: thread code, CUDA text, the device compiler or the cache.
#pragma once
#include <optional>

#include "codegen/cuda.h"
#include "driver/gpu_stages.h"
#include "passes/lower_to_threads.h"
#include "runtime/cuda_kernel.h"
#include "runtime/lowered_kernel.h"

namespace tilewright {

// "sm_90a": 90. CompileError for what is no GPU we know.
target::GpuTarget gpu_target(const std::string& arch);

// The text, and how it is launched.
struct CudaText {
  runtime::cuda::CudaKernelText kernel;
  std::vector<runtime::Site> sites;
  std::vector<int64_t> alignments;  // bytes, of the tensor parameters in order; 0: that of an element
  std::vector<runtime::KernelWorkspace> workspaces = {};
  std::vector<SourceLocation> marks = {};  // of its lines "// file:line", in order; none where it was lowered before
};
CudaText write_cuda(const ir::TileProgram& program, const std::string& arch, Dump& dump, plan::Limits limits = {});

// A plan, its text, and what the device compiler made of it.
struct DeviceChoice {
  passes::ThreadLowering lowering;
  GpuStages stages = GpuStages(false);
  CudaText text;
  std::optional<runtime::DeviceBinary> binary;
  std::string no_binary;                // why there is none
  std::vector<passes::TriedPlan> lost;  // plans that fit, but for which the device compiler had too few registers
};
// The best plan, as far as can be known without the device compiler.
// `stages`: keeps what each pass left.
DeviceChoice choose_unseen(const ir::TileProgram& program, const std::string& arch, Dump& dump, bool stages = false);
// Plans one after the other (passes::limits_in_turn), until for one of them the device compiler neither spills nor
// serializes what should run on by itself; else the one with least of it. Without a loader there is one plan.
DeviceChoice choose_by_compiler(const ir::TileProgram& program, const std::string& arch, Dump& dump,
                                bool stages = false);

// What a kernel is found by that was lowered and chosen before: all that chosen plans and texts follow from.
std::string cuda_origin(const ir::TileProgram& program, const std::string& arch, const std::string& code_arch);

// What the code of a kernel is made for: a plan for an older GPU (before sm_90) becomes the code of the one that is
// here.
std::string code_architecture(const std::string& planned, const std::string& here);
// A canonical program for tensors in device memory. CompileError for what the engine refuses, and where there is a
// device and no device compiler. Where there is neither, it has a text, that of the first plan.
runtime::Version build_cuda(const ir::TileProgram& program, const std::string& arch, Dump& dump);
// The program's plan with what the text asks of a call beyond it.
runtime::LaunchPlan plan_of_text(const CudaText& text, runtime::LaunchPlan plan);
// The same from the text, the program's plan and what the text was compiled to.
runtime::Version load_cuda_text(CudaText text, runtime::LaunchPlan plan, runtime::DeviceBinary binary);

}  // namespace tilewright
