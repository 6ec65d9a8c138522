// What the device compiler says about a kernel, as data: resources of each function, and every remark of ptxas.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::runtime {

// From the lines of --ptxas-options=-v.
struct KernelResources {
  std::string name;
  int registers = 0;  // a thread, at entry
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int shared_bytes = 0;  // static
  int constant_bytes = 0;
  int barriers = 0;
  double milliseconds = 0;  // ptxas' own time
  bool operator==(const KernelResources&) const = default;
};

// A line of ptxas that carries a code, or a warning of it.
struct PtxasRemark {
  std::string code;      // "C7510"; may be empty
  std::string severity;  // "info", "warning", "error", "fatal"
  std::string message;
  std::string function;  // where the message names one
  // The device compiler gave up asynchronous wgmma: results stay right, speed does not.
  bool serializes_wgmma() const;
  bool is_performance_loss() const;
  bool operator==(const PtxasRemark&) const = default;
};

struct DeviceLog {
  std::vector<KernelResources> kernels;
  std::vector<PtxasRemark> remarks;
  std::string text;                                            // all of it, as the compiler wrote it
  const KernelResources* kernel(std::string_view name) const;  // null if there is none
};

// Never fails: what it does not know stays in `text` alone.
DeviceLog parse_device_log(std::string text);

}  // namespace tilewright::runtime
