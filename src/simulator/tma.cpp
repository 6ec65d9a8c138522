// TMA copies: agents that one thread sets off. What they touch they touch at any time from there on until an mbarrier
// has their bytes, or until the thread has drained its bulk stores.
#include "interpreter/arithmetic.h"
#include "interpreter/shadow.h"
#include "simulator/tma_box.h"
#include "simulator/warp.h"
#include "support/diagnostic.h"
#include "target/unit_rates.h"

namespace tilewright::simulator {

using interpreter::ArenaScope;
using interpreter::RegionCode;

namespace {

constexpr int64_t kChunk = 16;

std::string what_runs(AsyncAccess::Kind kind) {
  return kind == AsyncAccess::Kind::Load ? "a TMA load" : kind == AsyncAccess::Kind::Store ? "a TMA store" : "a wgmma";
}

}  // namespace

void combine(ir::Combine how, DType type, std::byte* to, const std::byte* from, int64_t n) {
  if (how == ir::Combine::None) {
    std::memcpy(to, from, static_cast<size_t>(n * type.storage_bits() / 8));
    return;
  }
  alignas(8) std::array<std::byte, 128> old, more;  // at most 16 elements
  load_lanes(type, to, {}, n, old.data());
  load_lanes(type, from, {}, n, more.data());
  const std::array<const void*, 2> operands = {old.data(), more.data()};
  apply(how == ir::Combine::Add   ? Function::Add
        : how == ir::Combine::Max ? Function::Max
                                  : Function::Min,
        type, operands, old.data(), n);
  store_lanes(type, to, {}, n, old.data());
}

void Warp::execute_tma(const ir::Copy& op, const Step& s, Mask mask) {
  const bool load = op.completion.barrier.valid();
  const RegionCode &from = s.regions[0], &to = s.regions[1];
  const RegionCode &outside = load ? from : to, &inside = load ? to : from;
  if (op.im2col.present()) fail_at(Code::SimulatorRefuses, first_lane(mask), "the simulator has no im2col by TMA");
  std::vector<BarrierLanes> barriers;
  if (load)
    for (SimulatedBlock* block : targets(op, first_lane(mask)))
      for (BarrierLanes& b : barriers_of(s.elements[0], mask, *block)) barriers.push_back(std::move(b));
  ArenaScope scope(arena_);
  const interpreter::Extents extents = extents_of(*outside.buffer, mask);
  const auto values = [&](const std::vector<const interpreter::Node*>& nodes) {
    std::vector<Value> list;
    for (const interpreter::Node* n : nodes) list.push_back(eval(*n, mask));
    return list;
  };
  const std::vector<Value> corner = values(outside.min), place = values(inside.min);
  TmaBox box;
  box.global = outside.buffer, box.shared = inside.buffer;
  box.shape.assign(extents.shape.begin(), extents.shape.end());
  box.strides.assign(extents.strides.begin(), extents.strides.end());
  for (const interpreter::Node* n : outside.extent) box.extent.push_back(eval_int(*n, mask));
  for (const interpreter::Node* n : inside.extent) box.shared_extent.push_back(eval_int(*n, mask));
  Value base = interpreter::uniform_int(0), slot = base;
  uint8_t *unused = nullptr, *written = nullptr;
  std::byte* shared = nullptr;
  attach(*box.global, mask, box.tensor, unused, base);
  attach(*box.shared, mask, shared, written, slot);
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    if (!mask.at(lane)) continue;
    const auto at = [&](const std::vector<Value>& list) {
      std::vector<int64_t> index;
      for (const Value& v : list) index.push_back(v.int_at(lane, frame_.shape.columns));
      return index;
    };
    TmaBox mine = box;
    mine.min = at(corner), mine.shared_min = at(place);
    mine.tensor += base.int_at(lane, frame_.shape.columns) * mine.element_bytes();
    int64_t offset = slot.int_at(lane, frame_.shape.columns);
    for (size_t d = 0; d < place.size(); ++d) {
      if (mine.shared_min[d] < 0 || mine.shared_min[d] + mine.shared_extent[d] > box.shared->shape[d])
        fail_at(Code::OutOfBounds, lane,
                fmt::format("a TMA copy reaches past the end of '{}'", box.shared->source->name));
      if (!box.shared->memory()) offset += mine.shared_min[d] * box.shared->strides[d];
    }
    if (box.shared->memory()) offset += box.shared->memory()->linear_offset(mine.shared_min);
    mine.start = shared - home_.memory.base() + offset * mine.element_bytes();
    if (const std::string fault = mine.fault(); !fault.empty())
      fail_at(Code::OperandUnfit, lane, "there is no such TMA copy: " + fault);
    if (!load) {
      if (const auto begin = std::find_if(mine.min.begin(), mine.min.end(), [](int64_t i) { return i < 0; });
          begin != mine.min.end())
        fail_at(Code::OperandUnfit, lane, fmt::format("there is no such TMA copy: a store begins at {}", *begin));
      tma_store(mine, op, lane);
      last_store_ = &s;
      continue;
    }
    bool first = true;
    for (const BarrierLanes& b : barriers)
      if (std::find(b.lanes.begin(), b.lanes.end(), lane) != b.lanes.end())
        tma_load(mine, b, lane, std::exchange(first, false));
  }
}

