// A stand-in for libcublas and libcublasLt: float32 products by plain loops in column-major order, on the memory of the
// stand-in driver, which is the process's own.
#include <array>
#include <cstddef>
#include <cstdint>

namespace {

struct Matrix {
  uint64_t rows, columns;
  int64_t leading;
  int type;
};
struct Description {
  std::array<int32_t, 32> attributes{};
};

constexpr int kFloat = 0, kNotSupported = 15, kTransposed = 1;

float element(const void* data, int64_t leading, bool transposed, int64_t i, int64_t k) {
  return static_cast<const float*>(data)[transposed ? k + i * leading : i + k * leading];
}

void multiply(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda, const void* b, int64_t ldb,
              void* c, int64_t ldc) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += element(a, lda, ta, i, p) * element(b, ldb, tb, p, j);
      static_cast<float*>(c)[i + j * ldc] = sum;
    }
}

}  // namespace

extern "C" {

int cublasCreate_v2(void** handle) { return *handle = new int(0), 0; }
int cublasDestroy_v2(void* handle) { return delete static_cast<int*>(handle), 0; }
int cublasGetVersion_v2(void*, int* version) { return *version = 130102, 0; }
int cublasSetStream_v2(void*, void*) { return 0; }
int cublasGemmEx(void*, int ta, int tb, int m, int n, int k, const void*, const void* a, int a_type, int lda,
                 const void* b, int, int ldb, const void*, void* c, int, int ldc, int, int) {
  if (a_type != kFloat) return kNotSupported;
  return multiply(ta == kTransposed, tb == kTransposed, m, n, k, a, lda, b, ldb, c, ldc), 0;
}

int cublasLtCreate(void** handle) { return *handle = new int(0), 0; }
int cublasLtDestroy(void* handle) { return delete static_cast<int*>(handle), 0; }
int cublasLtMatmulDescCreate(void** d, int, int) { return *d = new Description, 0; }
int cublasLtMatmulDescSetAttribute(void* d, int attribute, const void* value, size_t bytes) {
  if (bytes != 4) return 7;
  static_cast<Description*>(d)->attributes[static_cast<size_t>(attribute)] = *static_cast<const int32_t*>(value);
  return 0;
}
int cublasLtMatmulDescDestroy(void* d) { return delete static_cast<Description*>(d), 0; }
int cublasLtMatrixLayoutCreate(void** l, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  return *l = new Matrix{rows, columns, leading, type}, 0;
}
int cublasLtMatrixLayoutDestroy(void* l) { return delete static_cast<Matrix*>(l), 0; }
int cublasLtMatmulPreferenceCreate(void** p) { return *p = new int(0), 0; }
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatmulPreferenceDestroy(void* p) { return delete static_cast<int*>(p), 0; }
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void* a, void*, void*, void*, void*, int, void*, int* found) {
  *found = static_cast<Matrix*>(a)->type == kFloat;
  return *found ? 0 : kNotSupported;
}
int cublasLtMatmul(void*, void* d, const void*, const void* a, void* a_layout, const void* b, void* b_layout,
                   const void*, const void*, void*, void* c, void* c_layout, const void*, void*, size_t, void*) {
  const auto& attributes = static_cast<Description*>(d)->attributes;
  const bool ta = attributes[3] == kTransposed, tb = attributes[4] == kTransposed;
  const Matrix &ma = *static_cast<Matrix*>(a_layout), &mb = *static_cast<Matrix*>(b_layout),
               &mc = *static_cast<Matrix*>(c_layout);
  const uint64_t k = ta ? ma.rows : ma.columns;
  const bool fits = (ta ? ma.columns : ma.rows) == mc.rows && (tb ? mb.rows : mb.columns) == mc.columns &&
                    (tb ? mb.columns : mb.rows) == k;
  if (!fits) return 7;
  multiply(ta, tb, static_cast<int64_t>(mc.rows), static_cast<int64_t>(mc.columns), static_cast<int64_t>(k), a,
           ma.leading, b, mb.leading, c, mc.leading);
  return 0;
}
}
