// Mistakes in tile ops: one a test, with the whole message.
#include "errors/expect_error.h"
#include "ir/builder.h"

namespace tilewright::errors {
namespace {

TEST(TileErrors, SliceThatEndsBeforeItBegins) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          copy(A(slice(8, 4), slice(0, 8)), S);
        });
      },
      R"(TW1055 build: slice 0 of 'A' is from 8 to 4
  --> the mistake
help: a slice ends after it begins, and has no negative bounds)");
}

TEST(TileErrors, EmptySliceOfUnknownPlace) {
  Tensor A("A", {64, 64}, f32);
  Value n = Scalar("n", i32);
  expect_error(
      [&] {
        kernel({A, n}, [&] {
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          copy(A(slice(n, n), slice(0, 8)), S);
        });
      },
      R"(TW1055 build: slice 0 of 'A' has 0 elements
  --> the mistake
help: a slice ends after it begins, and has no negative bounds)");
}

TEST(TileErrors, TileOfMoreDimensionsThanItsTarget) {
  Tensor A("A", {64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          copy(S, A(0));
        });
      },
      R"(TW1056 build: copy: the tile has 2 dimensions, but 'A', which is given by the position of its first element, has 1
  --> the mistake
help: use slices, which say the extents of both sides)");
}

TEST(TileErrors, CopyOfDifferentExtents) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto S = alloc_shared({32, 16}, f32, "S");
          mark();
          copy(A, S);
        });
      },
      R"(TW1057 build: copy: the extents differ: 'A' has (64, 64), 'S' has (32, 16)
  --> the mistake
help: give both sides the same tile, or an element reference on the global side)");
}

TEST(TileErrors, CopyToFewerDimensions) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto S = alloc_shared({64}, f32, "S");
          mark();
          copy(A, S);
        });
      },
      R"(TW1057 build: copy: the extents differ: 'A' has (64, 64), 'S' has (64)
  --> the mistake
help: give both sides the same tile; only a plain copy repeats a source of fewer dimensions)");
}

TEST(TileErrors, AtomicCopyOfDifferentDimensions) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto F = alloc_fragment({64}, f32, "F");
          mark();
          atomic_add(A(slice(0, 64), slice(0, 64)), F);
        });
      },
      R"(TW1057 build: copy: the extents differ: 'F' has (64), 'A' has (64, 64)
  --> the mistake
help: give both sides the same tile; only a plain copy repeats a source of fewer dimensions)");
}

TEST(TileErrors, AtomicCopyToAFragment) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto F = alloc_fragment({64, 64}, f32, "F");
          auto G = alloc_fragment({64, 64}, f32, "G");
          mark();
          atomic_add(F, G);
        });
      },
      R"(TW1049 build: an atomic on 'F', a fragment buffer
  --> the mistake
help: atomics work on global and shared memory)");
}

TEST(TileErrors, CopyOfAddressesToNumbers) {
  Tensor P("P", {8}, pointer);
  expect_error(
      [&] {
        kernel({P}, [&] {
          auto S = alloc_shared({8}, i64, "S");
          mark();
          copy(P, S);
        });
      },
      R"(TW1010 build: a copy of pointer to int64
  --> the mistake
help: addresses and numbers do not convert: use reinterpret on elements)");
}

TEST(TileErrors, FillOfAddresses) {
  Tensor P("P", {8}, pointer);
  expect_error(
      [&] {
        kernel({P}, [&] {
          mark();
          fill(P, 0);
        });
      },
      R"(TW1010 build: a fill of 'P', which holds pointer, with int32
  --> the mistake
help: give a value that converts to the elements)");
}

TEST(TileErrors, BulkCopyFromSharedMemory) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto S = alloc_shared({64, 64}, f32, "S");
          auto barrier = alloc_barrier({1});
          mark();
          tma_copy(S, A, barrier);
        });
      },
      R"(TW1058 build: a copy that signals a barrier goes from global to shared memory, not from shared to global
  --> the mistake
