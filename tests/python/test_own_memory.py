"""Tile operations on what a thread has to itself are done by every thread for itself, on every engine."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

TARGETS = ["interpreter", "cpu", "simulator -arch=sm_80", "simulator -arch=sm_90a"]


@pytest.mark.parametrize("target", TARGETS)
def test_every_thread_fills_and_copies_its_own(target):
    @T.prim_func
    def main(A: T.Tensor((96, 2, 4), "float16"), B: T.Tensor((96, 2, 4), "float32"), C: T.Tensor((96, 8), "float32")):
        with T.Kernel(1, threads=96):
            tx = T.get_thread_binding(0)
            own, sums = T.alloc_local((2, 4), "float16"), T.alloc_local((8,), "float32")
            T.clear(sums)
            T.copy(A[tx, :, :], own)
            for i in T.serial(8):
                sums[i] += T.float32(own[i // 4, i % 4]) + i
            T.copy(own, B[tx, :, :])
            T.copy(sums, C[tx, :])

    a = np.random.default_rng(8).random((96, 2, 4)).astype("float16")
    b, c = np.zeros((96, 2, 4), "float32"), np.zeros((96, 8), "float32")
    tw.compile(main, target=target)(a, b, c)
    assert (b == a).all()
    assert (c == a.reshape(96, 8).astype("float32") + np.arange(8)).all()


@pytest.mark.parametrize("target", TARGETS)
def test_between_the_block_and_a_thread(target):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64, 64), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding(0)
            S = T.alloc_shared((64,), "int32")
            own = T.alloc_local((64,), "int32")
            T.copy(A, S)
            T.copy(S, own)
            own[tx] = 0
            T.copy(own, B[tx, :])

    a = np.arange(1, 65, dtype="int32")
    b = np.zeros((64, 64), "int32")
    tw.compile(main, target=target)(a, b)
    assert (b == a * (1 - np.eye(64, dtype="int32"))).all()
