#include "layout/banks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace tilewright {
namespace {

constexpr int64_t kBanks = 32, kWordBytes = 4;

// Byte offsets, before the swizzle, of the lanes of a warp; lanes that hold nothing are absent.
using Lanes = std::array<std::optional<int64_t>, kWarpThreads>;

// Fills in every combination of the lane digits, copies included.
Lanes lanes_of(const FragmentLayout& fragment, const std::vector<AccessDigit>& digits, int element_bits) {
  struct LaneDigit {
    int64_t extent, stride, bytes;
  };
  std::vector<LaneDigit> list;
  for (const AccessDigit& d : digits)
    if (d.home == Home::Lane) list.push_back({d.extent, d.stride, d.offset * element_bits / 8});
  for (const Copies& c : fragment.copies())
    if (c.factor.home == Home::Lane) list.push_back({c.factor.extent, c.factor.stride, 0});
  Lanes lanes;
  lanes[0] = 0;
  for (const LaneDigit& d : list) {
    const Lanes before = lanes;
    for (int64_t lane = 0; lane < kWarpThreads; ++lane)
      for (int64_t value = 1; before[lane] && value < d.extent; ++value)
        if (lane + value * d.stride < kWarpThreads) lanes[lane + value * d.stride] = *before[lane] + value * d.bytes;
  }
  return lanes;
}

// Adds one access: lanes [first, first + count) move `bytes` each from base + their offset.
int64_t ways_of(const Lanes& lanes, int64_t first, int64_t count, int64_t bytes, int64_t base, Swizzle swizzle) {
  std::array<int64_t, kBanks * 4> words;  // at most 32 lanes of a word, or 8 of four
  size_t used = 0;
  for (int64_t lane = first; lane < first + count; ++lane)
    if (lanes[lane])
      for (int64_t byte = 0; byte < bytes; byte += kWordBytes)
        words[used++] = swizzle.apply(base + *lanes[lane] + byte) / kWordBytes;
  std::sort(words.begin(), words.begin() + used);
  used = std::unique(words.begin(), words.begin() + used) - words.begin();
  std::array<int64_t, kBanks> hits{};
  for (size_t i = 0; i < used; ++i) ++hits[words[i] % kBanks];
  return *std::max_element(hits.begin(), hits.end());
}

BankConflicts conflicts_of_access(const Lanes& lanes, int64_t bytes, int64_t base, Swizzle swizzle) {
  BankConflicts out;
  const int64_t together = std::min(kWarpThreads, kWarpThreads * kWordBytes / std::max(bytes, kWordBytes));
  out.wavefronts = 0;
  for (int64_t first = 0; first < kWarpThreads; first += together) {
    const int64_t ways = ways_of(lanes, first, together, bytes, base, swizzle);
    out.ways = std::max(out.ways, ways);
    out.wavefronts += ways;
  }
  out.ideal = std::count_if(lanes.begin(), lanes.end(), [](const auto& lane) { return lane.has_value(); });
  out.ideal = (out.ideal + together - 1) / together;
  return out;
}

// Offsets in bytes of all values of the digits that are neither lanes nor part of the vector, as far as they change
// which banks an access hits: without a swizzle whole words only rotate the banks; with one its period repeats.
std::vector<int64_t> bases_of(const std::vector<AccessDigit>& digits, const MemoryLayout& memory,
                              int64_t vector_bytes) {
  const int64_t period =
      memory.swizzle().bits > 0 ? std::max(memory.swizzle().period(), kBanks * kWordBytes) : kWordBytes;
  std::vector<int64_t> bases = {0};
  for (const AccessDigit& d : digits) {
    const int64_t bytes = d.offset * memory.element_bits() / 8;
    if (d.home == Home::Lane || bytes % period == 0 || bytes < vector_bytes) continue;
    const int64_t repeats = period / std::gcd(bytes, period);
    const size_t count = bases.size();
    for (int64_t value = 1; value < std::min(d.extent, repeats); ++value)
      for (size_t i = 0; i < count; ++i) bases.push_back((bases[i] + value * bytes) % period);
    std::sort(bases.begin(), bases.end());
    bases.erase(std::unique(bases.begin(), bases.end()), bases.end());
  }
  return bases;
}

// The digits as bits: what one step of each lane bit, and of the registers of a packed word, is in memory (elements).
struct WarpBits {
  std::array<int64_t, 5> lane{};
  std::string fault;
};

WarpBits warp_bits(const FragmentLayout& fragment, const std::vector<AccessDigit>& digits) {
  WarpBits bits;
  int found = 0;
  for (const AccessDigit& d : digits) {
    if (d.home != Home::Lane) continue;
    for (int64_t part = 1; part < d.extent; part *= 2) {
      const int64_t stride = d.stride * part;
      if (d.extent % (part * 2) != 0 || !std::has_single_bit(static_cast<uint64_t>(stride)) || stride >= kWarpThreads) {
        bits.fault = "the lanes are not dealt in powers of two";
        return bits;
      }
      bits.lane[std::countr_zero(static_cast<uint64_t>(stride))] = d.offset * part;
      ++found;
    }
  }
  if (found != 5 || !fragment.is_warp_aligned()) bits.fault = "not all 32 lanes hold elements of their own";
  return bits;
}

// Takes the digit of registers 0 .. count-1, side by side in a packed word, out of `rest`. Its step in memory, or
// nothing.
std::optional<int64_t> take_packed(std::vector<AccessDigit>& rest, int64_t count) {
  if (count == 1) return 0;
  for (AccessDigit& d : rest)
    if (d.home == Home::Register && d.stride == 1 && d.extent % count == 0) {
      const int64_t step = d.offset;
      d.extent /= count, d.stride *= count, d.offset *= count, d.weight *= count;
      return step;
    }
  return std::nullopt;
}

}  // namespace