help: use copy(), which works between any two spaces)");
}

TEST(TileErrors, AsyncCopyToAFragment) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto F = alloc_fragment({64, 64}, f32, "F");
          mark();
          async_copy(A, F);
        });
      },
      R"(TW1058 build: async_copy goes from global to shared memory, not from global to fragment
  --> the mistake
help: T.async_copy only supports global->shared/shared.dyn copies: use copy(), which works between any two spaces)");
}

TEST(TileErrors, BulkStoreFromAFragment) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto F = alloc_fragment({64, 64}, f32, "F");
          mark();
          tma_store(F, A);
        });
      },
      R"(TW1058 build: tma_store goes from shared to global memory, not from fragment to global
  --> the mistake
help: use copy(), which works between any two spaces)");
}

TEST(TileErrors, AsyncCopyThatConverts) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto S = alloc_shared({64, 64}, f16, "S");
          mark();
          async_copy(A, S);
        });
      },
      R"(TW1059 build: an asynchronous copy cannot convert float32 to float16
  --> the mistake
help: copy first, then convert in a Parallel loop)");
}

TEST(TileErrors, Im2colOfAMatrix) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          im2col(A, S, 0, 0, {.kernel = 3});
        });
      },
      R"(TW1060 build: im2col from 'A', a global buffer of 2 dimensions
  --> the mistake
help: it reads a whole global tensor of 4 dimensions: (N, H, W, C))");
}

TEST(TileErrors, Im2colToAVector) {
  Tensor X("X", {1, 8, 8, 4}, f32);
  expect_error(
      [&] {
        kernel({X}, [&] {
          auto S = alloc_shared({8}, f32, "S");
          mark();
          im2col(X, S, 0, 0, {.kernel = 3});
        });
      },
      R"(TW1060 build: im2col to 'S', a tile of 1 dimensions
  --> the mistake
help: it writes a tile of 2 dimensions: output positions and channels)");
}

TEST(TileErrors, Im2colWithoutStride) {
  Tensor X("X", {1, 8, 8, 4}, f32);
  expect_error(
      [&] {
        kernel({X}, [&] {
          auto S = alloc_shared({8, 4}, f32, "S");
          mark();
          im2col(X, S, 0, 0, {.kernel = 3, .stride = 0});
        });
      },
      R"(TW1060 build: im2col: kernel 3, stride 0, dilation 1, pad 0
  --> the mistake
help: kernel, stride and dilation are 1 or more, pad is 0 or more)");
}

TEST(TileErrors, GemmOfATensor) {
  Tensor A("A", {32, 16}, f16);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto P = alloc_shared({32, 16}, f16, "P");
          auto Q = alloc_shared({16, 32}, f16, "Q");
          auto C = alloc_fragment({32, 32}, f32, "C");
          mark();
          gemm(A, Q, C);
        });
      },
      R"(TW1061 build: gemm: 'A' is a global buffer; operands are shared or fragment tiles
  --> the mistake
help: copy the tile to shared memory first)");
}

TEST(TileErrors, GemmOfAVector) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto P = alloc_shared({32, 16}, f16, "P");
          auto Q = alloc_shared({16, 32}, f16, "Q");
          auto C = alloc_fragment({32, 32}, f32, "C");
          auto V = alloc_shared({16}, f16, "V");
          mark();
          gemm(V, Q, C);
        });
      },
      R"(TW1062 build: gemm: 'V' has 1 dimensions
  --> the mistake
help: an operand is a matrix: reshape it, to (1, n) or (n, 1))");
}

TEST(TileErrors, GemmOfABatch) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto P = alloc_shared({32, 16}, f16, "P");
          auto Q = alloc_shared({16, 32}, f16, "Q");
          auto C = alloc_fragment({32, 32}, f32, "C");
          auto B = alloc_shared({2, 32, 16}, f16, "B");
          mark();
          gemm(B, Q, C);
        });
      },
      R"(TW1062 build: gemm: 'B' is a tile of (2, 32, 16)
  --> the mistake
