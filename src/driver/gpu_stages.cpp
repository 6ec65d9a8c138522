#include "driver/gpu_stages.h"

#include "ir/print.h"

namespace tilewright {

void GpuStages::operator()(const char* name, const passes::GpuProgram& program, double) {
  if (!wanted_) return;
  const std::span<const passes::GpuPass> tried = passes::gpu_plan_passes();
  if (std::string_view(name) == tried.front().name)
    std::erase_if(stages_, [&](const Stage& s) {
      return std::any_of(tried.begin(), tried.end(), [&](const passes::GpuPass& p) { return s.name == p.name; });
    });
  // A pass comes once a launch: what it left of all of them counts.
  std::erase_if(stages_, [&](const Stage& s) { return s.name == name; });
  stages_.push_back({name, passes::is_of_threads(program) ? ir::print(program.threads) : ir::print(program.tiles),
                     decisions_of(program)});
}

void GpuStages::write(Dump& dump) const {
  for (const Stage& s : stages_) dump.write_text(s.name.c_str(), "tile", s.text);
}

}  // namespace tilewright
