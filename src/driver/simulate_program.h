// A program on the simulator, on arguments that nobody gave.
#pragma once
#include <map>
#include <string>

#include "tilewright/program.h"

namespace tilewright {

struct Simulation {
  std::string counts;  // as `tilewright simulate --json` prints it
  std::string trace;   // for viewers of traces; empty where it was not wanted
};

// On random tensors, the same for one seed. `values`: of symbols and of parameters that are numbers, all of them.
// LaunchError for what the simulator finds wrong.
Simulation simulate_program(const Program& program, const std::string& arch,
                            const std::map<std::string, double>& values, uint64_t seed, bool trace);

}  // namespace tilewright
