// Devices of the CUDA driver: what each can do, its primary context (which PyTorch uses too), memory, streams, timing.
#pragma once
#include <memory>
#include <string>

#include "runtime/cuda_driver.h"

namespace tilewright::runtime::cuda {

struct DeviceProperties {
  std::string name;
  int compute_major = 0, compute_minor = 0;
  int sm_count = 0;
  int max_threads_per_block = 0, max_threads_per_sm = 0;
  int registers_per_sm = 0;
  int shared_bytes_per_block = 0;  // static and dynamic together, after opting in
  int shared_bytes_per_sm = 0;
  int64_t l2_bytes = 0, memory_bytes = 0;
  int clock_megahertz = 0, memory_clock_megahertz = 0, memory_bus_bits = 0;
  bool tensor_maps = false, clusters = false, cooperative = false;
  // What to compile for: "sm_90a" where architecture-specific code exists (9.0 and above), else "sm_80".
  std::string arch() const;
};

// One device with its primary context retained; made once and kept.
struct CudaDevice {
  const Driver& driver;
  int index = 0;
  Context context = nullptr;
  DeviceProperties properties;

  // LaunchError if there is no driver or no such device. `index` counts as CUDA_VISIBLE_DEVICES leaves them.
  static const CudaDevice& get(int index);
};

int device_count();  // 0 where there is no driver; never throws

// Makes the device's context current for the calling thread, and the one before it again at the end.
class ScopedDevice {
 public:
  explicit ScopedDevice(const CudaDevice& device);
  ~ScopedDevice();
  ScopedDevice(const ScopedDevice&) = delete;

 private:
  const Driver& driver_;
  bool pushed_ = false;
};

// The stream of the calling thread's calls; the legacy default stream at first, as in PyTorch.
Stream current_stream();
void set_current_stream(Stream stream);

// Memory of a device; freed with the last owner, after what runs on the device at that time.
std::shared_ptr<void> allocate(const CudaDevice& device, int64_t bytes);
// Host memory that the device reads and writes directly.
std::shared_ptr<void> allocate_pinned(const CudaDevice& device, int64_t bytes);

// Which device an address belongs to; -1: the host's, or nobody's that the driver knows.
int device_of(const CudaDevice& device, const void* address);

// Time between two points of a stream.
class Timer {
 public:
  explicit Timer(const CudaDevice& device);
  ~Timer();
  Timer(const Timer&) = delete;
  void start(Stream stream);
  void stop(Stream stream);
  float milliseconds();  // waits for stop()

 private:
  const CudaDevice& device_;
  Event begin_ = nullptr, end_ = nullptr;
};

}  // namespace tilewright::runtime::cuda
