// Where each (token, slot) pair goes when the tokens of a mixture of experts are sorted by expert: a counting sort in
// thread code. Each expert's rows are padded to a multiple of `alignment`; what has no expert (-1) goes nowhere.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

constexpr int64_t warp_size = 32;

// P is the number of positions: at least the padded counts together. Positions without a pair hold -1.
Program expert_mapping(Value T, int64_t K, int64_t E, Value P, int64_t alignment, int64_t blocks) {
  Tensor topk_idx("topk_idx", {T, K}, i64), pos_to_expert("pos_to_expert", {P}, i32),
      pos_to_token("pos_to_token", {P}, i32), pos_to_token_topk("pos_to_token_topk", {P}, i32),
      token_topk_to_pos("token_topk_to_pos", {T, K}, i32), expert_start("expert_start", {E}, i32),
      expert_end("expert_end", {E}, i32), num_tokens_per_expert("num_tokens_per_expert", {E}, i32);
  const int64_t threads = 256, scan_threads = ceildiv(E, warp_size) * warp_size;
  return prim_func(
      "expert_mapping",
      {topk_idx, pos_to_expert, pos_to_token, pos_to_token_topk, token_topk_to_pos, expert_start, expert_end,
       num_tokens_per_expert},
      [&] {
        auto counts = alloc_global({blocks, E}, i32);  // of each block; then where its first pair of an expert goes

        // Each block counts the pairs of its share.
        for (auto bx : Kernel(blocks, {.threads = threads})) {
          auto count = alloc_shared({E}, i32);
          Value tx = get_thread_binding();
          Value share = ceildiv(T * K, blocks);
          for (auto p : serial(bx * threads + tx, P, blocks * threads)) {
            pos_to_expert(p) = -1;
            pos_to_token(p) = -1;
            pos_to_token_topk(p) = -1;
          }
          for (auto e : serial(tx, E, threads)) count(e) = 0;
          sync_threads();
          for (auto i : serial(bx * share + tx, min((bx + 1) * share, T * K), threads)) {
            Value e = cast(topk_idx(floordiv(i, K), i % K), i32);
            If(e >= 0, [&] { atomic_add(count(e), 1); });
          }
          sync_threads();
          for (auto e : serial(tx, E, threads)) counts(bx, e) = count(e);
        }

        // One thread per expert: where its rows start, from a scan over the warp and the totals of the warps before it.
        for (auto bx : Kernel(1, {.threads = scan_threads})) {
          auto warp_total = alloc_shared({scan_threads / warp_size}, i32);
          Value e = get_thread_binding();
          Value lane = get_lane_idx();
          Value warp = get_warp_idx();
          auto count = alloc_var(i32, 0);
          If(e < E, [&] {
            for (auto b : serial(blocks)) count += counts(b, e);
          });
          Value aligned = ceildiv(count, alignment) * alignment;
          auto scan = alloc_var(i32, aligned);
          for (int64_t delta = 1; delta < warp_size; delta *= 2) {
            Value below = shfl_up(scan, delta);
            scan = if_then_else(lane >= delta, scan + below, scan);
          }
          If(lane == warp_size - 1, [&] { warp_total(warp) = scan; });
          sync_threads();
          auto start = alloc_var(i32, scan - aligned);
          for (auto w : serial(warp)) start += warp_total(w);
          If(e < E, [&] {
            expert_start(e) = start;
            expert_end(e) = start + aligned;
            num_tokens_per_expert(e) = aligned;
            auto next = alloc_var(i32, start);
            for (auto b : serial(blocks)) {
              Value of_block = counts(b, e);
              counts(b, e) = next;
              next += of_block;
            }
          });
        }

        // Each block places its share: the lanes of a warp that have the same expert take neighbouring positions.
        for (auto bx : Kernel(blocks, {.threads = threads})) {
          auto next = alloc_shared({E}, i32);
          Value tx = get_thread_binding();
          Value lane = get_lane_idx();
          Value share = ceildiv(T * K, blocks);
          for (auto e : serial(tx, E, threads)) next(e) = counts(bx, e);
          sync_threads();
          for (auto step : serial(ceildiv(share, threads))) {
            Value in_share = step * threads + tx;
            Value i = bx * share + in_share;
            Value is_pair = in_share < share && i < T * K;
            Value e = if_then_else(is_pair, cast(topk_idx(floordiv(i, K), i % K), i32), -1);
            Value peers = match_any_sync(e);
            Value before = cast(popcount(peers & ((cast(1, u32) << cast(lane, u32)) - cast(1, u32))), i32);
            Value leader = cast(scalar_function("ffs", {peers}), i32) - 1;
            auto first = alloc_var(i32, 0);
            If(e >= 0 && lane == leader,
               [&] { first = atomic_add(next(e), cast(popcount(peers), i32), {.return_prev = true}); });
            Value position = shfl_sync(first, leader) + before;
            If(e >= 0, [&] {
              pos_to_expert(position) = e;
              pos_to_token(position) = floordiv(i, K);
              pos_to_token_topk(position) = i;
            });
            If(is_pair, [&] { token_topk_to_pos(floordiv(i, K), i % K) = if_then_else(e >= 0, position, -1); });
          }
        }
      });
}

