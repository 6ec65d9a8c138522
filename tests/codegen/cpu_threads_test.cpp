// Code of a block's threads: the CPU engine against the interpreter.
#include <gtest/gtest.h>

#include "codegen/cpu_kernel.h"
#include "runtime/report.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

NDArray zeros(std::initializer_list<int64_t> shape, DType type) { return NDArray::zeros(shape, type); }

TEST(CpuThreads, RunEachTheirOwnCode) {
  const int64_t n = 150;
  Tensor A("A", {n}, f32), B("B", {n}, f32);
  expect_same(prim_func("threads", {A, B},
                        [&] {
                          for (auto bx : Kernel(ceildiv(n, 64), {.threads = 64})) {
                            Value tx = get_thread_binding();
                            Value i = bx * 64 + tx;
                            If(i < n, [&] {
                              Value x = A(i);
                              If(x > 0, [&] { B(i) = x * 2; }).Else([&] { B(i) = -x; });
                            });
                          }
                        }),
              {ramp({n}, f32), zeros({n}, f32)});
}

TEST(CpuThreads, ExchangeThroughSharedMemoryWithAndWithoutWrittenBarriers) {
  Tensor A("A", {64}, f32), B("B", {3, 64}, f32);
  expect_same(prim_func("exchange", {A, B},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 64})) {
                            (void)bx;
                            auto s = alloc_shared({64}, f32);
                            Value tx = get_thread_binding();
                            s(tx) = A(tx);
                            sync_threads();
                            Value other = s(63 - tx);
                            B(0, tx) = other + tx;
                            sync_threads();
                            s(tx) = other * 2;  // from here on the barriers are the language's
                            B(1, tx) = s(floormod(tx + 1, 64)) + other;
                            If(tx == 40, [&] { s(0) = 1000; });
                            B(2, tx) = s(0);
                          }
                        }),
              {ramp({64}, f32), zeros({3, 64}, f32)});
}

TEST(CpuThreads, KeepLocalMemoryAcrossBarriers) {
  Tensor A("A", {4, 32}, f32), B("B", {32}, f32), C("C", {32}, f32);
  expect_same(prim_func("locals", {A, B, C},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 32})) {
                            (void)bx;
                            auto s = alloc_shared({32}, f32);
                            auto mine = alloc_local({4}, f32);
                            auto sum = alloc_var(f32, 0);
                            Value tx = get_thread_binding();
                            for (auto k : serial(4)) mine(k) = A(k, tx);
                            for (auto k : serial(4)) {
                              s(tx) = mine(k) + sum;
                              sync_threads();
                              sum += s(floormod(tx + k, 32));
                              sync_threads();
                            }
                            B(tx) = sum;
                            fill(mine, 3);
                            C(tx) = mine(0) + mine(3) + sum;
                          }
                        }),
              {ramp({4, 32}, f32), zeros({32}, f32), zeros({32}, f32)});
}

TEST(CpuThreads, Shuffle) {
  Tensor A("A", {64}, i32), B("B", {8, 64}, i32);
  expect_same(prim_func("shuffle", {A, B},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 64})) {
                            (void)bx;
                            Value tx = get_thread_binding();
                            Value x = A(tx);
                            B(0, tx) = shfl_sync(x, 5);
                            B(1, tx) = shfl_up(x, 3);
                            B(2, tx) = shfl_down(x, 7, 16);
                            B(3, tx) = shfl_xor(x, 9);
                            B(4, tx) = shfl_sync(x, tx + 1, 8);
                            B(5, tx) = warp_reduce_sum(x);
                            B(6, tx) = warp_reduce_max(x * 2);
                            B(7, tx) = shfl_up(x, 1, 4) + shfl_down(x, 2) + shfl_xor(x, 13, 4);
                          }
                        }),
              {ramp({64}, i32), zeros({8, 64}, i32)});
}

TEST(CpuThreads, Vote) {
  Tensor A("A", {80}, i32), B("B", {8, 80}, u32), C("C", {3, 80}, i32);
  expect_same(prim_func("vote", {A, B, C},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 80})) {
                            (void)bx;
                            Value tx = get_thread_binding();
                            Value x = A(tx);
                            B(0, tx) = cast(any_sync(x > 55), u32);
                            B(1, tx) = cast(all_sync(x < 40), u32);
                            B(2, tx) = ballot_sync(x > 0);
                            B(3, tx) = match_any_sync(floormod(x, 3));
                            B(4, tx) = match_all_sync(floordiv(tx, 32));
                            B(5, tx) = activemask();
                            If(floormod(x, 2) == 0, [&] {
                              B(6, tx) = ballot_sync(x > 0);
                              B(7, tx) = activemask();
                            });
                            C(0, tx) = cast(syncthreads_or(x == 3), i32);
                            C(1, tx) = cast(syncthreads_and(x < 100), i32);
                            C(2, tx) = syncthreads_count(x > 0);
                          }
                        }),
              {ramp({80}, i32), zeros({8, 80}, u32), zeros({3, 80}, i32)});
}

