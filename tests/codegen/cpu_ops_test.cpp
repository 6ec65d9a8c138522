// Every tile op and every kind of scalar code: the CPU engine against the interpreter.
#include <gtest/gtest.h>

#include "codegen/cpu_kernel.h"

namespace tilewright {
namespace {

const DType kFloats[] = {f32, f64, f16, bf16, e4m3, e5m2};

std::string type_name(const testing::TestParamInfo<DType>& p) { return p.param.name(); }

class CpuOfType : public testing::TestWithParam<DType> {};

TEST_P(CpuOfType, CopiesFillsAndComputesWithRaggedEdges) {
  const DType t = GetParam();
  const int64_t M = 37, N = 53;
  Tensor A("A", {M, N}, t), B("B", {M, N}, t), C("C", {M, N}, f32);
  expect_same(prim_func("elementwise", {A, B, C},
                        [&] {
                          for (auto [bx, by] : Kernel({ceildiv(N, 32), ceildiv(M, 16)}, {.threads = 64})) {
                            auto tile = alloc_shared({16, 32}, t);
                            auto sum = alloc_fragment({16, 32}, t);
                            fill(sum, 2);
                            copy(A(by * 16, bx * 32), tile);
                            for (auto [i, j] : Parallel(16, 32)) {
                              sum(i, j) = sum(i, j) + tile(i, j) * 3;
                              sum(i, j) = max(sum(i, j), tile(i, j)) - min(sum(i, j), 4);
                            }
                            copy(sum, B(by * 16, bx * 32));
                            copy(sum, C(by * 16, bx * 32));
                          }
                        }),
              {ramp({M, N}, t, 0.25), NDArray::zeros({M, N}, t), NDArray::zeros({M, N}, f32)});
}

TEST_P(CpuOfType, ReducesAlongBothDimensions) {
  const DType t = GetParam();
  const int64_t M = 24, N = 70;
  Tensor A("A", {M, N}, t), Rows("Rows", {M}, t), Columns("Columns", {N}, t), Most("Most", {M}, t),
      Sums("Sums", {M}, f32);
  expect_same(prim_func("reduce", {A, Rows, Columns, Most, Sums},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 32})) {
                            (void)bx;
                            auto tile = alloc_fragment({M, N}, t);
                            auto rows = alloc_fragment({M}, t);
                            auto columns = alloc_fragment({N}, t);
                            auto most = alloc_fragment({M}, t);
                            auto sums = alloc_fragment({M}, f32);
                            copy(A, tile);
                            reduce_min(tile, rows, {.dim = 1});
                            reduce_max(tile, columns, {.dim = 0});
                            reduce_absmax(tile, most, {.dim = 1});
                            fill(sums, 1);
                            reduce_sum(tile, sums, {.dim = 1, .clear = false});
                            copy(rows, Rows);
                            copy(columns, Columns);
                            copy(most, Most);
                            copy(sums, Sums);
                          }
                        }),
              {ramp({M, N}, t, 0.25), NDArray::zeros({M}, t), NDArray::zeros({N}, t), NDArray::zeros({M}, t),
               NDArray::zeros({M}, f32)},
              {}, 1e-6);
}

// Rows of zeros of both signs, of NaNs, and of both and numbers: the sign of the zero that is left is in its bits.
NDArray rows_of_specials(int64_t M, int64_t N, DType t) {
  NDArray a = NDArray::zeros({M, N}, t);
  const double zeros[] = {-0.0, 0.0}, nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values;
  for (int64_t i = 0; i < M; ++i)
    for (int64_t j = 0; j < N; ++j) {
      const int64_t k = (i * 31 + j * 7) % 97;
      double v = static_cast<double>(k - 40) * 0.25;
      if (i % 6 == 1) v = zeros[k == i];
      if (i % 6 == 2) v = zeros[k != i];
      if (i % 6 == 3) v = k % 5 == 0 ? nan : -std::abs(v);
      if (i % 6 == 4) v = nan;
      if (i % 6 == 5) v = k % 3 == 0 ? -std::numeric_limits<double>::infinity() : zeros[k % 2];
      values.push_back(v);
    }
  a.assign_floats(values);
  return a;
}

