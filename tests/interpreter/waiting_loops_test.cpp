// Loops that wait for memory: they end when another strand or block writes it, and are a deadlock, not a hang,
// where nobody will.
#include "interpreter/run.h"

namespace tilewright::interpreter {
namespace {

constexpr const char* kDeadlock = "TW6009: deadlock: no thread can go on";

// A launch of two blocks of 256 threads over `flag`, which holds 0, and `out`.
Program waiting(const std::function<void(const Tensor& flag, const Tensor& out, Value bx, Value tx)>& body) {
  Tensor flag("flag", {4}, i32), out("out", {4}, i32);
  return prim_func("p", {flag, out}, [&] {
    for (auto bx : Kernel(2, {.threads = 256})) body(flag, out, bx, get_thread_binding());
  });
}
std::string error_in(const std::function<void(const Tensor& flag, const Tensor& out, Value bx, Value tx)>& body,
                     int threads = 1) {
  return error_of(waiting(body), {NDArray::zeros({4}, i32), NDArray::zeros({4}, i32)}, {.threads = threads});
}

// All blocks are under way where a loop only reads what the launch writes, and few enough for a device.
TEST(InterpreterWaiting, ForALaterBlock) {
  for (int threads : {1, 2}) {  // whatever the machine
    EXPECT_EQ(error_in([](const Tensor& flag, const Tensor&, Value bx,
                          Value) { If(bx == 0, [&] { While(flag(0) == 0, [] {}); }).Else([&] { flag(0) = 1; }); },
                       threads),
              "no error");
  }
  EXPECT_EQ(error_in([](const Tensor& flag, const Tensor&, Value bx, Value) {
              If(bx == 0, [&] {
                While(flag(3) == 0, [&] { If(atomic_load(flag(0)) == 1, [] { break_loop(); }); });
              }).Else([&] { atomic_store(flag(0), 1); });
            }),
            "no error");
}

// A loop that writes may be one that takes its turn: such blocks go one after the other.
TEST(InterpreterWaiting, ForALaterBlockIsADeadlockWhereTheLoopWrites) {
  EXPECT_EQ(error_in([](const Tensor& flag, const Tensor& out, Value bx, Value) {
              If(bx == 0, [&] { While(flag(0) == 0, [&] { out(1) = 1; }); }).Else([&] { flag(0) = 1; });
            }),
            kDeadlock);
}

TEST(InterpreterWaiting, SaysWhoWaitsAndWhere) {
  try {
    run(waiting([](const Tensor& flag, const Tensor&, Value, Value) { While(flag(1) == 0, [] {}); }),
        {NDArray::zeros({4}, i32), NDArray::zeros({4}, i32)});
    FAIL() << "no deadlock";
  } catch (const LaunchError& error) {
    const Diagnostic& d = error.diagnostic();
    ASSERT_EQ(d.notes.size(), 1u);
    EXPECT_EQ(d.notes[0].message,
              "block (0), threads 0 to 255 wait in this loop for memory that nobody changes: blocks run one after the "
              "other, the threads of a role in lockstep");
    EXPECT_GT(d.notes[0].location.line, 0);
  }
}

// The bodies do something that leaves all as it is.
TEST(InterpreterWaiting, StoresAndAtomicsThatChangeNothing) {
  EXPECT_EQ(error_in([](const Tensor& flag, const Tensor&, Value, Value) {
              auto seen = alloc_var(i32, 0);
              While(seen == 0, [&] { seen = flag(0); });
            }),
            kDeadlock);
  EXPECT_EQ(error_in([](const Tensor& flag, const Tensor&, Value, Value tx) {
              auto v = alloc_local({2}, i32);
              v(0) = tx;
              v(1) = 0;
              While(v(1) == 0, [&] {
                v(0) = tx;
                If(atomic_cas(flag(0), 5, 6) == 5, [&] { v(1) = 1; });
              });
            }),
            kDeadlock);
  EXPECT_EQ(error_in([](const Tensor& flag, const Tensor&, Value, Value) {
              While(flag(0) == 0, [&] { atomic_max(flag(0), -3); });
            }),
            kDeadlock);
  EXPECT_EQ(error_in([](const Tensor& flag, const Tensor&, Value, Value) {
              While(flag(0) == 0, [&] { While(flag(1) == 1, [] {}); });
            }),
            kDeadlock);
}

// Memory that stays as it is for some rounds is no deadlock: the loop's own state goes on.
TEST(InterpreterWaiting, LoopsThatGoOnEnd) {
  EXPECT_EQ(error_in([](const Tensor&, const Tensor& out, Value, Value tx) {
              auto i = alloc_var(i32, 0);
              While(i < 100, [&] {
                i += 1;
                out(0) = 7;
              });
              If(tx == 0, [&] { device_assert(out(0) == 7); });
            }),
            "no error");
  // Lanes that leave one after the other: by a return, by a break, by the condition.
  EXPECT_EQ(error_in([](const Tensor&, const Tensor&, Value, Value tx) {
              auto i = alloc_var(i32, 0);
              While(i <= tx, [&] {
                i += 1;
                If(i == 200, [] { thread_return(); });
                If(tx == 199 - i, [] { break_loop(); });
              });
            }),
            "no error");
  // A counter that wraps every other round.
  EXPECT_EQ(error_in([](const Tensor& flag, const Tensor& out, Value, Value tx) {
              If(tx == 0, [&] {
                While(flag(0) < 9, [&] {
                  out(1) = 1 - out(1);
                  If(out(1) == 0, [&] { flag(0) += 1; });
                });
              });
            }),
            "no error");
}

TEST(InterpreterWaiting, ForAnotherRoleOrABlockBefore) {
  NDArray flag = NDArray::zeros({4}, i32), out = NDArray::zeros({4}, i32);
  run(waiting([](const Tensor& flag, const Tensor& out, Value bx, Value tx) {
        ws({0}, [&] {
          While(flag(bx) == 0, [] {});  // the other role's, which comes later
          While(flag(0) == 0, [] {});   // the first block's
          If(tx == 0, [&] { out(bx) = flag(bx) + 1; });
        });
        ws({1}, [&] {
          auto i = alloc_var(i32, 0);
          While(i < 10, [&] { i += 1; });
          If(tx == 128, [&] { flag(bx) = 5; });
        });
      }),
      {flag, out});
  EXPECT_EQ(out.get_int({0}), 6);
  EXPECT_EQ(out.get_int({1}), 6);
}

// Each role waits for the other: both stand in the report, those of both blocks.
TEST(InterpreterWaiting, RolesForEachOther) {
  try {
    run(waiting([](const Tensor& flag, const Tensor&, Value, Value tx) {
          ws({0}, [&] {
            While(flag(0) == 0, [] {});
            If(tx == 0, [&] { flag(1) = 1; });
          });
          ws({1}, [&] {
            While(flag(1) == 0, [] {});
            If(tx == 128, [&] { flag(0) = 1; });
          });
        }),
        {NDArray::zeros({4}, i32), NDArray::zeros({4}, i32)});
    FAIL() << "no deadlock";
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.diagnostic().code_text(), "TW6009");
    EXPECT_EQ(error.diagnostic().notes.size(), 4u);
  }
}

// With a barrier of the grid all blocks run at once.
TEST(InterpreterWaiting, ForALaterBlockThatRunsAtTheSameTime) {
  NDArray flag = NDArray::zeros({4}, i32), out = NDArray::zeros({4}, i32);
  run(waiting([](const Tensor& flag, const Tensor& out, Value bx, Value tx) {
        If(bx == 0, [&] { While(flag(0) == 0, [] {}); }).Else([&] { If(tx == 0, [&] { flag(0) = 3; }); });
        sync_grid();
        If(tx == 0, [&] { out(bx) = flag(0); });
      }),
      {flag, out});
  EXPECT_EQ(out.get_int({0}), 3);
  EXPECT_EQ(out.get_int({1}), 3);
}

}  // namespace
}  // namespace tilewright::interpreter
