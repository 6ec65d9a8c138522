#include "passes/threads/tma_rings.h"

#include <set>

#include "analysis/uniformity.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/launch_order.h"
#include "passes/threads/clear_in_gemms.h"
#include "passes/threads/collectives.h"
#include "passes/threads/fit_registers.h"
#include "passes/threads/iteration_teams.h"
#include "passes/threads/late_waits.h"
#include "passes/threads/role_code.h"
#include "passes/threads/shared_layout.h"
#include "passes/threads/slots.h"
#include "passes/threads/stage_results.h"
#include "passes/threads/walk_tiles.h"

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

// Slots: with no more than these, one that is given back late is missed (measured: 0.97 of the speed).
constexpr int64_t kEnough = 3;

// A tile of m x n elements takes m * n / 2048 cycles for each step along k in the matrix unit, and its operands
// 2 * (m + n) bytes, of which 64 come from the L2 cache in a cycle; narrower types take fewer of both. So a tile of
// which m * n is less than this times m + n waits for what is loaded: the more is under way, the better (measured at
// 128x4096x7168, tiles of 64 x 64: 230 TFLOP/s of four slots of which one is given back late, 248 given back at once,
// 289 of six).
constexpr int64_t kLoadBound = 64;

// Slots of a pipelined loop's rings, where there is room: with one, a program of one stage, the loader would bring
// nothing before the last has been used.
constexpr int64_t kFewest = 2;

constexpr const char* kNoRoom = "rings of two slots do not fit in shared memory";

struct Ring {
  std::vector<Stmt> copies;             // neighbours in one body
  std::vector<BufferId> tiles;          // as the program has them
  std::vector<BufferId> slots_of;       // as rings
  std::vector<const For*> nest;         // the loops around, outermost first
  const StmtNode* first_use = nullptr;  // statements of the same body
  const StmtNode* last_use = nullptr;
  BufferId full, empty;
  int64_t slots = 1, bytes = 0;
  bool ahead = false;    // of a pipelined loop: the loader runs ahead
  bool counted = false;  // the innermost loop has other extents in other turns of those around it
  bool has(const Stmt& s) const {
    return std::any_of(copies.begin(), copies.end(), [&](const Stmt& c) { return &*c == &*s; });
  }
};

class Specializer {
 public:
  Specializer(TileProgram& p, Launch& launch, const target::GpuTarget& target, RingLimits limits)
      : p_(p), launch_(launch), target_(target), limits_(limits) {}

