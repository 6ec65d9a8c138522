#include "plan/decide.h"

#include "analysis/accessed.h"
#include "analysis/beyond.h"
#include "analysis/iteration_parts.h"
#include "analysis/live_registers.h"
#include "analysis/load_rings.h"
#include "analysis/own_schedule.h"
#include "analysis/waiting_blocks.h"
#include "ir/cluster.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "plan/loop_orders.h"
#include "target/wgmma.h"

namespace tilewright::plan {

using namespace ir;
using analysis::find_rings;
using analysis::FoundRing;
using analysis::FoundRings;

namespace {

constexpr int64_t kGroup = target::kWarpgroupThreads, kGroupWarps = kGroup / kWarpThreads;
constexpr int64_t kMostGroups = 4;  // that compute beside a loader
constexpr size_t kLoaderWarps = 4;  // of a warpgroup, the least whose registers can be set
// Registers of a loader's and of the others' threads, by the warpgroups that compute (65,536 in all; PTX, setmaxnreg).
struct Registers {
  int64_t loader, math;
};
constexpr Registers kRegisters[] = {{0, 0}, {0, 0}, {40, 232}, {32, 160}, {24, 112}};
// For accumulators of more than kManyAccumulators a thread.
constexpr Registers kOfManyAccumulators = {24, 240};
constexpr int64_t kManyAccumulators = 192;
// ... of all products, with their operands (attention's gradients of 128 dimensions, an H200: 2,535 us with 224, 2,397
// with 240, which spill neither).
constexpr int64_t kManyOfProducts = 224;
constexpr Registers kSideBySide = {24, 232};  // of two blocks a multiprocessor, of one warpgroup that computes each
// Accumulators a thread that, with what is made of them, want a multiprocessor's registers.
constexpr int64_t kWide = 128;
constexpr int64_t kManyOfOne = 192;  // registers of products beyond which there is no room for two turns' values
constexpr int64_t kManyOfFour = 80;  // of a thread of four warpgroups, which has 112
constexpr Registers kOfSymbols = {56, 224};  // where the loader computes addresses from extents or indices it is given
// Where all threads of the loader gather, by the warpgroups that compute: each keeps where its pieces of a tile lie
// (twelve of 192 rows of 128 bytes want 64 and more). Of two that have more than kWide accumulators; of blocks side by
// side.
constexpr Registers kOfGatherers[] = {{0, 0}, {0, 0}, {88, 208}, {80, 144}, {64, 104}};
constexpr Registers kGathererOfWide = {56, 224}, kGathererSideBySide = {80, 176};
// Of a loader's and of a team's threads, where teams take iterations in turn; where rows are gathered.
constexpr Registers kOfCopies = {24, 240}, kOfGathers = {40, 232};
// Slots of a pipelined loop's rings, where there is room: with one, a program of one stage, the loader would bring
// nothing before the last has been used. Of several rings with one slot each, one is filled while another is in use.
constexpr int64_t kFewest = 2;
// Slots of the rings of products that do nothing else, where there is room (bench/results/2026-11-29-slots.json, an
// H200: 4096 cubed in 128x160 tiles by 64 takes 315 us with two, 198 with four, 226 with six).
constexpr int64_t kWanted = 4;
constexpr int64_t kRoomOfBarriers = 2048;
constexpr int64_t kChunkBytes = 16384;  // of a warpgroup's result that leaves in chunks: two of 64 rows of 128 bytes

constexpr const char* kNoRoom = "rings of two slots do not fit in shared memory";

Registers fixed(Registers r, const Hints& hints) {
  return {hints.load_registers.value_or(r.loader), hints.compute_registers.value_or(r.math)};
}

// Of a warpgroup that loads and `math` threads that compute, in a block of which so many share a multiprocessor: as
// many as there are.
Registers shared(Registers r, int64_t math, const target::GpuTarget& target, int64_t blocks) {
  const int64_t threads = math + kGroup, all = target.registers_at_launch(threads, blocks) * threads;
  if (blocks <= 1 || r.loader * kGroup + r.math * math <= all) return r;
  constexpr int64_t fewest = SetRegisters::kFewest, unit = SetRegisters::kUnit;
  return {fewest, (all - fewest * kGroup) / math / unit * unit};
}

// More than a kernel of as many threads begins with: setmaxnreg would wait for ever.
std::string too_many(const Registers& r, int64_t math, const target::GpuTarget& target, int64_t blocks) {
  const int64_t threads = math + kGroup, each = target.registers_at_launch(threads, blocks);
  if (r.loader <= each && r.loader * kGroup + r.math * math <= each * threads) return "";
  return fmt::format("{} registers of a thread that loads and {} of one that computes are more than {} threads have{}",
                     r.loader, r.math, threads,
                     blocks > 1 ? fmt::format(" where {} blocks share a multiprocessor", blocks) : "");
}

// How many slots rings get, who computes, and how results leave.
class Decider {
 public:
  Decider(const ProgramTables& p, const Launch& launch, const target::GpuTarget& target, const Limits& limits,
          const Hints& hints)
      : p_(p), launch_(launch), target_(target), limits_(limits), hints_(hints), found_(find_rings(p, launch)) {}

