// The float loops exist twice: the processor's multiply-add gives what fma() of the library gives, many times as fast.
#include "interpreter/gemm_kernel.h"

#include <algorithm>

namespace tilewright::interpreter {

namespace {

constexpr int64_t kColumns = 256;  // of c at a time: a row of them and the rows of b it meets stay in the first cache

[[gnu::always_inline]] inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
[[gnu::always_inline]] inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
[[gnu::always_inline]] inline int64_t fused(int64_t a, int64_t b, int64_t c) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) + static_cast<uint64_t>(c));
}

template <class T>
[[gnu::always_inline]] inline void multiply(GemmSize size, const T* a, const T* b, T* c) {
  for (int64_t j0 = 0; j0 < size.n; j0 += kColumns) {
    int64_t columns = std::min(kColumns, size.n - j0);
    for (int64_t i = 0; i < size.m; ++i) {
      T* row = c + i * size.n + j0;
      for (int64_t k = 0; k < size.k; ++k) {
        const T factor = a[i * size.k + k];
        const T* other = b + k * size.n + j0;
#pragma omp simd
        for (int64_t j = 0; j < columns; ++j) row[j] = fused(factor, other[j], row[j]);
      }
    }
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void multiply_avx2(GemmSize size, const float* a, const float* b, float* c) {
  multiply(size, a, b, c);
}
[[gnu::target("avx2,fma")]] void multiply_avx2(GemmSize size, const double* a, const double* b, double* c) {
  multiply(size, a, b, c);
}
const bool kHasFma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif

}  // namespace

void gemm_kernel(GemmSize size, const float* a, const float* b, float* c) {
#if defined(__x86_64__)
  if (kHasFma) return multiply_avx2(size, a, b, c);
#endif
  multiply(size, a, b, c);
}

void gemm_kernel(GemmSize size, const double* a, const double* b, double* c) {
#if defined(__x86_64__)
  if (kHasFma) return multiply_avx2(size, a, b, c);
#endif
  multiply(size, a, b, c);
}

void gemm_kernel(GemmSize size, const int64_t* a, const int64_t* b, int64_t* c) { multiply(size, a, b, c); }

}  // namespace tilewright::interpreter
