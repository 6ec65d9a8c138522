// Attention, backward: from the forward pass' output, the logarithms of its sums and the output's gradient to those of
// queries, keys and values. Launches: sums of each query's row; the five products, a block of keys each, queries in
// turn; the queries' gradients, summed in float32 by all blocks, rounded.
#include <numbers>

#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

struct Config {
  int64_t block_Q, block_K;  // queries and keys
  bool causal;
  int64_t threads = 128;
};

// Tensors as (batch, head, position, dim); heads / kv_heads neighbouring heads share keys and values. The transposed
// scores keep what two of the products read in the registers of the threads that made it.
Program attention_backward(Value batch, int64_t heads, int64_t kv_heads, Value queries, Value keys, int64_t dim,
                           Config c, DType dtype) {
  Tensor Q("Q", {batch, heads, queries, dim}, dtype), K("K", {batch, kv_heads, keys, dim}, dtype);
  Tensor V("V", {batch, kv_heads, keys, dim}, dtype), O("O", {batch, heads, queries, dim}, dtype);
  Tensor LSE("LSE", {batch, heads, queries}, f32), dO("dO", {batch, heads, queries, dim}, dtype);
  Tensor dQ("dQ", {batch, heads, queries, dim}, dtype), dK("dK", {batch, kv_heads, keys, dim}, dtype);
  Tensor dV("dV", {batch, kv_heads, keys, dim}, dtype);
  const double scale = 1 / std::sqrt(static_cast<double>(dim)), scale2 = scale * std::numbers::log2e;
  const int64_t group = heads / kv_heads;
  return prim_func("attention_backward", {Q, K, V, O, LSE, dO, dQ, dK, dV}, [&] {
    Value blocks = ceildiv(queries, c.block_Q);
    // Of each block of queries a row of logarithms, to base 2, and one of dot products of output and gradient.
    auto rows = alloc_global({batch, heads, blocks * 2, c.block_Q}, f32);
    auto dQ_sum = alloc_global({batch, heads, queries, dim}, f32);
    for (auto [bx, h, b] : Kernel({blocks, heads, batch}, {.threads = 128})) {
      auto product = alloc_fragment({c.block_Q, dim}, f32);
      auto gradient = alloc_fragment({c.block_Q, dim}, f32);
      auto delta = alloc_fragment({c.block_Q}, f32);
      copy(O(b, h, bx * c.block_Q, 0), product);
      copy(dO(b, h, bx * c.block_Q, 0), gradient);
      for (auto [i, j] : Parallel(c.block_Q, dim)) product(i, j) *= gradient(i, j);
      reduce_sum(product, delta, {.dim = 1});
      for (auto i : Parallel(c.block_Q)) {
        rows(b, h, bx * 2, i) = LSE(b, h, bx * c.block_Q + i) * std::numbers::log2e;
        rows(b, h, bx * 2 + 1, i) = delta(i);
      }
      for (auto [i, j] : Parallel(c.block_Q, dim)) dQ_sum(b, h, bx * c.block_Q + i, j) = 0.0;
    }
    for (auto [bx, h, b] : Kernel({ceildiv(keys, c.block_K), kv_heads, batch}, {.threads = c.threads})) {
      auto K_shared = alloc_shared({c.block_K, dim}, dtype);
      auto V_shared = alloc_shared({c.block_K, dim}, dtype);
      auto Q_shared = alloc_shared({c.block_Q, dim}, dtype);
      auto dO_shared = alloc_shared({c.block_Q, dim}, dtype);
      auto rows_shared = alloc_shared({2, c.block_Q}, f32);
      auto dS_shared = alloc_shared({c.block_K, c.block_Q}, dtype);
      auto P = alloc_fragment({c.block_K, c.block_Q}, f32);
      auto dP = alloc_fragment({c.block_K, c.block_Q}, f32);
      auto P_cast = alloc_fragment({c.block_K, c.block_Q}, dtype);
      auto dS_cast = alloc_fragment({c.block_K, c.block_Q}, dtype);
      auto dK_local = alloc_fragment({c.block_K, dim}, f32);
      auto dV_local = alloc_fragment({c.block_K, dim}, f32);
      auto dQ_local = alloc_fragment({c.block_Q, dim}, f32);
      copy(K(b, h, bx * c.block_K, 0), K_shared);
      copy(V(b, h, bx * c.block_K, 0), V_shared);
      clear(dK_local);
      clear(dV_local);
      Value left = keys - bx * c.block_K;
      Value first = c.causal ? Value(min(blocks, floordiv(bx * c.block_K, c.block_Q))) : Value(0);
      for (auto g : serial(group)) {
        Value head = h * group + g;
        for (auto q : Pipelined(first, blocks, {.num_stages = 2})) {
          copy(Q(b, head, q * c.block_Q, 0), Q_shared);
          copy(dO(b, head, q * c.block_Q, 0), dO_shared);
          copy(rows(b, head, q * 2, 0), rows_shared);
          gemm(K_shared, Q_shared, P, {.transpose_B = true, .policy = GemmWarpPolicy::FullRow, .clear_accum = true});
          gemm(V_shared, dO_shared, dP, {.transpose_B = true, .policy = GemmWarpPolicy::FullRow, .clear_accum = true});
          // Tiles at the diagonal and the last keys: `behind` is how far the first key lies behind the first query.
          Value behind = bx * c.block_K - q * c.block_Q;
          Value masked = c.causal ? Value(behind + (c.block_K - 1) > 0 || left < c.block_K) : Value(left < c.block_K);
          If(masked, [&] {
            for (auto [i, j] : Parallel(c.block_K, c.block_Q)) {
              P(i, j) = c.causal ? if_then_else(i < left && behind + i - j < 1, P(i, j), -infinity(f32))
                                 : if_then_else(i < left, P(i, j), -infinity(f32));
            }
          });
          for (auto [i, j] : Parallel(c.block_K, c.block_Q)) P(i, j) = exp2(P(i, j) * scale2 - rows_shared(0, j));
          // Rounded, the weights meet dO and make dS: registers for both forms of them there are not.
          copy(P, P_cast);
          for (auto [i, j] : Parallel(c.block_K, c.block_Q)) {
            dS_cast(i, j) = cast(P_cast(i, j), f32) * (dP(i, j) - rows_shared(1, j));
          }
          copy(dS_cast, dS_shared);
          gemm(P_cast, dO_shared, dV_local, {.policy = GemmWarpPolicy::FullRow});
          gemm(dS_shared, K_shared, dQ_local, {.transpose_A = true, .clear_accum = true});
          gemm(dS_cast, Q_shared, dK_local, {.policy = GemmWarpPolicy::FullRow});
          atomic_add(dQ_sum(b, head, q * c.block_Q, 0), dQ_local);
        }
      }
      for (auto [i, j] : Parallel(c.block_K, dim)) dK_local(i, j) *= scale;
      copy(dV_local, dV(b, h, bx * c.block_K, 0));
      copy(dK_local, dK(b, h, bx * c.block_K, 0));
    }
    for (auto [bx, h, b] : Kernel({blocks, heads, batch}, {.threads = 128})) {
      for (auto [i, j] : Parallel(c.block_Q, dim)) {
        dQ(b, h, bx * c.block_Q + i, j) = dQ_sum(b, h, bx * c.block_Q + i, j) * scale;
      }
    }
  });
}