// All integers are exact. The order of an expert's rows is free: a pair must be at a position of its expert before the
// padding, that nobody else has.
Check check_expert_mapping(const std::vector<NDArray>& arrays, int64_t alignment) {
  const int64_t T = arrays[0].shape(0), K = arrays[0].shape(1), P = arrays[1].shape(0), E = arrays[5].shape(0);
  const std::vector<int64_t> idx = arrays[0].to_ints(), expert = arrays[1].to_ints(), token = arrays[2].to_ints(),
                             pair = arrays[3].to_ints(), position = arrays[4].to_ints(), start = arrays[5].to_ints(),
                             end = arrays[6].to_ints(), number = arrays[7].to_ints();
  Check check;
  const auto same = [&](int64_t actual, int64_t expected, const char* array, int64_t at) {
    check.compare(static_cast<double>(actual), static_cast<double>(expected), 0,
                  [&] { return std::string(array) + "[" + std::to_string(at) + "]"; });
  };
  std::vector<int64_t> count(static_cast<size_t>(E));
  for (const int64_t e : idx) {
    if (e >= 0) ++count[static_cast<size_t>(e)];
  }
  int64_t next = 0;
  for (size_t e = 0; e < count.size(); ++e) {
    const int64_t aligned = (count[e] + alignment - 1) / alignment * alignment;
    same(start[e], next, "expert_start", static_cast<int64_t>(e));
    same(end[e], next + aligned, "expert_end", static_cast<int64_t>(e));
    same(number[e], aligned, "num_tokens_per_expert", static_cast<int64_t>(e));
    next += aligned;
  }
  std::vector<int64_t> pair_at(static_cast<size_t>(P), -1);
  for (int64_t i = 0; i < T * K; ++i) {
    const int64_t e = idx[static_cast<size_t>(i)], p = position[static_cast<size_t>(i)];
    if (e < 0) {
      same(p, -1, "token_topk_to_pos", i);
      continue;
    }
    const int64_t first = start[static_cast<size_t>(e)];
    const bool is_inside = p >= first && p < first + count[static_cast<size_t>(e)] && p < P;
    const bool is_free = is_inside && pair_at[static_cast<size_t>(p)] < 0;
    same(is_free ? p : -1, p, "token_topk_to_pos", i);
    if (is_free) pair_at[static_cast<size_t>(p)] = i;
  }
  for (size_t p = 0; p < pair_at.size(); ++p) {
    const int64_t i = pair_at[p];
    same(pair[p], i, "pos_to_token_topk", static_cast<int64_t>(p));
    same(token[p], i < 0 ? -1 : i / K, "pos_to_token", static_cast<int64_t>(p));
    same(expert[p], i < 0 ? -1 : idx[static_cast<size_t>(i)], "pos_to_expert", static_cast<int64_t>(p));
  }
  return check;
}

Case mapping_case(int64_t T, int64_t K, int64_t E, int64_t alignment, int64_t blocks, bool is_dynamic) {
  const int64_t P = (T * K + (alignment - 1) * E + alignment - 1) / alignment * alignment;
  Case c{.shape = std::to_string(T) + "x" + std::to_string(K) + " of " + std::to_string(E) + " align " +
                  std::to_string(alignment) + (is_dynamic ? " dynamic" : ""),
         .program = is_dynamic ? expert_mapping(dynamic("T"), K, E, dynamic("P"), alignment, blocks)
                               : expert_mapping(T, K, E, P, alignment, blocks),
         .arguments = {random_array({T, K}, i64, 41, -1, static_cast<double>(E)), output_array({P}, i32),
                       output_array({P}, i32), output_array({P}, i32), output_array({T, K}, i32),
                       output_array({E}, i32), output_array({E}, i32), output_array({E}, i32)},
         .check = [alignment](const auto& arrays, int64_t) { return check_expert_mapping(arrays, alignment); },
         .any_order = true};
  c.bytes = 12.0 * static_cast<double>(T * K) + 12.0 * static_cast<double>(P) + 12.0 * static_cast<double>(E);
  c.peer = Peer::copy();
  return c;
}

}  // namespace

std::vector<Case> expert_mapping_cases(Size size) {
  if (size == Size::Gpu) return {mapping_case(131072, 8, 256, 128, 132, false)};
  if (size == Size::Benchmark) return {mapping_case(32768, 8, 256, 64, 16, false)};
  std::vector<Case> out;
  for (const bool is_dynamic : {false, true}) {
    out.push_back(mapping_case(1, 1, 1, 1, 1, is_dynamic));
    out.push_back(mapping_case(17, 6, 72, 16, 3, is_dynamic));
    out.push_back(mapping_case(127, 2, 9, 64, 2, is_dynamic));
    out.push_back(mapping_case(65, 8, 33, 128, 4, is_dynamic));
  }
  return out;
}

}  // namespace examples
