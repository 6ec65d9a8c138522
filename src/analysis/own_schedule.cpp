#include "analysis/own_schedule.h"

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

bool has_own_layouts(const ProgramTables& p, const Launch& launch) {
  return std::ranges::any_of(used_buffers(launch.body), [&](BufferId id) {
    return p.buffer(id).space != Space::Global && p.buffer(id).layout.kind != LayoutHint::None;
  });
}

}  // namespace tilewright::analysis
