// Tile ops on the interpreter against plain loops.
#include "interpreter/run.h"

namespace tilewright::interpreter {
namespace {

Program matmul(int64_t M, int64_t N, int64_t K, DType in, DType out, bool relu) {
  Tensor A("A", {M, K}, in), B("B", {K, N}, in), C("C", {M, N}, out);
  return prim_func("matmul", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, int64_t{32}), ceildiv(M, int64_t{16})}, {.threads = 128})) {
      auto A_shared = alloc_shared({16, 8}, in);
      auto B_shared = alloc_shared({8, 32}, in);
      auto C_local = alloc_fragment({16, 32}, in == f64 ? f64 : in.is_float() ? f32 : i32);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(K, int64_t{8}), {.num_stages = 3})) {
        copy(A(by * 16, k * 8), A_shared);
        copy(B(k * 8, bx * 32), B_shared);
        gemm(A_shared, B_shared, C_local);
      }
      if (relu)
        for (auto [i, j] : Parallel(16, 32)) C_local(i, j) = max(C_local(i, j), 0);
      copy(C_local, C(by * 16, bx * 32));
    }
  });
}

// Ragged in all three dimensions.
TEST(Interpreter, GemmAgreesWithLoops) {
  const int64_t M = 37, N = 45, K = 21;
  for (DType type : {f32, f16, bf16, f64, i8}) {
    NDArray a = range_array({M, K}, type, 1, -7), b = range_array({K, N}, type, 1, -11);
    NDArray c = NDArray::zeros({M, N}, type == i8 ? i32 : type == f64 ? f64 : f32);
    run(matmul(M, N, K, type, c.dtype(), true), {a, b, c});
    for (int64_t i = 0; i < M; ++i)
      for (int64_t j = 0; j < N; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < K; ++k) sum += a.get_float({i, k}) * b.get_float({k, j});
        ASSERT_EQ(c.get_float({i, j}), std::max(sum, 0.0)) << type.name() << " " << i << " " << j;
      }
  }
}

TEST(Interpreter, GemmTransposesAndClears) {
  Tensor A("A", {8, 16}, f32), B("B", {32, 8}, f32), C("C", {16, 32}, f32);
  Program p = prim_func("transposed", {A, B, C}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto a = alloc_shared({8, 16}, f32);
      auto b = alloc_shared({32, 8}, f32);
      auto c = alloc_fragment({16, 32}, f32);
      copy(A, a);
      copy(B, b);
      fill(c, 1000.0);
      for (auto k : serial(2)) gemm(a, b, c, {.transpose_A = true, .transpose_B = true, .clear_accum = k == 0});
      copy(c, C);
    }
  });
  NDArray a = range_array({8, 16}, f32), b = range_array({32, 8}, f32, 2), c = NDArray::zeros({16, 32}, f32);
  run(p, {a, b, c});
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = 0; j < 32; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 8; ++k) sum += a.get_float({k, i}) * b.get_float({j, k});
      ASSERT_EQ(c.get_float({i, j}), 2 * sum);
    }
}

TEST(Interpreter, GemmReadsTenBitsOfTfloat32) {
  Tensor A("A", {16, 8}, tf32), B("B", {8, 16}, tf32), C("C", {16, 16}, f32);
  Program p = prim_func("tf", {A, B, C}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto c = alloc_fragment({16, 16}, f32);
      auto a = alloc_shared({16, 8}, tf32);
      auto b = alloc_shared({8, 16}, tf32);
      copy(A, a);
      copy(B, b);
      clear(c);
      gemm(a, b, c);
      copy(c, C);
    }
  });
  NDArray a = NDArray::zeros({16, 8}, tf32), b = NDArray::zeros({8, 16}, tf32), c = NDArray::zeros({16, 16}, f32);
  static_cast<float*>(a.data())[0] = 1.0f + 0x1.8p-11f;  // what tfloat32 does not hold is not rounded either
  static_cast<float*>(b.data())[0] = 1.0f;
  run(p, {a, b, c});
  EXPECT_EQ(c.get_float({0, 0}), 1.0);
}

