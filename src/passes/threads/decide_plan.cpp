#include "passes/threads/decide_plan.h"

#include "passes/launch_order.h"
#include "passes/threads/clear_in_gemms.h"
#include "passes/threads/narrow_steps.h"
#include "passes/threads/stage_results.h"
#include "plan/fit_registers.h"

namespace tilewright::passes {

using namespace ir;
using plan::Hints;
using plan::Limits;
using plan::Plan;
using plan::Rejection;

namespace {

Plan decide(TileProgram scratch, Launch launch, const target::GpuTarget& target, const Limits& limits,
            const Hints& hints) {
  if (std::string why = why_no_roles(launch, target, limits); !why.empty()) {
    Plan none;
    none.rejected.push_back({Rejection::Of::Loader, std::move(why)});
    return none;
  }
  const Body own = std::exchange(launch.body, clear_in_gemms(scratch, launch.body));
  const bool clears = !std::ranges::equal(own, launch.body, [](const Stmt& a, const Stmt& b) { return &*a == &*b; });
  std::string no_teams;
  const auto done = [&](Plan plan) {
    plan.clears = clears;
    if (!no_teams.empty())
      plan.rejected.insert(plan.rejected.begin(), {Rejection::Of::IterationTeams, std::move(no_teams)});
    return plan;
  };
  using Takes = plan::Role::Takes;
  if (limits.by_iteration && !hints.no_loader &&
      hints.takes.value_or(Takes::IterationsInTurn) == Takes::IterationsInTurn) {
    // Teams keep their halves of a result, and each brings its own away: no tile of all columns is in between.
    Launch straight = launch;
    std::vector<BufferId> none;
    straight.body = stage_results(scratch, launch.body, launch.threads[0], plan::Staging::Straight, false, {}, none);
    if (auto teams = teams_by_iteration(scratch, straight, limits, hints, no_teams)) return done(std::move(*teams));
  }
  return done(loader_plan(scratch, launch, target, limits, hints));
}

}  // namespace

Plan decide_plan(const TileProgram& program, size_t number, const target::GpuTarget& target, const Limits& limits) {
  // Loaders run ahead of the program's statements, so that a wait for other launches comes before the roles.
  Launch launch = program.launches[number];
  const Hints hints = plan::parse_hints(launch.plan, program.location(launch.location));
  launch.body = without_launch_order(launch.body);
  if (target.has.tma && limits.slots >= 1) {
    if (const plan::Fit fit = plan::fit_registers(program, launch, limits.live, hints); fit.any()) {
      TileProgram scratch = program;
      const Launch other = fitted(scratch, launch, fit);
      Plan plan = decide(std::move(scratch), other, target, limits, hints);
      plan.fit = fit;
      if (plan.has_loader()) return plan;
    }
  }
  return decide(program, std::move(launch), target, limits, hints);
}

}  // namespace tilewright::passes
