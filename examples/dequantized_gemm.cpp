// C = A * dequantize(W)^T with 4-bit weights: W[n, k] = (q[n, k] - 8) * scale[n, k / group]. The weights lie either as
// bytes of two, unpacked here, or in a tensor of 4-bit integers, which hold q - 8.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

struct Config {
  int64_t block_M, block_N, block_K, group, threads = 128;
};

Program matmul_packed_int4(Value M, Value N, int64_t K, Config c, DType dtype) {
  Tensor A("A", {M, K}, dtype), W("W", {N, ceildiv(K, 2)}, u8), S("S", {N, ceildiv(K, c.group)}, f32);
  Tensor C("C", {M, N}, dtype);
  return prim_func("matmul_packed_int4", {A, W, S, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, c.block_N), ceildiv(M, c.block_M)}, {.threads = c.threads})) {
      auto A_shared = alloc_shared({c.block_M, c.block_K}, dtype);
      auto W_packed = alloc_shared({c.block_N, c.block_K / 2}, u8);
      auto W_shared = alloc_shared({c.block_N, c.block_K}, dtype);
      auto C_local = alloc_fragment({c.block_M, c.block_N}, f32);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(K, c.block_K), {.num_stages = 3})) {
        copy(A(by * c.block_M, k * c.block_K), A_shared);
        copy(W(bx * c.block_N, k * (c.block_K / 2)), W_packed);
        for (auto [i, j] : Parallel(c.block_N, c.block_K)) {
          Value q = cast(W_packed(i, floordiv(j, 2)), i32) >> (j % 2 * 4) & 15;
          W_shared(i, j) = cast(q - 8, f32) * S(bx * c.block_N + i, floordiv(k * c.block_K + j, c.group));
        }
        gemm(A_shared, W_shared, C_local, {.transpose_B = true});
      }
      copy(C_local, C(by * c.block_M, bx * c.block_N));
    }
  });
}

Program matmul_int4(Value M, Value N, int64_t K, Config c, DType dtype) {
  Tensor A("A", {M, K}, dtype), W("W", {N, K}, i4), S("S", {N, ceildiv(K, c.group)}, f32), C("C", {M, N}, dtype);
  return prim_func("matmul_int4", {A, W, S, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, c.block_N), ceildiv(M, c.block_M)}, {.threads = c.threads})) {
      auto A_shared = alloc_shared({c.block_M, c.block_K}, dtype);
      auto W_int4 = alloc_shared({c.block_N, c.block_K}, i4);
      auto W_shared = alloc_shared({c.block_N, c.block_K}, dtype);
      auto C_local = alloc_fragment({c.block_M, c.block_N}, f32);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(K, c.block_K), {.num_stages = 3})) {
        copy(A(by * c.block_M, k * c.block_K), A_shared);
        copy(W(bx * c.block_N, k * c.block_K), W_int4);
        for (auto [i, j] : Parallel(c.block_N, c.block_K)) {
          W_shared(i, j) = cast(W_int4(i, j), f32) * S(bx * c.block_N + i, floordiv(k * c.block_K + j, c.group));
        }
        gemm(A_shared, W_shared, C_local, {.transpose_B = true});
      }
      copy(C_local, C(by * c.block_M, bx * c.block_N));
    }
  });
}

// Bound: each weight is rounded to A's type (the product q * scale to float32 first), K products are summed in float32,
// the result is rounded to C's type.
Check check_int4(const std::vector<NDArray>& arrays, int64_t max_elements, bool packed, int64_t group) {
  const Elements A(arrays[0]), W(arrays[1]), S(arrays[2]), C(arrays[3]);
  const int64_t M = arrays[3].shape(0), N = arrays[3].shape(1), K = arrays[0].shape(1), groups = arrays[2].shape(1);
  Check check;
  for (const int64_t at : sample(M * N, max_elements)) {
    const int64_t m = at / N, n = at % N;
    double sum = 0, magnitude = 0;
    for (int64_t k = 0; k < K; ++k) {
      double q = packed ? 0 : W[n * K + k];
      if (packed) {
        const int byte = static_cast<int>(W[n * ((K + 1) / 2) + k / 2]);
        q = (k % 2 == 0 ? byte % 16 : byte / 16) - 8;
      }
      const double product = A[m * K + k] * q * S[n * groups + k / group];
      sum += product;
      magnitude += std::abs(product);
    }
    const double weights = arrays[0].dtype() == f32 ? 0 : unit_roundoff(arrays[0].dtype());
    const double bound = (weights + static_cast<double>(K + 1) * unit_roundoff(f32)) * magnitude;
    check.compare(C[at], sum, bound + rounding_error(arrays[3].dtype(), std::abs(sum) + bound), [&] {
      return element_name("C", {M, N}, at);
    });
  }
  return check;
}

Case int4_case(bool packed, std::array<int64_t, 3> mnk, Config config, DType dtype, bool is_dynamic,
               Data data = Data::Uniform) {
  const auto [M, N, K] = mnk;
  const Value rows = is_dynamic ? dynamic("M") : Value(M), columns = is_dynamic ? dynamic("N") : Value(N);
  Case c{.shape = std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K) + " " + dtype.name() +
                  (packed ? " bytes" : " int4") + (is_dynamic ? " dynamic" : ""),
         .program = packed ? matmul_packed_int4(rows, columns, K, config, dtype)
                           : matmul_int4(rows, columns, K, config, dtype),
         .arguments = {input_array({M, K}, dtype, 1, data),
                       packed ? random_array({N, ceildiv(K, 2)}, u8, 2, 0, 256) : random_array({N, K}, i4, 2, -8, 8),
                       random_array({N, ceildiv(K, config.group)}, f32, 3, 0.01, 0.1), output_array({M, N}, dtype)},
         .check = [packed, group = config.group](const auto& arrays, int64_t max_elements) {
           return check_int4(arrays, max_elements, packed, group);
         }};
  c.flops = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  c.bytes = static_cast<double>(M * K + M * N) * dtype.storage_bits() / 8 + static_cast<double>(N * K) / 2 +
            static_cast<double>(N * ceildiv(K, config.group)) * 4;
  c.peer = Peer::openblas(M, N, K);
  return c;
}

}  // namespace

std::vector<Case> int4_gemm_cases(Size size) {
  if (size == Size::Gpu) {
    return {int4_case(true, {4096, 4096, 4096}, {128, 128, 64, 128, 256}, bf16, false, Data::Normal),
            int4_case(false, {4096, 4096, 4096}, {128, 128, 64, 128, 256}, f16, true, Data::Normal)};
  }
  if (size == Size::Benchmark) {
    return {int4_case(true, {512, 2048, 2048}, {512, 256, 256, 128}, f32, false),
            int4_case(false, {512, 2048, 2048}, {512, 256, 256, 128}, bf16, false)};
  }
  std::vector<Case> out;
  for (const bool packed : {true, false}) {
    out.push_back(int4_case(packed, {1, 1, 1}, {16, 16, 32, 8}, f32, true));
    out.push_back(int4_case(packed, {17, 5, 33}, {16, 16, 32, 8}, f32, true));
    out.push_back(int4_case(packed, {1, 65, 33}, {16, 16, 32, 8}, f32, true));
    out.push_back(int4_case(packed, {65, 127, 66}, {32, 32, 32, 64}, bf16, true));
    out.push_back(int4_case(packed, {17, 5, 33}, {16, 16, 32, 8}, f16, true));
    out.push_back(int4_case(packed, {17, 5, 33}, {16, 16, 32, 8}, f32, false));
  }
  return out;
}

}  // namespace examples
