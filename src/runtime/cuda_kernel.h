// From the text of a CUDA kernel to something that can be called: the disk cache or NVRTC, then a module on each device
// that a call's tensors are on.
#pragma once
#include <memory>
#include <string>

#include "runtime/cuda_plan.h"
#include "runtime/executable.h"
#include "runtime/kernel_cache.h"
#include "runtime/nvrtc.h"

namespace tilewright::runtime::cuda {

struct CudaKernelText {
  std::string name;  // of the program: for dumps and messages only
  std::string text;
  std::string arch;  // "sm_90a"
  CudaPlan plan;
  std::vector<std::string> more_options = {};  // after device_options()
  SourceLocation location = {};                // of the program, for messages
};

// The cubin alone; needs no device. CompileError if there is no NVRTC or it refuses the text. What the compiler said is
// kept with the cubin, so a cached kernel answers as a new one does (milliseconds are those of its compilation).
DeviceBinary compile_cuda(const CudaKernelText& kernel, KernelOrigin* origin = nullptr);

// CompileError if the device compiler made instructions of the text that are known to be wrong.
void refuse_wrong_code(const std::string& name, const std::string& cubin);

// Where there is a device, the kernel is loaded on device 0 at once, so that a first call may be captured; on others at
// their first call. `plan` is what calls will be bound by: its `memory` is Cuda.
std::unique_ptr<Callee> load_cuda(const CudaKernelText& kernel, DeviceBinary binary, const LaunchPlan& plan);

}  // namespace tilewright::runtime::cuda
