// First programs from end to end on the CPU engine.
#include <gtest/gtest.h>

#include "codegen/cpu_kernel.h"

namespace tilewright {
namespace {

TEST(CpuEngine, AddsVectorsWithARaggedTail) {
  const int64_t n = 1000;
  Tensor A("A", {n}), B("B", {n}), C("C", {n});
  const CpuKernelUnderTest kernel(prim_func("add", {A, B, C}, [&] {
    for (auto bx : Kernel(ceildiv(n, 128), {.threads = 128}))
      for (auto i : Parallel(128)) C(bx * 128 + i) = A(bx * 128 + i) + B(bx * 128 + i);
  }));
  const NDArray a = ramp({n}, f32, 0.5), b = ramp({n}, f32, 0.25), c = NDArray::zeros({n}, f32);
  kernel.run({a, b, c});
  for (int64_t i = 0; i < n; ++i) EXPECT_EQ(c.get_float({i}), a.get_float({i}) + b.get_float({i})) << kernel.text();
}

TEST(CpuEngine, MultipliesMatricesThenRelu) {
  const int64_t M = 200, N = 144, K = 100;
  Tensor A("A", {M, K}), B("B", {K, N}), C("C", {M, N});
  const CpuKernelUnderTest kernel(prim_func("matmul_relu", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, 64), ceildiv(M, 64)}, {.threads = 128})) {
      auto A_shared = alloc_shared({64, 32}, f32);
      auto B_shared = alloc_shared({32, 64}, f32);
      auto C_local = alloc_fragment({64, 64}, f32);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(K, 32), {.num_stages = 3})) {
        copy(A(by * 64, k * 32), A_shared);
        copy(B(k * 32, bx * 64), B_shared);
        gemm(A_shared, B_shared, C_local);
      }
      for (auto [i, j] : Parallel(64, 64)) C_local(i, j) = max(C_local(i, j), 0);
      copy(C_local, C(by * 64, bx * 64));
    }
  }));
  const NDArray a = ramp({M, K}, f32), b = ramp({K, N}, f32), c = NDArray::zeros({M, N}, f32);
  kernel.run({a, b, c});
  for (int64_t i = 0; i < M; ++i)
    for (int64_t j = 0; j < N; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < K; ++k) sum += a.get_float({i, k}) * b.get_float({k, j});
      ASSERT_EQ(c.get_float({i, j}), std::max(sum, 0.0)) << i << ", " << j << "\n" << kernel.text();
    }
}

}  // namespace
}  // namespace tilewright
