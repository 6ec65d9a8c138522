// Histogram by atomics: counters of a block on chip, then into the counters of all.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

// Values that are no bin are not counted.
Program histogram(Value N, int64_t bins, int64_t blocks, int64_t block_N) {
  Tensor X("X", {N}, i32), H("H", {bins}, i32);
  return prim_func("histogram", {X, H}, [&] {
    for (auto bx : Kernel(1, {.threads = 128})) {
      for (auto b : Parallel(bins)) H(b) = 0;
    }
    for (auto bx : Kernel(blocks, {.threads = 128})) {
      auto count = alloc_shared({bins}, i32);
      clear(count);
      for (auto k : serial(ceildiv(N, blocks * block_N))) {
        for (auto i : Parallel(block_N)) {
          Value at = (k * blocks + bx) * block_N + i;
          Value bin = if_then_else(at < N, X(at), -1);
          If(bin >= 0 && bin < bins, [&] { atomic_add(count(bin), 1); });
        }
      }
      for (auto b : Parallel(bins)) atomic_add(H(b), count(b));
    }
  });
}

// Counts are exact.
Check check_histogram(const std::vector<NDArray>& arrays) {
  const Elements X(arrays[0]), H(arrays[1]);
  const int64_t bins = H.size();
  std::vector<int64_t> count(static_cast<size_t>(bins));
  for (int64_t i = 0; i < X.size(); ++i) {
    if (X[i] >= 0 && X[i] < static_cast<double>(bins)) ++count[static_cast<size_t>(X[i])];
  }
  Check check;
  for (int64_t b = 0; b < bins; ++b) {
    check.compare(H[b], static_cast<double>(count[static_cast<size_t>(b)]), 0,
                  [&] { return element_name("H", {bins}, b); });
  }
  return check;
}

Case histogram_case(int64_t N, int64_t bins, int64_t blocks, int64_t block_N, bool is_dynamic) {
  Case c{.shape = std::to_string(N) + " in " + std::to_string(bins) + (is_dynamic ? " dynamic" : ""),
         .program = histogram(is_dynamic ? dynamic("N") : Value(N), bins, blocks, block_N),
         .arguments = {random_array({N}, i32, 81, -2, static_cast<double>(bins + 2)), output_array({bins}, i32)},
         .check = [](const auto& arrays, int64_t) { return check_histogram(arrays); },
         .elementwise = true};
  c.bytes = 4.0 * static_cast<double>(N + bins);
  c.peer = Peer::copy();
  return c;
}

}  // namespace

std::vector<Case> histogram_cases(Size size) {
  if (size == Size::Gpu) return {histogram_case(int64_t{1} << 27, 256, 132 * 8, 4096, false)};
  if (size == Size::Benchmark) return {histogram_case(int64_t{1} << 24, 256, 64, 4096, false)};
  std::vector<Case> out;
  for (const bool is_dynamic : {false, true}) {
    out.push_back(histogram_case(1, 1, 1, 32, is_dynamic));
    out.push_back(histogram_case(17, 3, 2, 64, is_dynamic));
    out.push_back(histogram_case(8255, 33, 4, 100, is_dynamic));
  }
  return out;
}

}  // namespace examples
