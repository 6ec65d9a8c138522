// Mistakes in parameters, programs and launches: one a test, with the whole message.
#include "errors/expect_error.h"
#include "ir/builder.h"

namespace tilewright::errors {
namespace {

TEST(ProgramErrors, StatementOutsideOfAProgram) {
  expect_error(
      [] {
        mark();
        auto S = alloc_shared({8}, f32, "S");
      },
      R"(TW1077 build: alloc_shared outside of prim_func
  --> the mistake
help: write it in the body that prim_func() is given)");
}

TEST(ProgramErrors, StatementOutsideOfAKernel) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        prim_func("program", {A}, [&] {
          mark();
          A(0) = 1;
        });
      },
      R"(TW1013 build: a statement stands outside of a Kernel
  --> the mistake
help: open one first: for (auto bx : Kernel(...)))");
}

TEST(ProgramErrors, AllocationOutsideOfAKernel) {
  expect_error(
      [&] {
        prim_func("program", {}, [&] {
          mark();
          auto S = alloc_shared({8}, f32, "S");
        });
      },
      R"(TW1013 build: an allocation stands outside of a Kernel
  --> the mistake
help: open one first: for (auto bx : Kernel(...)))");
}

TEST(ProgramErrors, ProgramWithoutAKernel) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        mark();
        prim_func("empty", {A}, [] {});
      },
      R"(TW1054 build: 'empty' launches nothing
  --> the mistake
help: write its body inside for (auto bx : Kernel(...)))");
}

TEST(ProgramErrors, TensorThatIsNoParameter) {
  mark_declaration();
  Tensor A("A", {8}, f32), B("B", {8}, f32);
  const int declaration = marks().declaration;
  expect_error(
      [&] {
        kernel({A}, [&] {
          marks().declaration = declaration;
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

TEST(ProgramErrors, BufferThatWasNeverAllocated) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          Buffer S;
          mark();
          copy(A, S);
        });
      },
      R"(TW1076 build: this buffer was never allocated
  --> the mistake
help: initialize it by one of the alloc functions before it is used)");
}

TEST(ProgramErrors, ParameterThatIsAnExpression) {
  Value n = Scalar("n", i32);
  expect_error(
      [&] {
        Value m = n + 1;
        mark();
        prim_func("program", {m}, [] {});
      },
      R"(TW1076 build: a parameter that is neither a Tensor nor a Scalar
  --> the mistake
help: make scalar parameters by Scalar(name, dtype))");
}

TEST(ProgramErrors, TwoTensorsOfOneName) {
  expect_error(
      [] {
        Tensor A("A", {8}, f32);
        mark();
        Tensor B("A", {8}, f32);
        kernel({A, B}, [] {});
      },
      R"(TW1015 build: two parameters are named 'A'
  --> the mistake
help: arguments and error messages go by the names of parameters: give each its own)");
}

TEST(ProgramErrors, ScalarOfTheNameOfATensor) {
  expect_error(
      [] {
        Tensor A("A", {8}, f32);
        Value a = Scalar("A", f32);
        mark();
        prim_func("program", {A, a}, [] {});
      },
      R"(TW1015 build: two parameters are named 'A'
  --> the mistake
help: arguments and error messages go by the names of parameters: give each its own)");
}

TEST(ProgramErrors, NumberOfStrides) {
  expect_error(
      [] {
        mark();
        StridedTensor A("A", {8, 8}, {16}, f32);
        kernel({A}, [] {});
      },
      R"(TW1016 build: 'A' has 2 dimensions, but 1 strides
  --> the mistake
help: give one stride for each dimension, in elements)");
}

TEST(ProgramErrors, StrideThatIsNoInteger) {
  expect_error(
      [] {
        mark();
        StridedTensor A("A", {8}, {1.5}, f32);
        kernel({A}, [] {});
      },
      R"(TW1003 build: a stride is an integer, but this is float32
  --> the mistake
help: cast it to int32)");
}

TEST(ProgramErrors, ScalarOfAnEightBitFloat) {
  Value x = Scalar("x", e4m3);
  expect_error(
      [&] {
        mark();
        prim_func("program", {x}, [] {});
      },
      R"(TW1017 build: scalar parameter 'x' has type float8_e4m3fn
  --> the mistake
help: scalars are bool, integers of 8 bits or more, or float16, bfloat16, float32, float64)");
}

TEST(ProgramErrors, NineDimensions) {
  expect_error(
      [] {
        mark();
        Tensor A("A", {1, 2, 1, 2, 1, 2, 1, 2, 1}, f32);
        kernel({A}, [] {});
      },
      R"(TW1018 build: 'A' has 9 dimensions; a tensor has at most 8
  --> the mistake
help: join dimensions that are next to each other in memory)");
}

