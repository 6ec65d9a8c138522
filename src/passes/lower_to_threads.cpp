#include "passes/lower_to_threads.h"

#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/block_index.h"
#include "passes/threads/async_rings.h"
#include "passes/threads/collectives.h"
#include "passes/threads/elementwise.h"
#include "passes/threads/place_sync.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::Uniformity;

namespace {

constexpr int kHardwareBarriers = 16;      // PTX 9.7.13.1 "bar, barrier": named 0 to 15, of which __syncthreads takes 0
constexpr int64_t kSharedAlignment = 128;  // of a buffer, for any access and any swizzle below 1024 bytes

// The hardware barriers of the roles: one for each range of threads, none that the program names itself.
std::map<std::pair<int64_t, int64_t>, int> role_barriers(const TileProgram& p, const Launch& launch) {
  std::set<int64_t> taken{0};
  std::map<std::pair<int64_t, int64_t>, int> out;
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Sync>(); n && n->scope == SyncScope::Named)
      if (auto id = constant_int(n->barrier)) taken.insert(*id);
  });
  int next = kHardwareBarriers - 1;
  walk(launch.body, [&](const Stmt& s) {
    const auto* role = s.as<Role>();
    if (!role || out.contains({role->begin, role->end})) return;
    while (taken.contains(next)) --next;
    if (next <= 0)
      fail(Code::GpuBarriers, p.location(s->location), "the block has more roles than hardware barriers are left",
           "a block has 15 named barriers, for the program's own and one for each range of threads");
    out[{role->begin, role->end}] = next--;
  });
  return out;
}

class ThreadCode {
 public:
  ThreadCode(const TileProgram& tiles, const Uniformity& u, const Placement& placement, Lowering& l)
      : u_(u), l_(l), c_{l, placement, {}}, barriers_(role_barriers(tiles, l.launch)) {}

  // `linear_block`: the variable that numbers the blocks, if the hardware's three do not serve.
  Body lower(VarId linear_block) {
    Body out;
    for (size_t d = 0; d < l_.launch.thread.size(); ++d)
      l_.intervals.set(l_.launch.thread[d], {0, l_.launch.threads[d] - 1});
    block_ = {bind_thread(out), l_.launch.thread_count(), 0, 0};
    fragments();
    if (linear_block.valid())
      append(out, bind_block(l_.launch, cast(var(linear_block, i32), i64), l_));
    else
      bound_blocks();
    const Body code = body(l_.launch.body, block_);
    out.insert(out.end(), code.begin(), code.end());
    return out;
  }

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
  void bound_blocks() {
    for (size_t d = 0; d < l_.launch.block.size(); ++d) {
      const Interval extent = l_.intervals.of(widen(l_.launch.grid[d]));
      const VarId v = l_.launch.block[d];
      l_.intervals.set(v, {0, extent.high < kUnbounded ? std::max<int64_t>(extent.high - 1, 0) : INT32_MAX});
      l_.intervals.assume(binary(BinaryOp::Lt, widen(var(v, l_.program.var(v).type)), widen(l_.launch.grid[d])));
    }
  }
  // Fragments in registers become local arrays, the others shared buffers.
  void fragments() {
    for (const auto& [id, layout] : c_.placement.registers) {
      const Buffer& b = l_.buffer(id);
      c_.registers[id] = l_.temporary(b.name, b.type, {layout.registers()}, Space::Local);
    }
  }

  void append(Body& out, Body code) const { out.insert(out.end(), code.begin(), code.end()); }

  Body body(const Body& in, const Team& team) {
    Body out;
    for (const Stmt& s : in) {
      const LocationId outer = std::exchange(l_.at, s->location);
      append(out, statement(s, team));
      l_.at = outer;
    }
    return out;
  }

