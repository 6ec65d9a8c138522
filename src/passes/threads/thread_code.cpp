#include "passes/threads/thread_code.h"

#include "analysis/accessed.h"
#include "analysis/collectives.h"
#include "ir/cluster.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/match.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/assume_fast_calls.h"
#include "passes/lower/block_index.h"
#include "passes/threads/alike_stores.h"
#include "passes/threads/collectives.h"
#include "passes/tile/early_loads.h"
#include "passes/warp_arrivals.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::Uniformity;

namespace {

constexpr int64_t kManySums = 32;  // of a thread: a few that stand in registers twice cost nothing

class ThreadCode {
 public:
  ThreadCode(const TileProgram& tiles, const Uniformity& u, const Placement& placement, const NamedBarriers& barriers,
             Lowering& l)
      : u_(u),
        l_(l),
        c_{.l = l,
           .placement = placement,
           .registers = {},
           .changed = changed_roots(l.launch.body, tiles),
           .warp_boxes = warp_boxes(tiles, l.launch, placement, u)},
        barriers_(barriers),
        alike_(alike_stores(tiles, l.launch, u)),
        used_(used_buffers(l.launch.body)) {
    walk(l.launch.body, [&](const Stmt& s) {
      if (const auto* g = s.as<Gemm>(); g && placement.choice_of(s).wgmma) products_.insert(g->c.buffer);
      if (const auto* n = s.as<Copy>(); n && n->completion.queue == Queue::BulkStore)
        stores_alone_ = stores_alone_ || analysis::is_of_one_thread(s, u_);
    });
  }

  // `linear_block`: the variable that numbers the blocks, if the hardware's three do not serve.
  Body lower(VarId linear_block) {
    Body out;
    l_.intervals = ranges_of_symbols(l_.program);
    for (size_t d = 0; d < l_.launch.thread.size(); ++d)
      l_.intervals.set(l_.launch.thread[d], {0, l_.launch.threads[d] - 1});
    block_ = {bind_thread(out), l_.launch.thread_count(), 0, 0, {}, l_.launch.thread.size() == 1};
    bind_group(l_.launch.body, block_, out);
    fragments();
    append(out, clear_places_without_elements());
    append(out, init_barriers());
    if (linear_block.valid())
      append(out, bind_block(l_.launch, cast(var(linear_block, i32), blocks_are_few(l_.launch, l_.program) ? i32 : i64),
                             l_));
    else
      bound_blocks();
    const Body code = body(l_.launch.body, block_);
    append(out, copies_at_once_ ? arrive_after_stores(code) : code);
    return out;
  }
  bool streams() const { return streams_ || c_.streams; }