TEST(CpuThreads, DivergeAroundShufflesAndVotes) {
  Tensor A("A", {64}, i32), B("B", {4, 64}, i32);
  expect_same(prim_func("diverge", {A, B},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 64})) {
                            (void)bx;
                            Value tx = get_thread_binding();
                            Value x = A(tx);
                            auto rounds = alloc_var(i32, 0);
                            auto seen = alloc_var(u32, 0);
                            While(rounds < floormod(x, 5) + 1, [&] {
                              seen |= ballot_sync(rounds >= 2);
                              If(rounds == 3, [&] { break_loop(); });
                              rounds += 1;
                            });
                            B(0, tx) = rounds;
                            B(1, tx) = cast(seen, i32);
                            auto total = alloc_var(i32, 0);
                            for (auto k : serial(0, floormod(x, 4) + 1)) {
                              If(floormod(tx + k, 3) == 0, [&] { continue_loop(); });
                              total += shfl_sync(x, get_lane_idx()) + k + cast(activemask() & 1, i32);
                            }
                            B(2, tx) = total;
                            If(x > 0, [&] { B(3, tx) = cast(ballot_sync(x > 10), i32); }).Else([&] { B(3, tx) = -7; });
                          }
                        }),
              {ramp({64}, i32), zeros({4, 64}, i32)});
}

// Each thread goes through every 48th element: neighbours do so side by side, as long as all of them have one.
TEST(CpuThreads, TakeTurnsInLoopsOverDistantElements) {
  const int64_t N = 48 * 5 + 7, M = 9;
  Tensor A("A", {N}, f32), B("B", {N}, f32), Columns("Columns", {M, 48}, i32), Sums("Sums", {48}, i32),
      Bins("Bins", {4}, i32), Rows("Rows", {48, M}, i32);
  const Program program = prim_func("turns", {A, B, Columns, Sums, Bins, Rows}, [&] {
    for (auto bx : Kernel(1, {.threads = 48})) {
      (void)bx;
      Value tx = get_thread_binding();
      auto bins = alloc_shared({4}, i32);
      auto sum = alloc_var(i32, tx);
      If(tx < 4, [&] { bins(tx) = 0; });
      sync_threads();
      for (auto i : serial(tx, N, 48)) B(i) = A(i) * 2 + cast(i, f32);
      for (auto r : serial(M)) sum = sum * 3 + Columns(r, tx);
      If(tx % 3 == 1, [&] {
        for (auto r : serial(tx % 2, M, 1)) Columns(r, tx) = sum + r;
        for (auto i : serial(tx, N, 48)) atomic_add(bins(i % 4), cast(A(i), i32));
      });
      for (auto r : serial(M)) Rows(tx, r) = sum - r;
      Sums(tx) = sum;
      sync_threads();
      If(tx < 4, [&] { Bins(tx) = bins(tx); });
    }
  });
  expect_same(program, {ramp({N}, f32), NDArray::zeros({N}, f32), ramp({M, 48}, i32), NDArray::zeros({48}, i32),
                        NDArray::zeros({4}, i32), NDArray::zeros({48, M}, i32)});
  const std::string text = cpu_text_of(program);
  const std::string copy = text.substr(0, text.find("A["));
  EXPECT_GT(copy.rfind("int32_t t ="), copy.rfind("int32_t i =")) << text;  // the threads' loop is the inner one
  EXPECT_NE(text.find("for (int32_t i = 5; i < 6; ++i)"), std::string::npos) << text;
  const std::string rows = text.substr(0, text.find("Rows["));
  EXPECT_GT(rows.rfind("int32_t r ="), rows.rfind("int32_t t =")) << text;  // a row is one thread's own
}

TEST(CpuThreads, Return) {
  Tensor A("A", {64}, i32), B("B", {64}, i32), C("C", {64}, i32);
  expect_same(prim_func("returns", {A, B, C},
                        [&] {
                          for (auto bx : Kernel(3, {.threads = 64})) {
                            Value tx = get_thread_binding();
                            If(bx == 2, [&] { thread_return(); });
                            If(A(tx) < 0, [&] {
                              B(tx) = 1;
                              thread_return();
                            });
                            B(tx) = 2;
                            for (auto k : serial(10)) {
                              If(k * 5 > A(tx), [&] { thread_return(); });
                              C(tx) = k;
                            }
                            B(tx) = 3;
                          }
                        }),
              {ramp({64}, i32), zeros({64}, i32), zeros({64}, i32)});
}

