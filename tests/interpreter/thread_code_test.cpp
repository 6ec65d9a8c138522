// Thread code: lanes, masks, warps, atomics, local variables.
#include "interpreter/run.h"

namespace tilewright::interpreter {
namespace {

TEST(Interpreter, DivergentWhileBreakContinueReturn) {
  Tensor B("B", {64}, i32);
  Program p = prim_func("collatz", {B}, [&] {
    for (auto bx : Kernel(1, {.threads = 64})) {
      auto tx = get_thread_binding();
      If(tx == 7, [&] { thread_return(); });
      auto n = alloc_var(i32, tx + 1);
      auto steps = alloc_var(i32, 0);
      While(n != 1, [&] {
        If(steps == 20, [&] { break_loop(); });
        steps += 1;
        If(n % 2 == 0, [&] {
          n = floordiv(n, 2);
          continue_loop();
        });
        n = n * 3 + 1;
      });
      B(tx) = steps;
    }
  });
  NDArray b = range_array({64}, i32, 0, -1);
  run(p, {b});
  for (int64_t t = 0; t < 64; ++t) {
    int64_t n = t + 1, steps = 0;
    while (n != 1 && steps != 20) ++steps, n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    ASSERT_EQ(b.get_int({t}), t == 7 ? -1 : steps) << t;
  }
}

TEST(Interpreter, LoopsWithBoundsOfTheThread) {
  Tensor B("B", {32}, i32);
  Program p = prim_func("triangle", {B}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto tx = get_thread_binding();
      auto sum = alloc_var(i32, 0);
      for (auto i : serial(tx, tx * 2)) sum += i;
      B(tx) = sum;
    }
  });
  NDArray b = NDArray::zeros({32}, i32);
  run(p, {b});
  for (int64_t t = 0; t < 32; ++t) {
    int64_t sum = 0;
    for (int64_t i = t; i < 2 * t; ++i) sum += i;
    EXPECT_EQ(b.get_int({t}), sum);
  }
}

TEST(Interpreter, ThreadsOfThreeDimensions) {
  Tensor B("B", {2, 4, 8}, i32);
  Program p = prim_func("cube", {B}, [&] {
    for (auto bx : Kernel(1, {.threads = {8, 4, 2}})) {
      auto x = get_thread_binding(0), y = get_thread_binding(1), z = get_thread_binding(2);
      B(z, y, x) = x + 10 * y + 100 * z;
    }
  });
  NDArray b = NDArray::zeros({2, 4, 8}, i32);
  run(p, {b});
  for (int64_t z = 0; z < 2; ++z)
    for (int64_t y = 0; y < 4; ++y)
      for (int64_t x = 0; x < 8; ++x) ASSERT_EQ(b.get_int({z, y, x}), x + 10 * y + 100 * z);
}

TEST(Interpreter, ShufflesOfAWarpAndItsGroups) {
  Tensor B("B", {5, 64}, i32);
  Program p = prim_func("shuffles", {B}, [&] {
    for (auto bx : Kernel(1, {.threads = 64})) {
      auto tx = get_thread_binding();
      B(0, tx) = shfl_sync(tx, 3, 8);
      B(1, tx) = shfl_up(tx, 2, 16);
      B(2, tx) = shfl_down(tx, 5);
      B(3, tx) = shfl_xor(tx, 6);
      B(4, tx) = warp_reduce_sum(tx);
    }
  });
  NDArray b = NDArray::zeros({5, 64}, i32);
  run(p, {b});
  for (int64_t t = 0; t < 64; ++t) {
    EXPECT_EQ(b.get_int({0, t}), t / 8 * 8 + 3);
    EXPECT_EQ(b.get_int({1, t}), t % 16 < 2 ? t : t - 2);
    EXPECT_EQ(b.get_int({2, t}), t % 32 + 5 >= 32 ? t : t + 5);
    EXPECT_EQ(b.get_int({3, t}), t ^ 6);
    EXPECT_EQ(b.get_int({4, t}), t < 32 ? 496 : 496 + 1024);
  }
}

