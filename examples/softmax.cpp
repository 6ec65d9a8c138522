// Softmax along rows: with a whole row on chip, and online, in two passes over tiles of a row of any length.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

constexpr double log2_e = 1.4426950408889634;  // GPUs have an instruction for powers of two, not for those of e

Program softmax(Value M, int64_t N, int64_t block_M, DType dtype) {
  Tensor X("X", {M, N}, dtype), Y("Y", {M, N}, dtype);
  return prim_func("softmax", {X, Y}, [&] {
    for (auto by : Kernel(ceildiv(M, block_M), {.threads = 128})) {
      auto x = alloc_fragment({block_M, N}, f32);
      auto largest = alloc_fragment({block_M}, f32);
      auto total = alloc_fragment({block_M}, f32);
      copy(X(by * block_M, 0), x);
      reduce_max(x, largest, {.dim = 1});
      for (auto [i, j] : Parallel(block_M, N)) x(i, j) = exp2((x(i, j) - largest(i)) * log2_e);
      reduce_sum(x, total, {.dim = 1});
      for (auto [i, j] : Parallel(block_M, N)) x(i, j) = x(i, j) / total(i);
      copy(x, Y(by * block_M, 0));
    }
  });
}

Program online_softmax(Value M, Value N, int64_t block_M, int64_t block_N, DType dtype) {
  Tensor X("X", {M, N}, dtype), Y("Y", {M, N}, dtype);
  return prim_func("online_softmax", {X, Y}, [&] {
    for (auto by : Kernel(ceildiv(M, block_M), {.threads = 128})) {
      auto x = alloc_fragment({block_M, block_N}, f32);
      auto largest = alloc_fragment({block_M}, f32);
      auto previous = alloc_fragment({block_M}, f32);
      auto total = alloc_fragment({block_M}, f32);
      auto tile_total = alloc_fragment({block_M}, f32);
      annotate_safe_value(X, -infinity(dtype));
      fill(largest, -infinity(f32));
      clear(total);
      for (auto k : Pipelined(ceildiv(N, block_N), {.num_stages = 2})) {
        copy(X(by * block_M, k * block_N), x);
        copy(largest, previous);
        reduce_max(x, largest, {.dim = 1, .clear = false});
        for (auto [i, j] : Parallel(block_M, block_N)) x(i, j) = exp2((x(i, j) - largest(i)) * log2_e);
        reduce_sum(x, tile_total, {.dim = 1});
        for (auto i : Parallel(block_M))
          total(i) = total(i) * exp2((previous(i) - largest(i)) * log2_e) + tile_total(i);
      }
      for (auto k : Pipelined(ceildiv(N, block_N), {.num_stages = 2})) {
        copy(X(by * block_M, k * block_N), x);
        for (auto [i, j] : Parallel(block_M, block_N)) x(i, j) = exp2((x(i, j) - largest(i)) * log2_e) / total(i);
        copy(x, Y(by * block_M, k * block_N));
      }
    }
  });
}

// Bound, relative, with u = 2^-24 and d = the largest |x - max| of the row: the difference, log2(e) and their product
// are rounded (3 d u), exp2 is within 2 ulp (4 u), a sum of N positive terms in any order adds N u to what its terms
// have, the division u. Online, each of the `tiles` rescalings multiplies the sum by another exp2: 3 d u + 6 u each.
Check check_softmax(const std::vector<NDArray>& arrays, int64_t max_elements, int64_t tiles) {
  const Elements X(arrays[0]), Y(arrays[1]);
  const int64_t M = arrays[0].shape(0), N = arrays[0].shape(1);
  const double u = unit_roundoff(f32);
  Check check;
  for (const int64_t row : sample(M, std::max<int64_t>(1, max_elements / N))) {
    double largest = X[row * N], smallest = largest, total = 0;
    for (int64_t j = 0; j < N; ++j) {
      largest = std::max(largest, X[row * N + j]);
      smallest = std::min(smallest, X[row * N + j]);
    }
    for (int64_t j = 0; j < N; ++j) total += std::exp(X[row * N + j] - largest);
    const double d = largest - smallest;
    const double relative = u * (static_cast<double>(N) + 6 * d + 10 + static_cast<double>(tiles) * (3 * d + 6));
    for (int64_t j = 0; j < N; ++j) {
      const double expected = std::exp(X[row * N + j] - largest) / total;
      const double bound = relative * expected;
      check.compare(Y[row * N + j], expected, bound + rounding_error(arrays[1].dtype(), expected + bound), [&] {
        return element_name("Y", {M, N}, row * N + j);
      });
    }
  }
  return check;
}

Case softmax_case(Program program, int64_t M, int64_t N, int64_t tiles, DType dtype, const std::string& note) {
  Case c{.shape = std::to_string(M) + "x" + std::to_string(N) + " " + dtype.name() + note,
         .program = std::move(program),
         .arguments = {random_array({M, N}, dtype, 11, -8, 8), output_array({M, N}, dtype)},
         .check = [tiles](const auto& arrays, int64_t n) { return check_softmax(arrays, n, tiles); }};
  c.bytes = 2.0 * static_cast<double>(M * N) * dtype.storage_bits() / 8;
  c.peer = Peer::copy();
  return c;
}

constexpr std::array<std::array<int64_t, 2>, 4> odd_shapes = {{{1, 1}, {17, 33}, {127, 65}, {5, 200}}};

}  // namespace

// Benchmark tiles of 32 to 64 KiB: they stay in a core's second level cache between the passes.
std::vector<Case> softmax_cases(Size size) {
  if (size == Size::Gpu) return {softmax_case(softmax(32768, 4096, 1, bf16), 32768, 4096, 0, bf16, "")};
  if (size == Size::Benchmark) return {softmax_case(softmax(4096, 4096, 4, f32), 4096, 4096, 0, f32, "")};
  std::vector<Case> out;
  for (const DType dtype : {f32, bf16, f16}) {
    for (const auto& [M, N] : odd_shapes) {
      out.push_back(softmax_case(softmax(M, N, 8, dtype), M, N, 0, dtype, ""));
      out.push_back(softmax_case(softmax(dynamic("M"), N, 8, dtype), M, N, 0, dtype, " dynamic M"));
    }
  }
  return out;
}

std::vector<Case> online_softmax_cases(Size size) {
  if (size == Size::Gpu) {
    return {softmax_case(online_softmax(16384, 32768, 1, 4096, bf16), 16384, 32768, 8, bf16, "")};
  }
  if (size == Size::Benchmark) {
    return {softmax_case(online_softmax(4096, 4096, 8, 1024, f32), 4096, 4096, 4, f32, "")};
  }
  std::vector<Case> out;
  for (const DType dtype : {f32, bf16, f16}) {
    for (const auto& [M, N] : odd_shapes) {
      const int64_t tiles = ceildiv(N, 32);
      out.push_back(softmax_case(online_softmax(M, N, 8, 32, dtype), M, N, tiles, dtype, ""));
      out.push_back(softmax_case(online_softmax(dynamic("M"), dynamic("N"), 8, 32, dtype), M, N, tiles, dtype,  //
                                 " dynamic"));
    }
  }
  return out;
}

}  // namespace examples
