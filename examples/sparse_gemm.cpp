// C = A * B^T where two of each four elements of a row of A are kept: A holds those, E four bits a group that say where
// they stand.
#include "product.h"

namespace examples {
namespace {

using namespace tilewright;

constexpr int64_t kGroup = 4, kKept = 2, kGroupBits = 4;
constexpr int64_t kWord = 16 / kGroupBits * kGroup;  // elements of a row of the dense matrix that a word describes

struct Config {
  int64_t block_M, block_N, block_K, stages = 3, threads = 128;
};

Program sparse_matmul(Value M, Value N, Value K, Config c, DType type, DType result) {
  const DType sum = type.is_int() ? i32 : f32;
  Tensor A("A", {M, floordiv(K, kGroup / kKept)}, type), E("E", {M, floordiv(K, kWord)}, i16), B("B", {N, K}, type);
  Tensor C("C", {M, N}, result);
  const int64_t kept = c.block_K / kGroup * kKept, words = c.block_K / kWord;
  return prim_func("sparse_matmul", {A, E, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, c.block_N), ceildiv(M, c.block_M)}, {.threads = c.threads})) {
      use_swizzle(8);
      auto A_shared = alloc_shared({c.block_M, kept}, type);
      auto E_shared = alloc_shared({c.block_M, words}, i16);
      auto B_shared = alloc_shared({c.block_N, c.block_K}, type);
      auto C_local = alloc_fragment({c.block_M, c.block_N}, sum);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(K, c.block_K), {.num_stages = c.stages})) {
        copy(A(by * c.block_M, k * kept), A_shared);
        copy(E(by * c.block_M, k * words), E_shared);
        copy(B(bx * c.block_N, k * c.block_K), B_shared);
        gemm_sp(A_shared, E_shared, B_shared, C_local, {.transpose_B = true});
      }
      copy(C_local, C(by * c.block_M, bx * c.block_N));
    }
  });
}

// The pairs of positions of four that two kept elements may have, two bits each.
constexpr std::array<int64_t, 6> kPairs = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};

// A pair for each group, without a pattern.
LazyArray pairs(int64_t rows, int64_t words) {
  return {{rows, words}, i16, [](const NDArray& to) {
            auto* out = static_cast<uint16_t*>(to.data());
            for_each_part(to.size(), [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                uint64_t random = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u, word = 0;
                random ^= random >> 29, random *= 0xbf58476d1ce4e5b9u, random ^= random >> 32;
                for (int at = 0; at < 16; at += kGroupBits, random /= kPairs.size())
                  word |= static_cast<uint64_t>(kPairs[random % kPairs.size()]) << at;
                out[i] = static_cast<uint16_t>(word);
              }
            });
          }};
}

// Bound: the kept products summed in float32 (integers exactly), and one rounding to the result's type. 8-bit floats
// are summed with 13 bits behind the point of the largest, as in fp8_gemm.
Check check_sparse(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements A(arrays[0]), E(arrays[1]), B(arrays[2]), C(arrays[3]);
  const int64_t M = arrays[3].shape(0), N = arrays[3].shape(1), K = arrays[2].shape(1);
  const DType type = arrays[0].dtype(), result = arrays[3].dtype();
  Check check;
  for (const int64_t at : sample(M * N, max_elements)) {
    const int64_t m = at / N, n = at % N;
    const auto place = [&](int64_t k) {
      const int64_t group = k / kKept;
      const auto word = static_cast<uint16_t>(static_cast<int64_t>(E[m * (K / kWord) + group * kGroup / kWord]));
      return group * kGroup + (word >> (group % (kWord / kGroup) * kGroupBits + k % kKept * 2) & 3);
    };
    const ProductElement e = product_element(
        K / kGroup * kKept, [&](int64_t k) { return A[m * (K / kGroup * kKept) + k]; },
        [&](int64_t k) { return B[n * K + place(k)]; });
    double bound = product_bound(e, K, result, type.is_int() ? i32 : f32);
    if (type.is_float8()) bound += static_cast<double>(K) / 16 * std::ldexp(1, -13) * e.magnitude;
    check.compare(C[at], e.value, bound, [&] { return element_name("C", {M, N}, at); });
  }
  return check;
}

Case sparse_case(std::array<int64_t, 3> mnk, Config config, DType type, DType result, bool is_dynamic,
                 Data data = Data::Uniform) {
  const auto [M, N, K] = mnk;
  const Value rows = is_dynamic ? dynamic("M") : Value(M), columns = is_dynamic ? dynamic("N") : Value(N);
  const int64_t kept = K / kGroup * kKept;
  const auto input = [&](int64_t r, int64_t c, uint64_t seed) {
    return type.is_int() ? random_array({r, c}, type, seed, -100, 100) : input_array({r, c}, type, seed, data);
  };
  Case c{.shape = std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K) + " " + type.name() + " by " +
                  std::to_string(config.block_M) + "x" + std::to_string(config.block_N) +
                  (is_dynamic ? " dynamic" : ""),
         .program = sparse_matmul(rows, columns, Value(K), config, type, result),
         .arguments = {input(M, kept, 1), pairs(M, K / kWord), input(N, K, 2), output_array({M, N}, result)},
         .check = check_sparse};
  c.flops = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);  // as of a dense A
  c.bytes = static_cast<double>((M * kept + N * K) * type.bits / 8 + M * K / 8 + M * N * result.bits / 8);
  c.peer = Peer::openblas(M, N, K);
  return c;
}

}  // namespace

std::vector<Case> sparse_gemm_cases(Size size) {
  if (size == Size::Gpu) {
    return {sparse_case({8192, 8192, 8192}, {128, 256, 128, 2, 256}, bf16, bf16, false, Data::Normal),
            sparse_case({8192, 8192, 8192}, {128, 128, 128, 3, 256}, f16, f16, false, Data::Normal),
            sparse_case({8192, 8192, 8192}, {128, 256, 256, 2, 256}, e4m3, bf16, false, Data::Normal),
            sparse_case({4096, 4096, 16384}, {128, 128, 128, 3, 256}, bf16, bf16, true, Data::Normal)};
  }
  if (size == Size::Benchmark) return {sparse_case({512, 512, 1024}, {128, 128, 128}, f16, f16, false)};
  return {sparse_case({1, 1, 16}, {64, 64, 64}, f16, f32, true),
          sparse_case({17, 33, 80}, {64, 64, 64}, bf16, bf16, true),
          sparse_case({33, 70, 144}, {64, 32, 64, 2}, f16, f16, false),
          sparse_case({90, 33, 256}, {64, 64, 128, 3}, i8, i32, true),
          sparse_case({64, 72, 384}, {64, 64, 128, 2}, e4m3, f32, false)};
}

}  // namespace examples
