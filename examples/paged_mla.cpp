// Multi-head latent attention, decoding, over histories of different lengths in pages that lie anywhere: a table says
// where. And over a chosen few rows of one history, which each query lists.
#include <numbers>
#include <numeric>

#include "attention.h"

namespace examples {
namespace {

using namespace tilewright;

struct Config {
  int64_t block_H, block_N, page = 64;
};

// What one step over a tile of keys does, for both programs. The tile is the first `dim` columns of the keys (which are
// the values) and the `pe_dim` that carry positions.
class Step {
 public:
  Step(int64_t dim, int64_t pe_dim, const Config& c, DType dtype)
      : KV_shared(alloc_shared({c.block_N, dim}, dtype, "KV_shared")),
        K_pe_shared(alloc_shared({c.block_N, pe_dim}, dtype, "K_pe_shared")),
        Q_shared(alloc_shared({c.block_H, dim}, dtype, "Q_shared")),
        Q_pe_shared(alloc_shared({c.block_H, pe_dim}, dtype, "Q_pe_shared")),
        S_shared_(alloc_shared({c.block_H, c.block_N}, dtype, "S_shared")),
        acc_s_(alloc_fragment({c.block_H, c.block_N}, f32, "acc_s")),
        acc_o_(alloc_fragment({c.block_H, dim}, f32, "acc_o")),
        scores_max_(alloc_fragment({c.block_H}, f32, "scores_max")),
        scores_max_prev_(alloc_fragment({c.block_H}, f32, "scores_max_prev")),
        scores_scale_(alloc_fragment({c.block_H}, f32, "scores_scale")),
        scores_sum_(alloc_fragment({c.block_H}, f32, "scores_sum")),
        logsum_(alloc_fragment({c.block_H}, f32, "logsum")),
        c_(c),
        dim_(dim),
        scale_(std::numbers::log2e / std::sqrt(static_cast<double>(dim + pe_dim))) {
    clear(acc_o_);
    clear(logsum_);
    fill(scores_max_, -1e30);  // below every score, and finite: where a tile holds no key exp2 gives 0 and not NaN
  }
  // `counts(j)`: whether key j of the tile is one.
  void run(const std::function<Value(const Value&)>& counts) const {
    clear(acc_s_);
    gemm(Q_shared, KV_shared, acc_s_, {.transpose_B = true, .policy = GemmWarpPolicy::FullCol});
    gemm(Q_pe_shared, K_pe_shared, acc_s_, {.transpose_B = true, .policy = GemmWarpPolicy::FullCol});
    for (auto [i, j] : Parallel(c_.block_H, c_.block_N)) {
      acc_s_(i, j) = if_then_else(counts(j), acc_s_(i, j), -infinity(f32));
    }
    copy(scores_max_, scores_max_prev_);
    reduce_max(acc_s_, scores_max_, {.dim = 1, .clear = false});
    for (auto i : Parallel(c_.block_H)) scores_scale_(i) = exp2((scores_max_prev_(i) - scores_max_(i)) * scale_);
    for (auto [i, j] : Parallel(c_.block_H, c_.block_N)) {
      acc_s_(i, j) = exp2(acc_s_(i, j) * scale_ - scores_max_(i) * scale_);
    }
    reduce_sum(acc_s_, scores_sum_, {.dim = 1});
    copy(acc_s_, S_shared_);
    for (auto i : Parallel(c_.block_H)) logsum_(i) = logsum_(i) * scores_scale_(i) + scores_sum_(i);
    for (auto [i, j] : Parallel(c_.block_H, dim_)) acc_o_(i, j) *= scores_scale_(i);
    gemm(S_shared_, KV_shared, acc_o_, {.policy = GemmWarpPolicy::FullCol});
  }
  // A query that sees no key gets zeros.
  const Buffer& result() const {
    for (auto [i, j] : Parallel(c_.block_H, dim_)) {
      acc_o_(i, j) = if_then_else(logsum_(i) > 0, acc_o_(i, j) / logsum_(i), 0.0);
    }
    return acc_o_;
  }
  const Buffer KV_shared, K_pe_shared, Q_shared, Q_pe_shared;

