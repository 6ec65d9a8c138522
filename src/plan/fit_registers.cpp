#include "plan/fit_registers.h"

#include "analysis/live_registers.h"
#include "analysis/own_schedule.h"
#include "ir/any_in.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "support/diagnostic.h"
#include "target/wgmma.h"

namespace tilewright::plan {

using namespace ir;
using analysis::HalfSteps;

namespace {

constexpr int64_t kGroup = target::kWarpgroupThreads;
constexpr int64_t kManyBlocks = 4;  // a multiprocessor, with which it has always others beside one (assumed)

bool writes_fragment(const ProgramTables& p, const Map& map) {
  return any_in(map.body, [&](const Stmt& s) {
    const auto* store = s.as<Store>();
    return store && p.buffer(store->to.buffer).space == Space::Fragment;
  });
}

// Whether two warpgroups take half of the rows of every product each; of one that only leaves for memory, columns.
bool divides_for_two(const ProgramTables& p, const Launch& launch, const HalfSteps* halves) {
  std::set<BufferId> kept;  // fragments that are read by more than what takes them to memory
  walk(launch.body, [&](const Stmt& s) {
    const auto* copy = s.as<Copy>();
    const bool leaves = copy && p.buffer(copy->to.buffer).space != Space::Fragment;
    if (is_tile_op(s) && !leaves)
      for (const Effect& e : own_effects_of(s).list)
        if (e.access == Access::Read) kept.insert(e.region.buffer);
    if (const auto* m = s.as<Map>(); m && writes_fragment(p, *m))
      for (BufferId id : used_buffers(m->body)) kept.insert(id);
  });
  return !any_in(launch.body, [&](const Stmt& s) {
    const auto* g = s.as<Gemm>();
    if (!g) return false;
    const size_t rank = g->c.extent.size();
    const auto extent = [&](size_t dim) {
      const bool is_cut = halves && halves->cut_of(g->c.buffer) == dim;
      return constant_int(g->c.extent[dim]).value_or(0) / (is_cut ? 2 : 1);
    };
    const int64_t rows = extent(rank - 2), columns = extent(rank - 1);
    const bool by_rows = rows % (2 * target::kWgmmaRows) == 0;
    const bool by_columns = rows % target::kWgmmaRows == 0 && columns % 16 == 0 && !kept.contains(g->c.buffer) &&
                            p.buffer(g->a.buffer).space != Space::Fragment;
    return !by_rows && !by_columns;
  });
}

}  // namespace

Fit fit_registers(const ProgramTables& program, const Launch& launch, int64_t most, const Hints& hints) {
  if (hints.own_threads_and_steps) return {};
  if (!holds<Gemm>(launch.body) || launch.threads.size() != 1 || launch.threads[0] > 2 * kGroup) return {};
  const int64_t own = analysis::live_registers(program, launch, launch.threads[0]);
  const bool fixed = hints.fits_are_fixed();
  if ((own <= most && !fixed) || analysis::has_own_layouts(program, launch)) return {};
  std::optional<HalfSteps> halved;
  for (size_t i = 0; i < launch.body.size() && !halved; ++i) halved = analysis::half_steps(program, launch, i);
  std::vector<const HalfSteps*> steps{nullptr};
  if (halved) steps.push_back(&*halved);
  struct Way {
    const HalfSteps* halves;
    int64_t threads;
  };
  std::vector<Way> ways;
  if (halved) ways.push_back({&*halved, launch.threads[0]});
  if (launch.threads[0] == kGroup && analysis::counts_no_threads(program, launch))
    for (const HalfSteps* halves : steps)
      if (divides_for_two(program, launch, halves)) ways.push_back({halves, 2 * kGroup});
  for (const Way& way : ways) {
    const bool is_fixed =
        way.threads == hints.threads.value_or(launch.threads[0]) &&
        (way.halves ? hints.half_steps_of == program.var(way.halves->loop).name : !hints.half_steps_of);
    const int64_t live = analysis::live_registers(program, launch, way.threads, way.halves);
    if (fixed ? !is_fixed : live > most) continue;
    Fit fit;
    if (way.halves) fit.half_steps_of = way.halves->loop;
    fit.threads = way.threads == launch.threads[0] ? 0 : way.threads, fit.live = live, fit.own = own;
    return fit;
  }
  return {};
}

int64_t fewest_threads(const ProgramTables& program, const Launch& launch, int64_t parts) {
  constexpr int64_t fewest = 128, registers = 72;  // 64 columns of a row, and what is known of it
  const int64_t own = launch.thread_count();
  if (!analysis::counts_no_threads(program, launch)) return own;
  int64_t threads = fewest;
  while (threads < own && analysis::live_registers(program, launch, threads) > registers * parts) threads *= 2;
  return std::min(threads, own);
}

Fit fit_rows(const ProgramTables& program, const Launch& launch, const target::GpuTarget& target, const Hints& hints) {
  if (hints.own_threads_and_steps || holds<Gemm, For, While>(launch.body) || !holds<Reduce>(launch.body)) return {};
  if (launch.threads.size() != 1 || launch.min_blocks > 0 || analysis::has_own_layouts(program, launch)) return {};
  const auto blocks = constant_int(blocks_of(launch));
  const bool many = blocks && *blocks >= kManyBlocks * target.multiprocessors;
  if (!hints.threads && (!many || !analysis::why_as_written(launch).empty())) return {};
  if (hints.threads && !analysis::counts_no_threads(program, launch)) return {};
  Fit fit;
  fit.threads = hints.threads.value_or(fewest_threads(program, launch));
  if (fit.threads == launch.threads[0]) return {};
  fit.live = analysis::live_registers(program, launch, fit.threads);
  fit.own = analysis::live_registers(program, launch, launch.threads[0]);
  return fit;
}

}  // namespace tilewright::plan