std::vector<SimulatedBlock*> Warp::targets(const ir::Copy& op, int64_t lane) {
  if (op.multicast == 0) return {&home_};
  std::vector<SimulatedBlock*> list;
  for (int64_t rank = 0; op.multicast >> rank != 0; ++rank)
    if (op.multicast >> rank & 1) list.push_back(&peer(rank, lane));
  return list;
}

// A row at a time, as bytes arrive: an mbarrier that expects too few may complete in between.
void Warp::tma_load(const TmaBox& box, const BarrierLanes& at, int64_t lane, bool reads) {
  if (box.global->fill && eval_int(*box.global->fill, Mask{nullptr, lanes_}) != 0)
    fail_at(Code::OperandUnfit, lane,
            fmt::format("there is no such TMA copy: outside of '{}' it reads 0", box.global->source->name));
  Mbarrier& barrier = *at.barrier;
  interpreter::Block& memory = at.block->memory;
  const int64_t thread = threads_[static_cast<size_t>(lane)], size = box.element_bytes();
  const Witness who = home_.clocks.witness(thread);
  // What a box takes of the L2 cache's rate, and until it is there (assumed).
  constexpr double kLatency = 700;
  const int64_t all_bytes = box.rows() * box.row_bytes();
  if (reads)
    loaded_ = hand(TimelineEvent::Track::Tma, "loads", box.shared->source->name,
                   static_cast<double>(all_bytes) / target::kL2Bytes, kLatency, all_bytes);
  barrier.clock.arrive(loaded_);
  AsyncAccess me{AsyncAccess::Kind::Load, static_cast<uint16_t>(thread), device_.site(*current_), 0, barrier.agent};
  for (int64_t r = 0; r < box.rows(); ++r) {
    const TmaRow row = box.row(r);
    me.clock = barrier.phase();
    std::vector<std::byte> bytes(static_cast<size_t>(box.row_bytes()));
    if (row.begin < row.end) {
      if (reads) touch_global_row(box, row, false, {}, lane);
      std::memcpy(bytes.data() + row.begin * size, box.tensor + (row.first + row.begin) * size,
                  static_cast<size_t>((row.end - row.begin) * size));
    }
    for (int64_t b = 0; b < box.row_bytes(); b += kChunk) {
      const uint64_t place = box.place(row.address + b);
      issue_async(*at.block, *box.shared, place / kChunk, me, {&who, 1}, lane);
      std::memcpy(memory.base() + place, bytes.data() + b, kChunk);
      std::memset(memory.written() + place, 3, kChunk);
    }
    // Bytes of another block arrive after all that it had waited for.
    if (at.block != &home_) barrier.arriving = join(barrier.arriving, home_.clocks.of_agents(thread));
    barrier.delivered = me.clock;
    barrier.bytes -= box.row_bytes();
    check_bytes(at);
    settle(at);
    barrier.clock.arrive(loaded_);  // the rest of it, should the phase be complete before
  }
}

