// Matrix products with few results and a long K, which several blocks share: their parts meet by atomic additions, or
// in a second launch. And with as many blocks as there are multiprocessors, each walking over tiles.
#include "product.h"

namespace examples {
namespace {

using namespace tilewright;

struct Config {
  int64_t block_M, block_N, block_K, splits, stages = 3, threads = 128;
};

// The part `s` of K, in whole tiles, of C's tile (by, bx), into `to`.
struct PartOfProduct {
  const Tensor &A, &B;
  Value by, bx, s;
  Buffer to;
};
void multiply_part(const PartOfProduct& p, const Value& K, const Config& c, DType dtype) {
  auto A_shared = alloc_shared({c.block_M, c.block_K}, dtype);
  auto B_shared = alloc_shared({c.block_K, c.block_N}, dtype);
  clear(p.to);
  Value tiles = ceildiv(K, c.block_K);
  Value share = ceildiv(tiles, c.splits);
  for (auto k : Pipelined(min(share * p.s, tiles), min(share * (p.s + 1), tiles), {.num_stages = c.stages})) {
    copy(p.A(p.by * c.block_M, k * c.block_K), A_shared);
    copy(p.B(k * c.block_K, p.bx * c.block_N), B_shared);
    gemm(A_shared, B_shared, p.to);
  }
}

Program split_matmul_atomics(Value M, Value N, Value K, Config c, DType dtype) {
  Tensor A("A", {M, K}, dtype), B("B", {K, N}, dtype), C("C", {M, N}, f32);
  return prim_func("split_matmul_atomics", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, c.block_N), ceildiv(M, c.block_M)}, {.threads = 128}))
      clear(C(slice(by * c.block_M, by * c.block_M + c.block_M), slice(bx * c.block_N, bx * c.block_N + c.block_N)));
    for (auto [bx, by, s] : Kernel({ceildiv(N, c.block_N), ceildiv(M, c.block_M), c.splits}, {.threads = c.threads})) {
      auto C_local = alloc_fragment({c.block_M, c.block_N}, f32);
      multiply_part({A, B, by, bx, s, C_local}, K, c, dtype);
      atomic_add(C(by * c.block_M, bx * c.block_N), C_local);
    }
  });
}

Program split_matmul_reduce(Value M, Value N, Value K, Config c, DType dtype) {
  Tensor A("A", {M, K}, dtype), B("B", {K, N}, dtype), C("C", {M, N}, f32);
  return prim_func("split_matmul_reduce", {A, B, C}, [&] {
    auto parts = alloc_global({c.splits, M, N}, f32);
    for (auto [bx, by, s] : Kernel({ceildiv(N, c.block_N), ceildiv(M, c.block_M), c.splits}, {.threads = c.threads})) {
      auto C_local = alloc_fragment({c.block_M, c.block_N}, f32);
      multiply_part({A, B, by, bx, s, C_local}, K, c, dtype);
      copy(C_local, parts(s, by * c.block_M, bx * c.block_N));
    }
    for (auto [bx, by] : Kernel({ceildiv(N, c.block_N), ceildiv(M, 16)}, {.threads = 128})) {
      auto sum = alloc_fragment({16, c.block_N}, f32);
      clear(sum);
      for (auto s : unroll(c.splits))
        for (auto [i, j] : Parallel(16, c.block_N)) sum(i, j) += parts(s, by * 16 + i, bx * c.block_N + j);
      copy(sum, C(by * 16, bx * c.block_N));
    }
  });
}

