#include "simulator/traffic.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tilewright::simulator {

namespace {

constexpr uint64_t kWordBits = 32, kBanks = 32;
constexpr uint64_t kSectorBits = 256;
constexpr size_t kMost = 32 * 4;  // words that a warp can ask for: 16 bytes a lane

// A sorted list without repetitions, of what a warp touches.
class Touched {
 public:
  void add(uint64_t first, uint64_t last) {
    for (uint64_t i = first; i <= last && count_ < list_.size(); ++i) list_[count_++] = i;
  }
  std::span<const uint64_t> distinct() {
    std::sort(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(count_));
    const auto end = std::unique(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(count_));
    return {list_.data(), static_cast<size_t>(end - list_.begin())};
  }

 private:
  std::array<uint64_t, kMost * 2> list_{};  // an access that is not aligned touches one word more
  size_t count_ = 0;
};

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  shared_accesses += other.shared_accesses, shared_wavefronts += other.shared_wavefronts;
  shared_ideal += other.shared_ideal, global_accesses += other.global_accesses;
  global_sectors += other.global_sectors, global_ideal += other.global_ideal;
  bytes_moved += other.bytes_moved, bytes_used += other.bytes_used;
  atomics += other.atomics, barriers += other.barriers;
  return *this;
}

void add_shared_access(Traffic& traffic, std::span<const uint64_t> addresses, int64_t bits) {
  if (addresses.empty()) return;
  ++traffic.shared_accesses;
  // Wide accesses go by groups of lanes that together ask for at most 32 words.
  const auto words = static_cast<size_t>(std::max<int64_t>((bits + 31) / 32, 1));
  const size_t group = kBanks / words;
  for (size_t first = 0; first < addresses.size(); first += group) {
    Touched touched;
    for (const uint64_t a : addresses.subspan(first, std::min(group, addresses.size() - first)))
      touched.add(a / kWordBits, (a + static_cast<uint64_t>(bits) - 1) / kWordBits);
    std::array<int64_t, kBanks> in_bank{};
    for (const uint64_t word : touched.distinct()) ++in_bank[word % kBanks];
    traffic.shared_wavefronts += *std::max_element(in_bank.begin(), in_bank.end());
    ++traffic.shared_ideal;
  }
}

void add_global_access(Traffic& traffic, std::span<const uint64_t> addresses, int64_t bits) {
  if (addresses.empty()) return;
  ++traffic.global_accesses;
  Touched sectors;
  for (const uint64_t a : addresses) sectors.add(a / kSectorBits, (a + static_cast<uint64_t>(bits) - 1) / kSectorBits);
  const auto count = static_cast<int64_t>(sectors.distinct().size());
  // Lanes that read the same bytes ask for them once.
  std::array<uint64_t, 32> sorted{};
  const size_t lanes = std::min(addresses.size(), sorted.size());
  std::copy_n(addresses.begin(), lanes, sorted.begin());
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(lanes));
  uint64_t used = 0, end = 0;
  for (size_t i = 0; i < lanes; ++i) {
    const uint64_t from = std::max(sorted[i], end), to = sorted[i] + static_cast<uint64_t>(bits);
    if (to > from) used += to - from;
    end = std::max(end, to);
  }
  const auto used_bytes = static_cast<int64_t>((used + 7) / 8);
  traffic.global_sectors += count;
  traffic.global_ideal += (used_bytes + 31) / 32;
  traffic.bytes_moved += count * 32;
  traffic.bytes_used += used_bytes;
}

void add_global_run(Traffic& traffic, uint64_t address, uint64_t bits) {
  const auto sectors = static_cast<int64_t>((address + bits - 1) / kSectorBits - address / kSectorBits + 1);
  ++traffic.global_accesses;
  traffic.global_sectors += sectors;
  traffic.global_ideal += static_cast<int64_t>((bits + kSectorBits - 1) / kSectorBits);
  traffic.bytes_moved += sectors * 32;
  traffic.bytes_used += static_cast<int64_t>(bits / 8);
}

}  // namespace tilewright::simulator
