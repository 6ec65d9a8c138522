// A kernel's cubin on one device, ready to launch.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda_device.h"
#include "runtime/cuda_plan.h"

namespace tilewright::runtime::cuda {

// Memory that calls on one stream lend their kernels: the stream orders its uses, so one set is enough.
class StreamMemory {
 public:
  std::mutex mutex;  // held while a call that uses the memory puts its launches on the stream
  // At least so many bytes, the same ones as before where they are enough. `zeroed`: zeros, when first lent.
  void* get(const CudaDevice& device, size_t index, int64_t bytes, bool zeroed);

 private:
  struct Block {
    std::shared_ptr<void> memory;
    int64_t bytes = 0;
  };
  std::vector<Block> blocks_;
  std::vector<std::shared_ptr<void>> outgrown_;  // kernels may be at work in it
};

// A cubin runs on its own major version from its minor version on; with a letter behind it, on its own version alone.
bool runs_on(const std::string& arch, const DeviceProperties& properties);

class CudaModule {
 public:
  // LaunchError if the device cannot run what the plan launches.
  CudaModule(const CudaDevice& device, const std::string& program, const std::string& arch, const std::string& cubin,
             const CudaPlan& plan);
  ~CudaModule();
  CudaModule(const CudaModule&) = delete;

  const CudaDevice& device() const { return device_; }
  Function function(size_t launch) const { return functions_[launch]; }
  // Zeros on the device for maps of empty buffers (evaluate_map); 0 if the plan has no maps.
  uint64_t placeholder() const { return reinterpret_cast<uint64_t>(placeholder_.get()); }
  // Of a stream that is not being captured.
  StreamMemory& memory_of(Stream stream);
  // Memory of its own for a call that is captured: its graph runs on any stream, and beside others. It is kept, as
  // nobody says when a graph is gone.
  void* captured_memory(int64_t bytes, bool zeroed);

 private:
  void prepare(const std::string& program, const KernelLaunch& launch);

  const CudaDevice& device_;
  Module module_ = nullptr;
  std::vector<Function> functions_;
  std::shared_ptr<void> placeholder_;
  std::mutex mutex_;
  std::map<uint64_t, std::unique_ptr<StreamMemory>> memory_;  // by the stream
  std::vector<std::shared_ptr<void>> captured_;
};

}  // namespace tilewright::runtime::cuda
