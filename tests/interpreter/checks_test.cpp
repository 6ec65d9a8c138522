// Mistakes of a program that the interpreter finds, with their whole messages.
#include "interpreter/run.h"
#include "ir/parse.h"
#include "tilewright/compile.h"

namespace tilewright::interpreter {
namespace {

// A program of one launch on 32 threads over an int32 tensor A of 32 elements.
std::string error_in(const std::function<void(const Tensor&, Value)>& body, int64_t threads = 32) {
  Tensor A("A", {32}, i32);
  Program p = prim_func("p", {A}, [&] {
    for (auto bx : Kernel(2, {.threads = threads})) {
      auto tx = get_thread_binding();
      body(A, tx);
      (void)bx;
    }
  });
  return error_of(p, {range_array({32}, i32)});
}

TEST(InterpreterChecks, BoundsOnChip) {
  EXPECT_EQ(error_in([](const Tensor& A, Value tx) {
              auto s = alloc_shared({4, 8}, f32, "s");
              s(floordiv(tx, 8), tx % 8 + 1) = cast(A(tx), f32);
            }),
            "TW6001: index (0, 8) is outside 's' of shape (4, 8), in block (0), thread (7)");
  EXPECT_EQ(error_in([](const Tensor& A, Value) {
              auto s = alloc_shared({16}, i32, "s");
              for (auto [i, j] : Parallel(4, 5)) s(i * 5 + j) = A(i);
            }),
            "TW6001: index (16) is outside 's' of shape (16), in block (0), point (3, 1)");
  EXPECT_EQ(error_in([](const Tensor& A, Value) {
              auto s = alloc_shared({16}, i32, "s");
              for (auto k : serial(3)) copy(A(slice(0, 8)), s(slice(k * 8, k * 8 + 8)));
            }),
            "TW6001: the region (16) + (8) is outside 's' of shape (16), in block (0)");
}

TEST(InterpreterChecks, ViewsThatLeaveTheirMemory) {
  const auto error = [](const std::string& view, const std::string& statement) {
    const std::string text =
        "program p {\n  param A: int32[16]\n  param n: int32\n  launch main(bx: 1) threads(tx: 32) {\n" +
        ("    shared s: int32[16]\n    fill to=s value=0\n    " + view + "\n    " + statement + "\n  }\n}\n");
    const Program p(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(text, "p.tile")}));
    return error_of(p, {range_array({16}, i32)}, {.ints = {{"n", 12}}});
  };
  const std::string begins = "global w: int32[8] view=A offset=n", on_chip = "shared w: int32[8] view=s offset=bx + 12";
  const std::string sized = "global w: int32[n, 2] view=A", bytes = "global w: uint8[40] view=A offset=n";
  const std::string each = "map i in 8 {\n w[i] = 1\n }", left = "TW6001: the view 'w' is accessed past the memory of ";
  EXPECT_EQ(error(begins, each), left + "'A', in block (0), point (4)");
  EXPECT_EQ(error(begins, "fill to=w value=1"), left + "'A', in block (0)");
  EXPECT_EQ(error(begins, "fill to=w[0 : 4] value=1"), "no error");
  EXPECT_EQ(error(begins, "copy from=w to=s[0 : 8]"), left + "'A', in block (0)");
  EXPECT_EQ(error(on_chip, each), left + "'s', in block (0), point (4)");
  EXPECT_EQ(error(on_chip, "fill to=w[4 : 1] value=1"), left + "'s', in block (0)");
  EXPECT_EQ(error(on_chip, "fill to=w[0 : 4] value=1"), "no error");
  EXPECT_EQ(error(sized, "w[7, 1] = 1"), "no error");
  EXPECT_EQ(error(sized, "w[8, 0] = 1"), left + "'A', in block (0), thread (0)");
  EXPECT_EQ(error(sized, "w[12, 0] = 1"), "no error");  // outside the view: nothing is stored
  EXPECT_EQ(error(bytes, "w[39] = uint8(1)"), "no error");
}