help: all extents but the last two are 1: multiply one matrix at a time, in a loop)");
}

TEST(TileErrors, GemmOfADynamicSlice) {
  Value n = Scalar("n", i32);
  expect_error(
      [&] {
        kernel({n}, [&] {
          auto P = alloc_shared({32, 16}, f16, "P");
          auto Q = alloc_shared({16, 32}, f16, "Q");
          auto C = alloc_fragment({32, 32}, f32, "C");
          mark();
          gemm(P(slice(0, n), all), Q, C);
        });
      },
      R"(TW1020 build: gemm: the extents of 'P' are not constants
  --> the mistake
help: give slices of constant extent)");
}

TEST(TileErrors, GemmOfDifferentInnerExtents) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto P = alloc_shared({32, 16}, f16, "P");
          auto Q = alloc_shared({16, 32}, f16, "Q");
          auto C = alloc_fragment({32, 32}, f32, "C");
          auto B = alloc_shared({8, 32}, f16, "B");
          mark();
          gemm(P, B, C);
        });
      },
      R"(TW1063 build: gemm: the inner extents differ: 'P' has K = 16, 'B' has K = 8
  --> the mistake
help: A is (M, K) and B is (K, N))");
}

TEST(TileErrors, GemmThatForgetsToTransposeB) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto P = alloc_shared({32, 16}, f16, "P");
          auto Q = alloc_shared({16, 32}, f16, "Q");
          auto C = alloc_fragment({32, 32}, f32, "C");
          auto B = alloc_shared({32, 16}, f16, "B");
          mark();
          gemm(P, B, C);
        });
      },
      R"(TW1063 build: gemm: the inner extents differ: 'P' has K = 16, 'B' has K = 32
  --> the mistake
help: pass .transpose_B = true if B is stored as (N, K))");
}

TEST(TileErrors, GemmThatForgetsToTransposeA) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto P = alloc_shared({32, 16}, f16, "P");
          auto Q = alloc_shared({16, 64}, f16, "Q");
          auto C = alloc_fragment({32, 64}, f32, "C");
          auto B = alloc_shared({16, 32}, f16, "B");
          mark();
          gemm(B, Q, C);
        });
      },
      R"(TW1063 build: gemm: the inner extents differ: 'B' has K = 32, 'Q' has K = 16
  --> the mistake
help: pass .transpose_A = true if A is stored as (K, M))");
}

TEST(TileErrors, GemmOfDifferentOuterExtents) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto P = alloc_shared({32, 16}, f16, "P");
          auto Q = alloc_shared({16, 32}, f16, "Q");
          auto C = alloc_fragment({32, 32}, f32, "C");
          auto D = alloc_fragment({32, 16}, f32, "D");
          mark();
          gemm(P, Q, D);
        });
      },
      R"(TW1064 build: gemm: the product is 32 x 32, but 'D' is 32 x 16
  --> the mistake
help: C is (M, N))");
}

TEST(TileErrors, GemmOfIntegersIntoFloats) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto P = alloc_shared({32, 16}, i8, "P");
          auto Q = alloc_shared({16, 32}, i8, "Q");
          auto C = alloc_fragment({32, 32}, f32, "C");
          mark();
          gemm(P, Q, C);
        });
      },
      R"(TW1065 build: gemm of int8 and int8 into float32
  --> the mistake
help: integers accumulate in integers, floats in floats)");
}

TEST(TileErrors, GemmIntoBytes) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto P = alloc_shared({32, 16}, e4m3, "P");
          auto Q = alloc_shared({16, 32}, e4m3, "Q");
          auto C = alloc_fragment({32, 32}, e4m3, "C");
          mark();
          gemm(P, Q, C);
        });
      },
      R"(TW1065 build: gemm accumulates in float8_e4m3fn
  --> the mistake
