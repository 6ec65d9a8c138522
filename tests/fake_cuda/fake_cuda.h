// What the stand-in for libcuda.so.1 (fake_cuda.cpp) records of the calls it gets, and how a test tells it to fail. Its
// device memory is the process's own, so copies really copy; its kernels do nothing but be counted, or run on the host
// where the stand-in host_nvrtc.cpp compiled them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cuda_driver.h"

namespace tilewright::fake_cuda {

struct Launch {
  std::string function;
  runtime::cuda::LaunchConfig config;
  std::vector<runtime::cuda::LaunchAttribute> attributes;
  std::vector<void*> parameter_places;        // valid only in the call
  std::vector<std::vector<char>> parameters;  // as many bytes of each as `parameter_bytes` says
};

struct EncodedMap {
  int type = 0, interleave = 0, swizzle = 0, l2_promotion = 0, oob_fill = 0;
  uint64_t address = 0;
  std::vector<uint64_t> dims, strides;
  std::vector<unsigned> box, element_strides;
};

struct State {
  // Set by tests.
  int devices = 2;
  int compute_major = 9, compute_minor = 0;
  int init_result = 0;
  std::string failing;     // this entry point...
  int failing_result = 0;  // ...returns this
  bool capturing = false;
  int capture_mode = 0;
  int static_shared_bytes = 0, max_threads = 1024;
  std::vector<int> parameter_bytes;  // of the next launches
  // Called instead of a kernel.
  void (*on_launch)(const Launch&) = nullptr;
  // Recorded.
  std::vector<std::string> calls;  // names, in order
  std::vector<Launch> launches;
  std::vector<EncodedMap> maps;
  std::vector<std::pair<int, int>> function_settings;  // attribute and value
  int allocations = 0, frees = 0, modules = 0, loads_of_context[8] = {};
};

using GetState = State*();  // exported as fake_cuda_state

}  // namespace tilewright::fake_cuda
