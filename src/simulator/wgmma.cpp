// wgmma: each warp of a warpgroup multiplies its 16 rows when it comes by, in the order of the warpgroup. Both tiles
// are read whole, at any time until the group is drained, and the registers are wgmma's until then.
#include "target/wgmma.h"

#include <algorithm>

#include "interpreter/gemm_kernel.h"
#include "interpreter/shadow.h"
#include "simulator/matrix_operand.h"
#include "simulator/warp.h"
#include "support/diagnostic.h"
#include "target/unit_rates.h"

namespace tilewright::simulator {

using interpreter::ArenaScope;
using interpreter::RegionCode;

namespace {

constexpr int64_t kRows = 16;   // of a warp
constexpr int64_t kChunk = 16;  // bytes

// tf32 is what float32 is without its last 13 bits.
void truncate_to_tf32(float* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    values[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(values[i]) & ~uint32_t{0x1fff});
}

void load_floats(DType type, const std::byte* from, int64_t n, float* out) {
  if (type == tf32) {
    std::memcpy(out, from, static_cast<size_t>(n) * sizeof(float));
    return truncate_to_tf32(out, n);
  }
  if (type.is_float()) return load_lanes(type, from, {}, n, out);
  std::array<int64_t, kChunk> integers{};
  load_lanes(type, from, {}, n, integers.data());
  std::copy_n(integers.begin(), n, out);
}

// Element i of a lane's accumulators (PTX ISA 9.7.15.5.1, "Register Fragments", D): its row in the warp and its column.
struct Coordinates {
  int64_t row, column;
};
Coordinates accumulator(int64_t lane, int64_t i) {
  return {lane / 4 + i / 2 % 2 * 8, i / 4 * 8 + lane % 4 * 2 + i % 2};
}

}  // namespace

// ---- registers

namespace {

int64_t elements_of(const std::vector<int64_t>& extents) {
  int64_t n = 1;
  for (const int64_t e : extents) n *= e;
  return n;
}

}  // namespace

RegisterRange Warp::range_of(const Place& place, int64_t count, Mask mask) const {
  const int64_t bits = place.buffer->type.storage_bits(), lane = first_lane(mask);
  const int64_t mine = home_.memory.memory(place.buffer->root).thread_bytes * threads_[static_cast<size_t>(lane)];
  const int64_t first = place.offset.int_at(lane, frame_.shape.columns) * bits / 8 - mine;
  return {place.buffer->root, first, first + (count * bits + 7) / 8};
}

void Warp::touch_registers(const Place& place, int64_t count, Mask mask) {
  if (!watch_.watches(place.buffer->root)) return;
  const int64_t lane = first_lane(mask), columns = frame_.shape.columns;
  const int64_t bits = place.buffer->type.storage_bits();
  const int64_t stride = home_.memory.memory(place.buffer->root).thread_bytes * 8 / bits;
  const RegisterRange range = range_of(place, count, mask);
  touch_registers(place, range, lane);
  // Usually all threads touch the same registers.
  if (place.offset.form == Value::Form::Affine && place.offset.inner == stride) return;
  const int64_t first = place.offset.int_at(lane, columns);
  for (int64_t l = lane + 1; l < lanes_; ++l) {
    const int64_t shift = (place.offset.int_at(l, columns) - first - (l - lane) * stride) * bits / 8;
    if (mask.at(l) && shift != 0) touch_registers(place, {range.root, range.first + shift, range.end + shift}, l);
  }
}

void Warp::touch_registers(const Place& place, const RegisterRange& range, int64_t lane) {
  const char* name = place.buffer->source->name.c_str();
  if (!watch_.is_named(range))
    fail_at(Code::RegistersInFlight, lane,
            fmt::format("registers of '{}' are touched behind a drain of wgmma that does not name them", name),
            "name them there: else the device's compiler may move this above the drain");
  if (const RegisterWatch::InFlight* user = watch_.touch(range))
    fail(Code::RegistersInFlight, location(),
         fmt::format("registers of '{}' are touched while a wgmma may still use them, {}", name, where(lane)),
         "drain the queue wgmma down to its group first", {{"it is issued here", device_.location(user->site)}});
}

std::vector<RegisterRange> Warp::ranges_named(const Step& s, Mask mask) {
  ArenaScope scope(arena_);
  std::vector<RegisterRange> list;
  for (const RegionCode& r : s.regions) {
    if (!watch_.watches(r.buffer->root)) continue;
    std::vector<int64_t> extents;
    for (const interpreter::Node* n : r.extent) extents.push_back(eval_int(*n, mask));
    list.push_back(range_of(locate(*r.buffer, r.min, mask), elements_of(extents), mask));
  }
  return list;
}

void Warp::fence_registers(const Step& s, Mask mask) {
  check_full_warp(s, mask, "a fence of wgmma");
  for (const RegisterRange& range : ranges_named(s, mask)) watch_.fence(range);
}

RegisterWatch::InFlight Warp::use_registers(const Step& s, const RegionCode& region, int64_t count, Mask mask,
                                            Place& place) {
  const ir::Wgmma& op = *s.stmt.as<ir::Wgmma>();
  const char* name = region.buffer->source->name.c_str();
  std::vector<int64_t> extents;
  for (const interpreter::Node* n : region.extent) extents.push_back(eval_int(*n, mask));
  if (elements_of(extents) != count)
    fail_at(Code::OperandUnfit, 0,
            fmt::format("'{}' gives {} {} registers of a thread, which needs {}", name, op.instruction,
                        elements_of(extents), count));
  place = locate(*region.buffer, region.min, mask);
  RegisterWatch::InFlight use{range_of(place, count, mask), &region == &s.regions[2], &op.instruction,
                              multiplies_.committed + 1, device_.site(s)};
  if (const RegisterWatch::InFlight* other = watch_.blocking(use))
    fail(Code::RegistersInFlight, location(),
         fmt::format("registers of '{}' are given to a wgmma while another one may still use them, {}", name, where(0)),
         "drain the queue wgmma down to its group first",
         {{"the other is issued here", device_.location(other->site)}});
  if (!watch_.is_fenced(use.range))
    fail_at(Code::RegistersInFlight, 0,
            fmt::format("a wgmma uses registers of '{}' that other code has touched since they were fenced", name),
            "a 'fence wgmma' of these registers must stand before it");
  return use;
}

// ---- the instruction

Warpgroup& Warp::warpgroup() { return home_.warpgroups[static_cast<size_t>(threads_[0] / target::kWarpgroupThreads)]; }

// Whose clock the groups are: one for all warps, or each its own.
int64_t Warp::wgmma_agent() const {
  const int64_t warp = threads_[0] / kWarpThreads;
  const int64_t first =
      device_.options.warpgroup_retires_together ? warp / Warpgroup::kWarps * Warpgroup::kWarps : warp;
  return home_.clocks.agent(static_cast<int64_t>(home_.mbarriers.count()) + first);
}

void Warp::check_warpgroup(const Step& s, Mask mask, const char* what) {
  check_full_warp(s, mask, what);
  const int64_t first = threads_[0] / target::kWarpgroupThreads * target::kWarpgroupThreads;
  if (first + target::kWarpgroupThreads > code_.thread_count)
    fail_at(Code::WarpDivergence, 0, fmt::format("{} by threads that are no whole warpgroup of 128", what));
}

MatrixOperand Warp::operand(const RegionCode& region, DType type, int64_t rows, int64_t k, bool transposed, Mask mask) {
  const BufferCode& buffer = *region.buffer;
  MatrixOperand m;
  m.buffer = &buffer, m.type = type, m.rows = rows, m.k = k, m.transposed = transposed;
  for (const interpreter::Node* n : region.min) m.min.push_back(eval_int(*n, mask));
  for (const interpreter::Node* n : region.extent) m.extent.push_back(eval_int(*n, mask));
  for (size_t d = 0; d < m.min.size(); ++d)
    if (m.min[d] < 0 || m.min[d] + m.extent[d] > buffer.shape[d])
      fail_at(Code::OutOfBounds, 0, fmt::format("a wgmma reads past the end of '{}'", buffer.source->name));
  std::byte* data = nullptr;
  uint8_t* written = nullptr;
  Value offset = interpreter::uniform_int(0);
  attach(buffer, mask, data, written, offset);
  m.base = data - home_.memory.base() + offset.int_at(0, 1) * buffer.type.storage_bits() / 8;
  if (const std::string fault = m.fault(); !fault.empty())
    fail_at(Code::OperandUnfit, 0, fmt::format("wgmma cannot read '{}': {}", buffer.source->name, fault));
  return m;
}

// `k_outside`: into k rows; else into rows of k.
void Warp::read_operand(const MatrixOperand& m, bool k_outside, float* out, std::vector<uint32_t>* cells) {
  const int64_t per_chunk = kChunk * 8 / m.type.storage_bits();
  const std::vector<Witness> who = home_.clocks.witnesses(threads_);
  const AsyncAccess me{AsyncAccess::Kind::Wgmma, static_cast<uint16_t>(threads_[0]), device_.site(*current_),
                       multiplies_.committed + 1, wgmma_agent()};
  std::array<float, kChunk> values{};
  const int64_t outer = m.transposed ? m.k : m.rows, inner = m.transposed ? m.rows : m.k;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; i += per_chunk) {
      const uint64_t place = m.transposed ? m.place(i, o) : m.place(o, i);
      issue_async(home_, *m.buffer, place / kChunk, me, who, 0);
      if (cells) cells->push_back(static_cast<uint32_t>(place / kChunk));
      if (std::memchr(home_.memory.written() + place, 0, kChunk))
        fail_at(Code::Uninitialized, 0,
                fmt::format("a wgmma reads '{}' before it is written, at byte {} of shared memory",
                            m.buffer->source->name, place));
      load_floats(m.type, home_.memory.base() + place, per_chunk, values.data());
      for (int64_t e = 0; e < per_chunk; ++e) {
        const int64_t row = m.transposed ? i + e : o, k = m.transposed ? o : i + e;
        out[k_outside ? k * m.rows + row : row * m.k + k] = values[static_cast<size_t>(e)];
      }
    }
}