  Body statement(const Stmt& s, const Team& team) {
    const FragmentLayout* points = c_.placement.points_of(s);
    if (const auto* n = s.as<Map>()) return lower_map(*n, points, team, c_);
    if (const auto* n = s.as<Reduce>()) return lower_reduce(*n, points, team, c_);
    if (const auto* n = s.as<Scan>()) return lower_scan(*n, team, c_);
    if (const auto* n = s.as<Gemm>()) return lower_gemm(*n, c_.placement.gemms.at(&*s), points, team, c_);
    if (const auto* n = s.as<Copy>()) return lower_async_copy(*n, *points, team, c_);
    if (s.as<FinalizeReducer>()) return {};
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
      f.then_body = body(n->then_body, team);
      l_.intervals.restore(before);
      l_.intervals.forget(mark);
      f.else_body = body(n->else_body, team);
      return {l_.make(std::move(f))};
    }
    if (const auto* n = s.as<While>()) return {l_.make(While{guard_accesses(n->condition, l_), body(n->body, team)})};
    if (const auto* n = s.as<Sync>()) return sync(*n, s, team);
    if (const auto* n = s.as<Shuffle>()) return {l_.make(converged(*n, s))};
    if (const auto* n = s.as<Vote>()) return {l_.make(converged(*n, s))};
    if (s.as<Store>() || s.as<Atomic>()) return scalar(s, team);
    return guard_accesses({s}, l_);
  }
  template <class Op>
  Op converged(const Op& n, const Stmt& s) {
    Op copy = n;
    if (copy.value) copy.value = guard_accesses(copy.value, l_);
    copy.converged = u_.control(s) != analysis::Agreement::None && l_.launch.thread_count() % kWarpThreads == 0;
    return copy;
  }

  Body role(const Role& n) {
    Team team{sub(block_.thread, constant(n.begin)), n.end - n.begin, n.begin, barriers_.at({n.begin, n.end})};
    if (l_.launch.thread.size() == 1) {  // what is below the first thread never comes here
      const VarId id = l_.program.new_var("thread", i32);
      l_.intervals.set(id, {0, team.count - 1});
      Body inside{l_.make(Let{id, team.thread})};
      team.thread = var(id, i32);
      append(inside, body(n.body, team));
      return {l_.make(Role{n.begin, n.end, std::move(inside)})};
    }
    return {l_.make(Role{n.begin, n.end, body(n.body, team)})};
  }

  Body loop_of(const For& n, const Stmt&, const Team& team) {
    For f = n;
    f.kind = n.kind == LoopKind::Unroll || n.kind == LoopKind::Vectorized ? LoopKind::Unroll : LoopKind::Serial;
    f.stages = 0, f.order.clear(), f.stage.clear();
    f.begin = guard_accesses(n.begin, l_), f.extent = guard_accesses(n.extent, l_);
    const Interval begin = l_.intervals.of(f.begin), extent = l_.intervals.of(f.extent);
    if (begin.low > -kUnbounded && extent.high < kUnbounded)
      l_.intervals.set(f.var, {begin.low, std::max(begin.low, begin.high + extent.high - 1)});
    f.body = body(n.body, team);
    return {l_.make(std::move(f))};
  }

  // The block's barrier inside a role is one of the role's threads.
  Body sync(const Sync& n, const Stmt& s, const Team& team) {
    if (n.scope == SyncScope::Block && team.count != block_.count) return {c_.barrier(team)};
    return {s};
  }

  // What all threads of the team agree on happens once.
  Body scalar(const Stmt& s, const Team& team) {
    const auto* atomic = s.as<Atomic>();
    const BufferId to = atomic ? atomic->to.buffer : s.as<Store>()->to.buffer;
    if (!c_.is_memory(to) || !u_.happens_once(s) || team.count == 1) return guard_accesses({s}, l_);
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
  const std::map<std::pair<int64_t, int64_t>, int> barriers_;
  Team block_;
};

void refuse(const TileProgram& p, const Launch& launch) {
  const char* help = "run it on the interpreter: compile(program, {.engine = Engine::Interpreter})";
  walk(launch.body, [&](const Stmt& s) {
    const auto* copy = s.as<Copy>();
    const bool async = copy && !copy->completion.immediate() &&
                       (copy->completion.queue != Queue::CpAsync || copy->completion.barrier.valid());
    const bool queue = (s.as<Commit>() && s.as<Commit>()->queue != Queue::CpAsync) ||
                       (s.as<Drain>() && s.as<Drain>()->queue != Queue::CpAsync);
    if (async || queue || s.as<Arrive>() || s.as<Expect>() || s.as<Wait>() || s.as<Call>())
      fail(Code::GpuUnsupported, p.location(s->location),
           fmt::format("{} is not something the CUDA engine runs yet", name_of(s)), help);
  });
  int64_t cluster = 1;
  for (int64_t c : launch.cluster) cluster *= c;
  if (cluster > 1)
    fail(Code::GpuUnsupported, p.location(launch.location), "a cluster is not something the CUDA engine runs yet",
         help);
}

// Blocks along y and z are numbered up to 65,535 (CUDA C++ Programming Guide, compute capabilities).
bool fits_hardware_grid(const Launch& launch) {
  if (launch.swizzle.panel > 0) return false;
  for (size_t d = 1; d < launch.grid.size(); ++d) {
    const auto extent = constant_int(launch.grid[d]);
    if (!extent || *extent > 65535) return false;
  }
  return true;
}