 private:
  // The linear index of the thread, under one name.
  Expr bind_thread(Body& out) {
    if (l_.launch.thread.size() == 1) return var(l_.launch.thread[0], i32);
    Expr linear = constant(0);
    for (size_t d = l_.launch.thread.size(); d-- > 0;)
      linear = add(sum({{l_.launch.threads[d], linear}}, 0, i32), var(l_.launch.thread[d], i32));
    const VarId id = l_.program.new_var("thread", i32);
    out.push_back(make_stmt(Let{id, linear}, l_.launch.location));
    l_.intervals.set(id, {0, l_.launch.thread_count() - 1});
    return var(id, i32);
  }
  // The number of the warpgroup, where wgmma's operands depend on it: read from one lane, so that the device compiler
  // sees one value a warp and keeps addresses in uniform registers.
  void bind_group(const Body& code, Team& team, Body& out) {
    bool wanted = false;
    walk(code, [&](const Stmt& s) {
      const auto found = s.as<Gemm>() ? c_.placement.gemms.find(s->id) : c_.placement.gemms.end();
      wanted = wanted ||
               (found != c_.placement.gemms.end() && found->second.wgmma && u_.executing_set(s).count() == team.count);
    });
    if (!wanted || team.count <= target::kWarpgroupThreads) return;
    Shuffle first;
    first.kind = ShuffleKind::Index, first.lane = constant(i32, int64_t{0}), first.converged = true;
    first.value = binary(BinaryOp::FloorDiv, team.thread, constant(i32, target::kWarpgroupThreads));
    first.result = l_.program.new_var("group", i32);
    l_.intervals.set(first.result, {0, team.count / target::kWarpgroupThreads - 1});
    team.group = var(first.result, i32);
    out.push_back(make_stmt(std::move(first), l_.launch.location));
  }
  void bound_blocks() {
    for (size_t d = 0; d < l_.launch.block.size(); ++d) {
      const VarId v = l_.launch.block[d];
      l_.intervals.count(v, l_.program.var(v).type, l_.launch.grid[d]);
    }
  }
  // Fragments in registers become local arrays, the others shared buffers.
  void fragments() {
    std::map<BufferId, BufferId> of_root;  // views have the registers of their fragment
    for (const auto& [id, layout] : c_.placement.registers) {
      const Buffer& b = l_.buffer(l_.program.root(id));
      const auto [at, is_first] = of_root.try_emplace(l_.program.root(id));
      if (is_first) at->second = l_.temporary(b.name, b.type, {layout.registers()}, Space::Local);
      c_.registers[id] = at->second;
    }
  }
  // What tiles that reach beyond a fragment hold there: instructions read all of a tile, and nothing else writes it.
  Body clear_places_without_elements() {
    std::set<BufferId> padded;
    walk(l_.launch.body, [&](const Stmt& s) {
      const auto* n = s.as<Gemm>();
      if (!n || !c_.placement.choice_of(s).mma) return;
      for (BufferId id : {n->a.buffer, n->c.buffer})
        if (const FragmentLayout* layout = c_.placement.layout_of(id); layout && layout->is_padded())
          padded.insert(c_.registers.at(id));
    });
    Body out;
    for (BufferId id : padded) {
      const Buffer& b = l_.buffer(id);
      const int64_t count = *constant_int(b.shape[0]);
      const Expr r = unrolled_index(l_, "r", count);
      out.push_back(loop(l_, r, constant(0), constant(count),
                         {make_stmt(Store{{id, {r}}, constant(b.type, int64_t{0})}, l_.launch.location)},
                         LoopKind::Unroll));
    }
    return out;
  }

  // Whether the program's own barrier of the cluster tells that they are made: threads come by before they use one.
  bool meets_before_barriers() const {
    bool arrived = false;
    for (const Stmt& s : l_.launch.body) {
      if (const auto* n = s.as<Sync>(); n && n->scope == SyncScope::Cluster) {
        arrived = arrived || !n->wait_only;
        if (!n->arrive_only) return arrived;
        continue;
      }
      for (BufferId id : used_buffers({s}))
        if (l_.buffer(id).space == Space::Barrier || l_.buffer(id).cta) return false;
      if (reaches_blocks(l_.program, s)) return false;
    }
    return false;
  }
  // mbarriers are made before anybody may use one.
  Body init_barriers() {
    Body init;
    for (uint32_t i = 0; i < l_.program.buffers.size(); ++i)
      if (const Buffer& b = l_.program.buffers[i]; b.space == Space::Barrier && used_.contains(BufferId{i}))
        init.push_back(make_stmt(InitBarriers{{i}}, b.location));
    if (init.empty()) return {};
    Body out = by_one_thread(std::move(init), block_, l_);
    if (meets_before_barriers()) return out;
    Sync all;  // blocks of a cluster arrive at each other's
    all.scope = cluster_blocks(l_.launch) > 1 ? SyncScope::Cluster : SyncScope::Block;
    out.push_back(make_stmt(std::move(all), l_.launch.location));
    return out;
  }

  void append(Body& out, Body code) const { out.insert(out.end(), code.begin(), code.end()); }

