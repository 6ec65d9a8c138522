// Instructions on matrices that the lanes of a warp hold together. Which lane holds what is written down here from the
// PTX ISA, apart from the layouts that made the code.
#include "interpreter/arithmetic.h"
#include "interpreter/shadow.h"
#include "scalar/sparse_group.h"
#include "simulator/warp.h"
#include "support/diagnostic.h"
#include "target/mma.h"
#include "target/unit_rates.h"

namespace tilewright::simulator {

using interpreter::ArenaScope;

// Words of a lane as the elements of a matrix (PTX ISA 9.7.14.5, the figures of m16n8k8, k16 and k32, and of 9.7.14.6
// those of b): word w holds neighbours along k; even words stand in row lane / 4, and of A odd ones eight rows below;
// what follows is further along k.
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
    const int64_t column = (lane % 4 + w / rows_of_words * 4) * per_word;
    for (int64_t i = 0; i < per_word; ++i) matrix[row * k + column + i] = values[static_cast<size_t>(w * per_word + i)];
  }
}

// The four bits of a group of one of 16 rows, of the words that the lanes gave (PTX ISA 9.7.14.6.2, the figures of the
// metadata; selector 0). Elements of 16 bits or more: lanes 0 and 1 of four have rows r and r + 8 in their halves, and
// half of the groups each. Of 8 bits: all four lanes, the second and the fourth for row r + 8.
uint64_t metadata_of(int64_t element_bits, const std::array<uint32_t, kWarpThreads>& words, int64_t row,
                     int64_t group) {
  const int64_t lane = row % 8 * 4;
  if (element_bits == 8) return words[static_cast<size_t>(lane + group / 8 * 2 + row / 8)] >> (group % 8 * 4) & 15;
  return words[static_cast<size_t>(lane + group / 4)] >> (row / 8 * 16 + group % 4 * 4) & 15;
}

// Elements of the buffer that so many words are.
int64_t elements_of(const Place& place, int64_t words) {
  const int64_t bits = place.buffer->type.storage_bits();
  return bits < 32 ? words * 32 / bits : words;
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
  const int64_t of_a = elements_of(pa, row.a_words()), of_b = elements_of(pb, row.b_words());
  touch_registers(pa, of_a, mask), touch_registers(pb, of_b, mask);
  touch_registers(pc, row.c_registers(), mask);
  const bool doubles = row.c == f64;
  const double rate = doubles ? target::kMultiplyAdds64 : target::kMultiplyAdds * target::kOfWarps * 16 / row.a.bits;
  stall("multiplies", hand(TimelineEvent::Track::Matrix, "mma", op.instruction,
                           static_cast<double>(row.m * row.n * row.k) / (rate / 4), 0));
  if (doubles) return multiply_doubles(row, pa, pb, pc);
  const int64_t depth = row.a_k();
  auto* a = arena_.array<float>(row.m * depth);
  auto* b = arena_.array<float>(row.n * row.k);  // by columns
  for (int64_t lane = 0; lane < kWarpThreads; ++lane) {
    unpack_words(row.a, registers(pa, lane, of_a), row.a_words(), 2, lane, depth, a);
    unpack_words(row.b, registers(pb, lane, of_b), row.b_words(), 1, lane, row.k, b);
  }
  // Which element of a column of b an element of a meets.
  auto* met = arena_.array<int64_t>(row.m * depth);
  if (row.sparse) {
    find_met(row.a, a, metadata_words(s, mask), depth, met);
  } else {
    for (int64_t i = 0; i < row.m * depth; ++i) met[i] = i % depth;
  }
  for (int64_t lane = 0; lane < kWarpThreads; ++lane) {
    auto* c = const_cast<std::byte*>(registers(pc, lane, row.c_registers()));
    for (int64_t i = 0; i < row.c_registers(); ++i) {
      const int64_t at = (lane / 4 + i / 2 * 8) * depth;
      const float* y = b + (lane % 4 * 2 + i % 2) * row.k;
      if (row.c.is_float()) {
        float sum;
        std::memcpy(&sum, c + i * 4, 4);
        for (int64_t k = at; k < at + depth; ++k) sum = std::fma(a[k], y[met[k]], sum);
        std::memcpy(c + i * 4, &sum, 4);
      } else {
        uint32_t sum;
        std::memcpy(&sum, c + i * 4, 4);
        for (int64_t k = at; k < at + depth; ++k) sum += static_cast<uint32_t>(static_cast<int32_t>(a[k] * y[met[k]]));
        std::memcpy(c + i * 4, &sum, 4);
      }
    }
  }
}

