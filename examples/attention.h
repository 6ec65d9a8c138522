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

}  // namespace examples