// Half a warp at the end of the block, and only some of its lanes execute.
TEST(Interpreter, VotesOfPartialWarps) {
  Tensor B("B", {48}, u32), C("C", {48}, u32), D("D", {4, 48}, i32);
  Program p = prim_func("votes", {B, C, D}, [&] {
    for (auto bx : Kernel(1, {.threads = 48})) {
      auto tx = get_thread_binding();
      D(0, tx) = syncthreads_count(tx % 3 == 0);
      D(1, tx) = cast(syncthreads_or(tx == 40), i32);
      If(tx % 2 == 0, [&] {
        B(tx) = ballot_sync(tx % 4 == 0);
        C(tx) = match_any_sync(floordiv(tx, 8));
        D(2, tx) = cast(all_sync(tx < 47), i32);
        D(3, tx) = cast(activemask(), i32);
      });
    }
  });
  NDArray b = NDArray::zeros({48}, u32), c = NDArray::zeros({48}, u32), d = NDArray::zeros({4, 48}, i32);
  run(p, {b, c, d});
  for (int64_t t = 0; t < 48; ++t) {
    EXPECT_EQ(d.get_int({0, t}), 16);
    EXPECT_EQ(d.get_int({1, t}), 1);
    if (t % 2) continue;
    EXPECT_EQ(b.get_int({t}), t < 32 ? 0x11111111 : 0x1111) << t;
    EXPECT_EQ(c.get_int({t}), int64_t{0x55} << (t % 32 / 8 * 8)) << t;
    EXPECT_EQ(d.get_int({2, t}), 1);
    EXPECT_EQ(d.get_int({3, t}), t < 32 ? 0x55555555 : 0x5555);
  }
}

// Two roles cut the block in three strands, whose threads vote together; every loop round is a vote of its own.
TEST(Interpreter, VotesOfTheBlockOverSeveralStrands) {
  Tensor D("D", {4, 3, 96}, i32);
  Program p = prim_func("votes", {D}, [&] {
    for (auto bx : Kernel(1, {.threads = 96})) {
      auto tx = get_thread_binding();
      auto mine = alloc_var(i32, 0);
      for (auto k : serial(4)) {
        If(tx < 32, [&] { mine = k; });
        If(tx >= 64, [&] { mine = tx - 62; });
        D(k, 0, tx) = syncthreads_count(mine >= 2);
        D(k, 1, tx) = cast(syncthreads_and(mine < 30 + k * 2), i32);
        D(k, 2, tx) = cast(syncthreads_or(mine == 3 - k), i32);
      }
      (void)bx;
    }
  });
  NDArray d = NDArray::zeros({4, 3, 96}, i32);
  run(p, {d});
  for (int64_t k = 0; k < 4; ++k) {
    int64_t count = 0, all = 1, any = 0;
    for (int64_t t = 0; t < 96; ++t) {
      const int64_t mine = t < 32 ? k : t < 64 ? 0 : t - 62;
      count += mine >= 2, all &= mine < 30 + k * 2, any |= mine == 3 - k;
    }
    for (int64_t t = 0; t < 96; ++t) {
      ASSERT_EQ(d.get_int({k, 0, t}), count) << k << " " << t;
      ASSERT_EQ(d.get_int({k, 1, t}), all) << k << " " << t;
      ASSERT_EQ(d.get_int({k, 2, t}), any) << k << " " << t;
    }
  }
}

