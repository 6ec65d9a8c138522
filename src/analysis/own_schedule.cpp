#include "analysis/own_schedule.h"

#include "ir/any_in.h"
#include "ir/cluster.h"
#include "ir/effects.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

std::string why_as_written(const Launch& launch) {
  std::string why;
  walk(launch.body, [&](const Stmt& s) {
    const auto* copy = s.as<Copy>();
    if (s.as<Role>() || s.as<Arrive>() || s.as<Wait>() || s.as<Expect>() || (copy && !copy->completion.immediate()))
      why = "the program schedules itself";
    if (s.as<Return>()) why = "threads return early";
    if (const auto* n = s.as<Sync>(); n && n->scope != SyncScope::Warp && n->scope != SyncScope::Block)
      why = "the program synchronizes more than the block";
    if (const auto* n = s.as<Vote>(); n && n->kind >= VoteKind::BlockAny) why = "all threads of the block vote";
  });
  return why;
}

std::string why_no_cluster(const Launch& launch, bool by_dimension) {
  constexpr size_t most = 3;  // dimensions of a grid
  if (cluster_blocks(launch) > 1) return "the launch has clusters of its own";
  return by_dimension && launch.grid.size() == most ? "its grid has three dimensions already" : "";
}

bool has_own_layouts(const ProgramTables& p, const Launch& launch) {
  return std::ranges::any_of(used_buffers(launch.body), [&](BufferId id) {
    return p.buffer(id).space != Space::Global && p.buffer(id).layout.kind != LayoutHint::None;
  });
}

bool counts_no_threads(const ProgramTables& p, const Launch& launch) {
  if (used_vars(launch.body).contains(launch.thread[0])) return false;
  if (holds<Shuffle, Vote, ir::Role, Print, Call, SetRegisters, Arrive, Wait>(launch.body)) return false;
  const auto meets_others = [](const Stmt& s) { return s.as<Sync>() && s.as<Sync>()->scope != SyncScope::Block; };
  if (any_in(launch.body, meets_others)) return false;
  if (any_in(launch.body, [](const Stmt& s) { return s.as<Atomic>() && s.as<Atomic>()->each; })) return false;
  return std::ranges::none_of(used_buffers(launch.body),
                              [&](BufferId id) { return p.buffer(p.root(id)).space == Space::Local; });
}

}  // namespace tilewright::analysis