// The entry of the warpgroup's list that this wgmma is; made by the first warp that comes by.
Warpgroup::Multiply& Warp::join_multiply(const Step& s, std::array<int64_t, 2> address, bool& first) {
  Warpgroup& group = warpgroup();
  const auto warp = static_cast<size_t>(threads_[0] / kWarpThreads % Warpgroup::kWarps);
  const uint64_t number = group.issued[warp]++;
  first = number - group.gone == group.under_way.size();
  if (first) group.under_way.push_back({&s, address, {}, {}});
  Warpgroup::Multiply& mine = group.under_way[number - group.gone];
  if (mine.step != &s)
    fail(Code::WarpDivergence, location(), fmt::format("the warps of a warpgroup issue different wgmmas, {}", where(0)),
         "let all four come by the same ones in the same order",
         {{"another warp issued this one", program_.program->location(mine.step->node().location)}});
  if (mine.address != address)
    fail_at(Code::WarpDivergence, 0, "the warps of a warpgroup give a wgmma different tiles");
  return mine;
}

void Warp::execute(const ir::Wgmma& op, const Step& s, Mask mask) {
  const auto shape = target::wgmma_named(op.instruction);
  if (!shape) fail_at(Code::SimulatorRefuses, 0, fmt::format("the simulator has no wgmma '{}'", op.instruction));
  check_warpgroup(s, mask, "a wgmma");
  const target::WgmmaInstruction& row = *shape->row;
  const int64_t n = shape->n, k = row.k(), registers = n / 2;
  const bool a_in_shared = !s.regions[0].buffer->is_local();
  if ((op.transpose_a || op.transpose_b) && !row.transposes)
    fail_at(Code::OperandUnfit, 0, fmt::format("{} reads no transposed tiles", op.instruction));
  ArenaScope scope(arena_);
  const bool clear = s.nodes[0] && eval_int(*s.nodes[0], mask) != 0;
  Place pa, pc;
  const RegisterWatch::InFlight c_use = use_registers(s, s.regions[2], registers, mask, pc);
  if (pc.buffer->type != row.c)
    fail_at(Code::OperandUnfit, 0, fmt::format("'{}' holds no {}", pc.buffer->source->name, row.c.name()));
  const MatrixOperand mb = operand(s.regions[1], row.b, n, k, op.transpose_b, mask);
  const int64_t depth = row.a_k();
  auto* a = arena_.array<float>(target::kWgmmaRows * depth);
  const int64_t warp = threads_[0] / kWarpThreads % Warpgroup::kWarps;
  std::array<int64_t, 2> address{-1, static_cast<int64_t>(mb.place(0, 0))};
  std::optional<MatrixOperand> ma;
  if (a_in_shared) {
    ma = operand(s.regions[0], row.a, target::kWgmmaRows, depth, op.transpose_a, mask);
    address[0] = static_cast<int64_t>(ma->place(0, 0));
  }
  bool first = false;
  Warpgroup::Multiply& multiply = join_multiply(s, address, first);
  if (a_in_shared) {
    read_operand(*ma, false, a, nullptr);
    a += warp * kRows * depth;
  } else {
    const int64_t words = kRows * depth * row.a.storage_bits() / 32 / kWarpThreads;
    watch_.add(use_registers(s, s.regions[0], words, mask, pa));
    const DType type = row.a == tf32 ? f32 : row.a;
    for (int64_t l = 0; l < lanes_; ++l) unpack_words(type, this->registers(pa, l, words), words, 2, l, depth, a);
    if (row.a == tf32) truncate_to_tf32(a, kRows * depth);
  }
  if (first) {
    multiply.b.resize(static_cast<size_t>(n * k));
    read_operand(mb, true, multiply.b.data(), &multiply.b_cells);
  } else {
    touch_cells(mb, multiply.b_cells);
  }
  const int64_t* met = nullptr;
  if (row.sparse) {
    auto* list = arena_.array<int64_t>(kRows * depth);
    find_met(row.a, a, metadata_words(s, mask), depth, list);
    met = list;
  }
  multiply_rows(row, n, a, multiply.b.data(), met, pc, clear);
  watch_.add(c_use);
  multiplies_.last = multiplies_.committed + 1, multiplies_.step = &s;
  // A warp's quarter of the rows on its quarter of the unit; the results are there a little later (assumed).
  constexpr double kLatency = 60;
  const double clocks = static_cast<double>(target::kWgmmaRows * n * k) / (target::kMultiplyAdds * 16 / row.a.bits);
  clock_.multiplies.add(hand(TimelineEvent::Track::Matrix, "wgmma", op.instruction, clocks, kLatency));
  Warpgroup& group = warpgroup();
  const uint64_t done = *std::min_element(group.issued.begin(), group.issued.end());
  for (; group.gone < done; ++group.gone) group.under_way.pop_front();
}

