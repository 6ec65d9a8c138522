// Instructions on matrices that the lanes of a warp hold together. Which lane holds what is written down here from the
// PTX ISA, apart from the layouts that made the code.
#include "interpreter/arithmetic.h"
#include "interpreter/shadow.h"
#include "simulator/warp.h"
#include "support/diagnostic.h"
#include "target/mma.h"

namespace tilewright::simulator {

using interpreter::ArenaScope;

// Words of a lane as the elements of a matrix (PTX ISA 9.7.14.5, the figures of m16n8k8, k16 and k32): word w holds
// neighbours along k; even words stand in row lane / 4, and of A odd ones eight rows below; the later half of the words
// is the later half of k.
void unpack_words(DType type, const std::byte* words, int64_t count, int64_t rows_of_words, int64_t lane, int64_t k,
                  float* matrix) {
  const int64_t per_word = 32 / type.bits;
  std::array<float, 16> values{};  // at most 4 words of 4 elements
  if (type.is_int()) {
    std::array<int64_t, 16> integers{};
    load_lanes(type, words, {}, count * per_word, integers.data());
    std::copy(integers.begin(), integers.end(), values.begin());
  } else {
    load_lanes(type, words, {}, count * per_word, values.data());
    if (type == tf32) convert(f32, tf32, Rounding::TowardZero, values.data(), nullptr, values.data(), count * per_word);
  }
  for (int64_t w = 0; w < count; ++w) {
    const int64_t row = lane / 4 + w % rows_of_words * 8;
    const int64_t column = lane % 4 * per_word + w / rows_of_words * (k / 2);
    for (int64_t i = 0; i < per_word; ++i) matrix[row * k + column + i] = values[static_cast<size_t>(w * per_word + i)];
  }
}

const std::byte* Warp::registers(const Place& place, int64_t lane, int64_t count) {
  const DType type = place.buffer->type;
  const int64_t first = place.offset.int_at(lane, frame_.shape.columns);
  if (const int64_t hole = interpreter::first_unwritten(place.written, type, first, count); hole >= 0)
    fail_unwritten(*place.buffer, hole, lane);
  return place.data + first * type.storage_bits() / 8;
}

void Warp::execute(const ir::Mma& op, const Step& s, Mask mask) {
  const target::MmaInstruction* instruction = target::mma_named(op.instruction);
  if (!instruction)
    fail_at(Code::SimulatorRefuses, first_lane(mask), fmt::format("the simulator has no mma '{}'", op.instruction));
  check_full_warp(s, mask, "an mma");
  ArenaScope scope(arena_);
  const target::MmaInstruction& row = *instruction;
  const Place pa = locate(*s.regions[0].buffer, s.regions[0].min, mask);
  const Place pb = locate(*s.regions[1].buffer, s.regions[1].min, mask);
  const Place pc = locate(*s.regions[2].buffer, s.regions[2].min, mask);
  touch_registers(pa, row.a_words(), mask), touch_registers(pb, row.b_words(), mask);
  touch_registers(pc, row.c_registers(), mask);
  auto* a = arena_.array<float>(row.m * row.k);
  auto* b = arena_.array<float>(row.n * row.k);  // by columns
  for (int64_t lane = 0; lane < kWarpThreads; ++lane) {
    unpack_words(row.a, registers(pa, lane, row.a_words()), row.a_words(), 2, lane, row.k, a);
    unpack_words(row.b, registers(pb, lane, row.b_words()), row.b_words(), 1, lane, row.k, b);
  }
  for (int64_t lane = 0; lane < kWarpThreads; ++lane) {
    auto* c = const_cast<std::byte*>(registers(pc, lane, row.c_registers()));
    for (int64_t i = 0; i < row.c_registers(); ++i) {
      const float* x = a + (lane / 4 + i / 2 * 8) * row.k;
      const float* y = b + (lane % 4 * 2 + i % 2) * row.k;
      if (row.c.is_float()) {
        float sum;
        std::memcpy(&sum, c + i * 4, 4);
        for (int64_t k = 0; k < row.k; ++k) sum = std::fma(x[k], y[k], sum);
        std::memcpy(c + i * 4, &sum, 4);
      } else {
        uint32_t sum;
        std::memcpy(&sum, c + i * 4, 4);
        for (int64_t k = 0; k < row.k; ++k) sum += static_cast<uint32_t>(static_cast<int32_t>(x[k] * y[k]));
        std::memcpy(c + i * 4, &sum, 4);
      }
    }
  }
}

void Warp::execute(const ir::LoadMatrix& op, const Step& s, Mask mask) {
  constexpr int64_t kRowBits = 128, kRows = 8, kRowBytes = kRowBits / 8;
  check_full_warp(s, mask, "an ldmatrix");
  ArenaScope scope(arena_);
  const interpreter::ElementCode& from = s.elements[0];
  const int64_t matrices = eval_int(*s.regions[0].extent.back(), mask);
  auto* points = arena_.array<uint8_t>(lanes_);  // lanes whose address counts
  for (int64_t l = 0; l < lanes_; ++l) points[l] = l < matrices * kRows;
  const Mask pointing{points, matrices * kRows};
  const DType type = from.buffer->type;
  const int64_t count = kRowBits / type.storage_bits();
  check_run_in_bounds({from.buffer, from.indices, {}}, count, pointing);
  const Place source = locate(*from.buffer, from.indices, pointing);
  touch(Touch::Read, source, kRowBits, lanes_of_access(source, kRowBits, pointing), [](size_t) { return nullptr; });
  auto* rows = arena_.array<std::byte>(matrices * kRows * kRowBytes);
  for (int64_t l = 0; l < matrices * kRows; ++l)
    std::memcpy(rows + l * kRowBytes, registers(source, l, count), static_cast<size_t>(kRowBytes));
  const Place to = locate(*s.regions[0].buffer, s.regions[0].min, mask);
  touch_registers(to, matrices, mask);
  for (int64_t l = 0; l < lanes_; ++l) {
    const int64_t first = to.offset.int_at(l, frame_.shape.columns);
    std::byte* out = to.data + first * 4;
    for (int64_t m = 0; m < matrices; ++m) {
      const std::byte* matrix = rows + m * kRows * kRowBytes;
      if (!op.transpose) {
        std::memcpy(out + m * 4, matrix + l / 4 * kRowBytes + l % 4 * 4, 4);
      } else {
        std::memcpy(out + m * 4, matrix + l % 4 * 2 * kRowBytes + l / 4 * 2, 2);
        std::memcpy(out + m * 4 + 2, matrix + (l % 4 * 2 + 1) * kRowBytes + l / 4 * 2, 2);
      }
    }
    interpreter::mark_written(to.written, to.buffer->type, first, matrices);
  }
}

}  // namespace tilewright::simulator
