#include "passes/plan_search.h"

#include <algorithm>

#include "ir/extent.h"
#include "passes/schedule/other_steps.h"
#include "plan/alternatives.h"
#include "plan/schedule.h"

namespace tilewright::passes {

using namespace ir;
using plan::Staging;
using Takes = plan::Role::Takes;

namespace {

constexpr int64_t kMaxSlots = plan::Limits{}.slots;  // of a ring: no program gains from more
constexpr int kMostSteps = 64;                       // over what has been tried, at once

// Where the search for a launch's plan stands: the best that fits is looked for from the top down. Results staged
// beside rings that still hide latencies come first, then shorter rings without, then no loader; buffers lie over each
// other only where nothing else helps, for it takes waits between what uses them; and where that does not help either,
// all of this again without gaps between rows, for what meets in one bank is read one after the other. Then without
// rings of rows that maps gather: such a program has run one turn after the other.
class PlanSearch {
 public:
  PlanSearch(const plan::Limits& limits, const Launch& launch)
      : first_(limits), begin_(limits), limits_(limits), knows_blocks_(constant_int(blocks_of(launch))) {
    if (!is_of_loader()) without_loader();
  }
  PlanAttempt attempt() const { return {limits_, over_, tight_, gathers_}; }

  // The next after one that did not fit, with rings of gathered rows or without. False: there is none.
  bool next(const plan::Plan& plan, bool gathered) {
    if (!reuse_ && !over_ && ends_with_a_tile(plan)) return over_ = true;
    over_ = reuse_;
    if (is_of_loader()) {
      if (const plan::Schedule* dear = too_dear(plan)) {
        limits_ = begin_, limits_.without = dear, begin_ = limits_;
        return true;
      }
      lower(plan);
      if (is_of_loader()) return true;
      if (plan.fit.any() && limits_.fits) {  // with the program's threads and steps, then
        limits_ = begin_, limits_.fits = false, begin_ = limits_;
        return true;
      }
      without_loader();
      return true;
    }
    if (reuse_ && tight_ && !gathered) return false;
    if (reuse_ && tight_)
      gathers_ = tight_ = false;
    else
      tight_ |= reuse_;
    reuse_ = over_ = !reuse_, limits_ = begin_ = first_;
    if (!is_of_loader()) without_loader();
    return true;
  }

 private:
  bool is_of_loader() const { return limits_.slots >= (limits_.side_by_side ? 1 : 2); }
  void without_loader() { limits_ = {.slots = 0}; }
  // Blocks that end with the result of one tile: it may lie where the rings were.
  static bool ends_with_a_tile(const plan::Plan& p) {
    plan::Work work = p.work;
    work.uses.clear();  // what another block of a cluster brings has been waited for as well
    return p.has_loader() && work == plan::Work{} && !p.work.gathers_tiles() && !p.takes(Takes::IterationsInTurn) &&
           !p.epilogue.staged.empty();
  }

  // A schedule that keeps rings that hide latencies, or is not taken; null: there is none, or they do.
  const plan::Schedule* too_dear(const plan::Plan& p) const {
    if (limits_.staging < Staging::None) return nullptr;
    if (std::ranges::any_of(p.rings, [](const plan::Ring& r) { return r.slots > plan::kEnoughSlots; })) return nullptr;
    for (const plan::Use& use : p.work.uses)
      if (use.of->gives_way && use.of != limits_.without) return use.of;
    return nullptr;
  }

  // The limits below those that did not do.
  void lower(const plan::Plan& plan) {
    if (!plan.why_no_staging().empty()) limits_.staging = std::max(limits_.staging, plan.epilogue.how);
    const Staging next = limits_.staging == Staging::Whole  ? Staging::Chunks
                         : plan::in_chunks(limits_.staging) ? Staging::None
                                                            : Staging::Straight;
    if (limits_.next_tile && plan.next_tile_ahead()) {
      limits_.next_tile = false;
      return;
    }
    int64_t longest = 0;
    for (const plan::Ring& ring : plan.rings) longest = std::max(longest, ring.slots);
    if (limits_.second_slots && limits_.slots == 1 && longest > 1) {
      limits_.second_slots = false;
      return;
    }
    if (plan.takes(Takes::IterationsInTurn)) {
      limits_.slots = std::min(limits_.slots, longest) - 1;
      if (limits_.slots < 2) limits_.by_iteration = false, limits_.slots = kMaxSlots;
      return;
    }
    limits_.slots = std::min(limits_.slots, longest) - 1;
    if (plan.work.blocks_per_multiprocessor > 1 && plan::in_chunks(limits_.staging) &&
        limits_.slots < plan::kEnoughSlots) {
      // The other block works while this one's loader brings the next. Of a number that a call gives there may be none.
      if (limits_.slots >= (knows_blocks_ ? 1 : 2)) return;
      // The program's own line may want them beside each other all the same.
      if (limits_.side_by_side) {
        limits_ = begin_;
        limits_.side_by_side = false;
        return;
      }
    }
    // A slot of several steps at once hides as much as so many of one. Blocks share a multiprocessor if there is room
    // for enough slots of whatever is in them (decide.cpp).
    const int64_t at_once = plan.work.blocks_per_multiprocessor > 1 ? 1 : plan.fit.at_once;
    const int64_t enough = std::max<int64_t>((plan::kEnoughSlots + at_once - 1) / at_once, 2);
    const int64_t fewest = limits_.staging == Staging::None ? 2 : enough;
    if (limits_.staging != Staging::Straight && limits_.slots < fewest)
      limits_.staging = next, limits_.slots = kMaxSlots;
  }

