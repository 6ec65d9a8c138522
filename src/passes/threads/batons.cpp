#include "passes/threads/batons.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"

namespace tilewright::passes {

using namespace ir;

namespace {

enum class Next : uint8_t { Either, Wait, Arrive, Over, Broken };

// One role's dealings with one pair of mbarriers.
class Turns {
 public:
  explicit Turns(BufferId pair) : pair_(pair) {}

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
    for (const Stmt& s : body)
      if (state != Next::Broken) state = after(s, state);
    return state;
  }
  Next after(const Stmt& s, Next state) {
    if (const Element* e = arrival_of_warps(s)) return is_of_pair(*e) ? event(true, *e, state) : state;
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
  std::optional<int64_t> own_, other_;
  bool arrives_first_ = false;
  Next next_ = Next::Either;
};

}  // namespace

const Element* arrival_of_warps(const Stmt& s) {
  const auto* n = s.as<If>();
  if (!n || !n->else_body.empty() || n->then_body.size() != 1) return nullptr;
  const auto* arrive = n->then_body[0].as<Arrive>();
  const auto* first = n->condition.as<Binary>();
  const auto* lane = first && first->op == BinaryOp::Eq ? first->a.as<Binary>() : nullptr;
  const bool fits = arrive && !arrive->cta && lane && lane->op == BinaryOp::FloorMod && lane->a.as<Var>() &&
                    constant_int(lane->b) == kWarpThreads && constant_int(first->b) == 0;
  return fits ? &arrive->barrier : nullptr;
}

std::set<BufferId> batons_of(const ProgramTables& p, const Launch& launch) {
  std::set<BufferId> out, used;
  std::vector<std::set<BufferId>> used_by;
  for (const Stmt& s : launch.body) used.merge(std::set(used_by.emplace_back(used_buffers({s}))));
  for (BufferId id : used) {
    const Buffer& b = p.buffer(id);
    if (b.space != Space::Barrier || b.arrive_counts.size() != 2) continue;
    std::vector<std::pair<const Role*, Turns>> users;
    bool fits = true;
    for (size_t i = 0; i < launch.body.size(); ++i) {
      if (!used_by[i].contains(id)) continue;
      const auto* role = launch.body[i].as<Role>();
      fits = fits && role;
      if (!role) continue;
      users.emplace_back(role, Turns(id));
      Turns& turns = users.back().second;
      turns.run(role->body);
      fits = fits && turns.alternates() &&
             b.arrive_counts[static_cast<size_t>(turns.own())] == (role->end - role->begin) / kWarpThreads;
    }
    if (fits && users.size() == 2 && users[0].second.own() != users[1].second.own() &&
        users[0].second.arrives_first() != users[1].second.arrives_first())
      out.insert(id);
  }
  return out;
}

}  // namespace tilewright::passes
