// cuBLAS and cuBLASLt as peers: found by dlopen, called for row-major matrices.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "tilewright/tensor.h"

namespace bench::gpu {

// C[m, n] = op(A) * op(B), row-major: A is (m, k), or (k, m) where transposed; B is (k, n), or (n, k).
struct Product {
  int64_t m = 0, n = 0, k = 0;
  tilewright::DType input, output;
  bool transpose_a = false, transpose_b = false;
  bool operator==(const Product&) const = default;
};

class Blas {
 public:
  // `folder` holds libcublas.so.13 and libcublasLt.so.13 (or .12); empty: wherever the dynamic linker looks. Null if
  // there are none; `problem` then says why.
  static std::unique_ptr<Blas> find(const std::string& folder, std::string& problem);
  ~Blas();

  const std::string& version() const { return version_; }

  // cublasGemmEx with the default choice of its algorithm: what torch.mm calls. std::runtime_error if it refuses.
  void gemm(const Product& p, const tilewright::NDArray& a, const tilewright::NDArray& b,
            const tilewright::NDArray& c) const;
  // Whether gemm() has this combination of types: not those of 8-bit floats.
  static bool has(const Product& p);

  // cublasLtMatmul with the first algorithm of its heuristic and 32 MB of workspace. Prepared once, called many times.
  class Plan;
  struct PlanOptions {
    bool fast_accumulation = false;  // 8-bit floats: sums stay in the registers of the matrix units
  };
  // Empty if the library has no algorithm for it.
  std::shared_ptr<const Plan> plan(const Product& p, PlanOptions options) const;
  std::shared_ptr<const Plan> plan(const Product& p) const { return plan(p, {}); }
  void run(const Plan& plan, const tilewright::NDArray& a, const tilewright::NDArray& b,
           const tilewright::NDArray& c) const;

 private:
  struct Functions;
  Blas(std::unique_ptr<Functions> call);
  std::unique_ptr<Functions> call_;
  void* handle_ = nullptr;  // cublasHandle_t
  void* light_ = nullptr;   // cublasLtHandle_t
  std::shared_ptr<void> workspace_;
  std::string version_;
};

}  // namespace bench::gpu