// The arguments of a call, and what one query and one key make of each other.
class Reference {
 public:
  Reference(const std::vector<NDArray>& arrays, bool causal)
      : Q(arrays[0]), K(arrays[1]), V(arrays[2]), O(arrays[3]), LSE(arrays[4]), dO(arrays[5]), causal_(causal) {
    heads = arrays[0].shape(1), queries = arrays[0].shape(2), dim = arrays[0].shape(3);
    kv_heads = arrays[1].shape(1), keys = arrays[1].shape(2);
    type_ = arrays[0].dtype();
    scale = 1 / std::sqrt(static_cast<double>(dim));
  }

  struct Pair {
    double p, ds;              // a weight, and its score's gradient
    double p_error, ds_error;  // of what meets the products, rounded to their type
  };
  // Bound. A score and a weight's gradient are sums of dim products; the relative error of a weight is its exponent's
  // error, 2 ulp of exp2 and its rounding; ds is rounded once more, and has the errors of the difference.
  Pair pair(int64_t query, int64_t key) const {  // rows of Q and of K
    if (causal_ && key % keys > query % queries) return {};
    const double u = unit_roundoff(f32);
    double score = 0, score_size = 0, dp = 0, dp_size = 0, delta = 0, delta_size = 0;
    for (int64_t d = 0; d < dim; ++d) {
      const double s = Q[query * dim + d] * K[key * dim + d], g = dO[query * dim + d];
      const double v = g * V[key * dim + d], o = g * O[query * dim + d];
      score += s, score_size += std::abs(s), dp += v, dp_size += std::abs(v), delta += o, delta_size += std::abs(o);
    }
    const double p = std::exp(score * scale - LSE[query]), ds = p * (dp - delta);
    const double relative = static_cast<double>(dim) * u * score_size * scale +
                            8 * u * (std::abs(score * scale) + std::abs(LSE[query]) + 1);
    const auto rounding = [&](double x) { return type_ == f32 ? 0 : rounding_error(type_, x); };
    const double p_error = p * relative + rounding(p + p * relative);
    const double difference = static_cast<double>(dim + 2) * u * (dp_size + delta_size);
    const double error = std::abs(dp - delta) * p_error + (p + p_error) * difference + 2 * u * std::abs(ds);
    return {p, ds, p_error, error + rounding(std::abs(ds) + error)};
  }

