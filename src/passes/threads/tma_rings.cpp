#include "passes/threads/tma_rings.h"

#include <set>

#include "analysis/stored_once.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "passes/launch_order.h"
#include "passes/threads/clear_in_gemms.h"
#include "passes/threads/fit_registers.h"
#include "passes/threads/iteration_teams.h"
#include "passes/threads/late_waits.h"
#include "passes/threads/overlapped_products.h"
#include "passes/threads/ring_sides.h"
#include "passes/threads/role_code.h"
#include "passes/threads/stage_results.h"
#include "passes/threads/walk_tiles.h"
#include "target/wgmma.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Registers of a loader's and of the others' threads, by the warpgroups that compute (65,536 in all; PTX, setmaxnreg).
struct Registers {
  int64_t loader, math;
};
constexpr Registers kRegisters[] = {{0, 0}, {0, 0}, {40, 232}, {32, 160}};
// For accumulators of more than kManyAccumulators a thread.
constexpr Registers kOfManyAccumulators = {24, 240};
constexpr int64_t kManyAccumulators = 192;
// Of two blocks a multiprocessor, one warpgroup of each of which computes.
constexpr Registers kSideBySide = {24, 232};
constexpr int64_t kWide =
    128;  // accumulators a thread that, with what is made of them, want a multiprocessor's registers
constexpr int64_t kManyOfOne = 192;  // registers of products beyond which there is no room for two turns' values
constexpr Registers kOfSymbols = {56, 224};  // where the loader computes addresses from extents or indices it is given

constexpr const char* kNoRoom = "rings of two slots do not fit in shared memory";

class Specializer {
 public:
  Specializer(TileProgram& p, Launch& launch, const target::GpuTarget& target, RingLimits limits)
      : p_(p), launch_(launch), target_(target), limits_(limits) {}

  RingPlan run() {
    if (std::string why = misfit(); !why.empty()) return refused(std::move(why));
    const std::set<BufferId> stored_once = analysis::stored_once(p_, launch_);
    launch_.body = clear_in_gemms(p_, launch_.body);
    RingPlan plan;
    if (limits_.by_iteration && takes_iterations_in_turn(plan)) return plan;
    find(false);
    if (!found_.feed_gemms)
      return refused("no pipelined loop brings operands of a matrix instruction in copies that TMA does");
    if (const Copy* left = found_.left) {
      const std::string why = found_.left_jumps ? "a loop around it jumps" : ring_misfit(p_, *left);
      return refused(fmt::format("'{}' does not come by TMA: {}", p_.buffer(left->to.buffer).name,
                                 why.empty() ? "it is used otherwise" : why));
    }
    // One block for each multiprocessor.
    const Launch before = launch_;
    const int64_t team = launch_.threads[0];
    // A warpgroup alone leaves the matrix unit idle while it does something else: another block's goes on.
    plan.side_by_side =
        team == kGroup && limits_.side_by_side && fills_device() && widest_accumulator() < kWide && !only_multiplies();
    if (limits_.slots < kFewest && !plan.side_by_side) return refused(kNoRoom);
    for (const bool uneven : {false, true}) {
      if (plan.side_by_side) break;
      launch_ = before;
      if (!walk_tiles(p_, launch_, target_, uneven)) break;
      find(true);
      plan.persistent = found_.feed_gemms;
      if (std::none_of(rings().begin(), rings().end(), [](const Ring& r) { return r.counted; })) break;
    }
    if (!plan.persistent) {
      launch_ = before;
      find(false);
    }
    plan.next_tile = std::any_of(rings().begin(), rings().end(), [](const Ring& r) { return !r.ahead && r.slots > 1; });
    plan.alternating = plan.persistent && team == kGroup && limits_.alternating && may_alternate();
    const bool overlaps = limits_.overlap && (!plan.side_by_side || product_registers() <= kManyOfOne);
    if (plan.side_by_side) {
      launch_ = with_order(std::move(launch_));
      launch_.min_blocks = 2;
    }
    const int64_t math = plan.alternating ? 2 * team : team;
    deepen_rings(plan.alternating);
    auto [load, compute] = write_ring_sides(p_, launch_, found_, overlaps);
    const Registers registers = plan.side_by_side ? kSideBySide : registers_for(math, load);
    if (overlaps) compute = wait_late(p_, compute, slots_by_barrier());
    const bool staged = limits_.staging == Staging::Whole || limits_.staging == Staging::Chunks;
    compute =
        stage_results(p_, std::move(compute), team, plan.alternating && staged ? Staging::Chunks : limits_.staging,
                      !plan.persistent && !plan.side_by_side && only_multiplies(), stored_once, plan.staged);
    if (!plan.staged.empty()) compute.push_back(at_launch(Drain{Queue::BulkStore, 0, {}}));
    if (registers.loader > 0) {
      compute.insert(compute.begin(), at_launch(SetRegisters{registers.math}));
      load = {at_launch(Role{math, math + kGroup, {at_launch(SetRegisters{registers.loader})}}),
              at_launch(Role{math, math + kWarpThreads, std::move(load)})};
    } else {
      load = {at_launch(Role{math, math + kWarpThreads, std::move(load)})};
    }
    if (plan.alternating) {
      turns_ = new_barriers(p_, launch_, "turns", 2, team / kWarpThreads);
      Body other = every_second(own_storage(renamed(p_, compute)), 1);
      load.push_back(at_launch(Role{0, team, every_second(std::move(compute), 0)}));
      load.push_back(at_launch(Role{team, math, std::move(other)}));
    } else {
      load.push_back(at_launch(Role{0, math, std::move(compute)}));
    }
    launch_.body = std::move(load);
    launch_.threads[0] = math + kGroup;
    plan.loader_registers = registers.loader, plan.math_registers = registers.math;
    for (const Ring& r : rings()) {
      RingPlan::Ring& out = plan.rings.emplace_back();
      for (BufferId t : r.tiles) out.tiles.push_back(p_.buffer(t).name);
      out.slots = r.slots, out.bytes = r.bytes;
    }
    return plan;
  }