  Body body(const Body& in, const Team& team) {
    Body out;
    for (const Stmt& s : in) {
      const LocationId outer = std::exchange(l_.at, s->location);
      if (is_loop(s)) forget_written({s}, l_);  // an iteration before this one may have
      append(out, statement(s, team));
      forget_written({s}, l_);
      l_.at = outer;
    }
    return merge_elected(std::move(out));
  }

  // What one thread does in several statements, it does in one go.
  static Body merge_elected(Body in) {
    Body out;
    for (Stmt& s : in) {
      const auto* mine = s.as<Elect>();
      const auto* last = out.empty() ? nullptr : out.back().as<Elect>();
      const auto *role = s.as<Role>(), *before = out.empty() ? nullptr : out.back().as<Role>();
      if (mine && last) {
        Body both = last->body;
        both.insert(both.end(), mine->body.begin(), mine->body.end());
        out.back() = make_stmt(Elect{std::move(both)}, out.back()->location);
      } else if (is_elected(role) && is_elected(before) && role->begin == before->begin && role->end == before->end) {
        Body both = before->body;
        both.insert(both.end(), role->body.begin(), role->body.end());
        out.back() = make_stmt(Role{role->begin, role->end, merge_elected(std::move(both))}, out.back()->location);
      } else {
        out.push_back(std::move(s));
      }
    }
    return out;
  }
  static bool is_elected(const Role* n) { return n && n->body.size() == 1 && n->body[0].as<Elect>(); }

  static Team alone(Team team) {
    team.alone = true;
    return team;
  }
  Team who_comes(const Stmt& s, const Team& team) const { return u_.is_uniform_control(s) ? team : alone(team); }

