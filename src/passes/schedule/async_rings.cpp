#include "passes/schedule/async_rings.h"
#include "analysis/accessed.h"
#include "analysis/async_copies.h"
#include "analysis/body_order.h"

#include <set>

#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/assume_fast_calls.h"
#include "passes/lower/intervals.h"
#include "passes/schedule/ring.h"

namespace tilewright::passes {

using namespace ir;
using analysis::accesses_of;
using analysis::names_as_a_whole;

namespace {

constexpr int64_t kFewestSlots = 2, kMostSlots = 16;  // of a ring: no program gains from more
// What a block's tiles may come to for a loop of one stage to have two slots: a block more on most multiprocessors.
constexpr int64_t kLittle = 65536;

class PipelinedLoops {
 public:
  PipelinedLoops(TileProgram& p, Launch& launch, std::vector<std::pair<LocationId, std::string>>& notes)
      : p_(p), launch_(launch), notes_(notes) {}

  Body body(const Body& in, bool in_role) {
    return rewrite(in, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<For>();
      if (!n || n->kind != LoopKind::Pipelined) return std::nullopt;
      std::string why = in_role ? "it stands in a role" : misfit(*n);
      if (why.empty()) return ring(*n, s->location);
      if (n->stages > 1) notes_.emplace_back(s->location, std::move(why));
      return std::nullopt;
    });
  }

 private:
  // How often statements of a body write the buffer.
  int writes(const Body& body, BufferId id) const {
    int count = 0;
    walk(body, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list)
        count +=
            e.access != Access::Read && e.region.valid() && analysis::may_overlap(p_.root(e.region.buffer), id, p_);
    });
    return count;
  }
  bool is_plain(const Copy& c) const { return analysis::comes_by_async_copies(c, p_.buffer(c.to.buffer), p_); }
  // The copies at the head of the loop, and what comes with them.
  size_t leading(const For& n) const {
    size_t count = 0;
    while (count < n.body.size() && n.body[count].as<Copy>() && is_plain(*n.body[count].as<Copy>())) ++count;
    return count;
  }
  std::string misfit(const For& n) const {
    if (n.stages < kFewestSlots && !wants_two(n)) return "it has one stage";
    const size_t count = leading(n);
    if (count == 0) return "it does not begin with copies of whole 16-byte rows from global to shared memory";
    if (may_jump(n.body)) return "its body jumps";
    std::set<BufferId> filled;
    for (size_t i = 0; i < count; ++i) {
      const Copy& c = *n.body[i].as<Copy>();
      const std::string& name = p_.buffer(c.to.buffer).name;
      if (!filled.insert(c.to.buffer).second || writes(n.body, c.to.buffer) != 1)
        return fmt::format("'{}' is written twice", name);
      if (names_as_a_whole(launch_.body, c.to.buffer)) return fmt::format("'{}' is used as a whole", name);
      if (accesses_of(launch_.body, c.to.buffer, p_) != accesses_of(n.body, c.to.buffer, p_))
        return fmt::format("'{}' is used outside of the loop", name);
      if (writes(n.body, p_.root(c.from.buffer)) > 0)
        return fmt::format("'{}' is written in the loop", p_.buffer(c.from.buffer).name);
      bool reads = false;  // what the copies' places depend on must be known ahead
      for (const Expr& e : c.from.min) walk(e, [&](const Expr& x) { reads = reads || x.as<Load>(); });
      if (reads) return fmt::format("where '{}' is read depends on memory", p_.buffer(c.from.buffer).name);
    }
    return "";
  }

  // A product of one stage would wait for memory in every turn, with all of its block: the next turn's tiles come
  // beside it, where they take little room.
  bool wants_two(const For& n) const {
    bool multiplies = false;
    walk(n.body, [&](const Stmt& s) { multiplies = multiplies || s.as<Gemm>() || s.as<Mma>(); });
    if (n.stages != 1 || !multiplies) return false;
    int64_t bytes = 0;
    for (BufferId id : used_roots(launch_.body, p_))
      if (p_.buffer(id).space == Space::Shared) bytes += bytes_on_chip(p_.buffer(id));
    for (size_t i = 0; i < leading(n); ++i) bytes += bytes_on_chip(p_.buffer(n.body[i].as<Copy>()->to.buffer));
    return bytes <= kLittle;
  }

  Body ring(const For& n, LocationId at) {
    const size_t count = leading(n);
    // More than there are turns would stay empty.
    const int64_t turns = std::max(constant_int(n.extent).value_or(kMostSlots), kFewestSlots);
    const int64_t slots = std::min({std::max(n.stages, kFewestSlots), turns, kMostSlots});
    const DType type = p_.var(n.var).type;
    SlotRing ring{.slots = slots, .filled = SlotRing::Filled::CpAsync, .released = SlotRing::Released::Block};
    for (size_t i = 0; i < count; ++i) ring.tiles.push_back(n.body[i].as<Copy>()->to.buffer);
    ring = open_ring(p_, launch_, "", std::move(ring), 0);
    auto turn = [&](const Expr& step) { return Turn{binary(BinaryOp::FloorMod, step, constant(type, slots)), {}}; };
    auto in_slot = [&](const Expr& step) {
      std::map<BufferId, IntoSlots::Slot> all;
      use_slot(ring, turn(step).slot, p_, all);
      return IntoSlots(std::move(all));
    };
    // Fills the slot of iteration `step` (counted from 0), if there is one.
    auto issue = [&](const Expr& step) {
      Body copies;
      const Substitution index{{n.var, add(n.begin, step)}};
      for (size_t i = 0; i < count; ++i) {
        Copy c = *substitute(Body{n.body[i]}, index)[0].as<Copy>();
        c.to = in_slot(step).region(c.to);
        copies.push_back(make_stmt(std::move(c), n.body[i]->location));
      }
      return fill(ring, turn(step), {std::move(copies)}, at, binary(BinaryOp::Lt, step, n.extent));
    };
    Body out;
    for (int64_t s = 0; s + 1 < slots; ++s)
      for (Stmt& c : issue(constant(type, s))) out.push_back(std::move(c));
    For loop = n;
    loop.kind = LoopKind::Serial, loop.stages = 0, loop.order.clear(), loop.stage.clear();
    const Expr step = sub(var(n.var, type), n.begin);
    loop.body = wait_full(ring, turn(step), at);
    for (Stmt& c : issue(add(step, constant(type, slots - 1)))) loop.body.push_back(std::move(c));
    const Body rest(n.body.begin() + static_cast<long>(count), n.body.end());
    for (Stmt& s : in_slot(step).body(rest)) loop.body.push_back(std::move(s));
    out.push_back(make_stmt(std::move(loop), at));
    return out;
  }

  TileProgram& p_;
  Launch& launch_;
  std::vector<std::pair<LocationId, std::string>>& notes_;
};

}  // namespace

AsyncRings materialize_async_rings(TileProgram program) {
  AsyncRings out{std::move(program), {}};
  for (Launch& launch : out.program.launches) {
    bool roles = false;
    walk(launch.body, [&](const Stmt& s) { roles = roles || s.as<Role>(); });
    launch.body = PipelinedLoops(out.program, launch, out.notes).body(launch.body, roles);
  }
  return out;
}

}  // namespace tilewright::passes