// Doubles (PTX ISA 9.7.14.5, the figures of m8n8k4 and of m16n8k4, k8 and k16 with f64): lane 4 * i + j has of a the
// rows i and, in turn, i + 8, of b the column i, at every fourth k from j on; of c as with other types.
void Warp::multiply_doubles(const target::MmaInstruction& row, const Place& pa, const Place& pb, const Place& pc) {
  const int64_t halves = row.m / 8;
  auto* a = arena_.array<double>(row.m * row.k);
  auto* b = arena_.array<double>(row.n * row.k);  // by columns
  for (int64_t lane = 0; lane < kWarpThreads; ++lane) {
    const auto* of_a = reinterpret_cast<const double*>(registers(pa, lane, row.a_words()));
    const auto* of_b = reinterpret_cast<const double*>(registers(pb, lane, row.b_words()));
    for (int64_t i = 0; i < row.a_words(); ++i)
      a[(lane / 4 + i % halves * 8) * row.k + lane % 4 + i / halves * 4] = of_a[i];
    for (int64_t i = 0; i < row.b_words(); ++i) b[lane / 4 * row.k + lane % 4 + i * 4] = of_b[i];
  }
  for (int64_t lane = 0; lane < kWarpThreads; ++lane) {
    auto* c = reinterpret_cast<double*>(const_cast<std::byte*>(registers(pc, lane, row.c_registers())));
    for (int64_t i = 0; i < row.c_registers(); ++i) {
      const double* x = a + (lane / 4 + i / 2 * 8) * row.k;
      const double* y = b + (lane % 4 * 2 + i % 2) * row.k;
      for (int64_t k = 0; k < row.k; ++k) c[i] = std::fma(x[k], y[k], c[i]);
    }
  }
}

// The words of metadata that the lanes give, the last operand.
std::array<uint32_t, kWarpThreads> Warp::metadata_words(const Step& s, Mask mask) {
  const Place place = locate(*s.regions.back().buffer, s.regions.back().min, mask);
  touch_registers(place, 1, mask);
  std::array<uint32_t, kWarpThreads> out;
  for (int64_t lane = 0; lane < kWarpThreads; ++lane)
    std::memcpy(&out[static_cast<size_t>(lane)], registers(place, lane, 1), 4);
  return out;
}

void Warp::find_met(DType type, const float* a, const std::array<uint32_t, kWarpThreads>& words, int64_t depth,
                    int64_t* met) {
  const SparseGroup group = *sparse_group(type);
  for (int64_t row = 0; row < 16; ++row)
    for (int64_t g = 0; g < depth / group.kept; ++g) {
      const uint64_t bits = metadata_of(type.bits, words, row, g);
      bool zeros = true;
      for (int64_t j = 0; j < group.kept; ++j) {
        const int64_t at = row * depth + g * group.kept + j;
        met[at] = g * group.size + group.position(bits, j);
        zeros = zeros && a[at] == 0;
      }
      if (!zeros && !group.is_ordered(bits))
        fail_at(Code::MetadataUnordered, row % 8 * 4,
                fmt::format("group {} of row {} of a sparse operand has the metadata 0x{:x}", g, row, bits),
                "its positions must ascend");
    }
}

