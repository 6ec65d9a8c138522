// Multi-head latent attention, decoding. All heads share one compressed history: KV serves as keys and as values, and
// K_pe is the part of the keys that carries positions. A score is the sum of two products.
#include <numbers>

#include "attention.h"
#include "mla.h"

namespace examples {
namespace {

using namespace tilewright;

struct Config {
  int64_t block_H, block_N;
};

Program mla_decode(Value batch, int64_t heads, Value keys, int64_t dim, int64_t pe_dim, Config c, DType dtype) {
  Tensor Q("Q", {batch, heads, dim}, dtype), Q_pe("Q_pe", {batch, heads, pe_dim}, dtype);
  Tensor KV("KV", {batch, keys, 1, dim}, dtype), K_pe("K_pe", {batch, keys, 1, pe_dim}, dtype);
  Tensor Output("Output", {batch, heads, dim}, dtype);
  const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(dim + pe_dim));
  return prim_func("mla_decode", {Q, Q_pe, KV, K_pe, Output}, [&] {
    for (auto [bx, by] : Kernel({batch, ceildiv(heads, c.block_H)}, {.threads = 256})) {
      auto Q_shared = alloc_shared({c.block_H, dim}, dtype);
      auto Q_pe_shared = alloc_shared({c.block_H, pe_dim}, dtype);
      auto KV_shared = alloc_shared({c.block_N, dim}, dtype);
      auto K_pe_shared = alloc_shared({c.block_N, pe_dim}, dtype);
      auto S_shared = alloc_shared({c.block_H, c.block_N}, dtype);
      auto acc_s = alloc_fragment({c.block_H, c.block_N}, f32);
      auto acc_o = alloc_fragment({c.block_H, dim}, f32);
      auto scores_max = alloc_fragment({c.block_H}, f32);
      auto scores_max_prev = alloc_fragment({c.block_H}, f32);
      auto scores_scale = alloc_fragment({c.block_H}, f32);
      auto scores_sum = alloc_fragment({c.block_H}, f32);
      auto logsum = alloc_fragment({c.block_H}, f32);
      copy(Q(bx, by * c.block_H, 0), Q_shared);
      copy(Q_pe(bx, by * c.block_H, 0), Q_pe_shared);
      clear(acc_o);
      clear(logsum);
      fill(scores_max, -infinity(f32));
      for (auto k : Pipelined(ceildiv(keys, c.block_N), {.num_stages = 2})) {
        copy(KV(bx, slice(k * c.block_N, k * c.block_N + c.block_N), 0, all), KV_shared);
        copy(K_pe(bx, slice(k * c.block_N, k * c.block_N + c.block_N), 0, all), K_pe_shared);
        clear(acc_s);
        gemm(Q_shared, KV_shared, acc_s, {.transpose_B = true, .policy = GemmWarpPolicy::FullCol});
        gemm(Q_pe_shared, K_pe_shared, acc_s, {.transpose_B = true, .policy = GemmWarpPolicy::FullCol});
        for (auto [i, j] : Parallel(c.block_H, c.block_N)) {
          acc_s(i, j) = if_then_else(k * c.block_N + j < keys, acc_s(i, j), -infinity(f32));
        }
        copy(scores_max, scores_max_prev);
        reduce_max(acc_s, scores_max, {.dim = 1, .clear = false});
        for (auto i : Parallel(c.block_H)) scores_scale(i) = exp2(scores_max_prev(i) * scale - scores_max(i) * scale);
        for (auto [i, j] : Parallel(c.block_H, c.block_N)) {
          acc_s(i, j) = exp2(acc_s(i, j) * scale - scores_max(i) * scale);
        }
        reduce_sum(acc_s, scores_sum, {.dim = 1});
        copy(acc_s, S_shared);
        for (auto i : Parallel(c.block_H)) logsum(i) = logsum(i) * scores_scale(i) + scores_sum(i);
        for (auto [i, j] : Parallel(c.block_H, dim)) acc_o(i, j) *= scores_scale(i);
        gemm(S_shared, KV_shared, acc_o, {.policy = GemmWarpPolicy::FullCol});
      }
      for (auto [i, j] : Parallel(c.block_H, dim)) acc_o(i, j) /= logsum(i);
      copy(acc_o, Output(bx, by * c.block_H, 0));
    }
  });
}

Check check_mla(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements Q(arrays[0]), Q_pe(arrays[1]), KV(arrays[2]), K_pe(arrays[3]), Output(arrays[4]);
  const int64_t batch = arrays[0].shape(0), heads = arrays[0].shape(1), dim = arrays[0].shape(2),
                pe_dim = arrays[1].shape(2), keys = arrays[2].shape(1);
  Check check;
  for (const int64_t row : sample(batch * heads, std::max<int64_t>(1, max_elements / dim))) {
    const int64_t first = row / heads * keys;
    const AttentionResult expected =
        attention_row({.keys = keys,
                       .score_dim = dim + pe_dim,
                       .value_dim = dim,
                       .query = [&](int64_t d) { return d < dim ? Q[row * dim + d] : Q_pe[row * pe_dim + d - dim]; },
                       .key =
                           [&](int64_t key, int64_t d) {
                             return d < dim ? KV[(first + key) * dim + d] : K_pe[(first + key) * pe_dim + d - dim];
                           },
                       .value = [&](int64_t key, int64_t d) { return KV[(first + key) * dim + d]; },
                       .scale = 1 / std::sqrt(static_cast<double>(dim + pe_dim))},
                      arrays[0].dtype());
    compare_row(check, Output, arrays[4].dtype(), "Output", {batch, heads, dim}, row, expected);
  }
  return check;
}

Case decode_case(MlaShape s, Config config, DType dtype, bool is_dynamic, Data data = Data::Uniform) {
  const Value batch = is_dynamic ? dynamic("batch") : Value(s.batch),
              keys = is_dynamic ? dynamic("keys") : Value(s.keys);
  return mla_case(s, mla_decode(batch, s.heads, keys, s.dim, s.pe_dim, config, dtype), dtype, is_dynamic, data);
}

}  // namespace