 private:
  static constexpr int64_t kGroup = target::kWarpgroupThreads;

  static RingPlan refused(std::string why) {
    RingPlan plan;
    plan.why_not = std::move(why);
    return plan;
  }
  template <class T>
  Stmt at_launch(T op) const {
    return make_stmt(std::move(op), launch_.location);
  }

  Registers registers_for(int64_t math, const Body& load) const {
    if (math == 2 * kGroup && (!p_.symbols.empty() || reads_memory(load))) return kOfSymbols;
    if (math == 2 * kGroup && (limits_.lean_loader || widest_accumulator() > kManyAccumulators))
      return kOfManyAccumulators;
    return kRegisters[std::min<int64_t>(math / kGroup, 3)];
  }

  // Teams keep their halves of a result, and each brings its own away: no tile of all columns is in between.
  bool takes_iterations_in_turn(RingPlan& plan) {
    const Launch whole = launch_;
    std::vector<BufferId> none;
    launch_.body = stage_results(p_, launch_.body, launch_.threads[0], Staging::Straight, false, {}, none);
    find(false);
    if (take_iterations_in_turn(p_, launch_, brought(), limits_.slots, plan)) return true;
    launch_ = whole;
    return false;
  }

  // ---- two teams that take the tiles in turn: one multiplies while the other writes its results
  // Rings say by a product which fill a turn uses, so that either team can know it. A tile of several products has
  // something to do beside each of them already, and its loader would bring one team's tile after the other's.
  bool may_alternate() const {
    return only_multiplies() && std::none_of(rings().begin(), rings().end(), [](const Ring& r) { return r.counted; });
  }
  static int count_gemms(const Body& body) {
    int gemms = 0;
    walk(body, [&](const Stmt& s) { gemms += s.as<Gemm>() ? 1 : 0; });
    return gemms;
  }
  // One product, in a loop with nothing beside it.
  bool only_multiplies() const {
    bool alone = true;
    for (const Ring& r : rings()) {
      if (!r.ahead) continue;
      for (const Stmt& s : r.nest.back()->body) alone = alone && (is_moved(rings(), s) || s.as<Let>() || s.as<Gemm>());
    }
    return count_gemms(launch_.body) == 1 && alone;
  }
  // Whether there are more blocks than multiprocessors.
  bool fills_device() const {
    int64_t blocks = 1;
    for (const Expr& e : launch_.grid) {
      const auto extent = constant_int(e);
      if (!extent) return true;
      blocks *= *extent;
    }
    return blocks > target_.multiprocessors;
  }
  int64_t widest_accumulator() const {
    int64_t most = 0;
    walk(launch_.body, [&](const Stmt& s) {
      const auto* g = s.as<Gemm>();
      const Buffer* c = g ? &p_.buffer(g->c.buffer) : nullptr;
      if (c && c->space == Space::Fragment) most = std::max(most, elements_on_chip(*c) / launch_.threads[0]);
    });
    return most;
  }
  // Registers of all that products read and write, a thread of one warpgroup.
  int64_t product_registers() const {
    std::set<BufferId> seen;
    int64_t bits = 0;
    walk(launch_.body, [&](const Stmt& s) {
      const auto* g = s.as<Gemm>();
      for (BufferId id : g ? std::vector<BufferId>{g->a.buffer, g->c.buffer} : std::vector<BufferId>{}) {
        const Buffer& b = p_.buffer(id);
        if (b.space == Space::Fragment && seen.insert(id).second) bits += elements_on_chip(b) * b.type.bits;
      }
    });
    return bits / 32 / kGroup;
  }
  // The turns of the loop over tiles that have this remainder of two, each when the other team has waited for all that
  // was brought for the turn before: a parity tells two fills of a slot apart, not three.
  Body every_second(Body body, int64_t remainder) {
    for (Stmt& s : body) {
      const auto* tiles = s.as<For>();
      if (!tiles) continue;
      For f = *tiles;
      const DType type = p_.var(f.var).type;
      const Expr two = constant(type, int64_t{2}), first = constant(type, remainder);
      f.var = p_.new_var("pair", type);
      const Expr pair = var(f.var, type);
      f.extent = binary(BinaryOp::FloorDiv, add(tiles->extent, constant(type, 1 - remainder)), two);
      f.body = substitute(tiles->body, {{tiles->var, add(mul(pair, two), first)}});
      size_t last = 0;
      for (size_t i = 0; i < f.body.size(); ++i)
        walk({f.body[i]}, [&](const Stmt& x) { last = x.as<Wait>() ? i : last; });
      Body pass;
      arrive_by_warps(launch_, {turns_, {constant(i32, 1 - remainder)}}, s->location, pass);
      f.body.insert(f.body.begin() + static_cast<std::ptrdiff_t>(last) + 1, pass.begin(), pass.end());
      // The first turn of all is nobody's to give.
      const Expr round = binary(BinaryOp::FloorMod, cast(pair, i32), constant(i32, int64_t{2}));
      const Expr parity = remainder == 0 ? binary(BinaryOp::BitXor, round, constant(i32, int64_t{1})) : round;
      f.body.insert(f.body.begin(), make_stmt(Wait{{turns_, {constant(i32, remainder)}}, parity}, s->location));
      s = make_stmt(std::move(f), s->location);
    }
    return body;
  }
  // The same on buffers of its own, where they are of the block and no ring.
  Body own_storage(const Body& body) {
    const auto number = static_cast<int32_t>(&launch_ - p_.launches.data());
    std::set<BufferId> shared{turns_};
    for (const Ring& r : rings()) {
      shared.insert(r.full), shared.insert(r.empty);
      shared.insert(r.slots_of.begin(), r.slots_of.end());
    }
    std::map<BufferId, BufferId> own;
    for (BufferId id : used_buffers(body)) {
      for (BufferId each : {p_.root(id), id}) {
        if (p_.buffer(each).launch != number || shared.contains(p_.root(each)) || own.contains(each)) continue;
        Buffer b = p_.buffer(each);
        if (b.is_view()) b.root = own.at(b.root);
        own[each] = p_.new_buffer(std::move(b));
      }
    }
    return with_buffers(body, own);
  }