  RingPlan run() {
    if (std::string why = misfit(); !why.empty()) return refused(std::move(why));
    launch_.body = clear_in_gemms(p_, launch_.body);
    RingPlan plan;
    if (limits_.by_iteration && takes_iterations_in_turn(plan)) return plan;
    const bool found = find_rings();
    if (!found) return refused("no pipelined loop brings operands of a matrix instruction in copies that TMA does");
    if (left_) {
      const std::string why = misfit(*left_);
      return refused(fmt::format("'{}' does not come by TMA: {}", p_.buffer(left_->to.buffer).name,
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
      forget_rings();
      walks_ = true;
      plan.persistent = find_rings();
      if (!std::any_of(rings_.begin(), rings_.end(), [](const Ring& r) { return r.counted; })) break;
    }
    if (!plan.persistent) {
      launch_ = before;
      forget_rings();
      walks_ = false;
      find_rings();
    }
    plan.next_tile = std::any_of(rings_.begin(), rings_.end(), [](const Ring& r) { return !r.ahead && r.slots > 1; });
    plan.alternating = plan.persistent && team == kGroup && limits_.alternating && may_alternate();
    overlaps_ = limits_.overlap && (!plan.side_by_side || product_registers() <= kManyOfOne);
    if (plan.side_by_side) {
      launch_ = with_order(std::move(launch_));
      launch_.min_blocks = 2;
    }
    const int64_t math = plan.alternating ? 2 * team : team;
    make_rings(plan.alternating);
    make_counters();
    loading_ = true;
    Body load = start_counters(true);
    append(load, loader(launch_.body, {}));
    loading_ = false;
    const Registers registers = plan.side_by_side ? kSideBySide : registers_for(math, load);
    Body compute = start_counters(false);
    append(compute, body_of_math(launch_.body));
    if (overlaps_) compute = wait_late(p_, compute, slots_by_barrier());
    const bool staged = limits_.staging == Staging::Whole || limits_.staging == Staging::Chunks;
    compute =
        stage_results(p_, std::move(compute), team, plan.alternating && staged ? Staging::Chunks : limits_.staging,
                      !plan.persistent && !plan.side_by_side && only_multiplies(), plan.staged);
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
    for (const Ring& r : rings_) {
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
    launch_.body = stage_results(p_, launch_.body, launch_.threads[0], Staging::Straight, false, none);
    find_rings();
    if (take_iterations_in_turn(p_, launch_, brought(), limits_.slots, plan)) return true;
    launch_ = whole;
    forget_rings();
    return false;
  }

  // ---- two teams that take the tiles in turn: one multiplies while the other writes its results
  // Rings say by a product which fill a turn uses, so that either team can know it. A tile of several products has
  // something to do beside each of them already, and its loader would bring one team's tile after the other's.
  bool may_alternate() const {
    return only_multiplies() && std::none_of(rings_.begin(), rings_.end(), [](const Ring& r) { return r.counted; });
  }
  static int count_gemms(const Body& body) {
    int gemms = 0;
    walk(body, [&](const Stmt& s) { gemms += s.as<Gemm>() ? 1 : 0; });
    return gemms;
  }
  // One product, in a loop with nothing beside it.
  bool only_multiplies() const {
    bool alone = true;
    for (const Ring& r : rings_) {
      if (!r.ahead) continue;
      for (const Stmt& s : r.nest.back()->body) alone = alone && (is_moved(s) || s.as<Let>() || s.as<Gemm>());
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
    for (const Ring& r : rings_) {
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
  bool find_rings() {
    find(launch_.body);
    return std::any_of(rings_.begin(), rings_.end(), [&](const Ring& r) { return r.ahead && is_operand(r); });
  }
  std::vector<BroughtTile> brought() const {
    std::vector<BroughtTile> out;
    for (const Ring& r : rings_)
      for (const Stmt& s : r.copies) out.push_back({s, r.nest.empty() ? nullptr : r.nest.back()});
    return out;
  }
  void forget_rings() { rings_.clear(), results_.clear(), left_ = nullptr; }
  SlotsOf slots_by_barrier() const {
    SlotsOf out;
    for (const Ring& r : rings_) out[r.empty].insert(r.slots_of.begin(), r.slots_of.end());
    return out;
  }
  bool reads_memory(const Body& body) const {
    bool found = false;
    walk_exprs(body, [&](const Expr& e) {
      found = found || (e.as<Load>() && p_.buffer(e.as<Load>()->buffer).space == Space::Global);
    });
    return found;
  }
  bool is_operand(const Ring& r) const {
    bool found = false;
    walk(launch_.body, [&](const Stmt& s) {
      const auto* g = s.as<Gemm>();
      if (!g) return;
      auto type = [&](const Region& region) { return operand_type(p_, *g, region); };
      if (!target::wgmma_for(type(g->a), type(g->b), p_.buffer(g->c.buffer).type, g->is_sparse())) return;
      for (BufferId t : r.tiles) found = found || g->a.buffer == t || g->b.buffer == t;
    });
    return found;
  }

  // ---- rings
  static bool mentions(const Stmt& s, BufferId id) { return used_buffers({s}).contains(id); }
  // Whether only statements that slots() knows how to move read the tile there, and none writes it.
  bool reads_only(const Stmt& s, BufferId id) const {
    bool fits = true;
    walk({s}, [&](const Stmt& x) {
      for (const Effect& e : effects_of(x).list) {
        if (!e.region.valid() || p_.root(e.region.buffer) != id) continue;
        const bool known = x.as<Copy>() || x.as<Gemm>() || x.as<Reduce>();
        bool loaded = false;
        for_each_expr(x, [&](const Expr& y) {
          walk(y, [&](const Expr& z) { loaded = loaded || (z.as<Load>() && z.as<Load>()->buffer == id); });
        });
        if (e.access != Access::Read || (!known && !loaded)) fits = false;
      }
    });
    return fits;
  }
  bool is_written(BufferId id) const { return writers(p_.root(id)) > 0; }
  int writers(BufferId id) const {
    int count = 0;
    walk(launch_.body, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list)
        count += e.region.valid() && (e.access == Access::Write || e.access == Access::Accumulate) &&
                 p_.root(e.region.buffer) == id;
    });
    return count;
  }
  // Whether only the computing threads can know the value.
  bool is_of_math(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const auto* n = x.as<Load>();
      found = found || (n && (p_.buffer(p_.root(n->buffer)).space != Space::Global || is_written(n->buffer)));
    });
    for (VarId v : used_vars(e)) found = found || results_.contains(v);
    return found;
  }
  // A copy that the loader may take.
  bool is_loadable(const Copy& c) {
    const BufferId id = c.to.buffer;
    const Buffer to = p_.buffer(id);  // its own: the table grows
    if (p_.buffer(c.from.buffer).space != Space::Global || to.space != Space::Shared) return false;
    if (c.combine != ir::Combine::None || !misfit(c).empty() || writers(id) != 1) return false;
    const size_t rows = std::max<size_t>(to.rank(), 2) - 2;
    if (constant_int(c.to.extent[rows]) != constant_int(to.shape[rows])) return false;
    if (is_written(c.from.buffer)) return false;
    // Where it reads must not depend on what the others compute.
    if (c.im2col.present() && (is_of_math(c.im2col.row_block) || is_of_math(c.im2col.column_block))) return false;
    return std::none_of(c.from.min.begin(), c.from.min.end(), [&](const Expr& e) { return is_of_math(e); });
  }

  // Why TMA cannot bring it; what has one dimension comes as a row.
  std::string misfit(const Copy& c) {
    if (p_.buffer(c.to.buffer).rank() != 1) return tma_misfit(c, p_);
    const size_t mark = p_.buffers.size();
    Copy row = c;
    row.to = {row_of(c.to.buffer), {constant(0), c.to.min[0]}, {constant(1), c.to.extent[0]}};
    std::string why = tma_misfit(row, p_);
    p_.buffers.resize(mark);
    return why;
  }
  BufferId row_of(BufferId vector) {
    Buffer b = p_.buffer(vector);
    b.shape.insert(b.shape.begin(), constant(i32, int64_t{1}));
    return p_.new_buffer(std::move(b));
  }

  void find(const Body& body) {
    for (size_t i = 0; i < body.size(); ++i) {
      const Stmt& s = body[i];
      match_result(s);
      if (const auto* copy = s.as<Copy>()) {
        if (is_loadable(*copy)) ring(body, i, *copy);
        if (!is_moved(s) && waits_for_memory(*copy)) left_ = copy;
        continue;
      }
      if (const auto* n = s.as<If>(); n && !is_of_math(n->condition)) {
        const std::optional<size_t> outside = std::exchange(guarded_, nest_.size());
        find(n->then_body), find(n->else_body);
        guarded_ = outside;
      }
      const auto* loop = s.as<For>();
      if (!loop) continue;  // copies under other control stay where they are
      nest_.push_back(loop);
      find(loop->body);
      nest_.pop_back();
    }
  }
  // Whether the computing threads would stand and wait in a loop that should have run ahead.
  bool waits_for_memory(const Copy& c) const {
    return !nest_.empty() && nest_.back()->kind == LoopKind::Pipelined && nest_.back()->stages > 0 &&
           p_.buffer(p_.root(c.from.buffer)).space == Space::Global && p_.buffer(c.to.buffer).space == Space::Shared;
  }
  // Values that only the computing threads have.
  void match_result(const Stmt& s) {
    if (const auto* n = s.as<Let>(); n && is_of_math(n->value)) results_.insert(n->var);
    if (const auto* n = s.as<Shuffle>()) results_.insert(n->result);
    if (const auto* n = s.as<Vote>()) results_.insert(n->result);
    if (const auto* n = s.as<Atomic>()) results_.insert(n->result);
  }
  void ring(const Body& body, size_t at, const Copy& copy) {
    Ring r;
    const BufferId id = copy.to.buffer;
    for (size_t i = at + 1; i < body.size(); ++i) {
      if (!mentions(body[i], id)) continue;
      if (!reads_only(body[i], id)) return;
      if (!r.first_use) r.first_use = &*body[i];
      r.last_use = &*body[i];
    }
    // Under a condition a slot is not filled in every turn of the loop around: the turns of one inside are counted.
    if (guarded_ && nest_.size() <= *guarded_) return;
    r.counted = guarded_.has_value();
    int uses = 0, here = 0;
    auto count = [&](int& n) {
      return [&](const Stmt& s) {
        for (const Effect& e : effects_of(s).list) n += e.region.valid() && p_.root(e.region.buffer) == id;
      };
    };
    walk(launch_.body, count(uses));
    for (size_t i = at; i < body.size(); ++i) walk({body[i]}, count(here));
    if (!r.first_use || uses != here) return;
    // Where every loop takes as many turns in each turn of those around it, a product counts them.
    if (!nest_.empty()) {
      std::set<VarId> inside = bound_vars(nest_[0]->body);
      inside.insert(nest_[0]->var);
      for (size_t d = 1; d < nest_.size(); ++d)
        for (VarId v : used_vars(nest_[d]->extent)) r.counted = r.counted || inside.contains(v);
    }
    for (const For* loop : nest_) {
      bool reads = false;
      walk(loop->extent, [&](const Expr& x) { reads = reads || x.as<Load>(); });
      walk(loop->begin, [&](const Expr& x) { reads = reads || x.as<Load>(); });
      for (const Expr& e : {loop->extent, loop->begin})
        for (VarId v : used_vars(e)) reads = reads || results_.contains(v);
      if (reads) return;
    }
    const bool pipelined = !nest_.empty() && nest_.back()->kind == LoopKind::Pipelined && nest_.back()->stages > 0;
    r.ahead = pipelined;
    const int64_t of_tile = walks_ && limits_.next_tile && nest_.size() == 1 ? kFewest : 1;
    r.slots = pipelined ? std::min(std::max<int64_t>(nest_.back()->stages, kFewest), limits_.slots) : of_tile;
    int64_t bytes = p_.buffer(id).type.bits / 8;
    for (const Expr& e : copy.to.extent) bytes *= constant_int(e).value_or(1);
    // Neighbours that are used by the same statements share a ring.
    if (Ring* last = rings_.empty() ? nullptr : &rings_.back();
        last && at > 0 && &*last->copies.back() == &*body[at - 1] && last->first_use == r.first_use &&
        last->last_use == r.last_use) {
      last->copies.push_back(body[at]), last->tiles.push_back(id), last->bytes += bytes;
      return;
    }
    r.copies = {body[at]}, r.tiles = {id}, r.nest = nest_, r.bytes = bytes;
    if (Ring* with = companion(body, at, r)) {
      with->copies.push_back(body[at]), with->tiles.push_back(id), with->bytes += bytes;
      if (place_in(body, r.first_use) < place_in(body, with->first_use)) with->first_use = r.first_use;
      if (place_in(body, r.last_use) > place_in(body, with->last_use)) with->last_use = r.last_use;
      return;
    }
    rings_.push_back(std::move(r));
  }
  static size_t place_in(const Body& body, const StmtNode* s) {
    return static_cast<size_t>(std::find_if(body.begin(), body.end(), [&](const Stmt& x) { return &*x == s; }) -
                               body.begin());
  }
  // The ring of the same loop with which the tile may come, where no product of a turn has to wait for what is made of
  // another's: one wait and one release a turn, not one for each tile (measured: 2 to 5%).
  Ring* companion(const Body& body, size_t at, const Ring& r) {
    if (!r.ahead || !multiplies_brought(*nest_.back())) return nullptr;
    for (Ring& other : rings_) {
      if (!other.ahead || other.nest != r.nest || other.counted != r.counted) continue;
      const size_t first = place_in(body, &*other.copies[0]);
      if (first >= at) continue;  // of another body
      // The loader copies both where it copies the first: no name may come between.
      const std::set<VarId> used = used_vars(Body{body[at]});
      const bool named = std::any_of(body.begin() + static_cast<std::ptrdiff_t>(first),
                                     body.begin() + static_cast<std::ptrdiff_t>(at), [&](const Stmt& s) {
                                       const auto* let = s.as<Let>();
                                       return let && used.contains(let->var);
                                     });
      if (!named) return &other;
    }
    return nullptr;
  }
  // Whether all operands of the loop's gemms come from global memory as they are.
  bool multiplies_brought(const For& loop) const {
    bool all = true;
    walk(loop.body, [&](const Stmt& s) {
      const auto* g = s.as<Gemm>();
      for (const Region* r : {g ? &g->a : nullptr, g ? &g->b : nullptr}) all = all && (!r || is_brought(r->buffer));
    });
    return all;
  }
  bool is_brought(BufferId id) const {
    bool found = false;
    walk(launch_.body, [&](const Stmt& s) {
      const auto* copy = s.as<Copy>();
      found = found || (copy && copy->to.buffer == id && p_.buffer(copy->from.buffer).space == Space::Global);
    });
    return found && writers(id) == 1;
  }
  // Teams in turn take all slots that fit: the loader brings a team's first tiles while the other's are in use.
  void make_rings(bool alternating) {
    const int64_t warps = launch_.threads[0] / kWarpThreads;
    const bool multiplies = only_multiplies(), one_wave = !walks_ && !fills_device();
    for (Ring& r : rings_) {
      if (!r.ahead) continue;
      const bool deep = multiplies || (one_wave && count_gemms(r.nest.back()->body) == 1);
      if (alternating || (deep && waits_for_loads(r))) r.slots = std::max(r.slots, limits_.slots);
    }
    for (Ring& r : rings_) {
      std::string name;
      for (BufferId t : r.tiles) {
        name += (name.empty() ? "" : "_") + p_.buffer(t).name;
        r.slots_of.push_back(ring_of(p_, p_.buffer(t).rank() == 1 ? row_of(t) : t, r.slots));
      }
      r.full = new_barriers(p_, launch_, name + "_full", r.slots, 1);
      r.empty = new_barriers(p_, launch_, name + "_empty", r.slots, warps);
    }
  }

  // ---- the two sides
  // How often the ring has been filled before this iteration says which slot it is, and which round of the slots.
  Turn turn(const Ring& r, const Substitution& names) const {
    Expr count = constant(i32, int64_t{0});
    auto step = [&](const For* loop) { return cast(sub(var(loop->var, p_.var(loop->var).type), loop->begin), i32); };
    if (r.counted)
      count = add(var(before_.at(r.nest.back()), i32), step(r.nest.back()));
    else
      for (const For* loop : r.nest) count = add(mul(count, cast(loop->extent, i32)), step(loop));
    return turn_of(r.slots, substitute(count, names));
  }
  // How many turns a loop has taken in all, for each side on its own.
  using Counters = std::map<const For*, BufferId>;
  const Counters& counters() const { return loading_ ? loader_counters_ : math_counters_; }
  void make_counters() {
    for (const Ring& r : rings_) {
      if (!r.counted) continue;
      for (Counters* side : {&loader_counters_, &math_counters_}) {
        if (side->contains(r.nest.back())) continue;
        Buffer b;
        b.name = p_.var(r.nest.back()->var).name + "_before", b.type = i32, b.space = Space::Local;
        b.launch = static_cast<int32_t>(&launch_ - p_.launches.data());
        side->emplace(r.nest.back(), p_.new_buffer(std::move(b)));
      }
    }
  }
  Body start_counters(bool loading) {
    Body out;
    for (const auto& [loop, id] : loading ? loader_counters_ : math_counters_) {
      out.push_back(at_launch(Store{{id, {}}, constant(i32, int64_t{0})}));
      before_[loop] = p_.new_var(p_.buffer(id).name, i32);
    }
    return out;
  }
  // Tile operations of the loop that read a slot must not read a thread's own variable: the count has a name there.
  void name_turns(const For& loop, LocationId at, Body& out) const {
    if (const auto found = counters().find(&loop); found != counters().end())
      out.push_back(make_stmt(Let{before_.at(&loop), load(found->second, {}, i32)}, at));
  }
  void count_turns(const For& loop, const Substitution& names, LocationId at, Body& out) const {
    const auto found = counters().find(&loop);
    if (found == counters().end()) return;
    const Expr now = load(found->second, {}, i32);
    out.push_back(make_stmt(Store{{found->second, {}}, add(now, substitute(cast(loop.extent, i32), names))}, at));
  }
  const Ring* begins(const Stmt& s) const {
    for (const Ring& r : rings_)
      if (&*r.copies[0] == &*s) return &r;
    return nullptr;
  }
  bool is_moved(const Stmt& s) const {
    return std::any_of(rings_.begin(), rings_.end(), [&](const Ring& r) { return r.has(s); });
  }
  bool holds_copies(const Stmt& s) const {
    bool found = false;
    walk({s}, [&](const Stmt& x) { found = found || is_moved(x); });
    return found;
  }

  // The loops and names around the copies, and the copies. Variables get names of their own.
  Body loader(const Body& in, Substitution names) {
    Body out;
    for (const Stmt& s : in) {
      if (const auto* n = s.as<Let>(); n && !results_.contains(n->var)) {
        const VarId own = p_.new_var(p_.var(n->var).name, p_.var(n->var).type);
        out.push_back(make_stmt(Let{own, substitute(n->value, names)}, s->location));
        names[n->var] = var(own, p_.var(own).type);
      } else if (const Ring* r = begins(s)) {
        for (Stmt& x : fill(*r, in, names)) out.push_back(std::move(x));
      } else if (const auto* loop = s.as<For>(); loop && holds_copies(s)) {
        For f = serial(*loop);
        f.var = p_.new_var(p_.var(loop->var).name, p_.var(loop->var).type);
        f.begin = substitute(loop->begin, names), f.extent = substitute(loop->extent, names);
        name_turns(*loop, s->location, out);
        Substitution inside = names;
        inside[loop->var] = var(f.var, p_.var(f.var).type);
        f.body = loader(loop->body, inside);
        out.push_back(make_stmt(std::move(f), s->location));
        count_turns(*loop, names, s->location, out);
      } else if (const auto* n = s.as<If>(); n && holds_copies(s)) {
        If f{substitute(n->condition, names), loader(n->then_body, names), loader(n->else_body, names)};
        out.push_back(make_stmt(std::move(f), s->location));
      }
    }
    return out;
  }
  static For serial(const For& n) {
    For f = n;
    if (f.kind == LoopKind::Pipelined) f.kind = LoopKind::Serial;
    f.stages = 0, f.order.clear(), f.stage.clear();
    return f;
  }
  Body fill(const Ring& r, const Body& in, const Substitution& names) const {
    const Turn t = turn(r, names);
    const LocationId at = r.copies[0]->location;
    Body out{make_stmt(Wait{{r.empty, {t.slot}}, binary(BinaryOp::BitXor, t.parity, constant(i32, int64_t{1}))}, at),
             make_stmt(Expect{{r.full, {t.slot}}, constant(i32, r.bytes), true}, at)};
    for (const Stmt& s : in) {
      if (!r.has(s)) continue;
      Copy c = *substitute(Body{s}, names)[0].as<Copy>();
      c.to = into_slots(names).region(c.to);
      c.completion.barrier = {r.full, {t.slot}};
      out.push_back(make_stmt(std::move(c), s->location));
    }
    return out;
  }
  IntoSlots into_slots(const Substitution& names) const {
    std::map<BufferId, IntoSlots::Slot> all;
    for (const Ring& r : rings_)
      for (size_t i = 0; i < r.tiles.size(); ++i)
        all[r.tiles[i]] = {r.slots_of[i], turn(r, names).slot, p_.buffer(r.tiles[i]).rank() == 1};
    return IntoSlots(std::move(all));
  }

  Body body_of_math(const Body& in) {
    Body out = math(in);
    return into_slots({}).body(out);
  }
  Body math(const Body& in) {
    Body out;
    for (const Stmt& s : in) {
      if (is_moved(s)) continue;
      for (const Ring& r : rings_)
        if (r.first_use == &*s) wait_full(r, {}, s->location, out);
      if (const auto* loop = s.as<For>()) name_turns(*loop, s->location, out);
      const auto* skewable = overlaps_ ? s.as<For>() : nullptr;
      if (const auto parts = skewable ? skewed(*skewable) : std::nullopt) {
        append(out, skew(*parts, *skewable, s->location));
        count_turns(*skewable, {}, s->location, out);
      } else if (const auto* loop = s.as<For>()) {
        For f = serial(*loop);
        const Ring* overlapped = overlaps_ ? feeds_one_gemm(*loop) : nullptr;
        const Made made = overlaps_ && !overlapped ? makes_operand(*loop) : Made{};
        if (made.brought) overlapped = made.brought;
        f.body = overlapped ? overlap(*overlapped, *loop) : math(loop->body);
        if (made.brought) f.body = into_two_slots(made.tile, *loop, f.body);
        out.push_back(make_stmt(std::move(f), s->location));
        if (overlapped) finish(*overlapped, *loop, s->location, out);
        count_turns(*loop, {}, s->location, out);
      } else if (const auto* n = s.as<If>(); n && holds_copies(s)) {
        out.push_back(make_stmt(If{n->condition, math(n->then_body), math(n->else_body)}, s->location));
      } else {
        out.push_back(s);
      }
      for (const Ring& r : rings_)
        if (r.last_use == &*s) give_back(r, turn(r, {}).slot, s->location, out);
    }
    return out;
  }
  // Whether the gemm of the ring's loop, the only one, is done with a slot before the next has come.
  bool waits_for_loads(const Ring& r) const {
    for (const Stmt& s : r.nest.back()->body) {
      const auto* g = s.as<Gemm>();
      if (!g) continue;
      const int64_t m = constant_int(g->c.extent[g->c.extent.size() - 2]).value_or(0);
      const int64_t n = constant_int(g->c.extent.back()).value_or(0);
      return m * n < kLoadBound * (m + n);
    }
    return false;
  }
  // The ring of a loop that does nothing but multiply what the ring brings.
  const Ring* feeds_one_gemm(const For& loop) const {
    const Ring* ring = nullptr;
    for (const Stmt& s : loop.body) {
      if (is_moved(s) || s.as<Let>()) continue;
      const auto* g = s.as<Gemm>();
      if (!g || ring || p_.buffer(g->c.buffer).space != Space::Fragment) return nullptr;
      ring = fed_by(s, loop);
      if (!ring || ring->slots <= kEnough || waits_for_loads(*ring)) return nullptr;
    }
    return ring;
  }
  // One group of wgmma stays open while the next slot is waited for; a slot goes back once the group after it is
  // issued.
  Body overlap(const Ring& r, const For& loop) {
    Body out;
    for (const Stmt& s : loop.body) {
      if (is_moved(s)) continue;
      if (!s.as<Gemm>()) {
        append(out, math({s}));
        continue;
      }
      const LocationId at = s->location;
      wait_full(r, {}, at, out);
      out.push_back(in_flight(s));
      out.push_back(make_stmt(Commit{Queue::Wgmma}, at));
      out.push_back(make_stmt(Drain{Queue::Wgmma, 1, {}}, at));
      const Expr k = var(loop.var, p_.var(loop.var).type);
      const Substitution before{{loop.var, sub(k, constant(k->type, int64_t{1}))}};
      Body release;
      give_back(r, turn(r, before).slot, at, release);
      out.push_back(make_stmt(If{binary(BinaryOp::Lt, loop.begin, k), std::move(release), {}}, at));
    }
    return out;
  }
  void finish(const Ring& r, const For& loop, LocationId at, Body& out) const {
    const DType type = p_.var(loop.var).type;
    const Substitution last{{loop.var, sub(add(loop.begin, loop.extent), constant(type, int64_t{1}))}};
    out.push_back(make_stmt(Drain{Queue::Wgmma, 0, {}}, at));
    Body release;
    give_back(r, turn(r, last).slot, at, release);
    const Expr any = binary(BinaryOp::Lt, constant(loop.extent->type, int64_t{0}), loop.extent);
    if (constant_int(any) == 1)
      append(out, std::move(release));
    else
      out.push_back(make_stmt(If{any, std::move(release), {}}, at));
  }
  // ---- a product of what its turn makes (weights that are unpacked): the next turn's is made beside it
  struct Made {
    const Ring* brought = nullptr;  // of the other operand
    BufferId tile;
  };
  Made makes_operand(const For& loop) const {
    Made none, out;
    for (const Stmt& s : loop.body) {
      if (is_moved(s)) continue;
      if (out.brought) return none;  // the product is the last statement
      const auto* g = s.as<Gemm>();
      if (!g) {
        bool whole = true;
        walk({s}, [&](const Stmt& x) { whole = whole && !x.as<Gemm>() && !x.as<Sync>() && !x.as<For>(); });
        if (!whole) return none;
        continue;
      }
      if (g->is_sparse() || !g->completion.immediate() || p_.buffer(g->c.buffer).space != Space::Fragment) return none;
      out.brought = fed_by(s, loop);
      if (!out.brought || out.brought->slots < kEnough || !out.brought->ahead) return none;
      const auto& tiles = out.brought->tiles;
      const auto is_brought = [&](const Region& r) { return std::ranges::find(tiles, r.buffer) != tiles.end(); };
      if (is_brought(g->a) == is_brought(g->b)) return none;
      out.tile = is_brought(g->a) ? g->b.buffer : g->a.buffer;
      const Body before(loop.body.begin(), std::ranges::find_if(loop.body, [&](const Stmt& x) { return &*x == &*s; }));
      if (touched(before, false).contains(p_.root(g->c.buffer)) || !is_made_anew(out.tile, before)) return none;
    }
    return out.brought ? out : none;
  }
  // Whether the statements before the product write all of the tile, which nobody else has to do with.
  bool is_made_anew(BufferId id, const Body& before) const {
    const Buffer& b = p_.buffer(id);
    if (b.space != Space::Shared || b.is_view()) return false;
    for (const Buffer& other : p_.buffers)
      if (other.is_view() && other.root == id) return false;
    int uses = 0, writes = 0;
    walk(launch_.body, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list) uses += e.region.valid() && e.region.buffer == id;
    });
    bool all = false;
    for (const Stmt& s : before) {
      walk({s}, [&](const Stmt& x) {
        for (const Effect& e : effects_of(x).list)
          if (e.region.valid() && e.region.buffer == id) writes += e.access == Access::Write ? 1 : uses;
      });
      all = all || fills(s, id);
    }
    return all && writes + 1 == uses;
  }
  bool fills(const Stmt& s, BufferId id) const {
    const Buffer& b = p_.buffer(id);
    if (const auto* n = s.as<Copy>()) return n->to.buffer == id && is_whole(n->to, b);
    const auto* map = s.as<Map>();
    if (!map || map->vars.size() != b.rank()) return false;
    return std::ranges::any_of(map->body, [&](const Stmt& x) {
      const auto* store = x.as<Store>();
      if (!store || store->to.buffer != id) return false;
      for (size_t d = 0; d < b.rank(); ++d) {
        const auto* index = store->to.indices[d].as<Var>();
        if (!index || index->id != map->vars[d] || !equal(map->extents[d], b.shape[d])) return false;
      }
      return true;
    });
  }
  Body into_two_slots(BufferId tile, const For& loop, const Body& in) {
    const DType type = p_.var(loop.var).type;
    const Expr turn = cast(sub(var(loop.var, type), loop.begin), i32);
    return IntoSlots({{tile, {ring_of(p_, tile, 2), turn_of(2, turn).slot}}}).body(in);
  }
  // ---- two products, one of which waits for what is made of the other (attention)
  // The parts of a loop's body, in the order in which one turn runs them.
  struct Skew {
    const Ring* keys = nullptr;    // of the first gemm's operand
    const Ring* values = nullptr;  // of the second's
    Body scores, map, pack;        // up to the first gemm; what neither touches p nor o; the rest
    Stmt first, second;            // the gemms
  };
  std::set<BufferId> touched(const Body& body, bool written_only) const {
    std::set<BufferId> out;
    walk(body, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list)
        if (e.region.valid() && e.access != Access::Order && (!written_only || e.access != Access::Read))
          out.insert(p_.root(e.region.buffer));
    });
    return out;
  }
  bool clash(const Body& a, const Body& b) const {
    auto meet = [](const std::set<BufferId>& x, const std::set<BufferId>& y) {
      return std::any_of(x.begin(), x.end(), [&](BufferId id) { return y.contains(id); });
    };
    return meet(touched(a, true), touched(b, false)) || meet(touched(b, true), touched(a, false));
  }
  const Ring* fed_by(const Stmt& s, const For& loop) const {
    const Ring* found = nullptr;
    for (const Ring& r : rings_) {
      if (r.first_use != &*s || r.last_use != &*s || r.nest.back() != &loop) continue;
      if (found) return nullptr;
      found = &r;
    }
    return found;
  }
  // scores = q k; p = f(scores); o = o * scale + p v: the product with v of one turn may run beside f of the next.
  std::optional<Skew> skewed(const For& loop) const {
    Skew s;
    Body between;
    std::set<VarId> names;
    for (const Stmt& x : loop.body) {
      if (is_moved(x)) continue;
      if (s.second) return std::nullopt;  // the second gemm is the last statement
      const auto* g = x.as<Gemm>();
      if (!g) {
        bool gemms = false;
        walk({x}, [&](const Stmt& y) { gemms = gemms || y.as<Gemm>() || y.as<Sync>(); });
        if (gemms) return std::nullopt;
        if (const auto* let = x.as<Let>(); let && !s.first) names.insert(let->var);
        (s.first ? between : s.scores).push_back(x);
        continue;
      }
      if (p_.buffer(g->c.buffer).space != Space::Fragment) return std::nullopt;
      const Ring* ring = fed_by(x, loop);
      if (!ring) return std::nullopt;
      if (!s.first)
        s.first = x, s.keys = ring;
      else
        s.second = x, s.values = ring;
    }
    if (!s.first || !s.second || s.keys == s.values) return std::nullopt;
    const Gemm& second = *s.second.as<Gemm>();
    if (p_.buffer(second.a.buffer).space != Space::Fragment || second.clear) return std::nullopt;
    for (const Region* r : {&second.a, &second.c})
      for (const Expr& e : r->min)
        if (!constant_int(e)) return std::nullopt;
    Body head = s.scores, rest = between;
    head.push_back(s.first), rest.push_back(s.second);
    if (clash(head, {s.second})) return std::nullopt;
    for (VarId v : used_vars(rest))
      if (names.contains(v)) return std::nullopt;  // each side has names of its own
    const std::set<BufferId> mine{p_.root(second.a.buffer), p_.root(second.c.buffer)};
    for (const Stmt& x : between) {
      bool touches = false;
      for (BufferId id : touched({x}, false)) touches = touches || mine.contains(id);
      if (!touches && clash({x}, s.pack)) return std::nullopt;  // it would move before what it needs
      (touches ? s.pack : s.map).push_back(x);
    }
    return s;
  }
  static void append(Body& out, Body more) { out.insert(out.end(), more.begin(), more.end()); }
  void wait_full(const Ring& r, const Substitution& names, LocationId at, Body& out) const {
    const Turn t = turn(r, names);
    out.push_back(make_stmt(Wait{{r.full, {t.slot}}, t.parity}, at));
  }
  // Statements of the loop's body as another turn runs them.
  Body at_turn(const Body& body, const Substitution& names) const {
    return into_slots(names).body(substitute(body, names));
  }
  static Stmt in_flight(const Stmt& s) {
    Gemm g = *s.as<Gemm>();
    g.completion.queue = Queue::Wgmma;
    return make_stmt(std::move(g), s->location);
  }
  // Turn 0 up to p; then each turn's scores beside the product with v of the one before; the last product.
  Body skew(const Skew& s, const For& loop, LocationId at) {
    const DType type = p_.var(loop.var).type;
    const Expr i = var(loop.var, type), one = constant(type, int64_t{1});
    const Substitution first{{loop.var, loop.begin}}, before{{loop.var, sub(i, one)}},
        last{{loop.var, sub(add(loop.begin, loop.extent), one)}};
    Body head = s.scores, tail = s.map, out;
    append(tail, s.pack);
    Body start = s.scores;
    wait_full(*s.keys, {}, at, start);
    start.push_back(s.first);
    append(out, renamed(p_, at_turn(start, first)));
    give_back(*s.keys, turn(*s.keys, first).slot, at, out);
    append(out, renamed(p_, at_turn(tail, first)));

    For steady = serial(loop);
    steady.begin = add(loop.begin, one), steady.extent = sub(loop.extent, one);
    Body& body = steady.body;
    body = head;
    wait_full(*s.keys, {}, at, body);
    body.push_back(in_flight(s.first));
    body.push_back(make_stmt(Commit{Queue::Wgmma}, at));
    wait_full(*s.values, before, at, body);
    append(body, into_slots(before).body({in_flight(s.second)}));  // what it reads elsewhere is the same every turn
    body.push_back(make_stmt(Commit{Queue::Wgmma}, at));
    body.push_back(make_stmt(Drain{Queue::Wgmma, 1, {}}, at));
    give_back(*s.keys, turn(*s.keys, {}).slot, at, body);
    append(body, s.map);
    // The device compiler moves the wait for the product up before the map, but not over another wait: that for v,
    // which has come and whose slot is still ours. Three warpgroups fill each other's gaps then (d 64: 454 to 530
    // TFLOP/s); two take turns of themselves while they wait early (487 against 463, d 128 702 against 678).
    if (launch_.threads[0] > 2 * kGroup) wait_full(*s.values, before, at, body);
    body.push_back(make_stmt(Drain{Queue::Wgmma, 0, {}}, at));
    give_back(*s.values, turn(*s.values, before).slot, at, body);
    append(body, s.pack);
    out.push_back(make_stmt(std::move(steady), at));

    wait_full(*s.values, last, at, out);
    append(out, at_turn({s.second}, last));
    give_back(*s.values, turn(*s.values, last).slot, at, out);
    const Expr any = binary(BinaryOp::Lt, constant(type, int64_t{0}), loop.extent);
    return constant_int(any) == 1 ? out : Body{make_stmt(If{any, std::move(out), {}}, at)};
  }

  void give_back(const Ring& r, const Expr& slot, LocationId at, Body& out) const {
    arrive_by_warps(launch_, {r.empty, {slot}}, at, out);
  }

  TileProgram& p_;
  Launch& launch_;
  const target::GpuTarget& target_;
  const RingLimits limits_;
  std::vector<const For*> nest_;
  std::optional<size_t> guarded_;  // the loops around the innermost condition around this place
  std::vector<Ring> rings_;
  std::set<VarId> results_;
  BufferId turns_;  // of two teams: mbarriers on which each waits for its turn
  Counters loader_counters_, math_counters_;
  std::map<const For*, VarId> before_;  // names of the counts, on the side that is being written
  bool walks_ = false;                  // the outermost loop is that over tiles
  bool loading_ = false;
  bool overlaps_ = false;       // a product may run on while something else is done
  const Copy* left_ = nullptr;  // one of a pipelined loop's copies that is no ring's
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
