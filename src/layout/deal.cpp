// How a tile is dealt to threads when no instruction asks for anything: row_major_fragment.
#include <algorithm>
#include <numeric>

#include "layout/algebra.h"
#include "layout/standard.h"

namespace tilewright {
namespace {

// Sectors of 32 bytes that a run of lanes costs at least: runs of 32 bytes are sixteen lines an access (a tile of
// 64x100 floats in 128 threads with two lanes along a row: 80 us on an H200, 40 with 25).
constexpr int64_t kFewestSectors = 2;
constexpr int64_t kSector = 256;  // bits

struct Cut {  // of one dimension: registers x warps x lanes
  int64_t registers = 1, warps = 1, lanes = 1;
};

// Tries the ways to cut each dimension, from the fastest, and keeps the cheapest.
class Deal {
 public:
  Deal(std::vector<int64_t> extents, int64_t vector_bits) : extents_(std::move(extents)), vector_bits_(vector_bits) {}

  std::vector<Cut> best(int64_t lanes, int64_t warps) {
    cuts_.assign(extents_.size(), {});
    warps_ = warps;
    for (int64_t extent : extents_) total_ *= extent;
    choose(extents_.size(), lanes, warps);
    return best_;
  }

 private:
  void choose(size_t d, int64_t lanes, int64_t warps) {
    if (d == 0) return judge();
    const int64_t n = extents_[d - 1];
    for (int64_t wide = std::min(n, lanes); wide > 0; --wide) {
      const int64_t rounds = ceil_div(n, wide);
      if (wide > 1 && ceil_div(n, wide - 1) == rounds) continue;  // fewer lanes do
      choose_warps(d, wide, rounds, lanes, warps);
    }
  }

  // The dimension's `rounds` go to warps and registers. The slowest dimension takes all warps that are left.
  void choose_warps(size_t d, int64_t wide, int64_t rounds, int64_t lanes, int64_t warps) {
    const int64_t most = std::min(warps, rounds);
    for (int64_t w = most; w >= (d == 1 ? most : 1); --w) {
      if (d > 1 && warps % w != 0) continue;
      const int64_t registers = ceil_div(rounds, w);
      cuts_[d - 1] = {registers, d == 1 ? ceil_div(rounds, registers) : w, wide};
      choose(d - 1, lanes / wide, warps / w);
    }
  }

  // A warp's time: a cycle to issue each access, and its share of the 32-byte sectors, four a cycle. Consecutive lanes
  // run on through a dimension that they cover; a run costs the sectors that it touches, two at least: one that begins
  // anywhere in a sector ends in one more, but for what it may be short of that.
  void judge() {
    int64_t registers = 1, run = 1, places = 1;
    bool covers = true;
    for (size_t d = cuts_.size(); d-- > 0;) {
      const Cut& c = cuts_[d];
      registers *= c.registers;
      places *= c.registers * c.warps * c.lanes;
      if (covers) run *= c.lanes;
      covers = covers && c.lanes == extents_[d];
    }
    const int64_t bits = run * vector_bits_, begins = std::gcd(std::gcd(bits, extents_.back() * vector_bits_), kSector);
    const double touched = static_cast<double>(bits + kSector - begins) / static_cast<double>(kSector);
    const double of_run = std::max<double>(touched, kFewestSectors);
    const double sectors = static_cast<double>(total_) / static_cast<double>(run * warps_) * of_run;
    // Of equals that have padding, the one with the longest runs: tensors of narrower elements have shorter ones in the
    // same layout.
    const std::tuple cost(4.0 * static_cast<double>(registers) + sectors, registers, places == total_ ? -total_ : -run,
                          places);
    if (!best_.empty() && cost >= cost_) return;
    best_ = cuts_;
    cost_ = cost;
  }

  std::vector<int64_t> extents_;
  int64_t vector_bits_, total_ = 1, warps_ = 1;
  std::vector<Cut> cuts_, best_;
  std::tuple<double, int64_t, int64_t, int64_t> cost_{};
};

FragmentLayout fragment_of(const std::vector<int64_t>& shape, const std::vector<Cut>& cuts, int64_t vector) {
  FragmentLayout::Dims dims(shape.size());
  int64_t registers = vector, warps = 1, lanes = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    const Cut& c = cuts[d];
    dims[d] = {{c.registers, Home::Register, registers}, {c.warps, Home::Warp, warps}, {c.lanes, Home::Lane, lanes}};
    if (d + 1 == shape.size()) dims[d].push_back({vector, Home::Register, 1});
    registers *= c.registers, warps *= c.warps, lanes *= c.lanes;
  }
  return FragmentLayout(shape, std::move(dims));
}

}  // namespace

FragmentLayout row_major_fragment(const std::vector<int64_t>& shape, int64_t threads, int64_t vector,
                                  int element_bits) {
  check_internal(threads > 0 && vector > 0, "{} threads, vectors of {}", threads, vector);
  const int64_t lanes = std::min(threads, kWarpThreads), warps = std::max<int64_t>(1, threads / kWarpThreads);
  if (shape.empty()) return FragmentLayout();
  // All but the last dimension are one, if the result can be cut back: fewer ways to try, and fuller warps.
  if (shape.size() > 2) {
    std::vector<int64_t> merged = {1, shape.back()};
    for (size_t d = 0; d + 1 < shape.size(); ++d) merged[0] *= shape[d];
    if (auto cut = reshape(row_major_fragment(merged, threads, vector, element_bits), shape)) return *std::move(cut);
  }
  std::vector<int64_t> extents = shape;
  extents.back() = ceil_div(extents.back(), vector);
  return fragment_of(shape, Deal(std::move(extents), vector * element_bits).best(lanes, warps), vector);
}

std::optional<FragmentLayout> rows_in_warps(const std::vector<int64_t>& shape, int64_t threads, int64_t vector) {
  if (shape.size() != 2 || threads % kWarpThreads != 0) return std::nullopt;
  const int64_t warps = threads / kWarpThreads, rows = shape[0] / warps, pieces = shape[1] / (kWarpThreads * vector);
  if (rows * warps != shape[0] || pieces * kWarpThreads * vector != shape[1]) return std::nullopt;
  return FragmentLayout(
      shape, {{{rows, Home::Register, pieces * vector}, {warps, Home::Warp, 1}},
              {{pieces, Home::Register, vector}, {kWarpThreads, Home::Lane, 1}, {vector, Home::Register, 1}}});
}

int64_t best_vector(const std::vector<int64_t>& shape, int64_t threads, int element_bits, int64_t max_bytes) {
  if (shape.empty()) return 1;
  int64_t total = 1, best = 1;
  for (int64_t extent : shape) total *= extent;
  for (int64_t v = 2; v * element_bits <= max_bytes * 8; v *= 2)
    if (shape.back() % v == 0 && (total / v >= threads || v * element_bits <= 8)) best = v;
  return best;
}

}  // namespace tilewright
