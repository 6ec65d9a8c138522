// What newcomers meet in C++, one mistake a test, with the whole message: those that the running program finds. Those
// that the C++ compiler finds are in does_not_compile_test.cpp.
#include <cstdlib>

#include "errors/expect_error.h"
#include "tilewright/compile.h"
#include "tilewright/tensor.h"

namespace tilewright::errors {
namespace {

TEST(FirstHour, ValueAssignedInABranch) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          Value x = 0.f;
          If(A(0) > 0, [&] {
            mark();
            x = 1.f;
          });
          A(1) = x;
        });
      },
      R"(TW1105 build: a Value that was declared outside of this loop or branch of the program is assigned in it
  --> the mistake
help: C++ runs the body once, whatever run time does: keep it in 'auto v = alloc_var(f32, 0);', or declare it here)");
}

TEST(FirstHour, ValueSummedInALoop) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          Value sum = 0.f;
          for (auto k : serial(8)) {
            mark();
            sum = sum + A(k);
          }
          A(1) = sum;
        });
      },
      R"(TW1105 build: a Value that was declared outside of this loop or branch of the program is assigned in it
  --> the mistake
help: C++ runs the body once, whatever run time does: keep it in 'auto v = alloc_var(f32, 0);', or declare it here)");
}

TEST(FirstHour, ValuesAssignedWhereTheyAreDeclared) {
  Tensor A("A", {8}, f32);
  const Program program = kernel({A}, [&] {
    for (auto k : serial(2)) {
      Value x = A(k);
      for (int turn = 0; turn < 2; ++turn) x = x * 2;
      A(k) = x;
    }
  });
  NDArray a = NDArray::zeros({8}, f32);
  static_cast<float*>(a.data())[0] = 1, static_cast<float*>(a.data())[1] = 3;
  compile(program, {.engine = Engine::Interpreter})(a);
  EXPECT_EQ(static_cast<float*>(a.data())[0], 4);
  EXPECT_EQ(static_cast<float*>(a.data())[1], 12);
}

// They take no place of their own: it is where the result is used.
TEST(FirstHour, ConditionsOfFloats) {
  Tensor A("A", {8}, f32);
  for (const int which : {0, 1, 2})
    expect_error(
        [&] {
          kernel({A}, [&] {
            Value x = A(0), y = A(1);
            A(2) = 0;
            mark();
            If(which == 0 ? !x : which == 1 ? x > 0 && y : !(x > 0) || !y, [&] { A(0) = 0; });
          });
        },
        R"(TW1006 build: a condition is a bool or an integer, but this is float32
  --> the mistake
help: compare it, for example x != 0)");
}

TEST(FirstHour, ConditionOfNothing) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          Value x;
          mark();
          If(!x, [&] { A(0) = 0; });
        });
      },
      R"(TW1080 build: If: an operand without a value
  --> the mistake
help: initialize the Value before it is used)");
}

TEST(FirstHour, InnerExtentsOfAGemm) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto a = alloc_shared({16, 32}, f16), b = alloc_shared({64, 16}, f16);
          auto c = alloc_fragment({16, 16}, f32);
          mark();
          gemm(a, b, c);
        });
      },
      R"(TW1063 build: gemm: the inner extents differ: 'a' has K = 32, 'b' has K = 64
  --> the mistake
help: A is (M, K) and B is (K, N))");
}

TEST(FirstHour, OneIndexOfTwo) {
  expect_error(
      [&] {
        mark_declaration();
        Tensor A("A", {8, 8}, f32);
        kernel({A}, [&] {
          mark();
          Value x = A(0);
        });
      },
      R"(TW1038 build: 'A' has 2 dimensions, but 1 indices are given
  --> the mistake
note: 'A' is declared here
  --> the declaration
help: give an index in every dimension; slices and all are indices too)");
}

TEST(FirstHour, LoopLeftByBreak) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          for (auto i : serial(8)) {
            A(i) = 0;
            break;
          }
          A(0) = 1;
        });
      },
      R"(TW1012 build: the scope of a range-for was left by break, return or goto while the program was being built
  --> the mistake
