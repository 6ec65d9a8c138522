// Copies within a device's memory, the bar of programs that the memory decides.
#pragma once
#include <memory>

#include "race.h"
#include "tilewright/executable.h"

namespace bench::gpu {

// Two buffers and the two ways to copy from one to the other.
class Copies {
 public:
  explicit Copies(int64_t max_bytes);
  // Each reads bytes / 2 and writes as many; `bytes` is rounded to what is allowed.
  Contestant by_driver(int64_t bytes) const;  // cuMemcpyDtoDAsync
  Contestant by_kernel(int64_t bytes) const;  // four accesses of 16 bytes under way in each thread

  const tilewright::Executable& kernel() const { return kernel_; }
  static const char* kernel_text();

 private:
  std::shared_ptr<void> from_, to_;
  int64_t half_ = 0;
  tilewright::Executable kernel_;
};

// Of a kernel that does next to nothing, seconds on the host: through an Executable, and by the driver's own entry
// point with its parameters laid out beforehand.
struct LaunchCost {
  double ours = 0, driver = 0;
};
LaunchCost launch_cost();

}  // namespace bench::gpu
