#include "passes/threads/shared_reuse.h"

#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "passes/threads/collectives.h"

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

// Shared buffers that instructions may still use which threads have issued and not waited for.
class OpenUses {
 public:
  explicit OpenUses(const ThreadProgram& p) : p_(p) {}

  void statement(const Stmt& s) {
    if (const auto* n = s.as<Wgmma>())
      for (const Region* r : {&n->a, &n->b}) open(queues_[Queue::Wgmma], r->buffer);
    if (const auto* n = s.as<Store>(); n && n->queue != Queue::None) open(queues_[n->queue], n->to.buffer);
    if (const auto* n = s.as<Copy>(); n && !n->completion.immediate()) {
      const BufferId barrier = n->completion.barrier.buffer;
      std::set<BufferId>& list = barrier.valid() ? barriers_[p_.root(barrier)] : queues_[n->completion.queue];
      open(list, n->from.buffer), open(list, n->to.buffer);
    }
    if (const auto* n = s.as<Arrive>(); n && n->queue != Queue::None)
      barriers_[p_.root(n->barrier.buffer)].merge(std::exchange(queues_[n->queue], {}));
    if (const auto* n = s.as<Drain>(); n && n->pending == 0) queues_.erase(n->queue);
    std::map<Queue, std::set<BufferId>> after;
    const auto before = queues_;
    bool inside = false;
    for_each_body(s, [&](const Body& body) {  // which some threads do not run, or no thread
      inside = true, queues_ = before;
      for (const Stmt& x : body) statement(x);
      for (const auto& [queue, list] : queues_) after[queue].insert(list.begin(), list.end());
    });
    if (!inside) return;
    for (const auto& [queue, list] : before) after[queue].insert(list.begin(), list.end());
    queues_ = std::move(after);
  }
  // What threads have not waited for, but cp.async and stores by TMA: who lays another buffer there waits for those.
  std::set<BufferId> now() const {
    std::set<BufferId> out;
    for (const auto& [queue, list] : queues_)
      if (queue != Queue::CpAsync && queue != Queue::BulkStore) out.insert(list.begin(), list.end());
    return out;
  }
  // Those, and what the statement may wait for.
  std::set<BufferId> before(const Stmt& s) const {
    std::set<BufferId> out = now();
    walk({s}, [&](const Stmt& x) {
      const auto* n = x.as<Wait>();
      const auto found = n ? barriers_.find(p_.root(n->barrier.buffer)) : barriers_.end();
      if (found != barriers_.end()) out.insert(found->second.begin(), found->second.end());
    });
    return out;
  }

 private:
  void open(std::set<BufferId>& list, BufferId id) const {
    if (p_.buffer(id).space == Space::Shared) list.insert(p_.root(id));
  }

  const ThreadProgram& p_;
  std::map<Queue, std::set<BufferId>> queues_;
  std::map<BufferId, std::set<BufferId>> barriers_;  // on whose phases they complete
};

}  // namespace

SharedLives::SharedLives(const ThreadProgram& program, const Launch& launch, const NamedBarriers& barriers,
                         RolesOf owner)
    : program_(program), launch_(launch), barriers_(barriers), owner_(owner), top_(uses_of(launch.body)) {
  walk(launch.body, [&](const Stmt& s) {
    if (s.as<Return>()) may_wait_ = false;
    const auto* copy = s.as<Copy>();
    if (copy && copy->completion.queue == Queue::BulkStore) stored_from_.insert(program.root(copy->from.buffer));
    if (copy && analysis::is_by_tma(*copy)) landing_.insert(program.root(copy->to.buffer));
    if (copy && copy->completion.queue == Queue::CpAsync) by_cp_async_.insert(program.root(copy->to.buffer));
    if (const auto* n = s.as<Store>(); n && n->queue == Queue::CpAsync) by_cp_async_.insert(program.root(n->to.buffer));
    if (s.as<Wgmma>() || (copy && analysis::is_by_tma(*copy))) return;
    for (const Effect& e : effects_of(s).list)
      if (e.region.valid()) touched_.insert(program.root(e.region.buffer));
  });
  for (const Buffer& b : program.buffers)
    if (b.cta) written_by_peers_.insert(b.root);
  for (size_t i = 0; i < launch.body.size(); ++i)
    if (const auto* role = launch.body[i].as<Role>()) roles_[i] = uses_of(role->body);
}

// Of a turn of a loop: what its end leaves open is used there, too.
SharedLives::Uses SharedLives::uses_of(const Body& body, bool in_turn) const {
  Uses out;
  OpenUses open(program_);
  for (size_t i = 0; i < body.size(); ++i) {
    std::set<BufferId> roots = used_roots({body[i]}, program_);
    roots.merge(open.before(body[i]));
    open.statement(body[i]);
    for (BufferId id : roots)
      if (program_.buffer(id).space == Space::Shared) out[id].push_back(i);
  }
  for (BufferId id : in_turn ? open.now() : std::set<BufferId>{}) out[id].push_back(body.size());
  return out;
}

