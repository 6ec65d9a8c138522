// What compiling for the device costs: our passes, a first kernel of a process, cold and warm starts.
#pragma once
#include <nlohmann/json.hpp>

#include "selection.h"

namespace bench::gpu {

// A row for each selected example, at its first shape for GPUs: milliseconds, medians but for the
// first. "passes_ms": from a recorded program to CUDA text and launch plan; "first_ms": compile() in a process that has
// not used the device, where NVRTC is loaded and the driver makes a context; "cold_ms": compile() again without a
// cache; "disk_ms": with the cache on disk. Each program in a process of its own, forked from this one: call it before
// anything uses the device. A row whose process failed holds "bad".
nlohmann::ordered_json compile_times(const Selection& selection);

}  // namespace bench::gpu