  // ---- what keeps the launch from being cut in two
  std::string misfit() const {
    if (launch_.threads.size() != 1) return "the block is not along x alone";
    if (launch_.threads[0] % kGroup != 0 || launch_.threads[0] > 3 * kGroup)
      return "the threads are not one, two or three warpgroups";
    std::string why;
    walk(launch_.body, [&](const Stmt& s) {
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
  void find(bool walks) {
    walks_ = walks;
    found_ = find_rings(p_, launch_, limits_, walks);
  }
  const std::vector<Ring>& rings() const { return found_.rings; }
  std::vector<BroughtTile> brought() const {
    std::vector<BroughtTile> out;
    for (const Ring& r : rings())
      for (const Stmt& s : r.copies) out.push_back({s, r.nest.empty() ? nullptr : r.nest.back()});
    return out;
  }
  SlotsOf slots_by_barrier() const {
    SlotsOf out;
    for (const Ring& r : rings()) out[r.empty].insert(r.slots_of.begin(), r.slots_of.end());
    return out;
  }
  bool reads_memory(const Body& body) const {
    bool found = false;
    walk_exprs(body, [&](const Expr& e) {
      found = found || (e.as<Load>() && p_.buffer(e.as<Load>()->buffer).space == Space::Global);
    });
    return found;
  }
  // Teams in turn take all slots that fit: the loader brings a team's first tiles while the other's are in use.
  void deepen_rings(bool alternating) {
    const bool multiplies = only_multiplies(), one_wave = !walks_ && !fills_device();
    for (Ring& r : found_.rings) {
      if (!r.ahead) continue;
      const bool deep = multiplies || (one_wave && count_gemms(r.nest.back()->body) == 1);
      if (alternating || (deep && waits_for_loads(r))) r.slots = std::max(r.slots, limits_.slots);
    }
  }

  TileProgram& p_;
  Launch& launch_;
  const target::GpuTarget& target_;
  const RingLimits limits_;
  FoundRings found_;
  bool walks_ = false;  // the outermost loop is that over tiles
  BufferId turns_;      // of two teams: mbarriers on which each waits for its turn
};

// A launch that fits its registers, if that one can be cut in two.
RingPlan fit_and_specialize(TileProgram& p, Launch& launch, const target::GpuTarget& target, RingLimits limits) {
  const Launch own = launch;
  if (std::string how = fit_registers(p, launch, limits.live); !how.empty()) {
    RingPlan plan = Specializer(p, launch, target, limits).run();
    plan.fitted = std::move(how);
    if (plan.specialized()) return plan;
    launch = own;
  }
  return Specializer(p, launch, target, limits).run();
}

// Loaders run ahead of the program's statements, so that a wait for other launches comes before the roles.
RingPlan specialize(TileProgram& p, Launch& launch, const target::GpuTarget& target, RingLimits limits) {
  const LaunchOrder order = launch_order(launch);
  if (!order.any()) return fit_and_specialize(p, launch, target, limits);
  const Launch own = launch;
  const Body alone = without_launch_order(own.body);
  launch.body = alone;
  RingPlan plan = fit_and_specialize(p, launch, target, limits);
  if (plan.specialized()) {
    launch.body = order_around_roles(launch, order, p);
    return plan;
  }
  const bool untouched =
      std::ranges::equal(launch.body, alone, [](const Stmt& a, const Stmt& b) { return &*a == &*b; });
  launch = own;
  if (!untouched) launch.body = clear_in_gemms(p, own.body);
  return plan;
}

}  // namespace

TmaRings materialize_tma_rings(TileProgram program, const target::GpuTarget& target, RingLimits limits) {
  TmaRings out{std::move(program), {}};
  for (Launch& launch : out.program.launches) {
    RingPlan plan;
    const LaunchOrder order = launch_order(launch);
    if (target.arch < 90)
      plan.why_not = fmt::format("sm_{} has no TMA", target.arch);
    else if (limits.slots < 1)
      plan.why_not = kNoRoom;
    else
      plan = specialize(out.program, launch, target, limits);
    plan.order = order;
    out.plans.push_back(std::move(plan));
  }
  return out;
}

}  // namespace tilewright::passes
