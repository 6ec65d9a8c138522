#include "driver/versions.h"

#include "passes/assume_fast_calls.h"

namespace tilewright {

void demand_alignments(const ir::ThreadProgram& threads, runtime::LaunchPlan& plan) {
  for (size_t i = 0; i < plan.parameters.size(); ++i)
    if (threads.params[i].is_tensor())
      plan.parameters[i].alignment = static_cast<int>(threads.buffer(threads.params[i].buffer).alignment);
}

Executable with_fast_version(ir::TileProgram program, runtime::LaunchPlan plan, std::string engine,
                             std::function<runtime::Version(const ir::TileProgram&)> make) {
  const ir::TileProgram fast = passes::assume_fast_calls(program);
  runtime::Version first = make(fast);
  auto general = [program = std::move(program), make = std::move(make)](bool aligned) {
    return make(aligned ? program : passes::assume_no_alignment(program));
  };
  return runtime::make_executable(std::move(plan), std::move(first), std::move(general), std::move(engine));
}

}  // namespace tilewright
