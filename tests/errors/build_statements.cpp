// Mistakes in loops, branches, roles and thread code: one a test, with the whole message.
#include "errors/expect_error.h"
#include "ir/builder.h"

namespace tilewright::errors {
namespace {

TEST(StatementErrors, LoopOverFloats) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          for (auto i : serial(x)) (void)i;
        });
      },
      R"(TW1041 build: a loop from int32 to float32
  --> the mistake
help: the bounds of a loop are integers: cast them to int32)");
}

TEST(StatementErrors, LoopWithAFloatStep) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          for (auto i : serial(0, 8, 0.5)) (void)i;
        });
      },
      R"(TW1041 build: a loop with a step of type float32
  --> the mistake
help: the step of a loop is an integer)");
}

TEST(StatementErrors, LoopWithoutAStep) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          for (auto i : serial(0, 8, 0)) (void)i;
        });
      },
      R"(TW1043 build: a loop with step 0
  --> the mistake
help: it would never end)");
}

TEST(StatementErrors, NegativeStages) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          for (auto k : Pipelined(8, {.num_stages = -1})) (void)k;
        });
      },
      R"(TW1042 build: num_stages is -1
  --> the mistake
help: it is 0 (no pipeline) or more)");
}

TEST(StatementErrors, OrderWithoutStages) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          for (auto k : Pipelined(8, {.num_stages = 2, .order = {1, 0}, .stage = {0}})) (void)k;
        });
      },
      R"(TW1042 build: order has 2 entries, but stage has 1
  --> the mistake
help: both have one entry for each statement of the body)");
}

TEST(StatementErrors, ParallelOverFloats) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          for (auto i : Parallel(1.5)) (void)i;
        });
      },
      R"(TW1019 build: extent 0 of Parallel is float32
  --> the mistake
help: an extent is an integer: divide by ceildiv, or cast it to int32)");
}

TEST(StatementErrors, ParallelOfNegativeExtent) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          for (auto i : Parallel(-1)) (void)i;
        });
      },
      R"(TW1021 build: extent 0 of Parallel is -1
  --> the mistake
help: an extent is 0 or more)");
}

TEST(StatementErrors, ParallelWithoutExtents) {
  expect_error(
      [&] {
        ir::Builder builder("program");
        builder.open_launch({ir::constant(1)}, {});
        builder.open_map({}, {});
      },
      R"(TW1044 build: Parallel without extents
help: give one for each index)");
}

TEST(StatementErrors, PersistentOverFloats) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          for (auto [i, j] : Persistent({4.5, 2}, 2, 0)) (void)i, (void)j;
        });
      },
      R"(TW1019 build: extent 0 of Persistent is float32
  --> the mistake
help: an extent is an integer: divide by ceildiv, or cast it to int32)");
}

TEST(StatementErrors, PersistentOfAFloatWave) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          for (auto [i, j] : Persistent({4, 2}, 2.0, 0)) (void)i, (void)j;
        });
      },
      R"(TW1003 build: the wave size of Persistent is an integer, but this is float32
  --> the mistake
help: cast it to int32)");
}

TEST(StatementErrors, PersistentWithoutADomain) {
  expect_error(
      [&] {
        ir::Builder builder("program");
        builder.open_launch({ir::constant(1)}, {});
        builder.open_persistent({}, {}, ir::constant(1), ir::constant(0), 8);
      },
      R"(TW1044 build: Persistent without a domain
help: give one extent for each index)");
}

TEST(StatementErrors, EndlessLoop) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          While(true, [] {});
        });
      },
      R"(TW1045 build: the condition of this while is always true
  --> the mistake
help: test a variable that the body changes, or leave by break_loop() under a condition that the loop tests)");
}

// The atomic happens once, before the loop.
TEST(StatementErrors, WhileOfAnAtomic) {
  Tensor A("A", {8}, i32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          While(atomic_load(A(0)) == 0, [&] {
            for (auto i : serial(3)) If(i > 1, [] { break_loop(); });
          });
        });
      },
      R"(TW1045 build: the condition of this while never changes: it reads no memory
  --> the mistake
