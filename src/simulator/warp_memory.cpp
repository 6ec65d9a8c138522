// What a warp does to memory: in bounds, aligned, initialized, ordered.
#include "interpreter/arithmetic.h"
#include "interpreter/shadow.h"
#include "simulator/warp.h"
#include "support/diagnostic.h"

namespace tilewright::simulator {

using interpreter::ArenaScope;
using interpreter::RegionCode;

// Where the executing lanes access. A global access out of bounds is an error here: guards are written out.
Warp::Lanes Warp::lanes_of_access(const Place& place, int64_t bits, Mask mask) {
  Lanes out;
  const bool shared = place.written != nullptr;
  const auto base = static_cast<uint64_t>(shared ? place.data - place.block->base()
                                                 : static_cast<std::ptrdiff_t>(reinterpret_cast<intptr_t>(place.data)));
  for (int64_t l = 0; l < lanes_; ++l) {
    if (!mask.at(l)) continue;
    if (place.inside && !place.inside[l])
      fail_at(Code::GlobalOutOfBounds, l, fmt::format("'{}' is accessed out of bounds", place.buffer->source->name),
              "the code of a thread guards its accesses of global memory");
    const int64_t offset = place.offset.int_at(l, frame_.shape.columns) * place.buffer->type.storage_bits();
    out.address[out.count] = base * 8 + static_cast<uint64_t>(offset);
    out.lane[out.count++] = static_cast<uint8_t>(l);
  }
  check_aligned(place, out, bits);
  return out;
}

void Warp::check_aligned(const Place& place, const Lanes& lanes, int64_t bits) {
  const auto step = static_cast<uint64_t>(bits);
  for (size_t i = 0; i < lanes.count; ++i)
    if (lanes.address[i] % step != 0)
      fail_at(
          Code::MisalignedAccess, lanes.lane[i],
          fmt::format("an access of {} bytes to '{}' is not aligned to them", bits / 8, place.buffer->source->name));
}

const std::byte* Warp::pointer(const Place& place, uint64_t address) const {
  if (place.written) return place.block->base() + address / 8;
  return reinterpret_cast<const std::byte*>(address / 8);
}

void Warp::on_load(const Place& place, Mask mask) {
  if (place.buffer->is_local()) return touch_registers(place, 1, mask);
  const int64_t bits = place.buffer->type.storage_bits();
  touch(Touch::Read, place, bits, lanes_of_access(place, bits, mask), [](size_t) { return nullptr; });
  spend(Touch::Read, place);
}

// Loads of one statement are under way together, and so wait once (latencies are assumed).
void Warp::spend(Touch kind, const Place& place) {
  constexpr double kSharedLatency = 25, kGlobalLatency = 500, kSectorsAClock = 2;
  const bool reads = kind == Touch::Read;
  if (place.written)
    return busy(reads ? "reads shared memory" : "writes shared memory",
                static_cast<double>(last_access_.shared_wavefronts), reads ? kSharedLatency : 0);
  busy(reads ? "reads global memory" : "writes global memory",
       static_cast<double>(last_access_.global_sectors) / kSectorsAClock, reads ? kGlobalLatency : 0);
}

void Warp::on_store(const Place& place, const Value& value, Mask mask) {
  constexpr double kRegisterClocks = 2;  // of a value that is computed and kept (assumed)
  if (place.buffer->is_local()) {
    busy("computes", kRegisterClocks);
    return touch_registers(place, 1, mask);
  }
  const DType type = place.buffer->type;
  const int64_t bits = type.storage_bits();
  std::array<std::byte, 8> stored{};
  touch(Touch::Write, place, bits, lanes_of_access(place, bits, mask), [&](size_t lane) {
    std::array<std::byte, 8> one{};
    spread(interpreter::pick(value, static_cast<int64_t>(lane), frame_.shape.columns), {}, one.data());
    stored = {};
    store_lanes(type, stored.data(), {}, 1, one.data());
    return stored.data();
  });
  spend(Touch::Write, place);
}

void Warp::on_atomic(const ir::Atomic& op, const Place& place, Mask mask) {
  ++device_.traffic(device_.site(*current_)).atomics;
  const int64_t bits = place.buffer->type.storage_bits();
  const Touch kind = op.op == ir::AtomicOp::Load ? Touch::Read : Touch::Write;
  const Lanes lanes = lanes_of_access(place, bits, mask);
  touch(
      kind, place, bits, lanes, [](size_t) { return nullptr; }, false, op.op);
  tell(op, place, lanes);
  spend(kind, place);
}

// Who acquires what another has released knows what that one had done. Of relaxed atomics a fence before the one and
// another behind the other say the same. A compare-exchange counts as one that writes.
void Warp::tell(const ir::Atomic& op, const Place& place, const Lanes& lanes) {
  using ir::MemoryOrder;
  if (!place.written && !device_.writes(place.buffer->root)) return;
  Shadow& shadow = place.written ? owner_of(place).shared : device_.global(place.buffer->root);
  const bool reads = op.op != ir::AtomicOp::Store, writes = op.op != ir::AtomicOp::Load;
  const bool acquires = reads && op.order != MemoryOrder::Relaxed && op.order != MemoryOrder::Release;
  const bool releases = writes && op.order != MemoryOrder::Relaxed && op.order != MemoryOrder::Acquire;
  for (size_t i = 0; i < lanes.count; ++i) {
    const int64_t thread = threads_[lanes.lane[i]];
    FarKnowledge& told = shadow.told(lanes.address[i] / static_cast<uint64_t>(shadow.cell_bits()));
    if (acquires)
      home_.clocks.acquire_far(thread, told);
    else if (reads)
      home_.clocks.see(thread, told);
    if (!writes) continue;
    const FarKnowledge mine = releases ? home_.clocks.release_far(home_.number, thread) : home_.clocks.fenced(thread);
    told = reads ? join(told, mine) : mine;  // what was told before goes on with an operation that reads it
  }
}

void Warp::touch(Touch kind, const Place& place, int64_t bits, const Lanes& lanes,
                 function_ref<const std::byte*(size_t)> bytes_of, bool pending, std::optional<ir::AtomicOp> update) {
  const bool shared = place.written != nullptr;
  const uint16_t site = device_.site(*current_);
  if (device_.options.count_traffic) {
    const std::span<const uint64_t> addresses(lanes.address.data(), lanes.count);
    last_access_ = {};
    shared ? add_shared_access(last_access_, addresses, bits) : add_global_access(last_access_, addresses, bits);
    device_.traffic(site) += last_access_;
  }
  if (!shared && !device_.writes(place.buffer->root)) return;
  SimulatedBlock& owner = shared ? owner_of(place) : home_;
  Shadow& shadow = shared ? owner.shared : device_.global(place.buffer->root);
  const Clocks& clocks = owner.clocks;
  // Threads as the owner counts them.
  const int64_t shift = (home_.rank - owner.rank) * code_.thread_count;
  Access me;
  me.era = clocks.era(), me.instruction = device_.next_instruction(), me.site = site;
  me.block = shared ? 0 : home_.number, me.atomic = update, me.pending = pending;
  const auto cell_bits = static_cast<uint64_t>(shadow.cell_bits());
  for (size_t i = 0; i < lanes.count; ++i) {
    const int64_t thread = threads_[lanes.lane[i]];
    me.thread = static_cast<int16_t>(thread + shift);
    me.clock = home_.clocks.now(thread);
    if (&owner != &home_) owner.note_visit(home_.clocks.deed(thread));
    const uint64_t at = lanes.address[i];
    // The store's bits against those of another lane of this instruction, or against what memory holds.
    auto same_bits = [&](const Access& other) {
      std::array<std::byte, 16> mine{};
      const auto bytes = static_cast<size_t>((bits + 7) / 8);
      std::memcpy(mine.data(), bytes_of(lanes.lane[i]), bytes);
      if (other.instruction == me.instruction)
        return std::memcmp(mine.data(), bytes_of(static_cast<size_t>(other.thread - shift - threads_[0])), bytes) == 0;
      const std::byte* memory = pointer(place, at);
      if (bits >= 8) return std::memcmp(mine.data(), memory, bytes) == 0;
      return (mine[0] & std::byte{15}) == ((memory[0] >> (at % 8)) & std::byte{15});
    };
    const CellRange cells{at / cell_bits, (at + static_cast<uint64_t>(bits) - 1) / cell_bits};
    if (pending) home_.queues.add(thread, cells);
    if (shared) {
      const uint64_t last = at + static_cast<uint64_t>(bits) - 1;
      const Witness who = home_.clocks.witness(thread);
      if (const auto conflict = owner.async.touch(at, last, kind != Touch::Read, who, clocks, owner.queues))
        fail_async(*place.buffer, kind == Touch::Read ? "read" : "written", lanes.lane[i], *conflict);
    }
    for (uint64_t c = cells.first; c <= cells.last; ++c) {
      Cell& cell = shadow.cell(c);
      const auto conflict =
          kind == Touch::Read ? shadow.read(cell, me, clocks) : shadow.write(cell, me, clocks, same_bits);
      if (conflict) fail_race(kind, me, place, lanes, i, *conflict);
    }
  }
}

SimulatedBlock& Warp::owner_of(const Place& place) {
  if (place.block == &home_.memory) return home_;
  const std::vector<SimulatedBlock*>& blocks = home_.cluster.blocks;
  return **std::find_if(blocks.begin(), blocks.end(),
                        [&](const SimulatedBlock* b) { return &b->memory == place.block; });
}

// Who touched the shared memory of the block.
std::string Warp::name_of_toucher(const SimulatedBlock& owner, const Access& other) const {
  const int64_t number = owner.rank * code_.thread_count + other.thread;
  const std::string thread = "thread " + thread_name(number % code_.thread_count);
  const int64_t rank = number / code_.thread_count;
  return rank == home_.rank ? thread : fmt::format("{} of block {} of the cluster", thread, rank);
}

void Warp::fail_race(Touch kind, const Access& me, const Place& place, const Lanes& lanes, size_t i,
                     const Conflict& conflict) {
  const Access& other = conflict.other;
  const BufferCode& buffer = *place.buffer;
  const int64_t lane = lanes.lane[i];
  const bool elsewhere = !place.written && other.block != home_.number;
  const std::string who = elsewhere       ? fmt::format("a thread of block {}", other.block)
                          : place.written ? name_of_toucher(owner_of(place), other)
                                          : fmt::format("thread {}", thread_name(other.thread));
  const char* did = other.pending               ? "copies to it asynchronously"
                    : !conflict.other_writes    ? "reads it"
                    : other.atomic && me.atomic ? "updates it by another atomic"
                    : other.atomic              ? "updates it atomically"
                                                : "writes it";
  const char* mine = kind == Touch::Read ? "read" : me.atomic ? "updated atomically" : "written";
  std::string element;
  if (!buffer.source->is_view())
    element = fmt::format(" (element {})", place.offset.int_at(lane, frame_.shape.columns));
  fail(Code::DataRace, location(),
       fmt::format("'{}'{} is {} while {} {}: nothing orders the two, {}", buffer.source->name, element, mine, who, did,
                   where(lane)),
       elsewhere       ? "blocks are not ordered: use an atomic, or a launch of its own"
       : other.pending ? "the thread that copies must drain its queue first, and a barrier must follow"
                       : "a barrier of the threads must stand between them",
       {{fmt::format("{} {} here", who, did), device_.location(other.site)}});
}

// ---- wide accesses

void Warp::check_run_in_bounds(const RegionCode& region, int64_t count, Mask mask) {
  const interpreter::Extents extents = extents_of(*region.buffer, mask);
  const size_t last = region.buffer->rank() - 1;
  const Value first = eval(*region.min[last], mask);
  const char* name = region.buffer->source->name.c_str();
  // In a layout: within the last mode, and within the 16 bytes that a swizzle moves.
  const MemoryLayout* layout = count > 1 ? region.buffer->memory() : nullptr;
  const Mode mode =
      layout ? layout->dim(static_cast<int>(last)).back() : Mode{extents.shape[last], extents.strides[last]};
  const int64_t step = mode.stride;
  int64_t run = mode.extent;
  if (layout && layout->swizzle().bits > 0) run = std::min<int64_t>(run, 128 / layout->element_bits());
  for (int64_t l = 0; l < lanes_ && count > 1; ++l)
    if (mask.at(l) && (step != 1 || (layout && first.int_at(l, frame_.shape.columns) % run + count > run)))
      fail_at(Code::MisalignedAccess, l, fmt::format("the elements of '{}' are no neighbours", name));
  for (int64_t l = 0; l < lanes_; ++l) {
    if (!mask.at(l) || first.int_at(l, frame_.shape.columns) + count <= extents.shape[last]) continue;
    fail_at(region.buffer->on_chip() ? Code::OutOfBounds : Code::GlobalOutOfBounds, l,
            fmt::format("an access of {} elements reaches past the end of '{}'", count, name));
  }
}

void Warp::check_alignment_demanded(const BufferCode& buffer, int64_t bytes, Mask mask) {
  if (buffer.on_chip()) return;
  const ir::Buffer& root = program_.program->buffers[buffer.root];
  const int64_t promised = std::max<int64_t>(root.alignment, root.type.storage_bits() / 8);
  if (promised < bytes)
    fail_at(Code::MisalignedAccess, first_lane(mask),
            fmt::format("an access of {} bytes to '{}', of which only {} bytes of alignment are demanded", bytes,
                        root.name, promised));
}

void Warp::execute(const ir::Copy& op, const Step& s, Mask mask) {
  if (op.completion.queue == ir::Queue::Prefetch) return;
  const RegionCode &from = s.regions[0], &to = s.regions[1];
  const bool to_peer = op.completion.queue == ir::Queue::StAsync;
  if (!to_peer && (op.completion.barrier.valid() || op.completion.queue == ir::Queue::BulkStore))
    return execute_tma(op, s, mask);
  const bool async = op.completion.queue == ir::Queue::CpAsync;
  const bool fits = to_peer ? from.buffer->space == ir::Space::Shared && to.buffer->cta
                    : async ? !from.buffer->on_chip() && to.buffer->space == ir::Space::Shared
                            : from.buffer->is_local() != to.buffer->is_local() && op.completion.immediate();
  if (!fits) fail_at(Code::SimulatorRefuses, first_lane(mask), "the simulator does not run this copy");
  ArenaScope scope(arena_);
  const int64_t count = eval_int(*to.extent.back(), mask);
  const DType type = from.buffer->type;
  const int64_t bits = count * type.storage_bits(), bytes = bits / 8;
  if (async && bytes != 4 && bytes != 8 && bytes != 16)
    fail_at(Code::OperandUnfit, first_lane(mask), fmt::format("cp.async moves 4, 8 or 16 bytes, not {}", bytes));
  if (to_peer && bytes != 4 && bytes != 8)
    fail_at(Code::OperandUnfit, first_lane(mask), fmt::format("st.async moves 4 or 8 bytes, not {}", bytes));
  // Lanes that read nothing write zeros.
  Mask reading = mask;
  if (async && ir::constant_int(op.from.extent.back()).value_or(0) == 0) {
    const Value read = eval(*from.extent.back(), mask);
    auto* reads = arena_.array<uint8_t>(lanes_);
    reading = {reads, 0};
    for (int64_t l = 0; l < lanes_; ++l) {
      const int64_t n = mask.at(l) ? read.int_at(l, frame_.shape.columns) : 0;
      if (n != 0 && n != count) fail_at(Code::SimulatorRefuses, l, "a copy reads a part of what it writes");
      reads[l] = n == count, reading.count += n == count;
    }
  }
  if (reading.count > 0) check_run_in_bounds(from, count, reading);
  check_run_in_bounds(to, count, mask);
  constexpr double kIssue = 4, kCopyLatency = 600;  // of cp.async (assumed)
  if (async) busy("issues cp.async", kIssue), clock_.copies.add(clock_.now() + kCopyLatency);
  const Place source = locate(*from.buffer, from.min, mask), target = locate(*to.buffer, to.min, mask);
  auto offset = [&](const Place& place, int64_t lane) { return place.offset.int_at(lane, frame_.shape.columns); };
  auto pointer_at = [&](const Place& place, int64_t lane) {
    return place.data + offset(place, lane) * type.storage_bits() / 8;
  };
  static constexpr std::array<std::byte, 16> zeros{};
  auto bytes_of = [&](size_t lane) -> const std::byte* {
    const auto l = static_cast<int64_t>(lane);
    return reading.at(l) ? pointer_at(source, l) : zeros.data();
  };
  for (const Place* place : {&source, &target})
    if (place->buffer->is_local()) touch_registers(*place, count, mask);
  if (!from.buffer->is_local()) {
    check_alignment_demanded(*from.buffer, bytes, mask);
    touch(Touch::Read, source, bits, lanes_of_access(source, bits, reading), bytes_of);
    if (!async) spend(Touch::Read, source);
  }
  if (!to.buffer->is_local()) {
    check_alignment_demanded(*to.buffer, bytes, mask);
    const Lanes lanes = lanes_of_access(target, bits, mask);
    if (op.combine == ir::Combine::None) {
      touch(Touch::Write, target, bits, lanes, bytes_of, async);
    } else {
      ++device_.traffic(device_.site(s)).atomics;
      touch(
          Touch::Write, target, bits, lanes, [](size_t) { return nullptr; }, false, atomic_op_of(op.combine));
    }
    if (!async) spend(Touch::Write, target);
  }
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    if (!mask.at(lane)) continue;
    // What is not written may come along with what is, as long as nobody uses it.
    const bool on_chip = source.written && target.written && op.combine == ir::Combine::None;
    if (source.written && !on_chip)
      if (const int64_t hole = interpreter::first_unwritten(source.written, type, offset(source, lane), count);
          hole >= 0)
        fail_unwritten(*source.buffer, hole, lane);
    if (op.combine != ir::Combine::None && target.written)
      if (const int64_t hole = interpreter::first_unwritten(target.written, type, offset(target, lane), count);
          hole >= 0)
        fail_unwritten(*target.buffer, hole, lane);
    combine(op.combine, type, pointer_at(target, lane), bytes_of(static_cast<size_t>(lane)), count);
    if (on_chip)
      interpreter::copy_written(target.written, offset(target, lane), source.written, offset(source, lane), type,
                                count);
    else if (target.written)
      interpreter::mark_written(target.written, type, offset(target, lane), count);
  }
  if (to_peer) at_peers(*to.buffer->cta, s, mask, [&](const BarrierLanes& at) { deliver(at, bytes); });
}

