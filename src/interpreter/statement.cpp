// Scalar statements: each executing lane on its own, all in lockstep.
#include "interpreter/arithmetic.h"
#include "interpreter/shadow.h"
#include "interpreter/strand.h"
#include "ir/match.h"

namespace tilewright::interpreter {

namespace {
constexpr int64_t kWarp = 32;
}

void Strand::run(const Steps& steps, Mask mask) {
  for (const Step& s : steps) {
    if (mask.none()) return;
    step(s, mask);
    if (s.jumps) mask = without_jumped(mask);
  }
}

void Strand::run_body(const Steps& steps, Mask mask) {
  if (mask.none() || steps.empty()) return;
  ArenaScope scope(arena_);
  run(steps, mask);
}

namespace {

// Statements after which a loop may find something changed. Stores, those of maps too, atomics and meetings of strands
// count themselves.
template <class Op>
constexpr bool changes_something = (ir::TileOp<Op> && !std::is_same_v<Op, ir::Map>) || std::is_same_v<Op, ir::Arrive> ||
                                   std::is_same_v<Op, ir::Expect>;

}  // namespace

void Strand::step(const Step& s, Mask mask) {
  const Step* before = std::exchange(current_, &s);
  ir::match(s.stmt->op, [&](const auto& op) {
    if constexpr (changes_something<std::decay_t<decltype(op)>>) ++block_.grid.changes;
    execute(op, s, mask);
  });
  current_ = before;
}

Mask Strand::without_jumped(Mask mask) {
  auto gone = [&](int64_t l) {
    return (frame_.left && frame_.left[l]) || (frame_.skipped && frame_.skipped[l]) ||
           (frame_.returned && frame_.returned[l]);
  };
  int64_t count = 0;
  for (int64_t l = 0; l < frame_.shape.lanes; ++l) count += mask.at(l) && !gone(l);
  if (count == mask.count) return mask;
  auto* bits = arena_.array<uint8_t>(frame_.shape.lanes);
  for (int64_t l = 0; l < frame_.shape.lanes; ++l) bits[l] = mask.at(l) && !gone(l);
  return {bits, count};
}

// An array must outlive the statement: it stays in the arena until the enclosing body ends.
void Strand::bind(ir::VarId var, const Value& value) {
  if (var.valid()) slots_[var.index] = value;
}

// A name may stand for what nobody asks for in the end: a side of a choice that is not taken, lanes that leave nothing.
void Strand::execute(const ir::Let& op, const Step& s, Mask mask) {
  Holes holes;
  try {
    bind(op.var, eval_with_holes(*s.nodes[0], mask, holes));
  } catch (const Error& error) {
    if (error.diagnostic().code != static_cast<uint16_t>(Code::Uninitialized)) throw;
    holes = {{}, std::current_exception()};
  }
  if (holes.first)
    unwritten_.insert_or_assign(op.var.index, std::move(holes));
  else if (!unwritten_.empty())
    unwritten_.erase(op.var.index);
}

void Strand::execute(const ir::Store&, const Step& s, Mask mask) {
  ArenaScope scope(arena_);
  const ElementCode& to = s.elements[0];
  if (s.once) {  // by the strand of the first thread, for all
    if (!leads(s)) return;
    Value value = eval_uniform(*s.nodes[0], mask);
    Place place = locate(*to.buffer, to.indices, mask);
    note_store(place, value, Mask{nullptr, 1});
    return store_one(place, value);
  }
  const Place place = locate(*to.buffer, to.indices, mask);
  mask = without_dropped(place, mask);
  if (mask.none()) return;
  Holes holes;
  const bool passes = passes_holes_on(place);
  const Value value = passes ? eval_with_holes(*s.nodes[0], mask, holes) : eval(*s.nodes[0], mask);
  const Mask whole = without(holes, mask);
  if (!whole.none()) {
    note_store(place, value, whole);
    store(place, value, whole);
  }
  if (holes.first) store_holes(place, holes, mask);
}

// ---- atomics

// Read, change, write one element; gives the old value.
Value Strand::atomic_lane(const ir::Atomic& op, const Place& place, int64_t lane, const Value& value,
                          const Value& compare) {
  int64_t offset = place.offset.int_at(lane, frame_.shape.columns);
  DType type = place.buffer->type;
  LaneKind kind = lane_kind(type);
  alignas(8) std::byte old[8] = {}, operand[8] = {}, result[8] = {};
  const bool fresh = place.written && first_unwritten(place.written, type, offset, 1) >= 0;
  if (op.op != ir::AtomicOp::Store && fresh) fail_unwritten(*place.buffer, offset, lane);
  load_lanes(type, place.data, Elements{nullptr, offset}, 1, old);
  if (op.value) spread(value, LaneShape{}, operand);
  Value before = pick(array_value(kind, old), 0, 1);
  const void* in[2] = {old, operand};
  auto as_int = [](std::byte* bytes) -> int64_t& { return *reinterpret_cast<int64_t*>(bytes); };
  switch (op.op) {
    case ir::AtomicOp::Add: apply(Function::Add, type, in, result, 1); break;
    case ir::AtomicOp::Max: apply(Function::Max, type, in, result, 1); break;
    case ir::AtomicOp::Min: apply(Function::Min, type, in, result, 1); break;
    case ir::AtomicOp::And: as_int(result) = as_int(old) & as_int(operand); break;
    case ir::AtomicOp::Or: as_int(result) = as_int(old) | as_int(operand); break;
    case ir::AtomicOp::Xor: as_int(result) = as_int(old) ^ as_int(operand); break;
    case ir::AtomicOp::Exchange:
    case ir::AtomicOp::Store: std::memcpy(result, operand, 8); break;
    case ir::AtomicOp::Load: return before;
    case ir::AtomicOp::CompareExchange: {
      alignas(8) std::byte expected[8] = {}, a[8] = {}, b[8] = {};
      spread(compare, LaneShape{}, expected);
      store_lanes(type, a, Elements{}, 1, old), store_lanes(type, b, Elements{}, 1, expected);
      if (std::memcmp(a, b, 8) != 0) return before;
      std::memcpy(result, operand, 8);
      break;
    }
  }
  block_.grid.changes += fresh || std::memcmp(old, result, sizeof old) != 0;
  store_lanes(type, place.data, Elements{nullptr, offset}, 1, result);
  if (place.written) mark_written(place.written, type, offset, 1);
  return before;
}

Value Strand::atomic_once(const ir::Atomic& op, const Step& s, Mask mask) {
  const ElementCode& to = s.elements[0];
  Value value, compare;
  if (s.nodes[0]) value = eval_uniform(*s.nodes[0], mask);
  if (s.nodes[1]) compare = eval_uniform(*s.nodes[1], mask);
  Place place = locate(*to.buffer, to.indices, mask);
  int64_t lane = first_lane(mask);
  LaneKind kind = lane_kind(to.buffer->type);
  if (place.inside && !place.inside[lane]) return kind == LaneKind::Int64 ? uniform_int(0) : uniform_float(kind, 0);
  return atomic_lane(op, place, lane, value, compare);
}

void Strand::execute(const ir::Atomic& op, const Step& s, Mask mask) {
  if (s.once) {
    bool executes = meet(s, mask, [&] {
      ArenaScope scope(arena_);
      return atomic_once(op, s, mask);
    });
    (void)executes;
    return bind(op.result, block_.meetings[&s].result);
  }
  LaneKind kind = lane_kind(s.elements[0].buffer->type);
  int64_t n = frame_.shape.lanes, columns = frame_.shape.columns;
  void* results = arena_.allocate(n * lane_bytes(kind));  // stays for the variable
  {
    ArenaScope scope(arena_);
    const ElementCode& to = s.elements[0];
    Value value, compare;
    if (s.nodes[0]) value = eval(*s.nodes[0], mask);
    if (s.nodes[1]) compare = eval(*s.nodes[1], mask);
    Place place = locate(*to.buffer, to.indices, mask);
    on_atomic(op, place, mask);
    std::memset(results, 0, static_cast<size_t>(n * lane_bytes(kind)));
    for (int64_t l = 0; l < n; ++l) {
      if (!mask.at(l) || (place.inside && !place.inside[l])) continue;
      Value old = atomic_lane(op, place, l, pick(value, l, columns), pick(compare, l, columns));
      spread(old, LaneShape{}, static_cast<std::byte*>(results) + l * lane_bytes(kind));
    }
  }
  bind(op.result, array_value(kind, results));
}

// ---- warps

void Strand::execute(const ir::Shuffle& op, const Step& s, Mask mask) {
  LaneKind kind = s.nodes[0]->kind();
  int64_t n = frame_.shape.lanes, size = lane_bytes(kind);
  auto* out = static_cast<std::byte*>(arena_.allocate(n * size));
  ArenaScope scope(arena_);
  const auto* values = static_cast<const std::byte*>(lanes_of(eval(*s.nodes[0], mask), frame_.shape, arena_));
  Value source = eval(*s.nodes[1], mask);
  std::unordered_map<int64_t, int64_t> lane_of_thread;
  for (int64_t l = 0; l < n; ++l)
    if (mask.at(l)) lane_of_thread[frame_.threads[l]] = l;
  for (int64_t l = 0; l < n; ++l) {
    if (!mask.at(l)) continue;
    int64_t thread = frame_.threads[l], lane = thread % kWarp, group = lane / op.width * op.width;
    int64_t by = source.int_at(l, frame_.shape.columns), from = lane;
    switch (op.kind) {
      case ir::ShuffleKind::Index: from = group + (by & (op.width - 1)); break;
      case ir::ShuffleKind::Up: from = lane - by < group ? lane : lane - by; break;
      case ir::ShuffleKind::Down: from = lane + by >= group + op.width ? lane : lane + by; break;
      case ir::ShuffleKind::Xor: from = (lane ^ by) >= group + op.width ? lane : lane ^ by; break;
    }
    auto found = lane_of_thread.find(thread - lane + from);
    if (found == lane_of_thread.end())
      fail_at(Code::ShuffleInactive, l,
              fmt::format("a shuffle reads lane {} of the warp, which does not execute it", from),
              "let all lanes that are read take part");
    std::memcpy(out + l * size, values + found->second * size, static_cast<size_t>(size));
  }
  bind(op.result, array_value(kind, out));
}

namespace {

// The result of a vote for one warp: `active` and `yes` are its lanes, `equal` those whose value equals the lane's.
int64_t vote_of(ir::VoteKind kind, uint32_t active, uint32_t yes, uint32_t equal) {
  switch (kind) {
    case ir::VoteKind::Any: return yes != 0;
    case ir::VoteKind::All: return yes == active;
    case ir::VoteKind::Ballot: return yes;
    case ir::VoteKind::MatchAny: return equal;
    case ir::VoteKind::MatchAll: return equal == active ? active : 0;
    default: return active;
  }
}

}  // namespace

void Strand::execute(const ir::Vote& op, const Step& s, Mask mask) {
  bool of_block =
      op.kind == ir::VoteKind::BlockAny || op.kind == ir::VoteKind::BlockAll || op.kind == ir::VoteKind::BlockCount;
  if (of_block) return vote_of_block(op, s, mask);
  int64_t n = frame_.shape.lanes;
  auto* out = arena_.array<int64_t>(n);
  ArenaScope scope(arena_);
  Value value = s.nodes[0] ? eval(*s.nodes[0], mask) : uniform_int(1);
  const auto* bytes = static_cast<const std::byte*>(lanes_of(value, frame_.shape, arena_));
  auto size = static_cast<size_t>(lane_bytes(value.kind));
  for (int64_t first = 0; first < n;) {  // lanes of one warp stand together
    int64_t end = first;
    while (end < n && frame_.threads[end] / kWarp == frame_.threads[first] / kWarp) ++end;
    uint32_t active = 0, yes = 0;
    for (int64_t l = first; l < end; ++l) {
      uint32_t bit = mask.at(l) ? 1u << (frame_.threads[l] % kWarp) : 0;
      active |= bit;
      if (value.kind == LaneKind::Int64 && reinterpret_cast<const int64_t*>(bytes)[l] != 0) yes |= bit;
    }
    for (int64_t l = first; l < end; ++l) {
      uint32_t equal = 0;
      if (op.kind == ir::VoteKind::MatchAny || op.kind == ir::VoteKind::MatchAll)
        for (int64_t m = first; m < end; ++m)
          if (mask.at(m) &&
              std::memcmp(bytes + static_cast<size_t>(l) * size, bytes + static_cast<size_t>(m) * size, size) == 0)
            equal |= 1u << (frame_.threads[m] % kWarp);
      out[l] = vote_of(op.kind, active, yes, equal);
    }
    first = end;
  }
  bind(op.result, array_value(LaneKind::Int64, out));
}

void Strand::vote_of_block(const ir::Vote& op, const Step& s, Mask mask) {
  check_converged(s, mask, "a vote of the block");
  int64_t yes = 0;
  {
    ArenaScope scope(arena_);
    Value value = eval(*s.nodes[0], mask);
    for (int64_t l = 0; l < frame_.shape.lanes; ++l) yes += value.int_at(l, frame_.shape.columns) != 0;
  }
  Meeting& meeting = block_.meetings[&s];
  meeting.tally = meeting.arrived == 0 ? yes : meeting.tally + yes;
  meet(s, mask, [&] {
    int64_t total = block_.meetings[&s].tally;
    if (op.kind == ir::VoteKind::BlockCount) return uniform_int(total);
    return uniform_int(op.kind == ir::VoteKind::BlockAny ? total > 0 : total == s.set.count());
  });
  bind(op.result, block_.meetings[&s].result);
}

void Strand::execute(const ir::Call& op, const Step&, Mask mask) {
  fail_at(Code::InterpreterRefuses, first_lane(mask),
          fmt::format("the interpreter cannot run the foreign function '{}'", op.function));
}

// ---- control

void Strand::execute(const ir::If&, const Step& s, Mask mask) {
  ArenaScope scope(arena_);
  Value condition = eval(*s.nodes[0], mask);
  if (condition.uniform()) return run_body(s.bodies[condition.base ? 0 : 1], mask);
  run_body(s.bodies[0], narrow(mask, condition, true));
  run_body(s.bodies[1], narrow(mask, condition, false));
}

Strand::LoopScope::LoopScope(Strand& strand, bool needed)
    : frame(strand.frame_), left(frame.left), skipped(frame.skipped) {
  frame.left = frame.skipped = nullptr;
  if (!needed) return;
  lanes = static_cast<size_t>(frame.shape.lanes);
  frame.left = strand.arena_.array<uint8_t>(frame.shape.lanes);
  frame.skipped = strand.arena_.array<uint8_t>(frame.shape.lanes);
  std::memset(frame.left, 0, lanes);
  next();
}

void Strand::LoopScope::next() {
  if (frame.skipped) std::memset(frame.skipped, 0, lanes);
}

void Strand::execute(const ir::For& op, const Step& s, Mask mask) {
  ArenaScope scope(arena_);
  Value begin = eval(*s.nodes[0], mask), extent = eval(*s.nodes[1], mask);
  LoopScope loop(*this, s.jumps_inside);
  DType type = program_.program->var(op.var).type;
  int64_t longest = 0;
  for (int64_t l = 0; l < frame_.shape.lanes; ++l) {
    if (mask.at(l)) longest = std::max(longest, extent.int_at(l, frame_.shape.columns));
    if (extent.uniform()) break;
  }
  if (extent.uniform()) longest = extent.base;
  for (int64_t i = 0; i < longest; ++i) {
    ArenaScope iteration(arena_);
    Mask now = mask;
    if (!extent.uniform()) {
      auto* more = arena_.array<int64_t>(frame_.shape.lanes);
      for (int64_t l = 0; l < frame_.shape.lanes; ++l) more[l] = i < extent.int_at(l, frame_.shape.columns);
      now = narrow(now, array_value(LaneKind::Int64, more), true);
    }
    loop.next();
    if (s.jumps_inside) now = without_jumped(now);
    if (now.none()) break;
    Value var = begin;
    if (begin.form == Value::Form::Array) {
      auto* values = arena_.array<int64_t>(frame_.shape.lanes);
      for (int64_t l = 0; l < frame_.shape.lanes; ++l) values[l] = wrap(type, begin.ints()[l] + i);
      var = array_value(LaneKind::Int64, values);
    } else {
      var.base += i;
    }
    bind(op.var, var);
    run(s.bodies[0], now);
  }
}

void Strand::execute(const ir::While&, const Step& s, Mask mask) {
  ArenaScope scope(arena_);
  LoopScope loop(*this, s.jumps_inside);
  auto* bits = arena_.array<uint8_t>(frame_.shape.lanes);
  Mask now = mask;
  struct Saw {
    uint64_t& saw;
    uint64_t before;
    ~Saw() { saw = before; }
  } restore{loop_saw_, std::exchange(loop_saw_, UINT64_MAX)};
  int64_t lanes = -1;  // that went through the body last
  for (;;) {
    ArenaScope iteration(arena_);
    loop.next();
    if (s.jumps_inside) now = without_jumped(now);
    if (now.none()) return;
    Mask next = narrow(now, eval(*s.nodes[0], now), true);
    // The same lanes, and nothing changed: this iteration would be the last one again.
    if (!next.none() && next.count == lanes && block_.grid.changes == loop_saw_) {
      wait_for_change(loop_saw_);
      next = narrow(now, eval(*s.nodes[0], now), true);
    }
    now = next;
    if (now.none()) return;
    loop_saw_ = block_.grid.changes, lanes = now.count;
    run(s.bodies[0], now);
    if (now.bits && now.bits != mask.bits && now.bits != bits) {  // out of this iteration's scope
      std::memcpy(bits, now.bits, static_cast<size_t>(frame_.shape.lanes));
      now.bits = bits;
    }
    yield();
  }
}

namespace {
void note(uint8_t* lanes, Mask mask, int64_t n) {
  for (int64_t l = 0; l < n; ++l)
    if (mask.at(l)) lanes[l] = 1;
}
}  // namespace

void Strand::execute(const ir::Break&, const Step&, Mask mask) { note(frame_.left, mask, frame_.shape.lanes); }
void Strand::execute(const ir::Continue&, const Step&, Mask mask) { note(frame_.skipped, mask, frame_.shape.lanes); }
void Strand::execute(const ir::Return&, const Step&, Mask mask) {
  if (!frame_.returned)
    fail_at(Code::InterpreterRefuses, first_lane(mask), "a return inside a map",
            "use an if around the rest of the body");
  note(frame_.returned, mask, frame_.shape.lanes);
}

// ---- checks

void Strand::execute(const ir::Assert& op, const Step& s, Mask mask) {
  ArenaScope scope(arena_);
  Value condition = eval(*s.nodes[0], mask);
  for (int64_t l = 0; l < frame_.shape.lanes; ++l)
    if (mask.at(l) && condition.int_at(l, frame_.shape.columns) == 0)
      fail_at(Code::KernelAssertion, l, op.message.empty() ? "an assertion failed" : "assertion failed: " + op.message);
}

void Strand::execute(const ir::Assume&, const Step& s, Mask mask) {
  ArenaScope scope(arena_);
  Value condition = eval(*s.nodes[0], mask);
  for (int64_t l = 0; l < frame_.shape.lanes; ++l)
    if (mask.at(l) && condition.int_at(l, frame_.shape.columns) == 0)
      fail_at(Code::AssumeViolated, l, "what the program assumes here does not hold");
}

}  // namespace tilewright::interpreter
