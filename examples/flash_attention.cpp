// FlashAttention, forward: the scores of a block of queries never leave the chip. Keys and values come in blocks, and
// the sums so far are rescaled when a larger score appears. Causal or not, several query heads on one head of keys, and
// sequences of different lengths packed behind each other.
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

// O = softmax(Q * K^T / sqrt(dim)) * V, tensors as (batch, head, position, dim).
Program flash_attention(Value batch, int64_t heads, int64_t kv_heads, Value queries, Value keys, int64_t dim, Config c,
                        DType dtype) {
  Tensor Q("Q", {batch, heads, queries, dim}, dtype), K("K", {batch, kv_heads, keys, dim}, dtype);
  Tensor V("V", {batch, kv_heads, keys, dim}, dtype), O("O", {batch, heads, queries, dim}, dtype);
  const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(dim));
  return prim_func("flash_attention", {Q, K, V, O}, [&] {
    for (auto [bx, h, b] : Kernel({ceildiv(queries, c.block_M), heads, batch}, {.threads = c.threads})) {
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
      Value kv_head = floordiv(h, heads / kv_heads);
      copy(Q(b, h, bx * c.block_M, 0), Q_shared);
      clear(acc_o);
      clear(logsum);
      fill(scores_max, -infinity(f32));
      Value last = c.causal ? Value(min(keys, (bx + 1) * c.block_M)) : keys;
      for (auto k : Pipelined(ceildiv(last, c.block_N), {.num_stages = 2})) {
        copy(K(b, kv_head, k * c.block_N, 0), K_shared);
        for (auto [i, j] : Parallel(c.block_M, c.block_N)) {
          Value key = k * c.block_N + j;
          acc_s(i, j) = c.causal ? if_then_else(key <= bx * c.block_M + i && key < keys, 0.0, -infinity(f32))
                                 : if_then_else(key < keys, 0.0, -infinity(f32));
        }
        gemm(Q_shared, K_shared, acc_s, {.transpose_B = true, .policy = GemmWarpPolicy::FullRow});
        copy(V(b, kv_head, k * c.block_N, 0), V_shared);
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
      for (auto [i, j] : Parallel(c.block_M, dim)) acc_o(i, j) /= logsum(i);
      copy(acc_o, O(b, h, bx * c.block_M, 0));
    }
  });
}

// Sequences packed behind each other, tensors as (token, head, dim): sequence b has the tokens offsets[b] up to
// offsets[b + 1]. Queries of a block that belong to the next sequence are computed and not stored.
Program flash_attention_packed(Value tokens, Value sequences, Value longest, int64_t heads, int64_t kv_heads,
                               int64_t dim, Config c, DType dtype) {
  Tensor Q("Q", {tokens, heads, dim}, dtype), K("K", {tokens, kv_heads, dim}, dtype);
  Tensor V("V", {tokens, kv_heads, dim}, dtype), offsets("offsets", {sequences + 1}, i32);
  Tensor O("O", {tokens, heads, dim}, dtype);
  const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(dim));
  return prim_func("flash_attention_packed", {Q, K, V, offsets, longest, O}, [&] {
    for (auto [bx, h, b] : Kernel({ceildiv(longest, c.block_M), heads, sequences}, {.threads = c.threads})) {
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
      Value kv_head = floordiv(h, heads / kv_heads);
      Value start = offsets(b);
      Value length = offsets(b + 1) - start;
      Value first = bx * c.block_M;
      If(first >= length, [&] { thread_return(); });
      copy(Q(slice(start + first, start + first + c.block_M), h, all), Q_shared);
      clear(acc_o);
      clear(logsum);
      fill(scores_max, -infinity(f32));
      Value last = c.causal ? Value(min(length, first + c.block_M)) : length;
      for (auto k : Pipelined(ceildiv(last, c.block_N), {.num_stages = 2})) {
        Value key = start + k * c.block_N;
        copy(K(slice(key, key + c.block_N), kv_head, all), K_shared);
        for (auto [i, j] : Parallel(c.block_M, c.block_N)) {
          Value visible = c.causal ? Value(min(length, first + i + 1)) : length;
          acc_s(i, j) = if_then_else(k * c.block_N + j < visible, 0.0, -infinity(f32));
        }
        gemm(Q_shared, K_shared, acc_s, {.transpose_B = true, .policy = GemmWarpPolicy::FullRow});
        copy(V(slice(key, key + c.block_N), kv_head, all), V_shared);
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
      for (auto [i, j] : Parallel(c.block_M, dim)) {
        If(first + i < length, [&] { O(start + first + i, h, j) = acc_o(i, j) / logsum(i); });
      }
    }
  });
}

}  // namespace

