// Attention, forward, with roles written by hand: one group of 128 threads brings queries, keys and values by TMA, two
// others compute, and barriers say which slots are full and which are empty.
#include <numbers>

#include "attention.h"

namespace examples {
namespace {

using namespace tilewright;

struct Config {
  int64_t block_M, block_N;
  bool causal;
};

Program attention_roles(Value batch, int64_t heads, Value length, int64_t dim, Config c, DType dtype) {
  Tensor Q("Q", {batch, heads, length, dim}, dtype), K("K", {batch, heads, length, dim}, dtype);
  Tensor V("V", {batch, heads, length, dim}, dtype), O("O", {batch, heads, length, dim}, dtype);
  const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(dim));
  constexpr int64_t stages = 2, computing = 256;
  const int64_t row_bytes = dim * dtype.storage_bits() / 8;
  return prim_func("attention_roles", {Q, K, V, O}, [&] {
    for (auto [bx, h, b] : Kernel({ceildiv(length, c.block_M), heads, batch}, {.threads = computing + 128})) {
      auto Q_shared = alloc_shared({c.block_M, dim}, dtype);
      auto K_shared = alloc_shared({stages, c.block_N, dim}, dtype);
      auto V_shared = alloc_shared({stages, c.block_N, dim}, dtype);
      auto acc_s = alloc_fragment({c.block_M, c.block_N}, f32);
      auto acc_s_cast = alloc_fragment({c.block_M, c.block_N}, dtype);
      auto acc_o = alloc_fragment({c.block_M, dim}, f32);
      auto scores_max = alloc_fragment({c.block_M}, f32);
      auto scores_max_prev = alloc_fragment({c.block_M}, f32);
      auto scores_scale = alloc_fragment({c.block_M}, f32);
      auto scores_sum = alloc_fragment({c.block_M}, f32);
      auto logsum = alloc_fragment({c.block_M}, f32);
      auto Q_full = alloc_barrier({1}), K_full = alloc_barrier({1, 1}), V_full = alloc_barrier({1, 1});
      auto K_empty = alloc_barrier({computing, computing}), V_empty = alloc_barrier({computing, computing});
      Value last = c.causal ? Value(min(length, (bx + 1) * c.block_M)) : length;
      Value blocks = ceildiv(last, c.block_N);
      ws({2}, [&] {
        set_max_nreg(40);
        mbarrier_arrive_expect_tx(Q_full(0), c.block_M * row_bytes);
        tma_copy(Q(b, h, bx * c.block_M, 0), Q_shared, Q_full(0));
        for (auto k : serial(blocks)) {
          Value slot = k % stages, round = floordiv(k, stages) % 2;
          barrier_wait(K_empty(slot), round ^ 1);
          mbarrier_arrive_expect_tx(K_full(slot), c.block_N * row_bytes);
          tma_copy(K(b, h, k * c.block_N, 0), K_shared(slot, all, all), K_full(slot));
          barrier_wait(V_empty(slot), round ^ 1);
          mbarrier_arrive_expect_tx(V_full(slot), c.block_N * row_bytes);
          tma_copy(V(b, h, k * c.block_N, 0), V_shared(slot, all, all), V_full(slot));
        }
      });
      ws({0, 1}, [&] {
        set_max_nreg(232);
        clear(acc_o);
        clear(logsum);
        fill(scores_max, -infinity(f32));
        barrier_wait(Q_full(0), 0);
        for (auto k : serial(blocks)) {
          Value slot = k % stages, round = floordiv(k, stages) % 2;
          barrier_wait(K_full(slot), round);
          gemm(Q_shared, K_shared(slot, all, all), acc_s,
               {.transpose_B = true, .policy = GemmWarpPolicy::FullRow, .clear_accum = true});
          barrier_arrive(K_empty(slot));
          // Tiles at the diagonal and at the end.
          Value first = k * c.block_N;
          Value masked = c.causal ? Value(first + (c.block_N - 1) > bx * c.block_M || first + c.block_N > length)
                                  : Value(first + c.block_N > length);
          If(masked, [&] {
            for (auto [i, j] : Parallel(c.block_M, c.block_N)) {
              acc_s(i, j) = if_then_else(
                  c.causal ? Value(first + j < min(length, bx * c.block_M + i + 1)) : Value(first + j < length),
                  acc_s(i, j), -infinity(f32));
            }
          });
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
          barrier_wait(V_full(slot), round);
          gemm(acc_s_cast, V_shared(slot, all, all), acc_o, {.policy = GemmWarpPolicy::FullRow});
          barrier_arrive(V_empty(slot));
        }
        for (auto [i, j] : Parallel(c.block_M, dim)) acc_o(i, j) /= logsum(i);
        copy(acc_o, O(b, h, bx * c.block_M, 0));
      });
    }
  });
}

struct Shape {
  int64_t batch, heads, length, dim;
};

Case roles_case(Shape s, Config config, DType dtype, bool is_dynamic, Data data = Data::Uniform) {
  const auto array = [&](uint64_t seed) { return input_array({s.batch, s.heads, s.length, s.dim}, dtype, seed, data); };
  Case c{.shape = std::to_string(s.batch) + "x" + std::to_string(s.heads) + "x" + std::to_string(s.length) + "x" +
                  std::to_string(s.dim) + " " + dtype.name() + (config.causal ? " causal" : "") +
                  (is_dynamic ? " dynamic" : ""),
         .program = attention_roles(is_dynamic ? dynamic("batch") : Value(s.batch), s.heads,
                                    is_dynamic ? dynamic("length") : Value(s.length), s.dim, config, dtype),
         .arguments = {array(1), array(2), array(3), output_array({s.batch, s.heads, s.length, s.dim}, dtype)},
         .check = [causal = config.causal](const auto& arrays, int64_t max_elements) {
           return check_flash_attention(arrays, max_elements, causal);
         }};
  const double elements = static_cast<double>(s.batch * s.heads * s.length * s.dim);
  c.flops = 4 * elements * static_cast<double>(s.length) * (config.causal ? 0.5 : 1);
  c.bytes = 4 * elements * dtype.storage_bits() / 8;
  c.names_instructions = true;
  return c;
}

}  // namespace

std::vector<Case> specialized_attention_cases(Size size) {
  if (size == Size::Gpu) {
    return {roles_case({4, 32, 4096, 128}, {128, 128, false}, bf16, false, Data::Normal),
            roles_case({4, 32, 4096, 128}, {128, 128, true}, f16, true, Data::Normal)};
  }
  if (size == Size::Benchmark) return {roles_case({1, 2, 256, 64}, {128, 64, false}, f16, false)};
  std::vector<Case> out;
  for (const bool causal : {false, true}) {
    for (const int64_t length : {1, 17, 67}) out.push_back(roles_case({1, 2, length, 16}, {32, 32, causal}, f32, true));
    out.push_back(roles_case({2, 1, 150, 64}, {128, 64, causal}, bf16, true));
    out.push_back(roles_case({1, 1, 150, 32}, {128, 32, causal}, f16, false));
  }
  return out;
}

}  // namespace examples
