// The simulator of a GPU: runs the code of threads that stands in a ThreadProgram, a warp at a time, and finds what a
// GPU would not tell: races, barriers that not all threads reach, accesses out of bounds or not aligned. It counts what
// the memories do; it promises no timing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "interpreter/interpreter.h"
#include "ir/program.h"
#include "simulator/timeline.h"
#include "simulator/traffic.h"
#include "target/gpu.h"

namespace tilewright::simulator {

struct SimulateOptions {
  // The order in which warps take turns. Results do not depend on it, or there is a race, which is found in any order.
  uint64_t seed = 0;
  target::GpuTarget target = target::GpuTarget::of(90);
  bool count_traffic = false;
  Timeline* timeline = nullptr;  // what to write down of the first blocks of each launch; it needs count_traffic
  // Whether the end of a group of wgmmas, which one warp waits for, tells that the whole warpgroup is done with its
  // operands. PTX says it of the executing threads only; CUTLASS and cuDNN release operands by one thread of the
  // warpgroup, and no other way to do it is known to be free. False: a warp learns of its own part.
  bool warpgroup_retires_together = true;
};

struct LineTraffic {
  SourceLocation location;
  Traffic traffic;
};

struct LaunchReport {
  std::string name;
  int64_t blocks = 0, threads = 0;
  int64_t shared_bytes = 0;        // of a block
  std::vector<LineTraffic> lines;  // in the order of the source
  Traffic total;
};

// Runs all launches in order; gives a report of each. LaunchError with a code of area "simulate" or "run" for the first
// mistake that it finds, which may be the program's or that of the passes that made it.
std::vector<LaunchReport> simulate(const ir::ThreadProgram& program, const interpreter::Binding& binding,
                                   const SimulateOptions& options = {});

}  // namespace tilewright::simulator
