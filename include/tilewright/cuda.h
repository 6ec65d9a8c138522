// Running on CUDA devices: devices, the stream that calls go to, tensors in device memory.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tilewright/tensor.h"

namespace tilewright::cuda {

// 0 where there is no driver or no device.
int device_count();
// "sm_90a": what kernels for this device are compiled for. LaunchError if there is no such device.
std::string architecture(int device = 0);

// Calls, copies and fills of this thread go to this stream (a cudaStream_t or CUstream); the legacy default stream at
// first, as in PyTorch. A call returns when its kernels are on the stream, and may be captured into a graph.
void set_stream(void* stream);
void* stream();

class StreamScope {
 public:
  explicit StreamScope(void* stream) : before_(cuda::stream()) { set_stream(stream); }
  ~StreamScope() { set_stream(before_); }
  StreamScope(const StreamScope&) = delete;

 private:
  void* before_;
};

// Waits for everything on the device. LaunchError if a kernel failed.
void synchronize(int device = 0);

// An array in device memory that somebody else owns, on the device that the driver says it belongs to. LaunchError for
// an address of the host. Must outlive the array unless `keep_alive` owns it.
NDArray borrow(void* data, std::span<const int64_t> shape, DType dtype, std::span<const int64_t> strides = {},
               std::shared_ptr<void> keep_alive = {});

}  // namespace tilewright::cuda
