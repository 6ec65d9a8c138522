#include "passes/threads/shared_reuse.h"

#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The barrier that the threads of a role wait at among themselves.
const Sync* barrier_of(const Role& role) {
  const Sync* found = nullptr;
  walk(role.body, [&](const Stmt& s) {
    const auto* sync = s.as<Sync>();
    if (sync && sync->scope == SyncScope::Named && !sync->arrive_only && sync->count == role.end - role.begin)
      found = sync;
  });
  return found;
}

}  // namespace

SharedLives::SharedLives(const ThreadProgram& program, const Launch& launch, bool own_roles)
    : program_(program), launch_(launch), own_roles_(own_roles), top_(uses_of(launch.body)) {
  walk(launch.body, [&](const Stmt& s) {
    if (s.as<Return>()) may_wait_ = false;
    if (const auto* copy = s.as<Copy>(); copy && copy->completion.queue == Queue::BulkStore)
      stored_from_.insert(program.root(copy->from.buffer));
  });
  for (size_t i = 0; i < launch.body.size(); ++i)
    if (const auto* role = launch.body[i].as<Role>()) roles_[i] = uses_of(role->body);
}

SharedLives::Uses SharedLives::uses_of(const Body& body) const {
  Uses out;
  for (size_t i = 0; i < body.size(); ++i) {
    std::set<BufferId> roots;
    for (BufferId id : used_buffers({body[i]})) roots.insert(program_.root(id));
    for (BufferId id : roots)
      if (program_.buffer(id).space == Space::Shared) out[id].push_back(i);
  }
  return out;
}

std::optional<Seam> SharedLives::seam(BufferId early, BufferId late) const {
  if (!may_wait_ || stored_from_.contains(early) || !top_.contains(early) || !top_.contains(late)) return std::nullopt;
  const std::vector<size_t>&first = top_.at(early), &second = top_.at(late);
  if (first.back() < second.front()) return Seam{{}, second.front()};
  if (!own_roles_ || second.size() != 1 || !roles_.contains(second[0])) return std::nullopt;
  // Other roles only fill `early`, and what they fill is used up in this one.
  for (size_t i : first)
    if (i >= second[0] && !roles_.contains(i)) return std::nullopt;
  return in_role(second[0], early, late);
}

std::optional<Seam> SharedLives::in_role(size_t role, BufferId early, BufferId late) const {
  const Uses& uses = roles_.at(role);
  const auto first = uses.find(early);
  if (first == uses.end() || !barrier_of(*launch_.body[role].as<Role>())) return std::nullopt;
  const size_t begin = uses.at(late).front();
  return first->second.back() < begin ? std::optional(Seam{role, begin}) : std::nullopt;
}

void wait_at(Launch& launch, const std::set<Seam>& seams) {
  for (auto seam = seams.rbegin(); seam != seams.rend(); ++seam) {
    if (!seam->role) {
      launch.body.insert(launch.body.begin() + static_cast<int64_t>(seam->at),
                         make_stmt(Sync{}, launch.body[seam->at]->location));
      continue;
    }
    const Stmt& statement = launch.body[*seam->role];
    Role role = *statement.as<Role>();
    const Sync barrier = *barrier_of(role);
    role.body.insert(role.body.begin() + static_cast<int64_t>(seam->at), make_stmt(barrier, statement->location));
    launch.body[*seam->role] = make_stmt(std::move(role), statement->location);
  }
}

}  // namespace tilewright::passes