void Warp::tma_store(const TmaBox& box, const ir::Copy& op, int64_t lane) {
  const int64_t thread = threads_[static_cast<size_t>(lane)], size = box.element_bytes();
  const Witness who = home_.clocks.witness(thread);
  const AsyncAccess me{AsyncAccess::Kind::Store, static_cast<uint16_t>(thread), device_.site(*current_),
                       home_.queues.add_store(thread), 0};
  // Until it has been read from shared memory (assumed).
  constexpr double kLatency = 400;
  const int64_t all_bytes = box.rows() * box.row_bytes();
  clock_.stores.add(hand(TimelineEvent::Track::Tma, "stores", box.shared->source->name,
                         static_cast<double>(all_bytes) / target::kResultBytes, kLatency, all_bytes));
  for (int64_t r = 0; r < box.rows(); ++r) {
    const TmaRow row = box.row(r);
    if (row.begin == row.end) continue;
    if (row.end * size < box.row_bytes() && row.end * size % kChunk != 0)
      fail_at(
          Code::OperandUnfit, lane,
          fmt::format("there is no such TMA copy: it writes whole pieces of {} bytes, and a row of '{}' ends in one",
                      kChunk, box.global->source->name));
    touch_global_row(box, row, true,
                     op.combine == ir::Combine::None ? std::nullopt : std::optional(atomic_op_of(op.combine)), lane);
    for (int64_t e = row.begin; e < row.end;) {
      const int64_t next = std::min(row.end, (e * size / kChunk + 1) * kChunk / size);
      const uint64_t place = box.place(row.address + e * size);
      issue_async(home_, *box.shared, place / kChunk, me, {&who, 1}, lane);
      const auto element = static_cast<int64_t>(place) / size;
      if (interpreter::first_unwritten(home_.memory.written(), box.shared->type, element, next - e) >= 0)
        fail_at(Code::Uninitialized, lane,
                fmt::format("'{}' is stored before it is written, at byte {} of shared memory",
                            box.shared->source->name, place));
      combine(op.combine, box.global->type, box.tensor + (row.first + e) * size, home_.memory.base() + place, next - e);
      e = next;
    }
  }
}

// What the row reads or writes in global memory. A store is under way until its thread drains the queue down to it with
// `written`: else the queue only tells that shared memory has been read.
void Warp::touch_global_row(const TmaBox& box, const TmaRow& row, bool stores, std::optional<ir::AtomicOp> update,
                            int64_t lane) {
  const int64_t size = box.element_bytes();
  const auto* first = box.tensor + (row.first + row.begin) * size;
  const auto bits = static_cast<uint64_t>((row.end - row.begin) * size * 8);
  const uint64_t begin = reinterpret_cast<uintptr_t>(first) * 8;
  Traffic& traffic = device_.traffic(device_.site(*current_));
  if (device_.options.count_traffic) add_global_run(traffic, begin, bits);
  if (!device_.writes(box.global->root)) return;
  Shadow& shadow = device_.global(box.global->root);
  Access me;
  me.thread = static_cast<int16_t>(threads_[static_cast<size_t>(lane)]);
  me.era = home_.clocks.era(), me.clock = home_.clocks.now(me.thread), me.instruction = device_.next_instruction();
  me.site = device_.site(*current_), me.block = home_.number;
  me.atomic = update, me.pending = me.by_tma = stores;
  const auto cell_bits = static_cast<uint64_t>(shadow.cell_bits());
  const Witness who = home_.clocks.witness(me.thread);
  const std::string doing = stores ? "written by a TMA store" : "read by a TMA load";
  const CellRange cells{begin / cell_bits, (begin + bits - 1) / cell_bits};
  if (stores) home_.queues.add_stored(me.thread, {box.global->root, cells});
  for (uint64_t c = cells.first; c <= cells.last; ++c) {
    Cell& cell = shadow.cell(c);
    const Access before = cell.writer;
    const auto conflict = stores ? shadow.write(cell, me, home_.clocks, [](const Access&) { return false; })
                                 : shadow.read(cell, me, home_.clocks);
    if (conflict) fail_async(*box.global, doing, lane, {AsyncConflict::Kind::Thread, {}, *conflict});
    const bool by_thread = !before.none() && !before.by_tma && home_.clocks.is_of_block(before.era) &&
                           before.block == home_.number && !(update && before.atomic);
    if (by_thread && !home_.clocks.is_fenced(who, before.thread, before.clock, true))
      fail_async(*box.global, doing, lane, {AsyncConflict::Kind::Unfenced, {}, {before, true}});
  }
}

