// Matrix products: C = A * B and C = relu(A * B), for shapes known at build time and at the call.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

struct Config {
  int64_t block_M, block_N, block_K, stages = 3, threads = 128;
};

Program matmul(Value M, Value N, Value K, Config c, DType dtype) {
  Tensor A("A", {M, K}, dtype), B("B", {K, N}, dtype), C("C", {M, N}, dtype);
  return prim_func("matmul", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, c.block_N), ceildiv(M, c.block_M)}, {.threads = c.threads})) {
      auto A_shared = alloc_shared({c.block_M, c.block_K}, dtype);
      auto B_shared = alloc_shared({c.block_K, c.block_N}, dtype);
      auto C_local = alloc_fragment({c.block_M, c.block_N}, f32);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(K, c.block_K), {.num_stages = c.stages})) {
        copy(A(by * c.block_M, k * c.block_K), A_shared);
        copy(B(k * c.block_K, bx * c.block_N), B_shared);
        gemm(A_shared, B_shared, C_local);
      }
      copy(C_local, C(by * c.block_M, bx * c.block_N));
    }
  });
}

Program matmul_relu(Value M, Value N, Value K, Config c, DType dtype) {
  Tensor A("A", {M, K}, dtype), B("B", {K, N}, dtype), C("C", {M, N}, dtype);
  return prim_func("matmul_relu", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, c.block_N), ceildiv(M, c.block_M)}, {.threads = c.threads})) {
      auto A_shared = alloc_shared({c.block_M, c.block_K}, dtype);
      auto B_shared = alloc_shared({c.block_K, c.block_N}, dtype);
      auto C_local = alloc_fragment({c.block_M, c.block_N}, f32);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(K, c.block_K), {.num_stages = c.stages})) {
        copy(A(by * c.block_M, k * c.block_K), A_shared);
        copy(B(k * c.block_K, bx * c.block_N), B_shared);
        gemm(A_shared, B_shared, C_local);
      }
      for (auto [i, j] : Parallel(c.block_M, c.block_N)) C_local(i, j) = max(C_local(i, j), 0);
      copy(C_local, C(by * c.block_M, bx * c.block_N));
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

using Build = Program (*)(Value, Value, Value, Config, DType);

Case matmul_case(Build build, bool relu, std::array<int64_t, 3> mnk, Config config, DType dtype, bool is_dynamic,
                 Data data = Data::Uniform) {
  const auto [M, N, K] = mnk;
  Case c{
      .shape = std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K) + " " + dtype.name() +
               (is_dynamic ? " dynamic" : ""),
      .program =
          is_dynamic ? build(dynamic("M"), dynamic("N"), dynamic("K"), config, dtype) : build(M, N, K, config, dtype),
      .arguments = {input_array({M, K}, dtype, 1, data), input_array({K, N}, dtype, 2, data),
                    output_array({M, N}, dtype)},
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
  constexpr Config config = {32, 64, 16};
  for (const DType dtype : {f32, bf16, f16}) {
    for (const auto& mnk : {std::array<int64_t, 3>{1, 1, 1}, {17, 33, 5}, {127, 65, 33}, {64, 64, 64}}) {
      out.push_back(matmul_case(build, relu, mnk, config, dtype, true));
    }
    out.push_back(matmul_case(build, relu, {127, 65, 33}, config, dtype, false));
  }
  out.push_back(matmul_case(build, relu, {1, 1, 1}, config, f32, false));
  out.push_back(matmul_case(build, relu, {17, 1, 5}, config, f32, false));
  return out;
}

// 256x512x256: C is read and written once per 256 products, and a 512 KiB panel of B stays in the second level cache.
constexpr Config benchmark_config = {256, 512, 256};

// Of a GPU: a block's sums are 128 (f32: 64) registers of each thread, its tiles 144 (72) KiB of shared memory.
constexpr Config gpu_config = {128, 256, 64, 3, 256}, gpu_f32_config = {128, 128, 32, 2, 256};

std::vector<Case> gpu_cases(Build build, bool relu) {
  std::vector<Case> out;
  for (const DType dtype : {bf16, f16, f32}) {
    const Config config = dtype == f32 ? gpu_f32_config : gpu_config;
    out.push_back(matmul_case(build, relu, {4096, 4096, 4096}, config, dtype, dtype == f16, Data::Normal));
  }
  return out;
}

}  // namespace

std::vector<Case> gemm_cases(Size size) {
  if (size == Size::Odd) return odd_cases(matmul, false);
  if (size == Size::Gpu) return gpu_cases(matmul, false);
  return {matmul_case(matmul, false, {1024, 1024, 1024}, benchmark_config, f32, false),
          matmul_case(matmul, false, {2048, 2048, 2048}, benchmark_config, f32, false)};
}

std::vector<Case> gemm_relu_cases(Size size) {
  if (size == Size::Odd) return odd_cases(matmul_relu, true);
  if (size == Size::Gpu) return gpu_cases(matmul_relu, true);
  std::vector<Case> out;
  for (const int64_t size_of_all : {1024, 2048})
    for (const DType dtype : {f32, bf16, f16})
      out.push_back(
          matmul_case(matmul_relu, true, {size_of_all, size_of_all, size_of_all}, benchmark_config, dtype, false));
  out.push_back(matmul_case(matmul_relu, true, {1024, 1024, 1024}, benchmark_config, f32, true));
  return out;
}

}  // namespace examples
