// Roles, mbarriers, block barriers: what makes strands wait for each other.
#include "interpreter/strand.h"
#include "layout/fragment.h"

namespace tilewright::interpreter {

using analysis::ThreadSet;

void Strand::wait(std::function<bool()> ready, std::function<std::string()> what) {
  if (ready()) return;
  block_.grid.scheduler->wait(*this, std::move(ready), std::move(what));
}

void Strand::yield() {
  if (block_.grid.strands > 1)
    block_.grid.scheduler->wait(
        *this, [] { return true; }, [] { return std::string(); });
}

void Strand::wait_for_change(uint64_t seen) {
  Grid& grid = block_.grid;
  grid.scheduler->wait(
      *this, [&grid, seen] { return grid.changes != seen; },
      [] {
        return std::string(
            "in this loop for memory that nobody changes: blocks run one after the other, the threads of a role in "
            "lockstep");
      });
}

int Strand::strands_in(const Step& s) const {
  if (code_.strands.size() == 1) return 1;
  int n = 0;
  for (const ThreadSet& strand : code_.strands) n += s.set.contains(strand);
  return n;
}

bool Strand::leads(const Step& s) const {
  for (const ThreadSet& strand : code_.strands)
    if (s.set.contains(strand)) return strand == set_;
  return false;
}

void Strand::check_converged(const Step& s, Mask mask, const char* what) {
  if (mask.count == frame_.shape.lanes) return;
  (void)s;
  int64_t lane = 0;
  while (lane < frame_.shape.lanes && mask.at(lane)) ++lane;
  fail_at(Code::DivergentCollective, lane,
          fmt::format("{} is not reached by all threads that execute it together", what),
          "move it out of the divergent control flow, or under a role of whole warps");
}

bool Strand::meet(const Step& s, Mask mask, const std::function<Value()>& last) {
  int strands = strands_in(s);
  Meeting& meeting = block_.meetings[&s];
  if (strands == 1) {
    meeting.arrived = 0;
    meeting.result = last();
    return true;
  }
  check_converged(s, mask, ir::name_of(s.stmt));
  ++block_.grid.changes;
  if (++meeting.arrived == strands) {
    meeting.arrived = 0;
    meeting.result = last();
    ++meeting.held;
    return true;
  }
  int64_t held = meeting.held;
  wait([&meeting, held] { return meeting.held != held; },
       [&s] { return fmt::format("for the other threads to reach this {}", ir::name_of(s.stmt)); });
  return false;
}

void Strand::execute(const ir::Role& op, const Step& s, Mask mask) {
  ThreadSet role = set_;
  role.begin[0] = op.begin, role.end[0] = op.end;
  if (role.contains(set_)) run_body(s.bodies[0], mask);
}

// ---- mbarriers

namespace {

void settle(Barrier& b) {
  if (b.pending != 0 || b.bytes != 0) return;
  b.pending = b.count;
  ++b.completed;
}

}  // namespace

Barrier& Strand::barrier_at(Block& block, const ElementCode& at, Mask mask, int64_t lane, std::string* name) {
  ArenaScope scope(arena_);
  Value index[8];
  for (size_t d = 0; d < at.indices.size(); ++d) index[d] = eval(*at.indices[d], mask);
  Extents extents = extents_of(*at.buffer, mask);
  check_bounds(*at.buffer, std::span<const Value>(index, at.indices.size()), extents, mask);
  int64_t element = at.buffer->offset ? eval_int(*at.buffer->offset, mask) : 0;
  std::vector<int64_t> position;
  for (size_t d = 0; d < at.indices.size(); ++d) {
    position.push_back(index[d].int_at(lane, frame_.shape.columns));
    element += position.back() * extents.strides[d];
  }
  if (name) *name = fmt::format("'{}'[{}]", at.buffer->source->name, fmt::join(position, ", "));
  return block.barrier(at.buffer->root, element);
}

void Strand::arrive(const ElementCode& at, Barrier& b, int64_t arrivals, int64_t lane) {
  for (int64_t i = 0; i < arrivals; ++i) {
    if (b.pending == 0)
      fail_at(Code::BarrierOverflow, lane,
              fmt::format("more threads arrive at a barrier of '{}' than the {} it counts in a phase",
                          at.buffer->source->name, b.count));
    --b.pending;
    settle(b);
  }
}

void Strand::execute(const ir::Arrive& op, const Step& s, Mask mask) {
  const bool by_warps = op.by == ir::ArriveBy::Warp;  // whole ones come: analysis/collectives.h
  for (int64_t l = 0; l < frame_.shape.lanes; ++l) {
    if (!mask.at(l) || (by_warps && frame_.threads[l] % kWarpThreads != 0)) continue;
    ArenaScope scope(arena_);
    Block& block = op.cta ? block_at(eval(*s.nodes[0], mask).int_at(l, frame_.shape.columns), l) : block_;
    arrive(s.elements[0], barrier_at(block, s.elements[0], mask, l), 1, l);
  }
}

void Strand::execute(const ir::Expect& op, const Step& s, Mask mask) {
  auto expect = [&] {
    int64_t lane = first_lane(mask);
    ArenaScope scope(arena_);
    Block& block = op.cta ? block_at(eval(*s.nodes[1], mask).int_at(lane, frame_.shape.columns), lane) : block_;
    Barrier& b = barrier_at(block, s.elements[0], mask, lane);
    b.bytes += eval(*s.nodes[0], mask).int_at(lane, frame_.shape.columns);
    if (op.arrive)
      arrive(s.elements[0], b, 1, lane);
    else
      settle(b);
    return Value();
  };
  if (s.once)
    meet(s, mask, expect);
  else
    expect();  // by the thread that the program chose
}

void Strand::complete(Block& block, const ElementCode& at, int64_t bytes, Mask mask) {
  Barrier& b = barrier_at(block, at, mask, first_lane(mask));
  b.bytes -= bytes;
  settle(b);
}

void Strand::execute(const ir::Wait&, const Step& s, Mask mask) {
  std::string name;
  ArenaScope scope(arena_);
  for (int64_t l = 0; l < frame_.shape.lanes; ++l) {  // usually all lanes wait for one barrier
    if (!mask.at(l)) continue;
    Value parity = eval(*s.nodes[0], mask);
    int64_t p = parity.int_at(l, frame_.shape.columns) & 1;
    Barrier& b = barrier_at(block_, s.elements[0], mask, l, &name);
    bool same = parity.uniform() && s.elements[0].indices.size() <= 1;
    wait([&b, p] { return (b.completed & 1) != p; },
         [&b, p, name] {
           return fmt::format(
               "for phase parity {} of barrier {}, which misses {} of {} arrivals and {} bytes in phase {}", p, name,
               b.pending, b.count, b.bytes, b.completed);
         });
    if (same && (s.elements[0].indices.empty() || eval(*s.elements[0].indices[0], mask).uniform())) return;
  }
}

// ---- queues: their operations are done at once

void Strand::execute(const ir::Commit&, const Step&, Mask) {}
void Strand::execute(const ir::Drain&, const Step&, Mask) {}
void Strand::execute(const ir::Fence&, const Step&, Mask) {}
void Strand::execute(const ir::SetRegisters&, const Step&, Mask) {}

// ---- instructions of a warp: a tile program has none

void Strand::execute(const ir::Mma& op, const Step&, Mask) { check_internal(false, "{} in a tile program", op.name); }
void Strand::execute(const ir::LoadMatrix& op, const Step&, Mask) {
  check_internal(false, "{} in a tile program", op.name);
}

void Strand::execute(const ir::StoreMatrix& op, const Step&, Mask) {
  check_internal(false, "{} in a tile program", op.name);
}

void Strand::execute(const ir::Wgmma& op, const Step&, Mask) { check_internal(false, "{} in a tile program", op.name); }
void Strand::execute(const ir::Elect& op, const Step&, Mask) { check_internal(false, "{} in a tile program", op.name); }
void Strand::execute(const ir::InitBarriers& op, const Step&, Mask) {
  check_internal(false, "{} in a tile program", op.name);
}

void Strand::meet_cluster(Meeting& all, int strands, bool arrives, bool waits) {
  if (arrives) {
    ++block_.grid.changes;
    cluster_meeting_ = all.held;
    if (++all.arrived == strands) all.arrived = 0, ++all.held;
  }
  if (waits)
    wait([&all, held = cluster_meeting_] { return all.held != held; },
         [] { return std::string("for the other blocks of the cluster"); });
}

void Strand::execute(const ir::Sync& op, const Step& s, Mask mask) {
  switch (op.scope) {
    case ir::SyncScope::Warp:
    case ir::SyncScope::Launches:  // they run one after the other
      return;
    case ir::SyncScope::Block:
      check_converged(s, mask, "a barrier of the block");
      meet(s, mask, [] { return Value(); });
      return;
    case ir::SyncScope::Cluster:
      check_converged(s, mask, "a barrier of the cluster");
      if (Cluster* all = block_.cluster) return meet_cluster(all->sync, all->strands, !op.wait_only, !op.arrive_only);
      meet(s, mask, [] { return Value(); });
      return;
    case ir::SyncScope::Grid: {
      check_converged(s, mask, "a barrier of the grid");
      Meeting& all = block_.grid.sync;
      ++block_.grid.changes;
      if (++all.arrived == block_.grid.strands) {
        all.arrived = 0, ++all.held;
        return;
      }
      int64_t held = all.held;
      return wait([&all, held] { return all.held != held; },
                  [] { return std::string("for the other blocks of the grid"); });
    }
    case ir::SyncScope::Named: break;
  }
  int64_t id = eval_int(*s.nodes[0], mask);
  NamedBarrier& b = block_.named[id];
  ++block_.grid.changes;
  int64_t held = b.held;
  b.arrived += mask.count;
  if (b.arrived > op.count)
    fail_at(Code::BarrierOverflow, first_lane(mask),
            fmt::format("{} threads arrive at named barrier {}, which counts {}", b.arrived, id, op.count));
  if (b.arrived == op.count) {
    b.arrived = 0, ++b.held;
    return;
  }
  if (op.arrive_only) return;
  wait([&b, held] { return b.held != held; },
       [&b, id, count = op.count] {
         return fmt::format("at named barrier {}, where {} of {} threads have arrived", id, b.arrived, count);
       });
}

}  // namespace tilewright::interpreter
