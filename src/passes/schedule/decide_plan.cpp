#include "passes/schedule/decide_plan.h"

#include "analysis/stored_once.h"
#include "analysis/waiting_blocks.h"
#include "ir/number_statements.h"
#include "passes/launch_order.h"
#include "passes/schedule/apply_plan.h"
#include "passes/schedule/iteration_teams.h"
#include "passes/schedule/other_steps.h"
#include "passes/schedule/schedules.h"
#include "passes/schedule/settle_plan.h"
#include "passes/schedule/stage_results.h"
#include "passes/tile/clear_in_gemms.h"
#include "plan/fit_registers.h"
#include "plan/fit_steps.h"
#include "plan/price.h"
#include "plan/schedule.h"

namespace tilewright::passes {

using namespace ir;
using plan::Hints;
using plan::Limits;
using plan::Plan;
using plan::Rejection;
using plan::Schedule;

namespace {

Plan rejected(std::string of, std::string why) {
  Plan none;
  none.rejected.push_back({std::move(of), std::move(why)});
  return none;
}

// Of the launch as it stands in the program, with the schedules that are wished for.
Plan decide(TileProgram scratch, size_t number, const target::GpuTarget& target, const Limits& limits,
            const Hints& hints) {
  std::optional<TileProgram> as_it_stands;
  if (!hints.wishes.empty()) as_it_stands = scratch;
  Launch& launch = scratch.launches[number];
  const plan::Request request{scratch, launch, target, limits, hints};
  const bool waits = analysis::blocks_that_wait(scratch, launch) > 1;
  if (waits && (hints.work == plan::Work::Kind::Persistent || !hints.wishes.empty()))
    return rejected(Rejection::kLoader, "its blocks wait for each other, and each has one tile");
  for (const Schedule* s : plan::kSchedules) {
    if (waits || !s->whole) continue;
    std::string why;
    auto plan = s->whole(request, why);
    const auto misfit = [&] { return code_of(*s).misfit ? code_of(*s).misfit(*plan, scratch, number) : ""; };
    if (plan && (why = misfit()).empty()) return std::move(*plan);
    if (plan && plan->work.drawn && !hints.drawn) {  // tiles that cannot be drawn are dealt
      Hints dealt = hints;
      dealt.drawn = false;
      plan = s->whole({scratch, launch, target, limits, dealt}, why);
      if (plan && (why = misfit()).empty()) return std::move(*plan);
    }
    if (plan && !hints.work) why.clear();  // nobody has asked for it
    if (!why.empty()) return rejected(s->word, std::move(why));
  }
  if (std::string why = why_no_roles(launch, target, limits); !why.empty())
    return rejected(Rejection::kLoader, std::move(why));
  const analysis::StoredTensors stored = analysis::stored_tensors(scratch, launch);
  const Body own = std::exchange(launch.body, clear_in_gemms(scratch, launch.body));
  const bool clears = !std::ranges::equal(own, launch.body, [](const Stmt& a, const Stmt& b) { return &*a == &*b; });
  plan::Work work;
  for (const Schedule* s : plan::kSchedules) {
    const plan::Wish* wish = hints.wish_for(*s);
    if (!wish) continue;
    std::string why;
    const auto use = s->find(request, *wish, why);
    if (!use) return rejected(s->word, std::move(why));
    if (code_of(*s).shape) code_of(*s).shape(scratch, launch, *use);
    work.uses.push_back(*use);
  }
  const bool instead = work.instead_of_kind() != nullptr;
  number_statements(launch);
  std::string no_teams;
  const auto done = [&](Plan plan) {
    plan.clears = clears;
    if (plan.has_loader()) plan.work.uses = std::move(work.uses);
    if (!no_teams.empty())
      plan.rejected.insert(plan.rejected.begin(), {Rejection::kIterationTeams, std::move(no_teams)});
    return plan;
  };
  using Takes = plan::Role::Takes;
  if (limits.by_iteration && !instead && !hints.no_loader &&
      hints.takes.value_or(Takes::IterationsInTurn) == Takes::IterationsInTurn) {
    // Teams keep their halves of a result, and each brings its own away: no tile of all columns is in between.
    TileProgram written = scratch;
    Launch& straight = written.launches[number];
    std::vector<BufferId> none;
    straight.body = stage_results(written, launch.body, launch.threads[0], plan::Staging::Straight, false, {}, none);
    if (auto teams = teams_by_iteration(written, straight, target, limits, hints, no_teams)) {
      const std::vector<BufferId> staged = take_iterations_in_turn(written, straight, *teams);
      no_teams = misfit_of_roles(std::move(written), number, staged, target);
      if (no_teams.empty()) return done(std::move(*teams));
    }
  }
  Hints own_hints = hints;
  if (instead) own_hints.work = plan::Work::Kind::OneTile;  // of the blocks that there are now
  Plan plan = loader_plan(scratch, launch, target, limits, own_hints);
  if (!plan.has_loader()) return done(std::move(plan));
  if (work.gathers_tiles()) plan.epilogue.by_columns = false;
  if (std::string why = settle(plan, scratch, number, stored, target); !why.empty()) {
    Plan none;
    none.rejected = std::move(plan.rejected);
    none.rejected.push_back({Rejection::kLoader, std::move(why)});
    plan = std::move(none);
  }
  plan = done(std::move(plan));
  if (!plan.has_loader() || plan.work.uses.empty()) return plan;
  std::string why = misfit_of_warps(plan, std::move(*as_it_stands), number);
  if (why.empty()) return plan;
  const auto alone = std::ranges::find_if(plan.work.uses, [](const plan::Use& use) { return code_of(*use.of).part; });
  return rejected(alone->of->word, std::move(why));
}

// The plan of an offer, if there is one that keeps to it; else why its schedule cannot be, where that is the reason.
std::optional<Plan> taken(const plan::Offer& offer, const TileProgram& program, size_t number,
                          const target::GpuTarget& target, const Limits& limits, const Hints& hints,
                          std::vector<Rejection>& rejected) {
  std::optional<Plan> best;
  std::optional<double> least = offer.below;
  for (const plan::Wish& wish : offer.wishes) {
    Hints own = hints;
    own.wish(wish);
    Plan plan = decide(program, number, target, limits, own);
    if (!plan.has_loader()) {
      for (Rejection& r : plan.rejected)
        if (r.of == wish.of->word) rejected.push_back(std::move(r));
      continue;
    }
    if (!least) return plan;
    const auto price = plan::price(program, program.launches[number], plan, target);
    if (price && price->microseconds < *least) least = price->microseconds, best = std::move(plan);
  }
  return best;
}

// By how much longer than its price a loop takes whose rows all threads gather, at least (gathered rows of an H200 in
// steps of 32 elements: 2.1 to 2.4).
constexpr double kGatheredByAll = 2;

// Whether all threads gather the rows of the launch in less time than the loader of the plan, which brings a few at a
// turn.
bool gathers_better_alone(const TileProgram& program, size_t number, const target::GpuTarget& target,
                          const Plan& plan) {
  const auto loads = std::ranges::find(plan.roles, plan::Role::Job::Load, &plan::Role::job);
  const bool gathers =
      loads != plan.roles.end() && loads->loading > 1 && !plan.takes(plan::Role::Takes::IterationsInTurn);
  if (!gathers) return false;
  const Launch& launch = program.launches[number];
  const auto by_loader = plan::price(program, launch, plan, target), by_all = plan::price(program, launch, {}, target);
  return by_loader && by_all && by_all->microseconds * kGatheredByAll < by_loader->microseconds;
}

// With a schedule that nobody asks for, if it is worth it, and nothing is said of which tiles a block takes.
Plan decide_unasked(const TileProgram& program, size_t number, const target::GpuTarget& target, const Limits& limits,
                    const Hints& hints) {
  Plan alone = decide(program, number, target, limits, hints);
  if (!target.has.tma || hints.work || hints.takes || hints.no_loader) return alone;
  if (gathers_better_alone(program, number, target, alone))
    return rejected(Rejection::kLoader, "all threads gather rows in less time");
  std::vector<Rejection> rejected;
  for (const Schedule* s : plan::kSchedules) {
    if (!s->offer || limits.without == s) continue;
    const plan::Offer offer = s->offer({program, program.launches[number], target, limits, hints}, alone);
    if (auto plan = taken(offer, program, number, target, limits, hints, rejected)) return std::move(*plan);
  }
  alone.rejected.insert(alone.rejected.end(), rejected.begin(), rejected.end());
  return alone;
}

}  // namespace

Plan decide_plan(const TileProgram& program, size_t number, const target::GpuTarget& target, const Limits& limits) {
  TileProgram own = program;
  Launch& launch = own.launches[number];
  // Loaders run ahead of the program's statements, so that a wait for other launches comes before the roles.
  launch.body = without_launch_order(launch.body);
  const Hints hints = plan::parse_hints(launch.plan, program.location(launch.location));
  if (const plan::Fit fit = limits.fits ? plan::fit_rows(own, launch, target, hints) : plan::Fit{}; fit.any()) {
    launch = fitted(own, launch, fit);
    Plan plan = decide_unasked(own, number, target, limits, hints);
    plan.fit = fit;
    return plan;
  }
  if (target.has.tma && limits.slots >= 1 && limits.fits) {
    std::vector<plan::Fit> fits{plan::fit_registers(own, launch, limits.live, hints)};
    if (!fits[0].half_steps_of.valid())
      if (plan::Fit both = plan::fit_steps(own, launch, target, hints); both.any()) {
        both.threads = fits[0].threads, both.live = fits[0].live, both.own = fits[0].own;
        fits.insert(fits.begin(), both);
      }
    for (const plan::Fit& fit : fits) {
      if (!fit.any()) continue;
      TileProgram scratch = own;
      scratch.launches[number] = fitted(scratch, launch, fit);
      Plan plan = decide_unasked(scratch, number, target, limits, hints);
      plan.fit = fit;
      if (plan.has_loader()) return plan;
    }
  }
  return decide_unasked(own, number, target, limits, hints);
}

}  // namespace tilewright::passes