  Plan run() {
    if (!feed_gemms(p_, launch_, rings()))
      return refused("no pipelined loop brings operands of a matrix instruction in copies that TMA does");
    if (!found_.left.empty()) return refused(found_.left);
    if (hints_.no_loader) return refused("the plan that was handed in has none");
    if (hints_.blocks && *hints_.blocks % cluster_blocks(launch_) != 0)
      return refused(fmt::format("{} blocks are no pairs", *hints_.blocks));
    const int64_t own = product_registers(launch_.threads[0]);
    if (launch_.threads[0] == kMostGroups * kGroup && own > kManyOfFour)
      return refused(fmt::format("products of {} registers a thread leave four warpgroups no room beside it", own));
    // A warpgroup alone leaves the matrix unit idle while it does something else: another block's goes on.
    const int64_t team = launch_.threads[0];
    const bool may_share = limits_.side_by_side && fills_device() && widest_accumulator() < kWide &&
                           (!only_multiplies() || fills_it_but_once() || may_skip_tiles());
    const bool side_by_side = (team == kGroup || is_lean(team)) &&
                              hints_.blocks_per_multiprocessor.value_or(may_share ? 2 : 1) == 2 &&
                              hints_.work != Work::Kind::Persistent;
    const auto ahead = std::ranges::count_if(rings(), [](const FoundRing& r) { return r.ahead; });
    if (limits_.slots < kFewest && !side_by_side && ahead < 2) return refused(kNoRoom);
    if (side_by_side)
      plan_.work.blocks_per_multiprocessor = 2;
    else
      persist();
    const bool persistent = plan_.work.kind == Work::Kind::Persistent;
    count_slots(persistent);
    const bool alternating = persistent && team == kGroup && may_alternate() &&
                             (hints_.takes ? hints_.takes == Role::Takes::TilesInTurn : limits_.alternating);
    const bool room = (!side_by_side || product_registers(kGroup) <= kManyOfOne) &&
                      (team < kMostGroups * kGroup || own <= kManyOfFour / 2);
    plan_.overlap = hints_.overlap.value_or(limits_.overlap && room);
    deepen_rings(alternating, persistent);
    const int64_t math = alternating ? 2 * team : team;
    const int64_t blocks = std::max(launch_.min_blocks, plan_.work.blocks_per_multiprocessor);
    const Registers of_share = gathers() && team == kGroup ? kGathererSideBySide : kSideBySide;
    const Registers usual = side_by_side ? of_share : registers_for(math);
    const Registers registers = fixed(shared(usual, math, target_, blocks), hints_);
    if (std::string why = too_many(registers, math, target_, blocks); !why.empty()) return refused(std::move(why));
    give_roles(math, alternating, registers);
    const bool staged = limits_.staging < Staging::None;
    plan_.epilogue.how = hints_.staging.value_or(alternating && staged ? Staging::Chunks : limits_.staging);
    plan_.epilogue.by_columns = !persistent && !side_by_side && only_multiplies();
    if (plan_.overlap)
      plan_.orders = OverlappedProducts(p_, launch_, rings(), team == kGroup && !alternating && !side_by_side)
                         .orders(launch_.body, hints_);
    for (const FoundRing& r : rings()) plan_.rings.push_back({r.tiles, r.slots, r.bytes, r.ahead, -1, boxes_of(r)});
    return std::move(plan_);
  }

 private:
  Plan refused(std::string why) {
    plan_.rejected.push_back({Rejection::kLoader, std::move(why)});
    return std::move(plan_);
  }

