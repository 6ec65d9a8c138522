#include "passes/launch_order.h"

#include "analysis/launch_order.h"
#include "ir/effects.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;
using analysis::lets_launches_begin;
using analysis::waits_for_launches;

namespace {

bool changes_global(const Body& body, const ProgramTables& program) {
  const std::set<BufferId> changed = changed_roots(body, program);
  return std::ranges::any_of(changed, [&](BufferId id) { return program.buffer(id).space == Space::Global; });
}

}  // namespace

LaunchOrder launch_order(const Launch& launch) {
  LaunchOrder out;
  walk(launch.body, [&](const Stmt& s) {
    out.waits = out.waits || waits_for_launches(s);
    out.lets_begin = out.lets_begin || lets_launches_begin(s);
  });
  return out;
}

Body without_launch_order(const Body& body) {
  return rewrite(body, [](const Stmt& s) {
    return waits_for_launches(s) || lets_launches_begin(s) ? std::optional(Body{}) : std::nullopt;
  });
}

TileProgram drop_launch_order(TileProgram program) {
  for (Launch& launch : program.launches)
    if (launch_order(launch).any()) launch.body = without_launch_order(launch.body);
  return program;
}

Body order_around_roles(const Launch& launch, const LaunchOrder& order, const ProgramTables& program) {
  Body out;
  if (order.waits) out.push_back(make_stmt(Sync{SyncScope::Launches, {}, 0, false, true}, launch.location));
  bool roles = false;
  for (const Stmt& s : launch.body) {
    roles = roles || s.as<Role>();
    const auto* role = s.as<Role>();
    if (!role || !order.lets_begin || !changes_global(role->body, program)) {
      out.push_back(s);
      continue;
    }
    Role done = *role;
    done.body.push_back(make_stmt(Sync{SyncScope::Launches, {}, 0, true, false}, launch.location));
    out.push_back(make_stmt(std::move(done), s->location));
  }
  if (order.lets_begin && !roles)
    out.push_back(make_stmt(Sync{SyncScope::Launches, {}, 0, true, false}, launch.location));
  return out;
}

}  // namespace tilewright::passes
