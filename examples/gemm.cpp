// Matrix products: C = A * B and C = relu(A * B), for shapes known at build time and at the call.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

Program matmul(Value M, Value N, Value K, int64_t block_M, int64_t block_N, int64_t block_K, DType dtype) {
  Tensor A("A", {M, K}, dtype), B("B", {K, N}, dtype), C("C", {M, N}, dtype);
  return prim_func("matmul", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, block_N), ceildiv(M, block_M)}, {.threads = 128})) {
      auto A_shared = alloc_shared({block_M, block_K}, dtype);
      auto B_shared = alloc_shared({block_K, block_N}, dtype);
      auto C_local = alloc_fragment({block_M, block_N}, f32);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(K, block_K), {.num_stages = 3})) {
        copy(A(by * block_M, k * block_K), A_shared);
        copy(B(k * block_K, bx * block_N), B_shared);
        gemm(A_shared, B_shared, C_local);
      }
      copy(C_local, C(by * block_M, bx * block_N));
    }
  });
}

Program matmul_relu(Value M, Value N, Value K, int64_t block_M, int64_t block_N, int64_t block_K, DType dtype) {
  Tensor A("A", {M, K}, dtype), B("B", {K, N}, dtype), C("C", {M, N}, dtype);
  return prim_func("matmul_relu", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, block_N), ceildiv(M, block_M)}, {.threads = 128})) {
      auto A_shared = alloc_shared({block_M, block_K}, dtype);
      auto B_shared = alloc_shared({block_K, block_N}, dtype);
      auto C_local = alloc_fragment({block_M, block_N}, f32);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(K, block_K), {.num_stages = 3})) {
        copy(A(by * block_M, k * block_K), A_shared);
        copy(B(k * block_K, bx * block_N), B_shared);
        gemm(A_shared, B_shared, C_local);
      }
      for (auto [i, j] : Parallel(block_M, block_N)) C_local(i, j) = max(C_local(i, j), 0);
      copy(C_local, C(by * block_M, bx * block_N));
    }
  });
}

// Bound: K products summed in float32 in any order err by at most K * 2^-24 * sum|a||b|, and the result is rounded once
// to C's type. ReLU does not increase an error.
Check check_matmul(const std::vector<NDArray>& arrays, int64_t max_elements, bool relu) {
  const Elements A(arrays[0]), B(arrays[1]), C(arrays[2]);
  const int64_t M = arrays[2].shape(0), N = arrays[2].shape(1), K = arrays[0].shape(1);
  Check check;
  for (const int64_t at : sample(M * N, max_elements)) {
    double sum = 0, magnitude = 0;
    for (int64_t k = 0; k < K; ++k) {
      const double product = A[at / N * K + k] * B[k * N + at % N];
      sum += product;
      magnitude += std::abs(product);
    }
    const double expected = relu && sum < 0 ? 0 : sum;
    const double bound = static_cast<double>(K) * unit_roundoff(f32) * magnitude;
    check.compare(C[at], expected, bound + rounding_error(arrays[2].dtype(), std::abs(expected) + bound), [&] {
      return element_name("C", {M, N}, at);
    });
  }
  return check;
}

struct Tiles {
  int64_t m, n, k;
};
using Build = Program (*)(Value, Value, Value, int64_t, int64_t, int64_t, DType);

Case matmul_case(Build build, bool relu, std::array<int64_t, 3> mnk, Tiles tiles, DType dtype, bool is_dynamic) {
  const auto [M, N, K] = mnk;
  Case c{
      .shape = std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K) + " " + dtype.name() +
               (is_dynamic ? " dynamic" : ""),
      .program = is_dynamic ? build(dynamic("M"), dynamic("N"), dynamic("K"), tiles.m, tiles.n, tiles.k, dtype)
                            : build(M, N, K, tiles.m, tiles.n, tiles.k, dtype),
      .arguments = {random_array({M, K}, dtype, 1), random_array({K, N}, dtype, 2), output_array({M, N}, dtype)},
      .check = [relu](const auto& arrays, int64_t max_elements) { return check_matmul(arrays, max_elements, relu); }};
  const double elements = static_cast<double>(M * K + K * N + M * N);
  c.flops = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  c.bytes = elements * dtype.storage_bits() / 8;
  c.peer = Peer::openblas(M, N, K);
  return c;
}

// One dynamic program serves all of its shapes; a static one is a kernel of its own, so there are few of them.
std::vector<Case> odd_cases(Build build, bool relu) {
  std::vector<Case> out;
  constexpr Tiles tiles = {32, 64, 16};
  for (const DType dtype : {f32, bf16, f16}) {
    for (const auto& mnk : {std::array<int64_t, 3>{1, 1, 1}, {17, 33, 5}, {127, 65, 33}, {64, 64, 64}}) {
      out.push_back(matmul_case(build, relu, mnk, tiles, dtype, true));
    }
    out.push_back(matmul_case(build, relu, {127, 65, 33}, tiles, dtype, false));
  }
  out.push_back(matmul_case(build, relu, {1, 1, 1}, tiles, f32, false));
  out.push_back(matmul_case(build, relu, {17, 1, 5}, tiles, f32, false));
  return out;
}

// 256x512x256: C is read and written once per 256 products, and a 512 KiB panel of B stays in the second level cache.
constexpr Tiles benchmark_tiles = {256, 512, 256};

}  // namespace

std::vector<Case> gemm_cases(Size size) {
  if (size == Size::Odd) return odd_cases(matmul, false);
  return {matmul_case(matmul, false, {1024, 1024, 1024}, benchmark_tiles, f32, false),
          matmul_case(matmul, false, {2048, 2048, 2048}, benchmark_tiles, f32, false)};
}

std::vector<Case> gemm_relu_cases(Size size) {
  if (size == Size::Odd) return odd_cases(matmul_relu, true);
  std::vector<Case> out;
  for (const int64_t size_of_all : {1024, 2048})
    for (const DType dtype : {f32, bf16, f16})
      out.push_back(
          matmul_case(matmul_relu, true, {size_of_all, size_of_all, size_of_all}, benchmark_tiles, dtype, false));
  out.push_back(matmul_case(matmul_relu, true, {1024, 1024, 1024}, benchmark_tiles, f32, true));
  return out;
}

}  // namespace examples