  bool gathers() const {
    return std::ranges::any_of(rings(), [](const FoundRing& r) { return r.gathers(); });
  }
  Registers registers_for(int64_t math) const {
    if (gathers() && math == 2 * kGroup && widest_accumulator() > kWide) return kGathererOfWide;
    if (gathers()) return kOfGatherers[std::min<int64_t>(math / kGroup, kMostGroups)];
    const bool many = product_registers(math) > kManyOfProducts;
    if (math == 2 * kGroup && many != limits_.other_registers) return kOfManyAccumulators;
    if (math == 2 * kGroup && (!p_.symbols.empty() || loader_reads_memory(p_, launch_, found_))) return kOfSymbols;
    if (math == 2 * kGroup && widest_accumulator() > kManyAccumulators) return kOfManyAccumulators;
    return kRegisters[std::min<int64_t>(math / kGroup, kMostGroups)];
  }
  void give_roles(int64_t math, bool alternating, const Registers& registers) {
    const int64_t warps = math / kWarpThreads, instances = alternating ? 2 : 1;
    plan_.roles.push_back(
        {Role::Job::Load, warps, kGroup / kWarpThreads, registers.loader, gathers() ? kGroupWarps : 1});
    for (int64_t i = 0; i < instances; ++i)
      plan_.roles.push_back({Role::Job::Compute, i * warps / instances, warps / instances, registers.math, 0,
                             alternating ? Role::Takes::TilesInTurn : Role::Takes::All, i, instances});
  }

  // One block for each multiprocessor, if there are more tiles than that. What a turn fills is counted where the turns
  // of loops depend on the tile; tiles are uneven then. A block that waits for another's tile must not be the one that
  // has it to do next.
  void persist() {
    if (analysis::blocks_that_wait(p_, launch_) > 1) return;
    const auto tiles = constant_int(blocks_of(launch_));
    const int64_t together = cluster_blocks(launch_);
    const int64_t blocks = hints_.blocks.value_or(std::max(target_.multiprocessors / together, int64_t{1}) * together);
    if ((tiles && *tiles <= blocks) || hints_.work == Work::Kind::OneTile) return;
    FoundRings walked = find_rings(p_, launch_, true);
    if (!feed_gemms(p_, launch_, walked.rings)) return;
    found_ = std::move(walked);
    const bool uneven = std::any_of(rings().begin(), rings().end(), [](const FoundRing& r) { return r.counted; });
    plan_.work = {Work::Kind::Persistent, blocks, uneven || hints_.reverse_odd_waves};
  }
  void count_slots(bool persistent) {
    for (FoundRing& r : found_.rings) {
      const int64_t of_tile = persistent && limits_.next_tile && r.nest.empty() ? kFewest : 1;
      r.slots = r.ahead ? std::min(std::max<int64_t>(r.nest.back()->stages, kFewest), limits_.slots) : of_tile;
    }
  }
  // Teams in turn take all slots that fit: the loader brings a team's first tiles while the other's are in use. So do
  // products of one wave: few blocks wait for memory longer than for their own turns, and nobody else wants the room.
  // Other products have at least kWanted of them: one is open to the product before, one is used, and what comes takes
  // longer than a turn.
  void deepen_rings(bool alternating, bool persistent) {
    const bool multiplies = only_multiplies(), one_wave = !persistent && !fills_device();
    for (FoundRing& r : found_.rings) {
      if (!r.ahead) continue;
      const bool one_product = one_wave && count_gemms(r.nest.back()->body) == 1;
      const bool deep = multiplies ? one_wave || waits_for_loads(r) : one_product && waits_for_loads(r);
      if (alternating || deep) r.slots = std::max(r.slots, limits_.slots);
      for (int64_t slots = std::min(limits_.slots, kWanted); multiplies && slots > r.slots; --slots)
        if (slots >= kEnoughSlots && leaves_chunks(slots)) r.slots = slots;
    }
    if (limits_.second_slots && limits_.slots == 1 && limits_.staging == Staging::Straight) give_second_slots();
    for (FoundRing& r : found_.rings) r.slots = hints_.slots_of(r.tiles, p_).value_or(r.slots);
  }
  // A tile of one slot comes between its last use in a turn and its first in the next. What is left of the shared
  // memory is for those that have the least to do between.
  void give_second_slots() {
    int64_t left = target_.shared_bytes_of_blocks(std::max<int64_t>(launch_.min_blocks, 1)) - kRoomOfBarriers;
    for (BufferId id : analysis::accessed_by(launch_.body, p_)) {
      const Buffer& b = p_.buffer(id);
      if (b.space == Space::Shared) left -= bytes_on_chip(b);
    }
    std::vector<std::pair<int64_t, FoundRing*>> order;  // by the statements between
    for (FoundRing& r : found_.rings) {
      if (!r.ahead || !r.first_use || !r.last_use) continue;
      const Body& turn = turn_of(r);
      const auto place = [&](const StmtNode* s) {
        return std::ranges::find_if(turn, [&](const Stmt& x) { return &*x == s; }) - turn.begin();
      };
      order.emplace_back(place(r.first_use) + std::ssize(turn) - place(r.last_use), &r);
    }
    std::ranges::stable_sort(order, {}, [](const auto& x) { return x.first; });
    for (const auto& [between, r] : order)
      if (r->bytes <= left) r->slots = kFewest, left -= r->bytes;
  }

