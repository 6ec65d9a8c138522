// The C texts of a kernel that is compiled ahead of time: the header that programs include, the function that they
// call, and the runtime that all such kernels share.
#pragma once
#include "runtime/cuda_plan.h"
#include "runtime/launch_plan.h"

namespace tilewright::runtime {

// A compiled form of the program. Its plan assumes what the program does, and more.
struct AotVersion {
  LaunchPlan plan;
  cuda::CudaPlan cuda;
  std::string cubin;  // none: the processor's
};

struct AotKernel {
  std::string function;              // a name of C
  std::string arch;                  // "cpu:avx2", "sm_90a", as it was asked for
  unsigned features = 0;             // ProcessorFeatures::bits()
  LaunchPlan plan;                   // what every call must fulfil
  std::vector<AotVersion> versions;  // the first that fits takes a call
  bool on_cpu() const { return plan.memory == LaunchPlan::Memory::Host; }
};

// kernel_abi.text.h as C has it.
std::string aot_kernel_abi_text();
// The names under which compiled parts meet.
std::string aot_entry_name(const AotKernel& kernel);
std::string aot_image_file(size_t version);

// One parameter of the function: "const float* A".
struct AotParameter {
  std::string name;  // as the program has it
  std::string type, c_name;
};
// Tensors and scalars in order, the symbols in order, the stream.
std::vector<AotParameter> aot_parameters(const AotKernel& kernel);
// "int scale(const float* A, float* B, int64_t N, void* stream)"
std::string aot_signature(const AotKernel& kernel);

std::string aot_header_text(const AotKernel& kernel);
// To be compiled beside the files of its images.
std::string aot_host_text(const AotKernel& kernel);

inline constexpr const char* kAotRuntimeHeader = "tilewright_runtime.h";
std::string aot_runtime_header_text();
std::string aot_runtime_text();

}  // namespace tilewright::runtime
