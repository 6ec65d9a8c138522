// C = A * B^T of 8-bit floats with scales in blocks, as mixed-precision training has them: one for 1x128 elements of A,
// one for 128x128 of B. Each stretch of 128 products is summed on its own and then, scaled, in float32.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

struct Config {
  int64_t block_M, block_N, waves = 1, halves = 1, stages = 4, threads = 256;
};

constexpr int64_t kGroup = 128;  // elements that share a scale

// The scales of A lie with M last, so that a tile's are neighbours. A block takes its rows in one or two waves and its
// columns in one or two halves; these parts share the registers of two inner sums in turn, so that one is scaled while
// the next is multiplied.
Program scaled_matmul(Value M, Value N, int64_t K, Config c) {
  const int64_t groups = ceildiv(K, kGroup);
  Tensor A("A", {M, K}, e4m3), B("B", {N, K}, e4m3), SA("SA", {groups, M}, f32);
  Tensor SB("SB", {ceildiv(N, kGroup), groups}, f32), C("C", {M, N}, bf16);
  const int64_t rows = c.block_M / c.waves, columns = c.block_N / c.halves;
  return prim_func("scaled_matmul", {A, B, SA, SB, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, c.block_N), ceildiv(M, c.block_M)}, {.threads = c.threads})) {
      use_swizzle(8);
      auto B_shared = alloc_shared({c.block_N, kGroup}, e4m3);
      std::vector<Buffer> A_shared, SA_shared, scales, inner, sums;
      for (int64_t w = 0; w < c.waves; ++w) {
        const std::string number = std::to_string(w);
        A_shared.push_back(alloc_shared({rows, kGroup}, e4m3, "A_shared" + number));
        SA_shared.push_back(alloc_shared({rows}, f32, "SA_shared" + number));
        scales.push_back(alloc_fragment({rows}, f32, "scales" + number));
      }
      const auto parts = static_cast<size_t>(c.waves * c.halves);
      for (size_t p = 0; p < std::min<size_t>(parts, 2); ++p)
        inner.push_back(alloc_fragment({rows, columns}, f32, "inner" + std::to_string(p)));
      for (size_t p = 0; p < parts; ++p) {
        sums.push_back(alloc_fragment({rows, columns}, f32, "sums" + std::to_string(p)));
        clear(sums[p]);
      }
      const auto wave = [&](size_t part) { return part / static_cast<size_t>(c.halves); };
      const auto half = [&](size_t part) { return static_cast<int64_t>(part) % c.halves * columns; };
      for (auto k : Pipelined(groups, {.num_stages = c.stages})) {
        copy(B(bx * c.block_N, k * kGroup), B_shared);
        for (int64_t w = 0; w < c.waves; ++w) {
          const auto i = static_cast<size_t>(w);
          copy(A(by * c.block_M + w * rows, k * kGroup), A_shared[i]);
          copy(SA(k, by * c.block_M + w * rows), SA_shared[i]);
          copy(SA_shared[i], scales[i]);
        }
        Value scale_B = SB(floordiv(bx * c.block_N, kGroup), k);
        const auto multiply = [&](size_t p) {
          gemm(A_shared[wave(p)], B_shared(slice(half(p), half(p) + columns), all), inner[p % 2],
               {.transpose_B = true, .clear_accum = true});
        };
        multiply(0);
        for (size_t p = 0; p < parts; ++p) {
          if (p + 1 < parts) multiply(p + 1);
          for (auto [i, j] : Parallel(rows, columns))
            sums[p](i, j) += inner[p % 2](i, j) * (scales[wave(p)](i) * scale_B);
        }
      }
      for (size_t p = 0; p < parts; ++p)
        copy(sums[p], C(by * c.block_M + static_cast<int64_t>(wave(p)) * rows, bx * c.block_N + half(p)));
    }
  });
}

// Bound: tensor cores of Hopper sum products of 8-bit floats with 13 bits behind the point of the largest
// (DeepSeek-V3 technical report, 3.3.2), eight times in 128 products; sums of groups in float32; one rounding.
Check check_scaled(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements A(arrays[0]), B(arrays[1]), SA(arrays[2]), SB(arrays[3]), C(arrays[4]);
  const int64_t M = arrays[4].shape(0), N = arrays[4].shape(1), K = arrays[0].shape(1);
  const int64_t groups = arrays[2].shape(0);
  const double u = unit_roundoff(f32);
  Check check;
  for (const int64_t at : sample(M * N, max_elements)) {
    const int64_t m = at / N, n = at % N;
    double sum = 0, magnitude = 0;
    for (int64_t k = 0; k < K; ++k) {
      const double scale = SA[k / kGroup * M + m] * SB[n / kGroup * groups + k / kGroup];
      const double product = A[m * K + k] * B[n * K + k] * scale;
      sum += product;
      magnitude += std::abs(product);
    }
    const double bound = (8 * std::ldexp(1, -13) + static_cast<double>(K + groups) * u) * magnitude;
    check.compare(C[at], sum, bound + rounding_error(bf16, std::abs(sum) + bound), [&] {
      return element_name("C", {M, N}, at);
    });
  }
  return check;
}

Case scaled_case(std::array<int64_t, 3> mnk, Config config, bool is_dynamic, Data data = Data::Uniform) {
  const auto [M, N, K] = mnk;
  const Value rows = is_dynamic ? dynamic("M") : Value(M), columns = is_dynamic ? dynamic("N") : Value(N);
  const int64_t groups = ceildiv(K, kGroup);
  Case c{.shape = std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K) + " by " +
                  std::to_string(config.block_M) + "x" + std::to_string(config.block_N) +
                  (is_dynamic ? " dynamic" : ""),
         .program = scaled_matmul(rows, columns, K, config),
         .arguments = {input_array({M, K}, e4m3, 1, data), input_array({N, K}, e4m3, 2, data),
                       random_array({groups, M}, f32, 3, 0.5, 1.5),
                       random_array({ceildiv(N, kGroup), groups}, f32, 4, 0.5, 1.5), output_array({M, N}, bf16)},
         .check = check_scaled};
  c.flops = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  c.bytes = static_cast<double>(M * K + N * K + 2 * M * N + 4 * M * groups);
  c.peer = Peer::openblas(M, N, K);
  return c;
}

}  // namespace

std::vector<Case> fp8_gemm_cases(Size size) {
  if (size == Size::Gpu) {
    return {scaled_case({4096, 7168, 16384}, {128, 128}, false, Data::Normal),
            scaled_case({4096, 7168, 16384}, {256, 128, 2, 2, 3}, false, Data::Normal),
            scaled_case({4096, 7168, 2048}, {256, 128, 2, 2, 3}, true, Data::Normal)};
  }
  if (size == Size::Benchmark) return {scaled_case({512, 512, 1024}, {128, 128}, false)};
  return {scaled_case({1, 1, 1}, {64, 64, 1, 1, 4, 128}, true), scaled_case({17, 33, 5}, {64, 64, 1, 1, 4, 128}, true),
          scaled_case({33, 70, 144}, {64, 64, 1, 1, 4, 128}, true),
          scaled_case({90, 33, 144}, {128, 64, 2, 2, 3, 128}, true),
          scaled_case({64, 72, 256}, {64, 64, 1, 2, 2, 128}, false)};
}

}  // namespace examples
