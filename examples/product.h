// The reference of the matrix products: one element by a plain loop, with a bound of its error.
#pragma once
#include "example.h"

namespace examples {

struct ProductElement {
  double value = 0, magnitude = 0;  // the sum, and that of the terms' sizes
};

// `a` and `b` give the k-th elements of the row and of the column.
template <class A, class B>
ProductElement product_element(int64_t depth, const A& a, const B& b) {
  ProductElement out;
  for (int64_t k = 0; k < depth; ++k) {
    const double term = a(k) * b(k);
    out.value += term;
    out.magnitude += std::abs(term);
  }
  return out;
}

// `depth` products summed in float32 (`sum_type`) in any order, and one rounding to the result's type.
inline double product_bound(const ProductElement& e, int64_t depth, DType result, DType sum_type = tilewright::f32) {
  if (sum_type.is_int()) return 0.5;
  const double bound = static_cast<double>(depth) * unit_roundoff(sum_type) * e.magnitude;
  return bound + rounding_error(result, std::abs(e.value) + bound);
}

}  // namespace examples