void Warp::execute(const ir::LoadMatrix& op, const Step& s, Mask mask) {
  constexpr int64_t kRowBits = 128, kRows = 8, kRowBytes = kRowBits / 8;
  check_full_warp(s, mask, "an ldmatrix");
  ArenaScope scope(arena_);
  const interpreter::ElementCode& from = s.elements[0];
  const Place to = locate(*s.regions[0].buffer, s.regions[0].min, mask);
  const int64_t given = eval_int(*s.regions[0].extent.back(), mask), matrices = given / elements_of(to, 1);
  auto* points = arena_.array<uint8_t>(lanes_);  // lanes whose address counts
  for (int64_t l = 0; l < lanes_; ++l) points[l] = l < matrices * kRows;
  const Mask pointing{points, matrices * kRows};
  const DType type = from.buffer->type;
  const int64_t count = kRowBits / type.storage_bits();
  check_run_in_bounds({from.buffer, from.indices, {}}, count, pointing);
  const Place source = locate(*from.buffer, from.indices, pointing);
  touch(Touch::Read, source, kRowBits, lanes_of_access(source, kRowBits, pointing), [](size_t) { return nullptr; });
  spend(Touch::Read, source);
  auto* rows = arena_.array<std::byte>(matrices * kRows * kRowBytes);
  for (int64_t l = 0; l < matrices * kRows; ++l)
    std::memcpy(rows + l * kRowBytes, registers(source, l, count), static_cast<size_t>(kRowBytes));
  touch_registers(to, given, mask);
  for (int64_t l = 0; l < lanes_; ++l) {
    const int64_t first = to.offset.int_at(l, frame_.shape.columns);
    std::byte* out = to.data + first * to.buffer->type.storage_bits() / 8;
    for (int64_t m = 0; m < matrices; ++m) {
      const std::byte* matrix = rows + m * kRows * kRowBytes;
      if (!op.transpose) {
        std::memcpy(out + m * 4, matrix + l / 4 * kRowBytes + l % 4 * 4, 4);
      } else {
        std::memcpy(out + m * 4, matrix + l % 4 * 2 * kRowBytes + l / 4 * 2, 2);
        std::memcpy(out + m * 4 + 2, matrix + (l % 4 * 2 + 1) * kRowBytes + l / 4 * 2, 2);
      }
    }
    interpreter::mark_written(to.written, to.buffer->type, first, given);
  }
}

void Warp::execute(const ir::StoreMatrix& op, const Step& s, Mask mask) {
  constexpr int64_t kElements = 8, kRows = 8, kRowBytes = 16;
  check_full_warp(s, mask, "an stmatrix");
  ArenaScope scope(arena_);
  const interpreter::ElementCode& to = s.elements[0];
  const Place from = locate(*s.regions[0].buffer, s.regions[0].min, mask);
  const int64_t taken = eval_int(*s.regions[0].extent.back(), mask), matrices = taken / elements_of(from, 1);
  auto* rows = arena_.array<std::byte>(matrices * kRows * kRowBytes);
  touch_registers(from, taken, mask);
  for (int64_t l = 0; l < lanes_; ++l) {
    const std::byte* words = registers(from, l, taken);
    for (int64_t m = 0; m < matrices; ++m) {
      std::byte* matrix = rows + m * kRows * kRowBytes;
      if (!op.transpose) {
        std::memcpy(matrix + l / 4 * kRowBytes + l % 4 * 4, words + m * 4, 4);
      } else {
        std::memcpy(matrix + l % 4 * 2 * kRowBytes + l / 4 * 2, words + m * 4, 2);
        std::memcpy(matrix + (l % 4 * 2 + 1) * kRowBytes + l / 4 * 2, words + m * 4 + 2, 2);
      }
    }
  }
  auto* points = arena_.array<uint8_t>(lanes_);  // lanes whose address counts
  for (int64_t l = 0; l < lanes_; ++l) points[l] = l < matrices * kRows;
  const Mask pointing{points, matrices * kRows};
  check_run_in_bounds({to.buffer, to.indices, {}}, kElements, pointing);
  const Place target = locate(*to.buffer, to.indices, pointing);
  touch(Touch::Write, target, kRowBytes * 8, lanes_of_access(target, kRowBytes * 8, pointing),
        [&](size_t lane) { return rows + static_cast<int64_t>(lane) * kRowBytes; });
  spend(Touch::Write, target);
  for (int64_t l = 0; l < matrices * kRows; ++l) {
    const int64_t first = target.offset.int_at(l, frame_.shape.columns);
    std::memcpy(target.data + first * target.buffer->type.storage_bits() / 8, rows + l * kRowBytes,
                static_cast<size_t>(kRowBytes));
    interpreter::mark_written(target.written, target.buffer->type, first, kElements);
  }
}

}  // namespace tilewright::simulator