help: what an atomic, a vote or a shuffle gives is one value, taken before the loop: let the condition read an element, or a variable that the body sets)");
}

TEST(StatementErrors, WhileThatIsLeftFromInside) {
  Tensor A("A", {8}, i32);
  Value n = Scalar("n", i32);
  kernel({A, n}, [&] {
    While(n > 0, [&] { If(atomic_load(A(0)) == 1, [] { break_loop(); }); });
    While(n > 0, [&] {
      for (auto i : serial(3)) If(A(i) == 1, [] { thread_return(); });
    });
    While(true, [&] { If(A(1) == 1, [] { break_loop(); }); });
  });
}

TEST(StatementErrors, WhileOfAFloat) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          While(x, [] {});
        });
      },
      R"(TW1006 build: a condition is a bool or an integer, but this is float32
  --> the mistake
help: compare it, for example x != 0)");
}

TEST(StatementErrors, ElseWithoutAnIf) {
  Value n = Scalar("n", i32);
  expect_error(
      [&] {
        kernel({n}, [&] {
          auto chain = If(n == 0, [] {});
          sync_threads();
          mark();
          chain.Else([] {});
        });
      },
      R"(TW1046 build: Else without an If right before it
  --> the mistake
help: write If(...).Else(...), with no statement between the two)");
}

TEST(StatementErrors, RoleOfHalfAWarp) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          on_threads(0, 48, [] {});
        });
      },
      R"(TW1047 build: a role on threads 0 to 48 of a block of 128
  --> the mistake
help: a role is a range of whole warps (multiples of 32) inside the block)");
}

TEST(StatementErrors, RoleOutsideOfTheBlock) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          ws({1}, [] {});
        });
      },
      R"(TW1047 build: a role on threads 128 to 256 of a block of 128
  --> the mistake
help: a role is a range of whole warps (multiples of 32) inside the block)");
}

TEST(StatementErrors, RoleOfGroupsApart) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          ws({0, 2}, [] {});
        });
      },
      R"(TW1047 build: ws: the groups do not follow each other
  --> the mistake
help: a role is one range of threads: name adjacent groups)");
}

TEST(StatementErrors, RoleInABlockOfTwoDimensions) {
  expect_error(
      [&] {
        prim_func("program", {}, [&] {
          for (auto bx : Kernel(1, {.threads = {32, 4}})) {
            (void)bx;
            mark();
            on_threads(0, 32, [] {});
          }
        });
      },
      R"(TW1047 build: a role in a block that is not along x alone
  --> the mistake
help: give the block one thread extent; a role is a range of its threads)");
}

TEST(StatementErrors, FragmentByAVariableOfUnknownExtent) {
  Value n = Scalar("n", i32);
  expect_error(
      [&] {
        kernel({n}, [&] {
          auto F = alloc_fragment({128}, f32, "F");
          for (auto [i, j] : Parallel(n, 64)) F(j) = 0;
          for (auto i : Parallel(n)) {
            mark();
            F(i % 64) = 0;
          }
        });
      },
      R"(TW1020 build: 'F', a fragment, is indexed by 'i', a variable of Parallel whose extent is not constant
  --> the mistake
help: loop over the whole fragment, with a condition; or keep the elements in shared memory)");
}

TEST(StatementErrors, StoreToAReducer) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto R = alloc_reducer({8}, f32, ReducerOp::Sum, "R");
          mark();
          for (auto i : Parallel(8)) R(i) = 1;
        });
      },
      R"(TW1048 build: a store to 'R', which is a reducer
  --> the mistake
help: reducers are updated by acc(i) += v, atomic_max or atomic_min, and read after finalize_reducer)");
}

TEST(StatementErrors, CopyToAReducer) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto R = alloc_reducer({64, 64}, f32, ReducerOp::Sum, "R");
          mark();
          copy(A, R);
        });
      },
      R"(TW1048 build: a copy to 'R', which is a reducer
  --> the mistake
help: reducers are updated by acc(i) += v, atomic_max or atomic_min, and read after finalize_reducer)");
}