// The lanes of a row are joined by halves, in registers: the last of them are fewer than a vector has.
TEST_P(CpuOfType, JoinsTheLanesOfLongRows) {
  const DType t = GetParam();
  for (const int64_t N : {16, 70, 256}) {
    const int64_t M = 24;
    Tensor A("A", {M, N}, t), Least("Least", {M}, t), Most("Most", {M}, t), Largest("Largest", {M}, t),
        All("All", {1}, t);
    const Program program = prim_func("fold", {A, Least, Most, Largest, All}, [&] {
      for (auto bx : Kernel(1, {.threads = 32})) {
        (void)bx;
        auto tile = alloc_fragment({M, N}, t);
        auto least = alloc_fragment({M}, t);
        auto most = alloc_fragment({M}, t);
        auto largest = alloc_fragment({M}, t);
        auto all = alloc_fragment({1}, t);
        copy(A, tile);
        reduce_min(tile, least, {.dim = 1});
        reduce_max(tile, most, {.dim = 1});
        reduce_absmax(tile, largest, {.dim = 1});
        reduce_max(most, all, {.dim = 0});
        copy(least, Least);
        copy(most, Most);
        copy(largest, Largest);
        copy(all, All);
      }
    });
    EXPECT_NE(cpu_text_of(program).find("tw_fold<"), std::string::npos);
    expect_same(program, {rows_of_specials(M, N, t), NDArray::zeros({M}, t), NDArray::zeros({M}, t),
                          NDArray::zeros({M}, t), NDArray::zeros({1}, t)});
  }
}

TEST_P(CpuOfType, ScansBothWays) {
  const DType t = GetParam();
  const int64_t M = 9, N = 21;
  Tensor A("A", {M, N}, t), B("B", {M, N}, t), C("C", {M, N}, t);
  expect_same(prim_func("scan", {A, B, C},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 32})) {
                            (void)bx;
                            auto tile = alloc_shared({M, N}, t);
                            auto out = alloc_shared({M, N}, t);
                            copy(A, tile);
                            cumsum(tile, out, {.dim = 1});
                            copy(out, B);
                            cummax(tile, out, {.dim = 0, .reverse = true});
                            copy(out, C);
                          }
                        }),
              {ramp({M, N}, t, 0.125), NDArray::zeros({M, N}, t), NDArray::zeros({M, N}, t)}, {}, 1e-6);
}

TEST_P(CpuOfType, MultipliesMatrices) {
  const DType t = GetParam();
  const DType c = t == f64 ? f64 : f32;
  const int64_t M = 20, N = 33, K = 48;
  Tensor A("A", {K, M}, t), B("B", {N, K}, t), C("C", {M, N}, c);
  expect_same(prim_func("gemm", {A, B, C},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 128})) {
                            (void)bx;
                            auto A_shared = alloc_shared({16, M}, t);
                            auto B_shared = alloc_shared({N, 16}, t);
                            auto C_local = alloc_fragment({M, N}, c);
                            for (auto k : Pipelined(K / 16, {.num_stages = 2})) {
                              copy(A(k * 16, 0), A_shared);
                              copy(B(0, k * 16), B_shared);
                              gemm(A_shared, B_shared, C_local,
                                   {.transpose_A = true, .transpose_B = true, .clear_accum = k == 0});
                            }
                            copy(C_local, C);
                          }
                        }),
              {ramp({K, M}, t, 0.25), ramp({N, K}, t, 0.5), NDArray::zeros({M, N}, c)}, {}, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Floats, CpuOfType, testing::ValuesIn(kFloats), type_name);

