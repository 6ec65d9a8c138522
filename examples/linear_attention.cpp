// Linear attention, causal, in chunks: what a chunk's queries see of earlier chunks is one matrix, the sum of the
// products of keys and values, which a block carries along.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

struct Config {
  int64_t chunk, block_V, threads = 128;
};

// O[t] = scale * sum over s <= t of (Q[t] . K[s]) V[s], and the sum of K[s]^T V[s] behind the last position. Tensors as
// (batch, head, position, dim).
Program linear_attention(Value batch, int64_t heads, Value length, int64_t dim, int64_t value_dim, Config c,
                         DType dtype) {
  Tensor Q("Q", {batch, heads, length, dim}, dtype), K("K", {batch, heads, length, dim}, dtype);
  Tensor V("V", {batch, heads, length, value_dim}, dtype), O("O", {batch, heads, length, value_dim}, dtype);
  Tensor State("State", {batch, heads, dim, value_dim}, f32);
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  return prim_func("linear_attention", {Q, K, V, O, State}, [&] {
    for (auto [bv, h, b] : Kernel({ceildiv(value_dim, c.block_V), heads, batch}, {.threads = c.threads})) {
      auto Q_shared = alloc_shared({c.chunk, dim}, dtype);
      auto K_shared = alloc_shared({c.chunk, dim}, dtype);
      auto V_shared = alloc_shared({c.chunk, c.block_V}, dtype);
      auto state_shared = alloc_shared({dim, c.block_V}, dtype);
      auto scores = alloc_fragment({c.chunk, c.chunk}, f32);
      auto scores_cast = alloc_fragment({c.chunk, c.chunk}, dtype);
      auto output = alloc_fragment({c.chunk, c.block_V}, f32);
      auto state = alloc_fragment({dim, c.block_V}, f32);
      clear(state);
      for (auto i : Pipelined(ceildiv(length, c.chunk), {.num_stages = 2})) {
        copy(Q(b, h, i * c.chunk, 0), Q_shared);
        copy(K(b, h, i * c.chunk, 0), K_shared);
        copy(V(b, h, i * c.chunk, bv * c.block_V), V_shared);
        copy(state, state_shared);
        gemm(Q_shared, K_shared, scores, {.transpose_B = true, .policy = GemmWarpPolicy::FullRow, .clear_accum = true});
        gemm(Q_shared, state_shared, output, {.policy = GemmWarpPolicy::FullRow, .clear_accum = true});
        for (auto [t, s] : Parallel(c.chunk, c.chunk)) scores_cast(t, s) = if_then_else(s <= t, scores(t, s), 0.0);
        gemm(scores_cast, V_shared, output, {.policy = GemmWarpPolicy::FullRow});
        gemm(K_shared, V_shared, state, {.transpose_A = true, .policy = GemmWarpPolicy::FullRow});
        for (auto [t, j] : Parallel(c.chunk, c.block_V)) output(t, j) *= scale;
        copy(output, O(b, h, i * c.chunk, bv * c.block_V));
      }
      copy(state, State(b, h, 0, bv * c.block_V));
    }
  });
}