  // A box that reaches beyond its tensor costs more there than inside (price.cpp): where a loop's turns outnumber the
  // slots, turns that find zeros in theirs bring what is inside alone.
  Ring::Boxes boxes_of(const FoundRing& r) const {
    if (!r.ahead) return Ring::Boxes::Whole;
    if (r.gate) return Ring::Boxes::Whole;  // its loop's turns do not say which fill is a slot's first
    if (r.gathers()) return Ring::Boxes::Whole;
    const bool may_clip = std::ranges::none_of(r.tiles, [&](BufferId id) {
      const auto said = hints_.clips.find(p_.buffer(id).name);
      return said != hints_.clips.end() && !said->second;
    });
    if (!may_clip) return Ring::Boxes::Unclipped;
    const auto turns = constant_int(r.nest.back()->extent);
    if (turns && *turns <= r.slots) return Ring::Boxes::Whole;
    const bool reach = std::ranges::any_of(r.copies, [&](const Stmt& s) {
      const Copy& c = *s.as<Copy>();
      const bool shared =
          std::ranges::find(hints_.wishes, p_.buffer(c.to.buffer).name, &Wish::tile) != hints_.wishes.end();
      return !shared && analysis::beyond_its_tensor(c, *r.nest.back(), launch_, p_);
    });
    return reach ? Ring::Boxes::Clipped : Ring::Boxes::Whole;
  }

