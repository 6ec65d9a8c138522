// Matrix products of groups of rows with a matrix of their own each, as mixtures of experts have them: the groups one
// behind the other in whole blocks, or each in a part of its own of which only the first rows count.
#include "product.h"

namespace examples {
namespace {

using namespace tilewright;

struct Config {
  int64_t block_M, block_N, block_K, stages = 3, threads = 128;
};

// A's rows lie in blocks of block_M; group_of has the group of each block, or -1 where the block holds nothing.
Program grouped_matmul(Value blocks, int64_t groups, int64_t N, int64_t K, Config c, DType dtype) {
  Tensor A("A", {blocks * c.block_M, K}, dtype), B("B", {groups, N, K}, dtype), group_of("group_of", {blocks}, i32);
  Tensor C("C", {blocks * c.block_M, N}, dtype);
  return prim_func("grouped_matmul", {A, B, group_of, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, c.block_N), blocks}, {.threads = c.threads})) {
      auto A_shared = alloc_shared({c.block_M, c.block_K}, dtype);
      auto B_shared = alloc_shared({c.block_N, c.block_K}, dtype);
      auto C_local = alloc_fragment({c.block_M, c.block_N}, f32);
      Value group = group_of(by);
      clear(C_local);
      // A block that holds nothing multiplies nothing, and its rows are zeros.
      for (auto k : Pipelined(if_then_else(group < 0, 0, ceildiv(K, c.block_K)), {.num_stages = c.stages})) {
        copy(A(by * c.block_M, k * c.block_K), A_shared);
        copy(B(group, bx * c.block_N, k * c.block_K), B_shared);
        gemm(A_shared, B_shared, C_local, {.transpose_B = true});
      }
      copy(C_local, C(by * c.block_M, bx * c.block_N));
    }
  });
}

// Of A[g] the first rows[g] rows count. Blocks behind them leave C alone.
Program masked_matmul(int64_t groups, Value M, int64_t N, int64_t K, Config c, DType dtype) {
  Tensor A("A", {groups, M, K}, dtype), B("B", {groups, N, K}, dtype), rows("rows", {groups}, i32);
  Tensor C("C", {groups, M, N}, dtype);
  return prim_func("masked_matmul", {A, B, rows, C}, [&] {
    for (auto [bx, by, g] : Kernel({ceildiv(N, c.block_N), ceildiv(M, c.block_M), groups}, {.threads = c.threads})) {
      auto A_shared = alloc_shared({c.block_M, c.block_K}, dtype);
      auto B_shared = alloc_shared({c.block_N, c.block_K}, dtype);
      auto C_local = alloc_fragment({c.block_M, c.block_N}, f32);
      Value counts = by * c.block_M < rows(g);
      clear(C_local);
      for (auto k : Pipelined(if_then_else(counts, ceildiv(K, c.block_K), 0), {.num_stages = c.stages})) {
        copy(A(g, by * c.block_M, k * c.block_K), A_shared);
        copy(B(g, bx * c.block_N, k * c.block_K), B_shared);
        gemm(A_shared, B_shared, C_local, {.transpose_B = true});
      }
      If(counts, [&] { copy(C_local, C(g, by * c.block_M, bx * c.block_N)); });
    }
  });
}

// C[row] = A[row] * B[group]^T, for a sample of the rows.
template <class Group>
Check check_rows(const std::vector<NDArray>& arrays, int64_t max_elements, const Group& group_of_row) {
  const Elements A(arrays[0]), B(arrays[1]), C(arrays[3]);
  const int64_t N = arrays[1].shape(1), K = arrays[1].shape(2);
  Check check;
  for (const int64_t at : sample(C.size(), max_elements)) {
    const int64_t row = at / N, group = group_of_row(row);
    if (group == -2) continue;  // anything may stand there
    ProductElement e;
    if (group >= 0)
      e = product_element(
          K, [&](int64_t k) { return A[row * K + k]; }, [&](int64_t k) { return B[(group * N + at % N) * K + k]; });
    check.compare(C[at], e.value, product_bound(e, K, arrays[3].dtype()), [&] {
      return element_name("C", {C.size() / N, N}, at);
    });
  }
  return check;
}

std::string name_of(int64_t groups, int64_t rows, int64_t N, int64_t K, DType dtype, bool is_dynamic) {
  return std::to_string(groups) + "x" + std::to_string(rows) + "x" + std::to_string(N) + "x" + std::to_string(K) + " " +
         dtype.name() + (is_dynamic ? " dynamic" : "");
}