TEST(Interpreter, ElementwiseOverARaggedArrayWithASymbol) {
  Value n = dynamic("n");
  Tensor A("A", {n, 40}, f32), B("B", {n, 40}, f32);
  Program p = prim_func("scale", {A, B}, [&] {
    for (auto bx : Kernel(ceildiv(n, 16), {.threads = 64}))
      for (auto [i, j] : Parallel(16, 64)) B(bx * 16 + i, j) = A(bx * 16 + i, j) * 2.0 + 1.0;
  });
  NDArray a = range_array({21, 40}, f32), b = NDArray::zeros({21, 40}, f32);
  run(p, {a, b}, {.ints = {{"n", 21}}});
  for (int64_t i = 0; i < 21; ++i)
    for (int64_t j = 0; j < 40; ++j) ASSERT_EQ(b.get_float({i, j}), 2 * a.get_float({i, j}) + 1);
}

TEST(Interpreter, CopyFillsWhatIsOutOfBoundsAndCasts) {
  Tensor A("A", {5, 6}, f32), B("B", {2, 8, 8}, i32);
  Program p = prim_func("pad", {A, B}, [&] {
    annotate_safe_value(A, -3.0);
    for (auto bx : Kernel(2, {.threads = 32})) {
      auto s = alloc_shared({8, 8}, f16);
      copy(A(bx - 1, bx - 1), s);
      copy(s, B(bx, all, all));
    }
  });
  NDArray a = range_array({5, 6}, f32), b = NDArray::zeros({2, 8, 8}, i32);
  run(p, {a, b});
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t i = 0; i < 8; ++i)
      for (int64_t j = 0; j < 8; ++j) {
        int64_t y = i + n - 1, x = j + n - 1;
        bool inside = y >= 0 && y < 5 && x >= 0 && x < 6;
        ASSERT_EQ(b.get_int({n, i, j}), inside ? a.get_int({y, x}) : -3) << n << " " << i << " " << j;
      }
}

TEST(Interpreter, CopyMatchesExtentsOtherThanOneAndTransposedStrides) {
  Tensor A("A", {2, 4, 3, 8}, f32);
  StridedTensor B("B", {8, 4}, {1, 8}, f32);
  Program p = prim_func("slice", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto s = alloc_shared({4, 8}, f32);
      copy(A(1, all, 2, all), s);
      for (auto [i, j] : Parallel(4, 8)) B(j, i) = s(i, j);
    }
  });
  NDArray a = range_array({2, 4, 3, 8}, f32), b = NDArray::zeros({4, 8}, f32);
  run(p, {a, b});
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 8; ++j) ASSERT_EQ(b.get_float({i, j}), a.get_float({1, i, 2, j}));
}

TEST(Interpreter, AtomicCopyAddsToWhatIsThere) {
  Tensor A("A", {4, 8}, f32), B("B", {8}, f32);
  Program p = prim_func("add", {A, B}, [&] {
    for (auto bx : Kernel(4, {.threads = 32})) {
      auto s = alloc_shared({8}, f32);
      copy(A(bx, 0), s);
      atomic_add(B, s);
    }
  });
  NDArray a = range_array({4, 8}, f32), b = range_array({8}, f32, 100);
  run(p, {a, b});
  for (int64_t j = 0; j < 8; ++j) {
    double sum = 100.0 * static_cast<double>(j);
    for (int64_t i = 0; i < 4; ++i) sum += a.get_float({i, j});
    EXPECT_EQ(b.get_float({j}), sum);
  }
}

TEST(Interpreter, AtomicCopyKeepsTheLargestAndTheLeast) {
  Tensor A("A", {4, 8}, i32), Most("Most", {8}, i32), Least("Least", {8}, i32);
  Program p = prim_func("extremes", {A, Most, Least}, [&] {
    for (auto bx : Kernel(4, {.threads = 32})) {
      auto s = alloc_shared({8}, i32);
      copy(A(bx, 0), s);
      atomic_max(Most, s);
      atomic_min(Least, s);
    }
  });
  NDArray a = NDArray::zeros({4, 8}, i32), most = NDArray::zeros({8}, i32), least = NDArray::zeros({8}, i32);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 32; ++i) values.push_back(i * 37 % 64 - 30);
  a.assign_ints(values);
  run(p, {a, most, least});
  for (int64_t j = 0; j < 8; ++j) {
    int64_t largest = 0, smallest = 0;  // what was there
    for (int64_t i = 0; i < 4; ++i) {
      largest = std::max(largest, a.get_int({i, j}));
      smallest = std::min(smallest, a.get_int({i, j}));
    }
    EXPECT_EQ(most.get_int({j}), largest) << j;
    EXPECT_EQ(least.get_int({j}), smallest) << j;
  }
}

