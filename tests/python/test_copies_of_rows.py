"""T.tma_copy of rows of a tile one by one: they lie one after the other, unswizzled. Against NumPy, on every engine."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

TARGETS = ["interpreter", "cpu", "simulator -arch=sm_90a"]
SHAPES = [(8, 256, "float32"), (8, 64, "float16"), (8, 128, "float16"), (5, 32, "float32"), (4, 512, "float16"), (8, 512, "int8"), (3, 384, "float16")]
on_every_target = pytest.mark.parametrize("target", TARGETS)


def numbers(*shape, dtype="float16"):
    return np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)


@pytest.mark.parametrize("rows, columns, dtype", SHAPES)
@pytest.mark.parametrize("alone", [False, True])
@on_every_target
def test_rows_of_a_tensor_in_another_order(rows, columns, dtype, alone, target):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), I: T.Tensor((rows,), "int32"), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((rows, columns), dtype)
            bar = T.alloc_barrier(1)
            if alone:
                if T.get_thread_binding() == 31:
                    for r in T.serial(rows):
                        T.tma_copy(A[I[r], :], S[r, :], barrier=bar)
                    T.barrier_arrive(bar)
            else:
                for r in T.serial(rows):
                    T.tma_copy(A[I[r], :], S[r, :], barrier=bar)
                if T.get_thread_binding() == 0:
                    T.barrier_arrive(bar)
            T.barrier_wait(bar, 0)
            for i, j in T.Parallel(rows, columns):
                B[i, j] = S[rows - 1 - i, j]

    a, order = numbers(rows, columns, dtype=dtype), np.random.default_rng(1).permutation(rows).astype("int32")
    b = np.zeros_like(a)
    tw.compile(main, target=target)(a, order, b)
    assert (b == a[order][::-1]).all()


@on_every_target
def test_a_row_that_a_panel_begins_with(target):
    @T.prim_func
    def main(A: T.Tensor((4, 512), "float16"), B: T.Tensor((4, 512), "float16")):
        with T.Kernel(4, threads=128) as b:
            S = T.alloc_shared((8, 512), "float16")
            bar = T.alloc_barrier(1)
            T.tma_copy(A[b, :], S[0, :], barrier=bar)
            if T.get_thread_binding() == 0:
                T.barrier_arrive(bar)
            T.barrier_wait(bar, 0)
            T.copy(S[0, :], B[b, :])

    a = numbers(4, 512)
    b = np.zeros_like(a)
    tw.compile(main, target=target)(a, b)
    assert (b == a).all()


@on_every_target
def test_gathered_rows_are_multiplied(target):
    @T.prim_func
    def main(A: T.Tensor((100, 64), "float16"), I: T.Tensor((64,), "int32"), W: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float16")
            WS = T.alloc_shared((64, 64), "float16")
            F = T.alloc_fragment((64, 64), "float32")
            bar = T.alloc_barrier(1)
            if T.shuffle_elect(128):
                for r in T.serial(64):
                    T.tma_copy(A[I[r], :], S[r, :], barrier=bar)
                T.barrier_arrive(bar)
            T.copy(W, WS)
            T.clear(F)
            T.barrier_wait(bar, 0)
            T.gemm(S, WS, F)
            T.copy(F, C)

    a, w = numbers(100, 64), numbers(64, 64)
    order = np.random.default_rng(1).integers(0, 100, 64).astype("int32")
    c = np.zeros((64, 64), "float32")
    tw.compile(main, target=target)(a, order, w, c)
    assert (c == a[order].astype("float32") @ w.astype("float32")).all()


@on_every_target
def test_rows_are_stored_one_by_one(target):
    @T.prim_func
    def main(A: T.Tensor((6, 64), "float32"), I: T.Tensor((6,), "int32"), B: T.Tensor((6, 64), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((6, 64), "float32")
            T.copy(A, S)
            if T.get_thread_binding() == 0:
                for r in T.serial(6):
                    T.tma_copy(S[r, :], B[I[r], :])
                T.tma_store_wait()

    a, order = numbers(6, 64, dtype="float32"), np.random.default_rng(1).permutation(6).astype("int32")
    b, want = np.zeros_like(a), np.zeros_like(a)
    tw.compile(main, target=target)(a, order, b)
    want[order] = a
    assert (b == want).all()
