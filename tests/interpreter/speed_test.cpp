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

Program attention(int64_t heads, int64_t length, int64_t width) {
  Tensor Q("Q", {heads, length, width}, f16), K("K", {heads, length, width}, f16), V("V", {heads, length, width}, f16);
  Tensor O("O", {heads, length, width}, f16);
  return prim_func("attention", {Q, K, V, O}, [&] {
    for (auto [bx, by] : Kernel({length / 64, heads}, {.threads = 128})) {
      auto q = alloc_shared({64, width}, f16), k = alloc_shared({64, width}, f16), v = alloc_shared({64, width}, f16);
      auto s = alloc_fragment({64, 64}, f32), o = alloc_fragment({64, width}, f32);
      auto p = alloc_fragment({64, 64}, f16);
      auto most = alloc_fragment({64}, f32), before = alloc_fragment({64}, f32), scale = alloc_fragment({64}, f32);
      auto sum = alloc_fragment({64}, f32), total = alloc_fragment({64}, f32);
      copy(Q(by, bx * 64, 0), q);
      clear(o);
      clear(total);
      fill(most, -infinity(f32));
      for (auto j : Pipelined(length / 64, {.num_stages = 2})) {
        copy(K(by, j * 64, 0), k);
        clear(s);
        gemm(q, k, s, {.transpose_B = true});
        copy(most, before);
        reduce_max(s, most, {.dim = 1, .clear = false});
        for (auto i : Parallel(64)) scale(i) = exp2((before(i) - most(i)) * 0.18);
        for (auto [i, c] : Parallel(64, 64)) s(i, c) = exp2((s(i, c) - most(i)) * 0.18);
        reduce_sum(s, sum, {.dim = 1});
        copy(s, p);
        for (auto i : Parallel(64)) total(i) = total(i) * scale(i) + sum(i);
        for (auto [i, c] : Parallel(64, width)) o(i, c) = o(i, c) * scale(i);
        copy(V(by, j * 64, 0), v);
        gemm(p, v, o);
      }
      for (auto [i, c] : Parallel(64, width)) o(i, c) = o(i, c) / total(i);
      copy(o, O(by, bx * 64, 0));
    }
  });
}

TEST(InterpreterSpeed, Attention) {
  const int64_t heads = 2, length = 1024, width = 64;
  NDArray q = range_array({heads, length, width}, f16, 0.01), k = range_array({heads, length, width}, f16, 0.013);
  NDArray v = range_array({heads, length, width}, f16, 0.02), o = NDArray::zeros({heads, length, width}, f16);
  double seconds = seconds_of([&] { run(attention(heads, length, width), {q, k, v, o}); });
  fmt::print("attention of {} x {} x {} float16 on one core: {:.3f} s\n", heads, length, width, seconds);
  for (int64_t row : {0, 77, 1023}) {  // against a plain softmax in double
    std::vector<double> weight(static_cast<size_t>(length));
    double most = -1e300, total = 0;
    for (int64_t j = 0; j < length; ++j) {
      double s = 0;
      for (int64_t c = 0; c < width; ++c) s += q.get_float({1, row, c}) * k.get_float({1, j, c});
      weight[static_cast<size_t>(j)] = s * 0.18, most = std::max(most, s * 0.18);
    }
    for (double& w : weight) w = std::exp2(w - most), total += w;
    for (int64_t c = 0; c < width; ++c) {
      double expected = 0;
      for (int64_t j = 0; j < length; ++j) expected += weight[static_cast<size_t>(j)] / total * v.get_float({1, j, c});
      EXPECT_NEAR(o.get_float({1, row, c}), expected, 2e-3);
    }
  }
  EXPECT_LT(seconds, 60);
}

}  // namespace
}  // namespace tilewright::interpreter