// Rows side by side are scanned as vectors, of which the last columns are fewer than a square has.
TEST(CpuOps, ScansRowsSideBySide) {
  for (const DType t : {f32, f64, i32}) {
    for (const bool in_place : {false, true}) {
      const int64_t M = 16, N = 37;
      Tensor A("A", {M, N}, t), B("B", {M, N}, t), C("C", {M, N}, t);
      const Program program = prim_func("scan", {A, B, C}, [&] {
        for (auto bx : Kernel(1, {.threads = 32})) {
          (void)bx;
          auto tile = alloc_shared({M, N}, t);
          auto out = alloc_shared({M, N}, t);
          copy(A, tile);
          cumsum(tile, in_place ? tile : out, {.dim = 1});
          copy(in_place ? tile : out, B);
          cumsum(tile, out, {.dim = 1, .reverse = true});
          copy(out, C);
        }
      });
      expect_same(program, {ramp({M, N}, t, 0.37), NDArray::zeros({M, N}, t), NDArray::zeros({M, N}, t)});
      runtime::ProcessorFeatures wide;
      wide.avx2 = wide.avx512 = true;
      const std::string text = cpu_text_of(program, wide), narrow = cpu_text_of(program);
      EXPECT_NE(text.find("tw_scan<8>"), std::string::npos) << text;
      EXPECT_EQ(narrow.find("tw_scan<8>("), std::string::npos) << narrow;  // eight do not fit 16 bytes
    }
  }
}

class CpuOfInt : public testing::TestWithParam<DType> {};

TEST_P(CpuOfInt, Computes) {
  const DType t = GetParam();
  const int64_t N = 110;
  Tensor A("A", {N}, t), B("B", {N}, t), C("C", {N}, t), D("D", {N}, i32);
  expect_same(prim_func("ints", {A, B, C, D},
                        [&] {
                          for (auto bx : Kernel(ceildiv(N, 32), {.threads = 32}))
                            for (auto i : Parallel(32)) {
                              Value x = A(bx * 32 + i);
                              Value y = B(bx * 32 + i);
                              C(bx * 32 + i) = ((x * y + 3) ^ (x & y)) - floordiv(x, 3) + floormod(x, 5) +
                                               max(x, y) * min(x, 2) + (x << 1) + (y >> 1);
                              D(bx * 32 + i) = cast(x, i32) * 2 + cast(x < y, i32);
                            }
                        }),
              {ramp({N}, t), ramp({N}, t), NDArray::zeros({N}, t), NDArray::zeros({N}, i32)});
}

TEST_P(CpuOfInt, JoinsTheLanesOfLongRows) {
  const DType t = GetParam();
  const int64_t M = 3, N = 150;
  Tensor A("A", {M, N}, t), Sum("Sum", {M}, t), Least("Least", {M}, t), Most("Most", {M}, t), Both("Both", {M}, t);
  const Program program = prim_func("fold", {A, Sum, Least, Most, Both}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      (void)bx;
      auto tile = alloc_fragment({M, N}, t);
      auto sum = alloc_fragment({M}, t);
      auto least = alloc_fragment({M}, t);
      auto most = alloc_fragment({M}, t);
      auto both = alloc_fragment({M}, t);
      copy(A, tile);
      reduce_sum(tile, sum, {.dim = 1});
      reduce_min(tile, least, {.dim = 1});
      reduce_max(tile, most, {.dim = 1});
      reduce_bitxor(tile, both, {.dim = 1});
      copy(sum, Sum);
      copy(least, Least);
      copy(most, Most);
      copy(both, Both);
    }
  });
  EXPECT_EQ(cpu_text_of(program).find("tw_fold<32>") != std::string::npos, t.bits >= 16);
  expect_same(program, {ramp({M, N}, t), NDArray::zeros({M}, t), NDArray::zeros({M}, t), NDArray::zeros({M}, t),
                        NDArray::zeros({M}, t)});
}

