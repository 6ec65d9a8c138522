// The reference of the attention programs.
#include "attention.h"

namespace examples {

// Bound. A score is a dot product of score_dim terms, so it errs by score_dim * u * sum|q||k| * scale with u = 2^-24;
// scaling by log2(e) and subtracting the maximum add roundings of a number as large as the largest score. The error of
// an exponent is the relative error of its weight, to which exp2 adds 2 ulp and the rounding to weights_type. The
// weights of earlier blocks are multiplied by one more factor per block, and the sums have `keys` terms. Numerator and
// denominator both carry this relative error, hence the factor of 2.
AttentionResult attention_row(const AttentionRow& row, DType weights_type) {
  const double u = unit_roundoff(tilewright::f32);
  const auto keys = static_cast<size_t>(row.keys);
  std::vector<double> query, weight(keys);
  for (int64_t d = 0; d < row.score_dim; ++d) query.push_back(row.query(d));
  double largest = 0, score_error = 0, maximum = -INFINITY;
  for (int64_t j = 0; j < row.keys; ++j) {
    double score = 0, magnitude = 0;
    for (int64_t d = 0; d < row.score_dim; ++d) {
      const double product = query[static_cast<size_t>(d)] * row.key(j, d);
      score += product;
      magnitude += std::abs(product);
    }
    weight[static_cast<size_t>(j)] = score * row.scale;
    largest = std::max(largest, std::abs(score * row.scale));
    score_error = std::max(score_error, static_cast<double>(row.score_dim) * u * magnitude * row.scale);
    maximum = std::max(maximum, score * row.scale);
  }
  double sum = 0;
  for (double& w : weight) sum += w = std::exp(w - maximum);
  const double relative = 2 * score_error + 8 * u * largest +
                          (weights_type == tilewright::f32 ? 0 : unit_roundoff(weights_type)) +
                          (8 + 2 * static_cast<double>(row.keys)) * u;
  AttentionResult result;
  for (int64_t d = 0; d < row.value_dim; ++d) {
    double output = 0, magnitude = 0;
    for (int64_t j = 0; j < row.keys; ++j) {
      const double term = weight[static_cast<size_t>(j)] * row.value(j, d);
      output += term;
      magnitude += std::abs(term);
    }
    result.output.push_back(output / sum);
    result.bound.push_back(2 * relative * magnitude / sum);
  }
  return result;
}

void compare_row(Check& check, const Elements& output, DType type, const char* name,
                 std::initializer_list<int64_t> shape, int64_t row, const AttentionResult& expected) {
  const auto dim = static_cast<int64_t>(expected.output.size());
  for (int64_t d = 0; d < dim; ++d) {
    const double value = expected.output[static_cast<size_t>(d)], bound = expected.bound[static_cast<size_t>(d)];
    check.compare(output[row * dim + d], value, bound + rounding_error(type, std::abs(value) + bound),
                  [&] { return element_name(name, shape, row * dim + d); });
  }
}

}  // namespace examples
