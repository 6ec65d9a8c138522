// Runs kernels that host_nvrtc.cpp compiled: their threads are coroutines of the thread that launches them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fake_cuda/host_thread.h"

namespace tilewright::fake_cuda {

struct EncodedMap;

// A kernel in a module that dlopen gave.
struct HostKernel {
  void (*run)(void** parameters) = nullptr;  // null: there is none
  HostThread** thread = nullptr;             // whose turn it is, which the kernel reads
};
HostKernel host_kernel(void* module, const std::string& function);

struct HostLaunch {
  unsigned grid[3], block[3], cluster[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  bool cooperative = false;  // all blocks are there at once
};
// What is wrong with it; empty: nothing. `maps`: what maps are by their first word, counted from 1.
std::string run_on_host(const HostKernel& kernel, const HostLaunch& launch, void** parameters,
                        const std::vector<EncodedMap>& maps);

}  // namespace tilewright::fake_cuda