TEST(Interpreter, AtomicsOncePerThreadUnlessUniform) {
  Tensor B("B", {4}, i32), C("C", {64}, i32);
  Program p = prim_func("atomics", {B, C}, [&] {
    for (auto bx : Kernel(2, {.threads = 32})) {
      auto tx = get_thread_binding();
      Value once = atomic_add(B(0), 10, {.return_prev = true});  // once a block: no operand depends on the thread
      Value old = atomic_add(B(1), tx, {.return_prev = true});
      atomic_max(B(2), tx * 3);
      If(tx < 5, [&] { atomic_add(B(3), 1); });
      C(bx * 32 + tx) = once + old;
    }
  });
  NDArray b = NDArray::zeros({4}, i32), c = NDArray::zeros({64}, i32);
  run(p, {b, c});
  EXPECT_EQ(b.to_ints(), (std::vector<int64_t>{20, 992, 93, 10}));
  EXPECT_EQ(c.get_int({0}), 0);
  EXPECT_EQ(c.get_int({3}), 0 + 1 + 2);
  EXPECT_EQ(c.get_int({32}), 10 + 496);
}

TEST(Interpreter, CompareExchangeAndBitAtomics) {
  Tensor B("B", {6}, u32);
  Program p = prim_func("atomics", {B}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto tx = get_thread_binding();
      Value seen = atomic_cas(B(0), 0, cast(tx + 1, u32));
      If(seen == 0, [&] { B(1) = cast(tx + 100, u32); });
      atomic_or(B(2), cast(1, u32) << cast(tx, u32));
      atomic_xor(B(3), cast(tx, u32));
      atomic_and(B(4), cast(~tx, u32));
    }
  });
  NDArray b = NDArray::zeros({6}, u32);
  b.set_int({4}, 0xff);
  run(p, {b});
  EXPECT_EQ(b.to_ints(), (std::vector<int64_t>{1, 100, 0xffffffff, 0, 0xe0, 0}));
}

TEST(Interpreter, LocalBuffersInAMapBelongToTheThreadOfThePoint) {
  Tensor B("B", {100}, i32), C("C", {32}, i32);
  Program p = prim_func("dealt", {B, C}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto tx = get_thread_binding();
      auto sum = alloc_var(i32, 0);
      for (auto i : Parallel(100)) {
        sum = sum + i;
        B(i) = sum;
      }
      C(tx) = sum;
    }
  });
  NDArray b = NDArray::zeros({100}, i32), c = NDArray::zeros({32}, i32);
  run(p, {b, c});
  for (int64_t i = 0; i < 100; ++i) {
    int64_t sum = 0;
    for (int64_t j = i % 32; j <= i; j += 32) sum += j;
    ASSERT_EQ(b.get_int({i}), sum);
  }
  for (int64_t t = 0; t < 32; ++t) {
    int64_t sum = 0;
    for (int64_t j = t; j < 100; j += 32) sum += j;
    ASSERT_EQ(c.get_int({t}), sum);
  }
}

TEST(Interpreter, LocalArraysAreOnePerThreadAndTileOpsOnThemToo) {
  Tensor A("A", {32, 4}, f32), B("B", {32}, f32);
  Program p = prim_func("rows", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto tx = get_thread_binding();
      auto row = alloc_local({4}, f32);
      copy(A(tx, slice(0, 4)), row);
      auto sum = alloc_var(f32, 0.0);
      for (auto i : unroll(4)) sum += row(i) * (i + 1);
      B(tx) = sum;
    }
  });
  NDArray a = range_array({32, 4}, f32), b = NDArray::zeros({32}, f32);
  run(p, {a, b});
  for (int64_t t = 0; t < 32; ++t) {
    double sum = 0;
    for (int64_t i = 0; i < 4; ++i) sum += a.get_float({t, i}) * static_cast<double>(i + 1);
    EXPECT_EQ(b.get_float({t}), sum);
  }
}