  // ---- two teams that take the tiles in turn: one multiplies while the other writes its results
  // Rings say by a product which fill a turn uses, so that either team can know it. A tile of several products has
  // something to do beside each of them already, and its loader would bring one team's tile after the other's.
  // The second team's threads have other numbers than the program's, and names of their own for what a tensor stands
  // by.
  bool may_alternate() const {
    return only_multiplies() && !used_vars(launch_.body).contains(launch_.thread[0]) &&
           !analysis::tensors_stand_by_names(p_, launch_) &&
           std::none_of(rings().begin(), rings().end(), [](const FoundRing& r) { return r.counted; });
  }
  static int count_gemms(const Body& body) {
    int gemms = 0;
    walk(body, [&](const Stmt& s) { gemms += s.as<Gemm>() ? 1 : 0; });
    return gemms;
  }
  // One product, in a loop with nothing beside it.
  bool only_multiplies() const {
    bool alone = true;
    for (const FoundRing& r : rings()) {
      if (!r.ahead) continue;
      alone = alone && (!r.gate || r.nest.back()->body.size() == 1);
      for (const Stmt& s : turn_of(r)) alone = alone && (is_moved(rings(), s) || s.as<Let>() || s.as<Gemm>());
    }
    return count_gemms(launch_.body) == 1 && alone;
  }
  // Two warpgroups of which a thread has so little in registers that four of them and their loaders share a
  // multiprocessor.
  bool is_lean(int64_t team) const {
    constexpr int64_t kMostRegisters = 32;  // of the 104 that there are then
    return team == 2 * kGroup &&
           analysis::bits_of_fragments(analysis::accessed_by(launch_.body, p_), p_) / 32 / team <= kMostRegisters;
  }
  // Whether there are more blocks than multiprocessors.
  bool fills_device() const {
    const auto blocks = constant_int(blocks_of(launch_));
    return !blocks || *blocks > target_.multiprocessors;
  }
  // Whether some blocks may have nothing to do: where each takes one tile, the next begins at once.
  bool may_skip_tiles() const {
    return std::ranges::any_of(launch_.body, [&](const Stmt& s) {
      const auto* n = s.as<If>();
      return n && n->else_body.empty() && holds_copies(rings(), s);
    });
  }
  // Whether all blocks run at once, two a multiprocessor, with rings that hide latencies: teams in turn of one block
  // would multiply its two tiles one after the other.
  bool fills_it_but_once() const {
    const auto blocks = constant_int(blocks_of(launch_));
    if (!blocks || *blocks > 2 * target_.multiprocessors || limits_.slots < kEnoughSlots) return false;
    const auto in_ring = [&](BufferId id) {
      return std::ranges::any_of(rings(), [&](const FoundRing& r) { return r.brings(id); });
    };
    int64_t others = 0;
    for (BufferId id : analysis::accessed_by(launch_.body, p_))
      if (p_.buffer(id).space == Space::Shared && !in_ring(id)) others += bytes_on_chip(p_.buffer(id));
    return bytes_of_rings(kEnoughSlots) + std::max(others, kChunkBytes) <= target_.shared_bytes_of_blocks(2);
  }
  int64_t bytes_of_rings(int64_t slots) const {
    int64_t bytes = 0;
    for (const FoundRing& r : rings()) bytes += r.ahead ? slots * r.bytes : r.bytes;
    return bytes;
  }
  // Whether rings of so many slots leave room for results, in chunks at least, in each of the blocks that are to share
  // a multiprocessor.
  bool leaves_chunks(int64_t slots) const {
    const int64_t blocks = std::max(launch_.min_blocks, plan_.work.blocks_per_multiprocessor);
    return bytes_of_rings(slots) + launch_.threads[0] / kGroup * kChunkBytes <= target_.shared_bytes_of_blocks(blocks);
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
  // Registers of all that products read and write, of each of so many threads.
  int64_t product_registers(int64_t threads) const {
    std::set<BufferId> all;
    walk(launch_.body, [&](const Stmt& s) {
      if (const auto* g = s.as<Gemm>()) all.insert({g->a.buffer, g->c.buffer});
    });
    return analysis::bits_of_fragments(all, p_) / 32 / threads;
  }

  const std::vector<FoundRing>& rings() const { return found_.rings; }

  const ProgramTables& p_;
  const Launch& launch_;
  const target::GpuTarget& target_;
  const Limits& limits_;
  const Hints& hints_;
  FoundRings found_;
  Plan plan_;
};

}  // namespace

std::string why_no_roles(const Launch& launch, const target::GpuTarget& target, const Limits& limits) {
  if (!target.has.tma) return fmt::format("sm_{} has no TMA", target.arch);
  if (limits.slots < 1) return kNoRoom;
  if (launch.threads.size() != 1) return "the block is not along x alone";
  if (launch.threads[0] % kGroup != 0 || launch.threads[0] > kMostGroups * kGroup)
    return "the threads are not one to four warpgroups";
  return analysis::why_as_written(launch);
}

std::optional<Plan> teams_by_iteration(const ProgramTables& program, const Launch& launch,
                                       const target::GpuTarget& target, const Limits& limits, const Hints& hints,
                                       std::string& why) {
  const auto parts = analysis::iteration_parts(program, launch, why);
  if (!parts) return std::nullopt;
  Plan plan;
  Registers registers = kOfCopies;
  bool brings_once = false;
  for (const analysis::LoopTile& t : parts->tiles) {
    if (t.by == analysis::LoopTile::By::Gather) registers = kOfGathers;
    brings_once = brings_once || !t.in_loop;
    const bool halved = parts->halved.contains(t.tile);
    const int64_t slots =
        hints.slots_of({t.tile}, program).value_or(std::clamp<int64_t>(parts->loop->stages, kFewest, limits.slots));
    const int64_t bytes = bytes_on_chip(program.buffer(t.tile));
    for (int half = 0; t.in_loop && half < (halved ? 2 : 1); ++half)
      plan.rings.push_back({{t.tile}, slots, halved ? bytes / 2 : bytes, true, halved ? half : -1});
  }
  registers = fixed(shared(registers, 2 * kGroup, target, launch.min_blocks), hints);
  why = too_many(registers, 2 * kGroup, target, launch.min_blocks);
  if (!why.empty()) return std::nullopt;
  // A warp for each ring; what comes once, before the loop, has one of its own where one is left.
  const size_t rings = plan.rings.size();
  const auto loading = static_cast<int64_t>(rings + (brings_once && rings < kLoaderWarps ? 1 : 0));
  plan.roles.push_back({Role::Job::Load, 2 * kGroupWarps, kGroupWarps, registers.loader, loading});
  for (const int64_t team : {0, 1})
    plan.roles.push_back({Role::Job::Compute, team * kGroupWarps, kGroupWarps, registers.math, 0,
                          Role::Takes::IterationsInTurn, team, 2});
  plan.epilogue.how = Staging::Straight;
  return plan;
}

Plan loader_plan(const ProgramTables& program, const Launch& launch, const target::GpuTarget& target,
                 const Limits& limits, const Hints& hints) {
  return Decider(program, launch, target, limits, hints).run();
}

}  // namespace tilewright::plan