 private:
  const Buffer S_shared_, acc_s_, acc_o_, scores_max_, scores_max_prev_, scores_scale_, scores_sum_, logsum_;
  const Config c_;
  const int64_t dim_;
  const double scale_;
};

// Key k of sequence b is row k % page of page pages_of[b, k / page].
Program paged_mla_decode(Value batch, int64_t heads, Value pages, Value most_pages, int64_t dim, int64_t pe_dim,
                         Config c, DType dtype) {
  Tensor Q("Q", {batch, heads, dim}, dtype), Q_pe("Q_pe", {batch, heads, pe_dim}, dtype);
  Tensor KV("KV", {pages, c.page, dim}, dtype), K_pe("K_pe", {pages, c.page, pe_dim}, dtype);
  Tensor pages_of("pages_of", {batch, most_pages}, i32), lengths("lengths", {batch}, i32);
  Tensor Output("Output", {batch, heads, dim}, dtype);
  return prim_func("paged_mla_decode", {Q, Q_pe, KV, K_pe, pages_of, lengths, Output}, [&] {
    for (auto [b, by] : Kernel({batch, ceildiv(heads, c.block_H)}, {.threads = 256})) {
      const Step step(dim, pe_dim, c, dtype);
      copy(Q(b, by * c.block_H, 0), step.Q_shared);
      copy(Q_pe(b, by * c.block_H, 0), step.Q_pe_shared);
      Value length = lengths(b);
      for (auto k : Pipelined(ceildiv(length, c.block_N), {.num_stages = 2})) {
        Value page = pages_of(b, floordiv(k * c.block_N, c.page)), first = k * c.block_N % c.page;
        copy(KV(page, first, 0), step.KV_shared);
        copy(K_pe(page, first, 0), step.K_pe_shared);
        step.run([&](const Value& j) -> Value { return k * c.block_N + j < length; });
      }
      copy(step.result(), Output(b, by * c.block_H, 0));
    }
  });
}

// Query t sees the rows chosen[t, 0..top-1] of KV; negative ones are none.
Program sparse_mla(Value tokens, int64_t heads, Value keys, int64_t top, int64_t dim, int64_t pe_dim, Config c,
                   DType dtype) {
  Tensor Q("Q", {tokens, heads, dim}, dtype), Q_pe("Q_pe", {tokens, heads, pe_dim}, dtype);
  Tensor KV("KV", {keys, dim}, dtype), K_pe("K_pe", {keys, pe_dim}, dtype), chosen("chosen", {tokens, top}, i32);
  Tensor Output("Output", {tokens, heads, dim}, dtype);
  return prim_func("sparse_mla", {Q, Q_pe, KV, K_pe, chosen, Output}, [&] {
    for (auto [by, t] : Kernel({ceildiv(heads, c.block_H), tokens}, {.threads = 256})) {
      const Step step(dim, pe_dim, c, dtype);
      auto rows = alloc_shared({c.block_N}, i32);
      copy(Q(t, by * c.block_H, 0), step.Q_shared);
      copy(Q_pe(t, by * c.block_H, 0), step.Q_pe_shared);
      for (auto k : Pipelined(ceildiv(top, c.block_N), {.num_stages = 2})) {
        for (auto j : Parallel(c.block_N)) {
          rows(j) = if_then_else(k * c.block_N + j < top, chosen(t, k * c.block_N + j), -1);
        }
        for (auto [j, d] : Parallel(c.block_N, dim)) step.KV_shared(j, d) = KV(max(rows(j), 0), d);
        for (auto [j, d] : Parallel(c.block_N, pe_dim)) step.K_pe_shared(j, d) = K_pe(max(rows(j), 0), d);
        step.run([&](const Value& j) -> Value { return rows(j) >= 0; });
      }
      copy(step.result(), Output(t, by * c.block_H, 0));
    }
  });
}

// `key_of(query, n)`: the row of the n-th key that a query sees; -1 where there are no more.
Check check_rows(const std::vector<NDArray>& arrays, const Elements& Output, int64_t max_elements,
                 const std::function<std::vector<int64_t>(int64_t query)>& keys_of) {
  const Elements Q(arrays[0]), Q_pe(arrays[1]), KV(arrays[2]), K_pe(arrays[3]);
  const int64_t queries = arrays[0].shape(0), heads = arrays[0].shape(1), dim = arrays[0].shape(2),
                pe_dim = arrays[1].shape(2);
  Check check;
  for (const int64_t row : sample(queries * heads, std::max<int64_t>(1, max_elements / dim))) {
    const std::vector<int64_t> keys = keys_of(row / heads);
    const auto at = [&](int64_t n) { return keys[static_cast<size_t>(n)]; };
    AttentionResult expected{std::vector<double>(static_cast<size_t>(dim)),
                             std::vector<double>(static_cast<size_t>(dim))};
    if (!keys.empty())
      expected = attention_row(
          {.keys = static_cast<int64_t>(keys.size()),
           .score_dim = dim + pe_dim,
           .value_dim = dim,
           .query = [&](int64_t d) { return d < dim ? Q[row * dim + d] : Q_pe[row * pe_dim + d - dim]; },
           .key = [&](int64_t n, int64_t d) { return d < dim ? KV[at(n) * dim + d] : K_pe[at(n) * pe_dim + d - dim]; },
           .value = [&](int64_t n, int64_t d) { return KV[at(n) * dim + d]; },
           .scale = 1 / std::sqrt(static_cast<double>(dim + pe_dim))},
          arrays[0].dtype());
    compare_row(check, Output, arrays[0].dtype(), "Output", {queries, heads, dim}, row, expected);
  }
  return check;
}

Check check_paged(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements pages_of(arrays[4]), lengths(arrays[5]), Output(arrays[6]);
  const int64_t page = arrays[2].shape(1), most = arrays[4].shape(1);
  return check_rows(arrays, Output, max_elements, [&](int64_t b) {
    std::vector<int64_t> keys;
    for (int64_t k = 0; k < static_cast<int64_t>(lengths[b]); ++k)
      keys.push_back(static_cast<int64_t>(pages_of[b * most + k / page]) * page + k % page);
    return keys;
  });
}

Check check_sparse(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements chosen(arrays[4]), Output(arrays[5]);
  const int64_t top = arrays[4].shape(1);
  return check_rows(arrays, Output, max_elements, [&](int64_t t) {
    std::vector<int64_t> keys;
    for (int64_t n = 0; n < top; ++n)
      if (chosen[t * top + n] >= 0) keys.push_back(static_cast<int64_t>(chosen[t * top + n]));
    return keys;
  });
}

struct Dims {
  int64_t heads, dim, pe_dim;
};

Case paged_case(const std::vector<int64_t>& lengths, Dims s, Config config, DType dtype, bool is_dynamic,
                Data data = Data::Uniform) {
  const auto batch = static_cast<int64_t>(lengths.size());
  int64_t pages = 1, most = 1, keys = 0;
  for (const int64_t length : lengths) {
    const int64_t count = ceildiv(length, config.page);
    pages += count, most = std::max(most, count), keys += length;
  }
  // Pages in an order without a pattern: a step that has no factor in common with their number.
  int64_t step = pages / 3 + 1;
  while (std::gcd(step, pages) != 1) ++step;
  std::vector<int64_t> table(static_cast<size_t>(batch * most), 0);
  int64_t next = 0;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t p = 0; p < ceildiv(lengths[static_cast<size_t>(b)], config.page); ++p)
      table[static_cast<size_t>(b * most + p)] = next++ * step % pages;
  Case c{.shape = std::to_string(batch) + "x" + std::to_string(s.heads) + ":" + std::to_string(keys) + "x" +
                  std::to_string(s.dim) + "+" + std::to_string(s.pe_dim) + " by " + std::to_string(config.page) + " " +
                  dtype.name() + (is_dynamic ? " dynamic" : ""),
         .program = paged_mla_decode(is_dynamic ? dynamic("batch") : Value(batch), s.heads,
                                     is_dynamic ? dynamic("pages") : Value(pages),
                                     is_dynamic ? dynamic("most_pages") : Value(most), s.dim, s.pe_dim, config, dtype),
         .arguments = {input_array({batch, s.heads, s.dim}, dtype, 1, data),
                       input_array({batch, s.heads, s.pe_dim}, dtype, 2, data),
                       input_array({pages, config.page, s.dim}, dtype, 3, data),
                       input_array({pages, config.page, s.pe_dim}, dtype, 4, data),
                       LazyArray({batch, most}, i32, [table](const NDArray& array) { array.assign_ints(table); }),
                       LazyArray({batch}, i32, [lengths](const NDArray& array) { array.assign_ints(lengths); }),
                       output_array({batch, s.heads, s.dim}, dtype)},
         .check = check_paged};
  c.flops = 2.0 * static_cast<double>(keys * s.heads * (2 * s.dim + s.pe_dim));
  c.bytes = static_cast<double>(keys * (s.dim + s.pe_dim) + batch * s.heads * (2 * s.dim + s.pe_dim)) *
            dtype.storage_bits() / 8;
  return c;
}

// Every query chooses rows without a pattern; every eleventh choice is none.
Case sparse_case(int64_t tokens, int64_t keys, int64_t top, Dims s, Config config, DType dtype, bool is_dynamic,
                 Data data = Data::Uniform) {
  const LazyArray chosen({tokens, top}, i32, [=](const NDArray& array) {
    std::vector<int64_t> rows;
    for (int64_t at = 0; at < tokens * top; ++at)
      rows.push_back(at % 11 == 5 ? -1 : (at * 7919 + at / top * 31) % keys);
    array.assign_ints(rows);
  });
  Case c{.shape = std::to_string(tokens) + "x" + std::to_string(s.heads) + ":" + std::to_string(top) + " of " +
                  std::to_string(keys) + "x" + std::to_string(s.dim) + "+" + std::to_string(s.pe_dim) + " " +
                  dtype.name() + (is_dynamic ? " dynamic" : ""),
         .program = sparse_mla(is_dynamic ? dynamic("tokens") : Value(tokens), s.heads,
                               is_dynamic ? dynamic("keys") : Value(keys), top, s.dim, s.pe_dim, config, dtype),
         .arguments = {input_array({tokens, s.heads, s.dim}, dtype, 1, data),
                       input_array({tokens, s.heads, s.pe_dim}, dtype, 2, data),
                       input_array({keys, s.dim}, dtype, 3, data), input_array({keys, s.pe_dim}, dtype, 4, data),
                       chosen, output_array({tokens, s.heads, s.dim}, dtype)},
         .check = check_sparse};
  c.flops = 2.0 * static_cast<double>(tokens * top * s.heads) * static_cast<double>(2 * s.dim + s.pe_dim);
  c.bytes = static_cast<double>(keys * (s.dim + s.pe_dim) + tokens * s.heads * (2 * s.dim + s.pe_dim)) *
            dtype.storage_bits() / 8;
  return c;
}

}  // namespace

