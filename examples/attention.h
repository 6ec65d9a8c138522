// The reference of the attention programs: one output row by plain loops, with a bound of its error.
#pragma once
#include <functional>
#include <vector>

#include "example.h"

namespace examples {

// One query against keys 0..keys-1. Elements are given by functions, so that every memory layout has the same
// reference.
struct AttentionRow {
  int64_t keys = 0, score_dim = 0, value_dim = 0;
  std::function<double(int64_t d)> query;
  std::function<double(int64_t key, int64_t d)> key;
  std::function<double(int64_t key, int64_t d)> value;
  double scale = 1;
};

struct AttentionResult {
  std::vector<double> output;  // of value_dim
  std::vector<double> bound;   // of each output before it is rounded to the output's type
};

// `weights_type`: what the exponentials are rounded to before they meet the values.
AttentionResult attention_row(const AttentionRow& row, DType weights_type);

// Row `row` of an output whose last dimension is value_dim, stored as `type`.
void compare_row(Check& check, const Elements& output, DType type, const char* name,
                 std::initializer_list<int64_t> shape, int64_t row, const AttentionResult& expected);

// Of Q, K, V and O as (batch, head, position, dim).
Check check_flash_attention(const std::vector<NDArray>& arrays, int64_t max_elements, bool causal);

}  // namespace examples