TEST(CpuThreads, DoUniformThingsOnce) {
  Tensor A("A", {8}, i32), B("B", {8}, i32), C("C", {32}, i32);
  expect_same(prim_func("once", {A, B, C},
                        [&] {
                          for (auto bx : Kernel(8, {.threads = 32})) {
                            Value tx = get_thread_binding();
                            Value old = atomic_add(A(bx), 5, {.return_prev = true});
                            B(bx) = old + bx;
                            atomic_add(B(bx), 1);
                            If(tx < 3, [&] { atomic_add(B(bx), 100); });
                            atomic_add(C(tx), 1);
                          }
                        }),
              {ramp({8}, i32), zeros({8}, i32), zeros({32}, i32)});
}

TEST(CpuThreads, AgreeOnUniformVariables) {
  Tensor A("A", {40}, i32), B("B", {40}, i32);
  expect_same(prim_func("uniform", {A, B},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 32})) {
                            (void)bx;
                            auto tile = alloc_shared({8}, i32);
                            auto at = alloc_var(i32, 0);
                            auto steps = alloc_var(i32, 0);
                            While(at < 40, [&] {
                              copy(A(slice(at, at + 8)), tile);
                              for (auto i : Parallel(8)) tile(i) = tile(i) + steps;
                              copy(tile, B(slice(at, at + 8)));
                              at += 8;
                              steps += 1;
                              If(steps == 4, [&] { break_loop(); });
                            });
                          }
                        }),
              {ramp({40}, i32), zeros({40}, i32)});
}

TEST(CpuThreads, OwnLocalMemoryOfPoints) {
  Tensor A("A", {100}, f32), B("B", {100}, f32), C("C", {32}, f32);
  expect_same(prim_func("points", {A, B, C},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = 32})) {
                            (void)bx;
                            auto scratch = alloc_local({3}, f32);
                            auto count = alloc_var(f32, 0);
                            auto temp = alloc_var(f32);
                            for (auto i : Parallel(100)) {
                              temp = A(i) * 2;
                              for (auto k : serial(3)) scratch(k) = temp + k;
                              B(i) = scratch(0) + scratch(1) * scratch(2);
                              count += 1;
                            }
                            C(get_thread_binding()) = count;
                          }
                        }),
              {ramp({100}, f32), zeros({100}, f32), zeros({32}, f32)});
}

TEST(CpuThreads, StandInTwoDimensions) {
  Tensor A("A", {8, 16}, f32), B("B", {16, 8}, f32);
  expect_same(prim_func("grid", {A, B},
                        [&] {
                          for (auto bx : Kernel(1, {.threads = {16, 8}})) {
                            (void)bx;
                            auto s = alloc_shared({8, 16}, f32);
                            Value tx = get_thread_binding(0), ty = get_thread_binding(1);
                            s(ty, tx) = A(ty, tx) + tx * 100;
                            sync_threads();
                            Value linear = ty * 16 + tx;
                            B(floordiv(linear, 8), floormod(linear, 8)) = s(floormod(linear, 8), floordiv(linear, 8));
                          }
                        }),
              {ramp({8, 16}, f32), zeros({16, 8}, f32)});
}

TEST(CpuThreads, PrintAndAssert) {
  Tensor A("A", {4}, f32);
  std::string lines;
  runtime::replace_print_sink([&](std::string_view line) { lines += line; });
  const CpuKernelUnderTest kernel(prim_func("reports", {A}, [&] {
    for (auto bx : Kernel(2, {.threads = 2})) {
      Value tx = get_thread_binding();
      auto tile = alloc_shared({2}, f32, "tile");
      copy(A(slice(0, 2)), tile);
      If(bx == 1, [&] {
        print(A(tx), "element");
        print(tile, "tile");
      });
      device_assert(A(3) + tx < 3, "small");
    }
  }));
  kernel.run({ramp({4}, f32, 0.5)});
  runtime::replace_print_sink({});
  EXPECT_EQ(lines,
            "msg='element' BlockIdx=(1, 0, 0), ThreadIdx=(0, 0, 0): dtype=float32 value=-20\n"
            "msg='element' BlockIdx=(1, 0, 0), ThreadIdx=(1, 0, 0): dtype=float32 value=-19.5\n"
            "msg='tile' BlockIdx=(1, 0, 0), ThreadIdx=(0, 0, 0): buffer=tile, index=0, dtype=float32 value=-20\n"
            "msg='tile' BlockIdx=(1, 0, 0), ThreadIdx=(0, 0, 0): buffer=tile, index=1, dtype=float32 value=-19.5\n");
  const NDArray a = zeros({4}, f32);
  a.set_float({3}, 2.5);
  try {
    kernel.run({a});
    FAIL() << "no assertion failed";
  } catch (const LaunchError& e) {
    EXPECT_NE(std::string(e.what()).find("assertion failed in block (0, 0, 0), thread (1, 0, 0): small"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace tilewright
