// Roles, mbarriers and barriers: what happens when sets of threads wait for each other.
#include "interpreter/run.h"

namespace tilewright::interpreter {
namespace {

// A loader and a consumer over a ring of two slots.
Program ring(int64_t steps, bool forget_to_release) {
  Tensor A("A", {steps, 64}, f32), B("B", {64}, f32);
  return prim_func("ring", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 256})) {
      auto slots = alloc_shared({2, 64}, f32);
      auto sum = alloc_fragment({64}, f32);
      auto full = alloc_barrier({1, 1});
      auto empty = alloc_barrier({128, 128});
      ws({0}, [&] {
        for (auto k : serial(steps)) {
          barrier_wait(empty(k % 2), (floordiv(k, 2) + 1) % 2);
          mbarrier_arrive_expect_tx(full(k % 2), 64 * 4);
          tma_copy(A(k, slice(0, 64)), slots(k % 2, slice(0, 64)), full(k % 2));
        }
      });
      ws({1}, [&] {
        clear(sum);
        for (auto k : serial(steps)) {
          barrier_wait(full(k % 2), floordiv(k, 2) % 2);
          for (auto i : Parallel(64)) sum(i) += slots(k % 2, i);
          if (!forget_to_release) barrier_arrive(empty(k % 2));
        }
        copy(sum, B);
      });
      (void)bx;
    }
  });
}

TEST(InterpreterStrands, RingOfTwoSlots) {
  for (int64_t steps : {1, 2, 3, 4, 7, 8}) {
    NDArray a = range_array({steps, 64}, f32, 1, 3), b = NDArray::zeros({64}, f32);
    run(ring(steps, false), {a, b});
    for (int64_t i = 0; i < 64; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < steps; ++k) sum += a.get_float({k, i});
      ASSERT_EQ(b.get_float({i}), sum) << steps << " " << i;
    }
  }
}

TEST(InterpreterStrands, DeadlockSaysWhoWaitsForWhat) {
  NDArray a = range_array({8, 64}, f32), b = NDArray::zeros({64}, f32);
  Program program = ring(8, true);
  std::vector<std::string> names;  // the C++ variables', where the source can be read
  for (const ir::Buffer& buffer : program.box().program.buffers)
    if (buffer.space == ir::Space::Barrier) names.push_back(buffer.name);
  ASSERT_EQ(names.size(), 2u);
  try {
    run(program, {a, b});
    FAIL() << "no deadlock";
  } catch (const LaunchError& error) {
    const Diagnostic& d = error.diagnostic();
    EXPECT_EQ(d.code_text() + ": " + d.message, "TW6009: deadlock: no thread can go on");
    ASSERT_EQ(d.notes.size(), 2u);
    EXPECT_EQ(d.notes[0].message, "block (0), threads 0 to 127 wait for phase parity 0 of barrier '" + names[1] +
                                      "'[0], which misses 128 of 128 arrivals and 0 bytes in phase 0");
    EXPECT_EQ(d.notes[1].message, "block (0), threads 128 to 255 wait for phase parity 1 of barrier '" + names[0] +
                                      "'[0], which misses 1 of 1 arrivals and 0 bytes in phase 1");
    EXPECT_GT(d.notes[0].location.line, 0);
    EXPECT_NE(d.notes[0].location.line, d.notes[1].location.line);
  }
}

TEST(InterpreterStrands, TileOpsOfTheWholeBlockBetweenRoles) {
  Tensor A("A", {128}, f32), B("B", {128}, f32);
  Program p = prim_func("mixed", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 256})) {
      auto s = alloc_shared({128}, f32);
      auto count = alloc_shared({1}, i32);
      count(0) = 0;
      for (auto k : serial(3)) {
        ws({0}, [&] { copy(A, s); });
        sync_threads();
        ws({1}, [&] {
          for (auto i : Parallel(128)) B(i) += s(i);
        });
        for (auto i : Parallel(128)) s(i) = -1.0;
        Value old = atomic_add(count(0), 1, {.return_prev = true});
        device_assert(old == k);
        sync_threads();
      }
      (void)bx;
    }
  });
  NDArray a = range_array({128}, f32, 1, 1), b = NDArray::zeros({128}, f32);
  run(p, {a, b});
  for (int64_t i = 0; i < 128; ++i) ASSERT_EQ(b.get_float({i}), 3 * a.get_float({i}));
}

TEST(InterpreterStrands, LocalsOfAMapOverSeveralRoles) {
  Tensor B("B", {256}, i32);
  Program p = prim_func("dealt", {B}, [&] {
    for (auto bx : Kernel(1, {.threads = 256})) {
      auto v = alloc_var(i32, 0);
      ws({0}, [&] { v = 100; });
      ws({1}, [&] { v = 200; });
      for (auto i : Parallel(512)) v = v + i;
      B(get_thread_binding()) = v;
      (void)bx;
    }
  });
  NDArray b = NDArray::zeros({256}, i32);
  run(p, {b});
  for (int64_t t = 0; t < 256; ++t) ASSERT_EQ(b.get_int({t}), (t < 128 ? 100 : 200) + t + t + 256);
}