Check check_flash_attention(const std::vector<NDArray>& arrays, int64_t max_elements, bool causal) {
  const Elements Q(arrays[0]), K(arrays[1]), V(arrays[2]), O(arrays[3]);
  const int64_t heads = arrays[0].shape(1), queries = arrays[0].shape(2), dim = arrays[0].shape(3),
                kv_heads = arrays[1].shape(1), keys = arrays[1].shape(2);
  Check check;
  for (const int64_t row : sample(O.size() / dim, std::max<int64_t>(1, max_elements / dim))) {
    const int64_t i = row % queries, h = row / queries % heads, b = row / queries / heads;
    const int64_t kv = (b * kv_heads + h / (heads / kv_heads)) * keys;
    const AttentionResult expected =
        attention_row({.keys = causal ? std::min(keys, i + 1) : keys,
                       .score_dim = dim,
                       .value_dim = dim,
                       .query = [&](int64_t d) { return Q[row * dim + d]; },
                       .key = [&](int64_t j, int64_t d) { return K[(kv + j) * dim + d]; },
                       .value = [&](int64_t j, int64_t d) { return V[(kv + j) * dim + d]; },
                       .scale = 1 / std::sqrt(static_cast<double>(dim))},
                      arrays[0].dtype());
    compare_row(check, O, arrays[3].dtype(), "O", {arrays[0].shape(0), heads, queries, dim}, row, expected);
  }
  return check;
}

namespace {

Check check_packed(const std::vector<NDArray>& arrays, int64_t max_elements, bool causal) {
  const Elements Q(arrays[0]), K(arrays[1]), V(arrays[2]), offsets(arrays[3]), O(arrays[4]);
  const int64_t tokens = arrays[0].shape(0), heads = arrays[0].shape(1), dim = arrays[0].shape(2),
                kv_heads = arrays[1].shape(1);
  Check check;
  for (const int64_t row : sample(tokens * heads, std::max<int64_t>(1, max_elements / dim))) {
    const int64_t token = row / heads, kv_head = row % heads / (heads / kv_heads);
    int64_t sequence = 0;
    while (static_cast<double>(token) >= offsets[sequence + 1]) ++sequence;
    const auto begin = static_cast<int64_t>(offsets[sequence]), end = static_cast<int64_t>(offsets[sequence + 1]);
    const AttentionResult expected =
        attention_row({.keys = (causal ? token + 1 : end) - begin,
                       .score_dim = dim,
                       .value_dim = dim,
                       .query = [&](int64_t d) { return Q[row * dim + d]; },
                       .key = [&](int64_t j, int64_t d) { return K[((begin + j) * kv_heads + kv_head) * dim + d]; },
                       .value = [&](int64_t j, int64_t d) { return V[((begin + j) * kv_heads + kv_head) * dim + d]; },
                       .scale = 1 / std::sqrt(static_cast<double>(dim))},
                      arrays[0].dtype());
    compare_row(check, O, arrays[4].dtype(), "O", {tokens, heads, dim}, row, expected);
  }
  return check;
}

struct Shape {
  int64_t batch, heads, kv_heads, queries, keys, dim;
};

Case attention_case(Shape s, Config config, DType dtype, bool is_dynamic, Data data = Data::Uniform) {
  const Value batch = is_dynamic ? dynamic("batch") : Value(s.batch),
              keys = is_dynamic ? dynamic("keys") : Value(s.keys);
  const Value queries = is_dynamic ? dynamic("queries") : Value(s.queries);
  Case c{.shape = std::to_string(s.batch) + "x" + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + "x" +
                  std::to_string(s.queries) + (s.keys == s.queries ? "" : ":" + std::to_string(s.keys)) + "x" +
                  std::to_string(s.dim) + " " + dtype.name() + (config.causal ? " causal" : "") +
                  (is_dynamic ? " dynamic" : ""),
         .program = flash_attention(batch, s.heads, s.kv_heads, queries, keys, s.dim, config, dtype),
         .arguments = {input_array({s.batch, s.heads, s.queries, s.dim}, dtype, 1, data),
                       input_array({s.batch, s.kv_heads, s.keys, s.dim}, dtype, 2, data),
                       input_array({s.batch, s.kv_heads, s.keys, s.dim}, dtype, 3, data),
                       output_array({s.batch, s.heads, s.queries, s.dim}, dtype)},
         .check = [causal = config.causal](const auto& arrays, int64_t max_elements) {
           return check_flash_attention(arrays, max_elements, causal);
         }};
  const double pairs = static_cast<double>(s.queries) * static_cast<double>(s.keys) * (config.causal ? 0.5 : 1);
  c.flops = 4 * static_cast<double>(s.batch * s.heads * s.dim) * pairs;
  c.bytes =
      static_cast<double>(2 * s.batch * s.dim * (s.heads * s.queries + s.kv_heads * s.keys)) * dtype.storage_bits() / 8;
  c.peer = Peer::openblas_products(s.queries, s.keys, s.dim, s.dim, s.batch * s.heads);
  return c;
}

Case packed_case(const std::vector<int64_t>& lengths, int64_t heads, int64_t kv_heads, int64_t dim, Config config,
                 DType dtype, bool is_dynamic, Data data = Data::Uniform) {
  std::vector<int64_t> ends = {0};
  double pairs = 0;
  for (const int64_t length : lengths) {
    ends.push_back(ends.back() + length);
    pairs += static_cast<double>(length * length) * (config.causal ? 0.5 : 1);
  }
  const int64_t tokens = ends.back(), longest = *std::max_element(lengths.begin(), lengths.end());
  const auto sequences = static_cast<int64_t>(lengths.size());
  const LazyArray offsets({sequences + 1}, i32, [ends](const NDArray& array) { array.assign_ints(ends); });
  Case c{.shape = std::to_string(sequences) + " of " + std::to_string(longest) + " " + std::to_string(heads) + "/" +
                  std::to_string(kv_heads) + "x" + std::to_string(dim) + " " + dtype.name() +
                  (config.causal ? " causal" : "") + (is_dynamic ? " dynamic" : ""),
         .program = flash_attention_packed(is_dynamic ? dynamic("tokens") : Value(tokens),
                                           is_dynamic ? dynamic("sequences") : Value(sequences), Scalar("longest", i32),
                                           heads, kv_heads, dim, config, dtype),
         .arguments = {input_array({tokens, heads, dim}, dtype, 1, data),
                       input_array({tokens, kv_heads, dim}, dtype, 2, data),
                       input_array({tokens, kv_heads, dim}, dtype, 3, data), offsets, longest,
                       output_array({tokens, heads, dim}, dtype)},
         .check = [causal = config.causal](const auto& arrays, int64_t max_elements) {
           return check_packed(arrays, max_elements, causal);
         }};
  c.flops = 4 * static_cast<double>(heads * dim) * pairs;
  c.bytes = static_cast<double>(2 * tokens * dim * (heads + kv_heads)) * dtype.storage_bits() / 8;
  return c;
}

}  // namespace