TEST(Interpreter, ViewsReadTheSameBits) {
  Tensor A("A", {4, 8}, f32), B("B", {32}, i32), C("C", {8, 4}, f32);
  Program p = prim_func("views", {A, B, C}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto s = alloc_shared({4, 8}, f32);
      copy(A, s);
      auto bits = view(s, {32}, i32);
      auto other = reshape(s, {8, 4});
      copy(bits, B);
      for (auto i : Parallel(32)) bits(i) = bits(i) ^ (1 << 31);
      copy(other, C);
    }
  });
  NDArray a = range_array({4, 8}, f32, 0.5, 1), b = NDArray::zeros({32}, i32), c = NDArray::zeros({8, 4}, f32);
  run(p, {a, b, c});
  for (int64_t i = 0; i < 32; ++i) {
    auto x = static_cast<float>(a.get_float({i / 8, i % 8}));
    EXPECT_EQ(b.get_int({i}), std::bit_cast<int32_t>(x));
    EXPECT_EQ(c.get_float({i / 4, i % 4}), -x);
  }
}

TEST(Interpreter, FourBitBuffersOnChipAndOff) {
  Tensor A("A", {4, 16}, i4), B("B", {4, 16}, i4), C("C", {4, 16}, e2m1);
  Program p = prim_func("nibbles", {A, B, C}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto s = alloc_shared({4, 16}, i4);
      copy(A, s);
      for (auto [i, j] : Parallel(4, 16)) B(i, j) = s(i, 15 - j) * 3;
      for (auto [i, j] : Parallel(4, 16)) C(i, j) = cast(s(i, j), f32) / 2.0;
    }
  });
  NDArray a = NDArray::zeros({4, 16}, i4), b = NDArray::zeros({4, 16}, i4), c = NDArray::zeros({4, 16}, e2m1);
  std::vector<int64_t> values(64);
  for (size_t i = 0; i < 64; ++i) values[i] = static_cast<int64_t>(i * 5 % 16) - 8;
  a.assign_ints(values);
  run(p, {a, b, c});
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 16; ++j) {
      int64_t x = a.get_int({i, 15 - j}) * 3;
      ASSERT_EQ(b.get_int({i, j}), ((x + 8) & 15) - 8);
      double y = static_cast<double>(a.get_int({i, j})) / 2;
      double nearest = std::fabs(y) == 2.5 ? std::copysign(2.0, y) : std::fabs(y) == 3.5 ? std::copysign(4.0, y) : y;
      ASSERT_EQ(c.get_float({i, j}), nearest) << y;
    }
}

TEST(Interpreter, SixteenBitFloatsRoundOncePerOperation) {
  Tensor A("A", {8}, f16), B("B", {8}, f16);
  Program p = prim_func("round", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 32}))
      for (auto i : Parallel(8)) B(i) = (A(i) + A(i)) * A(7 - i);
  });
  NDArray a = range_array({8}, f16, 0.1, 1), b = NDArray::zeros({8}, f16);
  run(p, {a, b});
  NDArray rounded = NDArray::zeros({1}, f16);
  for (int64_t i = 0; i < 8; ++i) {
    rounded.set_float({0}, 2 * a.get_float({i}));
    rounded.set_float({0}, static_cast<float>(rounded.get_float({0})) * static_cast<float>(a.get_float({7 - i})));
    EXPECT_EQ(b.get_float({i}), rounded.get_float({0}));
  }
}

TEST(Interpreter, OnlyTheChosenSideIsEvaluated) {
  Tensor A("A", {32}, i32), B("B", {32}, i32);
  Program p = prim_func("lazy", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto s = alloc_shared({16}, i32);
      copy(A(slice(0, 16)), s);
      for (auto i : Parallel(32)) {
        Value x = if_then_else(i < 16, s(i), 1000 + i);
        Value y = if_then_else(i != 0, floordiv(100, i), -1);
        B(i) = if_then_else(i < 16 && s(i) > 3, x, y);
      }
    }
  });
  NDArray a = range_array({32}, i32), b = NDArray::zeros({32}, i32);
  run(p, {a, b});
  for (int64_t i = 0; i < 32; ++i) EXPECT_EQ(b.get_int({i}), i > 3 && i < 16 ? i : i ? 100 / i : -1);
}

