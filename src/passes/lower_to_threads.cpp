#include "passes/lower_to_threads.h"

namespace tilewright::passes {

using namespace ir;
using plan::Staging;
using Takes = plan::Role::Takes;

namespace {

constexpr int64_t kMaxSlots = PlanLimits{}.slots;  // of a ring: no program gains from more
constexpr int64_t kEnoughSlots = 3;                // measured: a gemm with three slots loses nothing to one with four
constexpr int64_t kFewerRegisters = 160;           // of tiles, where the device compiler found too few for more
constexpr int64_t kAnyRegisters = std::numeric_limits<int64_t>::max();

// Whether blocks end with the result of one tile: it may lie where the rings were.
bool ends_with_a_tile(const std::vector<plan::Plan>& plans) {
  return std::all_of(plans.begin(), plans.end(), [](const plan::Plan& p) {
    return p.has_loader() && p.work == plan::Work{} && !p.takes(Takes::IterationsInTurn) && !p.epilogue.staged.empty();
  });
}

// The best plan that fits: results staged beside rings that still hide latencies; shorter rings without; no loader.
void lower_best(const GpuProgram& tiles, bool reuse, ThreadLowering& result, PlanLimits limits, GpuObserver observer) {
  const std::optional<Misfit>& misfit = result.misfit;
  auto lower = [&](PlanLimits limits, bool over) {
    static_cast<GpuProgram&>(result) = tiles;
    result.limits = limits, result.over = over, result.last_plan = limits.slots == 0;
    run_gpu_passes(result, gpu_plan_passes(), observer);
    result.tried.push_back({limits, over, misfit ? misfit->why.message : ""});
  };
  auto fits = [&](PlanLimits limits) {
    lower(limits, reuse);
    if (misfit && misfit->of == Misfit::Of::Memory && !reuse && ends_with_a_tile(result.plans)) lower(limits, true);
    return !misfit;
  };
  const PlanLimits begin = limits;
  PlanLimits own = limits;  // with the program's threads and steps, whatever registers they want
  own.live = kAnyRegisters;
  while (limits.slots >= (limits.side_by_side ? 1 : 2)) {
    if (fits(limits)) return;
    const Staging next = limits.staging == Staging::Whole    ? Staging::Chunks
                         : limits.staging == Staging::Chunks ? Staging::None
                                                             : Staging::Straight;
    int64_t longest = 0;
    if (misfit->of == Misfit::Of::Memory && limits.next_tile &&
        std::any_of(result.plans.begin(), result.plans.end(),
                    [](const plan::Plan& p) { return p.next_tile_ahead(); })) {
      limits.next_tile = false;
      continue;
    }
    for (const plan::Plan& plan : result.plans)
      for (const plan::Ring& ring : plan.rings) longest = std::max(longest, ring.slots);
    if (std::any_of(result.plans.begin(), result.plans.end(),
                    [](const plan::Plan& p) { return p.takes(Takes::IterationsInTurn); })) {
      if (misfit->of == Misfit::Of::Memory && longest > 2)
        limits.slots = longest - 1;
      else
        limits.by_iteration = false, limits.slots = kMaxSlots;
    } else if (misfit->of == Misfit::Of::AsyncGemm) {
      if (!limits.overlap) break;  // the program's own
      limits.overlap = false;
    } else if (misfit->of == Misfit::Of::Staging) {
      if (limits.staging == Staging::Straight) break;
      limits.staging = next;
    } else {
      limits.slots = std::min(limits.slots, longest) - 1;
      const bool shared = std::any_of(result.plans.begin(), result.plans.end(),
                                      [](const plan::Plan& p) { return p.work.blocks_per_multiprocessor > 1; });
      if (shared && limits.staging == Staging::Chunks && limits.slots < kEnoughSlots) {
        if (limits.slots >= 1) continue;  // the other block works while this one's loader brings the next
        const bool overlap = limits.overlap;
        limits = begin;
        limits.overlap = overlap, limits.side_by_side = false;
        continue;
      }
      const int64_t fewest = limits.staging == Staging::None ? 2 : kEnoughSlots;
      if (limits.staging != Staging::Straight && limits.slots < fewest) limits.staging = next, limits.slots = kMaxSlots;
    }
  }
  if (std::any_of(result.plans.begin(), result.plans.end(), [](const plan::Plan& p) { return p.fit.any(); }) &&
      limits.live != kAnyRegisters)
    return lower_best(tiles, reuse, result, own, observer);
  fits({.slots = 0});
}

}  // namespace

ThreadLowering lower_to_threads(const TileProgram& program, const target::GpuTarget& target, PlanLimits limits,
                                GpuObserver observer) {
  GpuProgram tiles{.tiles = program, .target = target};
  run_gpu_passes(tiles, gpu_tile_passes(), observer);
  ThreadLowering result;
  lower_best(tiles, false, result, limits, observer);
  // Buffers lie over each other only where nothing else helps: it takes waits between what uses them.
  if (result.misfit && result.misfit->of == Misfit::Of::Memory) lower_best(tiles, true, result, limits, observer);
  if (result.misfit) throw CompileError(std::move(result.misfit->why));
  return result;
}

std::span<const PlanLimits> limits_in_turn() {
  static const PlanLimits all[] = {{},
                                   {.one_branch = true},
                                   {.lean_loader = true},
                                   {.lean_loader = true, .live = kFewerRegisters},
                                   {.overlap = false, .lean_loader = true},
                                   {.overlap = false, .lean_loader = true, .live = kFewerRegisters}};
  return all;
}

}  // namespace tilewright::passes
