// Roles, barriers and asynchronous operations on the CPU engine: code that waits for other code leaves what the
// interpreter leaves, and code that waits for ever is an error.
#include <gtest/gtest.h>

#include "ir/rewrite.h"
#include "passes/planned.h"
#include "tilewright/compile.h"
#include "tilewright/language.h"

namespace tilewright {
namespace {

using Body = std::function<void(const Tensor& A, const Tensor& B, const Value& bx)>;

Program blocks_of(int64_t blocks, int64_t threads, const Body& body) {
  Tensor A("A", {8, 64}, i32), B("B", {8, 64}, i32);
  return prim_func("strands", {A, B}, [&] {
    for (auto bx : Kernel(blocks, {.threads = threads})) body(A, B, bx);
  });
}

std::vector<int64_t> result(const Program& program, Engine engine) {
  const NDArray a = numbers({8, 64}, i32, 1), b = numbers({8, 64}, i32, 2);
  compile(program, {.engine = engine})(a, b);
  return b.to_ints();
}

void expect_same(int64_t blocks, int64_t threads, const Body& body) {
  const Program program = blocks_of(blocks, threads, body);
  const std::vector<int64_t> expected = result(program, Engine::Interpreter);
  EXPECT_NE(expected, numbers({8, 64}, i32, 2).to_ints()) << "the program changes nothing";
  EXPECT_EQ(result(program, Engine::Cpu), expected);
}

std::string error_of(int64_t threads, const std::function<void(const Value& tx)>& body) {
  const Program program = blocks_of(1, threads, [&](auto&&...) { body(get_thread_binding()); });
  try {
    result(program, Engine::Cpu);
  } catch (const Error& e) {
    EXPECT_GT(e.diagnostic().location.line, 0);
    std::string text = e.diagnostic().code_text() + " " + e.diagnostic().message;
    for (const ir::Buffer& b : program.box().program.buffers)  // named as the variable, where the source can be read
      if (const size_t at = text.find("'" + b.name + "'"); at != std::string::npos && b.space == ir::Space::Barrier)
        text.replace(at + 1, b.name.size(), "barrier");
    return text;
  }
  return "no error";
}

TEST(CpuStrands, ALoaderAndAConsumerOverTwoSlots) {
  for (const int64_t steps : {1, 2, 7})
    expect_same(5, 256, [&](const Tensor& A, const Tensor& B, const Value& bx) {
      auto slots = alloc_shared({2, 64}, i32);
      auto sum = alloc_fragment({64}, i32);
      auto full = alloc_barrier({1, 1}), empty = alloc_barrier({128, 128});
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
          for (auto i : Parallel(64)) sum(i) += slots(k % 2, i) * (bx + 1);
          barrier_arrive(empty(k % 2));
        }
        copy(sum, B(bx, slice(0, 64)));
      });
    });
}

TEST(CpuStrands, WarpsArriveOnce) {
  expect_same(5, 192, [&](const Tensor& A, const Tensor& B, const Value& bx) {
    auto tile = alloc_shared({64}, i32);
    auto full = alloc_barrier({4}), empty = alloc_barrier({2});
    ws({0}, [&] {
      for (auto k : serial(3)) {
        barrier_wait(empty(0), (k + 1) % 2);
        for (auto i : Parallel(64)) tile(i) = A(k, i) + bx;
        barrier_arrive_by_warps(full(0));
      }
    });
    on_threads(128, 192, [&] {
      for (auto k : serial(3)) {
        barrier_wait(full(0), k % 2);
        for (auto i : Parallel(64)) B(bx, i) += tile(i) * (k + 1);
        barrier_arrive_by_warps(empty(0));
      }
    });
  });
}

TEST(CpuStrands, WhatAllThreadsDoTogetherBetweenRoles) {
  expect_same(2, 256, [](const Tensor& A, const Tensor& B, const Value& bx) {
    auto s = alloc_shared({64}, i32), count = alloc_shared({1}, i32);
    count(0) = bx;
    sync_threads();
    for (auto k : serial(3)) {
      ws({0}, [&] { copy(A(k, slice(0, 64)), s); });
      sync_threads();
      ws({1}, [&] {
        for (auto i : Parallel(64)) B(bx, i) += s(i);
      });
      Value old = atomic_add(count(0), 2, {.return_prev = true});
      sync_threads();
      for (auto i : Parallel(64)) s(i) = -1;
      ws({1}, [&] { B(bx + 2, k) = old; });
      sync_threads();
    }
  });
}