TEST(Interpreter, PrintsLines) {
  Tensor A("A", {2}, f32);
  Program p = prim_func("talk", {A}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto tx = get_thread_binding();
      auto s = alloc_shared({2}, f32, "s");
      copy(A, s);
      print(s, "tile");
      If(tx == 3, [&] { print(tx * 2, "twice"); });
    }
  });
  NDArray a = range_array({2}, f32, 1, 0.5);
  std::string text;
  run(p, {a}, {.printed = &text});
  EXPECT_EQ(text,
            "msg='tile' BlockIdx=(0, 0, 0), ThreadIdx=(0, 0, 0): buffer=s, index=0, dtype=float32 value=0.5\n"
            "msg='tile' BlockIdx=(0, 0, 0), ThreadIdx=(0, 0, 0): buffer=s, index=1, dtype=float32 value=1.5\n"
            "msg='twice' BlockIdx=(0, 0, 0), ThreadIdx=(3, 0, 0): dtype=int32 value=6\n");
}

TEST(Interpreter, PrintsWhatNothingWasWrittenToAsThat) {
  Tensor A("A", {2}, f32);
  Program p = prim_func("talk", {A}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto s = alloc_shared({3, 2}, f32, "s");
      copy(A, s(1, slice(0, 2)));
      print(s);
      auto r = alloc_fragment({2}, f16, "r");
      print(r);
    }
  });
  std::string text;
  run(p, {range_array({2}, f32, 1, 0.5)}, {.printed = &text});
  std::vector<std::string> values;
  for (size_t at = 0; (at = text.find("value=", at)) != std::string::npos; at += 6)
    values.push_back(text.substr(at + 6, text.find('\n', at) - at - 6));
  EXPECT_EQ(values, (std::vector<std::string>{"unwritten", "unwritten", "0.5", "1.5", "unwritten", "unwritten",
                                              "unwritten", "unwritten"}));
}

TEST(Interpreter, GatherThroughIndicesAndScalarParameters) {
  Tensor A("A", {10, 4}, f32), I("I", {6}, i32), B("B", {6, 4}, f32);
  Value scale = Scalar("scale", f32);
  Program p = prim_func("gather", {A, I, B, scale}, [&] {
    for (auto bx : Kernel(6, {.threads = 32})) {
      Value row = I(bx);
      for (auto j : Parallel(4)) B(bx, j) = A(row, j) * scale;
    }
  });
  NDArray a = range_array({10, 4}, f32), i = NDArray::zeros({6}, i32), b = NDArray::zeros({6, 4}, f32);
  i.assign_ints(std::vector<int64_t>{9, 0, 3, 12, -1, 5});
  run(p, {a, i, b}, {.floats = {{"scale", 0.5}}});
  for (int64_t r = 0; r < 6; ++r)
    for (int64_t j = 0; j < 4; ++j) {
      int64_t row = i.get_int({r});
      EXPECT_EQ(b.get_float({r, j}), row >= 0 && row < 10 ? a.get_float({row, j}) / 2 : 0);
    }
}

TEST(Interpreter, BlocksInParallelGiveTheSame) {
  Tensor A("A", {64, 256}, f32), B("B", {64}, f32);
  Program p = prim_func("rows", {A, B}, [&] {
    for (auto bx : Kernel(64, {.threads = 128})) {
      auto s = alloc_fragment({256}, f32);
      auto sum = alloc_fragment({1}, f32);
      copy(A(bx, 0), s);
      reduce_sum(s, sum, {.dim = 0});
      B(bx) = sum(0);
    }
  });
  NDArray a = range_array({64, 256}, f32, 0.37), b = NDArray::zeros({64}, f32), c = NDArray::zeros({64}, f32);
  run(p, {a, b}, {.threads = 1});
  run(p, {a, c}, {.threads = 4});
  EXPECT_EQ(b.to_floats(), c.to_floats());
}

}  // namespace
}  // namespace tilewright::interpreter
