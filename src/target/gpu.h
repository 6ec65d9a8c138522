// What the GPU engine may assume of a device. Data: a kernel's text depends on this and the program alone.
#pragma once
#include <cstdint>

namespace tilewright::target {

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
struct GpuTarget {
  int arch = 90;                  // 80, 89, 90: compute capability times ten
  int64_t shared_bytes = 232448;  // that one block may use, the driver's reserve taken off
  // Of the device that schedules are made for (H100 SXM and H200: 132; A100: 108); others run them as well.
  int64_t multiprocessors = 132;

  // What each of several blocks of a multiprocessor may use: the driver takes 1 KB for itself from each.
  int64_t shared_bytes_of_blocks(int64_t blocks) const { return (shared_bytes + 1024) / blocks - 1024; }

  static GpuTarget of(int arch) {
    const int64_t shared = arch >= 90 ? 232448 : arch == 80 ? 166912 : 101376;
    return {arch, shared, arch >= 90 ? 132 : 108};
  }
  bool operator==(const GpuTarget&) const = default;
};

}  // namespace tilewright::target