// Another warp reads the same tile.
void Warp::touch_cells(const MatrixOperand& m, const std::vector<uint32_t>& cells) {
  const std::vector<Witness> who = home_.clocks.witnesses(threads_);
  const AsyncAccess me{AsyncAccess::Kind::Wgmma, static_cast<uint16_t>(threads_[0]), device_.site(*current_),
                       multiplies_.committed + 1, wgmma_agent()};
  for (const uint32_t cell : cells) issue_async(home_, *m.buffer, cell, me, who, 0);
}

// `met`: of a sparse a, the row of b that each of its elements meets.
void Warp::multiply_rows(const target::WgmmaInstruction& row, int64_t n, const float* a, const float* b,
                         const int64_t* met, const Place& pc, bool clear) {
  const int64_t count = n / 2, k = row.a_k();
  auto* sums = arena_.array<float>(kRows * n);
  std::fill_n(sums, kRows * n, 0.0f);
  const bool floats = row.c.is_float();
  std::array<std::byte*, kWarpThreads> c;
  for (int64_t l = 0; l < lanes_; ++l) {
    const int64_t at = pc.offset.int_at(l, frame_.shape.columns);
    // What was there is read unless it is cleared.
    c[static_cast<size_t>(l)] =
        clear ? pc.data + at * row.c.storage_bits() / 8 : const_cast<std::byte*>(this->registers(pc, l, count));
    interpreter::mark_written(pc.written, row.c, at, count);
    if (clear || !floats) continue;
    const auto* old = reinterpret_cast<const float*>(c[static_cast<size_t>(l)]);
    for (int64_t i = 0; i < count; ++i) {
      const Coordinates at_i = accumulator(l, i);
      sums[at_i.row * n + at_i.column] = old[i];
    }
  }
  if (!met) {
    interpreter::gemm_kernel({kRows, n, k}, a, b, sums);
  } else {
    auto* rows = arena_.array<float>(k * n);
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < k; ++j) std::copy_n(b + met[i * k + j] * n, n, rows + j * n);
      interpreter::gemm_kernel({1, n, k}, a + i * k, rows, sums + i * n);
    }
  }
  for (int64_t l = 0; l < lanes_; ++l) {
    for (int64_t i = 0; i < count; ++i) {
      const Coordinates at = accumulator(l, i);
      const float sum = sums[at.row * n + at.column];
      std::byte* to = c[static_cast<size_t>(l)] + i * 4;
      if (floats) {
        std::memcpy(to, &sum, 4);
        continue;
      }
      uint32_t old = 0;  // sums of one instruction are exact in float32; the whole wraps
      if (!clear) std::memcpy(&old, to, 4);
      old += static_cast<uint32_t>(static_cast<int32_t>(sum));
      std::memcpy(to, &old, 4);
    }
  }
}

// ---- groups

void Warp::commit_wgmma(const Step& s, Mask mask) {
  check_warpgroup(s, mask, "a commit of wgmma");
  warpgroup().commit(++multiplies_.committed);
  if (clock_.runs()) clock_.multiplies.commit();
  ++home_.memory.grid.changes;
}

void Warp::drain_wgmma(const ir::Drain& op, const Step& s, Mask mask) {
  check_warpgroup(s, mask, "a drain of wgmma");
  const auto group = static_cast<Clock>(std::max<int64_t>(multiplies_.committed - op.pending, 0));
  if (group > multiplies_.retired) {
    if (device_.options.warpgroup_retires_together)
      wait([&w = warpgroup(), group] { return w.is_issued(group); },
           [] { return std::string("for the other warps of its warpgroup to commit the same group of wgmmas"); });
    multiplies_.retired = group;
    watch_.retire(group);
    home_.clocks.learn(threads_, wgmma_agent(), group);
    stall("waits for its products", clock_.multiplies.drained(op.pending));
  }
  for (const RegisterRange& range : ranges_named(s, mask)) watch_.name(range);
}

}  // namespace tilewright::simulator