help: the body of a tile loop runs once, at build time; for a loop exit at run time write break_loop())");
}

TEST(FirstHour, TensorThatIsNotListed) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        mark_declaration();
        Tensor B("B", {8}, f32);
        kernel({A}, [&] {
          mark();
          A(0) = B(0);
        });
      },
      R"(TW1076 build: tensor 'B' is not a parameter of the program that uses it
  --> the mistake
note: 'B' is declared here
  --> the declaration
help: list it in the parameters of prim_func())");
}

TEST(FirstHour, StatementOutsideOfAKernel) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        prim_func("program", {A}, [&] {
          mark();
          alloc_shared({8}, f32);
        });
      },
      R"(TW1013 build: an allocation stands outside of a Kernel
  --> the mistake
help: open one first: for (auto bx : Kernel(...)))");
}

TEST(FirstHour, LoopBeyondItsTile) {
  Tensor A("A", {128}, f32);
  expect_error(
      [&] {
        const Program program = kernel({A}, [&] {
          mark_declaration();
          auto s = alloc_shared({64}, f32);
          for (auto i : Parallel(128)) {
            mark();
            s(i) = A(i);
          }
        });
        compile(program, {.engine = Engine::Interpreter});
      },
      R"(TW1036 build: index 0 of 's' runs from 0 to 127, but 's' has 64 elements
  --> the mistake
note: 's' is declared here
  --> the declaration
help: make the loop shorter or the tile larger, or guard the access by an if)");
}

TEST(FirstHour, GridOfAQuotient) {
  Value n = dynamic("n");
  Tensor A("A", {n}, f32);
  expect_error(
      [&] {
        prim_func("program", {A}, [&] {
          mark();
          for (auto bx : Kernel(n / 16)) A(bx) = 0;
        });
      },
      R"(TW1002 build: / of int32 and int32: / divides floats
  --> the mistake
help: use floordiv(a, b), or ceildiv(a, b) for a number of blocks; or cast an operand to a float)");
}

TEST(FirstHour, KernelsOfAGpuWithoutADriver) {
  Tensor A("A", {8}, f32);
  const Program program = kernel({A}, [&] { A(0) = 1; });
  const char* before = std::getenv("TILEWRIGHT_LIBCUDA");
  const std::string kept = before ? before : "";
  setenv("TILEWRIGHT_LIBCUDA", "/nowhere/libcuda.so", 1);
  expect_error(
      [&] { compile(program, {.engine = Engine::Cuda}); },
      "TW8101 cuda: no CUDA driver: /nowhere/libcuda.so: cannot open shared object file: No such file or directory\n"
      "help: install NVIDIA's driver; in a container, start it with the GPU (docker run --gpus all); "
      "TILEWRIGHT_LIBCUDA names libcuda.so where the dynamic linker does not find it");
  before ? setenv("TILEWRIGHT_LIBCUDA", kept.c_str(), 1) : unsetenv("TILEWRIGHT_LIBCUDA");
}

TEST(FirstHour, CallsThatDoNotFit) {
  Tensor A("A", {64}, f32);
  const Executable program = compile(kernel({A}, [&] { A(0) = 1; }), {.engine = Engine::Interpreter});
  const NDArray right = NDArray::zeros({64}, f32);
  expect_error([&] { program(NDArray::zeros({65}, f32)); },
               R"(TW4007 launch: program: argument 0 'A' has shape (65,), but its dimension 0 must be 64)");
  expect_error([&] { program(NDArray::zeros({64}, f16)); },
               R"(TW4004 launch: program: argument 0 'A' has dtype float16, but must have float32
help: convert it, or declare the parameter as float16)");
  expect_error([&] { program(right, right); }, R"(TW4001 launch: program: takes 1 argument (A), but the call has 2)");
  expect_error([&] { program(); }, R"(TW4001 launch: program: takes 1 argument (A), but the call has 0)");
  expect_error(
      [&] { program(3); },
      R"(TW4002 launch: program: argument 0 'A' must be a tensor (float32, 1 dimension), but is the number 3)");
}

}  // namespace
}  // namespace tilewright::errors
