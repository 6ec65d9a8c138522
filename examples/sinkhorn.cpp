// Sinkhorn normalization: square matrices are scaled until their rows and columns sum to one.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

constexpr double epsilon = 1e-6;

Program sinkhorn(Value T, int64_t M, int64_t repeat, int64_t block_T) {
  Tensor X("X", {T, M, M}, f32), Y("Y", {T, M, M}, f32);
  return prim_func("sinkhorn", {X, Y}, [&] {
    for (auto bx : Kernel(ceildiv(T, block_T), {.threads = 128})) {
      auto x = alloc_fragment({block_T, M, M}, f32);
      auto row = alloc_fragment({block_T, M}, f32);
      auto column = alloc_fragment({block_T, M}, f32);
      copy(X(bx * block_T, 0, 0), x);
      reduce_max(x, row, {.dim = 2});
      for (auto [t, i, j] : Parallel(block_T, M, M)) x(t, i, j) = exp(x(t, i, j) - row(t, i));
      reduce_sum(x, row, {.dim = 2});
      for (auto [t, i, j] : Parallel(block_T, M, M)) x(t, i, j) = x(t, i, j) / row(t, i) + epsilon;
      reduce_sum(x, column, {.dim = 1});
      for (auto [t, i, j] : Parallel(block_T, M, M)) x(t, i, j) = x(t, i, j) / (column(t, j) + epsilon);
      for (auto r : serial(repeat - 1)) {
        reduce_sum(x, row, {.dim = 2});
        for (auto [t, i, j] : Parallel(block_T, M, M)) x(t, i, j) = x(t, i, j) / (row(t, i) + epsilon);
        reduce_sum(x, column, {.dim = 1});
        for (auto [t, i, j] : Parallel(block_T, M, M)) x(t, i, j) = x(t, i, j) / (column(t, j) + epsilon);
      }
      copy(x, Y(bx * block_T, 0, 0));
    }
  });
}

// Divides the rows (stride 1 along a row) or the columns of an M x M matrix by their sums.
void normalize(std::vector<double>& x, size_t M, size_t along, size_t across) {
  for (size_t line = 0; line < M; ++line) {
    double sum = epsilon;
    for (size_t k = 0; k < M; ++k) sum += x[line * across + k * along];
    for (size_t k = 0; k < M; ++k) x[line * across + k * along] /= sum;
  }
}

// Bound, relative, with u = 2^-24. A step rounds an entry by g = (M + 2) u: a sum of M positive terms, epsilon and a
// division. Later steps divide by averages of what precedes them: a perturbation g with k steps to go leaves at most
// 2 k g (each step's divisor is off by no more than g and the divisor before it), over S steps S (S + 1) g. The softmax
// errs by (d + 4 + M) u, d the range of a row (at most 4 here), and goes through all S steps.
Check check_sinkhorn(const std::vector<NDArray>& arrays, int64_t max_elements, int64_t repeat) {
  const Elements X(arrays[0]), Y(arrays[1]);
  const int64_t T = arrays[0].shape(0), M = arrays[0].shape(1);
  const size_t m = static_cast<size_t>(M);
  const double steps = 2.0 * static_cast<double>(repeat), u = unit_roundoff(f32);
  const double relative =
      u * (steps * (steps + 1) * (static_cast<double>(M) + 2) + 2 * steps * (8 + static_cast<double>(M)));
  Check check;
  for (const int64_t t : sample(T, std::max<int64_t>(1, max_elements / (M * M)))) {
    std::vector<double> x(m * m);
    for (size_t i = 0; i < m; ++i) {
      double sum = 0;
      for (size_t j = 0; j < m; ++j) sum += std::exp(X[t * M * M + static_cast<int64_t>(i * m + j)]);
      for (size_t j = 0; j < m; ++j) {
        x[i * m + j] = std::exp(X[t * M * M + static_cast<int64_t>(i * m + j)]) / sum + epsilon;
      }
    }
    normalize(x, m, m, 1);
    for (int64_t r = 1; r < repeat; ++r) {
      normalize(x, m, 1, m);
      normalize(x, m, m, 1);
    }
    for (size_t k = 0; k < x.size(); ++k) {
      const int64_t at = t * M * M + static_cast<int64_t>(k);
      check.compare(Y[at], x[k], relative * x[k], [&] { return element_name("Y", {T, M, M}, at); });
    }
  }
  return check;
}

Case sinkhorn_case(int64_t T, int64_t M, int64_t repeat, int64_t block_T, bool is_dynamic) {
  Case c{.shape = std::to_string(T) + "x" + std::to_string(M) + "x" + std::to_string(M) + " " + std::to_string(repeat) +
                  " times" + (is_dynamic ? " dynamic T" : ""),
         .program = sinkhorn(is_dynamic ? dynamic("T") : Value(T), M, repeat, block_T),
         .arguments = {random_array({T, M, M}, f32, 61, -2, 2), output_array({T, M, M}, f32)},
         .check = [repeat](const auto& arrays, int64_t n) { return check_sinkhorn(arrays, n, repeat); }};
  const double elements = static_cast<double>(T * M * M);
  c.flops = elements * 4 * static_cast<double>(repeat);  // an addition and a division per element and step
  c.bytes = 8 * elements;
  return c;
}

}  // namespace

std::vector<Case> sinkhorn_cases(Size size) {
  if (size == Size::Gpu) return {sinkhorn_case(1 << 20, 4, 10, 128, false)};
  if (size == Size::Benchmark) return {sinkhorn_case(32768, 4, 10, 256, false)};
  std::vector<Case> out;
  for (const bool is_dynamic : {false, true}) {
    out.push_back(sinkhorn_case(1, 1, 1, 8, is_dynamic));
    out.push_back(sinkhorn_case(17, 4, 10, 8, is_dynamic));
    out.push_back(sinkhorn_case(127, 3, 5, 8, is_dynamic));
    out.push_back(sinkhorn_case(5, 7, 20, 8, is_dynamic));
  }
  return out;
}

}  // namespace examples