help: use int32, float16, bfloat16, float32 or float64 for C)");
}

TEST(TileErrors, GemmThatClearsByAFloat) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          auto P = alloc_shared({32, 16}, f16, "P");
          auto Q = alloc_shared({16, 32}, f16, "Q");
          auto C = alloc_fragment({32, 32}, f32, "C");
          mark();
          gemm(P, Q, C, {.clear_accum = x});
        });
      },
      R"(TW1006 build: a condition is a bool or an integer, but this is float32
  --> the mistake
help: compare it, for example x != 0)");
}

TEST(TileErrors, ReduceAlongAMissingDimension) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto C = alloc_fragment({32, 16}, f32, "C");
          auto R = alloc_fragment({32}, f32, "R");
          mark();
          reduce_sum(C, R, {.dim = 2});
        });
      },
      R"(TW1066 build: reduce: dim is 2, but 'C' has 2 dimensions
  --> the mistake
help: dimensions count from 0, or from -1 at the end)");
}

TEST(TileErrors, ReduceOfATensor) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto R = alloc_fragment({64}, f32, "R");
          mark();
          reduce_max(A, R);
        });
      },
      R"(TW1067 build: reduce: the operands are tiles on chip, not global tensors
  --> the mistake
help: copy the tile to shared memory or a fragment first)");
}

TEST(TileErrors, BitReductionOfFloats) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto C = alloc_fragment({32, 16}, f32, "C");
          auto R = alloc_fragment({32}, f32, "R");
          mark();
          reduce_bitor(C, R);
        });
      },
      R"(TW1068 build: a bit reduction takes integers, but 'C' is float32 and 'R' is float32
  --> the mistake
help: reinterpret the elements as integers first)");
}

TEST(TileErrors, ReduceToAnotherShape) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto C = alloc_fragment({32, 16}, f32, "C");
          auto R = alloc_fragment({16}, f32, "R");
          mark();
          reduce_sum(C, R);
        });
      },
      R"(TW1069 build: reduce: 'C' is (32, 16); without dimension 1 that is (32) or (32, 1), but 'R' is (16)
  --> the mistake
help: allocate the result without the reduced dimension, or pass another .dim)");
}

TEST(TileErrors, ScanToAnotherShape) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto C = alloc_fragment({32, 16}, f32, "C");
          auto R = alloc_fragment({32}, f32, "R");
          mark();
          cumsum(C, R);
        });
      },
      R"(TW1069 build: a scan: 'C' is (32, 16), but 'R' is (32)
  --> the mistake
help: the result of a scan has the shape of its source)");
}

TEST(TileErrors, ScanAlongAMissingDimension) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto C = alloc_fragment({32, 16}, f32, "C");
          mark();
          cumsum(C, C, {.dim = -3});
        });
      },
      R"(TW1066 build: scan: dim is -3, but 'C' has 2 dimensions
  --> the mistake
help: dimensions count from 0, or from -1 at the end)");
}

TEST(TileErrors, ScanOfATensor) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          cummax(A, A);
        });
      },
      R"(TW1067 build: a scan: the operands are tiles on chip, not global tensors
  --> the mistake
help: copy the tile to shared memory or a fragment first)");
}

TEST(TileErrors, ScanByAnotherOperation) {
  expect_error(
      [&] {
        ir::Builder builder("program");
        builder.open_launch({ir::constant(1)}, {});
        const ir::TileRef tile{builder.alloc(ir::Space::Shared, "S", {ir::constant(8)}, f32), {}, true};
        builder.scan(ir::ReduceOp::Min, tile, tile, 0, false);
      },
      R"(TW1070 build: a scan by min
help: there are cumsum and cummax)");
}

}  // namespace
}  // namespace tilewright::errors