std::optional<BankConflicts> bank_conflicts(const FragmentLayout& fragment, const MemoryLayout& memory,
                                            const VectorAccess& vector) {
  const auto digits = access_digits(fragment, memory);
  if (!digits) return std::nullopt;
  const int64_t bytes = std::max<int64_t>(1, vector.bytes(memory.element_bits()));
  const Lanes lanes = lanes_of(fragment, *digits, memory.element_bits());
  BankConflicts worst;
  worst.wavefronts = 0;
  for (int64_t base : bases_of(*digits, memory, bytes)) {
    const BankConflicts here = conflicts_of_access(lanes, bytes, base, memory.swizzle());
    if (here.wavefronts > worst.wavefronts) worst = here;
  }
  return worst;
}

MatrixAccess matrix_access(const FragmentLayout& fragment, const MemoryLayout& memory, int64_t base_alignment) {
  MatrixAccess out;
  const auto refuse = [&](std::string why) {
    out.why_not = std::move(why);
    return out;
  };
  const int bits = memory.element_bits();
  if (bits != 8 && bits != 16 && bits != 32) return refuse(fmt::format("elements of {} bits", bits));
  if (fragment.is_padded()) return refuse("the tile does not fill its places");
  if (memory.swizzle().bits > 0 && memory.swizzle().base < 4) return refuse("the swizzle moves less than 16 bytes");
  if (base_alignment % 16 != 0) return refuse("the tile is not aligned to 16 bytes");
  auto digits = access_digits(fragment, memory);
  if (!digits) return refuse("the fragment and the memory are cut at different indices");
  const WarpBits warp = warp_bits(fragment, *digits);
  if (!warp.fault.empty()) return refuse(warp.fault);
  const int64_t packed = 32 / bits, row = 128 / bits;  // elements of a word and of 16 bytes
  const std::optional<int64_t> step = take_packed(*digits, packed);
  if (!step) return refuse("a 32-bit word holds no consecutive registers");
  const auto& lane = warp.lane;
  const bool straight = (packed == 1 || *step == 1) && lane[0] == packed && lane[1] == 2 * packed;
  const bool turned = bits == 16 && lane[2] == 1 && lane[3] == 2 && lane[4] == 4;
  if (!straight && !turned) return refuse("the lanes do not hold rows of an 8 x 8 matrix");
  const std::array<int64_t, 3> rows =
      straight ? std::array{lane[2], lane[3], lane[4]} : std::array{*step, lane[0], lane[1]};
  int64_t free = 1;
  for (int64_t offset : rows)
    if (offset % row != 0) return refuse("rows of the matrices are not aligned to 16 bytes");
  for (const AccessDigit& d : *digits) {
    if (d.home == Home::Lane || d.extent == 1) continue;
    if (d.offset % row != 0) return refuse("the matrices are not aligned to 16 bytes");
    if (d.home == Home::Register) free *= d.extent;
  }
  out.matrices = static_cast<int>(std::gcd(free, int64_t{4}));
  out.transposed = !straight;
  Lanes addresses;
  for (int64_t i = 0; i < 8; ++i)
    addresses[i] = ((i & 1) * rows[0] + (i >> 1 & 1) * rows[1] + (i >> 2) * rows[2]) * bits / 8;
  for (int64_t base : bases_of(*digits, memory, 16))
    out.ways = std::max(out.ways, ways_of(addresses, 0, 8, 16, base, memory.swizzle()));
  return out;
}