// `splits` blocks in all.
Program persistent_matmul(Value M, Value N, Value K, Config c, DType dtype) {
  Tensor A("A", {M, K}, dtype), B("B", {K, N}, dtype), C("C", {M, N}, dtype);
  return prim_func("persistent_matmul", {A, B, C}, [&] {
    for (auto block : Kernel(c.splits, {.threads = c.threads})) {
      auto A_shared = alloc_shared({c.block_M, c.block_K}, dtype);
      auto B_shared = alloc_shared({c.block_K, c.block_N}, dtype);
      auto C_local = alloc_fragment({c.block_M, c.block_N}, f32);
      for (auto [by, bx] : Persistent({ceildiv(M, c.block_M), ceildiv(N, c.block_N)}, c.splits, block)) {
        clear(C_local);
        for (auto k : Pipelined(ceildiv(K, c.block_K), {.num_stages = c.stages})) {
          copy(A(by * c.block_M, k * c.block_K), A_shared);
          copy(B(k * c.block_K, bx * c.block_N), B_shared);
          gemm(A_shared, B_shared, C_local);
        }
        copy(C_local, C(by * c.block_M, bx * c.block_N));
      }
    }
  });
}

Check check_product(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements A(arrays[0]), B(arrays[1]), C(arrays[2]);
  const int64_t M = arrays[2].shape(0), N = arrays[2].shape(1), K = arrays[0].shape(1);
  Check check;
  for (const int64_t at : sample(M * N, max_elements)) {
    const ProductElement e = product_element(
        K, [&](int64_t k) { return A[at / N * K + k]; }, [&](int64_t k) { return B[k * N + at % N]; });
    check.compare(C[at], e.value, product_bound(e, K, arrays[2].dtype()), [&] {
      return element_name("C", {M, N}, at);
    });
  }
  return check;
}

using Build = Program (*)(Value, Value, Value, Config, DType);

Case product_case(Build build, std::array<int64_t, 3> mnk, Config config, DType dtype, bool is_dynamic,
                  Data data = Data::Uniform) {
  const auto [M, N, K] = mnk;
  const auto extent = [&](const char* name, int64_t value) { return is_dynamic ? dynamic(name) : Value(value); };
  const DType result = build == persistent_matmul ? dtype : f32;
  Case c{.shape = std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K) + " " + dtype.name() +
                  (build == persistent_matmul ? " blocks " : " splits ") + std::to_string(config.splits) +
                  (is_dynamic ? " dynamic" : ""),
         .program = build(extent("M", M), extent("N", N), extent("K", K), config, dtype),
         .arguments = {input_array({M, K}, dtype, 1, data), input_array({K, N}, dtype, 2, data),
                       output_array({M, N}, result)},
         .check = check_product};
  c.any_order = build == split_matmul_atomics;
  c.flops = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  c.bytes = static_cast<double>(M * K + K * N) * dtype.storage_bits() / 8 +
            static_cast<double>(M * N) * result.storage_bits() / 8;
  c.peer = Peer::openblas(M, N, K);
  return c;
}

std::vector<Case> product_cases(Build build, Size size, int64_t gpu_splits, std::array<int64_t, 3> gpu_mnk) {
  if (size == Size::Gpu)
    return {product_case(build, gpu_mnk, {128, 256, 64, gpu_splits, 3, 256}, bf16, false, Data::Normal)};
  if (size == Size::Benchmark) return {product_case(build, {256, 512, 4096}, {128, 256, 128, 2}, f32, false)};
  std::vector<Case> out;
  for (const DType dtype : {f32, bf16}) {
    for (const auto& mnk : {std::array<int64_t, 3>{1, 1, 1}, {17, 33, 5}, {127, 65, 83}})
      out.push_back(product_case(build, mnk, {32, 64, 16, 3}, dtype, true));
    out.push_back(product_case(build, {127, 72, 200}, {64, 64, 32, 4, 2}, dtype, false));
  }
  return out;
}

}  // namespace

std::vector<Case> split_gemm_cases(Size size) {
  return product_cases(split_matmul_atomics, size, 32, {256, 512, 65536});
}
std::vector<Case> split_reduce_gemm_cases(Size size) {
  return product_cases(split_matmul_reduce, size, 32, {256, 512, 65536});
}
std::vector<Case> persistent_gemm_cases(Size size) {
  return product_cases(persistent_matmul, size, 132, {4096, 4096, 4096});
}

}  // namespace examples
