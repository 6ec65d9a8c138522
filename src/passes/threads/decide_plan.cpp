#include "passes/threads/decide_plan.h"

#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "passes/launch_order.h"
#include "passes/threads/clear_in_gemms.h"
#include "passes/threads/find_rings.h"
#include "passes/threads/fit_registers.h"
#include "passes/threads/iteration_teams.h"
#include "passes/threads/overlapped_products.h"
#include "passes/threads/stage_results.h"
#include "passes/threads/walk_tiles.h"
#include "support/diagnostic.h"
#include "target/wgmma.h"

namespace tilewright::passes {

using namespace ir;
using plan::Plan;
using plan::Rejection;
using plan::Work;

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

// Slots of a pipelined loop's rings, where there is room: with one, a program of one stage, the loader would bring
// nothing before the last has been used.
constexpr int64_t kFewest = 2;

constexpr const char* kNoRoom = "rings of two slots do not fit in shared memory";

// Of a launch of a program of its own, on which it tries what a block's work would look like.
class Decider {
 public:
  Decider(TileProgram& scratch, Launch& launch, const target::GpuTarget& target, const PlanLimits& limits)
      : p_(scratch), launch_(launch), target_(target), limits_(limits) {}

  Plan run() {
    if (std::string why = misfit(); !why.empty()) return refused(std::move(why));
    const Body own = std::exchange(launch_.body, clear_in_gemms(p_, launch_.body));
    plan_.clears = !std::ranges::equal(own, launch_.body, [](const Stmt& a, const Stmt& b) { return &*a == &*b; });
    if (limits_.by_iteration && by_iteration()) return std::move(plan_);
    find();
    if (!found_.feed_gemms)
      return refused("no pipelined loop brings operands of a matrix instruction in copies that TMA does");
    if (const Copy* left = found_.left) {
      const std::string why = found_.left_jumps ? "a loop around it jumps" : ring_misfit(p_, *left);
      return refused(fmt::format("'{}' does not come by TMA: {}", p_.buffer(left->to.buffer).name,
                                 why.empty() ? "it is used otherwise" : why));
    }
    // A warpgroup alone leaves the matrix unit idle while it does something else: another block's goes on.
    const int64_t team = launch_.threads[0];
    const bool side_by_side =
        team == kGroup && limits_.side_by_side && fills_device() && widest_accumulator() < kWide && !only_multiplies();
    if (limits_.slots < kFewest && !side_by_side) return refused(kNoRoom);
    if (side_by_side)
      plan_.work.blocks_per_multiprocessor = 2;
    else
      persist();
    const bool persistent = plan_.work.kind == Work::Kind::Persistent;
    count_slots(persistent);
    const bool alternating = persistent && team == kGroup && limits_.alternating && may_alternate();
    plan_.overlap = limits_.overlap && (!side_by_side || product_registers() <= kManyOfOne);
    deepen_rings(alternating, persistent);
    const int64_t math = alternating ? 2 * team : team;
    give_roles(math, alternating, side_by_side ? kSideBySide : registers_for(math));
    const bool staged = limits_.staging == plan::Staging::Whole || limits_.staging == plan::Staging::Chunks;
    plan_.epilogue.how = alternating && staged ? plan::Staging::Chunks : limits_.staging;
    plan_.epilogue.by_columns = !persistent && !side_by_side && only_multiplies();
    for (const Ring& r : rings()) plan_.rings.push_back({r.tiles, r.slots, r.bytes, r.ahead});
    return std::move(plan_);
  }

 private:
  static constexpr int64_t kGroup = target::kWarpgroupThreads;

  Plan refused(std::string why) {
    plan_.rejected.push_back({Rejection::Of::Loader, std::move(why)});
    return std::move(plan_);
  }

  Registers registers_for(int64_t math) const {
    if (math == 2 * kGroup && (!p_.symbols.empty() || loader_reads_memory(p_, launch_, found_))) return kOfSymbols;
    if (math == 2 * kGroup && (limits_.lean_loader || widest_accumulator() > kManyAccumulators))
      return kOfManyAccumulators;
    return kRegisters[std::min<int64_t>(math / kGroup, 3)];
  }
  void give_roles(int64_t math, bool alternating, const Registers& registers) {
    using plan::Role;
    const int64_t warps = math / kWarpThreads, instances = alternating ? 2 : 1;
    plan_.roles.push_back({Role::Job::Load, warps, kGroup / kWarpThreads, registers.loader, 1});
    for (int64_t i = 0; i < instances; ++i)
      plan_.roles.push_back({Role::Job::Compute, i * warps / instances, warps / instances, registers.math, 0,
                             alternating ? Role::Takes::TilesInTurn : Role::Takes::All, i, instances});
  }