int64_t shared_wavefronts(const MemoryLayout& memory, std::span<const SharedUse> uses) {
  int64_t total = 0;
  for (const SharedUse& use : uses) {
    const int64_t registers = use.fragment.registers();
    if (use.matrix) {
      const MatrixAccess matrix = matrix_access(use.fragment, memory);
      if (matrix.matrices > 0) {
        total += std::max<int64_t>(1, registers * memory.element_bits() / 32) * matrix.ways;
        continue;
      }
    }
    const VectorAccess vector = vector_access(use.fragment, memory);
    const auto conflicts = bank_conflicts(use.fragment, memory, vector);
    const int64_t accesses = (registers + vector.elements - 1) / vector.elements;
    total += accesses * (conflicts ? conflicts->wavefronts : kWarpThreads);
  }
  return total;
}

MemoryLayout choose_shared_layout(const std::vector<int64_t>& shape, int element_bits, std::span<const SharedUse> uses,
                                  bool panels_only, function_ref<bool(const MemoryLayout&)> may) {
  const MemoryLayout rows = MemoryLayout::row_major(shape, element_bits);
  if (shape.size() < 2) return rows;
  const int64_t row_bits = shape.back() * element_bits;
  std::vector<MemoryLayout> candidates;
  if (!panels_only) candidates.push_back(rows);
  for (int64_t span : {32, 64, 128})
    if (row_bits % (span * 8) == 0 && shape[shape.size() - 2] % 8 == 0)
      candidates.push_back(MemoryLayout::panels(shape, element_bits, span));
  if (candidates.empty()) candidates.push_back(rows);
  if (!panels_only && row_bits >= 64 && std::has_single_bit(static_cast<uint64_t>(row_bits))) {
    // The number of the row, or what of it fits, into the number of the chunk: 16-byte chunks first.
    const int row = std::countr_zero(static_cast<uint64_t>(row_bits / 8));
    for (int base = 4; base >= 2; --base)
      for (int bits = 1; base + bits <= std::min(row, 7) && (8 << base) >= element_bits; ++bits)
        candidates.push_back(rows.with_swizzle({bits, base, std::max(bits, row - base)}));
    // The number of a group of rows: for who reads a column of chunks whose rows lie as far apart as a vector is long.
    const int all = std::countr_zero(static_cast<uint64_t>(rows.bytes()));
    for (int bits = 1; bits <= 3; ++bits)
      for (int rows_log = 1; rows_log <= 5 && row + rows_log + bits <= all; ++rows_log)
        if (row + rows_log - 4 >= bits) candidates.push_back(rows.with_swizzle({bits, 4, row + rows_log - 4}));
  }
  if (!panels_only)
    for (int64_t pad : {16, 8, 4})
      if (pad * 8 % element_bits == 0) candidates.push_back(MemoryLayout::padded(shape, element_bits, pad));
  std::erase_if(candidates, [&](const MemoryLayout& c) { return !may(c); });
  if (candidates.empty()) return rows;
  // Nothing beats 128 bytes in every wavefront.
  int64_t least = 0;
  for (const SharedUse& use : uses) least += std::max<int64_t>(1, use.fragment.registers() * element_bits / 32);
  size_t best = 0;
  int64_t fewest = shared_wavefronts(candidates[0], uses);
  for (size_t i = 1; i < candidates.size() && fewest > least; ++i)
    if (const int64_t here = shared_wavefronts(candidates[i], uses); here < fewest) fewest = here, best = i;
  return candidates[best];
}

}  // namespace tilewright
