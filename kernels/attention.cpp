// Attention: the scores of a block of queries never leave the chip, keys and values come in blocks, and sums so far are
// rescaled when a larger score appears.
#include "attention.h"

#include <algorithm>
#include <array>

namespace tilewright::kernels {

Program attention(const AttentionOptions& o) {
  const AttentionTile t = o.tile;
  const int64_t m = t.m, n = t.n;
  const AttentionCall c(o);
  const Tensor Q = c.tensor("Q", c.queries, o.group, o.dim), K = c.tensor("K", c.keys, 1, o.dim);
  const Tensor V = c.tensor("V", c.keys, 1, o.value_dim), O = c.tensor("O", c.queries, o.group, o.value_dim);
  const Tensor sink("sink", {c.kv_heads * o.group}, f32), LSE = c.row_tensor("LSE");

  const auto body = [&] {
    const Value longest = o.packed ? c.longest_query : c.queries;
    for (auto [bx, h, b] : Kernel({ceildiv(longest, m), c.kv_heads * o.group, c.batch}, {.threads = t.threads})) {
      auto Q_shared = alloc_shared({m, o.dim}, o.dtype);
      auto K_shared = alloc_shared({n, o.dim}, o.dtype);
      auto V_shared = alloc_shared({n, o.value_dim}, o.dtype);
      auto S = alloc_fragment({m, n}, f32);
      auto P = alloc_fragment({m, n}, o.dtype);
      auto O_local = alloc_fragment({m, o.value_dim}, f32);
      auto largest = alloc_fragment({m}, f32), before = alloc_fragment({m}, f32);  // scores of a row, unscaled
      auto shift = alloc_fragment({m}, f32), kept = alloc_fragment({m}, f32);
      auto part = alloc_fragment({m}, f32), sum = alloc_fragment({m}, f32);
      const AttentionSequence s(c, b);
      Value kv_head = floordiv(h, o.group), first = bx * m, scale = c.scale * kLog2E;
      if (o.packed) If(first >= s.queries, [&] { thread_return(); });
      copy(c.tile(Q, b, h, s.query_start + first, m), Q_shared);
      clear(O_local);
      if (o.sink) {
        Value score = sink(h);
        fill(largest, score / c.scale);
        fill(sum, if_then_else(score == -infinity(f32), 0.0, 1.0));
      } else {
        fill(largest, -infinity(f32));
        clear(sum);
      }
      const Value begin = floordiv(s.first_key(first), n), end = ceildiv(s.last_key(first, m), n);
      for (auto k : Pipelined(begin, end, {.num_stages = t.stages})) {
        Value key = k * n;
        copy(c.tile(K, b, kv_head, s.key_start + key, n), K_shared);
        gemm(Q_shared, K_shared, S, {.transpose_B = true, .policy = GemmWarpPolicy::FullRow, .clear_accum = true});
        If(s.masked(first, m, key, n), [&] {
          for (auto [i, j] : Parallel(m, n))
            S(i, j) = if_then_else(s.sees(first + i, key + j), S(i, j), -infinity(f32));
        });
        copy(c.tile(V, b, kv_head, s.key_start + key, n), V_shared);
        copy(largest, before);
        reduce_max(S, largest, {.dim = 1, .clear = false});
        // A row that has seen no key yet keeps zeros.
        for (auto i : Parallel(m)) {
          shift(i) = if_then_else(largest(i) == -infinity(f32), 0.0, largest(i) * scale);
          kept(i) = exp2(before(i) * scale - shift(i));
        }
        for (auto [i, j] : Parallel(m, n)) S(i, j) = exp2(S(i, j) * scale - shift(i));
        reduce_sum(S, part, {.dim = 1});
        for (auto i : Parallel(m)) sum(i) = sum(i) * kept(i) + part(i);
        copy(S, P);
        for (auto [i, j] : Parallel(m, o.value_dim)) O_local(i, j) *= kept(i);
        gemm(P, V_shared, O_local, {.policy = GemmWarpPolicy::FullRow});
      }
      for (auto i : Parallel(m)) {
        part(i) = (largest(i) * scale + log2(sum(i))) * kLn2;
        kept(i) = if_then_else(sum(i) == 0, 0.0, 1.0 / sum(i));
      }
      for (auto [i, j] : Parallel(m, o.value_dim)) O_local(i, j) *= kept(i);
      if (o.packed) {  // rows behind the sequence are those of the next one
        for (auto [i, j] : Parallel(m, o.value_dim))
          If(first + i < s.queries, [&] { O(s.query_start + first + i, h, j) = O_local(i, j); });
        for (auto i : Parallel(m)) If(first + i < s.queries, [&] { LSE(h, s.query_start + first + i) = part(i); });
      } else {
        copy(O_local, c.tile(O, b, h, first, m));
        copy(part, LSE(b, h, first));
      }
    }
  };
  if (o.packed)
    return prim_func("attention",
                     {Q, K, V, sink, c.query_starts, c.key_starts, O, LSE, c.longest_query, c.scale, c.left, c.right},
                     body);
  return prim_func("attention", {Q, K, V, sink, O, LSE, c.scale, c.left, c.right}, body);
}

std::vector<AttentionTile> attention_tiles(const AttentionOptions& o) {
  const int64_t bytes = o.dtype.storage_bits() / 8;
  std::vector<AttentionTile> out;
  for (const auto& [m, n, threads] : {std::array<int64_t, 3>{192, 128, 384},
                                      {128, 128, 256},
                                      {128, 96, 256},
                                      {128, 64, 256},
                                      {64, 128, 128},
                                      {64, 64, 128},
                                      {64, 32, 128}}) {
    const AttentionTile tile{m, n, 2, threads};
    if ((m * o.dim + 2 * n * (o.dim + o.value_dim)) * bytes > kSharedBytes) continue;
    if (n * o.value_dim > 128 * 128 + (m < 128 ? 128 * 64 : 0)) continue;
    // Three warpgroups have 160 registers a thread, which do for 64 dimensions without masks (causal, 16384 on an H200:
    // 2485 us for 2372).
    const bool masks = o.causal || o.left || o.right || o.packed;
    if (m > 128 && (masks || std::max(o.dim, o.value_dim) > 64)) continue;
    out.push_back(tile);
  }
  return out;
}

}  // namespace tilewright::kernels