  const Elements Q, K, V, O, LSE, dO;
  int64_t heads, kv_heads, queries, keys, dim;
  double scale;

 private:
  bool causal_;
  DType type_;
};

// Sums of terms `weight * row[d]`, and a bound of their errors.
struct Sums {
  explicit Sums(int64_t dim) : value(static_cast<size_t>(dim)), error(value), size(value) {}
  void add(double weight, double weight_error, const Elements& rows, int64_t row) {
    const auto dim = static_cast<int64_t>(value.size());
    for (int64_t d = 0; d < dim; ++d) {
      const auto i = static_cast<size_t>(d);
      const double x = rows[row * dim + d];
      value[i] += weight * x, size[i] += std::abs(weight * x), error[i] += weight_error * std::abs(x);
    }
    ++terms;
  }
  void compare(const NDArray& result, const Elements& got, int64_t row, double scale, const char* name,
               Check& check) const {
    const auto dim = static_cast<int64_t>(value.size());
    for (int64_t d = 0; d < dim; ++d) {
      const auto i = static_cast<size_t>(d);
      const double bound = (error[i] + static_cast<double>(terms + 2) * unit_roundoff(f32) * size[i]) * scale;
      const double expected = value[i] * scale;
      check.compare(
          got[row * dim + d], expected, bound + rounding_error(result.dtype(), std::abs(expected) + bound), [&] {
            return element_name(name, {result.shape(0), result.shape(1), result.shape(2), dim}, row * dim + d);
          });
    }
  }
  std::vector<double> value, error, size;
  int64_t terms = 0;
};

Check check_backward(const std::vector<NDArray>& arrays, int64_t max_elements, bool causal) {
  const Reference r(arrays, causal);
  const Elements dQ(arrays[6]), dK(arrays[7]), dV(arrays[8]);
  const int64_t group = r.heads / r.kv_heads, count = std::max<int64_t>(1, max_elements / r.dim / 2);
  Check check;
  for (const int64_t row : sample(dQ.size() / r.dim, count)) {
    const int64_t head = row / r.queries, first = head / r.heads * r.kv_heads + head % r.heads / group;
    Sums sums(r.dim);
    for (int64_t key = first * r.keys; key < (first + 1) * r.keys; ++key) {
      const Reference::Pair pair = r.pair(row, key);
      sums.add(pair.ds, pair.ds_error, r.K, key);
    }
    sums.compare(arrays[6], dQ, row, r.scale, "dQ", check);
  }
  for (const int64_t row : sample(dK.size() / r.dim, count)) {
    const int64_t kv_head = row / r.keys, first = kv_head / r.kv_heads * r.heads + kv_head % r.kv_heads * group;
    Sums keys(r.dim), values(r.dim);
    for (int64_t query = first * r.queries; query < (first + group) * r.queries; ++query) {
      const Reference::Pair pair = r.pair(query, row);
      keys.add(pair.ds, pair.ds_error, r.Q, query), values.add(pair.p, pair.p_error, r.dO, query);
    }
    keys.compare(arrays[7], dK, row, r.scale, "dK", check);
    values.compare(arrays[8], dV, row, 1, "dV", check);
  }
  return check;
}

struct Shape {
  int64_t batch, heads, kv_heads, queries, keys, dim;
};

