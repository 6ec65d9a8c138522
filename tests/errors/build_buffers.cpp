// Mistakes in allocations, views, annotations and indices: one a test, with the whole message.
#include "errors/expect_error.h"
#include "ir/builder.h"

namespace tilewright::errors {
namespace {

TEST(BufferErrors, TileOfDynamicShape) {
  Value n = Scalar("n", i32);
  expect_error(
      [&] {
        kernel({n}, [&] {
          mark();
          auto S = alloc_shared({n, 32}, f32, "S");
        });
      },
      R"(TW1020 build: dimension 0 of 'S' is not a constant; tiles on chip have constant shapes
  --> the mistake
help: use a constant tile size, and guard or let copies cut what reaches past the tensor)");
}

TEST(BufferErrors, EmptyTile) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          auto S = alloc_fragment({0, 32}, f32, "S");
        });
      },
      R"(TW1021 build: dimension 0 of 'S' is 0
  --> the mistake
help: an extent on chip is 1 or more)");
}

TEST(BufferErrors, ExtentOfATileThatIsNoInteger) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          auto S = alloc_local({1.5}, f32, "S");
        });
      },
      R"(TW1019 build: dimension 0 of 'S' is float32
  --> the mistake
help: an extent is an integer: divide by ceildiv, or cast it to int32)");
}

TEST(BufferErrors, AddressesInSharedMemory) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          auto S = alloc_shared({8}, pointer, "S");
        });
      },
      R"(TW1028 build: 'S' is a shared buffer of addresses
  --> the mistake
help: addresses are held by local buffers and global tensors)");
}

TEST(BufferErrors, BarrierWithoutACount) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          auto barrier = alloc_barrier({});
        });
      },
      R"(TW1029 build: alloc_barrier without an arrive count
  --> the mistake
help: give one count for each barrier: alloc_barrier({128, 128}))");
}

TEST(BufferErrors, BarrierThatNobodyArrivesAt) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          auto barrier = alloc_barrier({128, 0});
        });
      },
      R"(TW1029 build: alloc_barrier: the arrive count is 0; it is between 1 and 2^20 - 1
  --> the mistake
help: give the number of threads that arrive before the barrier opens)");
}

TEST(BufferErrors, FinalizedBufferThatIsNoReducer) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto F = alloc_fragment({8}, f32, "F");
          mark();
          finalize_reducer(F);
        });
      },
      R"(TW1030 build: finalize_reducer: 'F' is no reducer
  --> the mistake
help: reducers are allocated by alloc_reducer)");
}

TEST(BufferErrors, ReducerOfAnotherOperation) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto R = alloc_reducer({8}, f32, ReducerOp::Max, "R");
          mark();
          for (auto i : Parallel(8)) R(i) += 1;
        });
      },
      R"(TW1030 build: atomic add on 'R', a max reducer
  --> the mistake
help: the operation of the update is that of the reducer)");
}

TEST(BufferErrors, OldValueOfAReducer) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto R = alloc_reducer({8}, f32, ReducerOp::Sum, "R");
          mark();
          Value old = atomic_add(R(0), 1, {.return_prev = true});
        });
      },
      R"(TW1030 build: the old value of an element of 'R', which is a reducer
  --> the mistake
help: a reducer is read after finalize_reducer)");
}

TEST(BufferErrors, ReducerByBits) {
  expect_error(
      [&] {
        ir::Builder builder("program");
        builder.open_launch({ir::constant(1)}, {});
        builder.alloc_reducer("R", {ir::constant(8)}, i32, ir::ReduceOp::BitXor);
      },
      R"(TW1030 build: a reducer combines by sum, max or min, not by bitxor
help: store to a fragment and reduce it)");
}

TEST(BufferErrors, TensorAtANumber) {
  Value n = Scalar("n", i32);
  expect_error(
      [&] {
        kernel({n}, [&] {
          mark();
          auto tensor = make_tensor(n, {8}, f32);
        });
      },
      R"(TW1031 build: make_tensor: an address is a pointer or a 64-bit integer, but this is int32
  --> the mistake
help: read it from a tensor of dtype pointer or int64)");
}

TEST(BufferErrors, ViewOfABarrier) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto barrier = alloc_barrier({1});
          mark();
          auto S = view(barrier, {64}, u8);
        });
      },
      R"(TW1032 build: view of 'barrier', which is a barrier
  --> the mistake
