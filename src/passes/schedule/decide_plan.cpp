#include "passes/schedule/decide_plan.h"

#include "analysis/load_rings.h"
#include "analysis/stored_once.h"
#include "analysis/summed_turns.h"
#include "analysis/waiting_blocks.h"
#include "ir/number_statements.h"
#include "passes/launch_order.h"
#include "passes/schedule/async_rings.h"
#include "passes/schedule/iteration_teams.h"
#include "passes/schedule/other_steps.h"
#include "passes/schedule/pair_blocks.h"
#include "passes/schedule/settle_plan.h"
#include "passes/schedule/split_turns.h"
#include "passes/schedule/stage_results.h"
#include "passes/schedule/stream_k.h"
#include "passes/schedule/tiles_ahead.h"
#include "passes/tile/clear_in_gemms.h"
#include "plan/fit_registers.h"
#include "plan/fit_steps.h"
#include "plan/pairs.h"
#include "plan/price.h"
#include "plan/split_turns.h"
#include "plan/tiles_ahead.h"

namespace tilewright::passes {

using namespace ir;
using plan::Hints;
using plan::Limits;
using plan::Plan;
using plan::Rejection;

namespace {

// Whether the copies that a plan has run ahead can: empty, or why not.
std::string misfit_ahead(const Plan& plan, TileProgram program, size_t number) {
  bring_ahead(plan, program, program.launches[number]);
  program.launches = {program.launches[number]};  // what the others are told is not asked
  const AsyncRings rings = materialize_async_rings(std::move(program));
  return rings.notes.empty() ? "" : rings.notes.front().second;
}

// How many blocks take runs of turns; 0: they take tiles.
int64_t streaming_blocks(const target::GpuTarget& target, const Hints& hints) {
  return hints.work == plan::Work::Kind::StreamK ? hints.blocks.value_or(target.multiprocessors) : 0;
}

// Of the launch as it stands in the program.
Plan decide(TileProgram scratch, size_t number, const target::GpuTarget& target, const Limits& limits,
            const Hints& hints, int64_t parts) {
  Launch& launch = scratch.launches[number];
  const bool waits = analysis::blocks_that_wait(scratch, launch) > 1;
  const bool several = hints.work == plan::Work::Kind::Persistent || hints.work == plan::Work::Kind::StreamK;
  if (waits && (several || parts > 1 || hints.pairs)) {
    Plan none;
    none.rejected.push_back({Rejection::Of::Loader, "its blocks wait for each other, and each has one tile"});
    return none;
  }
  std::string why_not_ahead;
  if (auto plan = waits ? std::nullopt : tiles_ahead(scratch, launch, target, hints, why_not_ahead)) {
    why_not_ahead = misfit_ahead(*plan, scratch, number);
    if (why_not_ahead.empty()) return std::move(*plan);
    if (hints.work != plan::Work::Kind::Persistent) why_not_ahead.clear();
  }
  if (!why_not_ahead.empty()) {
    Plan none;
    none.rejected.push_back({Rejection::Of::TilesAhead, std::move(why_not_ahead)});
    return none;
  }
  if (std::string why = why_no_roles(launch, target, limits); !why.empty()) {
    Plan none;
    none.rejected.push_back({Rejection::Of::Loader, std::move(why)});
    return none;
  }
  const analysis::StoredTensors stored = analysis::stored_tensors(scratch, launch);
  const Body own = std::exchange(launch.body, clear_in_gemms(scratch, launch.body));
  const bool clears = !std::ranges::equal(own, launch.body, [](const Stmt& a, const Stmt& b) { return &*a == &*b; });
  if (parts > 1) {
    std::string why;
    if (!analysis::split_loop(scratch, launch, parts, why)) {
      Plan none;
      none.rejected.push_back({Rejection::Of::Split, std::move(why)});
      return none;
    }
    split_turns(scratch, launch, parts);
  }
  const int64_t streams = streaming_blocks(target, hints);
  if (streams > 0) {
    std::string why;
    if (streams > target.multiprocessors)
      why = fmt::format("{} blocks do not run at once on {} multiprocessors", streams, target.multiprocessors);
    else if (analysis::tensors_stand_by_names(scratch, launch))
      why = "where a tensor lies is computed by the tile of the grid";
    else
      analysis::streamed_loop(scratch, launch, why);
    if (!why.empty()) {
      Plan none;
      none.rejected.push_back({Rejection::Of::StreamK, std::move(why)});
      return none;
    }
    stream_k(scratch, launch, streams);
  }
  std::optional<plan::SharedTile> shared;
  if (hints.pairs) {
    std::string why;
    shared = plan::shared_tile(scratch, launch, *hints.pairs, why);
    if (!shared) {
      Plan none;
      none.rejected.push_back({Rejection::Of::Pairs, std::move(why)});
      return none;
    }
    pair_blocks(scratch, launch, *shared);
  }
  number_statements(launch);
  std::string no_teams;
  const auto done = [&](Plan plan) {
    plan.clears = clears;
    if (parts > 1 && plan.has_loader()) plan.work.kind = plan::Work::Kind::Split, plan.work.parts = parts;
    if (streams > 0 && plan.has_loader()) plan.work.kind = plan::Work::Kind::StreamK, plan.work.blocks = streams;
    if (shared && plan.has_loader()) plan.work.shared = shared->tile;
    if (!no_teams.empty())
      plan.rejected.insert(plan.rejected.begin(), {Rejection::Of::IterationTeams, std::move(no_teams)});
    return plan;
  };
  using Takes = plan::Role::Takes;
  if (limits.by_iteration && parts == 1 && streams == 0 && !hints.no_loader &&
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
  // Of the blocks that there are now.
  if (parts > 1 || streams > 0) own_hints.work = plan::Work::Kind::OneTile, own_hints.blocks.reset();
  Plan plan = loader_plan(scratch, launch, target, limits, own_hints);
  if (!plan.has_loader()) return done(std::move(plan));
  if (streams > 0) plan.epilogue.by_columns = false;  // a block has results of several tiles
  if (std::string why = settle(plan, scratch, number, stored, target); !why.empty()) {
    Plan none;
    none.rejected = std::move(plan.rejected);
    none.rejected.push_back({Rejection::Of::Loader, std::move(why)});
    plan = std::move(none);
  }
  return done(std::move(plan));
}

// Where the L2 cache is busy longer than all else: with a tile that pairs of blocks share, if its price is less than so
// much of the other's, in launches of that long. Clusters begin and end together, which the price does not know.
struct WorthPairs {
  double price, microseconds;
};
// Rows that are no whole lines. Measured on an H100: 5000 cubed in 128x256 tiles 384 us for 535, in 256x64 545 for 905,
// in 128x32 1035 for 1744; 4224x640x296 in 128x160 tiles, 9 us by its price, took 17.6.
constexpr WorthPairs kRaggedLines = {0.92, 60};
// Whole lines (bench/results/2026-11-28-pairs.json and -lines.json, an H200): of 52 products within these bounds 47 are
// faster, by 20% in geometric mean over all (8192 cubed in 256x32 tiles 2.54 ms for 4.74, in 128x64 2.14 for 2.52),
// five slower by 1 to 7%; of 40 above the price 29 are no faster, of 15 below the time 10. Products of a sparse matrix
// are not among them: three that the price had at 0.86 took 1.00 to 1.03 of the time.
constexpr WorthPairs kWholeLines = {0.91, 95};

bool has_sparse_product(const Launch& launch) {
  bool found = false;
  walk(launch.body, [&](const Stmt& s) {
    const auto* gemm = s.as<Gemm>();
    found = found || (gemm && gemm->is_sparse());
  });
  return found;
}

std::optional<Plan> in_pairs(const Plan& alone, const TileProgram& program, size_t number,
                             const target::GpuTarget& target, const Limits& limits, Hints hints) {
  const Launch& launch = program.launches[number];
  const auto price = plan::price(program, launch, alone, target);
  if (!price || price->limit != "l2") return std::nullopt;
  if (price->over_lines == 0 && has_sparse_product(launch)) return std::nullopt;
  const WorthPairs& worth = price->over_lines == 0 ? kWholeLines : kRaggedLines;
  if (price->microseconds < worth.microseconds) return std::nullopt;
  double least = price->microseconds * worth.price;
  std::optional<Plan> best;
  for (const std::string& tile : plan::tiles_to_share(program, launch)) {
    hints.pairs = tile;
    Plan paired = decide(program, number, target, limits, hints, 1);
    const auto its = paired.has_loader() ? plan::price(program, launch, paired, target) : std::nullopt;
    if (its && its->microseconds < least) least = its->microseconds, best = std::move(paired);
  }
  return best;
}

// With turns that blocks share, if there is such a plan, and nothing is said of which tiles a block takes.
Plan decide(const TileProgram& program, size_t number, const target::GpuTarget& target, const Limits& limits,
            const Hints& hints) {
  if (target.has.tma && limits.split && !hints.work && !hints.takes && !hints.no_loader)
    if (const int64_t parts = plan::blocks_to_share(program, program.launches[number], target); parts > 1)
      if (Plan plan = decide(program, number, target, limits, hints, parts); plan.has_loader()) return plan;
  Plan plan = decide(program, number, target, limits, hints, hints.parts.value_or(1));
  const bool open =
      !hints.work && !hints.takes && plan.has_loader() && !plan.takes(plan::Role::Takes::IterationsInTurn);
  if (open)
    if (auto paired = in_pairs(plan, program, number, target, limits, hints)) return std::move(*paired);
  return plan;
}

}  // namespace

Plan decide_plan(const TileProgram& program, size_t number, const target::GpuTarget& target, const Limits& limits) {
  TileProgram own = program;
  Launch& launch = own.launches[number];
  // Loaders run ahead of the program's statements, so that a wait for other launches comes before the roles.
  launch.body = without_launch_order(launch.body);
  const Hints hints = plan::parse_hints(launch.plan, program.location(launch.location));
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
      Plan plan = decide(std::move(scratch), number, target, limits, hints);
      plan.fit = fit;
      if (plan.has_loader()) return plan;
    }
  }
  return decide(std::move(own), number, target, limits, hints);
}

}  // namespace tilewright::passes