TEST(InterpreterChecks, ReadsBeforeWrites) {
  EXPECT_EQ(error_in([](const Tensor& A, Value tx) {
              auto s = alloc_shared({4, 8}, i32, "s");
              fill(s(slice(0, 2), slice(0, 8)), 1);
              A(tx) = s(floordiv(tx, 8), tx % 8);
            }),
            "TW6002: 's' at (2, 0) is read before it is written, in block (0), thread (16)");
  EXPECT_EQ(error_in([](const Tensor& A, Value tx) {
              auto v = alloc_local({1}, i32, "v");
              If(tx != 5, [&] { v(0) = 1; });
              A(tx) = v(0);
            }),
            "TW6002: 'v' at (0) is read before it is written, in block (0), thread (5)");
  EXPECT_EQ(error_in([](const Tensor&, Value) {
              auto a = alloc_shared({16, 16}, f16, "a");
              auto c = alloc_fragment({16, 16}, f32, "c");
              fill(a, 1);
              gemm(a, a, c);
            }),
            "TW6002: 'c' at (0, 0) is read before it is written, in block (0)");
  // What one block wrote is not there for the next.
  Tensor A("A", {2}, i32);
  Program p = prim_func("p", {A}, [&] {
    for (auto bx : Kernel(2, {.threads = 32})) {
      auto s = alloc_shared({1}, i32, "s");
      If(bx == 0, [&] { s(0) = 1; });
      A(bx) = s(0);
    }
  });
  EXPECT_EQ(error_of(p, {range_array({2}, i32)}),
            "TW6002: 's' at (0) is read before it is written, in block (1), thread (0)");
}

// Of points that share a name those that use it read it; what is stored beyond a tensor is not looked at.
TEST(InterpreterChecks, WhatIsNotWrittenMayBeDropped) {
  const auto error = [](int64_t first, bool named) {
    return error_in([&](const Tensor& A, Value) {
      auto f = alloc_fragment({16}, i32, "f");
      for (auto i : Parallel(16)) If(i >= first, [&] { f(i) = i; });
      for (auto i : Parallel(16)) {
        if (!named) {
          A(i - 8) = f(i);
          continue;
        }
        Value v = f(i);
        If(i >= 8, [&] { A(i - 8) = v; });
      }
    });
  };
  for (const bool named : {false, true}) {
    EXPECT_EQ(error(8, named), "no error");
    EXPECT_EQ(error(9, named).substr(0, 56),
              fmt::format("TW6002: 'f' at ({}) is read before it is written, in bloc", named ? 0 : 8));  // the first
  }
}

TEST(InterpreterChecks, PointsThatWriteOneElement) {
  EXPECT_EQ(error_in([](const Tensor& A, Value) {
              for (auto i : Parallel(8)) A(floordiv(i, 2)) = i;
            }),
            "TW6003: points 0 and 1 of the map write different values to one element of 'A', in block (0), "
            "point (1)");
  EXPECT_EQ(error_in([](const Tensor& A, Value) {
              for (auto i : Parallel(8)) A(floordiv(i, 2)) = floordiv(i, 4);
            }),
            "no error");
  EXPECT_EQ(error_in([](const Tensor& A, Value) {
              auto s = alloc_shared({4, 6}, i32, "s");
              for (auto [i, j] : Parallel(4, 6)) {
                s(i, j) = i;
                s(i, 5 - j) = i;
                A(i) = i + 7;
              }
            }),
            "no error");
}

TEST(InterpreterChecks, CopiesBetweenPartsOfOneTile) {
  const auto shifted = [](int64_t from, int64_t to, int64_t count) {
    return error_in([=](const Tensor& A, Value) {
      auto s = alloc_shared({8}, i32, "s");
      copy(A(slice(0, 8)), s);
      copy(s(slice(from, from + count)), s(slice(to, to + count)));
    });
  };
  EXPECT_EQ(shifted(0, 1, 7), "TW6016: the copy reads an element of 's' that it writes as well, in block (0)");
  EXPECT_EQ(shifted(2, 0, 5), "TW6016: the copy reads an element of 's' that it writes as well, in block (0)");
  EXPECT_EQ(shifted(0, 4, 4), "no error");
  EXPECT_EQ(shifted(3, 3, 5), "no error");
}

TEST(InterpreterChecks, OpsBetweenPartsOfOneTile) {
  const auto scanned = [](int64_t from, int64_t to) {
    return error_in([=](const Tensor& A, Value) {
      auto s = alloc_shared({8}, i32, "s");
      copy(A(slice(0, 8)), s);
      auto at = alloc_var(i32, from);  // known when the program runs
      cumsum(s(slice(at, at + 4)), s(slice(to, to + 4)));
    });
  };
  EXPECT_EQ(scanned(0, 1), "TW6016: the scan reads an element of 's' that it writes as well, in block (0)");
  EXPECT_EQ(scanned(4, 1), "TW6016: the scan reads an element of 's' that it writes as well, in block (0)");
  EXPECT_EQ(scanned(0, 4), "no error");
  EXPECT_EQ(scanned(2, 2), "no error");
  EXPECT_EQ(error_in([](const Tensor& A, Value) {
              auto s = alloc_shared({2, 4}, i32, "s");
              fill(s, 1);
              auto row = alloc_var(i32, 0);
              reduce_sum(s, s(slice(0, 2), row), {.dim = 1});
              A(0) = s(0, 0);
            }),
            "TW6016: the reduce reads an element of 's' that it writes as well, in block (0)");
}