TEST(Interpreter, ReductionsAlongEveryDimension) {
  for (int64_t dim : {0, 1, 2}) {
    Tensor A("A", {3, 5, 4}, f32), B("B", {20}, f32);
    Program p = prim_func("reduce", {A, B}, [&] {
      for (auto bx : Kernel(1, {.threads = 32})) {
        auto s = alloc_fragment({3, 5, 4}, f32);
        std::initializer_list<Operand> shapes[] = {{5, 4}, {3, 4}, {3, 5}};
        copy(A, s);
        auto sum = alloc_fragment(shapes[dim], f32);
        auto most = alloc_fragment(shapes[dim], f32);
        auto abs = alloc_fragment(shapes[dim], f32);
        fill(sum, 0.5);
        reduce_sum(s, sum, {.dim = dim, .clear = false});
        reduce_max(s, most, {.dim = dim});
        reduce_absmax(s, abs, {.dim = dim});
        int64_t n0 = dim == 0 ? 5 : 3, n1 = dim == 2 ? 5 : 4;
        for (auto [i, j] : Parallel(n0, n1)) B(i * n1 + j) = sum(i, j) + 1000 * most(i, j) + 1000000 * abs(i, j);
      }
    });
    NDArray a = range_array({3, 5, 4}, f32, 1, -30), b = NDArray::zeros({20}, f32);
    run(p, {a, b});
    int64_t n0 = dim == 0 ? 5 : 3, n1 = dim == 2 ? 5 : 4, along = dim == 0 ? 3 : dim == 1 ? 5 : 4;
    for (int64_t i = 0; i < n0; ++i)
      for (int64_t j = 0; j < n1; ++j) {
        float sum = 0, most = -INFINITY, abs = 0;
        for (int64_t k = 0; k < along; ++k) {
          auto x = static_cast<float>(dim == 0   ? a.get_float({k, i, j})
                                      : dim == 1 ? a.get_float({i, k, j})
                                                 : a.get_float({i, j, k}));
          sum += x, most = std::max(most, x), abs = std::max(abs, std::fabs(x));
        }
        ASSERT_EQ(b.get_float({i * n1 + j}), std::fmaf(1000000, abs, std::fmaf(1000, most, 0.5f + sum))) << dim;
      }
  }
}

TEST(Interpreter, ReductionsOfIntegersBitsAndNan) {
  Tensor A("A", {2, 4}, i32), X("X", {4}, f32), B("B", {8}, i32), Y("Y", {2}, f32);
  Program p = prim_func("bits", {A, X, B, Y}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto s = alloc_shared({2, 4}, i32);
      auto x = alloc_shared({4}, f32);
      auto r = alloc_fragment({2}, i32);
      auto y = alloc_fragment({1}, f32);
      copy(A, s);
      copy(X, x);
      reduce_bitand(s, r, {.dim = 1});
      copy(r, B(slice(0, 2)));
      reduce_bitxor(s, r, {.dim = 1});
      copy(r, B(slice(2, 4)));
      reduce_min(s, r, {.dim = 1});
      copy(r, B(slice(4, 6)));
      reduce_abssum(s, r, {.dim = 1});
      copy(r, B(slice(6, 8)));
      reduce_max(x, y);
      copy(y, Y(slice(0, 1)));
      reduce_max(x, y, {.nan_propagate = true});
      copy(y, Y(slice(1, 2)));
    }
  });
  NDArray a = NDArray::zeros({2, 4}, i32), x = NDArray::zeros({4}, f32), b = NDArray::zeros({8}, i32),
          y = NDArray::zeros({2}, f32);
  a.assign_ints(std::vector<int64_t>{7, 3, 11, -1, -5, 2, 8, 1});
  x.assign_floats(std::vector<double>{1, NAN, 5, 2});
  run(p, {a, x, b, y});
  EXPECT_EQ(b.to_ints(), (std::vector<int64_t>{7 & 3 & 11, 0, 7 ^ 3 ^ 11 ^ -1, -5 ^ 2 ^ 8 ^ 1, -1, -5, 22, 16}));
  EXPECT_EQ(y.get_float({0}), 5);
  EXPECT_TRUE(std::isnan(y.get_float({1})));
}

