#include "passes/role_groups.h"

#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/named_barriers.h"

namespace tilewright::passes {

using namespace ir;

namespace {

const Role& role_of(const Stmt* s) { return *s->as<Role>(); }

// Whether who comes to the statement may wait there for other threads.
bool may_wait(const Stmt& s) {
  bool out = false;
  walk(Body{s}, [&](const Stmt& x) {
    const auto* sync = x.as<Sync>();
    out = out || x.as<Wait>() || x.as<While>() || x.as<Call>() || (sync && sync->scope != SyncScope::Warp);
  });
  return out;
}

// The next barrier of the block in the role's own body from `at` on, where nothing before it waits.
std::optional<size_t> next_meeting(const Body& body, size_t at) {
  for (; at < body.size(); ++at) {
    const auto* sync = body[at].as<Sync>();
    if (sync && sync->scope == SyncScope::Block && !sync->arrive_only && !sync->wait_only) return at;
    if (may_wait(body[at])) return std::nullopt;
  }
  return std::nullopt;
}

std::set<StmtId> meetings_of(const RoleGroup& roles, int64_t threads) {
  std::set<StmtId> out;
  for (const Stmt* s : roles) threads -= role_of(s).end - role_of(s).begin;
  if (threads != 0 || roles.size() < 2) return out;
  std::vector<size_t> at(roles.size(), 0);
  for (;;) {
    std::vector<StmtId> now;
    for (size_t r = 0; r < roles.size(); ++r) {
      const auto next = next_meeting(role_of(roles[r]).body, at[r]);
      if (!next) return out;
      now.push_back(role_of(roles[r]).body[*next]->id);
      at[r] = *next + 1;
    }
    out.insert(now.begin(), now.end());
  }
}

}  // namespace

size_t end_of_roles(const Body& body, size_t first) {
  size_t end = first;
  for (; end < body.size() && body[end].as<Role>(); ++end) {
    const Role& next = *body[end].as<Role>();
    const auto begin = body.begin() + static_cast<std::ptrdiff_t>(first);
    const bool after = std::any_of(begin, body.begin() + static_cast<std::ptrdiff_t>(end), [&](const Stmt& s) {
      return s.as<Role>()->begin < next.end && next.begin < s.as<Role>()->end;
    });
    if (after) break;
  }
  return end;
}

void add_innermost_roles(const Stmt& s, RoleGroup& out) {
  const Body& body = s.as<Role>()->body;
  const bool only_roles =
      std::all_of(body.begin(), body.end(), [](const Stmt& x) { return x.as<Role>() || x.as<SetRegisters>(); });
  const bool any = std::any_of(body.begin(), body.end(), [](const Stmt& x) { return x.as<Role>() != nullptr; });
  if (!only_roles || !any) return out.push_back(&s);
  for (const Stmt& x : body)
    if (x.as<Role>()) add_innermost_roles(x, out);
}

void meet_in_roles(Launch& launch) {
  number_statements(launch);
  std::set<StmtId> meetings;
  for (size_t i = 0; i < launch.body.size();) {
    RoleGroup roles;
    const size_t end = std::max(end_of_roles(launch.body, i), i + 1);
    for (; i < end; ++i)
      if (launch.body[i].as<Role>()) add_innermost_roles(launch.body[i], roles);
    meetings.merge(meetings_of(roles, launch.thread_count()));
  }
  bool all_come = true;
  walk(launch.body, [&](const Stmt& s) { all_come = all_come && !s.as<Return>(); });
  if (meetings.empty() || !all_come) return;
  const auto number = NamedBarriers(launch).take();
  if (!number) return;
  launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
    if (!meetings.contains(s->id)) return std::nullopt;
    Sync all;
    all.scope = SyncScope::Named, all.barrier = constant(*number), all.count = launch.thread_count();
    return Body{make_stmt(std::move(all), s->location)};
  });
}

}  // namespace tilewright::passes