void Warp::issue_async(SimulatedBlock& block, const BufferCode& buffer, uint64_t cell, const AsyncAccess& me,
                       std::span<const Witness> who, int64_t lane) {
  const auto conflict = block.async.issue(cell, me, who, block.shared, block.clocks, block.queues);
  if (!conflict) return;
  const char* did = me.kind == AsyncAccess::Kind::Load ? "written" : "read";
  fail_async(buffer, fmt::format("{} by {}", did, what_runs(me.kind)), lane, *conflict);
}

void Warp::fail_async(const BufferCode& buffer, const std::string& doing, int64_t lane, const AsyncConflict& conflict) {
  using Kind = AsyncConflict::Kind;
  const char* name = buffer.source->name.c_str();
  if (conflict.kind == Kind::Async) {
    const AsyncAccess& other = conflict.async;
    const bool load = other.kind == AsyncAccess::Kind::Load;
    const std::string who = fmt::format("{} of thread {}", what_runs(other.kind), thread_name(other.thread));
    fail(Code::DataRace, location(),
         fmt::format("'{}' is {} while {} may still {} it, {}", name, doing, who, load ? "write" : "read", where(lane)),
         load ? "wait for the phase of the mbarrier on which it completes"
         : other.kind == AsyncAccess::Kind::Store
             ? "the thread that stores must drain the queue bulk_store, and a barrier must follow"
             : "the queue wgmma must be drained, and a barrier or an arrival must follow",
         {{"it is issued here", device_.location(other.site)}});
  }
  const Access& other = conflict.thread.other;
  const bool elsewhere = !buffer.on_chip() && other.block != home_.number;
  const std::string who = elsewhere          ? fmt::format("a thread of block {}", other.block)
                          : buffer.on_chip() ? name_of_toucher(home_, other)
                                             : fmt::format("thread {}", thread_name(other.thread));
  const char* did = other.pending                  ? "copies to it asynchronously"
                    : other.atomic                 ? "updates it atomically"
                    : conflict.thread.other_writes ? "writes it"
                                                   : "reads it";
  std::vector<Note> notes = {{fmt::format("{} {} here", who, did), device_.location(other.site)}};
  if (conflict.kind == Kind::Unfenced)
    fail(Code::ProxyFenceMissing, location(),
         fmt::format("'{}' is {}, but {} {} it without a fence for asynchronous {}, {}", name, doing, who,
                     conflict.thread.other_writes ? "wrote" : "read",
                     conflict.thread.other_writes ? "readers" : "writers", where(lane)),
         fmt::format("who {} executes 'fence async' behind it, before the barrier",
                     conflict.thread.other_writes ? "writes" : "reads"),
         std::move(notes));
  fail(Code::DataRace, location(),
       fmt::format("'{}' is {} while {} {}: nothing orders the two, {}", name, doing, who, did, where(lane)),
       elsewhere                       ? "blocks are not ordered"
       : other.pending && other.by_tma ? "the thread that stores must drain the queue bulk_store with written=true"
                                       : "a barrier must stand between them",
       std::move(notes));
}

}  // namespace tilewright::simulator