TEST(ProgramErrors, ExtentThatIsNoInteger) {
  expect_error(
      [] {
        mark();
        Tensor A("A", {8, 2.5}, f32);
        kernel({A}, [] {});
      },
      R"(TW1019 build: dimension 1 of 'A' is float32
  --> the mistake
help: an extent is an integer: divide by ceildiv, or cast it to int32)");
}

TEST(ProgramErrors, NegativeExtent) {
  expect_error(
      [] {
        mark();
        Tensor A("A", {-8}, f32);
        kernel({A}, [] {});
      },
      R"(TW1021 build: dimension 0 of 'A' is -8
  --> the mistake
help: an extent is 0 or more)");
}

TEST(ProgramErrors, ExtentWithoutAValue) {
  expect_error(
      [] {
        Value n;
        mark();
        Tensor A("A", {n}, f32);
      },
      R"(TW1080 build: an extent: an operand without a value
  --> the mistake
help: initialize the Value before it is used)");
}

TEST(ProgramErrors, SymbolInNoShape) {
  Value n = dynamic("n");
  Tensor A("A", {8}, i32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          A(0) = n;
        });
      },
      R"(TW1083 build: 'n' has no value: no parameter says what it is
  --> the mistake
help: use it in the shape of a tensor parameter, or make it a Scalar() and list it in the parameters)");
}

TEST(ProgramErrors, GridOfASymbolInNoShape) {
  Value n = dynamic("n");
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        prim_func("program", {A}, [&] {
          mark();
          for (auto bx : Kernel(n, {.threads = 32})) A(bx) = 1;
        });
      },
      R"(TW1083 build: 'n' has no value: no parameter says what it is
  --> the mistake
help: use it in the shape of a tensor parameter, or make it a Scalar() and list it in the parameters)");
}

TEST(ProgramErrors, KernelInsideOfAKernel) {
  expect_error(
      [] {
        kernel({}, [] {
          mark();
          for (auto bx : Kernel(1, {.threads = 32})) (void)bx;
        });
      },
      R"(TW1022 build: a Kernel inside of a Kernel
  --> the mistake
help: several launches of one program stand one after the other)");
}

TEST(ProgramErrors, FourGridExtents) {
  expect_error(
      [] {
        prim_func("program", {}, [] {
          mark();
          for (auto [x, y, z, w] : Kernel({1, 2, 3, 4}, {.threads = 32})) thread_return();
        });
      },
      R"(TW1023 build: a grid has 1 to 3 extents, but this has 4
  --> the mistake
help: join extents into one, and split the block index by floordiv and %)");
}

TEST(ProgramErrors, GridExtentThatIsNoInteger) {
  expect_error(
      [] {
        prim_func("program", {}, [] {
          mark();
          for (auto bx : Kernel(2.5, {.threads = 32})) (void)bx;
        });
      },
      R"(TW1019 build: grid extent 0 is float32
  --> the mistake
help: an extent is an integer: divide by ceildiv, or cast it to int32)");
}

TEST(ProgramErrors, NegativeGridExtent) {
  expect_error(
      [] {
        prim_func("program", {}, [] {
          mark();
          for (auto bx : Kernel(-1, {.threads = 32})) (void)bx;
        });
      },
      R"(TW1021 build: grid extent 0 is -1
  --> the mistake
help: an extent is 0 or more)");
}

TEST(ProgramErrors, FourThreadExtents) {
  expect_error(
      [] {
        prim_func("program", {}, [] {
          mark();
          for (auto bx : Kernel(1, {.threads = {2, 2, 2, 2}})) (void)bx;
        });
      },
      R"(TW1024 build: threads has 1 to 3 extents, but this has 4
  --> the mistake
help: write .threads = 128, or .threads = {x, y, z})");
}

TEST(ProgramErrors, NoThreads) {
  expect_error(
      [] {
        prim_func("program", {}, [] {
          mark();
          for (auto bx : Kernel(1, {.threads = 0})) (void)bx;
        });
      },
      R"(TW1025 build: an extent of threads is 0
  --> the mistake
help: a block has at least 1 thread)");
}

TEST(ProgramErrors, TooManyThreads) {
  for (const std::vector<int64_t>& threads : {std::vector<int64_t>{1025}, {32, 33}, {1024, int64_t{1} << 60}})
    expect_error(
        [&] {
          KernelOptions options;
          options.threads.extents = threads;
          prim_func("program", {}, [&] {
            mark();
            for (auto bx : Kernel(1, options)) (void)bx;
          });
        },
        R"(TW1025 build: the block has more than 1024 threads
  --> the mistake
help: use fewer threads and let each do more, or more blocks)");
}

TEST(ProgramErrors, ClusterOfNoBlocks) {
  expect_error(
      [] {
        prim_func("program", {}, [] {
          mark();
          for (auto bx : Kernel(4, {.threads = 32, .cluster_dims = {2, 0}})) (void)bx;
        });
      },
      R"(TW1084 build: cluster_dims is (2, 0)
  --> the mistake
help: it has at most 3 extents, each 1 or more)");
}