  Body statement(const Stmt& s, const Team& team) {
    if (is_tile_op(s)) return tile_op(s, analysis::is_of_one_thread(s, u_) ? alone(team) : team);
    if (s.as<Expect>()) return by_one_thread(guard_accesses({s}, l_), who_comes(s, team), l_);
    if (const auto* n = s.as<Commit>(); n && n->queue == Queue::BulkStore) return bulk_group({s}, who_comes(s, team));
    if (const auto* n = s.as<Drain>()) return drain(*n, s, who_comes(s, team));
    if (const auto* n = s.as<Commit>(); n && n->queue == Queue::Wgmma) c_.open.commit();
    if (s.as<Assume>()) {
      l_.intervals.assume(s.as<Assume>()->condition);
      return {};
    }
    if (const auto* n = s.as<Role>()) return role(*n);
    if (const auto* n = s.as<For>()) return loop_of(*n, s, team);
    if (const auto* n = s.as<If>()) {
      If f{guard_accesses(n->condition, l_), {}, {}};
      const size_t mark = l_.intervals.mark();
      l_.intervals.assume(f.condition);
      const Intervals::Ranges before = l_.intervals.narrow(f.condition);
      const OpenGroups groups = c_.open;
      f.then_body = body(n->then_body, team);
      l_.intervals.restore(before);
      l_.intervals.forget(mark);
      const OpenGroups behind = std::exchange(c_.open, groups);
      f.else_body = body(n->else_body, team);
      if (has_groups({s})) c_.open.join(behind);
      l_.intervals.forget(mark);
      return {l_.make(std::move(f))};
    }
    if (const auto* n = s.as<While>()) {
      ++c_.loops;
      const bool meets = std::exchange(c_.meets, false);
      const size_t mark = l_.intervals.mark();
      if (has_groups({s})) c_.open.forget_order();
      for (BufferId c : open_at_end(n->body))
        if (auto found = c_.registers.find(c); found != c_.registers.end()) c_.open.use_since(found->second);
      Body inside = body(n->body, team);
      if (has_groups({s})) c_.open.forget_order();
      l_.intervals.forget(mark);
      --c_.loops, c_.meets = meets;
      return {l_.make(While{guard_accesses(n->condition, l_), std::move(inside)})};
    }
    if (const auto* n = s.as<Sync>()) return sync(*n, s, team);
    if (const auto* n = s.as<Arrive>(); n && n->by == ArriveBy::Warp)
      return body(by_first_threads(*n, block_.thread, s->location), team);
    if (const auto* n = s.as<LoadMatrix>()) {
      LoadMatrix words = *n;
      words.matrices = 0;
      return guard_accesses({l_.make(std::move(words))}, l_);
    }
    if (const auto* n = s.as<Shuffle>()) return {l_.make(converged(*n, s))};
    if (const auto* n = s.as<Vote>()) return {l_.make(converged(*n, s))};
    if (s.as<Store>() || s.as<Atomic>()) return scalar(s, team);
    if (const auto* n = s.as<Let>(); n && n->value->type.is_int()) name(*n);
    return guard_accesses({s}, l_);
  }
  Body tile_op(const Stmt& s, const Team& team) {
    Body out;
    const Stmt sure = with_sure_operands(s, out, l_);
    append(out, match(sure->op, [&]<class Op>(const Op& op) -> Body {
             if constexpr (TileOp<Op>) return lower_for_thread(op, sure, team, c_);
             return {};
           }));
    if (const std::vector<Region> sums = sums_of(s); !sums.empty())
      out.push_back(l_.make(Fence{FenceProxy::Registers, sums}));
    return out;
  }
  // Registers of a loop to which a Map adds what wgmma made, of fragments that no product has: the device compiler
  // would put the additions off, and keep what they are made of beside what the next product makes.
  std::vector<Region> sums_of(const Stmt& s) const {
    std::vector<Region> out;
    const auto is_product = [&](BufferId id) { return products_.contains(id); };
    if (!s.as<Map>() || c_.loops == 0) return out;
    if (std::ranges::none_of(analysis::read_by({s}, l_.program), is_product)) return out;
    for (BufferId id : analysis::written_by({s}, l_.program)) {
      const auto own = c_.registers.find(id);
      const bool many = own != c_.registers.end() && c_.placement.layout_of(id)->registers() >= kManySums;
      if (many && !is_product(id) && l_.type(own->second).bits == 32) out.push_back(whole(own->second, l_.program));
    }
    return out;
  }
  void name(const Let& n) {
    l_.intervals.set(n.var, l_.intervals.of(n.value));
    bool pure = n.value->type.is_signed();
    walk(n.value, [&](const Expr& x) { pure = pure && !x.as<Load>() && !x.as<Intrinsic>(); });
    if (pure) l_.intervals.define(n.var, n.value);
  }
  // Where a store of the queue cp_async is a plain one, nobody arrives for it later: the thread itself does, once all
  // of its copies are there.
  Body arrive_after_stores(const Body& code) const {
    return rewrite(code, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<Arrive>();
      if (!n || n->queue != Queue::CpAsync) return std::nullopt;
      return Body{make_stmt(Commit{Queue::CpAsync}, s->location), make_stmt(Drain{Queue::CpAsync, 0, {}}, s->location),
                  make_stmt(Fence{FenceProxy::Async, {}}, s->location),
                  make_stmt(Arrive{n->barrier, n->cta}, s->location)};
    });
  }
  template <class Op>
  Op converged(const Op& n, const Stmt& s) {
    Op copy = n;
    if (copy.value) copy.value = guard_accesses(copy.value, l_);
    if constexpr (std::is_same_v<Op, Shuffle>) copy.lane = guard_accesses(copy.lane, l_);
    copy.converged = u_.control(s) != analysis::Agreement::None && l_.launch.thread_count() % kWarpThreads == 0;
    return copy;
  }

