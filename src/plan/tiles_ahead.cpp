// Blocks that take one tile after the other, whose threads bring the next one while they compute this.
//
// A plan without roles for a launch without products, of which a multiprocessor holds one block at a time: nothing else
// is there to use the memory while it computes. Its rings are the tiles that a block brings from global memory once, at
// the top of its body. Taken where hints ask for it, and for large tiles that blocks draw, or whose elements go through
// functions such as exp.
#include <algorithm>
#include <set>

#include "analysis/async_copies.h"
#include "analysis/own_schedule.h"
#include "ir/any_in.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "plan/residency.h"
#include "plan/schedule.h"
#include "plan/words.h"
#include "scalar/functions.h"

namespace tilewright::plan {

using namespace ir;

namespace {

constexpr int64_t kSlots = 2, kMostSlots = 16;  // one is computed, one comes; no program gains from more

// Shared memory that is left to what lowering adds: parts of reductions.
constexpr int64_t kLeft = 8 * 1024;
// What a block brings at a time, from which on waiting for it is worth two slots.
constexpr int64_t kWorthBringing = 40 * 1024;

// Whether tiles are drawn, or all elements of one go through a function that takes the special unit, or many
// instructions: what brings the next tile meanwhile has time to (bench/results/2026-11-28-rows.json, an H100: softmax
// of 64 KB rows by 512 threads 763 us for 823, RMSNorm 748 for 725, softmax of 16 KB rows by 1,024 threads 957 for 897;
// 2026-11-30-rows-3.json, an H200: RMSNorm of rows of 40, 48, 64 KB that are drawn 521, 523, 526 us, as written 517,
// 575, 525).
bool is_worth_it(const ProgramTables& p, const Launch& launch, const Plan& plan, const target::GpuTarget& target) {
  int64_t brought = 0, room = target.shared_bytes - kLeft, elements = 0;
  for (const Ring& r : plan.rings) {
    const Buffer& tile = p.buffer(r.tiles[0]);
    brought += r.bytes, room -= r.slots * r.bytes;
    if (tile.space == Space::Shared) room += r.bytes;  // counted below
    elements = std::max(elements, elements_on_chip(tile));
  }
  for (BufferId id : used_roots(launch.body, p))
    if (p.buffer(id).space == Space::Shared) room -= bytes_on_chip(p.buffer(id));
  if (brought < kWorthBringing || room < 0) return false;
  bool computes = plan.work.drawn;
  walk(launch.body, [&](const Stmt& s) {
    const auto* map = s.as<Map>();
    if (!map) return;
    int64_t points = 1;
    for (const Expr& e : map->extents) points *= constant_int(e).value_or(1);
    if (points < elements) return;
    walk_exprs(map->body, [&](const Expr& e) {
      const auto* f = e.as<Intrinsic>();
      computes = computes || (f && info(f->function).max_ulp > 0);
    });
  });
  return computes;
}

// One slot more where there is room: a slot is filled again a turn after it was read, as long as so many others come.
void spare_slot(Plan& plan, const ProgramTables& p, const Launch& launch, const target::GpuTarget& target,
                const Hints& hints) {
  int64_t room = target.shared_bytes - kLeft;
  for (BufferId id : used_roots(launch.body, p))
    if (p.buffer(id).space == Space::Shared) room -= bytes_on_chip(p.buffer(id));
  for (const Ring& r : plan.rings) {
    if (hints.slots_of(r.tiles, p)) return;
    room -= (r.slots + 1) * r.bytes - (p.buffer(r.tiles[0]).space == Space::Shared ? r.bytes : 0);
  }
  if (room < 0) return;
  for (Ring& r : plan.rings) ++r.slots;
}

// Waves of tiles from which on blocks draw them: of fewer all have the same number, or one more (not measured below 8).
constexpr int64_t kWavesToDraw = 4;

// Why blocks do not draw their tiles; empty: they can. Multiprocessors are not equally fast: on an H200 the softmax of
// 32,768 columns takes 557 us where each has 124 rows or one more, 530 where they are drawn.
std::string why_dealt(const ProgramTables& p, const target::GpuTarget& target, const std::vector<Copy>& copies) {
  if (!target.has.tma) return "the target has no TMA";
  return analysis::arrive_in_bulk(copies, p) ? "" : "TMA does not bring them in few copies";
}

std::optional<Plan> bring_tiles_ahead(const ProgramTables& p, const Launch& launch, const target::GpuTarget& target,
                                      const Hints& hints, std::string& why) {
  if (holds<Gemm>(launch.body)) return std::nullopt;
  why = analysis::why_as_written(launch);
  if (!why.empty()) return std::nullopt;
  Plan plan;
  plan.whole = &kTilesAhead;
  plan.work = {Work::Kind::Persistent, hints.blocks.value_or(target.multiprocessors)};
  // Of a number that a call gives, there are mostly more.
  const int64_t tiles = constant_int(blocks_of(launch)).value_or(kMostSlots * plan.work.blocks);
  if (tiles <= plan.work.blocks) {
    why = "there are no more tiles than multiprocessors";
    return std::nullopt;
  }
  if (const int64_t beside = blocks_beside(p, launch, target); beside > 1) {
    why = fmt::format("{} blocks run beside each other on a multiprocessor, as it is", beside);
    return std::nullopt;
  }
  // More than there are turns would stay empty.
  const int64_t most = std::clamp((tiles + plan.work.blocks - 1) / plan.work.blocks, kSlots, kMostSlots);
  std::set<BufferId> seen;
  std::vector<Copy> copies;
  Body before;
  for (const Stmt& s : launch.body) {
    const auto* c = s.as<Copy>();
    if (c && analysis::may_run_ahead(*c, before, p) && seen.insert(c->to.buffer).second) {
      const int64_t bytes = elements_on_chip(p.buffer(c->to.buffer)) * p.buffer(c->from.buffer).type.bits / 8;
      const int64_t slots = hints.slots_of({c->to.buffer}, p).value_or(kSlots);
      if (slots < kSlots || slots > most) {
        why = fmt::format("a ring of such tiles has {} to {} slots, not {}", kSlots, most, slots);
        return std::nullopt;
      }
      plan.rings.push_back({{c->to.buffer}, slots, bytes, true});
      copies.push_back(*c);
    }
    before.push_back(s);
  }
  if (plan.rings.empty()) {
    why = "no tile comes from global memory in a copy of its own at the top of the body";
    return std::nullopt;
  }
  const std::string dealt = why_dealt(p, target, copies);
  if (hints.drawn == true && !dealt.empty()) {
    why = "blocks do not draw tiles: " + dealt;
    return std::nullopt;
  }
  plan.work.drawn = hints.drawn.value_or(dealt.empty() && tiles >= kWavesToDraw * plan.work.blocks);
  if (plan.work.drawn) spare_slot(plan, p, launch, target, hints);
  return plan;
}

std::optional<Plan> plan_whole(const Request& of, std::string& why) {
  if (of.hints.work && of.hints.work != Work::Kind::Persistent) return std::nullopt;
  auto plan = bring_tiles_ahead(of.program, of.launch, of.target, of.hints, why);
  if (of.hints.work) return plan;
  why.clear();  // nobody has asked for it
  return plan && is_worth_it(of.program, of.launch, *plan, of.target) ? std::move(plan) : std::nullopt;
}

std::vector<std::string> otherwise(const Plan& plan, const ProgramTables&, const Launch&) {
  if (plan.whole == &kTilesAhead) return {};
  return {fmt::format("work {}", word(kWorkWords, Work::Kind::Persistent))};
}

}  // namespace

constinit const Schedule kTilesAhead = {
    .word = "tiles ahead",
    .says = "one block a multiprocessor, which takes one tile after the other and brings the next meanwhile",
    .whole = plan_whole,
    .otherwise = otherwise,
};

}  // namespace tilewright::plan