// Blocks of each group, then one that holds nothing.
Case grouped_case(const std::vector<int64_t>& blocks_of, int64_t N, int64_t K, Config config, DType dtype,
                  bool is_dynamic, Data data = Data::Uniform) {
  std::vector<int64_t> group_of;
  for (size_t g = 0; g < blocks_of.size(); ++g)
    group_of.insert(group_of.end(), static_cast<size_t>(blocks_of[g]), static_cast<int64_t>(g));
  group_of.push_back(-1);
  const auto blocks = static_cast<int64_t>(group_of.size()), groups = static_cast<int64_t>(blocks_of.size());
  const int64_t rows = blocks * config.block_M;
  Case c{.shape = name_of(groups, rows, N, K, dtype, is_dynamic),
         .program = grouped_matmul(is_dynamic ? dynamic("blocks") : Value(blocks), groups, N, K, config, dtype),
         .arguments = {input_array({rows, K}, dtype, 1, data), input_array({groups, N, K}, dtype, 2, data),
                       LazyArray({blocks}, i32, [group_of](const NDArray& array) { array.assign_ints(group_of); }),
                       output_array({rows, N}, dtype)},
         .check = [group_of, block = config.block_M](const auto& arrays, int64_t max_elements) {
           return check_rows(arrays, max_elements,
                             [&](int64_t row) { return group_of[static_cast<size_t>(row / block)]; });
         }};
  c.flops = 2.0 * static_cast<double>(rows - config.block_M) * static_cast<double>(N) * static_cast<double>(K);
  c.bytes = static_cast<double>(rows * (N + K) + groups * N * K) * dtype.storage_bits() / 8;
  return c;
}

Case masked_case(const std::vector<int64_t>& counts, int64_t M, int64_t N, int64_t K, Config config, DType dtype,
                 bool is_dynamic, Data data = Data::Uniform) {
  const auto groups = static_cast<int64_t>(counts.size());
  double rows = 0;
  for (const int64_t n : counts) rows += static_cast<double>(n);
  Case c{.shape = name_of(groups, M, N, K, dtype, is_dynamic),
         .program = masked_matmul(groups, is_dynamic ? dynamic("M") : Value(M), N, K, config, dtype),
         .arguments = {input_array({groups, M, K}, dtype, 1, data), input_array({groups, N, K}, dtype, 2, data),
                       LazyArray({groups}, i32, [counts](const NDArray& array) { array.assign_ints(counts); }),
                       output_array({groups, M, N}, dtype)},
         .check = [counts, M](const auto& arrays, int64_t max_elements) {
           return check_rows(arrays, max_elements, [&](int64_t row) {
             const int64_t g = row / M;
             return row % M < counts[static_cast<size_t>(g)] ? g : -2;
           });
         }};
  c.flops = 2.0 * rows * static_cast<double>(N) * static_cast<double>(K);
  c.bytes = (rows * static_cast<double>(N + K) + static_cast<double>(groups * N * K)) * dtype.storage_bits() / 8;
  return c;
}

constexpr Config gpu_config = {128, 256, 64, 3, 256};

}  // namespace

std::vector<Case> grouped_gemm_cases(Size size) {
  if (size == Size::Gpu) {
    const std::vector<int64_t> even(4, 64), uneven = {30, 1, 63, 34, 20, 50, 2, 56};
    return {grouped_case(even, 4096, 7168, gpu_config, bf16, false, Data::Normal),
            grouped_case(uneven, 4096, 7168, gpu_config, bf16, true, Data::Normal)};
  }
  if (size == Size::Benchmark) return {grouped_case({2, 1, 3}, 512, 512, {128, 256, 128}, f32, false)};
  return {grouped_case({1}, 1, 1, {16, 16, 16}, f32, true), grouped_case({2, 0, 1}, 33, 45, {16, 32, 16}, f32, true),
          grouped_case({1, 2}, 65, 72, {64, 64, 32}, bf16, true),
          grouped_case({1, 0, 1}, 48, 40, {64, 32, 32}, f16, false)};
}

std::vector<Case> masked_gemm_cases(Size size) {
  if (size == Size::Gpu) {
    return {
        masked_case({1024, 812, 97, 1000, 512, 3, 640, 1024}, 1024, 4096, 7168, gpu_config, bf16, true, Data::Normal)};
  }
  if (size == Size::Benchmark) return {masked_case({128, 77, 0}, 128, 512, 512, {128, 256, 128}, f32, false)};
  return {masked_case({1}, 1, 1, 1, {16, 16, 16}, f32, true),
          masked_case({37, 0, 5}, 37, 33, 45, {16, 32, 16}, f32, true),
          masked_case({1, 80}, 80, 65, 72, {64, 64, 32}, bf16, true),
          masked_case({7, 130, 64}, 130, 48, 40, {64, 32, 32}, f16, false)};
}

}  // namespace examples
