// A matrix product with roles written by hand: 128 threads bring tiles into a ring of slots, 128 others multiply. Two
// barriers for each slot say when it is full and when it is empty.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

Program matmul_roles(Value M, Value N, Value K, int64_t block_M, int64_t block_N, int64_t block_K, DType dtype) {
  Tensor A("A", {M, K}, dtype), B("B", {K, N}, dtype), C("C", {M, N}, dtype);
  constexpr int64_t stages = 2;
  const int64_t bytes = (block_M * block_K + block_K * block_N) * dtype.storage_bits() / 8;
  return prim_func("matmul_roles", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, block_N), ceildiv(M, block_M)}, {.threads = 256})) {
      auto A_shared = alloc_shared({stages, block_M, block_K}, dtype);
      auto B_shared = alloc_shared({stages, block_K, block_N}, dtype);
      auto C_local = alloc_fragment({block_M, block_N}, f32);
      auto full = alloc_barrier({1, 1}), empty = alloc_barrier({128, 128});
      ws({1}, [&] {
        for (auto k : serial(ceildiv(K, block_K))) {
          Value slot = k % stages, round = floordiv(k, stages) % 2;
          barrier_wait(empty(slot), round ^ 1);
          mbarrier_arrive_expect_tx(full(slot), bytes);
          tma_copy(A(by * block_M, k * block_K), A_shared(slot, all, all), full(slot));
          tma_copy(B(k * block_K, bx * block_N), B_shared(slot, all, all), full(slot));
        }
      });
      ws({0}, [&] {
        clear(C_local);
        for (auto k : serial(ceildiv(K, block_K))) {
          Value slot = k % stages, round = floordiv(k, stages) % 2;
          barrier_wait(full(slot), round);
          gemm(A_shared(slot, all, all), B_shared(slot, all, all), C_local);
          barrier_arrive(empty(slot));
        }
        copy(C_local, C(by * block_M, bx * block_N));
      });
    }
  });
}

// Bound: K products summed in float32, one rounding to C's type.
Check check_roles(const std::vector<NDArray>& arrays, int64_t max_elements) {
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
    const double bound = static_cast<double>(K) * unit_roundoff(f32) * magnitude;
    check.compare(C[at], sum, bound + rounding_error(arrays[2].dtype(), std::abs(sum) + bound), [&] {
      return element_name("C", {M, N}, at);
    });
  }
  return check;
}

Case roles_case(std::array<int64_t, 3> mnk, std::array<int64_t, 3> tiles, DType dtype, bool is_dynamic,
                Data data = Data::Uniform) {
  const auto [M, N, K] = mnk;
  Case c{.shape = std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K) + " " + dtype.name() +
                  (is_dynamic ? " dynamic" : ""),
         .program = is_dynamic
                        ? matmul_roles(dynamic("M"), dynamic("N"), dynamic("K"), tiles[0], tiles[1], tiles[2], dtype)
                        : matmul_roles(M, N, K, tiles[0], tiles[1], tiles[2], dtype),
         .arguments = {input_array({M, K}, dtype, 1, data), input_array({K, N}, dtype, 2, data),
                       output_array({M, N}, dtype)},
         .check = check_roles};
  c.flops = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  c.bytes = static_cast<double>(M * K + K * N + M * N) * dtype.storage_bits() / 8;
  c.names_instructions = true;
  return c;
}

}  // namespace

std::vector<Case> specialized_gemm_cases(Size size) {
  if (size == Size::Gpu) return {roles_case({4096, 4096, 4096}, {128, 128, 64}, f16, false, Data::Normal)};
  if (size == Size::Benchmark) return {roles_case({256, 256, 256}, {128, 128, 64}, f16, false)};
  std::vector<Case> out;
  for (const bool is_dynamic : {false, true}) {
    out.push_back(roles_case({1, 1, 1}, {32, 32, 16}, f32, is_dynamic));
    out.push_back(roles_case({17, 33, 5}, {32, 32, 16}, f32, is_dynamic));
    out.push_back(roles_case({127, 65, 83}, {32, 32, 16}, f16, is_dynamic));
  }
  return out;
}

}  // namespace examples