void copy_to_block(int64_t block, std::vector<int64_t> cluster, bool from_global, bool to_shared) {
  Tensor A("A", {64}, f32);
  prim_func("program", {A}, [&] {
    for (auto bx : Kernel(4, {.threads = 32, .cluster_dims = cluster})) {
      (void)bx;
      auto S = alloc_shared({64}, f32, "S"), D = alloc_shared({64}, f32, "D");
      auto F = alloc_fragment({64}, f32, "F");
      mark();
      copy_cluster(from_global ? Tile(A) : Tile(S), to_shared ? Tile(D) : Tile(F), block);
    }
  });
}

TEST(ProgramErrors, CopiesToOtherBlocks) {
  expect_error([] { copy_to_block(2, {2}, false, true); },
               R"(TW1088 build: copy_cluster to block 2 of a cluster of 2
  --> the mistake
help: cluster_dims of the kernel says how many blocks form a cluster; they have the numbers from 0 on)");
  expect_error([] { copy_to_block(0, {}, false, true); },
               R"(TW1088 build: copy_cluster to block 0 of a cluster of 1
  --> the mistake
help: cluster_dims of the kernel says how many blocks form a cluster; they have the numbers from 0 on)");
  expect_error([] { copy_to_block(1, {2}, false, false); },
               R"(TW1088 build: copy_cluster to 'F', a fragment buffer
  --> the mistake
help: blocks of a cluster reach each other's shared memory)");
  expect_error([] { copy_to_block(1, {2}, true, true); },
               R"(TW1088 build: copy_cluster from 'A', a global buffer
  --> the mistake
help: a block sends what is in its own shared memory or fragments: copy it there first)");
}

TEST(ProgramErrors, ThreadDimension) {
  expect_error(
      [] {
        kernel({}, [] {
          mark();
          Value t = get_thread_binding(3);
        });
      },
      R"(TW1026 build: get_thread_binding(3): there is no such dimension
  --> the mistake
help: threads have dimensions 0 to 2: x, y and z)");
}

TEST(ProgramErrors, BlockDimension) {
  expect_error(
      [] {
        kernel({}, [] {
          mark();
          Value b = get_block_binding(-1);
        });
      },
      R"(TW1026 build: get_block_binding(-1): there is no such dimension
  --> the mistake
help: grids have dimensions 0 to 2: x, y and z)");
}

TEST(ProgramErrors, NegativeSwizzlePanel) {
  expect_error(
      [] {
        kernel({}, [] {
          mark();
          use_swizzle(-4);
        });
      },
      R"(TW1027 build: use_swizzle: panel_size is -4
  --> the mistake
help: give the number of rows of blocks in a panel, or 0 for none)");
}

TEST(ProgramErrors, UnknownSwizzleOrder) {
  expect_error(
      [] {
        kernel({}, [] {
          mark();
          use_swizzle(4, "diagonal");
        });
      },
      R"(TW1080 build: use_swizzle: order is 'diagonal'
  --> the mistake
help: it is "row" or "column")");
}

// A C++ break leaves a loop that is being recorded. Whatever comes next reports it, at the loop.
TEST(ProgramErrors, BreakBeforeAStatement) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          for (auto i : serial(4)) {
            A(i) = 1;
            break;
          }
          A(0) = 0;
        });
      },
      R"(TW1012 build: the scope of a range-for was left by break, return or goto while the program was being built
  --> the mistake
help: the body of a tile loop runs once, at build time; for a loop exit at run time write break_loop())");
}

TEST(ProgramErrors, BreakBeforeTheEndOfAKernel) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          for (auto i : serial(4)) {
            mark();
            for (auto j : serial(4)) {
              A(i) = cast(j, f32);
              break;
            }
          }
        });
      },
      R"(TW1012 build: the scope of a range-for was left by break, return or goto while the program was being built
  --> the mistake
help: the body of a tile loop runs once, at build time; for a loop exit at run time write break_loop())");
}

TEST(ProgramErrors, BreakOutOfAKernel) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        prim_func("program", {A}, [&] {
          mark();
          for (auto bx : Kernel(8, {.threads = 32})) {
            A(bx) = 1;
            break;
          }
          for (auto bx : Kernel(8, {.threads = 32})) A(bx) = 2;
        });
      },
      R"(TW1012 build: the scope of a range-for was left by break, return or goto while the program was being built
  --> the mistake
help: the body of a tile loop runs once, at build time; for a loop exit at run time write break_loop())");
}

TEST(ProgramErrors, CallOfWhatIsNoName) {
  expect_error(
      [] {
        ir::Builder builder("program");
        builder.open_launch({ir::constant(1)}, {});
        ir::Call call;
        call.function = "f(x); g";
        builder.call(call, {});
      },
      R"(TW1053 build: 'f(x); g' is not the name of a function
help: a name has letters, digits, _ and ::)");
}

}  // namespace
}  // namespace tilewright::errors
