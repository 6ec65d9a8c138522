// c += a * b over dense row-major matrices, every element adding its products in ascending k with one rounding each.
#pragma once
#include <cstdint>

namespace tilewright::interpreter {

struct GemmSize {
  int64_t m, n, k;
};
void gemm_kernel(GemmSize size, const float* a, const float* b, float* c);
void gemm_kernel(GemmSize size, const double* a, const double* b, double* c);
void gemm_kernel(GemmSize size, const int64_t* a, const int64_t* b, int64_t* c);  // wraps

}  // namespace tilewright::interpreter
