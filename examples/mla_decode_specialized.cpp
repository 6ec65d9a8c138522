// Multi-head latent attention, decoding, with roles written by hand and the work divided by iteration: the scores of a
// block of keys belong to one of two teams in turn, while each team keeps half of the columns of the output and takes
// every block in the program's order. What one team knows of a block goes to the other through one tile in shared
// memory: who writes it next is who has just read it, so it needs a barrier for "ready" and none for "free".
#include <numbers>

#include "mla.h"

namespace examples {
namespace {

using namespace tilewright;

constexpr int64_t kBlock = 64;  // heads and keys
constexpr int64_t kTeam = 128, kWarps = 4;

struct Mla {
  Value batch, heads, keys;
  int64_t dim, pe_dim;
  DType dtype;
};

Program mla_decode_specialized(const Mla& s) {
  const DType dtype = s.dtype;
  const int64_t half = s.dim / 2, bytes = dtype.storage_bits() / 8;
  Tensor Q("Q", {s.batch, s.heads, s.dim}, dtype), Q_pe("Q_pe", {s.batch, s.heads, s.pe_dim}, dtype);
  Tensor KV("KV", {s.batch, s.keys, 1, s.dim}, dtype), K_pe("K_pe", {s.batch, s.keys, 1, s.pe_dim}, dtype);
  Tensor Output("Output", {s.batch, s.heads, s.dim}, dtype);
  const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(s.dim + s.pe_dim));
  return prim_func("mla_decode_specialized", {Q, Q_pe, KV, K_pe, Output}, [&] {
    for (auto [by, bx] : Kernel({ceildiv(s.heads, kBlock), s.batch}, {.threads = 3 * kTeam})) {
      // Halves of the columns; slot i holds the blocks that are team i's.
      auto Q_left = alloc_shared({kBlock, half}, dtype), Q_right = alloc_shared({kBlock, half}, dtype);
      auto Q_rope = alloc_shared({kBlock, s.pe_dim}, dtype);
      auto KV_left = alloc_shared({2, kBlock, half}, dtype), KV_right = alloc_shared({2, kBlock, half}, dtype);
      auto K_rope = alloc_shared({2, kBlock, s.pe_dim}, dtype);
      auto P_shared = alloc_shared({kBlock, kBlock}, dtype);
      auto max_shared = alloc_shared({2, kBlock}, f32), scale_shared = alloc_shared({2, kBlock}, f32);
      auto q_full = alloc_barrier({1});
      auto left_full = alloc_barrier({1, 1}), right_full = alloc_barrier({1, 1}), rope_full = alloc_barrier({1, 1});
      auto left_empty = alloc_barrier({kWarps, kWarps}), right_empty = alloc_barrier({kWarps, kWarps});
      auto rope_empty = alloc_barrier({kWarps, kWarps}), ready = alloc_barrier({kWarps, kWarps});
      const Value blocks = ceildiv(s.keys, kBlock);
      const Value head = by * kBlock;

      ws({2}, [&] { set_max_nreg(24); });
      // Loaders: one for each part of a block, as each part is given back on its own.
      const auto load = [&](int64_t warp, Buffer& full, Buffer& empty, const Tensor& from, Buffer& to, int64_t column,
                            int64_t columns) {
        on_threads(2 * kTeam + 32 * warp, 2 * kTeam + 32 * warp + 32, [&] {
          for (auto j : serial(blocks)) {
            barrier_wait(empty(j % 2), (floordiv(j, 2) % 2) ^ 1);
            mbarrier_arrive_expect_tx(full(j % 2), kBlock * columns * bytes);
            tma_copy(from(bx, slice(j * kBlock, j * kBlock + kBlock), 0, slice(column, column + columns)),
                     to(j % 2, all, all), full(j % 2));
          }
        });
      };
      load(0, left_full, left_empty, KV, KV_left, 0, half);
      load(1, right_full, right_empty, KV, KV_right, half, half);
      load(2, rope_full, rope_empty, K_pe, K_rope, 0, s.pe_dim);
      on_threads(2 * kTeam + 96, 2 * kTeam + 128, [&] {
        mbarrier_arrive_expect_tx(q_full(0), kBlock * (s.dim + s.pe_dim) * bytes);
        tma_copy(Q(bx, slice(head, head + kBlock), slice(0, half)), Q_left, q_full(0));
        tma_copy(Q(bx, slice(head, head + kBlock), slice(half, s.dim)), Q_right, q_full(0));
        tma_copy(Q_pe(bx, slice(head, head + kBlock), all), Q_rope, q_full(0));
      });

      const auto team = [&](int64_t own) {
        const int64_t peer = 1 - own;
        Buffer &Q_own = own == 0 ? Q_left : Q_right, &Q_other = own == 0 ? Q_right : Q_left;
        Buffer &KV_own = own == 0 ? KV_left : KV_right, &KV_other = own == 0 ? KV_right : KV_left;
        Buffer &own_full = own == 0 ? left_full : right_full, &other_full = own == 0 ? right_full : left_full;
        Buffer& own_empty = own == 0 ? left_empty : right_empty;
        ws({own}, [&] {
          set_max_nreg(240);
          auto acc_s = alloc_fragment({kBlock, kBlock}, f32), acc_o = alloc_fragment({kBlock, half}, f32);
          auto P = alloc_fragment({kBlock, kBlock}, dtype);
          auto row_max = alloc_fragment({kBlock}, f32), before = alloc_fragment({kBlock}, f32);
          auto row_scale = alloc_fragment({kBlock}, f32), row_sum = alloc_fragment({kBlock}, f32);
          auto logsum = alloc_fragment({kBlock}, f32);
          const auto arrive = [&](const Tile& barrier) {
            sync_warp();
            If(get_thread_binding() % 32 == 0, [&] { barrier_arrive(barrier); });
          };
          const auto rescale = [&] {
            for (auto i : Parallel(kBlock)) logsum(i) = logsum(i) * row_scale(i);
            for (auto [i, j] : Parallel(kBlock, half)) acc_o(i, j) *= row_scale(i);
          };
          // The scores of an own block, in the order in which its parts are given back.
          const auto scores = [&](const Value& round) {
            barrier_wait(rope_full(own), round);
            wgmma_gemm(Q_rope, K_rope(own, all, all), acc_s, {.transpose_B = true, .clear_accum = true});
            barrier_wait(own_full(own), round);
            wgmma_gemm(Q_own, KV_own(own, all, all), acc_s, {.transpose_B = true});
            barrier_wait(other_full(own), round);
            wgmma_gemm(Q_other, KV_other(own, all, all), acc_s, {.transpose_B = true});
          };
          // O = O * scale + P V of the peer's block. It has waited for what is read here before it told that P is
          // ready.
          const auto take_peer = [&](const Value& round) {
            barrier_wait(ready(peer), round);
            copy(max_shared(peer, all), row_max);
            copy(scale_shared(peer, all), row_scale);
            rescale();
            wgmma_gemm(P_shared, KV_own(peer, all, all), acc_o);
          };
          // `pending`: of the groups of wgmma that may still run, the products with the peer's values.
          const auto take_own = [&](const Value& block, int64_t pending) {
            wait_wgmma(pending);
            arrive(rope_empty(own));
            for (auto [i, j] : Parallel(kBlock, kBlock))
              acc_s(i, j) = if_then_else(block * kBlock + j < s.keys, acc_s(i, j), -infinity(f32));
            copy(row_max, before);
            reduce_max(acc_s, row_max, {.dim = 1, .clear = false});
            for (auto i : Parallel(kBlock)) row_scale(i) = exp2((before(i) - row_max(i)) * scale);
            for (auto [i, j] : Parallel(kBlock, kBlock)) acc_s(i, j) = exp2(acc_s(i, j) * scale - row_max(i) * scale);
            reduce_sum(acc_s, row_sum, {.dim = 1});
            copy(acc_s, P);
            if (pending > 0) {
              wait_wgmma(0);
              arrive(own_empty(peer));
            }
            copy(P, P_shared);
            copy(row_max, max_shared(own, all));
            copy(row_scale, scale_shared(own, all));
            arrive(ready(own));
            rescale();
            for (auto i : Parallel(kBlock)) logsum(i) = logsum(i) + row_sum(i);
            wgmma_gemm(P, KV_own(own, all, all), acc_o);
            wait_wgmma(0);
            arrive(own_empty(own));
          };

          clear(acc_o);
          clear(logsum);
          fill(row_max, -infinity(f32));
          barrier_wait(q_full(0), 0);
          if (own == 0) {  // nobody is in front of the first block
            scores(0);
            take_own(0, 0);
          }
          for (auto t : serial(floordiv(blocks + own - 1, 2))) {
            const Value block = 2 * t + (2 - own), round = floordiv(block, 2) % 2;
            scores(round);
            take_peer(floordiv(block - 1, 2) % 2);
            take_own(block, 1);
          }
          If((blocks - 1) % 2 != own, [&] {
            take_peer(floordiv(blocks - 1, 2) % 2);
            wait_wgmma(0);
          });

          // Sums of both teams' blocks.
          sync_threads(1, 2 * kTeam);
          copy(logsum, max_shared(own, all));
          sync_threads(1, 2 * kTeam);
          copy(max_shared(peer, all), row_sum);
          for (auto i : Parallel(kBlock)) row_scale(i) = 1.0 / (logsum(i) + row_sum(i));
          for (auto [i, j] : Parallel(kBlock, half)) acc_o(i, j) *= row_scale(i);
          copy(acc_o, Q_own);
          tma_store(Q_own, Output(bx, slice(head, head + kBlock), slice(own * half, own * half + half)));
          tma_store_wait();
        });
      };
      team(0);
      team(1);
    }
  });
}

Case specialized_case(MlaShape s, DType dtype, bool is_dynamic, Data data = Data::Uniform) {
  const Mla mla{is_dynamic ? dynamic("batch") : Value(s.batch),
                s.heads,
                is_dynamic ? dynamic("keys") : Value(s.keys),
                s.dim,
                s.pe_dim,
                dtype};
  Case c = mla_case(s, mla_decode_specialized(mla), dtype, is_dynamic, data);
  c.names_instructions = true;
  return c;
}

}  // namespace

std::vector<Case> mla_decode_specialized_cases(Size size) {
  if (size == Size::Gpu) return {specialized_case({128, 128, 8192, 512, 64}, bf16, false, Data::Normal)};
  if (size == Size::Benchmark) return {specialized_case({1, 64, 512, 128, 32}, bf16, false)};
  std::vector<Case> out;
  for (const int64_t keys : {1, 33, 64, 65, 140, 200, 300})
    out.push_back(specialized_case({2, 17, keys, 64, 16}, f16, keys % 2 == 1));
  out.push_back(specialized_case({1, 65, 130, 128, 32}, bf16, true));
  return out;
}

}  // namespace examples
