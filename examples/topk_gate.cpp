// Gating of a mixture of experts: the K best experts of each token, best first, with weights that sum to one.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

Program topk_gate(Value T, int64_t E, int64_t K, int64_t block_T) {
  Tensor scores("scores", {T, E}, f32), topk_idx("topk_idx", {T, K}, i64), topk_weights("topk_weights", {T, K}, f32);
  return prim_func("topk_gate", {scores, topk_idx, topk_weights}, [&] {
    for (auto bx : Kernel(ceildiv(T, block_T), {.threads = 128})) {
      auto left = alloc_fragment({block_T, E}, f32);
      auto candidate = alloc_fragment({block_T, E}, i32);
      auto best = alloc_fragment({block_T}, f32);
      auto expert = alloc_fragment({block_T}, i32);
      auto total = alloc_fragment({block_T}, f32);
      auto ids = alloc_fragment({block_T, K}, i32);
      auto weights = alloc_fragment({block_T, K}, f32);
      copy(scores(bx * block_T, 0), left);
      clear(total);
      for (auto k : serial(K)) {
        reduce_max(left, best, {.dim = 1});
        // Equal scores: the smaller expert first.
        for (auto [i, e] : Parallel(block_T, E)) candidate(i, e) = if_then_else(left(i, e) == best(i), e, E);
        reduce_min(candidate, expert, {.dim = 1});
        for (auto [i, e] : Parallel(block_T, E)) {
          left(i, e) = if_then_else(e == expert(i), -infinity(f32), left(i, e));
        }
        for (auto i : Parallel(block_T)) {
          ids(i, k) = expert(i);
          weights(i, k) = best(i);
          total(i) = total(i) + best(i);
        }
      }
      for (auto [i, k] : Parallel(block_T, K)) weights(i, k) = weights(i, k) / (total(i) + 1e-20);
      copy(ids, topk_idx(bx * block_T, 0));
      copy(weights, topk_weights(bx * block_T, 0));
    }
  });
}

// The ids are exact. Bound of a weight with u = 2^-24: a sum of K positive scores errs by K u relative, the division
// and the addition of 1e-20 by u each.
Check check_topk_gate(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements scores(arrays[0]), ids(arrays[1]), weights(arrays[2]);
  const int64_t T = arrays[0].shape(0), E = arrays[0].shape(1), K = arrays[1].shape(1);
  Check check;
  for (const int64_t t : sample(T, std::max<int64_t>(1, max_elements / E))) {
    std::vector<int64_t> chosen;
    double total = 0;
    for (int64_t k = 0; k < K; ++k) {
      int64_t best = -1;
      for (int64_t e = 0; e < E; ++e) {
        const bool taken = std::find(chosen.begin(), chosen.end(), e) != chosen.end();
        if (!taken && (best < 0 || scores[t * E + e] > scores[t * E + best])) best = e;
      }
      chosen.push_back(best);
      total += scores[t * E + best];
    }
    for (int64_t k = 0; k < K; ++k) {
      const int64_t at = t * K + k, expert = chosen[static_cast<size_t>(k)];
      check.compare(ids[at], static_cast<double>(expert), 0, [&] { return element_name("topk_idx", {T, K}, at); });
      const double expected = scores[t * E + expert] / (total + 1e-20);
      check.compare(weights[at], expected, static_cast<double>(K + 2) * unit_roundoff(f32) * expected, [&] {
        return element_name("topk_weights", {T, K}, at);
      });
    }
  }
  return check;
}

Case topk_case(int64_t T, int64_t E, int64_t K, int64_t block_T, bool is_dynamic) {
  // Scores of 8 significant bits: many of them are equal.
  const LazyArray scores({T, E}, f32, [=](const NDArray& array) {
    array.assign_floats(random_array({T, E}, bf16, 31, 0.01, 1).make().to_floats());
  });
  Case c{.shape = std::to_string(T) + "x" + std::to_string(E) + " top " + std::to_string(K) +
                  (is_dynamic ? " dynamic T" : ""),
         .program = topk_gate(is_dynamic ? dynamic("T") : Value(T), E, K, block_T),
         .arguments = {scores, output_array({T, K}, i64), output_array({T, K}, f32)},
         .check = check_topk_gate};
  c.bytes = 4.0 * static_cast<double>(T * E) + 12.0 * static_cast<double>(T * K);
  c.peer = Peer::copy();
  return c;
}

}  // namespace

std::vector<Case> topk_gate_cases(Size size) {
  if (size == Size::Gpu) return {topk_case(131072, 256, 8, 8, false)};
  if (size == Size::Benchmark) return {topk_case(8192, 256, 8, 16, false)};
  std::vector<Case> out;
  for (const bool is_dynamic : {false, true}) {
    out.push_back(topk_case(1, 1, 1, 8, is_dynamic));
    out.push_back(topk_case(17, 72, 6, 8, is_dynamic));
    out.push_back(topk_case(127, 33, 5, 8, is_dynamic));
    out.push_back(topk_case(9, 4, 4, 8, is_dynamic));
  }
  return out;
}

}  // namespace examples
