#include "passes/threads/shared_reuse.h"

#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Where the threads of a role meet.
std::optional<Sync> meeting_of(const Role& role, const NamedBarriers& barriers) {
  const int64_t threads = role.end - role.begin;
  if (threads == kWarpThreads) return Sync{SyncScope::Warp, {}, 0, false};
  const auto number = barriers.between(role.begin, role.end);
  return number ? std::optional(Sync{SyncScope::Named, constant(*number), threads, false}) : std::nullopt;
}

}  // namespace

SharedLives::SharedLives(const ThreadProgram& program, const Launch& launch, const NamedBarriers& barriers,
                         bool own_roles)
    : program_(program), launch_(launch), barriers_(barriers), own_roles_(own_roles), top_(uses_of(launch.body)) {
  walk(launch.body, [&](const Stmt& s) {
    if (s.as<Return>()) may_wait_ = false;
    if (const auto* copy = s.as<Copy>(); copy && copy->completion.queue == Queue::BulkStore)
      stored_from_.insert(program.root(copy->from.buffer));
  });
  for (const Buffer& b : program.buffers)
    if (b.cta) written_by_peers_.insert(b.root);
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
  if (!may_wait_ || stored_from_.contains(early) || written_by_peers_.contains(early) || !top_.contains(early) ||
      !top_.contains(late))
    return std::nullopt;
  const std::vector<size_t>&first = top_.at(early), &second = top_.at(late);
  if (first.back() < second.front())
    return is_told_to_peers(launch_.body, second.front(), late) ? std::optional(Seam{{}, second.front()})
                                                                : std::nullopt;
  if (!own_roles_ || second.size() != 1 || !roles_.contains(second[0])) return std::nullopt;
  // Other roles only fill `early`, and what they fill is used up in this one.
  for (size_t i : first) {
    if (i == second[0]) continue;
    if (roles_.contains(i) ? !only_fills(i, early) : i > second[0]) return std::nullopt;
  }
  return in_role(second[0], early, late);
}

bool SharedLives::only_fills(size_t role, BufferId early) const {
  bool only = true;
  walk(launch_.body[role].as<Role>()->body, [&](const Stmt& s) {
    const auto* copy = s.as<Copy>();
    const BufferId tells = copy ? copy->completion.barrier.buffer : BufferId{};
    if (tells.valid() && program_.buffer(tells).use == BarrierUse::Full && program_.root(copy->to.buffer) == early)
      return;
    for (const Effect& e : effects_of(s).list)
      only = only && (!e.region.valid() || e.access == Access::Order || program_.root(e.region.buffer) != early);
  });
  return only;
}

std::optional<Seam> SharedLives::in_role(size_t role, BufferId early, BufferId late) const {
  const Uses& uses = roles_.at(role);
  const auto first = uses.find(early);
  if (first == uses.end() || !meeting_of(*launch_.body[role].as<Role>(), barriers_)) return std::nullopt;
  const size_t begin = uses.at(late).front();
  const bool apart = first->second.back() < begin && is_told_to_peers(launch_.body[role].as<Role>()->body, begin, late);
  return apart ? std::optional(Seam{role, begin}) : std::nullopt;
}

// What other blocks write they write when this one has told them that the place is free: in the statement before which
// its own threads meet.
bool SharedLives::is_told_to_peers(const Body& body, size_t at, BufferId late) const {
  if (!written_by_peers_.contains(late)) return true;
  bool told = false;
  walk({body[at]}, [&](const Stmt& s) {
    const auto* arrive = s.as<Arrive>();
    told = told || (arrive && arrive->cta && program_.buffer(arrive->barrier.buffer).use == BarrierUse::Empty);
  });
  return told;
}

void wait_at(Launch& launch, const NamedBarriers& barriers, const std::set<Seam>& seams) {
  for (auto seam = seams.rbegin(); seam != seams.rend(); ++seam) {
    if (!seam->role) {
      launch.body.insert(launch.body.begin() + static_cast<int64_t>(seam->at),
                         make_stmt(Sync{}, launch.body[seam->at]->location));
      continue;
    }
    const Stmt& statement = launch.body[*seam->role];
    Role role = *statement.as<Role>();
    role.body.insert(role.body.begin() + static_cast<int64_t>(seam->at),
                     make_stmt(*meeting_of(role, barriers), statement->location));
    launch.body[*seam->role] = make_stmt(std::move(role), statement->location);
  }
}

}  // namespace tilewright::passes