  // Groups of bulk stores are a thread's: where warps bring tiles away, each warp has groups of its own.
  // Groups are a thread's own: where threads of the program's choice store, all close theirs and wait for them.
  Body bulk_group(Body body, const Team& team) const {
    if (stores_alone_) return body;
    return c_.warp_boxes.empty() || team.alone ? by_one_thread(std::move(body), team, l_)
                                               : by_each_warp(std::move(body), l_);
  }
  Body drain(const Drain& n, const Stmt& s, const Team& team) {
    if (n.queue == Queue::BulkStore) return bulk_group({s}, team);
    if (n.queue != Queue::Wgmma) return {s};
    Drain named = n;
    for (BufferId r : c_.open.drain(n.pending))
      named.registers.push_back({r, {constant(0)}, {constant(constant_int(l_.buffer(r).shape[0]).value_or(0))}});
    return {l_.make(std::move(named))};
  }

  Body role(const Role& n) {
    Team team{sub(block_.thread, constant(n.begin)),
              n.end - n.begin,
              n.begin,
              barriers_.within(n.begin, n.end),
              {},
              block_.in_line};
    const OpenGroups outside = std::exchange(c_.open, {});
    const size_t mark = l_.intervals.mark();
    Body out = role_of(n, std::move(team));
    l_.intervals.forget(mark);
    c_.open = outside;
    return out;
  }
  Body role_of(const Role& n, Team team) {
    if (l_.launch.thread.size() == 1) {  // what is below the first thread never comes here
      const VarId id = l_.program.new_var("thread", i32), own = l_.launch.thread[0];
      const Interval outside = l_.intervals.of(var(own, i32));
      l_.intervals.set(id, {0, team.count - 1}), l_.intervals.set(own, {n.begin, n.end - 1});
      Body inside{l_.make(Let{id, team.thread})};
      team.thread = var(id, i32);
      bind_group(n.body, team, inside);
      append(inside, body(n.body, team));
      l_.intervals.set(own, outside);
      return {l_.make(Role{n.begin, n.end, std::move(inside)})};
    }
    return {l_.make(Role{n.begin, n.end, body(n.body, team)})};
  }