// Around roles, code of threads finds what roles and other threads wrote, and does not take it from under them, without
// a barrier of the program's.
TEST(CpuStrands, CodeOfThreadsAroundRolesIsOrdered) {
  const Program program = blocks_of(1, 64, [](const Tensor&, const Tensor& B, const Value&) {
    const Value tx = get_thread_binding();
    auto s = alloc_shared({64}, i32), u = alloc_shared({64}, i32);
    auto second = alloc_barrier({32});
    for (auto k : serial(3)) {
      s(tx) = tx + k * 100;
      on_threads(0, 32, [&] {
        barrier_wait(second(0), k % 2);
        u(tx) = s(tx + 32);
      });
      on_threads(32, 64, [&] {
        u(tx) = s(tx - 32);
        barrier_arrive(second(0));
      });
      B(k, tx) = u(63 - tx);
    }
    B(3, tx) = s(63 - tx);
  });
  std::vector<int64_t> expected = numbers({8, 64}, i32, 2).to_ints();
  for (int64_t tx = 0; tx < 64; ++tx) {
    for (int64_t k = 0; k < 3; ++k) expected[static_cast<size_t>(k * 64 + tx)] = (63 - tx + 32) % 64 + k * 100;
    expected[static_cast<size_t>(3 * 64 + tx)] = 63 - tx + 200;
  }
  for (const Engine engine : {Engine::Interpreter, Engine::Cpu}) EXPECT_EQ(result(program, engine), expected);
}

TEST(CpuStrands, LocalsOfThreadsAndOfRoles) {
  expect_same(1, 96, [](const Tensor& A, const Tensor& B, const Value&) {
    const Value tx = get_thread_binding();
    auto common = alloc_var(i32, 1), own = alloc_var(i32, tx);
    on_threads(0, 32, [&] {
      common = 5;
      for (auto k : serial(4)) own += A(k, tx) * common;
      B(0, tx) = own;
    });
    on_threads(32, 96, [&] {
      common = common + 7;
      own += shfl_xor(own, 3);
      B(1, tx - 32) = own + common;
    });
    If(tx < 64, [&] { B(2, tx) = own * 2 + common; });
  });
}

TEST(CpuStrands, NamedBarriersOrderTwoRoles) {
  expect_same(3, 256, [](const Tensor&, const Tensor& B, const Value& bx) {
    const Value tx = get_thread_binding();
    auto s = alloc_shared({128}, i32);
    ws({1}, [&] {
      sync_threads(3, 256);
      If(tx < 192, [&] { B(bx, tx - 128) = s(191 - tx); });
    });
    ws({0}, [&] {
      s(tx) = tx * tx + bx;
      named_barrier_arrive(3, 256);
    });
  });
}

TEST(CpuStrands, ThreadsThatWaitForBarriersOfTheirOwn) {
  expect_same(1, 128, [](const Tensor&, const Tensor& B, const Value&) {
    const Value tx = get_thread_binding();
    auto s = alloc_shared({64}, i32);
    auto done = alloc_barrier({32, 32});
    on_threads(64, 128, [&] {
      barrier_wait(done(floordiv(tx - 64, 32)), 0);
      B(0, tx - 64) = s(tx - 64);
    });
    on_threads(0, 64, [&] {
      s(tx) = tx * 3;
      barrier_arrive(done(floordiv(tx, 32)));
    });
  });
}

TEST(CpuStrands, AWhileThatWaitsForAnotherRolesFlag) {
  expect_same(1, 64, [](const Tensor&, const Tensor& B, const Value&) {
    auto flag = alloc_shared({1}, i32);
    flag(0) = 0;
    sync_threads();
    on_threads(0, 32, [&] {
      While(flag(0) != 3, [] {});
      for (auto i : Parallel(64)) B(0, i) = i + 1;
    });
    on_threads(32, 64, [&] {
      for (auto k : serial(3)) atomic_store(flag(0), k + 1);
    });
  });
}

TEST(CpuStrands, AsynchronousCopiesAndProductsAreDoneAtOnce) {
  expect_same(2, 128, [](const Tensor& A, const Tensor& B, const Value& bx) {
    auto s = alloc_shared({2, 64}, i32);
    auto barrier = alloc_barrier({1});
    async_copy(A(bx, slice(0, 64)), s(0, slice(0, 64)));
    cp_async_wait(0);
    If(get_thread_binding() == 0, [&] { mbarrier_arrive_expect_tx(barrier, 64 * 4); });
    tma_copy(A(bx + 1, slice(0, 64)), s(1, slice(0, 64)), barrier);
    barrier_wait(barrier, 0);
    for (auto i : Parallel(64)) s(0, i) = s(0, i) * 100 + s(1, i);
    fence_proxy_async();
    tma_store(s(0, slice(0, 64)), B(bx, slice(0, 64)));
    tma_store_wait();
  });
}