TEST(StatementErrors, StoreOfAnAddress) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          A(0, 0) = address_of(A(1, 1));
        });
      },
      R"(TW1010 build: a pointer is stored to 'A', which holds float32
  --> the mistake
help: use reinterpret between addresses and 64-bit integers)");
}

TEST(StatementErrors, AtomicOnAFragment) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto F = alloc_fragment({8}, f32, "F");
          mark();
          atomic_add(F(0), 1);
        });
      },
      R"(TW1049 build: an atomic on 'F', a fragment buffer
  --> the mistake
help: atomics work on global and shared memory; a fragment that many points add to is an alloc_reducer)");
}

TEST(StatementErrors, AtomicOnBytes) {
  Tensor A("A", {8}, e4m3);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          atomic_add(A(0), 1);
        });
      },
      R"(TW1050 build: atomic add on float8_e4m3fn
  --> the mistake
help: use an integer type or float16, bfloat16, float32, float64)");
}

TEST(StatementErrors, AtomicBitsOfFloats) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          atomic_or(A(0, 0), 1);
        });
      },
      R"(TW1050 build: atomic or on float32
  --> the mistake
help: bit operations take integers)");
}

TEST(StatementErrors, AtomicOnBools) {
  Tensor A("A", {8}, boolean);
  expect_error(
      [&] {
        kernel({A}, [&] {
          atomic_exchange(A(0), true);  // as good as on any other type
          mark();
          atomic_max(A(0), true);
        });
      },
      R"(TW1050 build: atomic max on bool
  --> the mistake
help: use an integer type or float16, bfloat16, float32, float64)");
}

TEST(StatementErrors, AtomicCopyOfBools) {
  Tensor A("A", {8}, boolean);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto S = alloc_shared({8}, boolean, "S");
          mark();
          atomic_add(A, S);
        });
      },
      R"(TW1050 build: atomic add on bool
  --> the mistake
help: use an integer type or float16, bfloat16, float32, float64)");
}

TEST(StatementErrors, ShuffleOfThreeLanes) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value y = shfl_xor(x, 1, 3);
        });
      },
      R"(TW1051 build: a shuffle of width 3
  --> the mistake
help: the width is a power of two up to 32, the lanes of a warp)");
}

TEST(StatementErrors, ShuffleFromAFloatLane) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value y = shfl_sync(x, 1.0);
        });
      },
      R"(TW1003 build: the lane of a shuffle is an integer, but this is float32
  --> the mistake
help: cast it to int32)");
}

TEST(StatementErrors, MatchOfFloats) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value y = match_any_sync(x);
        });
      },
      R"(TW1003 build: an operand of match is an integer, but this is float32
  --> the mistake
help: cast it to int32)");
}

TEST(StatementErrors, VoteOfFloats) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value y = any_sync(x);
        });
      },
      R"(TW1006 build: a condition is a bool or an integer, but this is float32
  --> the mistake
help: compare it, for example x != 0)");
}

TEST(StatementErrors, BreakOutsideOfALoop) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          break_loop();
        });
      },
      R"(TW1052 build: break_loop() outside of a loop
  --> the mistake
help: to leave the kernel write thread_return())");
}

TEST(StatementErrors, ContinueOutsideOfALoop) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          continue_loop();
        });
      },
      R"(TW1052 build: continue_loop() outside of a loop
  --> the mistake
help: to leave the kernel write thread_return())");
}

TEST(StatementErrors, LeavingAPointOfParallel) {
  Tensor A("A", {64}, f32);
  for (const bool breaks : {true, false})
    expect_error(
        [&] {
          kernel({A}, [&] {
            for (auto k : serial(4))  // which no point can leave
              for (auto i : Parallel(8)) {
                A(i) = cast(k, f32);
                mark();
                breaks ? break_loop() : continue_loop();
              }
          });
        },
        std::string("TW1052 build: ") + (breaks ? "break" : "continue") + R"( in Parallel, whose points all run
  --> the mistake
help: put what some points leave out under an if; serial() is a loop that can be left)");
  kernel({A}, [&] {
    for (auto i : Parallel(8))
      for (auto k : serial(4)) {
        A(i) = cast(k, f32);
        break_loop();
      }
  });
}

