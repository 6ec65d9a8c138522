#include "driver/hand_in_plan.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "plan/hints.h"
#include "support/diagnostic.h"
#include "support/lines.h"

namespace tilewright {

ir::TileProgram with_plan(ir::TileProgram program, const std::string& text) {
  ir::Launch* launch = program.launches.size() == 1 ? &program.launches[0] : nullptr;
  for (const std::string& line : lines_in(text)) {
    constexpr std::string_view kLaunch = "launch ";
    if (!line.starts_with(kLaunch)) {
      if (!launch)
        fail(Code::GpuPlan, {}, fmt::format("the plan's line '{}' is of no launch", line),
             "the program has several: write 'launch NAME' in front of the lines of each");
      launch->plan.push_back(line);
      continue;
    }
    const std::string name = line.substr(kLaunch.size());
    const auto found = std::ranges::find(program.launches, name, &ir::Launch::name);
    if (found == program.launches.end()) {
      std::vector<std::string> names;
      for (const ir::Launch& l : program.launches) names.push_back(l.name);
      fail(Code::GpuPlan, {}, fmt::format("the plan speaks of a launch '{}'; the program has none", name),
           fmt::format("its launches are {}", fmt::join(names, ", ")));
    }
    launch = &*found;
  }
  check_plans(program);
  return program;
}

Program with_plan(const Program& program, const std::string& text) {
  return Program(std::make_shared<ir::TileProgramBox>(ir::TileProgramBox{with_plan(program.box().program, text)}));
}

void check_plans(const ir::TileProgram& program) {
  for (const ir::Launch& launch : program.launches) plan::parse_hints(launch.plan, program.location(launch.location));
}

}  // namespace tilewright