help: index it instead: each of its elements is a barrier)");
}

TEST(BufferErrors, ViewOfAReducer) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto R = alloc_reducer({8}, f32, ReducerOp::Sum, "R");
          mark();
          auto S = reshape(R, {2, 4});
        });
      },
      R"(TW1032 build: view of 'R', which is a reducer
  --> the mistake
help: finalize it and copy it to a fragment first)");
}

TEST(BufferErrors, ViewOfAStridedTensor) {
  StridedTensor A("A", {8, 8}, {16, 1}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          auto S = reshape(A, {64});
        });
      },
      R"(TW1032 build: view of 'A', whose elements are not next to each other
  --> the mistake
help: copy it to a compact buffer first)");
}

TEST(BufferErrors, ViewOfAnotherSize) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          auto V = view(S, {8, 8}, f16);
        });
      },
      R"(TW1033 build: view of 'S': it has 2048 bits, but the view has 1024
  --> the mistake
help: the product of the extents times the bits of the dtype stays the same)");
}

TEST(BufferErrors, ViewOfDynamicShapeOnChip) {
  Value n = Scalar("n", i32);
  expect_error(
      [&] {
        kernel({n}, [&] {
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          auto S_view = reshape(S, {n});
        });
      },
      R"(TW1020 build: dimension 0 of 'S_view' is not a constant; tiles on chip have constant shapes
  --> the mistake
help: use a constant tile size, and guard or let copies cut what reaches past the tensor)");
}

TEST(BufferErrors, LayoutOfATensor) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          annotate_layout(A, Layout::linear());
        });
      },
      R"(TW1034 build: annotate_layout: 'A' is a global buffer
  --> the mistake
help: shared and fragment buffers have layouts)");
}

TEST(BufferErrors, LayoutThatGivesFloats) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          annotate_layout(S, Layout([](auto& i) { return std::vector<Operand>{i[0] * 0.5}; }));
        });
      },
      R"(TW1079 build: the layout of 'S' gives a float32
  --> the mistake
help: positions are integers: use floordiv instead of /)");
}

TEST(BufferErrors, LayoutOfAFragmentWithoutThreads) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto F = alloc_fragment({8, 8}, f32, "F");
          mark();
          annotate_layout(F, Layout([](auto& i) { return std::vector<Operand>{i[0] + i[1]}; }));
        });
      },
      R"(TW1079 build: the layout of 'F' gives 1 values
  --> the mistake
help: the layout of a fragment gives {thread, register index})");
}

TEST(BufferErrors, SafeValueOfATile) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          annotate_safe_value(S, 1.0);
        });
      },
      R"(TW1034 build: annotate_safe_value: 'S' is a shared buffer
  --> the mistake
help: it is for global tensors: reads outside of them give that value)");
}

TEST(BufferErrors, SafeValueOfAddresses) {
  Tensor P("P", {8}, pointer);
  expect_error(
      [&] {
        kernel({P}, [&] {
          mark();
          annotate_safe_value(P, 0);
        });
      },
      R"(TW1010 build: annotate_safe_value of 'P', which holds pointer, with int32
  --> the mistake
help: give a value that converts to the elements)");
}

TEST(BufferErrors, IndexThatIsNoInteger) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          Value x = A(0.5, 1);
        });
      },
      R"(TW1035 build: index 0 of 'A' is float32; indices are integers
  --> the mistake
help: cast it to int32)");
}

TEST(BufferErrors, SliceThatIsNoInteger) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto S = alloc_shared({8, 64}, f32, "S");
          mark();
          copy(A(slice(0, 8.0), all), S);
        });
      },
      R"(TW1035 build: slice 0 of 'A' is from int32 to float32
  --> the mistake
help: cast its bounds to int32)");
}

TEST(BufferErrors, IndexOutsideOfATile) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark_declaration();
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          S(0, 8) = 1;
        });
      },
      R"(TW1036 build: index 1 of 'S' is 8
  --> the mistake
note: 'S' is declared here
  --> the declaration
help: the extent of that dimension is 8)");
}

TEST(BufferErrors, IndexBeforeATile) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark_declaration();
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          S(-9, 0) = 1;
        });
      },
      R"(TW1036 build: index 0 of 'S' is -9
  --> the mistake
note: 'S' is declared here
  --> the declaration
help: the extent of that dimension is 8)");
}