// 2^64 - 1 and 2^63 are no negative numbers.
TEST(CpuOps, LargestMagnitudesOfUnsigned) {
  Tensor A("A", {3, 2}, u64), Largest("Largest", {3}, u64);
  const Program program = prim_func("largest", {A, Largest}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      (void)bx;
      auto tile = alloc_fragment({3, 2}, u64);
      auto largest = alloc_fragment({3}, u64);
      copy(A, tile);
      reduce_absmax(tile, largest, {.dim = 1});
      copy(largest, Largest);
    }
  });
  const NDArray a = NDArray::zeros({3, 2}, u64);
  a.assign_ints(std::vector<int64_t>{-1, 5, 7, INT64_MIN, 3, 4});
  const std::vector<NDArray> out = expect_same(program, {a, NDArray::zeros({3}, u64)});
  EXPECT_EQ(out[1].to_ints(), (std::vector<int64_t>{-1, INT64_MIN, 4}));
}

TEST_P(CpuOfInt, ReducesAndScans) {
  const DType t = GetParam();
  const int64_t M = 5, N = 40;
  Tensor A("A", {M, N}, t), S("S", {M}, t), X("X", {M}, t), O("O", {N}, t), P("P", {M, N}, t);
  expect_same(prim_func("ints", {A, S, X, O, P},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 32})) {
                            (void)bx;
                            auto tile = alloc_fragment({M, N}, t);
                            auto s = alloc_fragment({M}, t);
                            auto x = alloc_fragment({M}, t);
                            auto o = alloc_fragment({N}, t);
                            auto p = alloc_fragment({M, N}, t);
                            copy(A, tile);
                            reduce_sum(tile, s, {.dim = 1});
                            reduce_max(tile, x, {.dim = 1});
                            reduce_bitor(tile, o, {.dim = 0});
                            cumsum(tile, p, {.dim = 1});
                            copy(s, S);
                            copy(x, X);
                            copy(o, O);
                            copy(p, P);
                          }
                        }),
              {ramp({M, N}, t), NDArray::zeros({M}, t), NDArray::zeros({M}, t), NDArray::zeros({N}, t),
               NDArray::zeros({M, N}, t)});
}

const DType kInts[] = {i4, u4, i8, u8, i16, u16, i32, u32, i64, u64};
INSTANTIATE_TEST_SUITE_P(Ints, CpuOfInt, testing::ValuesIn(kInts), type_name);

TEST(CpuOps, PacksFourBitFloats) {
  const int64_t N = 50;
  Tensor A("A", {N}, e2m1), B("B", {N}, e2m1);
  expect_same(prim_func("fp4", {A, B},
                        [&] {
                          for (auto bx : Kernel(ceildiv(N, 5), {.threads = 32}))
                            for (auto i : Parallel(5)) B(bx * 5 + i) = A(bx * 5 + i) * 2 + 1;
                        }),
              {ramp({N}, e2m1, 0.1), NDArray::zeros({N}, e2m1)});
}

TEST(CpuOps, ChoosesASideOfASelectLazily) {
  const int64_t N = 40;
  Tensor A("A", {N}, f32), B("B", {N}, f32);
  expect_same(prim_func("shift", {A, B},
                        [&] {
                          for (auto bx : Kernel(ceildiv(N, 16), {.threads = 16}))
                            for (auto i : Parallel(16)) {
                              Value p = bx * 16 + i;
                              B(p) = if_then_else(p > 0, A(p - 1), 7) + A(p + 1);
                            }
                        }),
              {ramp({N}, f32), NDArray::zeros({N}, f32)});
}

TEST(CpuOps, SolvesDynamicShapes) {
  Value M = dynamic("M"), N = dynamic("N");
  Tensor A("A", {M, N}, f32), B("B", {N, M}, f32);
  expect_same(prim_func("transpose", {A, B},
                        [&] {
                          for (auto [bx, by] : Kernel({ceildiv(N, 16), ceildiv(M, 16)}, {.threads = 64})) {
                            use_swizzle(2);
                            auto tile = alloc_shared({16, 16}, f32);
                            copy(A(by * 16, bx * 16), tile);
                            for (auto [i, j] : Parallel(16, 16)) B(bx * 16 + j, by * 16 + i) = tile(i, j);
                          }
                        }),
              {ramp({45, 71}, f32), NDArray::zeros({71, 45}, f32)}, {45, 71});
}