  const plan::Limits first_;
  plan::Limits begin_, limits_;
  const bool knows_blocks_;  // how many there are
  bool reuse_ = false;       // nothing has fitted without
  bool over_ = false;
  bool tight_ = false;   // nothing has fitted with gaps
  bool gathers_ = true;  // something may fit with rings of gathered rows
};

// What differs between two plans, whatever was rejected on the way.
bool is_same(plan::Plan a, plan::Plan b) {
  a.rejected.clear(), b.rejected.clear();
  return a == b;
}

TileProgram with_line(TileProgram program, size_t launch, const std::string& line) {
  program.launches[launch].plan.push_back(line);
  return program;
}

// All lines of the launch are met, by another plan than the one that was taken.
bool is_another(const plan::Plan& found, const plan::Plan& taken, TileProgram program, size_t launch) {
  const Launch l = program.launches[launch];
  fitted(program, l, found.fit);  // the plan speaks of tiles that it makes
  return !is_same(found, taken) &&
         !plan::first_unmet(plan::parse_hints(l.plan, program.location(l.location)), found, program);
}

}  // namespace

ThreadLowering search_plans(const TileProgram& program, const target::GpuTarget& target, const plan::Limits& limits,
                            GpuObserver observer) {
  GpuProgram tiles{.tiles = program, .target = target, .attempts = {}};
  for (Buffer& b : tiles.tiles.buffers) b.use = BarrierUse::None;  // a text may say what it does not hold
  run_gpu_passes(tiles, gpu_tile_passes(), observer);
  std::vector<PlanSearch> searches;
  for (const Launch& launch : program.launches) searches.emplace_back(limits, launch);
  ThreadLowering out;
  while (true) {
    static_cast<GpuProgram&>(out) = tiles;
    for (const PlanSearch& search : searches) out.attempts.push_back(search.attempt());
    run_gpu_passes(out, gpu_plan_passes(), observer);
    if (!out.misfit) break;
    const size_t launch = out.misfit->launch;
    out.tried.push_back({launch, out.attempts[launch], out.misfit->why.message});
    PlanSearch& search = searches[launch];
    // A search that comes by where it was before goes on from there, so that it comes to an end.
    const auto is_new = [&](const TriedPlan& t) { return t.launch != launch || t.attempt != search.attempt(); };
    bool found = false;
    for (int steps = 0; !found && steps < kMostSteps; ++steps) {
      if (!search.next(out.plans[launch], out.gathering.contains(launch))) break;
      found = std::ranges::all_of(out.tried, is_new);
    }
    if (found) continue;
    const Launch& l = program.launches[launch];
    for (const std::string& line : l.plan)
      out.misfit->why.notes.push_back(
          {fmt::format("its plan is to have the line '{}'", line), program.location(l.location)});
    throw CompileError(std::move(out.misfit->why));
  }
  for (size_t i = 0; i < searches.size(); ++i) out.tried.push_back({i, out.attempts[i], ""});
  return out;
}

std::optional<plan::Price> price_of(const TileProgram& program, size_t launch, const plan::Plan& plan,
                                    const target::GpuTarget& target, const Substitution& known,
                                    const target::Machine* machine) {
  if (!plan.fit.any()) return plan::price(program, program.launches[launch], plan, target, known, machine);
  TileProgram own = program;
  const Launch l = fitted(own, program.launches[launch], plan.fit);
  return plan::price(own, l, plan, target, known, machine);
}

std::vector<PricedPlan> price_plans(const TileProgram& program, const ThreadLowering& taken, const Substitution& known,
                                    size_t most) {
  GpuProgram tiles{.tiles = program, .target = taken.target, .attempts = {}};
  run_gpu_passes(tiles, gpu_tile_passes(), [](auto&&...) {});
  std::vector<PricedPlan> out;
  for (size_t i = 0; i < taken.plans.size(); ++i) {
    const auto price = [&](const TileProgram& p, const plan::Plan& plan) {
      return price_of(p, i, plan, taken.target, known);
    };
    PricedPlan& own = out.emplace_back(price(tiles.tiles, taken.plans[i]));
    if (!own.price) continue;
    std::vector<NextPlan> wanted;
    for (const std::string& line : plan::lines_otherwise(taken.plans[i], tiles.tiles, tiles.tiles.launches[i])) {
      const TileProgram fixed = with_line(tiles.tiles, i, line);
      try {
        const plan::Plan plan = decide_plan(fixed, i, taken.target, {});
        const auto found = price(fixed, plan);
        if (found && is_another(plan, taken.plans[i], fixed, i)) wanted.push_back({line, *found});
      } catch (const CompileError&) {
        continue;  // the program's own lines say otherwise
      }
    }
    const auto micros = [](const NextPlan& next) { return next.price.microseconds; };
    std::ranges::stable_sort(wanted, {}, micros);
    // What fits is known of what has been lowered.
    for (NextPlan& next : wanted) {
      if (own.next.size() == most) break;
      try {
        const plan::Plan plan =
            search_plans(with_line(program, i, next.line), taken.target, {}, [](auto&&...) {}).plans[i];
        // The plan speaks of tiles that passes have made.
        if (!is_another(plan, taken.plans[i], with_line(tiles.tiles, i, next.line), i)) continue;
        own.next.push_back({std::move(next.line), *price(tiles.tiles, plan)});
      } catch (const CompileError&) {
        continue;  // nothing with this line fits
      }
    }
    std::ranges::stable_sort(own.next, {}, micros);
  }
  return out;
}

}  // namespace tilewright::passes
