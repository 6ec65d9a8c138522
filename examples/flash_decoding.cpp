// Decoding: one query per sequence against its long history. A first launch gives each block a part of the keys; a
// second combines the parts by the logarithms of their sums.
#include <numbers>

#include "attention.h"

namespace examples {
namespace {

using namespace tilewright;

struct Config {
  int64_t block_N, splits;
};

// Q is (batch, heads, dim), K and V are (batch, position, kv_heads, dim). The query heads of one head of keys are the
// rows of a tile.
Program flash_decoding(Value batch, int64_t heads, int64_t kv_heads, Value keys, int64_t dim, Config c, DType dtype) {
  Tensor Q("Q", {batch, heads, dim}, dtype), K("K", {batch, keys, kv_heads, dim}, dtype);
  Tensor V("V", {batch, keys, kv_heads, dim}, dtype), O("O", {batch, heads, dim}, dtype);
  const int64_t rows = heads / kv_heads;
  const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(dim));
  return prim_func("flash_decoding", {Q, K, V, O}, [&] {
    auto parts = alloc_global({batch, heads, c.splits, dim}, f32);
    auto part_logsum = alloc_global({batch, heads, c.splits}, f32);
    for (auto [s, g, b] : Kernel({c.splits, kv_heads, batch}, {.threads = 128})) {
      auto Q_shared = alloc_shared({rows, dim}, dtype);
      auto K_shared = alloc_shared({c.block_N, dim}, dtype);
      auto V_shared = alloc_shared({c.block_N, dim}, dtype);
      auto acc_s = alloc_fragment({rows, c.block_N}, f32);
      auto acc_s_cast = alloc_fragment({rows, c.block_N}, dtype);
      auto acc_o = alloc_fragment({rows, dim}, f32);
      auto scores_max = alloc_fragment({rows}, f32);
      auto scores_max_prev = alloc_fragment({rows}, f32);
      auto scores_scale = alloc_fragment({rows}, f32);
      auto scores_sum = alloc_fragment({rows}, f32);
      auto logsum = alloc_fragment({rows}, f32);
      copy(Q(b, slice(g * rows, g * rows + rows), all), Q_shared);
      clear(acc_o);
      clear(logsum);
      fill(scores_max, -infinity(f32));
      Value blocks = ceildiv(keys, c.block_N);
      Value share = ceildiv(blocks, c.splits);
      for (auto k : Pipelined(share * s, min(share * (s + 1), blocks), {.num_stages = 2})) {
        Value first = k * c.block_N;
        copy(K(b, slice(first, first + c.block_N), g, all), K_shared);
        copy(V(b, slice(first, first + c.block_N), g, all), V_shared);
        gemm(Q_shared, K_shared, acc_s, {.transpose_B = true, .clear_accum = true});
        for (auto [i, j] : Parallel(rows, c.block_N)) {
          acc_s(i, j) = if_then_else(first + j < keys, acc_s(i, j), -infinity(f32));
        }
        copy(scores_max, scores_max_prev);
        reduce_max(acc_s, scores_max, {.dim = 1, .clear = false});
        for (auto i : Parallel(rows)) scores_scale(i) = exp2((scores_max_prev(i) - scores_max(i)) * scale);
        for (auto [i, j] : Parallel(rows, c.block_N)) acc_s(i, j) = exp2(acc_s(i, j) * scale - scores_max(i) * scale);
        reduce_sum(acc_s, scores_sum, {.dim = 1});
        for (auto i : Parallel(rows)) logsum(i) = logsum(i) * scores_scale(i) + scores_sum(i);
        copy(acc_s, acc_s_cast);
        for (auto [i, j] : Parallel(rows, dim)) acc_o(i, j) *= scores_scale(i);
        gemm(acc_s_cast, V_shared, acc_o);
      }
      // A part without keys has the sum 0: it is stored as 0 with a logarithm of -inf, and weighs nothing.
      for (auto [i, j] : Parallel(rows, dim)) {
        parts(b, g * rows + i, s, j) = if_then_else(logsum(i) > 0, acc_o(i, j) / logsum(i), 0.0);
      }
      for (auto i : Parallel(rows)) {
        part_logsum(b, g * rows + i, s) =
            if_then_else(logsum(i) > 0, log2(logsum(i)) + scores_max(i) * scale, -infinity(f32));
      }
    }
    for (auto [h, b] : Kernel({heads, batch}, {.threads = 128})) {
      auto logs = alloc_fragment({c.splits}, f32);
      auto largest = alloc_fragment({1}, f32);
      auto weights = alloc_fragment({c.splits}, f32);
      auto total = alloc_fragment({1}, f32);
      auto sums = alloc_fragment({dim}, f32);
      copy(part_logsum(b, h, 0), logs);
      reduce_max(logs, largest);
      for (auto s : Parallel(c.splits)) weights(s) = exp2(logs(s) - largest(0));
      reduce_sum(weights, total);
      clear(sums);
      for (auto s : serial(c.splits)) {
        for (auto j : Parallel(dim)) sums(j) += parts(b, h, s, j) * weights(s);
      }
      for (auto j : Parallel(dim)) O(b, h, j) = sums(j) / total(0);
    }
  });
}

Check check_decoding(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements Q(arrays[0]), K(arrays[1]), V(arrays[2]), O(arrays[3]);
  const int64_t batch = arrays[0].shape(0), heads = arrays[0].shape(1), dim = arrays[0].shape(2),
                keys = arrays[1].shape(1), kv_heads = arrays[1].shape(2);
  Check check;
  for (const int64_t row : sample(batch * heads, std::max<int64_t>(1, max_elements / dim))) {
    const int64_t b = row / heads, g = row % heads / (heads / kv_heads);
    const auto at = [&](int64_t key, int64_t d) { return ((b * keys + key) * kv_heads + g) * dim + d; };
    const AttentionResult expected = attention_row({.keys = keys,
                                                    .score_dim = dim,
                                                    .value_dim = dim,
                                                    .query = [&](int64_t d) { return Q[row * dim + d]; },
                                                    .key = [&](int64_t key, int64_t d) { return K[at(key, d)]; },
                                                    .value = [&](int64_t key, int64_t d) { return V[at(key, d)]; },
                                                    .scale = 1 / std::sqrt(static_cast<double>(dim))},
                                                   arrays[0].dtype());
    compare_row(check, O, arrays[3].dtype(), "O", {batch, heads, dim}, row, expected);
  }
  return check;
}

struct Shape {
  int64_t batch, heads, kv_heads, keys, dim;
};

Case decoding_case(Shape s, Config config, DType dtype, bool is_dynamic, Data data = Data::Uniform) {
  const Value batch = is_dynamic ? dynamic("batch") : Value(s.batch),
              keys = is_dynamic ? dynamic("keys") : Value(s.keys);
  Case c{.shape = std::to_string(s.batch) + "x" + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) +
                  "x1:" + std::to_string(s.keys) + "x" + std::to_string(s.dim) + " " + dtype.name() +
                  (is_dynamic ? " dynamic" : ""),
         .program = flash_decoding(batch, s.heads, s.kv_heads, keys, s.dim, config, dtype),
         .arguments = {input_array({s.batch, s.heads, s.dim}, dtype, 1, data),
                       input_array({s.batch, s.keys, s.kv_heads, s.dim}, dtype, 2, data),
                       input_array({s.batch, s.keys, s.kv_heads, s.dim}, dtype, 3, data),
                       output_array({s.batch, s.heads, s.dim}, dtype)},
         .check = check_decoding};
  c.flops = 4.0 * static_cast<double>(s.batch * s.heads * s.keys * s.dim);
  c.bytes = static_cast<double>(2 * s.batch * s.dim * (s.keys * s.kv_heads + s.heads)) * dtype.storage_bits() / 8;
  c.peer = Peer::copy();
  return c;
}

}  // namespace

std::vector<Case> flash_decoding_cases(Size size) {
  if (size == Size::Gpu) return {decoding_case({32, 32, 8, 8192, 128}, {128, 4}, bf16, false, Data::Normal)};
  if (size == Size::Benchmark) {
    return {decoding_case({4, 32, 8, 8192, 128}, {128, 4}, f32, false),
            decoding_case({4, 32, 8, 8192, 128}, {128, 4}, bf16, true)};
  }
  std::vector<Case> out;
  for (const int64_t keys : {1, 17, 131}) {
    out.push_back(decoding_case({1, 1, 1, keys, 16}, {16, 3}, f32, true));
    out.push_back(decoding_case({2, 6, 2, keys, 20}, {16, 4}, bf16, true));
    out.push_back(decoding_case({3, 5, 1, keys, 33}, {32, 4}, f16, true));
  }
  out.push_back(decoding_case({2, 6, 2, 17, 20}, {16, 4}, f32, false));
  return out;
}

}  // namespace examples