TEST(CpuOps, FollowsViewsAndBitcasts) {
  Tensor A("A", {8, 16}, f32), B("B", {128}, i32);
  expect_same(prim_func("views", {A, B},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 32})) {
                            (void)bx;
                            auto tile = alloc_shared({8, 16}, f32);
                            copy(A, tile);
                            auto flat = reshape(tile, {128});
                            auto bits = view(tile, {128}, i32);
                            for (auto i : Parallel(64)) flat(i) = flat(i) + 1;
                            for (auto i : Parallel(128)) B(i) = bits(i) ^ reinterpret(flat(i), i32) ^ i;
                          }
                        }),
              {ramp({8, 16}, f32, 0.3), NDArray::zeros({128}, i32)});
}

TEST(CpuOps, UpdatesAtomically) {
  const int64_t N = 4000;
  for (DType t : {f32, f16, i32, i64, f64}) {
    Tensor A("A", {N}, t), Sum("Sum", {4}, t), Most("Most", {4}, t), Count("Count", {1}, i32);
    expect_same(prim_func("histogram", {A, Sum, Most, Count},
                          [&] {
                            for (auto bx : Kernel(ceildiv(N, 64), {.threads = 64})) {
                              for (auto i : Parallel(64)) {
                                atomic_add(Sum(floormod(i, 4)), cast(floormod(i, 3), t));
                                atomic_max(Most(floormod(i, 4)), A(bx * 64 + i));
                              }
                              atomic_add(Count(0), 1);
                            }
                          }),
                {ramp({N}, t), NDArray::zeros({4}, t), NDArray::zeros({4}, t), NDArray::zeros({1}, i32)});
  }
}

TEST(CpuOps, TakesWhatIsAssumed) {
  Tensor A("A", {64}, f32), I("I", {64}, i32), B("B", {64}, f32);
  expect_same(prim_func("assumes", {A, I, B},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 64})) {
                            (void)bx;
                            auto t = get_thread_binding();
                            Value i = I(t);
                            assume(i >= 0 && i < 64);
                            B(t) = A(i);
                          }
                        }),
              {ramp({64}, f32, 0.5), NDArray::zeros({64}, i32), NDArray::zeros({64}, f32)});
}

TEST(CpuOps, ReducesIntoReducers) {
  const int64_t M = 20, N = 30;
  Tensor A("A", {M, N}, f32), B("B", {M}, f32);
  expect_same(prim_func("reducer", {A, B},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 32})) {
                            (void)bx;
                            auto acc = alloc_reducer({M}, f32, ReducerOp::Sum);
                            clear(acc);
                            for (auto [i, j] : Parallel(M, N)) acc(i) += A(i, j);
                            finalize_reducer(acc);
                            for (auto i : Parallel(M)) B(i) = acc(i);
                          }
                        }),
              {ramp({M, N}, f32), NDArray::zeros({M}, f32)});
}

TEST(CpuOps, CopiesFourBitElementsByBytesWhereRowsAreBytes) {
  const int64_t M = 9, N = 44;
  for (const auto& [width, shift] : {std::pair<int64_t, int64_t>{16, 0}, {16, 1}, {5, 0}}) {
    Tensor A("A", {M, N}, u4), B("B", {M, N}, u4);
    const Program program = prim_func("nibbles", {A, B}, [&] {
      for (auto bx : Kernel(ceildiv(N, width), {.threads = 32})) {
        auto tile = alloc_shared({M, width}, u4);
        copy(A(0, bx * width + shift), tile);
        copy(tile, B(0, bx * width));
      }
    });
    expect_same(program, {ramp({M, N}, u4), NDArray::zeros({M, N}, u4)});
    const bool bytes = width % 2 == 0 && shift % 2 == 0;
    EXPECT_EQ(cpu_text_of(program).find("tw_nibble(A") == std::string::npos, bytes);
  }
}

// The scores are float32: the operands are no wider.
class CpuOfNarrowType : public testing::TestWithParam<DType> {};

