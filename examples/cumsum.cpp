// Cumulative sums along rows of any length: scans of tiles, and what is carried from tile to tile.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

Program cumulative_sum(Value M, Value N, int64_t block_M, int64_t block_N, DType dtype) {
  const DType sum = dtype.is_int() ? dtype : f32;
  Tensor X("X", {M, N}, dtype), Y("Y", {M, N}, sum);
  return prim_func("cumulative_sum", {X, Y}, [&] {
    for (auto by : Kernel(ceildiv(M, block_M), {.threads = 128})) {
      auto x = alloc_shared({block_M, block_N}, sum);
      auto y = alloc_shared({block_M, block_N}, sum);
      auto carry = alloc_fragment({block_M}, sum);
      clear(carry);
      for (auto k : serial(ceildiv(N, block_N))) {
        copy(X(by * block_M, k * block_N), x);
        cumsum(x, y, {.dim = 1});
        for (auto [i, j] : Parallel(block_M, block_N)) y(i, j) = y(i, j) + carry(i);
        for (auto i : Parallel(block_M)) carry(i) = y(i, block_N - 1);
        copy(y, Y(by * block_M, k * block_N));
      }
    }
  });
}

// Bound: j + 1 terms in any order and one more addition per tile err by less than 2 (j + 1) u times the sum of the
// magnitudes, u = 2^-24. Integers are exact.
Check check_cumulative_sum(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements X(arrays[0]), Y(arrays[1]);
  const int64_t M = arrays[0].shape(0), N = arrays[0].shape(1);
  const double u = arrays[1].dtype().is_int() ? 0 : unit_roundoff(f32);
  Check check;
  for (const int64_t row : sample(M, std::max<int64_t>(1, max_elements / N))) {
    double sum = 0, magnitude = 0;
    for (int64_t j = 0; j < N; ++j) {
      sum += X[row * N + j];
      magnitude += std::abs(X[row * N + j]);
      check.compare(Y[row * N + j], sum, 2 * static_cast<double>(j + 1) * u * magnitude, [&] {
        return element_name("Y", {M, N}, row * N + j);
      });
    }
  }
  return check;
}

Case cumsum_case(int64_t M, int64_t N, int64_t block_M, int64_t block_N, DType dtype, bool is_dynamic) {
  Case c{.shape = std::to_string(M) + "x" + std::to_string(N) + " " + dtype.name() + (is_dynamic ? " dynamic" : ""),
         .program = is_dynamic ? cumulative_sum(dynamic("M"), dynamic("N"), block_M, block_N, dtype)
                               : cumulative_sum(M, N, block_M, block_N, dtype),
         .arguments = {random_array({M, N}, dtype, 71, dtype.is_int() ? -100 : -1, dtype.is_int() ? 100 : 1),
                       output_array({M, N}, dtype.is_int() ? dtype : f32)},
         .check = check_cumulative_sum,
         .elementwise = dtype.is_int()};
  c.bytes = static_cast<double>(M * N) * (dtype.storage_bits() / 8 + (dtype.is_int() ? dtype.storage_bits() / 8 : 4));
  c.peer = Peer::copy();
  return c;
}

}  // namespace

std::vector<Case> cumsum_cases(Size size) {
  if (size == Size::Gpu) return {cumsum_case(16384, 8192, 8, 512, f32, false)};
  if (size == Size::Benchmark) return {cumsum_case(4096, 4096, 8, 512, f32, false)};
  std::vector<Case> out;
  for (const DType dtype : {f32, bf16, i32}) {
    for (const bool is_dynamic : {false, true}) {
      for (const auto& [M, N] : {std::pair<int64_t, int64_t>{1, 1}, {17, 33}, {127, 65}, {3, 200}}) {
        out.push_back(cumsum_case(M, N, 8, 32, dtype, is_dynamic));
      }
    }
  }
  return out;
}

}  // namespace examples
