#include "plan/tiles_ahead.h"

#include <algorithm>
#include <set>

#include "analysis/accessed.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "plan/decide.h"
#include "plan/residency.h"

namespace tilewright::plan {

using namespace ir;

namespace {

constexpr int64_t kSlots = 2, kMostSlots = 16;  // one is computed, one comes; no program gains from more

// Whether the copy fills the tile from global memory, before anything else in the body is done with it.
bool begins(const ProgramTables& p, const Copy& c, const Body& before) {
  const Buffer& to = p.buffer(c.to.buffer);
  if (p.buffer(p.root(c.from.buffer)).space != Space::Global || to.is_view() || !is_whole(c.to, to)) return false;
  if (to.space != Space::Fragment && to.space != Space::Shared) return false;
  return to.space == Space::Fragment || !analysis::accessed_by(before, p).contains(c.to.buffer);
}

}  // namespace

std::optional<Plan> tiles_ahead(const ProgramTables& p, const Launch& launch, const target::GpuTarget& target,
                                const Hints& hints, std::string& why) {
  if (hints.work != Work::Kind::Persistent) return std::nullopt;
  bool multiplies = false;
  walk(launch.body, [&](const Stmt& s) { multiplies = multiplies || s.as<Gemm>(); });
  if (multiplies) return std::nullopt;
  why = why_as_written(launch);
  if (!why.empty()) return std::nullopt;
  Plan plan;
  plan.work = {Work::Kind::Persistent, hints.blocks.value_or(target.multiprocessors)};
  const auto tiles = constant_int(blocks_of(launch));
  if (!tiles || *tiles <= plan.work.blocks) {
    why = "there are not known to be more tiles than multiprocessors";
    return std::nullopt;
  }
  if (const int64_t beside = blocks_beside(p, launch, target); beside > 1) {
    why = fmt::format("{} blocks run beside each other on a multiprocessor, as it is", beside);
    return std::nullopt;
  }
  // More than there are turns would stay empty.
  const int64_t most = std::clamp((*tiles + plan.work.blocks - 1) / plan.work.blocks, kSlots, kMostSlots);
  std::set<BufferId> seen;
  Body before;
  for (const Stmt& s : launch.body) {
    const auto* c = s.as<Copy>();
    if (c && begins(p, *c, before) && seen.insert(c->to.buffer).second) {
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

}  // namespace tilewright::plan