// Bound, relative to the sum of all terms' sizes: scores and the state are rounded to the inputs' type, all sums are in
// float32.
Check check_linear(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements Q(arrays[0]), K(arrays[1]), V(arrays[2]), O(arrays[3]), State(arrays[4]);
  const int64_t batch = arrays[0].shape(0), heads = arrays[0].shape(1), length = arrays[0].shape(2);
  const int64_t dim = arrays[0].shape(3), value_dim = arrays[2].shape(3);
  const double u = unit_roundoff(f32), scale = 1 / std::sqrt(static_cast<double>(dim));
  const double rounded = arrays[0].dtype() == f32 ? 0 : unit_roundoff(arrays[0].dtype());
  const double relative = rounded + static_cast<double>(dim + length + 8) * u;
  Check check;
  for (const int64_t at : sample(O.size(), std::max<int64_t>(1, max_elements / 2))) {
    const int64_t row = at / value_dim, first = row / length * length, j = at % value_dim;
    double value = 0, magnitude = 0;
    for (int64_t s = first; s <= row; ++s) {
      double score = 0, size = 0;
      for (int64_t d = 0; d < dim; ++d) {
        const double term = Q[row * dim + d] * K[s * dim + d];
        score += term, size += std::abs(term);
      }
      value += score * V[s * value_dim + j] * scale, magnitude += size * std::abs(V[s * value_dim + j]) * scale;
    }
    const double bound = relative * magnitude;
    check.compare(O[at], value, bound + rounding_error(arrays[3].dtype(), std::abs(value) + bound), [&] {
      return element_name("O", {batch, heads, length, value_dim}, at);
    });
  }
  for (const int64_t at : sample(State.size(), std::max<int64_t>(1, max_elements / 2))) {
    const int64_t j = at % value_dim, d = at / value_dim % dim, first = at / value_dim / dim * length;
    double value = 0, magnitude = 0;
    for (int64_t s = first; s < first + length; ++s) {
      const double term = K[s * dim + d] * V[s * value_dim + j];
      value += term, magnitude += std::abs(term);
    }
    check.compare(State[at], value, static_cast<double>(length + 1) * u * magnitude, [&] {
      return element_name("State", {batch, heads, dim, value_dim}, at);
    });
  }
  return check;
}

struct Shape {
  int64_t batch, heads, length, dim, value_dim;
};

Case linear_case(Shape s, Config config, DType dtype, bool is_dynamic, Data data = Data::Uniform) {
  const Value batch = is_dynamic ? dynamic("batch") : Value(s.batch),
              length = is_dynamic ? dynamic("length") : Value(s.length);
  Case c{.shape = std::to_string(s.batch) + "x" + std::to_string(s.heads) + "x" + std::to_string(s.length) + "x" +
                  std::to_string(s.dim) + "+" + std::to_string(s.value_dim) + " " + dtype.name() +
                  (is_dynamic ? " dynamic" : ""),
         .program = linear_attention(batch, s.heads, length, s.dim, s.value_dim, config, dtype),
         .arguments = {input_array({s.batch, s.heads, s.length, s.dim}, dtype, 1, data),
                       input_array({s.batch, s.heads, s.length, s.dim}, dtype, 2, data),
                       input_array({s.batch, s.heads, s.length, s.value_dim}, dtype, 3, data),
                       output_array({s.batch, s.heads, s.length, s.value_dim}, dtype),
                       output_array({s.batch, s.heads, s.dim, s.value_dim}, f32)},
         .check = check_linear};
  const auto positions = static_cast<double>(s.batch * s.heads * s.length);
  const int64_t blocks = ceildiv(s.value_dim, config.block_V);
  c.flops =
      2 * positions * static_cast<double>(config.chunk * (s.dim * blocks + s.value_dim) + 2 * s.dim * s.value_dim);
  c.bytes = (positions * static_cast<double>(2 * s.dim + 2 * s.value_dim)) * dtype.storage_bits() / 8 +
            static_cast<double>(4 * s.batch * s.heads * s.dim * s.value_dim);
  return c;
}

}  // namespace

std::vector<Case> linear_attention_cases(Size size) {
  if (size == Size::Gpu) {
    return {linear_case({8, 32, 4096, 128, 128}, {64, 128}, bf16, false, Data::Normal),
            linear_case({1, 16, 32768, 128, 128}, {64, 32}, f16, true, Data::Normal)};
  }
  if (size == Size::Benchmark) return {linear_case({2, 8, 2048, 64, 64}, {64, 64}, f32, false)};
  std::vector<Case> out;
  for (const int64_t length : {1, 17, 70}) {
    out.push_back(linear_case({1, 2, length, 16, 20}, {16, 16}, f32, true));
    out.push_back(linear_case({2, 1, length, 64, 64}, {64, 64}, bf16, true));
  }
  out.push_back(linear_case({1, 2, 130, 64, 48}, {64, 32}, f16, false));
  return out;
}

}  // namespace examples