TEST(CpuStrands, BlocksMeetInTheGrid) {
  for (const int64_t blocks : {1, 3, 8})
    expect_same(blocks, 64, [&](const Tensor& A, const Tensor& B, const Value& bx) {
      auto s = alloc_shared({64}, i32);
      copy(A(bx, slice(0, 64)), s);
      for (auto k : serial(3)) {
        for (auto i : Parallel(64)) B(bx, i) = s(i) + k;
        sync_grid();
        for (auto i : Parallel(64)) s(i) += B((bx + 1) % blocks, 63 - i);
        sync_grid();
      }
      copy(s, B(bx, slice(0, 64)));
    });
}

TEST(CpuStrands, RolesOfBlocksThatMeetInTheGrid) {
  expect_same(4, 64, [](const Tensor& A, const Tensor& B, const Value& bx) {
    auto s = alloc_shared({64}, i32);
    auto full = alloc_barrier({32});
    on_threads(0, 32, [&] {
      copy(A(bx, slice(0, 64)), s);
      barrier_arrive(full);
    });
    on_threads(32, 64, [&] {
      barrier_wait(full, 0);
      copy(s, B(bx, slice(0, 64)));
    });
    sync_grid();
    on_threads(0, 32, [&] { copy(B((bx + 3) % 4, slice(0, 64)), s); });
    sync_grid();
    on_threads(32, 64, [&] { copy(s, B(bx, slice(0, 64))); });
  });
}

// The schedules that the compiler writes for a GPU are programs of this language.
TEST(CpuStrands, RingsAndRolesOfAPlan) {
  const Planned p = planned(R"(
program gemm {
  param A: float16[256, 192]
  param B: float16[192, 128]
  param C: float32[256, 128]
  launch l(bx: 1, by: 2) threads(tx: 128) {
    shared As: float16[128, 64]
    shared Bs: float16[64, 128]
    fragment c: float32[128, 128]
    fill to=c value=0.0
    for k in 0..3 pipelined(stages=3) {
      copy from=A[by * 128 : 128, k * 64 : 64] to=As
      copy from=B[k * 64 : 64, 0 : 128] to=Bs
      gemm a=As b=Bs c=c
    }
    copy from=c to=C[by * 128 : 128, 0 : 128]
  }
}
)");
  int roles = 0;
  ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) { roles += s.as<ir::Role>() != nullptr; });
  ASSERT_GE(roles, 2);
  auto run = [&](const ir::TileProgram& program) {
    const NDArray a = numbers({256, 192}, f16, 1), b = numbers({192, 128}, f16, 2), c = NDArray::zeros({256, 128}, f32);
    compile(Program(std::make_shared<ir::TileProgramBox>(ir::TileProgramBox{program})), {.engine = Engine::Cpu})(a, b,
                                                                                                                 c);
    return c.to_floats();
  };
  EXPECT_EQ(run(p.program), run(p.plain));
}

TEST(CpuStrands, DeadlockSaysWhoWaitsForWhat) {
  EXPECT_EQ(error_of(128,
                     [](const Value&) {
                       auto lonely = alloc_barrier({1});
                       barrier_wait(lonely, 1);
                       barrier_wait(lonely, 0);
                     }),
            "TW6009 strands: deadlock: no thread can go on; block (0, 0, 0), thread (0, 0, 0) waits for a phase of "
            "barrier 'barrier'");
  EXPECT_EQ(error_of(64, [](const Value&) { on_threads(32, 64, [] { sync_threads(1, 64); }); }),
            "TW6009 strands: deadlock: no thread can go on; block (0, 0, 0), thread (32, 0, 0) waits at named barrier "
            "1");
  EXPECT_EQ(error_of(64, [](const Value&) { on_threads(0, 32, [] { sync_grid(); }); }),
            "TW6009 strands: deadlock: no thread can go on; block (0, 0, 0), thread (0, 0, 0) waits for the other "
            "blocks of the grid");
}

TEST(CpuStrands, TooManyArrivals) {
  EXPECT_EQ(
      error_of(32,
               [](const Value& tx) {
                 auto small = alloc_barrier({2});
                 If(tx == 0, [&] { mbarrier_expect_tx(small, 128); });
                 If(tx < 3, [&] { barrier_arrive(small); });
               }),
      "TW6008 strands: in block (0, 0, 0), thread (0, 0, 0), more threads arrive at a barrier of 'barrier' than it "
      "counts in a phase");
  EXPECT_EQ(error_of(256, [](const Value&) { sync_threads(1, 128); }),
            "TW6008 strands: in block (0, 0, 0), thread (0, 0, 0), more than 128 threads arrive at named barrier 1");
}

}  // namespace
}  // namespace tilewright
