#include "passes/schedule/hand_over.h"

#include "ir/effects.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/named_barriers.h"
#include "passes/role_groups.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Where a role touches a buffer: statements of its body by number.
struct Use {
  std::set<size_t> reads, writes;
  bool async = false;
};

class HandOvers {
 public:
  HandOvers(const Launch& launch, const ProgramTables& p) : p_(p), barriers_(launch) {
    walk(launch.body, [&](const Stmt& s) { all_come_ = all_come_ && !s.as<Return>(); });
  }

  std::vector<HandOver> run(Body& body) {
    if (!all_come_) return {};
    for (size_t i = 0; i < body.size();) {
      RoleGroup roles;
      const size_t end = std::max(end_of_roles(body, i), i + 1);
      for (; i < end; ++i)
        if (body[i].as<Role>()) add_innermost_roles(body[i], roles);
      if (roles.size() > 1) group(roles);
    }
    body = rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
      const auto at = added_.find(s->id);
      if (at == added_.end()) return std::nullopt;
      Role role = *s.as<Role>();
      for (auto i = at->second.rbegin(); i != at->second.rend(); ++i)
        role.body.insert(role.body.begin() + static_cast<std::ptrdiff_t>(i->first), i->second.begin(), i->second.end());
      return Body{make_stmt(std::move(role), s->location)};
    });
    return std::move(found_);
  }

 private:
  std::map<BufferId, Use> uses_of(const Body& body) const {
    std::map<BufferId, Use> out;
    for (size_t i = 0; i < body.size(); ++i)
      walk(Body{body[i]}, [&](const Stmt& s) {
        for (const Effect& e : effects_of(s).list) {
          if (e.access == Access::Order || !e.region.valid()) continue;
          Use& use = out[p_.root(e.region.buffer)];
          use.async = use.async || e.proxy != Proxy::Generic || !e.completion.immediate();
          (e.access == Access::Read ? use.reads : use.writes).insert(i);
        }
      });
    return out;
  }
  // Whether another thread may learn of something by the statement.
  static bool tells(const Stmt& s) {
    bool out = false;
    walk(Body{s}, [&](const Stmt& x) {
      const auto* sync = x.as<Sync>();
      const bool in_block = sync && sync->scope != SyncScope::Warp && sync->scope != SyncScope::Launches;
      out = out || x.as<Arrive>() || in_block;
    });
    return out;
  }
  static bool tells_from(const Body& body, size_t first) {
    return std::any_of(body.begin() + static_cast<std::ptrdiff_t>(first), body.end(), tells);
  }

  static const Role& role(const Stmt* s) { return *s->as<Role>(); }

  void group(const RoleGroup& roles) {
    std::vector<std::map<BufferId, Use>> uses;
    for (const Stmt* s : roles) uses.push_back(uses_of(role(s).body));
    for (size_t writer = 0; writer < roles.size(); ++writer)
      for (const auto& [buffer, use] : uses[writer])
        if (p_.buffer(buffer).space == Space::Shared) hand_over(buffer, writer, roles, uses);
  }
  void hand_over(BufferId buffer, size_t writer, const RoleGroup& roles,
                 const std::vector<std::map<BufferId, Use>>& uses) {
    const Use& written = uses[writer].at(buffer);
    const Role& from = role(roles[writer]);
    if (written.writes.size() != 1 || written.async) return;
    const size_t write = *written.writes.begin();
    if (tells(from.body[write]) || tells_from(from.body, write + 1)) return;
    std::vector<size_t> readers;
    int64_t threads = from.end - from.begin;
    for (size_t r = 0; r < roles.size(); ++r) {
      const auto use = uses[r].find(buffer);
      if (r == writer || use == uses[r].end()) continue;
      const Role& to = role(roles[r]);
      const bool apart = to.end <= from.begin || from.end <= to.begin;
      if (!apart || use->second.async || !use->second.writes.empty()) return;
      if (tells_from(to.body, *use->second.reads.begin())) return;
      readers.push_back(r), threads += to.end - to.begin;
    }
    if (readers.empty()) return;
    const auto number = barriers_.take();
    if (!number) return;
    Sync sync;
    sync.scope = SyncScope::Named, sync.barrier = constant(*number), sync.count = threads;
    for (size_t r : readers) {
      const size_t read = *uses[r].at(buffer).reads.begin();
      const LocationId at = role(roles[r]).body[read]->location;
      added_[(*roles[r])->id][read].push_back(make_stmt(sync, at));
      found_.push_back({buffer, at});
    }
    sync.arrive_only = true;
    added_[(*roles[writer])->id][write + 1].push_back(make_stmt(sync, from.body[write]->location));
  }

  const ProgramTables& p_;
  bool all_come_ = true;  // threads that have returned would be waited for
  NamedBarriers barriers_;
  std::map<StmtId, std::map<size_t, Body>> added_;  // to a role, before the statement at this place
  std::vector<HandOver> found_;
};

}  // namespace

std::vector<HandOver> order_hand_overs(Launch& launch, const ProgramTables& program) {
  number_statements(launch);
  return HandOvers(launch, program).run(launch.body);
}

}  // namespace tilewright::passes