std::vector<Case> paged_mla_cases(Size size) {
  if (size == Size::Gpu) {
    std::vector<int64_t> even(128, 8192), uneven;
    for (int64_t b = 0; b < 128; ++b) uneven.push_back(8192 - b * 61 % 4000);
    return {paged_case(even, {128, 512, 64}, {64, 64}, bf16, false, Data::Normal),
            paged_case(uneven, {128, 512, 64}, {64, 64}, bf16, true, Data::Normal),
            paged_case(uneven, {16, 512, 64}, {16, 64}, bf16, true, Data::Normal)};
  }
  if (size == Size::Benchmark) return {paged_case({1024, 700, 1000}, {128, 512, 64}, {64, 64}, f32, false)};
  return {paged_case({1}, {1, 16, 8}, {16, 16, 16}, f32, true),
          paged_case({33, 0, 70}, {17, 40, 12}, {16, 32, 32}, f32, true),
          paged_case({100, 7}, {5, 512, 64}, {16, 32, 64}, bf16, true),
          paged_case({130, 64, 1}, {70, 64, 64}, {64, 64, 64}, f16, false)};
}

std::vector<Case> sparse_mla_cases(Size size) {
  if (size == Size::Gpu) return {sparse_case(1024, 32768, 2048, {128, 512, 64}, {64, 64}, bf16, false, Data::Normal)};
  if (size == Size::Benchmark) return {sparse_case(16, 2048, 512, {128, 512, 64}, {64, 64}, f32, false)};
  return {sparse_case(1, 1, 1, {1, 16, 8}, {16, 16}, f32, true),
          sparse_case(3, 50, 37, {17, 40, 12}, {16, 32}, f32, true),
          sparse_case(2, 100, 64, {5, 512, 64}, {16, 32}, bf16, true),
          sparse_case(3, 90, 80, {70, 64, 64}, {64, 64}, f16, false)};
}

}  // namespace examples
