// mbarriers, elections, fences and the pool of registers: what orders the roles of a warp-specialized block.
#include <algorithm>

#include "simulator/warp.h"
#include "support/diagnostic.h"

namespace tilewright::simulator {

using interpreter::ArenaScope;
using interpreter::ElementCode;

// ---- mbarriers

std::string Warp::name_of(const BarrierLanes& at) const {
  std::vector<int64_t> index(at.buffer->rank());
  int64_t element = at.element;
  for (size_t d = index.size(); d-- > 0; element /= at.buffer->shape[d]) index[d] = element % at.buffer->shape[d];
  return fmt::format("'{}'[{}]", at.buffer->source->name, fmt::join(index, ", "));
}

SimulatedBlock& Warp::peer(int64_t rank, int64_t lane) {
  const std::vector<SimulatedBlock*>& blocks = home_.cluster.blocks;
  if (rank < 0 || rank >= static_cast<int64_t>(blocks.size()))
    fail_at(Code::PhaseMisuse, lane, fmt::format("block {} of a cluster of {}", rank, blocks.size()));
  return *blocks[static_cast<size_t>(rank)];
}

std::vector<Warp::BarrierLanes> Warp::barriers_of(const ElementCode& at, Mask mask, SimulatedBlock& block) {
  ArenaScope scope(arena_);
  std::array<Value, 8> index;
  for (size_t d = 0; d < at.indices.size(); ++d) index[d] = eval(*at.indices[d], mask);
  const std::span<const Value> all(index.data(), at.indices.size());
  const interpreter::Extents extents = extents_of(*at.buffer, mask);
  check_bounds(*at.buffer, all, extents, mask);
  std::vector<BarrierLanes> list;
  for (int64_t l = 0; l < lanes_; ++l) {
    if (!mask.at(l)) continue;
    int64_t element = 0;
    for (size_t d = 0; d < all.size(); ++d) element += all[d].int_at(l, frame_.shape.columns) * extents.strides[d];
    auto found = std::find_if(list.begin(), list.end(), [&](const BarrierLanes& b) { return b.element == element; });
    if (found == list.end()) {
      list.push_back({at.buffer, &block, element, &block.mbarriers.at(at.buffer->root, element), {}, {}});
      found = std::prev(list.end());
    }
    found->lanes.push_back(l), found->threads.push_back(threads_[static_cast<size_t>(l)]);
  }
  for (const BarrierLanes& b : list) check_initialized(b);
  return list;
}

void Warp::check_initialized(const BarrierLanes& at) {
  const Mbarrier& b = *at.barrier;
  if (!b.initialized)
    fail_at(Code::PhaseMisuse, at.lanes[0],
            fmt::format("mbarrier {} is used, but nobody has initialized it", name_of(at)),
            "one thread executes init_barriers, and a barrier of the block follows");
  for (size_t i = 0; i < at.lanes.size(); ++i)
    if (!at.block->clocks.knows(home_.clocks.witness(at.threads[i]), b.by, b.at))
      fail(Code::PhaseMisuse, location(),
           fmt::format("mbarrier {} is used while thread {} initializes it: nothing orders the two, {}", name_of(at),
                       thread_name(b.by), where(at.lanes[i])),
           "a barrier of the block must stand between them",
           {{"it is initialized here", program_.program->location(b.initialized->node().location)}});
}

void Warp::execute(const ir::InitBarriers&, const Step& s, Mask mask) {
  if (mask.count != 1)
    fail_at(Code::PhaseMisuse, first_lane(mask), fmt::format("{} threads initialize the same mbarriers", mask.count),
            "let one thread do it");
  const BufferCode& buffer = *s.elements[0].buffer;
  const int64_t lane = first_lane(mask), thread = threads_[static_cast<size_t>(lane)];
  const std::vector<int64_t>& counts = buffer.source->arrive_counts;
  for (int64_t i = 0; i < buffer.elements; ++i) {
    Mbarrier& b = home_.mbarriers.at(buffer.root, i);
    if (b.initialized)
      fail(Code::PhaseMisuse, location(),
           fmt::format("the mbarriers '{}' are initialized a second time, {}", buffer.source->name, where(lane)), {},
           {{"first here", program_.program->location(b.initialized->node().location)}});
    const int64_t count = counts.empty() ? 1 : counts[std::min(static_cast<size_t>(i), counts.size() - 1)];
    b.init(count, s, thread, home_.clocks.now(thread));
  }
}

void Warp::settle(const BarrierLanes& at) {
  Mbarrier& b = *at.barrier;
  const double before = b.clock.met;
  if (!b.settle(home_.clocks)) return;
  ++home_.memory.grid.changes;
  if (clock_.runs() && at.block == &home_)
    clock_.phase(static_cast<uint32_t>(b.agent), name_of(at), fmt::format("phase {}", b.completed - 1), location(),
                 before, b.clock.met);
}

// An arrival counts in the phase that is under way. Who does not know that the one before is complete might as well
// have counted there.
void Warp::check_phase_known(const BarrierLanes& at) {
  const Mbarrier& b = *at.barrier;
  if (phases_known(b) < b.completed)
    fail_at(Code::PhaseMisuse, at.lanes[0],
            fmt::format("an arrival at mbarrier {} counts in phase {}, but nothing tells this thread that phase {} is "
                        "complete: it may count in either",
                        name_of(at), b.completed, b.completed - 1),
            "more threads arrive than the barrier counts, or they do not wait for each other");
}

void Warp::arrive(const BarrierLanes& at, ir::MemoryOrder order) {
  Mbarrier& b = *at.barrier;
  if (order == ir::MemoryOrder::Release) b.arriving = join(b.arriving, home_.clocks.release(at.threads));
  b.clock.arrive(clock_.now());
  for (size_t i = 0; i < at.lanes.size(); ++i) {
    check_phase_known(at);
    if (b.pending == 0)
      fail_at(Code::BarrierOverflow, at.lanes[i],
              fmt::format("more threads arrive at mbarrier {} than the {} that it counts in a phase", name_of(at),
                          b.count));
    --b.pending;
    settle(at);
  }
}

void Warp::execute(const ir::Arrive& op, const Step& s, Mask mask) {
  ++device_.traffic(device_.site(s)).barriers;
  if (op.cta) return at_peers(*s.nodes[0], s, mask, [&](const BarrierLanes& at) { arrive(at); });
  // Of copies that an mbarrier tells, the thread itself would learn by waiting there.
  const bool copies = op.queue == ir::Queue::CpAsync;
  if (copies)
    for (const int64_t thread : executing(mask)) land(thread, home_.queues.take_all(thread), true);
  for (const BarrierLanes& at : barriers_of(s.elements[0], mask)) {
    if (copies) at.barrier->clock.arrive(std::max(clock_.copies.open, clock_.copies.drained(0)));
    arrive(at);
  }
}

void Warp::at_peers(const interpreter::Node& cta, const Step& s, Mask mask, function_ref<void(const BarrierLanes&)> f) {
  std::map<int64_t, std::vector<int64_t>> lanes;  // by the block
  ArenaScope scope(arena_);
  const Value rank = eval(cta, mask);
  for (int64_t l = 0; l < lanes_; ++l)
    if (mask.at(l)) lanes[rank.int_at(l, frame_.shape.columns)].push_back(l);
  for (const auto& [number, list] : lanes) {
    auto* bits = arena_.array<uint8_t>(lanes_);
    std::fill_n(bits, lanes_, uint8_t{0});
    for (const int64_t l : list) bits[l] = 1;
    const Mask some{bits, static_cast<int64_t>(list.size())};
    for (const BarrierLanes& at : barriers_of(s.elements[0], some, peer(number, list[0]))) {
      if (at.block != &home_)
        for (const int64_t thread : at.threads) at.block->note_visit(home_.clocks.deed(thread));
      f(at);
    }
  }
}

void Warp::check_bytes(const BarrierLanes& at) {
  if (std::abs(at.barrier->bytes) > Mbarriers::kMostBytes)
    fail_at(Code::PhaseMisuse, at.lanes[0],
            fmt::format("mbarrier {} is to count {} bytes in a phase; it counts up to {}", name_of(at),
                        std::abs(at.barrier->bytes), Mbarriers::kMostBytes));
}

void Warp::execute(const ir::Expect& op, const Step& s, Mask mask) {
  ++device_.traffic(device_.site(s)).barriers;
  const auto expect = [&](const BarrierLanes& at) {
    {
      ArenaScope scope(arena_);
      const Value bytes = eval(*s.nodes[0], mask);
      for (const int64_t l : at.lanes) at.barrier->bytes += bytes.int_at(l, frame_.shape.columns);
    }
    check_bytes(at);
    if (op.arrive)  // at a peer relaxed: the bytes speak for themselves
      arrive(at, op.cta ? ir::MemoryOrder::Relaxed : ir::MemoryOrder::Release);
    else
      settle(at);
  };
  if (op.cta) return at_peers(*s.nodes[1], s, mask, expect);
  for (const BarrierLanes& at : barriers_of(s.elements[0], mask)) expect(at);
}

// The barrier has the bytes of these lanes' stores, and knows of them. (On a device of nothing else that the threads
// have done; here a thread is known up to some time.)
void Warp::deliver(const BarrierLanes& at, int64_t bytes) {
  at.barrier->arriving = join(at.barrier->arriving, home_.clocks.release(at.threads));
  at.barrier->clock.arrive(clock_.now());
  at.barrier->bytes -= bytes * static_cast<int64_t>(at.lanes.size());
  check_bytes(at);
  settle(at);
}

// How many phases the warp knows to be complete. What one lane knows counts for all: they come by together.
int64_t Warp::phases_known(const Mbarrier& b) const {
  int64_t known = 0;
  for (const int64_t thread : threads_) known = std::max<int64_t>(known, home_.clocks.known(thread, b.agent));
  return known;
}

// The phase that the warp can only mean by a parity: the one after those that it knows to be complete, or the last of
// these. -1: the one before the first, which parity 1 passes.
int64_t Warp::phase_meant(const Mbarrier& b, int64_t parity) const {
  const int64_t known = phases_known(b);
  return (known & 1) == parity ? known : known - 1;
}

void Warp::wait_for_phase(const BarrierLanes& at, int64_t parity) {
  Mbarrier& b = *at.barrier;
  const int64_t meant = phase_meant(b, parity);
  wait([&b, parity, meant] { return (b.completed & 1) != parity || b.completed >= meant + 2; },
       [&b, parity, name = name_of(at)] {
         const std::string bytes = b.bytes < 0 ? fmt::format("has {} bytes more than announced", -b.bytes)
                                               : fmt::format("misses {} bytes", b.bytes);
         return fmt::format("for phase {} (parity {}) of mbarrier {}, which misses {} of {} arrivals and {}",
                            b.completed, parity, name, b.pending, b.count, bytes);
       });
  if (b.completed >= meant + 2)
    fail_at(Code::PhaseMisuse, at.lanes[0],
            fmt::format("phase {} of mbarrier {} is waited for, but phase {} is complete too: the parity cannot tell "
                        "them apart",
                        meant, name_of(at), meant + 1),
            "who waits must have passed a phase before the next one completes");
  home_.clocks.acquire(at.threads, b.last);
  if (clock_.runs()) clock_.wait(fmt::format("waits for {}", name_of(at)), location(), b.clock.met);
}

void Warp::execute(const ir::Wait&, const Step& s, Mask mask) {
  for (const BarrierLanes& at : barriers_of(s.elements[0], mask)) {
    std::array<BarrierLanes, 2> by_parity{at, at};
    for (BarrierLanes& part : by_parity) part.lanes.clear(), part.threads.clear();
    {
      ArenaScope scope(arena_);
      const Value parity = eval(*s.nodes[0], mask);
      for (size_t i = 0; i < at.lanes.size(); ++i) {
        BarrierLanes& part = by_parity[parity.int_at(at.lanes[i], frame_.shape.columns) & 1];
        part.lanes.push_back(at.lanes[i]), part.threads.push_back(at.threads[i]);
      }
    }
    for (int64_t parity = 0; parity < 2; ++parity)
      if (const BarrierLanes& part = by_parity[static_cast<size_t>(parity)]; !part.lanes.empty())
        wait_for_phase(part, parity);
  }
}

// ---- one thread of a warp, fences, registers

void Warp::execute(const ir::Elect&, const Step& s, Mask mask) {
  check_converged_flag(s, mask, "an election");
  ArenaScope scope(arena_);
  auto* bits = arena_.array<uint8_t>(lanes_);
  for (int64_t l = 0; l < lanes_; ++l) bits[l] = l == 0;
  run_body(s.bodies[0], Mask{bits, 1});
}

void Warp::execute(const ir::Fence& op, const Step& s, Mask mask) {
  if (const bool all = op.proxy == ir::FenceProxy::AsyncAll; all || op.proxy == ir::FenceProxy::Async)
    for (const int64_t thread : executing(mask)) home_.clocks.fence(thread, all);
  if (op.proxy == ir::FenceProxy::Device)
    for (const int64_t thread : executing(mask)) home_.clocks.fence_device(home_.number, thread);
  if (op.proxy == ir::FenceProxy::Wgmma) fence_registers(s, mask);
}

// All registers of the launch belong to the block; a warp gives some up and takes others (PTX ISA, setmaxnreg).
void Warp::execute(const ir::SetRegisters& op, const Step& s, Mask mask) {
  check_full_warp(s, mask, "set_registers");
  const int64_t more = (op.count - registers_a_thread_) * kWarpThreads;
  int64_t& pool = home_.free_registers;
  wait([&pool, more] { return more <= pool; },
       [&pool, more, count = op.count] {
         return fmt::format("for {} registers to have {} a thread; {} are free", more, count, pool);
       });
  pool -= more;
  registers_a_thread_ = op.count;
  ++home_.memory.grid.changes;
}

}  // namespace tilewright::simulator