TEST(Interpreter, ScansFromBothEnds) {
  Tensor A("A", {3, 5}, f32), B("B", {3, 5}, f32), C("C", {3, 5}, f32);
  Program p = prim_func("scan", {A, B, C}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto s = alloc_shared({3, 5}, f32);
      auto t = alloc_shared({3, 5}, f32);
      copy(A, s);
      cumsum(s, t, {.dim = 1, .reverse = true});
      copy(t, B);
      cummax(s, t, {.dim = 0});
      copy(t, C);
    }
  });
  NDArray a = range_array({3, 5}, f32, 1, -4), b = NDArray::zeros({3, 5}, f32), c = NDArray::zeros({3, 5}, f32);
  a.set_float({0, 2}, 50);
  run(p, {a, b, c});
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 5; ++j) {
      double sum = 0, most = -1e9;
      for (int64_t k = j; k < 5; ++k) sum += a.get_float({i, k});
      for (int64_t k = 0; k <= i; ++k) most = std::max(most, a.get_float({k, j}));
      EXPECT_EQ(b.get_float({i, j}), sum);
      EXPECT_EQ(c.get_float({i, j}), most);
    }
}

TEST(Interpreter, Im2colMakesPatches) {
  Tensor A("A", {2, 5, 6, 3}, f32), B("B", {64, 32}, f32);
  Program p = prim_func("patches", {A, B}, [&] {
    for (auto bx : Kernel(4, {.threads = 32})) {
      auto s = alloc_shared({16, 32}, f32);
      im2col(A, s, bx, 0, {.kernel = 3, .stride = 1, .dilation = 1, .pad = 1});
      copy(s, B(bx * 16, 0));
    }
  });
  NDArray a = range_array({2, 5, 6, 3}, f32), b = NDArray::zeros({64, 32}, f32);
  run(p, {a, b});
  for (int64_t m = 0; m < 60; ++m)
    for (int64_t k = 0; k < 27; ++k) {
      int64_t n = m / 30, y = m / 6 % 5 + k / 9 - 1, x = m % 6 + k / 3 % 3 - 1;
      bool inside = y >= 0 && y < 5 && x >= 0 && x < 6;
      ASSERT_EQ(b.get_float({m, k}), inside ? a.get_float({n, y, x, k % 3}) : 0) << m << " " << k;
    }
}

// acc(i) = op(acc(i), v) is an update too, and a copy reads what is finalized.
TEST(Interpreter, ReducerIsUpdatedByAssignmentAndCopiedOut) {
  Tensor A("A", {64, 4}, f32), B("B", {3, 4}, f32);
  Program p = prim_func("reducers", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto least = alloc_reducer({4}, f32, ReducerOp::Min), most = alloc_reducer({4}, f32, ReducerOp::Max);
      auto sum = alloc_reducer({4}, f32);
      fill(least, 1e9), fill(most, -1e9), clear(sum);
      for (auto [i, j] : Parallel(64, 4)) {
        least(j) = min(least(j), A(i, j));
        most(j) = max(A(i, j), most(j));
        sum(j) = sum(j) + A(i, j) * 2;
      }
      finalize_reducer(least), finalize_reducer(most), finalize_reducer(sum);
      copy(least, B(0, 0)), copy(most, B(1, 0)), copy(sum, B(2, 0));
    }
  });
  NDArray a = range_array({64, 4}, f32), b = NDArray::zeros({3, 4}, f32);
  run(p, {a, b});
  for (int64_t j = 0; j < 4; ++j) {
    double least = 1e9, most = -1e9, sum = 0;
    for (int64_t i = 0; i < 64; ++i) {
      least = std::min(least, a.get_float({i, j})), most = std::max(most, a.get_float({i, j}));
      sum += 2 * a.get_float({i, j});
    }
    EXPECT_EQ(b.get_float({0, j}), least);
    EXPECT_EQ(b.get_float({1, j}), most);
    EXPECT_EQ(b.get_float({2, j}), sum);
  }
}

TEST(Interpreter, ReducerCountsEveryPointOnce) {
  Tensor A("A", {64, 4}, f32), B("B", {4}, f32);
  Program p = prim_func("reducer", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto acc = alloc_reducer({4}, f32);
      clear(acc);
      for (auto [i, j] : Parallel(64, 4)) acc(j) += A(i, j);
      finalize_reducer(acc);
      for (auto j : Parallel(4)) B(j) = acc(j);
    }
  });
  NDArray a = range_array({64, 4}, f32), b = NDArray::zeros({4}, f32);
  run(p, {a, b});
  for (int64_t j = 0; j < 4; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < 64; ++i) sum += a.get_float({i, j});
    EXPECT_EQ(b.get_float({j}), sum);
  }
}

}  // namespace
}  // namespace tilewright::interpreter