// ---- queues

void Warp::execute(const ir::Commit& op, const Step& s, Mask mask) {
  if (op.queue == ir::Queue::Wgmma) return commit_wgmma(s, mask);
  if (clock_.runs()) (op.queue == ir::Queue::CpAsync ? clock_.copies : clock_.stores).commit();
  for (const int64_t thread : executing(mask))
    if (op.queue == ir::Queue::CpAsync)
      home_.queues.commit(thread);
    else
      home_.queues.commit_stores(thread);
}

// What has landed is as if the thread wrote it now.
void Warp::execute(const ir::Drain& op, const Step& s, Mask mask) {
  if (op.queue == ir::Queue::Wgmma) return drain_wgmma(op, s, mask);
  const bool stores = op.queue == ir::Queue::BulkStore;
  stall(stores ? "waits for its TMA stores" : "waits for its cp.async",
        (stores ? clock_.stores : clock_.copies).drained(op.pending));
  for (const int64_t thread : executing(mask)) {
    if (op.queue == ir::Queue::BulkStore) {
      home_.queues.drain_stores(thread, op.pending, home_.clocks.now(thread));
      if (op.written) write_stored(thread, home_.queues.take_written(thread, op.pending));
      continue;
    }
    land(thread, home_.queues.drain(thread, op.pending), false);
  }
}

void Warp::write_stored(int64_t thread, const std::vector<StoredCells>& stored) {
  for (const auto& [root, cells] : stored)
    for (uint64_t c = cells.first; c <= cells.last; ++c) {
      Cell& cell = device_.global(root).cell(c);
      for (Access* writer : {&cell.writer, &cell.other_writer}) {
        if (!writer->pending || writer->thread != thread || writer->block != home_.number) continue;
        writer->pending = false, writer->era = home_.clocks.era(), writer->clock = home_.clocks.now(thread);
      }
    }
}

void Warp::land(int64_t thread, const std::vector<CellRange>& copied, bool told) {
  for (const CellRange& range : copied)
    for (uint64_t c = range.first; c <= range.last; ++c) {
      Access& writer = home_.shared.cell(c).writer;
      if (!writer.pending || writer.thread != thread) continue;
      writer.pending = false, writer.told = told;
      writer.era = home_.clocks.era(), writer.clock = home_.clocks.now(thread);
    }
}

}  // namespace tilewright::simulator
