// Attention that looks at some blocks of keys only: a mask says which, for each block of queries. A first launch lists
// the blocks, so that the second neither visits nor loads the others.
#include <numbers>

#include "attention.h"

namespace examples {
namespace {

using namespace tilewright;

struct Config {
  int64_t block_M, block_N;
  bool causal;
  int64_t threads = 128;
};

constexpr double kLowest = -1e30;  // below every score: where a row sees no key of a tile, exp2 gives 0 and not NaN

Program block_sparse_attention(Value batch, int64_t heads, Value length, int64_t dim, Config c, DType dtype) {
  Tensor Q("Q", {batch, heads, length, dim}, dtype), K("K", {batch, heads, length, dim}, dtype);
  Tensor V("V", {batch, heads, length, dim}, dtype);
  Tensor Mask("Mask", {batch, heads, ceildiv(length, c.block_M), ceildiv(length, c.block_N)}, u8);
  Tensor O("O", {batch, heads, length, dim}, dtype);
  const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(dim));
  return prim_func("block_sparse_attention", {Q, K, V, Mask, O}, [&] {
    Value rows = ceildiv(length, c.block_M), columns = ceildiv(length, c.block_N);
    auto list = alloc_global({batch, heads, rows, columns}, i32);
    auto counts = alloc_global({batch, heads, rows}, i32);
    for (auto [bx, h, b] : Kernel({rows, heads, batch}, {.threads = 32})) {
      auto count = alloc_var(i32, 0);
      // Of a causal block those at most that its last query sees.
      Value last = c.causal ? Value(min(columns, ceildiv((bx + 1) * c.block_M, c.block_N))) : columns;
      for (auto k : serial(last)) {
        If(Mask(b, h, bx, k) != 0, [&] {
          list(b, h, bx, count) = k;
          count += 1;
        });
      }
      counts(b, h, bx) = count;
    }
    for (auto [bx, h, b] : Kernel({rows, heads, batch}, {.threads = c.threads})) {
      auto Q_shared = alloc_shared({c.block_M, dim}, dtype);
      auto K_shared = alloc_shared({c.block_N, dim}, dtype);
      auto V_shared = alloc_shared({c.block_N, dim}, dtype);
      auto acc_s = alloc_fragment({c.block_M, c.block_N}, f32);
      auto acc_s_cast = alloc_fragment({c.block_M, c.block_N}, dtype);
      auto acc_o = alloc_fragment({c.block_M, dim}, f32);
      auto scores_max = alloc_fragment({c.block_M}, f32);
      auto scores_max_prev = alloc_fragment({c.block_M}, f32);
      auto scores_scale = alloc_fragment({c.block_M}, f32);
      auto scores_sum = alloc_fragment({c.block_M}, f32);
      auto logsum = alloc_fragment({c.block_M}, f32);
      copy(Q(b, h, bx * c.block_M, 0), Q_shared);
      clear(acc_o);
      clear(logsum);
      fill(scores_max, kLowest);
      Value visited = counts(b, h, bx);
      for (auto n : Pipelined(visited, {.num_stages = 2})) {
        Value first = list(b, h, bx, n) * c.block_N;
        copy(K(b, h, first, 0), K_shared);
        for (auto [i, j] : Parallel(c.block_M, c.block_N)) {
          acc_s(i, j) = c.causal
                            ? if_then_else(first + j <= bx * c.block_M + i && first + j < length, 0.0, -infinity(f32))
                            : if_then_else(first + j < length, 0.0, -infinity(f32));
        }
        gemm(Q_shared, K_shared, acc_s, {.transpose_B = true, .policy = GemmWarpPolicy::FullRow});
        copy(V(b, h, first, 0), V_shared);
        copy(scores_max, scores_max_prev);
        reduce_max(acc_s, scores_max, {.dim = 1, .clear = false});
        for (auto i : Parallel(c.block_M)) scores_scale(i) = exp2((scores_max_prev(i) - scores_max(i)) * scale);
        for (auto [i, j] : Parallel(c.block_M, c.block_N)) {
          acc_s(i, j) = exp2(acc_s(i, j) * scale - scores_max(i) * scale);
        }
        reduce_sum(acc_s, scores_sum, {.dim = 1});
        for (auto i : Parallel(c.block_M)) logsum(i) = logsum(i) * scores_scale(i) + scores_sum(i);
        copy(acc_s, acc_s_cast);
        for (auto [i, j] : Parallel(c.block_M, dim)) acc_o(i, j) *= scores_scale(i);
        gemm(acc_s_cast, V_shared, acc_o, {.policy = GemmWarpPolicy::FullRow});
      }
      // A query that sees no key gets zeros.
      for (auto [i, j] : Parallel(c.block_M, dim)) {
        acc_o(i, j) = if_then_else(logsum(i) > 0, acc_o(i, j) / logsum(i), 0.0);
      }
      copy(acc_o, O(b, h, bx * c.block_M, 0));
    }
  });
}

Check check_block_sparse(const std::vector<NDArray>& arrays, int64_t max_elements, Config c) {
  const Elements Q(arrays[0]), K(arrays[1]), V(arrays[2]), Mask(arrays[3]), O(arrays[4]);
  const int64_t batch = arrays[0].shape(0), heads = arrays[0].shape(1), length = arrays[0].shape(2),
                dim = arrays[0].shape(3), rows = arrays[3].shape(2), columns = arrays[3].shape(3);
  Check check;
  for (const int64_t row : sample(O.size() / dim, std::max<int64_t>(1, max_elements / dim))) {
    const int64_t i = row % length, head = row / length;
    std::vector<int64_t> keys;
    for (int64_t key = 0; key < (c.causal ? i + 1 : length); ++key)
      if (Mask[(head * rows + i / c.block_M) * columns + key / c.block_N] != 0) keys.push_back(head * length + key);
    const auto key_at = [&](int64_t n) { return keys[static_cast<size_t>(n)]; };
    AttentionResult expected{std::vector<double>(static_cast<size_t>(dim)),
                             std::vector<double>(static_cast<size_t>(dim))};
    if (!keys.empty())
      expected = attention_row({.keys = static_cast<int64_t>(keys.size()),
                                .score_dim = dim,
                                .value_dim = dim,
                                .query = [&](int64_t d) { return Q[row * dim + d]; },
                                .key = [&](int64_t n, int64_t d) { return K[key_at(n) * dim + d]; },
                                .value = [&](int64_t n, int64_t d) { return V[key_at(n) * dim + d]; },
                                .scale = 1 / std::sqrt(static_cast<double>(dim))},
                               arrays[0].dtype());
    compare_row(check, O, arrays[4].dtype(), "O", {batch, heads, length, dim}, row, expected);
  }
  return check;
}

struct Shape {
  int64_t batch, heads, length, dim;
};

// One block of `every` is visited, and without `lone` those at the diagonal.
Case block_sparse_case(Shape s, Config config, DType dtype, int64_t every, bool lone, bool is_dynamic,
                       Data data = Data::Uniform) {
  const int64_t rows = ceildiv(s.length, config.block_M), columns = ceildiv(s.length, config.block_N);
  std::vector<int64_t> mask;
  int64_t visited = 0;
  for (int64_t at = 0; at < s.batch * s.heads * rows * columns; ++at) {
    const int64_t row = at / columns % rows, column = at % columns;
    const bool diagonal = row * config.block_M / config.block_N == column;
    mask.push_back((at * 7 + row * 3) % every == 0 || (diagonal && !lone));
    visited += mask.back() && (!config.causal || column * config.block_N < (row + 1) * config.block_M);
  }
  Case c{.shape = std::to_string(s.batch) + "x" + std::to_string(s.heads) + "x" + std::to_string(s.length) + "x" +
                  std::to_string(s.dim) + " 1/" + std::to_string(every) + " " + dtype.name() +
                  (config.causal ? " causal" : "") + (is_dynamic ? " dynamic" : ""),
         .program = block_sparse_attention(is_dynamic ? dynamic("batch") : Value(s.batch), s.heads,
                                           is_dynamic ? dynamic("length") : Value(s.length), s.dim, config, dtype),
         .arguments = {input_array({s.batch, s.heads, s.length, s.dim}, dtype, 1, data),
                       input_array({s.batch, s.heads, s.length, s.dim}, dtype, 2, data),
                       input_array({s.batch, s.heads, s.length, s.dim}, dtype, 3, data),
                       LazyArray({s.batch, s.heads, rows, columns}, u8,
                                 [mask](const NDArray& array) { array.assign_ints(mask); }),
                       output_array({s.batch, s.heads, s.length, s.dim}, dtype)},
         .check = [config](const auto& arrays, int64_t max_elements) {
           return check_block_sparse(arrays, max_elements, config);
         }};
  c.flops = 4.0 * static_cast<double>(visited * config.block_M * config.block_N * s.dim);
  c.bytes = static_cast<double>(4 * s.batch * s.heads * s.length * s.dim) * dtype.storage_bits() / 8;
  return c;
}

}  // namespace

std::vector<Case> block_sparse_attention_cases(Size size) {
  if (size == Size::Gpu) {
    return {block_sparse_case({4, 32, 4096, 128}, {128, 128, false, 256}, bf16, 4, false, false, Data::Normal),
            block_sparse_case({1, 32, 16384, 128}, {128, 128, true, 256}, f16, 8, false, true, Data::Normal)};
  }
  if (size == Size::Benchmark) return {block_sparse_case({1, 8, 2048, 64}, {128, 128, false}, f32, 4, false, false)};
  std::vector<Case> out;
  for (const bool causal : {false, true}) {
    for (const int64_t length : {1, 17, 150})
      out.push_back(block_sparse_case({1, 2, length, 16}, {16, 16, causal}, f32, 3, true, true));
    out.push_back(block_sparse_case({2, 1, 150, 33}, {16, 32, causal}, bf16, 2, false, true));
    out.push_back(block_sparse_case({1, 2, 200, 64}, {64, 64, causal}, f16, 3, false, false));
  }
  return out;
}

}  // namespace examples
