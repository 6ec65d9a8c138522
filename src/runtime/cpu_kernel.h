// From the text of a CPU kernel to something that can be called: what is loaded, then the disk cache, then the host
// compiler.
#pragma once
#include <memory>
#include <string>

#include "runtime/executable.h"
#include "runtime/kernel_cache.h"
#include "runtime/processor.h"

namespace tilewright::runtime {

struct CpuKernelText {
  std::string name;  // of the program: for dumps and messages only
  std::string text;  // begins with kernel_text_head(), defines the entry
  ProcessorFeatures features;
  std::string entry = "tw_entry";            // another name where one text holds several kernels
  std::vector<std::string> more_flags = {};  // after kernel_flags()
};

// What must stand before every kernel: the ABI.
std::string kernel_text_head();

// CompileError if there is no compiler or it refuses the text. `origin`, if given, says where the kernel came from.
std::unique_ptr<Callee> build_cpu_kernel(const CpuKernelText& kernel, KernelOrigin* origin = nullptr);

// A kernel that is in this process already: `entry` is the address of its entry, which stays.
std::unique_ptr<Callee> bind_cpu_kernel(const void* entry);

// Threads a kernel may use: TILEWRIGHT_THREADS, else usual_threads().
int kernel_threads();

}  // namespace tilewright::runtime
