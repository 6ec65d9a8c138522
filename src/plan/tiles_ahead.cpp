#include "plan/tiles_ahead.h"

#include <algorithm>
#include <set>

#include "analysis/accessed.h"
#include "analysis/async_copies.h"
#include "ir/any_in.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "plan/decide.h"
#include "plan/residency.h"
#include "scalar/functions.h"

namespace tilewright::plan {

using namespace ir;

namespace {

constexpr int64_t kSlots = 2, kMostSlots = 16;  // one is computed, one comes; no program gains from more

// Whether the copy fills the tile from global memory, before anything else in the body is done with it, in a way that
// may run ahead: all such copies go in front of the rest, and what cannot run ahead there would only stand too early.
bool begins(const ProgramTables& p, const Copy& c, const Body& before) {
  const Buffer& to = p.buffer(c.to.buffer);
  if (to.space == Space::Shared)
    return analysis::comes_by_async_copies(c, to, p) && !analysis::accessed_by(before, p).contains(c.to.buffer);
  Buffer arrives = to;  // and is taken from there
  arrives.type = p.buffer(c.from.buffer).type, arrives.space = Space::Shared;
  return to.space == Space::Fragment && analysis::comes_by_async_copies(c, arrives, p);
}

// Whether the names in the copy's place are those of the launch, or of values: results of atomics, say, come with what
// stands before it.
bool is_known_ahead(const Copy& c, const Body& before) {
  std::set<VarId> told;
  const auto uses_told = [&](const Expr& e) {
    const std::set<VarId> used = used_vars(e);
    return std::any_of(used.begin(), used.end(), [&](VarId v) { return told.contains(v); });
  };
  for (const Stmt& s : before) {
    const auto* let = s.as<Let>();
    if (!let || uses_told(let->value)) told.merge(bound_vars({s}));
  }
  return std::none_of(c.from.min.begin(), c.from.min.end(), uses_told);
}

// Shared memory that is left to what lowering adds: parts of reductions.
constexpr int64_t kLeft = 8 * 1024;
// What a block brings at a time, from which on waiting for it is worth two slots.
constexpr int64_t kWorthBringing = 64 * 1024;

// Whether all elements of a tile go through a function that takes the special unit, or many instructions: what brings
// the next tile meanwhile has time to. Measured on an H100 (bench/results/2026-11-28-rows.json): softmax of 64 KB rows
// takes 763 us by 256, 512 and 1,024 threads, for 1,049, 823 and 843; RMSNorm 747, 748 and 753 for 791, 725 and 715,
// and softmax of 16 KB rows by 1,024 threads 957 for 897.
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
  bool computes = false;
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

std::optional<Plan> bring_tiles_ahead(const ProgramTables& p, const Launch& launch, const target::GpuTarget& target,
                                      const Hints& hints, std::string& why) {
  if (holds<Gemm>(launch.body)) return std::nullopt;
  why = why_as_written(launch);
  if (!why.empty()) return std::nullopt;
  Plan plan;
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
  Body before;
  for (const Stmt& s : launch.body) {
    const auto* c = s.as<Copy>();
    if (c && begins(p, *c, before) && is_known_ahead(*c, before) && seen.insert(c->to.buffer).second) {
      const int64_t bytes = elements_on_chip(p.buffer(c->to.buffer)) * p.buffer(c->from.buffer).type.bits / 8;
      const int64_t slots = hints.slots_of({c->to.buffer}, p).value_or(kSlots);
      if (slots < kSlots || slots > most) {
        why = fmt::format("a ring of such tiles has {} to {} slots, not {}", kSlots, most, slots);
        return std::nullopt;
      }
      plan.rings.push_back({{c->to.buffer}, slots, bytes, true});
    }
    before.push_back(s);
  }
  if (plan.rings.empty()) {
    why = "no tile comes from global memory in a copy of its own at the top of the body";
    return std::nullopt;
  }
  return plan;
}

}  // namespace

std::optional<Plan> tiles_ahead(const ProgramTables& p, const Launch& launch, const target::GpuTarget& target,
                                const Hints& hints, std::string& why) {
  if (hints.work == Work::Kind::Persistent) return bring_tiles_ahead(p, launch, target, hints, why);
  if (hints.work) return std::nullopt;
  std::string ignored;  // nobody has asked for it
  auto plan = bring_tiles_ahead(p, launch, target, hints, ignored);
  return plan && is_worth_it(p, launch, *plan, target) ? std::move(plan) : std::nullopt;
}

}  // namespace tilewright::plan