TEST(StatementErrors, TileOpInParallel) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto S = alloc_shared({64, 64}, f32, "S");
          for (auto i : Parallel(8)) {
            (void)i;
            mark();
            copy(A, S);
          }
        });
      },
      R"(TW1014 build: copy inside of Parallel, whose body is the code of one point
  --> the mistake
help: move it out of the Parallel loop)");
}

TEST(StatementErrors, BarrierInParallel) {
  expect_error(
      [&] {
        kernel({}, [&] {
          for (auto i : Parallel(8)) {
            If(i > 1, [] {
              mark();
              sync_threads();
            });
          }
        });
      },
      R"(TW1014 build: a barrier inside of Parallel, whose body is the code of one point
  --> the mistake
help: move it out of the Parallel loop)");
}

TEST(StatementErrors, ShuffleInParallel) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          for (auto i : Parallel(8)) {
            mark();
            Value x = shfl_xor(i, 1);
          }
        });
      },
      R"(TW1014 build: a shuffle inside of Parallel, whose body is the code of one point
  --> the mistake
help: move it out of the Parallel loop)");
}

TEST(StatementErrors, WaitForWhatIsNoBarrier) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto S = alloc_shared({8}, u64, "S");
          mark();
          barrier_wait(S, 0);
        });
      },
      R"(TW1071 build: barrier_wait: 'S' is no barrier
  --> the mistake
help: allocate one by alloc_barrier({count}))");
}

TEST(StatementErrors, WaitForManyBarriers) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto barrier = alloc_barrier({1, 1});
          mark();
          barrier_wait(barrier, 0);
        });
      },
      R"(TW1071 build: barrier_wait: 'barrier' holds 2 barriers
  --> the mistake
help: say which, for example barrier(0))");
}

TEST(StatementErrors, FloatParity) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto barrier = alloc_barrier({1});
          mark();
          barrier_wait(barrier, 0.0);
        });
      },
      R"(TW1003 build: the parity of a wait is an integer, but this is float32
  --> the mistake
help: cast it to int32)");
}

TEST(StatementErrors, FloatBytes) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto barrier = alloc_barrier({1});
          mark();
          mbarrier_expect_tx(barrier, 64.0);
        });
      },
      R"(TW1003 build: the number of bytes is an integer, but this is float32
  --> the mistake
help: cast it to int32)");
}

TEST(StatementErrors, NegativeGroups) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          cp_async_wait(-1);
        });
      },
      R"(TW1072 build: a wait until -1 groups are pending
  --> the mistake
help: 0 waits for all of them)");
}

TEST(StatementErrors, NamedBarrierOfHalfAWarp) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          sync_threads(1, 48);
        });
      },
      R"(TW1073 build: a named barrier of 48 threads
  --> the mistake
help: the count is a multiple of 32, whole warps)");
}

TEST(StatementErrors, NamedBarrierOutsideOfSixteen) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          sync_threads(16, 64);
        });
      },
      R"(TW1074 build: named barrier 16
  --> the mistake
help: a block has named barriers 0 to 15)");
}

TEST(StatementErrors, NamedBarrierOfAFloat) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          named_barrier_arrive(1.0, 64);
        });
      },
      R"(TW1003 build: the number of a named barrier is an integer, but this is float32
  --> the mistake
help: cast it to int32)");
}

TEST(StatementErrors, Registers) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          set_max_nreg(100);
        });
      },
      R"(TW1075 build: set_max_nreg(100)
  --> the mistake
help: the number of registers is a multiple of 8 from 24 to 256)");
}

TEST(StatementErrors, AssertionOfAFloat) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          device_assert(x);
        });
      },
      R"(TW1006 build: a condition is a bool or an integer, but this is float32
  --> the mistake
help: compare it, for example x != 0)");
}

TEST(StatementErrors, AssumptionOfAFloat) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          assume(x);
        });
      },
      R"(TW1006 build: a condition is a bool or an integer, but this is float32
  --> the mistake
help: compare it, for example x != 0)");
}

}  // namespace
}  // namespace tilewright::errors