Case mla_case(MlaShape s, Program program, DType dtype, bool is_dynamic, Data data) {
  Case c{.shape = std::to_string(s.batch) + "x" + std::to_string(s.heads) + "x1:" + std::to_string(s.keys) + "x" +
                  std::to_string(s.dim) + "+" + std::to_string(s.pe_dim) + " " + dtype.name() +
                  (is_dynamic ? " dynamic" : ""),
         .program = std::move(program),
         .arguments = {input_array({s.batch, s.heads, s.dim}, dtype, 1, data),
                       input_array({s.batch, s.heads, s.pe_dim}, dtype, 2, data),
                       input_array({s.batch, s.keys, 1, s.dim}, dtype, 3, data),
                       input_array({s.batch, s.keys, 1, s.pe_dim}, dtype, 4, data),
                       output_array({s.batch, s.heads, s.dim}, dtype)},
         .check = check_mla};
  c.flops = 2.0 * static_cast<double>(s.batch * s.heads * s.keys * (2 * s.dim + s.pe_dim));
  c.bytes = static_cast<double>(s.batch * (s.keys * (s.dim + s.pe_dim) + s.heads * (2 * s.dim + s.pe_dim))) *
            dtype.storage_bits() / 8;
  c.peer = Peer::openblas_products(s.heads, s.keys, s.dim + s.pe_dim, s.dim, s.batch);
  return c;
}

std::vector<Case> mla_decode_cases(Size size) {
  if (size == Size::Gpu) {
    std::vector<Case> out;
    for (const auto& [heads, config] : {std::pair<int64_t, Config>{128, {64, 64}}, {128, {64, 32}}, {16, {16, 64}}}) {
      out.push_back(decode_case({128, heads, 8192, 512, 64}, config, bf16, false, Data::Normal));
      out.back().shape += " by " + std::to_string(config.block_N) + " keys";
    }
    return out;
  }
  if (size == Size::Benchmark) {
    return {decode_case({4, 128, 1024, 512, 64}, {64, 128}, f32, false),
            decode_case({4, 128, 1024, 512, 64}, {64, 128}, bf16, true)};
  }
  std::vector<Case> out;
  for (const int64_t keys : {1, 33, 70}) {
    out.push_back(decode_case({2, 17, keys, 40, 12}, {16, 32}, f32, true));
    out.push_back(decode_case({1, 5, keys, 512, 64}, {16, 32}, bf16, true));
    out.push_back(decode_case({1, 1, keys, 16, 8}, {16, 16}, f16, true));
  }
  out.push_back(decode_case({2, 17, 33, 40, 12}, {16, 32}, f32, false));
  // Rows for one warpgroup.
  for (const int64_t keys : {1, 130, 200})
    out.push_back(decode_case({2, 70, keys, 64, 16}, {64, 64}, f16, keys != 130));
  return out;
}

}  // namespace examples