TEST(InterpreterChecks, PointsThatReadWhatOthersWrite) {
  // Of one statement, whose reads come before its writes, and of two.
  EXPECT_EQ(error_in([](const Tensor& A, Value) {
              for (auto i : Parallel(8)) A(i + 1) = A(i) + 2;
            }),
            "TW6016: point 1 of the map reads an element of 'A' that point 0 writes, in block (0), point (0)");
  EXPECT_EQ(error_in([](const Tensor& A, Value) {
              auto s = alloc_shared({8}, i32, "s");
              fill(s, 0);
              for (auto i : Parallel(8)) {
                s(i) = i;
                A(i) = s(7 - i);
              }
            }),
            "TW6016: point 0 of the map reads an element of 's' that point 7 writes, in block (0), point (0)");
  EXPECT_EQ(error_in([](const Tensor& A, Value) {
              for (auto [i, j] : Parallel(4, 8)) A(i) = A(i) + 1;
            }),
            "TW6016: another point of the map reads an element of 'A' that point 0 writes, in block (0), point (0, 0)");
  // Own elements, others that nobody changes, and what comes to the same in any order.
  EXPECT_EQ(error_in([](const Tensor& A, Value) {
              for (auto i : Parallel(8)) {
                A(i) = A(i) + A(i + 8);
                for (auto k : serial(2)) A(i) = A(i) * 2 + A(i + 16) + k;
              }
            }),
            "no error");
  EXPECT_EQ(error_in([](const Tensor& A, Value) {
              for (auto [i, j] : Parallel(4, 8)) A(i) = max(A(i), i * 100);
            }),
            "no error");
  EXPECT_EQ(error_in([](const Tensor& A, Value) {
              for (auto i : Parallel(8)) A(i + 1) = A(i + 1) + 0 * A(i);
            }),
            "no error");
}

TEST(InterpreterChecks, IntegerDivision) {
  EXPECT_EQ(error_in([](const Tensor& A, Value tx) { A(tx) = floordiv(7, tx - 3); }),
            "TW6004: division by zero: 7 by 0 (int32), in block (0), thread (3)");
  EXPECT_EQ(error_in([](const Tensor& A, Value tx) { A(tx) = truncmod(min_value(i32) + tx, tx - 1); }),
            "TW6004: the quotient does not fit: -2147483648 by -1 (int32), in block (0), thread (0)");
  const ir::TileProgram grid = ir::parse(
      "program p {\n  param n: int32\n  param A: int32[8]\n  launch l(bx: 8 // n) threads(tx: 1) {\n    A[bx] = 1\n  "
      "}\n}\n",
      "grid.tile");
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{grid}));
  const NDArray a = NDArray::zeros({8}, i32);
  try {
    compile(program, {.engine = Engine::Interpreter})(0, a);
    ADD_FAILURE() << "a grid of 8 // 0 blocks";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().code_text(), "TW6004");
  }
}

TEST(InterpreterChecks, AssertionsAndAssumptions) {
  EXPECT_EQ(error_in([](const Tensor& A, Value tx) { assume(A(tx) < 9); }),
            "TW6005: what the program assumes here does not hold, in block (0), thread (9)");
  EXPECT_EQ(error_in([](const Tensor& A, Value tx) { device_assert(A(tx) < 30, "small"); }),
            "TW6006: assertion failed: small, in block (0), thread (30)");
}

TEST(InterpreterChecks, ShuffleFromALaneThatIsNotThere) {
  EXPECT_EQ(error_in([](const Tensor& A, Value tx) { If(tx < 16, [&] { A(tx) = shfl_xor(tx, 16); }); }),
            "TW6007: a shuffle reads lane 16 of the warp, which does not execute it, in block (0), thread (0)");
}

TEST(InterpreterChecks, ReducersAreReadAfterTheyAreFinal) {
  EXPECT_EQ(error_in([](const Tensor& A, Value) {
              auto acc = alloc_reducer({4}, i32, ReducerOp::Sum, "acc");
              clear(acc);
              for (auto [i, j] : Parallel(8, 4)) acc(j) += A(i);
              for (auto j : Parallel(4)) A(j) = acc(j);
            }),
            "TW6010: the reducer 'acc' is read before it is finalized, in block (0), point (0)");
}

TEST(InterpreterChecks, NullArrays) {
  Tensor A("A", {32}, i32);
  Program p = prim_func("p", {A}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) A(bx) = 1;
  });
  EXPECT_EQ(error_of(p, {NDArray()}), "TW6013: 'A' is accessed but has no memory, in block (0), thread (0)");
}

}  // namespace
}  // namespace tilewright::interpreter
