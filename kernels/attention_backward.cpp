// The gradients of attention. Launches: sums of each query's row; the five products, a block of keys each, queries in
// turn; the queries' gradients, summed in float32 by all blocks, rounded.
#include "attention.h"

namespace tilewright::kernels {
namespace {

// Columns of a tile with rows of `dim` elements: two warpgroups have a half each, of whole panels of shared memory.
// 80 dimensions as one warpgroup has them take 1.24 times as long on an H200, 112 1.45 times; halves of 224 1.3 times
// as long as of 256.
int64_t columns_of_tiles(int64_t dim, DType dtype) {
  if (dtype.storage_bits() > 16) return dim;
  return dim > 192 ? 256 : (dim + 31) / 32 * 32;
}

// What the launches hand on. Of each block of queries a row: logarithms, to base 2, and dot products of output and
// gradient; packed sequences have room for a block more each.
struct Scratch {
  Scratch(const AttentionCall& c, int64_t dim)
      : o(c.o),
        rows(o.packed ? alloc_global({1, c.kv_heads * o.group, floordiv(c.queries, o.tile.m) + c.batch, 2 * o.tile.m},
                                     f32, "rows")
                      : alloc_global({c.batch, c.kv_heads * o.group, ceildiv(c.queries, o.tile.m), 2 * o.tile.m}, f32,
                                     "rows")),
        dQ_sum(o.packed        ? alloc_global({c.queries, c.kv_heads * o.group, dim}, f32, "dQ_sum")
               : o.heads_first ? alloc_global({c.batch, c.kv_heads * o.group, c.queries, dim}, f32, "dQ_sum")
                               : alloc_global({c.batch, c.queries, c.kv_heads * o.group, dim}, f32, "dQ_sum")) {}
  // The row of block q of a sequence's queries.
  Value row(const AttentionSequence& s, const Value& b, const Value& q) const {
    return o.packed ? Value(floordiv(s.query_start, o.tile.m) + b + q) : q;
  }
  void clear_sum(const Value& b, const Value& h, const Value& query, const Value& d) const {
    if (o.packed)
      dQ_sum(query, h, d) = 0.0;
    else if (o.heads_first)
      dQ_sum(b, h, query, d) = 0.0;
    else
      dQ_sum(b, query, h, d) = 0.0;
  }
  const AttentionOptions& o;
  const Buffer rows, dQ_sum;
};

}  // namespace

Program attention_backward(const AttentionOptions& o) {
  const int64_t m = o.tile.m, n = o.tile.n, D = columns_of_tiles(o.dim, o.dtype);
  const int64_t E = columns_of_tiles(o.value_dim, o.dtype);
  const Index of_D = slice(0, D), of_E = slice(0, E);
  const AttentionCall c(o);
  const Tensor Q = c.tensor("Q", c.queries, o.group, o.dim), K = c.tensor("K", c.keys, 1, o.dim);
  const Tensor V = c.tensor("V", c.keys, 1, o.value_dim), O = c.tensor("O", c.queries, o.group, o.value_dim);
  const Tensor dO = c.tensor("dO", c.queries, o.group, o.value_dim), dQ = c.tensor("dQ", c.queries, o.group, o.dim);
  const Tensor dK = c.tensor("dK", c.keys, 1, o.dim), dV = c.tensor("dV", c.keys, 1, o.value_dim);
  const Tensor LSE = c.row_tensor("LSE"), dLSE = c.row_tensor("dLSE");

  const auto sums_of_rows = [&](const Scratch& scratch) {
    const Value longest = o.packed ? c.longest_query : c.queries;
    for (auto [bx, h, b] : Kernel({ceildiv(longest, m), c.kv_heads * o.group, c.batch}, {.threads = 128})) {
      auto product = alloc_fragment({m, o.value_dim}, f32), gradient = alloc_fragment({m, o.value_dim}, f32);
      auto sums = alloc_fragment({m}, f32);
      const AttentionSequence s(c, b);
      Value first = bx * m, at = o.packed ? Value(0) : b, row = scratch.row(s, b, bx);
      if (o.packed) If(first >= s.queries, [&] { thread_return(); });
      copy(c.tile(O, b, h, s.query_start + first, m), product);
      copy(c.tile(dO, b, h, s.query_start + first, m), gradient);
      for (auto [i, j] : Parallel(m, o.value_dim)) product(i, j) *= gradient(i, j);
      reduce_sum(product, sums, {.dim = 1});
      for (auto i : Parallel(m)) {
        Value query = s.query_start + first + i;
        Value log = o.packed ? Value(LSE(h, query)) : Value(LSE(b, h, query));
        Value none = first + i >= s.queries || log == -infinity(f32);  // such a row's weights are 0
        Value of_log = !o.dlse ? Value(0.0) : o.packed ? Value(dLSE(h, query)) : Value(dLSE(b, h, query));
        scratch.rows(at, h, row, i) = if_then_else(none, infinity(f32), log * kLog2E);
        scratch.rows(at, h, row, m + i) = if_then_else(none, 0.0, sums(i) - of_log);
      }
      for (auto [i, j] : Parallel(m, D)) scratch.clear_sum(b, h, s.query_start + first + i, j);
    }
  };

  // The transposed scores keep what two of the products read in the registers of the threads that made it, unless
  // warpgroups share rows of keys: sums of long rows do not fit otherwise.
  const bool split = n < o.tile.threads / 2;
  // dS of a turn is written while other warpgroups still read the last one's, where there is room for both.
  const int64_t bytes = o.dtype.storage_bits() / 8;
  const int64_t beside = ((n + 2 * m) * (D + E) + (split ? n * m : 0)) * bytes + 4 * m * (D + 2);
  const int64_t slots = beside + 2 * n * m * bytes <= kSharedBytes ? 2 : 1;
  // Sums for queries leave by TMA from shared memory, where there is room for all of a block's, or for so many columns
  // beside one block of dO: 4 * 16 heads of 4096 positions, 256 dimensions take 7052 us on an H200, 9530 without.
  const bool in_parts = beside > kSharedBytes && D > 128;
  // More than 32 elements a thread spill beside a product of rounded weights that is under way (ptxas 13.0).
  const bool early = m * n <= 32 * o.tile.threads;
  const auto products = [&](const Scratch& scratch) {
    const Value longest = o.packed ? c.longest_key : c.keys;
    for (auto [bx, h, b] : Kernel({ceildiv(longest, n), c.kv_heads, c.batch}, {.threads = o.tile.threads})) {
      auto K_shared = alloc_shared({n, D}, o.dtype), V_shared = alloc_shared({n, E}, o.dtype);
      auto Q_shared = alloc_shared({m, D}, o.dtype), dO_shared = alloc_shared({m, E}, o.dtype, "dO_shared");
      auto rows_shared = alloc_shared({2 * m}, f32);
      auto dS_shared = alloc_shared({slots, n, m}, o.dtype);
      auto P = alloc_fragment({n, m}, f32), dP = alloc_fragment({n, m}, f32);
      auto P_cast = split ? alloc_shared({n, m}, o.dtype, "P_cast") : alloc_fragment({n, m}, o.dtype, "P_cast");
      auto dS_cast = alloc_fragment({n, m}, o.dtype);
      auto dK_local = alloc_fragment({n, D}, f32), dV_local = alloc_fragment({n, E}, f32);
      const AttentionSequence s(c, b);
      if (in_parts) annotate_plan("ring dO_shared slots=1");
      Value first = bx * n, scale = c.scale * kLog2E;
      if (o.packed) If(first >= s.keys, [&] { thread_return(); });
      copy(c.tile(K, b, h, s.key_start + first, n, of_D), K_shared);
      copy(c.tile(V, b, h, s.key_start + first, n, of_E), V_shared);
      clear(dK_local);
      clear(dV_local);
      const Value begin = floordiv(s.first_query(first), m), end = ceildiv(s.last_query(first, n), m);
      for (auto g : serial(o.group)) {
        Value head = h * o.group + g;
        for (auto q : Pipelined(begin, end, {.num_stages = o.tile.stages})) {
          Value query = q * m;
          copy(c.tile(Q, b, head, s.query_start + query, m, of_D), Q_shared);
          copy(c.tile(dO, b, head, s.query_start + query, m, of_E), dO_shared);
          copy(scratch.rows(o.packed ? Value(0) : b, head, scratch.row(s, b, q), 0), rows_shared);
          gemm(K_shared, Q_shared, P, {.transpose_B = true, .policy = GemmWarpPolicy::FullRow, .clear_accum = true});
          gemm(V_shared, dO_shared, dP, {.transpose_B = true, .policy = GemmWarpPolicy::FullRow, .clear_accum = true});
          If(s.masked(query, m, first, n), [&] {
            for (auto [i, j] : Parallel(n, m))
              P(i, j) = if_then_else(s.sees(query + j, first + i), P(i, j), -infinity(f32));
          });
          for (auto [i, j] : Parallel(n, m)) P(i, j) = exp2(P(i, j) * scale - rows_shared(j));
          const auto make_dS = [&] {
            for (auto [i, j] : Parallel(n, m)) dP(i, j) = P(i, j) * (dP(i, j) - rows_shared(m + j));
          };
          if (!early) make_dS();
          copy(P, P_cast);
          if (early) {  // the product with dO is under way while dS is made and stored
            gemm(P_cast, dO_shared, dV_local, {.policy = GemmWarpPolicy::FullRow});
            make_dS();
          }
          const Region dS = dS_shared(floormod(q, slots), all, all);
          copy(dP, dS_cast);
          copy(dS_cast, dS);
          if (!early) gemm(P_cast, dO_shared, dV_local, {.policy = GemmWarpPolicy::FullRow});
          const auto add_dQ = [&](int64_t begin, int64_t end, const auto& meanwhile) {
            const Index columns = slice(begin, end);
            auto dQ_local = alloc_fragment({m, end - begin}, f32, "dQ_local");
            gemm(dS, K_shared(all, columns), dQ_local, {.transpose_A = true, .clear_accum = true});
            meanwhile();
            atomic_add(c.tile(scratch.dQ_sum, b, head, s.query_start + query, m, columns), dQ_local);
          };
          const auto add_dK = [&] {
            gemm(split ? dS : Tile(dS_cast), Q_shared, dK_local, {.policy = GemmWarpPolicy::FullRow});
          };
          add_dQ(0, in_parts ? 128 : D, add_dK);
          if (in_parts) add_dQ(128, D, [] {});
        }
      }
      for (auto [i, j] : Parallel(n, D)) dK_local(i, j) *= c.scale;
      if (o.packed) {  // rows behind the sequence are those of the next one
        for (auto [i, j] : Parallel(n, o.dim))
          If(first + i < s.keys, [&] { dK(s.key_start + first + i, h, j) = dK_local(i, j); });
        for (auto [i, j] : Parallel(n, o.value_dim))
          If(first + i < s.keys, [&] { dV(s.key_start + first + i, h, j) = dV_local(i, j); });
      } else {
        copy(dV_local, c.tile(dV, b, h, first, n, of_E));
        copy(dK_local, c.tile(dK, b, h, first, n, of_D));
      }
    }
  };

  const auto rounded = [&](const Scratch& scratch) {
    for (auto [bx, h, b] :
         Kernel({ceildiv(c.queries, m), c.kv_heads * o.group, o.packed ? Value(1) : c.batch}, {.threads = 128})) {
      auto sums = alloc_fragment({m, D}, f32);
      copy(c.tile(scratch.dQ_sum, b, h, bx * m, m), sums);
      for (auto [i, j] : Parallel(m, D)) sums(i, j) *= c.scale;
      copy(sums, c.tile(dQ, b, h, bx * m, m, of_D));
    }
  };

  const auto body = [&] {
    const Scratch scratch(c, D);
    sums_of_rows(scratch), products(scratch), rounded(scratch);
  };
  if (o.packed)
    return prim_func("attention_backward",
                     {Q, K, V, O, LSE, dO, dLSE, c.query_starts, c.key_starts, dQ, dK, dV, c.longest_query,
                      c.longest_key, c.scale, c.left, c.right},
                     body);
  return prim_func("attention_backward", {Q, K, V, O, LSE, dO, dLSE, dQ, dK, dV, c.scale, c.left, c.right}, body);
}

std::vector<AttentionTile> attention_backward_tiles(const AttentionOptions& o) {
  const int64_t bytes = o.dtype.storage_bits() / 8;
  const int64_t dims = columns_of_tiles(o.dim, o.dtype) + columns_of_tiles(o.value_dim, o.dtype);
  const auto fits = [&](const AttentionTile& t) {
    const int64_t registers = (t.n * dims + 2 * t.m * t.n) / t.threads;  // of sums of dK and dV, of P and dP
    return ((t.n + 2 * t.m) * dims + 3 * t.n * t.m) * bytes <= kSharedBytes && registers <= 192;
  };
  std::vector<AttentionTile> out;
  for (const AttentionTile& t : {AttentionTile{128, 128, 2, 256},
                                 {64, 128, 2, 256},
                                 {64, 64, 2, 256},
                                 {64, 64, 2, 128},
                                 {32, 64, 2, 128},
                                 {16, 32, 2, 128}})
    // Fewer queries a turn take longer wherever more fit (an H200, 64 dimensions: 3458 us for 2927).
    if (fits(t) && (out.empty() || (t.m >= 64 && (t.n != out.back().n || t.threads != out.back().threads))))
      out.push_back(t);
  return out;
}

}  // namespace tilewright::kernels