TEST(BufferErrors, LoopOutsideOfATile) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark_declaration();
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          for (auto i : serial(8)) S(0, i + 8) = 1;
        });
      },
      R"(TW1036 build: index 1 of 'S' is between 8 and 15
  --> the mistake
note: 'S' is declared here
  --> the declaration
help: the extent of that dimension is 8)");
}

TEST(BufferErrors, SliceOutsideOfATile) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark_declaration();
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          fill(S(slice(4, 9), all), 1);
        });
      },
      R"(TW1036 build: dimension 0 of the tile of 'S' is from 4 to 9
  --> the mistake
note: 'S' is declared here
  --> the declaration
help: the extent of that dimension is 8)");
}

TEST(BufferErrors, TileThatReachesOutside) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark_declaration();
          auto S = alloc_shared({32, 32}, f32, "S");
          auto F = alloc_fragment({32, 32}, f32, "F");
          mark();
          copy(F, S(8, 0));
        });
      },
      R"(TW1036 build: dimension 0 of the tile of 'S' is from 8 to 40
  --> the mistake
note: 'S' is declared here
  --> the declaration
help: the extent of that dimension is 32)");
}

TEST(BufferErrors, IndexOfAWholeBuffer) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto v = alloc_var(f32, 0);
          mark();
          copy(A, v);
        });
      },
      R"(TW1037 build: a read of 'A', which is a whole buffer
  --> the mistake
help: give an index for each of its 2 dimensions)");
}

TEST(BufferErrors, SliceInAStore) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          A(slice(0, 8), 1) = 1;
        });
      },
      R"(TW1037 build: a store of 'A', in which dimension 0 is a slice
  --> the mistake
help: give an index in every dimension; copy() moves boxes)");
}

TEST(BufferErrors, NumberOfIndices) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark_declaration();
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          S(1) = 1;
        });
      },
      R"(TW1038 build: 'S' has 2 dimensions, but 1 indices are given
  --> the mistake
note: 'S' is declared here
  --> the declaration
help: give an index in every dimension; slices and all are indices too)");
}

TEST(BufferErrors, NumberOfIndicesOfATile) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark_declaration();
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          clear(S(0, 0, slice(0, 4)));
        });
      },
      R"(TW1038 build: 'S' has 2 dimensions, but 3 indices are given
  --> the mistake
note: 'S' is declared here
  --> the declaration
help: give an index in every dimension; slices and all are indices too)");
}

TEST(BufferErrors, ReadOfABarrier) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto barrier = alloc_barrier({1});
          mark();
          Value x = barrier(0);
        });
      },
      R"(TW1039 build: a read of 'barrier', which is a barrier
  --> the mistake
help: barriers are used by barrier_arrive and barrier_wait)");
}

TEST(BufferErrors, StoreToABarrier) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto barrier = alloc_barrier({1});
          mark();
          barrier(0) = 1;
        });
      },
      R"(TW1039 build: a store to 'barrier', which is a barrier
  --> the mistake
help: barriers are used by barrier_arrive and barrier_wait)");
}

TEST(BufferErrors, CopyOfABarrier) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          auto barrier = alloc_barrier({1});
          mark();
          copy(barrier, A(0, slice(0, 1)));
        });
      },
      R"(TW1039 build: a copy of 'barrier', which is a barrier
  --> the mistake
help: barriers are used by barrier_arrive and barrier_wait)");
}

TEST(BufferErrors, FillOfABarrier) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto barrier = alloc_barrier({1});
          mark();
          clear(barrier);
        });
      },
      R"(TW1039 build: a fill of 'barrier', which is a barrier
  --> the mistake
help: barriers are used by barrier_arrive and barrier_wait)");
}

TEST(BufferErrors, AddressOnChip) {
  expect_error(
      [&] {
        kernel({}, [&] {
          auto S = alloc_shared({8, 8}, f32, "S");
          mark();
          Value at = address_of(S(0, 0));
        });
      },
      R"(TW1040 build: the address of an element of 'S', a shared buffer
  --> the mistake
help: only elements of global tensors have addresses)");
}

TEST(BufferErrors, ShapeOfAMissingDimension) {
  Tensor A("A", {64, 64}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          Value n = A.shape(2);
        });
      },
      R"(TW1066 build: shape(2) of a buffer of 2 dimensions
  --> the mistake
help: dimensions count from 0)");
}

}  // namespace
}  // namespace tilewright::errors
