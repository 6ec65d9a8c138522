// What a program was lowered to, kept on disk: the text of its kernel and how that is launched, found by everything
// that it follows from. A program that was compiled before is not lowered again.
#pragma once
#include <optional>

#include "runtime/cuda_plan.h"
#include "runtime/kernel_cache.h"

namespace tilewright::runtime {

// A workspace of a kernel's.
struct KernelWorkspace {
  int64_t bytes = 0;    // 0: not known before the call
  bool zeroed = false;  // as a launch plan's (launch_plan.h)
  bool operator==(const KernelWorkspace&) const = default;
};

struct LoweredKernel {
  std::string text;
  std::vector<Site> sites;
  cuda::CudaPlan plan;                           // of a GPU's kernel, and
  std::vector<int64_t> alignments;               // bytes, of its tensor parameters in order; 0: that of an element
  std::vector<KernelWorkspace> workspaces = {};  // of its own and those of its plans
};

// Both ways. decode_lowered() takes any bytes: empty unless they are exactly what encode_lowered() writes of a kernel.
CacheEntry encode_lowered(const LoweredKernel& kernel);
std::optional<LoweredKernel> decode_lowered(CacheEntry entry);

// The place of one kernel in the cache.
class LoweredPlace {
 public:
  // `origin`: the program, the target and what else its kernel follows from. `build` is the library's own, since every
  // build may lower in another way: without one nothing is found or kept.
  LoweredPlace(std::string_view origin, std::string_view build);

  // What is wrong with the cache's directory is said where the text's binary is looked for.
  std::optional<LoweredKernel> find() const;
  void keep(const LoweredKernel& kernel) const;
  const std::string& key() const { return key_; }

 private:
  std::string key_;  // empty: no place
};

}  // namespace tilewright::runtime