  // Teams keep their halves of a result, and each brings its own away: no tile of all columns is in between.
  bool by_iteration() {
    const Launch whole = launch_;
    std::vector<BufferId> none;
    launch_.body = stage_results(p_, launch_.body, launch_.threads[0], plan::Staging::Straight, false, {}, none);
    find();
    std::string why;
    auto teams = take_iterations_in_turn(p_, launch_, brought_tiles(found_), limits_.slots, why);
    if (!why.empty()) plan_.rejected.push_back({Rejection::Of::IterationTeams, std::move(why)});
    if (teams) {
      plan_.roles = std::move(teams->roles), plan_.rings = std::move(teams->rings);
      plan_.epilogue.how = plan::Staging::Straight;
    }
    launch_ = whole;
    return teams.has_value();
  }
  // One block for each multiprocessor, if there are more tiles than that.
  void persist() {
    const Launch before = launch_;
    for (const bool uneven : {false, true}) {
      launch_ = before;
      if (!walk_tiles(p_, launch_, target_.multiprocessors, uneven)) break;
      find();
      plan_.work = found_.feed_gemms ? Work{Work::Kind::Persistent, target_.multiprocessors, uneven} : Work{};
      if (std::none_of(rings().begin(), rings().end(), [](const Ring& r) { return r.counted; })) break;
    }
    if (plan_.work.kind == Work::Kind::Persistent) return;
    launch_ = before;
    find();
  }
  void count_slots(bool persistent) {
    for (Ring& r : found_.rings) {
      const int64_t of_tile = persistent && limits_.next_tile && r.nest.size() == 1 ? kFewest : 1;
      r.slots = r.ahead ? std::min(std::max<int64_t>(r.nest.back()->stages, kFewest), limits_.slots) : of_tile;
    }
  }
  // Teams in turn take all slots that fit: the loader brings a team's first tiles while the other's are in use.
  void deepen_rings(bool alternating, bool persistent) {
    const bool multiplies = only_multiplies(), one_wave = !persistent && !fills_device();
    for (Ring& r : found_.rings) {
      if (!r.ahead) continue;
      const bool deep = multiplies || (one_wave && count_gemms(r.nest.back()->body) == 1);
      if (alternating || (deep && waits_for_loads(r))) r.slots = std::max(r.slots, limits_.slots);
    }
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
  void find() { found_ = find_rings(p_, launch_); }
  const std::vector<Ring>& rings() const { return found_.rings; }

  TileProgram& p_;
  Launch& launch_;
  const target::GpuTarget& target_;
  const PlanLimits& limits_;
  FoundRings found_;
  Plan plan_;
};

// What is tried on it is given up with it.
Plan decide(TileProgram scratch, size_t launch, const target::GpuTarget& target, const PlanLimits& limits) {
  return Decider(scratch, scratch.launches[launch], target, limits).run();
}

}  // namespace

Plan decide_plan(const TileProgram& program, size_t number, const target::GpuTarget& target, const PlanLimits& limits) {
  Plan none;
  if (!target.has.tma || limits.slots < 1) {
    none.rejected.push_back(
        {Rejection::Of::Loader, !target.has.tma ? fmt::format("sm_{} has no TMA", target.arch) : std::string(kNoRoom)});
    return none;
  }
  // Loaders run ahead of the program's statements, so that a wait for other launches comes before the roles.
  TileProgram own = program;
  Launch& launch = own.launches[number];
  launch.body = without_launch_order(launch.body);
  TileProgram tables = own;
  if (const plan::Fit fit = fit_registers(tables, launch, limits.live); fit.any()) {
    TileProgram scratch = own;
    scratch.launches[number] = fitted(scratch, launch, fit);
    Plan plan = decide(std::move(scratch), number, target, limits);
    plan.fit = fit;
    if (plan.has_loader()) return plan;
  }
  return decide(std::move(own), number, target, limits);
}

}  // namespace tilewright::passes
