// What the oracle costs at benchmark shapes: printed, with bounds that only a mistake exceeds.
#include <chrono>

#include "interpreter/run.h"

namespace tilewright::interpreter {
namespace {

double seconds_of(const std::function<void()>& f) {
  auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(InterpreterSpeed, Gemm1024) {
  const int64_t n = 1024;
  Tensor A("A", {n, n}, f32), B("B", {n, n}, f32), C("C", {n, n}, f32);
  Program p = prim_func("gemm", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({n / 128, n / 128}, {.threads = 128})) {
      auto a = alloc_shared({128, 32}, f32);
      auto b = alloc_shared({32, 128}, f32);
      auto c = alloc_fragment({128, 128}, f32);
      clear(c);
      for (auto k : Pipelined(n / 32, {.num_stages = 3})) {
        copy(A(by * 128, k * 32), a);
        copy(B(k * 32, bx * 128), b);
        gemm(a, b, c);
      }
      copy(c, C(by * 128, bx * 128));
    }
  });
  NDArray a = range_array({n, n}, f32, 0.01), b = range_array({n, n}, f32, 0.02), c = NDArray::zeros({n, n}, f32);
  double seconds = seconds_of([&] { run(p, {a, b, c}); });
  fmt::print("gemm 1024^3 float32 on one core: {:.3f} s\n", seconds);
  EXPECT_LT(seconds, 20);
}

TEST(InterpreterSpeed, Add16M) {
  const int64_t n = int64_t{1} << 24;
  Tensor A("A", {n}, f32), B("B", {n}, f32), C("C", {n}, f32);
  Program p = prim_func("add", {A, B, C}, [&] {
    for (auto bx : Kernel(n / 4096, {.threads = 128}))
      for (auto i : Parallel(4096)) C(bx * 4096 + i) = A(bx * 4096 + i) + B(bx * 4096 + i);
  });
  NDArray a = range_array({n}, f32), b = range_array({n}, f32, 2), c = NDArray::zeros({n}, f32);
  double seconds = seconds_of([&] { run(p, {a, b, c}); });
  fmt::print("add of 2^24 float32 on one core: {:.3f} s\n", seconds);
  EXPECT_EQ(c.get_float({n - 1}), a.get_float({n - 1}) + b.get_float({n - 1}));
  EXPECT_LT(seconds, 20);
}

}  // namespace
}  // namespace tilewright::interpreter