  // Who breaks off before they meet comes by no statement of the loop again.
  static bool meets_in_turns(const Body& turn) {
    const auto meeting = std::ranges::find_if(turn, [](const Stmt& s) {
      const auto* n = s.as<Sync>();
      return n && n->scope == SyncScope::Block;
    });
    if (meeting == turn.end() || may_jump({meeting, turn.end()})) return false;
    bool goes_on = false;
    walk({turn.begin(), meeting}, [&](const Stmt& s) { goes_on = goes_on || s.as<Continue>(); });
    return !goes_on;
  }
  Body loop_of(const For& n, const Stmt& at, const Team& team) {
    if (n.kind == LoopKind::Vectorized)
      if (auto copied = lower_async_store(n, team, c_)) {
        copy_loops_ = std::max(copy_loops_, 1);
        return *copied;
      }
    if (const auto parts = in_vectors(n)) return loop_of(*parts, at, team);
    For f = n;
    f.kind = n.kind == LoopKind::Unroll || n.kind == LoopKind::Vectorized ? LoopKind::Unroll : LoopKind::Serial;
    f.stages = 0, f.order.clear(), f.stage.clear();
    f.begin = guard_accesses(n.begin, l_), f.extent = guard_accesses(n.extent, l_);
    const Interval begin = l_.intervals.of(f.begin), extent = l_.intervals.of(f.extent);
    if (begin.low > -kUnbounded && extent.high < kUnbounded)
      l_.intervals.set(f.var, {begin.low, std::max(begin.low, begin.high + extent.high - 1)});
    const bool groups = has_groups(n.body);
    if (groups) c_.open.forget_order();
    for (BufferId c : open_at_end(n.body))
      if (auto found = c_.registers.find(c); found != c_.registers.end()) c_.open.use_since(found->second);
    ++c_.loops;
    const bool meets = std::exchange(c_.meets, meets_in_turns(n.body));
    const size_t mark = l_.intervals.mark();
    assume_turn(f, l_);
    const int outside = std::exchange(copy_loops_, 0);
    auto lanes = n.kind == LoopKind::Vectorized && is_plain(n.body) ? lower_lanes(at_once(n), team, c_) : std::nullopt;
    if (!lanes) f.body = body(n.body, team);
    if (groups) c_.open.forget_order();
    l_.intervals.forget(mark);
    --c_.loops, c_.meets = meets;
    // Unrolled, loops in loops of a thread's copies want registers for the addresses of all of them.
    if (copy_loops_ > 1 && f.kind == LoopKind::Serial)
      f.kind = LoopKind::Unroll, f.factor = goes_through_registers(n) ? 0 : 1;
    if (const int64_t turns = f.kind == LoopKind::Serial ? turns_on_their_way(n, team) : 1; turns > 1)
      f.kind = LoopKind::Unroll, f.factor = turns, streams_ = true;
    else if (f.kind == LoopKind::Serial && waits_in_turns(n))
      f.kind = LoopKind::Unroll;
    copy_loops_ = std::max(outside, copy_loops_ > 0 ? copy_loops_ + 1 : 0);
    return lanes ? std::move(*lanes) : Body{l_.make(std::move(f))};
  }
  // Whether few turns name one element each of a thread's own array: it lies in registers where they are unrolled, and
  // in memory else, to which what is loaded ahead would have to come first.
  bool goes_through_registers(const For& n) const {
    constexpr int64_t kMostTurns = 8;
    if (constant_int(n.extent).value_or(kMostTurns + 1) > kMostTurns) return false;
    bool found = false;
    const auto touches = [&](BufferId id, const std::vector<Expr>& index) {
      if (l_.buffer(l_.program.root(id)).space != Space::Local) return;
      for (const Expr& e : index) found = found || used_vars(e).contains(n.var);
    };
    walk(n.body, [&](const Stmt& s) {
      if (const auto* store = s.as<Store>()) touches(store->to.buffer, store->to.indices);
    });
    walk_exprs(n.body, [&](const Expr& e) {
      if (const auto* load = e.as<Load>()) touches(load->buffer, load->indices);
    });
    return found;
  }
  // Whether a thread waits for memory of the device in each of a few turns that do not wait for each other: unrolled,
  // all ask for it at once. The device compiler leaves such loops as they are where a turn is long.
  bool waits_in_turns(const For& n) const {
    constexpr int64_t kMostTurns = 8;
    constexpr int kMostStatements = 32;
    const auto turns = constant_int(n.extent);
    if (!turns || *turns < 2 || *turns > kMostTurns) return false;
    bool reads = false, short_turns = true;
    int statements = 0;
    walk(n.body, [&](const Stmt& s) {
      const auto* inner = s.as<For>();
      const auto* store = s.as<Store>();
      const bool own = store && l_.buffer(l_.program.root(store->to.buffer)).space != Space::Global;
      short_turns =
          short_turns && ++statements <= kMostStatements &&
          (own || s.as<Let>() || s.as<Assume>() || s.as<Call>() || (inner && inner->kind == LoopKind::Vectorized));
    });
    walk_exprs(n.body, [&](const Expr& e) {
      const auto* load = e.as<Load>();
      reads = reads || (load && l_.is_global(load->buffer));
    });
    return reads && short_turns;
  }
  // The turns of a loop whose loads are on their way together: of one that does nothing but bring elements of tensors
  // to registers and compute with them, as many as a thread has registers for. Neighbours in memory come close in time
  // then.
  int64_t turns_on_their_way(const For& n, const Team& team) const {
    constexpr int64_t kMostBytes = 256, kRegisterBytes = 4,
                      kShare = 4;  // of the registers that a block leaves a thread
    int64_t bytes = 0;
    for (const Stmt& s : n.body) {
      const auto brought = bytes_brought(s, team);
      if (!brought) return 1;
      bytes += *brought;
    }
    if (bytes == 0) return 1;
    const int64_t room = target::Multiprocessor{}.registers / block_.count * kRegisterBytes / kShare;
    const int64_t turns = std::min({kMostBytes, room}) / bytes;
    return std::min(turns, std::max<int64_t>(constant_int(n.extent).value_or(turns), 1));
  }
  // Bytes that a thread brings from tensors to registers; none: it does something else.
  std::optional<int64_t> bytes_brought(const Stmt& s, const Team& team) const {
    if (s.as<Let>() || s.as<Assume>()) return 0;
    const auto in_registers = [&](BufferId id) { return c_.registers.contains(id); };
    if (const auto* n = s.as<Fill>()) return in_registers(n->to.buffer) ? std::optional<int64_t>(0) : std::nullopt;
    const auto bytes = [&](DType type, int64_t elements) {
      return (elements * type.bits / 8 + team.count - 1) / team.count;
    };
    if (const auto* n = s.as<Copy>()) {
      if (!n->completion.immediate() || !in_registers(n->to.buffer) || !l_.is_global(n->from.buffer))
        return std::nullopt;
      int64_t elements = 1;
      for (const Expr& e : n->to.extent) elements *= constant_int(e).value_or(0);
      return bytes(l_.type(n->from.buffer), elements);
    }
    const auto* map = s.as<Map>();
    if (!map) return std::nullopt;
    int64_t points = 1, out = 0;
    for (const Expr& e : map->extents) points *= constant_int(e).value_or(0);
    bool plain = true;
    walk(map->body, [&](const Stmt& inner) {
      const auto* store = inner.as<Store>();
      plain = plain && (inner.as<Let>() || (store && in_registers(store->to.buffer)));
    });
    walk_exprs(map->body, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      if (n && l_.is_global(n->buffer))
        out += bytes(l_.type(n->buffer), points);
      else
        plain = plain && (!n || in_registers(n->buffer));
    });
    return plain ? std::optional(out) : std::nullopt;
  }
  // A loop of more lanes than a vector has, of a number of them that is no power of two, or that begins elsewhere, as
  // one over vectors.
  std::optional<For> in_vectors(const For& n) const {
    const auto count = constant_int(n.extent);
    if (n.kind != LoopKind::Vectorized || !count || *count <= 0 || !is_plain(n.body)) return std::nullopt;
    const int64_t begin = constant_int(n.begin).value_or(0), all = *count | begin;
    const int64_t vector = std::min(all & -all, kMaxLanes);
    if (vector < 2 || (constant_int(n.begin) == 0 && *count == vector)) return std::nullopt;
    const DType type = l_.program.var(n.var).type;
    const VarId part = l_.program.new_var("part", type), lane = l_.program.new_var("lane", type);
    l_.intervals.set(part, {0, *count / vector - 1}), l_.intervals.set(lane, {0, vector - 1});
    For lanes = n;
    lanes.var = lane, lanes.begin = constant(type, int64_t{0}), lanes.extent = constant(type, vector);
    lanes.body =
        substitute(n.body, {{n.var, add(n.begin, add(mul(var(part, type), constant(type, vector)), var(lane, type)))}});
    For out = lanes;
    out.var = part, out.extent = constant(type, *count / vector), out.kind = LoopKind::Unroll;
    out.body = {make_stmt(std::move(lanes), l_.at)};
    return out;
  }
  // Nothing but names, and stores of every thread's own.
  bool is_plain(const Body& body) const {
    return std::all_of(body.begin(), body.end(), [&](const Stmt& s) {
      return s.as<Let>() || s.as<Assume>() || (s.as<Store>() && !u_.happens_once(s));
    });
  }

  // With plain stores in place of those of the queue cp_async.
  For at_once(const For& n) {
    For f = n;
    f.body = rewrite(n.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* store = s.as<Store>();
      if (!store || store->queue == Queue::None) return std::nullopt;
      copies_at_once_ = true;
      return Body{make_stmt(Store{store->to, store->value}, s->location)};
    });
    return f;
  }

  // The block's barrier inside a role is one of the role's threads.
  Body sync(const Sync& n, const Stmt& s, const Team& team) {
    if (n.scope == SyncScope::Block && team.count != block_.count) return {c_.barrier(team)};
    return {s};
  }

  // What all threads of the team agree on happens once.
  Body scalar(const Stmt& s, const Team& team) {
    if (const auto* later = s.as<Store>(); later && later->queue != Queue::None) {
      copies_at_once_ = true;
      return scalar(l_.make(Store{later->to, later->value}), s, team);
    }
    return scalar(s, s, team);
  }
  Body scalar(const Stmt& s, const Stmt& of, const Team& team) {
    const auto* atomic = s.as<Atomic>();
    const BufferId to = atomic ? atomic->to.buffer : s.as<Store>()->to.buffer;
    if (!c_.is_memory(to) || !u_.happens_once(of) || team.count == 1 || alike_.contains(of->id))
      return guard_accesses({s}, l_);
    const Expr first = binary(BinaryOp::Eq, team.thread, constant(0));
    if (!atomic || !atomic->result.valid()) return {l_.make(If{first, guard_accesses({s}, l_), {}})};
    // Its result goes to everybody through shared memory.
    const DType type = l_.program.var(atomic->result).type;
    const BufferId slot = l_.temporary("old", type, {1}, Space::Shared);
    Atomic mine = *atomic;
    mine.result = l_.program.new_var(l_.program.var(atomic->result).name, type);
    Body once = guard_accesses({l_.make(mine)}, l_);
    once.push_back(l_.make(Store{{slot, {constant(0)}}, var(mine.result, type)}));
    return {c_.barrier(team), l_.make(If{first, std::move(once), {}}), c_.barrier(team),
            l_.make(Let{atomic->result, load(slot, {constant(0)}, type)})};
  }

  const Uniformity& u_;
  Lowering& l_;
  CollectiveLowering c_;
  const NamedBarriers& barriers_;
  const std::set<StmtId> alike_;
  const std::set<BufferId> used_;
  std::set<BufferId> products_;  // fragments that wgmma adds to
  Team block_;
  bool stores_alone_ = false;    // a thread of the program's choice asks TMA for a store
  int copy_loops_ = 0;           // how deep loops around copies by cp.async of threads are here
  bool streams_ = false;         // loads of several turns of a loop are on their way together
  bool copies_at_once_ = false;  // a store of the queue cp_async has become a plain one
};

}  // namespace

Launch lower_launch(const TileProgram& tiles, const Launch& launch, const Placement& placement,
                    const NamedBarriers& barriers, ThreadProgram& out) {
  static const target::CpuTarget no_cpu;
  const Uniformity uniformity(tiles, launch);
  Lowering l{out, launch, no_cpu};
  l.number = static_cast<int32_t>(out.launches.size());
  l.at = launch.location;
  Launch lowered = launch;
  VarId linear_block;
  if (!fits_hardware_grid(launch, out)) {
    linear_block = out.new_var("block", i32);
    lowered.grid = {none_in_part_of_a_cluster(launch, blocks_of(launch))}, lowered.block = {linear_block},
    lowered.swizzle = {};
    if (!launch.cluster.empty()) lowered.cluster = {cluster_blocks(launch)};
  }
  ThreadCode code(tiles, uniformity, placement, barriers, l);
  lowered.body = code.lower(linear_block);
  // The device compiler takes registers for them, and does not first think of as many blocks as there can be.
  if (code.streams()) lowered.min_blocks = std::max<int64_t>(launch.min_blocks, 1);
  return lowered;
}

}  // namespace tilewright::passes
