#include "driver/simulate_program.h"

#include "driver/cuda_engine.h"
#include "driver/random_call.h"
#include "driver/simulator_engine.h"
#include "driver/timeline_json.h"
#include "ir/program.h"
#include "ir/verify.h"

namespace tilewright {

Simulation simulate_program(const Program& program, const std::string& arch,
                            const std::map<std::string, double>& values, uint64_t seed, bool trace) {
  const ir::TileProgram& p = program.box().program;
  ir::check_valid(p);
  simulator::SimulateOptions options;
  options.target = gpu_target(arch), options.seed = seed;
  Simulation out;
  const auto keep = [&](const std::vector<simulator::LaunchReport>& reports, const simulator::Timeline* timeline) {
    out.counts = to_json(p.name, reports);
    if (timeline) out.trace = to_json(*timeline);
  };
  counting_executable(p, options, keep, trace).call(RandomCall(p, values, seed).arguments());
  return out;
}

}  // namespace tilewright
