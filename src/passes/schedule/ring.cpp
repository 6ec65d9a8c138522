#include "passes/schedule/ring.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/role_code.h"
#include "passes/schedule/slots.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using Filled = SlotRing::Filled;
using Released = SlotRing::Released;

namespace {

// A tile of one dimension as a row of a matrix.
BufferId row_of(TileProgram& p, BufferId vector) {
  Buffer b = p.buffer(vector);
  add_slots(b, 1);
  return p.new_buffer(std::move(b));
}

Element full_of(const SlotRing& r, const Expr& slot, int64_t panel) {
  if (r.panels == 1) return {r.full, {slot}};
  return {r.full, {add(mul(slot, constant(i32, r.panels)), constant(i32, panel))}};
}

// The copies of a panel as ones that the ring hears of, and what its maps store.
Body told(const SlotRing& r, const Element& full, const Body& code) {
  return rewrite(code, [&](const Stmt& s) -> std::optional<Body> {
    if (const auto* store = s.as<Store>()) {
      Store later = *store;
      later.queue = Queue::CpAsync;
      return Body{make_stmt(std::move(later), s->location)};
    }
    if (!s.as<Copy>()) return std::nullopt;
    Copy c = *s.as<Copy>();
    if (r.filled == Filled::CpAsync)
      c.completion.queue = Queue::CpAsync;
    else
      c.completion.barrier = full;
    return Body{make_stmt(std::move(c), s->location)};
  });
}

void wait_empty(const SlotRing& r, const Turn& turn, LocationId at, Body& out) {
  if (r.released != Released::Arrive) return;
  const Expr before = binary(BinaryOp::BitXor, turn.parity, constant(i32, int64_t{1}));
  out.push_back(make_stmt(Wait{{r.empty, {turn.slot}}, before}, at));
}

}  // namespace

SlotRing open_ring(TileProgram& p, const Launch& launch, const std::string& name, SlotRing r, int64_t consumers) {
  if (r.released != Released::Never)
    for (BufferId tile : r.tiles) {
      // TMA knows rows of a matrix, and no vectors.
      const bool by_tma = r.filled == Filled::TmaBytes || r.filled == Filled::Threads;
      const bool vector = by_tma && p.buffer(tile).rank() == 1;
      r.slots_of.push_back(ring_of(p, vector ? row_of(p, tile) : tile, r.slots));
    }
  if (r.filled != Filled::CpAsync)
    r.full = new_barriers(p, launch, BarrierUse::Full, name + "_full", r.slots * r.panels,
                          r.filled == Filled::Threads ? r.threads + (r.bytes > 0 ? 1 : 0) : 1);
  if (r.released == Released::Arrive)
    r.empty = new_barriers(p, launch, BarrierUse::Empty, name + "_empty", r.slots, r.peer ? 2 * consumers : consumers);
  return r;
}

Turn turn_of(int64_t slots, const Expr& count) {
  const Expr c = cast(count, u32), all = constant(u32, slots), two = constant(u32, int64_t{2});
  return {slots == 1 ? constant(i32, int64_t{0}) : cast(binary(BinaryOp::FloorMod, c, all), i32),
          cast(binary(BinaryOp::FloorMod, slots == 1 ? c : binary(BinaryOp::FloorDiv, c, all), two), i32)};
}

void use_slot(const SlotRing& r, const Expr& slot, const ProgramTables& p, std::map<BufferId, IntoSlots::Slot>& all) {
  for (size_t i = 0; i < r.tiles.size(); ++i) {
    const bool is_row = p.buffer(r.slots_of[i]).rank() == p.buffer(r.tiles[i]).rank() + 2;
    all[r.tiles[i]] = {r.slots_of[i], slot, is_row};
  }
}

Body fill(const SlotRing& r, const Turn& turn, std::vector<Body> panels, LocationId at, const Expr& exists) {
  check_internal(static_cast<int64_t>(panels.size()) == r.panels, "a fill of {} panels, not of {}", panels.size(),
                 r.panels);
  Body out;
  wait_empty(r, turn, at, out);
  for (size_t i = 0; i < panels.size(); ++i) {
    const Element full = r.full.valid() ? full_of(r, turn.slot, static_cast<int64_t>(i)) : Element{};
    if (r.filled == Filled::Threads && r.bytes > 0)  // who gathers arrives whether or not there is anything
      out.push_back(make_stmt(Expect{full, constant(i32, r.bytes / r.panels), true}, at));
    Body code = r.filled == Filled::Arrive ? std::move(panels[i]) : told(r, full, panels[i]);
    if (r.filled == Filled::TmaBytes)
      code.insert(code.begin(), make_stmt(Expect{full, constant(i32, r.bytes / r.panels), true}, at));
    if (exists && constant_int(exists) != 1) code = {make_stmt(If{exists, std::move(code), {}}, at)};
    out.insert(out.end(), code.begin(), code.end());
    if (r.filled == Filled::Arrive) out.push_back(arrive_by_warps(full, at));
    if (r.filled == Filled::Threads) out.push_back(make_stmt(Arrive{full, {}, Queue::CpAsync, ArriveBy::Thread}, at));
  }
  if (r.filled == Filled::CpAsync) out.push_back(make_stmt(Commit{Queue::CpAsync}, at));
  return out;
}

Body fill(const SlotRing& r, const Turn& turn, Body copies, Part part, LocationId at) {
  check_internal(r.panels == 1 && r.filled == Filled::TmaBytes, "a part of a fill that is not one panel of bytes");
  const Element full = full_of(r, turn.slot, 0);
  const auto brought = [&](const Expr& bytes, const Body& code) {
    Body out{make_stmt(Expect{full, bytes, true}, at)};
    append(out, told(r, full, code));
    return out;
  };
  Body out;
  wait_empty(r, turn, at, out);
  out.push_back(
      make_stmt(If{part.whole, brought(constant(i32, r.bytes), copies), brought(part.bytes, part.copies)}, at));
  return out;
}

Body wait_full(const SlotRing& r, const Turn& turn, LocationId at, int64_t panel) {
  const bool block = r.released == Released::Block;
  if (r.filled != Filled::CpAsync) {
    Body out{make_stmt(Wait{full_of(r, turn.slot, panel), turn.parity}, at)};
    if (block) out.push_back(make_stmt(Sync{}, at));
    return out;
  }
  // All slots but the one of the turn before are under way: its fill is issued behind this wait, or stands before it.
  Body out{make_stmt(Drain{Queue::CpAsync, r.slots - (r.filled_in_turn ? 1 : 2), {}}, at)};
  if (block) out.push_back(make_stmt(Sync{}, at));
  return out;
}

Body release(const SlotRing& r, const Expr& slot, LocationId at) {
  if (r.released != Released::Arrive) return {};
  Body out{arrive_by_warps({r.empty, {slot}}, at)};
  if (r.peer) out.push_back(arrive_by_warps({r.empty, {slot}}, at, r.peer));
  return out;
}

}  // namespace tilewright::passes