// Tiles whose sizes are multiples of every panel, so that loops follow the panels.
TEST_P(CpuOfNarrowType, AttendsInPanels) {
  const DType t = GetParam();
  const int64_t S = 96, D = 64, bm = 64, bn = 32;
  Tensor Q("Q", {S, D}, t), K("K", {S, D}, t), V("V", {S, D}, t), O("O", {S, D}, f32);
  expect_same(prim_func("attention", {Q, K, V, O},
                        [&] {
                          for (auto bx : Kernel(ceildiv(S, bm), {.threads = 128})) {
                            auto Q_shared = alloc_shared({bm, D}, t);
                            auto K_shared = alloc_shared({bn, D}, t);
                            auto V_shared = alloc_shared({bn, D}, t);
                            auto scores = alloc_fragment({bm, bn}, f32);
                            auto P = alloc_fragment({bm, bn}, t);
                            auto acc = alloc_fragment({bm, D}, f32);
                            auto most = alloc_fragment({bm}, f32);
                            auto before = alloc_fragment({bm}, f32);
                            auto total = alloc_fragment({bm}, f32);
                            copy(Q(bx * bm, 0), Q_shared);
                            fill(acc, 0);
                            fill(total, 0);
                            fill(most, -1000);
                            for (auto k : Pipelined(S / bn, {.num_stages = 2})) {
                              copy(K(k * bn, 0), K_shared);
                              copy(V(k * bn, 0), V_shared);
                              for (auto [i, j] : Parallel(bm, bn))
                                scores(i, j) = if_then_else(bx * bm + i >= k * bn + j, 0.0, -100.0);
                              gemm(Q_shared, K_shared, scores, {.transpose_B = true});
                              copy(most, before);
                              reduce_max(scores, most, {.dim = 1, .clear = false});
                              for (auto [i, j] : Parallel(bm, bn)) scores(i, j) = exp2(scores(i, j) - most(i));
                              for (auto i : Parallel(bm)) total(i) = total(i) * exp2(before(i) - most(i));
                              reduce_sum(scores, total, {.dim = 1, .clear = false});
                              for (auto [i, j] : Parallel(bm, D)) acc(i, j) = acc(i, j) * exp2(before(i) - most(i));
                              copy(scores, P);
                              gemm(P, V_shared, acc);
                            }
                            for (auto [i, j] : Parallel(bm, D)) acc(i, j) = acc(i, j) / total(i);
                            copy(acc, O(bx * bm, 0));
                          }
                        }),
              {ramp({S, D}, t, 0.005), ramp({S, D}, t, 0.01), ramp({S, D}, t, 0.02), NDArray::zeros({S, D}, f32)}, {},
              t.is_float8() ? 0.1 : 1e-3);  // a probability that rounds the other way
}

INSTANTIATE_TEST_SUITE_P(Floats, CpuOfNarrowType, testing::Values(f32, f16, bf16, e4m3, e5m2), type_name);

TEST(CpuOps, MultipliesIntegerMatrices) {
  for (DType t : {i8, u8, i4}) {
    const int64_t M = 32, N = 64, K = 64;
    Tensor A("A", {M, K}, t), B("B", {K, N}, t), C("C", {M, N}, i32);
    expect_same(prim_func("igemm", {A, B, C},
                          [&] {
                            for (auto bx : Kernel(2, {.threads = 128})) {
                              auto A_shared = alloc_shared({M, 32}, t);
                              auto B_shared = alloc_shared({32, 32}, t);
                              auto C_local = alloc_fragment({M, 32}, i32);
                              clear(C_local);
                              for (auto k : Pipelined(2, {.num_stages = 2})) {
                                copy(A(0, k * 32), A_shared);
                                copy(B(k * 32, bx * 32), B_shared);
                                gemm(A_shared, B_shared, C_local);
                              }
                              copy(C_local, C(0, bx * 32));
                            }
                          }),
                {ramp({M, K}, t), ramp({K, N}, t), NDArray::zeros({M, N}, i32)});
  }
}

}  // namespace
}  // namespace tilewright