// The backward pass takes any output and any logarithms: here such that the weights are of the size they have.
Case backward_case(Shape s, Config config, DType dtype, bool is_dynamic, Data data = Data::Uniform) {
  const Value batch = is_dynamic ? dynamic("batch") : Value(s.batch),
              keys = is_dynamic ? dynamic("keys") : Value(s.keys);
  const Value queries = is_dynamic ? dynamic("queries") : Value(s.queries);
  const double middle = std::log(static_cast<double>(s.keys)) + (data == Data::Normal ? 0.5 : 0);
  const auto of_queries = [&](uint64_t seed) {
    return input_array({s.batch, s.heads, s.queries, s.dim}, dtype, seed, data);
  };
  const auto of_keys = [&](uint64_t seed) {
    return input_array({s.batch, s.kv_heads, s.keys, s.dim}, dtype, seed, data);
  };
  Case c{.shape = std::to_string(s.batch) + "x" + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + "x" +
                  std::to_string(s.queries) + (s.keys == s.queries ? "" : ":" + std::to_string(s.keys)) + "x" +
                  std::to_string(s.dim) + " " + dtype.name() + (config.causal ? " causal" : "") +
                  (is_dynamic ? " dynamic" : ""),
         .program = attention_backward(batch, s.heads, s.kv_heads, queries, keys, s.dim, config, dtype),
         .arguments = {of_queries(1), of_keys(2), of_keys(3), of_queries(4),
                       random_array({s.batch, s.heads, s.queries}, f32, 5, middle - 0.25, middle + 0.25), of_queries(6),
                       output_array({s.batch, s.heads, s.queries, s.dim}, dtype),
                       output_array({s.batch, s.kv_heads, s.keys, s.dim}, dtype),
                       output_array({s.batch, s.kv_heads, s.keys, s.dim}, dtype)},
         .check = [causal = config.causal](const auto& arrays, int64_t max_elements) {
           return check_backward(arrays, max_elements, causal);
         }};
  c.any_order = true;
  const double pairs = static_cast<double>(s.queries) * static_cast<double>(s.keys) * (config.causal ? 0.5 : 1);
  c.flops = 10 * static_cast<double>(s.batch * s.heads * s.dim) * pairs;
  c.bytes =
      static_cast<double>(4 * s.batch * s.dim * (s.heads * s.queries + s.kv_heads * s.keys)) * dtype.storage_bits() / 8;
  return c;
}

}  // namespace

std::vector<Case> attention_backward_cases(Size size) {
  if (size == Size::Gpu) {
    return {backward_case({4, 32, 32, 4096, 4096, 128}, {64, 128, false, 256}, bf16, false, Data::Normal),
            backward_case({4, 32, 32, 4096, 4096, 128}, {64, 128, true, 256}, bf16, false, Data::Normal),
            backward_case({4, 32, 32, 4096, 4096, 64}, {128, 128, false, 256}, bf16, false, Data::Normal),
            backward_case({4, 32, 32, 4096, 4096, 64}, {128, 128, true, 256}, f16, true, Data::Normal)};
  }
  if (size == Size::Benchmark) {
    return {backward_case({1, 8, 8, 1024, 1024, 64}, {128, 128, false}, f32, false),
            backward_case({1, 8, 4, 1024, 1024, 64}, {128, 128, true}, bf16, true)};
  }
  std::vector<Case> out;
  for (const bool causal : {false, true}) {
    for (const int64_t length : {1, 17, 67}) {
      out.push_back(backward_case({1, 1, 1, length, length, 16}, {16, 16, causal}, f32, true));
      out.push_back(backward_case({2, 2, 1, length, length, 33}, {16, 32, causal}, bf16, true));
    }
    out.push_back(backward_case({1, 4, 2, 67, 67, 64}, {64, 64, causal}, f16, true));
    out.push_back(backward_case({1, 2, 1, 17, 17, 33}, {16, 32, causal}, f32, false));
    out.push_back(backward_case({1, 2, 1, 130, 130, 64}, {64, 128, causal, 256}, bf16, false));
  }
  out.push_back(backward_case({1, 3, 1, 5, 71, 24}, {16, 32, false}, f32, true));
  out.push_back(backward_case({1, 3, 1, 71, 5, 24}, {16, 32, false}, f32, true));
  return out;
}

}  // namespace examples