std::optional<Seam> SharedLives::seam(BufferId early, BufferId late) const {
  auto out = unfenced(early, late);
  if (!out) return out;
  out->fence = touched_.contains(early) && (landing_.contains(late) || written_by_peers_.contains(late));
  out->drain = by_cp_async_.contains(early);
  out->stored = stored_from_.contains(early) || (out->of_turn && stored_from_.contains(late));
  return out;
}

std::optional<Seam> SharedLives::unfenced(BufferId early, BufferId late) const {
  if (!may_wait_ || written_by_peers_.contains(early) || !top_.contains(early) || !top_.contains(late))
    return std::nullopt;
  const std::vector<size_t>&first = top_.at(early), &second = top_.at(late);
  if (first.back() < second.front()) {
    // Roles that follow each other run side by side: none waits for all of another.
    bool beside = true;
    for (size_t i = first.back(); i <= second.front(); ++i) beside = beside && roles_.contains(i);
    return !beside && is_told_to_peers(launch_.body, second.front(), late) ? std::optional(Seam{{}, second.front()})
                                                                           : std::nullopt;
  }
  if (owner_ == RolesOf::Program || second.size() != 1 || !roles_.contains(second[0])) return std::nullopt;
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
  if (first->second.back() >= begin) return in_turns(role, early, late);
  return is_told_to_peers(launch_.body[role].as<Role>()->body, begin, late) ? std::optional(Seam{role, begin})
                                                                            : std::nullopt;
}

// Of buffers that only the role's loop over tiles uses: a block finds nothing that it left there in another turn.
std::optional<Seam> SharedLives::in_turns(size_t role, BufferId early, BufferId late) const {
  const std::vector<size_t>&first = roles_.at(role).at(early), &second = roles_.at(role).at(late);
  if (first.size() != 1 || second != first || top_.at(early).size() != 1) return std::nullopt;
  const auto lands = [&](BufferId id) {
    return landing_.contains(id) || by_cp_async_.contains(id) || written_by_peers_.contains(id);
  };
  const auto* loop = launch_.body[role].as<Role>()->body[first[0]].as<For>();
  if (owner_ != RolesOf::TurnsOfTiles || !loop || lands(early) || lands(late)) return std::nullopt;
  const Uses uses = uses_of(loop->body, true);
  const size_t begin = uses.at(late).front();
  if (uses.at(early).back() >= begin || uses.at(late).back() >= loop->body.size()) return std::nullopt;
  return Seam{.role = role, .at = first[0], .of_turn = begin};
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
  const auto body_of = [&](const Seam& seam) -> const Body& {
    const Body& own = seam.role ? launch.body[*seam.role].as<Role>()->body : launch.body;
    return seam.of_turn ? own[seam.at].as<For>()->body : own;
  };
  std::set<Seam> all = seams;
  for (Seam end : seams)
    if (end.of_turn) end.of_turn = body_of(end).size(), all.insert(end);
  std::vector<Seam> places;  // with all that is wanted at each
  for (const Seam& seam : all) {
    const auto place = [](const Seam& x) { return std::tie(x.role, x.at, x.of_turn); };
    if (places.empty() || place(places.back()) != place(seam)) places.push_back(seam);
    places.back().fence |= seam.fence, places.back().drain |= seam.drain, places.back().stored |= seam.stored;
  }
  const auto wait = [](Body body, size_t place, const Seam& seam, const Sync& meeting, LocationId at) {
    Body all;
    if (seam.drain) all.push_back(make_stmt(Drain{Queue::CpAsync, 0}, at));
    if (seam.stored) all.push_back(make_stmt(Drain{Queue::BulkStore, 0}, at));
    if (seam.fence) all.push_back(make_stmt(Fence{FenceProxy::Async, {}}, at));
    all.push_back(make_stmt(meeting, at));
    body.insert(body.begin() + static_cast<int64_t>(place), all.begin(), all.end());
    return body;
  };
  for (auto seam = places.rbegin(); seam != places.rend(); ++seam) {
    if (!seam->role) {
      launch.body = wait(launch.body, seam->at, *seam, Sync{}, launch.body[seam->at]->location);
      continue;
    }
    const Stmt& statement = launch.body[*seam->role];
    Role role = *statement.as<Role>();
    const Sync meeting = *meeting_of(role, barriers);
    if (seam->of_turn) {
      const Stmt loop = role.body[seam->at];
      For turns = *loop.as<For>();
      turns.body = wait(std::move(turns.body), *seam->of_turn, *seam, meeting, loop->location);
      role.body[seam->at] = make_stmt(std::move(turns), loop->location);
    } else {
      role.body = wait(std::move(role.body), seam->at, *seam, meeting, statement->location);
    }
    launch.body[*seam->role] = make_stmt(std::move(role), statement->location);
  }
}

}  // namespace tilewright::passes