TEST(InterpreterStrands, OneThreadOfTheBlockExpectsForARole) {
  Tensor A("A", {64}, f32), B("B", {64}, f32);
  Program p = prim_func("elected", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 256})) {
      auto s = alloc_shared({64}, f32);
      auto b = alloc_barrier({1});
      If(get_thread_binding() == 0, [&] { mbarrier_arrive_expect_tx(b(0), 256); });
      ws({1}, [&] { tma_copy(A, s, b(0)); });
      barrier_wait(b(0), 0);
      for (auto i : Parallel(64)) B(i) = s(i);
      (void)bx;
    }
  });
  NDArray a = range_array({64}, f32), b = NDArray::zeros({64}, f32);
  run(p, {a, b});
  EXPECT_EQ(b.to_floats(), a.to_floats());
}

TEST(InterpreterStrands, NamedBarriersOrderTwoRoles) {
  Tensor B("B", {64}, i32);
  Program p = prim_func("named", {B}, [&] {
    for (auto bx : Kernel(1, {.threads = 256})) {
      auto tx = get_thread_binding();
      auto s = alloc_shared({128}, i32);
      ws({1}, [&] {
        sync_threads(3, 256);
        If(tx < 192, [&] { B(tx - 128) = s(tx - 128); });
      });
      ws({0}, [&] {
        s(tx) = tx * tx;
        named_barrier_arrive(3, 256);
      });
      (void)bx;
    }
  });
  NDArray b = NDArray::zeros({64}, i32);
  run(p, {b});
  for (int64_t t = 0; t < 64; ++t) ASSERT_EQ(b.get_int({t}), t * t);
}

TEST(InterpreterStrands, GridBarrier) {
  Tensor A("A", {8}, i32), B("B", {8}, i32);
  Program p = prim_func("grid", {A, B}, [&] {
    for (auto bx : Kernel(8, {.threads = 32})) {
      A(bx) = bx * 7;
      sync_grid();
      B(bx) = A((bx + 3) % 8);
    }
  });
  NDArray a = NDArray::zeros({8}, i32), b = NDArray::zeros({8}, i32);
  run(p, {a, b});
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(b.get_int({i}), (i + 3) % 8 * 7);
}

std::string error_in(const std::function<void(Value tx)>& body) {
  Tensor A("A", {32}, i32);
  Program p = prim_func("p", {A}, [&] {
    for (auto bx : Kernel(1, {.threads = 256})) {
      body(get_thread_binding());
      (void)bx;
    }
  });
  std::string text = error_of(p, {range_array({32}, i32)});
  // The name of the C++ variable, where the source can be read.
  if (size_t at = text.find("'b'"); at != std::string::npos) text.replace(at, 3, "'barrier'");
  return text;
}

TEST(InterpreterStrands, TooManyArrivals) {
  EXPECT_EQ(error_in([](Value tx) {
              auto b = alloc_barrier({2});
              If(tx == 0, [&] { mbarrier_expect_tx(b(0), 128); });
              If(tx < 3, [&] { barrier_arrive(b(0)); });
            }),
            "TW6008: more threads arrive at a barrier of 'barrier' than the 2 it counts in a phase, in block (0), "
            "thread (2)");
  EXPECT_EQ(error_in([](Value) { sync_threads(1, 128); }),
            "TW6008: 256 threads arrive at named barrier 1, which counts 128, in block (0), thread (0)");
}

TEST(InterpreterStrands, WaitOfALoneStrand) {
  EXPECT_EQ(error_in([](Value) {
              auto b = alloc_barrier({1});
              barrier_wait(b(0), 1);
              barrier_wait(b(0), 0);
            }),
            "TW6009: deadlock: no thread can go on");
}

TEST(InterpreterStrands, RolesThatMissABarrierOfTheBlock) {
  EXPECT_EQ(error_in([](Value) {
              ws({0}, [&] { thread_return(); });
              sync_threads();
            }),
            "TW6009: deadlock: no thread can go on");
}

TEST(InterpreterStrands, ErrorsInOneStrandUnwindTheOthers) {
  EXPECT_EQ(error_in([](Value) {
              auto b = alloc_barrier({1});
              ws({0}, [&] { barrier_wait(b(0), 0); });
              ws({1}, [&] { device_assert(false, "no"); });
            }),
            "TW6006: assertion failed: no, in block (0), thread (128)");
}

}  // namespace
}  // namespace tilewright::interpreter
