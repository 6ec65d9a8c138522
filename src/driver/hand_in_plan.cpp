#include "driver/hand_in_plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ir/rewrite.h"
#include "plan/hints.h"
#include "plan/words.h"
#include "support/diagnostic.h"
#include "support/lines.h"

namespace tilewright {

namespace {

// What lines name must be there, whatever becomes of it.
void check_names(const plan::Hints& hints, const ir::TileProgram& program, size_t number) {
  const ir::Launch& launch = program.launches[number];
  const auto missing = [&](const char* what, const std::string& name) {
    fail(Code::GpuPlan, program.location(launch.location),
         fmt::format("the plan of launch '{}' speaks of a {} '{}', which it has not", launch.name, what, name),
         "tilewright compile FILE --stage plan prints the lines of its plan");
  };
  for (const auto& [tile, slots] : hints.slots)
    if (std::ranges::none_of(program.buffers, [&](const ir::Buffer& b) {
          return b.launch == static_cast<int32_t>(number) &&
                 std::ranges::any_of(plan::kHalfWords, [&](const char* half) { return tile == b.name + half; });
        }))
      missing("tile", tile);
  std::set<std::string> loops;
  ir::walk(launch.body, [&](const ir::Stmt& s) {
    if (const auto* loop = s.as<ir::For>()) loops.insert(program.var(loop->var).name);
  });
  for (const auto& [loop, how] : hints.orders)
    if (!loops.contains(loop)) missing("loop", loop);
  for (const auto& loop : {hints.half_steps_of, hints.wide_steps_of})
    if (loop && !loops.contains(*loop)) missing("loop", *loop);
}

}  // namespace

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
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const ir::Launch& launch = program.launches[i];
    check_names(plan::parse_hints(launch.plan, program.location(launch.location)), program, i);
  }
}

}  // namespace tilewright
