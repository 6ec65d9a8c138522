"""Branches on ranges of threads: chains of elif are roles too."""
import numpy as np
import tilewright as tw
import tilewright.language as T


def test_chains_of_branches_are_roles():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((3, 64, 64), "float32")):
        with T.Kernel(1, threads=384):
            S = T.alloc_shared((64, 64), "float32")
            full = T.alloc_barrier(128)
            read = T.alloc_barrier(256)
            tx = T.get_thread_binding(0)
            if tx < 128:
                F = T.alloc_fragment((64, 64), "float32")
                T.barrier_wait(full, 0)
                T.copy(S, F)
                T.barrier_arrive(read)
                T.copy(F, B[0, :, :])
            elif tx >= 128 and tx < 256:
                T.barrier_wait(full, 0)
                T.copy(S, B[1, :, :])
                T.barrier_arrive(read)
            elif tx >= 256:
                T.copy(A, S)
                T.barrier_arrive(full)
                T.barrier_wait(read, 0)
                T.fill(S, 7)
                T.copy(S, B[2, :, :])

    a = np.random.default_rng(5).random((64, 64), dtype="float32")
    for target in ("interpreter", "simulator -arch=sm_90a"):
        b = np.empty((3, 64, 64), "float32")
        tw.compile(main, target=target)(a, b)
        assert (b[0] == a).all() and (b[1] == a).all() and (b[2] == 7).all()


def test_a_branch_that_nobody_takes_leaves_nothing():
    @T.prim_func
    def main(B: T.Tensor((2, 32), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding(0)
            if tx >= 32:
                if tx < 32:
                    T.fill(B[0, :], 1)
                else:
                    T.fill(B[1, :], 2)

    b = np.zeros((2, 32), "float32")
    tw.compile(main, engine="interpreter")(b)
    assert (b[0] == 0).all() and (b[1] == 2).all()
