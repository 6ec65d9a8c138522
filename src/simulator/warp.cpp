// Warps: who runs together, and where they meet.
#include "simulator/warp.h"

#include "support/diagnostic.h"

namespace tilewright::simulator {

Warp::Warp(SimulatedBlock& block, int64_t first, int64_t count)
    : Strand(block.memory, first, count), home_(block), device_(block.device) {
  for (const uint32_t root : device_.wgmma_registers()) watch_.watch(root, home_.memory.memory(root).thread_bytes);
}

// What the device compiler gives a thread when the block may have all registers that its neighbours leave.
int64_t Warp::registers_at_launch() const {
  constexpr int64_t kMost = 256;
  return std::min(kMost, device_.options.target.registers_at_launch(code_.thread_count, code_.launch->min_blocks));
}

void Warp::run() {
  watch_.reset();
  multiplies_ = {};
  last_store_ = nullptr;
  arrived_at_cluster_ = false;
  registers_a_thread_ = registers_at_launch();
  clock_.begin(device_.options.timeline, home_.number, static_cast<uint32_t>(number()));
  Strand::run();
  check_queues_empty();
  home_.barriers.leave(lanes_);
  if (const Step* waiting = home_.barriers.waits_for_block())
    fail(Code::BarrierDivergence, program_.program->location(waiting->node().location),
         fmt::format("threads {} to {} end without reaching the barrier of the block at which others wait, in {}",
                     threads_.front(), threads_.back(), where(-1).substr(3)),
         "let all threads of the block come by");
}

double Warp::hand(TimelineEvent::Track unit, const char* what, const std::string& name, double clocks, double latency,
                  int64_t bytes) {
  if (!clock_.runs()) return 0;
  const bool tma = unit == TimelineEvent::Track::Tma;
  const auto quarter = static_cast<uint32_t>(tma ? 0 : number() % 4);
  double& free = tma ? home_.units.tma : home_.units.matrix[quarter];
  return clock_.hand(unit, quarter, free, fmt::format("{} {}", what, name), location(), clocks, latency, bytes);
}

void Warp::check_queues_empty() {
  for (const int64_t thread : threads_)
    if (home_.queues.has_stores_left(thread))
      fail(Code::NeverCompleted, program_.program->location(last_store_->node().location),
           fmt::format("thread {} ends while what it stores may not have been read from shared memory, {}",
                       thread_name(thread), where(-1)),
           "it commits its stores and drains the queue bulk_store");
  if (multiplies_.last > multiplies_.retired)
    fail(Code::NeverCompleted, program_.program->location(multiplies_.step->node().location),
         fmt::format("threads {} to {} end while their wgmmas may be under way, {}", threads_.front(), threads_.back(),
                     where(-1)),
         "commit them and drain the queue wgmma");
}

bool Warp::leads(const Step&) const { return threads_[0] == 0; }

std::vector<int64_t> Warp::executing(Mask mask) const {
  std::vector<int64_t> threads;
  for (int64_t l = 0; l < lanes_; ++l)
    if (mask.at(l)) threads.push_back(threads_[static_cast<size_t>(l)]);
  return threads;
}

int64_t Warp::first_missing(Mask mask) const {
  int64_t lane = 0;
  while (lane < lanes_ - 1 && mask.at(lane)) ++lane;
  return lane;
}

// ---- lanes

void Warp::check_converged_flag(const Step&, Mask mask, const char* what) {
  if (mask.count == lanes_) return;  // lanes that the block does not have take no part in anything
  fail_at(Code::WarpDivergence, first_missing(mask),
          fmt::format("{} counts on all lanes of the warp, but only {} come by together", what, mask.count));
}

void Warp::check_full_warp(const Step& s, Mask mask, const char* what) {
  check_converged_flag(s, mask, what);
  if (lanes_ != kWarpThreads) fail_at(Code::WarpDivergence, 0, fmt::format("{} in a warp of {} threads", what, lanes_));
}

void Warp::execute(const ir::Shuffle& op, const Step& s, Mask mask) {
  if (op.converged) check_converged_flag(s, mask, "a shuffle");
  busy("exchanges between lanes", 2);
  Strand::execute(op, s, mask);
}

void Warp::execute(const ir::Vote& op, const Step& s, Mask mask) {
  if (op.kind < ir::VoteKind::BlockAny) {
    if (op.converged) check_converged_flag(s, mask, "a vote");
    return Strand::execute(op, s, mask);
  }
  check_whole_warp(s, mask, "a vote of the block");
  int64_t yes = 0;
  {
    interpreter::ArenaScope scope(arena_);
    const Value value = eval(*s.nodes[0], mask);
    for (int64_t l = 0; l < lanes_; ++l) yes += value.int_at(l, frame_.shape.columns) != 0;
  }
  const auto phase = arrive_at(0, code_.thread_count, s, true);
  phase->tally += yes;
  wait_for(phase, 0);
  const int64_t total = phase->tally;
  bind(op.result, interpreter::uniform_int(op.kind == ir::VoteKind::BlockCount ? total
                                           : op.kind == ir::VoteKind::BlockAny ? total > 0
                                                                               : total == code_.thread_count));
}

void Warp::execute(const ir::Role& op, const Step& s, Mask mask) {
  interpreter::ArenaScope scope(arena_);
  auto* inside = arena_.array<int64_t>(lanes_);
  for (int64_t l = 0; l < lanes_; ++l) {
    const int64_t x = threads_[static_cast<size_t>(l)] % code_.threads[0];
    inside[l] = x >= op.begin && x < op.end;
  }
  run_body(s.bodies[0], narrow(mask, interpreter::array_value(LaneKind::Int64, inside), true));
}

// ---- barriers

void Warp::check_whole_warp(const Step& s, Mask mask, const char* what) {
  if (mask.count == lanes_) return;
  (void)s;
  fail_at(Code::BarrierDivergence, first_missing(mask),
          fmt::format("{} is reached by {} of the {} threads of a warp", what, mask.count, lanes_),
          "let all threads of the warp come by together");
}

void Warp::execute(const ir::Sync& op, const Step& s, Mask mask) {
  if (op.scope == ir::SyncScope::Launches) return;  // they run one after the other
  ++device_.traffic(device_.site(s)).barriers;
  switch (op.scope) {
    case ir::SyncScope::Warp: return sync_warp(s, mask);
    case ir::SyncScope::Block: return sync_block(s, mask);
    case ir::SyncScope::Named: return sync_named(op, s, mask);
    case ir::SyncScope::Grid: return sync_grid(s, mask);
    case ir::SyncScope::Cluster: return sync_cluster(op, s, mask);
    case ir::SyncScope::Launches: return;
  }
}

void Warp::sync_warp(const Step& s, Mask mask) {
  int64_t returned = 0;
  for (int64_t l = 0; l < lanes_; ++l) returned += frame_.returned[l];
  if (mask.count + returned < lanes_) check_whole_warp(s, mask, "a barrier of the warp");
  if (lanes_ == code_.thread_count && returned == 0 && home_.clocks.is_alone()) return home_.clocks.new_era();
  const std::vector<int64_t> threads = executing(mask);
  home_.clocks.acquire(threads, home_.clocks.release(threads));
}

void Warp::sync_block(const Step& s, Mask mask) {
  check_whole_warp(s, mask, "a barrier of the block");
  wait_for(arrive_at(0, code_.thread_count, s, true), 0);
}

std::shared_ptr<Phase> Warp::arrive_at(int64_t barrier, int64_t count, const Step& s, bool waits) {
  auto line = [&](const Step& step) { return program_.program->location(step.node().location); };
  const bool whole_block = barrier == 0;
  if (whole_block && home_.barriers.left() > 0)
    fail_at(
        Code::BarrierDivergence, 0,
        fmt::format("{} threads have left the launch and never reach the barrier of the block", home_.barriers.left()),
        "let all threads of the block come by");
  const std::shared_ptr<Phase> phase = home_.barriers.open(barrier, count, s);
  ++home_.memory.grid.changes;
  if (whole_block && phase->first != &s)
    fail(Code::BarrierDivergence, location(),
         fmt::format("threads {} to {} meet others that wait at another barrier of the block, {}", threads_.front(),
                     threads_.back(), where(-1)),
         "let all threads of the block come by the same barriers", {{"the others wait here", line(*phase->first)}});
  if (phase->count != count)
    fail(Code::BarrierMiscount, location(),
         fmt::format("named barrier {} is entered for {} threads, but others entered it for {}, {}", barrier, count,
                     phase->count, where(-1)),
         "name one count wherever they meet", {{"the others entered it here", line(*phase->first)}});
  phase->arrived += lanes_;
  phase->everybody_waits = phase->everybody_waits && waits;
  phase->clock.arrive(clock_.now());
  if (phase->arrived > count)
    fail_at(Code::BarrierMiscount, 0,
            fmt::format("{} threads arrive at named barrier {}, which counts {}", phase->arrived, barrier, count));
  // Who waits with all threads of a lone block learns all there is to know: clocks are of no use.
  const bool alone = home_.clocks.is_alone();
  if (!whole_block || !alone) phase->knowledge = join(phase->knowledge, home_.clocks.release(threads_));
  if (phase->arrived < count) return phase;
  phase->done = true, phase->clock.complete();
  home_.barriers.close(barrier);
  if (count == code_.thread_count && phase->everybody_waits && alone) phase->is_era = true, home_.clocks.new_era();
  return phase;
}

void Warp::wait_for(const std::shared_ptr<Phase>& phase, int64_t barrier) {
  wait([phase] { return phase->done; },
       [phase, barrier] {
         return fmt::format(
             "at {}, where {} of {} threads have arrived",
             barrier == 0 ? std::string("the barrier of the block") : fmt::format("named barrier {}", barrier),
             phase->arrived, phase->count);
       });
  if (!phase->is_era) home_.clocks.acquire(threads_, phase->knowledge);
  stall(barrier == 0 ? "waits for the block" : "waits at a named barrier", phase->clock.met);
}

void Warp::sync_named(const ir::Sync& op, const Step& s, Mask mask) {
  constexpr int64_t kBarriers = 16;
  check_whole_warp(s, mask, "a named barrier");
  const int64_t id = eval_int(*s.nodes[0], mask);
  if (id < 0 || id >= kBarriers)
    fail_at(Code::BarrierMiscount, 0, fmt::format("there is no hardware barrier {}", id),
            "they have the numbers 0 to 15");
  if (op.count <= 0 || op.count % kWarpThreads != 0)
    fail_at(Code::BarrierMiscount, 0, fmt::format("a named barrier of {} threads", op.count),
            "a named barrier counts whole warps");
  const auto phase = arrive_at(id, op.count, s, !op.arrive_only);
  if (!op.arrive_only) wait_for(phase, id);
}

void Warp::sync_cluster(const ir::Sync& op, const Step& s, Mask mask) {
  check_whole_warp(s, mask, "a barrier of the cluster");
  SimulatedCluster& cluster = home_.cluster;
  interpreter::Meeting& all = cluster.meeting;
  if (arrived_at_cluster_ != op.wait_only)
    fail_at(Code::BarrierMiscount, 0,
            op.wait_only ? "a wait at the barrier of the cluster, where this warp has not arrived"
                         : "a second arrival at the barrier of the cluster before a wait");
  if (!op.wait_only) {
    ++home_.memory.grid.changes;
    cluster_meeting_ = all.held, arrived_at_cluster_ = true;
    cluster.in_halves = cluster.in_halves || op.arrive_only;
    cluster.told = join(cluster.told, home_.clocks.release(executing(mask)));
    cluster.clock.arrive(clock_.now());
    if (++all.arrived == cluster.warps) {
      // Where nobody does anything between his arrival and his wait, all is known to all.
      cluster.known = cluster.in_halves ? cluster.told : nullptr;
      all.arrived = 0, ++all.held, cluster.told = nullptr, cluster.clock.complete();
      if (!std::exchange(cluster.in_halves, false)) home_.clocks.new_era();
    }
    if (op.arrive_only) return;
  }
  arrived_at_cluster_ = false;
  if (all.held == cluster_meeting_)
    wait([&all, held = cluster_meeting_] { return all.held != held; },
         [] { return std::string("for the blocks of the cluster"); });
  if (cluster.known) home_.clocks.acquire(executing(mask), cluster.known);
  stall("waits for the cluster", cluster.clock.met);
}

void Warp::sync_grid(const Step& s, Mask mask) {
  check_whole_warp(s, mask, "a barrier of the grid");
  interpreter::Meeting& all = home_.memory.grid.sync;
  device_.clock.arrive(clock_.now());
  if (++all.arrived == home_.memory.grid.strands) {
    all.arrived = 0, ++all.held, device_.clock.complete();
    device_.meet_all();
  } else {
    wait([&all, held = all.held] { return all.held != held; },
         [] { return std::string("for the blocks of the grid"); });
  }
  stall("waits for the grid", device_.clock.met);
}

}  // namespace tilewright::simulator
