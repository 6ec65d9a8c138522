#include "tilewright/cost.h"

#include <mutex>

#include "driver/arguments.h"
#include "driver/canonical.h"
#include "driver/cuda_engine.h"
#include "driver/versions.h"
#include "ir/program.h"
#include "passes/assume_fast_calls.h"
#include "passes/lower_to_threads.h"
#include "support/warning.h"

namespace tilewright {

namespace {

// A version of the program, as its plans see it.
class PlannedVersion {
 public:
  PlannedVersion(ir::TileProgram program, const target::GpuTarget& target)
      : program_(std::move(program)),
        plans_(passes::lower_to_threads(program_, target).plans),
        tiles_{.tiles = program_, .target = target, .attempts = {}} {
    passes::run_gpu_passes(tiles_, passes::gpu_tile_passes(), [](auto&&...) {});
  }

  bool takes(const NamedValues& values) const {
    return std::ranges::all_of(program_.assumptions,
                               [&](const ir::Assumption& a) { return value_of(a.condition, program_, values) != 0; });
  }
  std::optional<double> microseconds(const NamedValues& values) const {
    const ir::Substitution known = known_values(program_, values);
    double sum = 0;
    for (size_t i = 0; i < plans_.size(); ++i) {
      const auto price = plan::price(tiles_.tiles, tiles_.tiles.launches[i], plans_[i], tiles_.target, known);
      if (!price) return {};
      sum += price->microseconds;
    }
    return sum;
  }

 private:
  ir::TileProgram program_;
  std::vector<plan::Plan> plans_;
  passes::GpuProgram tiles_;
};

}  // namespace

struct CostModel::State {
  State(ir::TileProgram tiles, target::GpuTarget gpu, PlannedVersion version)
      : program(std::move(tiles)), target(std::move(gpu)), fast(std::move(version)) {}

  ir::TileProgram program;
  const target::GpuTarget target;
  PlannedVersion fast;
  std::once_flag asked;
  std::optional<PlannedVersion> general;
};

CostModel::CostModel(const Program& program, const std::string& arch) {
  ir::TileProgram tiles = canonical(program.box().program);
  const target::GpuTarget target = gpu_target(arch);
  PlannedVersion fast(passes::assume_fast_calls(tiles), target);
  state_ = std::make_shared<State>(std::move(tiles), target, std::move(fast));
}

std::optional<double> CostModel::microseconds(const std::map<std::string, int64_t>& values) const {
  State& s = *state_;
  if (s.fast.takes(values)) return s.fast.microseconds(values);
  std::call_once(s.asked, [&] {
    const WarningSink loud = replace_warning_sink([](const Diagnostic&) {});
    const std::shared_ptr<void> restore(nullptr, [&](void*) { replace_warning_sink(loud); });
    for_other_calls(s.program, [&](const ir::TileProgram& p) { return &s.general.emplace(p, s.target); });
  });
  return s.general->microseconds(values);
}

}  // namespace tilewright