std::vector<Case> flash_attention_cases(Size size) {
  if (size == Size::Gpu) {
    return {attention_case({4, 32, 32, 4096, 4096, 128}, {128, 128, false, 256}, bf16, false, Data::Normal),
            attention_case({4, 32, 32, 4096, 4096, 128}, {128, 128, true, 256}, bf16, false, Data::Normal),
            attention_case({4, 32, 32, 4096, 4096, 64}, {128, 128, false, 256}, bf16, false, Data::Normal),
            attention_case({2, 16, 16, 4096, 4096, 256}, {128, 64, false, 256}, bf16, false, Data::Normal),
            attention_case({1, 32, 8, 16384, 16384, 128}, {128, 128, true, 256}, f16, true, Data::Normal)};
  }
  if (size == Size::Benchmark) {
    return {attention_case({2, 8, 8, 2048, 2048, 64}, {256, 128, false}, f32, false),
            attention_case({2, 8, 8, 2048, 2048, 64}, {256, 128, false}, bf16, false),
            attention_case({2, 8, 8, 2048, 2048, 64}, {128, 128, true}, f32, false),
            attention_case({1, 16, 4, 2048, 2048, 64}, {128, 128, true}, bf16, true)};
  }
  std::vector<Case> out;
  for (const bool causal : {false, true}) {
    for (const int64_t length : {1, 17, 67}) {
      out.push_back(attention_case({1, 1, 1, length, length, 16}, {16, 16, causal}, f32, true));
      out.push_back(attention_case({2, 2, 1, length, length, 33}, {16, 32, causal}, bf16, true));
      out.push_back(attention_case({1, 6, 2, length, length, 16}, {32, 16, causal}, f16, true));
    }
    out.push_back(attention_case({1, 2, 1, 17, 17, 33}, {16, 32, causal}, f32, false));
    out.push_back(attention_case({1, 2, 1, 150, 150, 64}, {128, 32, causal, 256}, bf16, false));
  }
  out.push_back(attention_case({1, 3, 1, 5, 71, 24}, {16, 32, false}, f32, true));
  out.push_back(attention_case({1, 3, 1, 71, 5, 24}, {16, 32, false}, f32, true));
  return out;
}

std::vector<Case> packed_attention_cases(Size size) {
  if (size == Size::Gpu) {
    return {packed_case({8192, 5000, 4096, 3333, 2048, 1024, 777, 91}, 32, 8, 128, {128, 128, true, 256}, bf16, true,
                        Data::Normal)};
  }
  if (size == Size::Benchmark) return {packed_case({1024, 700, 333, 91}, 8, 2, 64, {128, 128, true}, f32, true)};
  std::vector<Case> out;
  const std::vector<int64_t> uneven = {17, 1, 50, 0, 33};
  for (const bool causal : {false, true}) {
    out.push_back(packed_case({1}, 4, 2, 20, {16, 32, causal}, f32, true));
    out.push_back(packed_case(uneven, 4, 2, 20, {16, 32, causal}, f32, true));
  }
  out.push_back(packed_case(uneven, 1, 1, 16, {16, 16, true}, f16, true));
  out.push_back(packed_case(uneven, 4, 2, 20, {16, 32, true}, bf16, false));
  return out;
}

}  // namespace examples
