#include "passes/schedule/turn_barriers.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "passes/warp_arrivals.h"

namespace tilewright::passes {

using namespace ir;

namespace {

enum class Next : uint8_t { Either, Wait, Arrive, Over, Broken };

// One role's dealings with one pair of mbarriers.
class Turns {
 public:
  Turns(BufferId pair, const Launch& launch) : pair_(pair), launch_(launch) {}

  void run(const Body& body) { next_ = after(body, Next::Either); }
  bool alternates() const { return next_ != Next::Broken && own_ && other_ && *own_ + *other_ == 1; }
  bool arrives_first() const { return arrives_first_; }
  int64_t own() const { return own_.value_or(-1); }

 private:
  bool is_of_pair(const Element& e) const { return e.buffer == pair_; }
  static void note(std::optional<int64_t>& which, const Element& e, Next& state) {
    const auto index = constant_int(e.indices[0]);
    if (!index || (which && *which != *index)) state = Next::Broken;
    which = index;
  }
  Next event(bool arrives, const Element& e, Next state) {
    if (state == Next::Either) arrives_first_ = arrives;
    const bool fits = state == Next::Either || state == (arrives ? Next::Arrive : Next::Wait);
    state = fits ? (arrives ? Next::Wait : Next::Arrive) : Next::Broken;
    note(arrives ? own_ : other_, e, state);
    return state;
  }
  Next after(const Body& body, Next state) {
    for (size_t i = 0; i < body.size() && state != Next::Broken; ++i) {
      const Arrive* arrive = body[i].as<Arrive>();
      if (arrive && arrive->by != ArriveBy::Warp) arrive = nullptr;
      if (const Arrive* spelled = spelled_arrival(body, i, launch_)) arrive = spelled, ++i;
      state = arrive && !arrive->cta && is_of_pair(arrive->barrier) ? event(true, arrive->barrier, state)
                                                                    : after(body[i], state);
    }
    return state;
  }
  Next after(const Stmt& s, Next state) {
    if (const auto* n = s.as<Wait>()) return is_of_pair(n->barrier) ? event(false, n->barrier, state) : state;
    if (const auto* n = s.as<For>()) {
      if (state == Next::Either) state = after(n->body, state);  // nothing before it, so it may as well not run at all
      return after(n->body, state) == state ? state : Next::Broken;
    }
    const auto* n = s.as<If>();
    if (!n) return used_buffers({s}).contains(pair_) ? Next::Broken : state;
    const Next then = after(n->then_body, state), otherwise = after(n->else_body, state);
    if (then == Next::Broken || otherwise == Next::Broken) return Next::Broken;
    return then == otherwise ? then : Next::Over;
  }

  const BufferId pair_;
  const Launch& launch_;
  std::optional<int64_t> own_, other_;
  bool arrives_first_ = false;
  Next next_ = Next::Either;
};

}  // namespace

void find_turn_barriers(ProgramTables& p, const Launch& launch) {
  std::set<BufferId> used;
  std::vector<std::set<BufferId>> used_by;
  for (const Stmt& s : launch.body) used.merge(std::set(used_by.emplace_back(used_buffers({s}))));
  for (BufferId id : used) {
    Buffer& b = p.buffers[id.index];
    if (b.space != Space::Barrier || b.use != BarrierUse::None || b.arrive_counts.size() != 2) continue;
    std::vector<std::pair<const Role*, Turns>> users;
    bool fits = true;
    for (size_t i = 0; i < launch.body.size(); ++i) {
      if (!used_by[i].contains(id)) continue;
      const auto* role = launch.body[i].as<Role>();
      fits = fits && role;
      if (!role) continue;
      users.emplace_back(role, Turns(id, launch));
      Turns& turns = users.back().second;
      turns.run(role->body);
      fits = fits && turns.alternates() &&
             b.arrive_counts[static_cast<size_t>(turns.own())] == (role->end - role->begin) / kWarpThreads;
    }
    if (fits && users.size() == 2 && users[0].second.own() != users[1].second.own() &&
        users[0].second.arrives_first() != users[1].second.arrives_first())
      b.use = BarrierUse::Turn;
  }
}

}  // namespace tilewright::passes