// Rows of what ldmatrix reads lie an odd number of 16-byte chunks apart, so that eight of them touch all banks once.
void pad_operands(ThreadProgram& p, const Launch& launch, const Placement& placement) {
  std::set<BufferId> operands;
  walk(launch.body, [&](const Stmt& s) {
    const auto* gemm = s.as<Gemm>();
    if (!gemm || !placement.gemms.at(&*s).instruction) return;
    for (const Region* r : {&gemm->a, &gemm->b})
      if (!placement.layout_of(r->buffer)) operands.insert(r->buffer);
  });
  for (const Buffer& b : p.buffers)
    if (b.is_view()) operands.erase(b.root);  // a view sees rows without gaps
  for (BufferId id : operands) {
    Buffer& b = p.buffers[id.index];
    const int64_t chunk = 128 / b.type.bits, row = constant_int(b.shape.back()).value_or(0);
    int64_t stride = row / chunk % 2 == 0 ? row + chunk : row;
    b.strides.assign(b.rank(), constant(i32, int64_t{1}));
    for (size_t d = b.rank() - 1; d-- > 0;) {
      b.strides[d] = constant(i32, stride);
      stride *= constant_int(b.shape[d]).value_or(1);
    }
  }
}

// Puts the shared buffers of a launch one after the other.
void place_shared(ThreadProgram& p, int32_t number, const target::GpuTarget& target) {
  int64_t at = 0;
  std::vector<Note> notes;
  std::set<BufferId> used;
  for (BufferId b : used_buffers(p.launches[static_cast<size_t>(number)].body)) used.insert(p.root(b));
  for (uint32_t i = 0; i < p.buffers.size(); ++i) {
    Buffer& b = p.buffers[i];
    if (b.launch != number || b.space != Space::Shared || b.is_view() || !used.contains(BufferId{i})) continue;
    const int64_t bytes = bytes_on_chip(b);
    at = (at + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
    b.place = at, at += bytes;
    notes.push_back({fmt::format("'{}' takes {} bytes", b.name, bytes), p.location(b.location)});
  }
  if (at <= target.shared_bytes) return;
  Diagnostic d = make_diagnostic(
      Code::GpuSharedMemory, p.location(p.launches[static_cast<size_t>(number)].location),
      fmt::format("the block needs {} bytes of shared memory; sm_{} has {}", at, target.arch, target.shared_bytes),
      "make the tiles smaller, or the pipeline shorter", std::move(notes));
  throw CompileError(std::move(d));
}

}  // namespace

ThreadLowering lower_to_threads(const TileProgram& program, const target::GpuTarget& target) {
  static const target::CpuTarget no_cpu;
  AsyncRings rings = materialize_async_rings(program);
  TileProgram tiles = copies_to_maps(std::move(rings.program));
  ThreadLowering result;
  for (size_t i = 0; i < tiles.launches.size(); ++i) {
    Launch& launch = tiles.launches[i];
    refuse(tiles, launch);
    result.placements.push_back(place_fragments(tiles, launch, Uniformity(tiles, launch), target));
    launch.body = place_sync(tiles, launch, Uniformity(tiles, launch), result.placements.back());
  }
  result.program = with_level<ThreadProgram>(tiles);
  ThreadProgram& out = result.program;
  out.launches.clear();
  for (size_t i = 0; i < tiles.launches.size(); ++i) {
    const Launch& launch = tiles.launches[i];
    const Placement& placement = result.placements[i];
    const Uniformity uniformity(tiles, launch);
    pad_operands(out, launch, placement);
    Lowering l{out, launch, no_cpu};
    l.at = launch.location;
    Launch lowered = launch;
    VarId linear_block;
    if (!fits_hardware_grid(launch)) {
      linear_block = out.new_var("block", i32);
      Expr blocks = wide(1);
      for (const Expr& e : launch.grid) blocks = mul(blocks, widen(e));
      lowered.grid = {blocks}, lowered.block = {linear_block}, lowered.swizzle = {};
    }
    lowered.body = ThreadCode(tiles, uniformity, placement, l).lower(linear_block);
    const auto number = static_cast<int32_t>(i);
    for (Buffer& b : out.buffers) {
      if (b.launch != number || b.space != Space::Fragment) continue;
      b.space = Space::Shared, b.reducer.reset();
    }
    out.launches.push_back(std::move(lowered));
    place_shared(out, number, target);
  }
  return result;
}

}  // namespace tilewright::passes
