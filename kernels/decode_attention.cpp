// Attention of one query a sequence against a long history: each block takes a part of the keys, and a second program
// combines the parts by the logarithms of their sums.
#include "attention.h"

#include <algorithm>

namespace tilewright::kernels {

Program decode_attention(const DecodeOptions& o) {
  const AttentionTile t = o.tile;
  const int64_t n = t.n, m = t.m, D = o.dim, E = o.value_dim;
  const int64_t across = tilewright::ceildiv(o.group, m);  // blocks of the queries that share a head of keys
  const Value batch = dynamic("batch"), kv_heads = dynamic("kv_heads"), keys = dynamic("keys"),
              parts = dynamic("parts");
  const Value pages = dynamic("pages"), most_pages = dynamic("most_pages");
  const Value scale_of_scores = Scalar("scale", f32), left = Scalar("left", i32);
  const auto cache = [&](const char* name, int64_t dim) {
    return o.page ? Tensor(name, {pages, o.page, kv_heads, dim}, o.dtype)
                  : Tensor(name, {batch, keys, kv_heads, dim}, o.dtype);
  };
  const Tensor Q("Q", {batch, kv_heads, o.group, D}, o.dtype), K = cache("K", D), V = cache("V", E);
  const Tensor table("table", {batch, most_pages}, i32), lengths("lengths", {batch}, i32);
  const Tensor sink("sink", {kv_heads, o.group}, f32);
  const Tensor O("O", {parts, batch, kv_heads, o.group, E}, o.result),
      LSE("LSE", {parts, batch, kv_heads, o.group}, f32);

  const auto body = [&] {
    for (auto [p, g, b] : Kernel({parts, kv_heads * across, batch}, {.threads = t.threads})) {
      auto Q_shared = alloc_shared({m, D}, o.dtype);
      auto K_shared = alloc_shared({n, D}, o.dtype), V_shared = alloc_shared({n, E}, o.dtype);
      auto K_last = alloc_shared({n, D}, o.dtype), V_last = alloc_shared({n, E}, o.dtype);
      auto S = alloc_fragment({m, n}, f32);
      auto P = alloc_fragment({m, n}, o.dtype);
      auto O_local = alloc_fragment({m, E}, f32);
      auto largest = alloc_fragment({m}, f32), before = alloc_fragment({m}, f32), shift = alloc_fragment({m}, f32);
      auto kept = alloc_fragment({m}, f32), part = alloc_fragment({m}, f32), sum = alloc_fragment({m}, f32);
      Value head = floordiv(g, across), row = g % across * m, scale = scale_of_scores * kLog2E;
      const Value room = o.page ? Value(most_pages * o.page) : keys;
      Value length = o.lengths ? Value(clamp(lengths(b), 0, room)) : room;
      Value first = o.left ? Value(max(length - 1 - left, 0)) : Value(0);  // key
      copy(Q(b, head, row, 0), Q_shared);
      clear(O_local);
      fill(largest, -infinity(f32));
      clear(sum);
      if (o.sink)  // counts once
        If(p == 0, [&] {
          for (auto i : Parallel(m)) {
            largest(i) = sink(head, row + i) / scale_of_scores;
            sum(i) = if_then_else(sink(head, row + i) == -infinity(f32), 0.0, 1.0);
          }
        });
      // A tile of keys, of which those in front of `first` or from `length` on do not count.
      const auto step = [&](const Value& key, const Buffer& K_tile, const Buffer& V_tile, bool last) {
        gemm(Q_shared, K_tile, S, {.transpose_B = true, .clear_accum = true});
        if (o.left || last)
          for (auto [i, j] : Parallel(m, n))
            S(i, j) = if_then_else(key + j >= first && key + j < length, S(i, j), -infinity(f32));
        copy(largest, before);
        reduce_max(S, largest, {.dim = 1, .clear = false});
        for (auto i : Parallel(m)) {
          shift(i) = if_then_else(largest(i) == -infinity(f32), 0.0, largest(i) * scale);
          kept(i) = exp2(before(i) * scale - shift(i));
        }
        for (auto [i, j] : Parallel(m, n)) S(i, j) = exp2(S(i, j) * scale - shift(i));
        reduce_sum(S, part, {.dim = 1});
        for (auto i : Parallel(m)) sum(i) = sum(i) * kept(i) + part(i);
        copy(S, P);
        for (auto [i, j] : Parallel(m, E)) O_local(i, j) *= kept(i);
        gemm(P, V_tile, O_local);
      };
      Value whole = floordiv(length, n), begin = floordiv(first, n), share = ceildiv(max(whole - begin, 0), parts);
      for (auto k : Pipelined(begin + share * p, min(begin + share * (p + 1), whole), {.num_stages = t.stages})) {
        Value key = k * n;
        Value of = o.page ? Value(table(b, floordiv(key, o.page))) : b, at = o.page ? Value(key % o.page) : key;
        copy(K(of, slice(at, at + n), head, all), K_shared);
        copy(V(of, slice(at, at + n), head, all), V_shared);
        step(key, K_shared, V_shared, false);
      }
      // What lies behind a sequence may be anything, NaN too, which a weight of 0 does not take away: it is not read.
      If(p == parts - 1 && length % n > 0, [&] {
        const auto load = [&](const Tensor& from, const Buffer& to, int64_t dim) {
          for (auto [j, d] : Parallel(n, dim)) {
            Value key = min(whole * n + j, length - 1);
            const Value of = o.page ? Value(table(b, floordiv(key, o.page))) : b;
            to(j, d) = from(of, o.page ? Value(key % o.page) : key, head, d);
          }
        };
        load(K, K_last, D), load(V, V_last, E);
        step(whole * n, K_last, V_last, true);
      });
      for (auto [i, j] : Parallel(m, E)) O_local(i, j) = if_then_else(sum(i) == 0, 0.0, O_local(i, j) / sum(i));
      for (auto i : Parallel(m)) part(i) = (largest(i) * scale + log2(sum(i))) * kLn2;
      copy(O_local, O(p, b, head, row, 0));
      copy(part, LSE(p, b, head, row));
    }
  };
  if (o.page)
    return prim_func("decode_attention", {Q, K, V, sink, table, lengths, O, LSE, scale_of_scores, left}, body);
  return prim_func("decode_attention", {Q, K, V, sink, lengths, O, LSE, scale_of_scores, left}, body);
}

Program combine(const CombineOptions& o) {
  const Value parts = dynamic("parts"), rows = dynamic("rows");
  const Tensor X("X", {parts, rows, o.dim}, f32), logs("logs", {parts, rows}, f32);
  const Tensor Y("Y", {rows, o.dim}, o.result), LSE("LSE", {rows}, f32);
  return prim_func("combine", {X, logs, Y, LSE}, [&] {
    for (auto by : Kernel(ceildiv(rows, o.rows), {.threads = 128})) {
      auto x = alloc_fragment({o.rows, o.dim}, f32), y = alloc_fragment({o.rows, o.dim}, f32);
      auto log = alloc_fragment({o.rows}, f32), largest = alloc_fragment({o.rows}, f32);
      auto weight = alloc_fragment({o.rows}, f32), sum = alloc_fragment({o.rows}, f32);
      Value row = by * o.rows;
      clear(y);
      clear(sum);
      fill(largest, -infinity(f32));
      for (auto p : serial(parts)) {
        copy(logs(p, row), log);
        for (auto i : Parallel(o.rows)) largest(i) = max(largest(i), log(i));
      }
      for (auto p : serial(parts)) {
        copy(logs(p, row), log);
        copy(X(p, row, 0), x);
        for (auto i : Parallel(o.rows)) {
          weight(i) = if_then_else(log(i) == -infinity(f32), 0.0, exp2((log(i) - largest(i)) * kLog2E));
          sum(i) = sum(i) + weight(i);
        }
        for (auto [i, j] : Parallel(o.rows, o.dim)) y(i, j) = y(i, j) + x(i, j) * weight(i);
      }
      for (auto [i, j] : Parallel(o.rows, o.dim)) y(i, j) = if_then_else(sum(i) == 0, 0.0, y(i, j) / sum(i));
      for (auto i : Parallel(o.rows)) log(i) = largest(i) + log2(sum(i)) * kLn2;
      copy(y, Y(row, 0));
      copy(log, LSE(row));
    }
  });
}

std::vector<AttentionTile> decode_attention_tiles(const DecodeOptions& o) {
  const int64_t bytes = o.dtype.storage_bits() / 8;
  std::vector<AttentionTile> out;
  for (const int64_t n : {64, 32, 16}) {
    if (o.page % n || (n == 16 && !out.empty())) continue;
    // Each of four warps has 8 columns of both products, or a warpgroup 64 rows of them; a spare row costs no time.
    const int64_t m = n == 16 || o.value_dim % 32 || o.group > 32 ? 64 : o.group > 16 ? 32 : 16;
    const int64_t room = kSharedBytes - 16 * 1024 - m * (o.dim * bytes + o.value_dim * 4);
    const int64_t step = n * (o.dim + o.value_dim) * bytes;
    const int64_t stages = std::min<int64_t>(room / step - 1, 256 / n);  // and the last tile
    if (stages > 1 || (stages > 0 && n == 16)) out.push_back({m, n, stages, 128});
  }
  return out;
}

}  // namespace tilewright::kernels
