// A timeline of the simulator for viewers of traces: ui.perfetto.dev, chrome://tracing.
#pragma once
#include <string>

#include "simulator/timeline.h"

namespace tilewright {

// In the Trace Event Format: a process for each block, a thread for each warp, unit and mbarrier; microseconds.
std::string to_json(const simulator::Timeline& timeline);

}  // namespace tilewright
