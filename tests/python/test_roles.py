"""Branches on ranges of threads: chains of elif are roles too."""
import numpy as np
import pytest
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


def test_a_group_of_everyone():
    @T.prim_func
    def main(A: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            with T.ws(-1):
                A[tx] = tx

    a = np.zeros(256, "int32")
    tw.compile(main, engine="interpreter")(a)
    assert (a == np.arange(256)).all()


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


def test_roles_of_the_same_threads_come_one_after_the_other():
    """What a branch leaves in shared memory is there for the branches after it: of the same threads, of some of them, of others."""

    @T.prim_func
    def main(A: T.Tensor((3, 64), "float32"), B: T.Tensor((3, 64), "float32"), C: T.Tensor((3, 64), "float32")):
        with T.Kernel(3, threads=128) as b:
            tx = T.get_thread_binding(0)
            s = T.alloc_shared((64,), "float32")
            if tx < 64:
                for i in T.Parallel(64):
                    s[i] = A[b, i] * 2
            if tx < 64:
                for i in T.Parallel(64):
                    B[b, i] = s[63 - i]
            else:
                for i in T.Parallel(64):
                    C[b, i] = s[i]
            if tx >= 32:
                for i in T.Parallel(64):
                    s[i] = A[b, i] + 1
            if tx < 64:
                for i in T.Parallel(64):
                    B[b, i] += s[63 - i]

    a = np.random.default_rng(6).random((3, 64), dtype="float32")
    for target in ("interpreter", "simulator -arch=sm_80", "simulator -arch=sm_90a"):
        b, c = np.zeros((2, 3, 64), "float32")
        tw.compile(main, target=target)(a, b, c)
        assert (c == a * 2).all() and (b == (a * 2)[:, ::-1] + (a + 1)[:, ::-1]).all()


def test_roles_of_the_same_threads_in_a_loop():
    @T.prim_func
    def main(A: T.Tensor((8, 32), "float32"), B: T.Tensor((8, 32), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding(0)
            s = T.alloc_shared((32,), "float32")
            for k in T.serial(8):
                if tx < 32:
                    for i in T.Parallel(32):
                        s[i] = A[k, i]
                if tx < 32:
                    for i in T.Parallel(32):
                        B[k, i] = s[31 - i]

    a = np.random.default_rng(7).random((8, 32), dtype="float32")
    for target in ("interpreter", "simulator -arch=sm_80", "simulator -arch=sm_90a"):
        b = np.zeros((8, 32), "float32")
        tw.compile(main, target=target)(a, b)
        assert (b == a[:, ::-1]).all()


def test_a_barrier_of_the_block_in_every_role_is_one():
    """What one role prepares before it, all roles find."""

    @T.prim_func
    def main(A: T.Tensor((5,), "int32"), B: T.Tensor((3, 32), "int32")):
        with T.Kernel(1, threads=384):
            tx = T.get_thread_binding(0)
            starts = T.alloc_shared((6,), "int32")
            total = T.alloc_shared((1,), "int32")
            if tx < 128:
                if tx == 0:
                    starts[0] = 0
                    for g in T.serial(5):
                        starts[g + 1] = starts[g] + A[g]
                    total[0] = starts[5]
                T.sync_threads()
                T.sync_threads()
                for i in T.Parallel(32):
                    B[0, i] = total[0] + starts[i % 6]
            elif tx < 256:
                T.sync_threads()
                if tx < 160:
                    for i in T.Parallel(32):
                        B[1, i] = total[0] + starts[i % 6]
                T.sync_threads()
            else:
                T.sync_threads()
                for i in T.Parallel(32):
                    B[2, i] = total[0] - starts[i % 6]
                T.sync_threads()

    a = np.arange(3, 8, dtype="int32")
    starts = np.cumsum(np.append(0, a))[np.arange(32) % 6]
    for target in ("interpreter", "simulator -arch=sm_80", "simulator -arch=sm_90a"):
        b = np.zeros((3, 32), "int32")
        tw.compile(main, target=target)(a, b)
        assert (b == a.sum() + np.array([starts, starts, -starts])).all()


def test_a_role_that_waits_first_meets_nobody():
    """A barrier behind a wait stays the role's own: the other role tells it only behind its own barrier."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding(0)
            s = T.alloc_shared((64,), "float32")
            full = T.alloc_barrier(64)
            if tx < 64:
                s[tx] = A[tx]
                T.sync_threads()
                T.barrier_arrive(full)
            else:
                T.barrier_wait(full, 0)
                T.sync_threads()
                B[tx - 64] = s[127 - tx]

    a = np.random.default_rng(8).random(64, dtype="float32")
    for target in ("interpreter", "simulator -arch=sm_90a"):
        b = np.zeros(64, "float32")
        tw.compile(main, target=target)(a, b)
        assert (b == a[::-1]).all()


def test_wgmma_that_is_asked_for_may_spill():
    """128 x 256 by one group of 128 threads are 256 accumulators each."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), B: T.Tensor((256, 64), "float16"), C: T.Tensor((128, 256), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((256, 64), "float16")
            c = T.alloc_fragment((128, 256), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.wgmma_gemm(a, b, c, transpose_B=True, clear_accum=True)
            T.wait_wgmma(0)
            T.copy(c, C)

    rng = np.random.default_rng(9)
    a, b = rng.integers(-3, 4, (128, 64)).astype("float16"), rng.integers(-3, 4, (256, 64)).astype("float16")
    c = np.zeros((128, 256), "float32")
    tw.compile(main, target="simulator -arch=sm_90a")(a, b, c)
    assert (c == a.astype("float32") @ b.T.astype("float32")).all()


TARGETS = ["interpreter", "cpu", "simulator -arch=sm_90a"]


def of_each_range(S, A, B, k):
    T.copy(A[k, :], S[k, :])
    for i in T.Parallel(64):
        B[k, i] = S[k, 63 - i] + k


def by_name(tx, S, A, B):
    group = tx // 128
    if group == 0:
        of_each_range(S, A, B, 0)
    elif group == 1:
        of_each_range(S, A, B, 1)
    else:
        of_each_range(S, A, B, 2)


def from_the_middle(tx, S, A, B):
    warp = T.get_warp_idx()
    if warp >= 4 and warp < 8:
        of_each_range(S, A, B, 1)
    elif warp > 7:
        of_each_range(S, A, B, 2)
    else:
        of_each_range(S, A, B, 0)


def by_arithmetic(tx, S, A, B):
    if tx % 256 >= 128:
        of_each_range(S, A, B, 1)
    if (tx >> 7) == 0:
        of_each_range(S, A, B, 0)
    if not tx // 128 < 2:
        of_each_range(S, A, B, 2)


def in_a_loop(tx, S, A, B):
    for k in T.serial(3):
        if tx // 128 == 0 and k < 1:
            of_each_range(S, A, B, 0)
        if k == 1 and T.get_warp_group_idx() == 1:
            of_each_range(S, A, B, 1)
        if k == 2 and tx >= 256 and A[0, 0] > -100:
            of_each_range(S, A, B, 2)


@pytest.mark.parametrize("branches", [by_name, from_the_middle, by_arithmetic, in_a_loop])
@pytest.mark.parametrize("target", TARGETS)
def test_conditions_that_only_the_thread_decides(branches, target):
    chosen = T.macro(branches)

    @T.prim_func
    def main(A: T.Tensor((3, 64), "float32"), B: T.Tensor((3, 64), "float32")):
        with T.Kernel(1, threads=384):
            S = T.alloc_shared((3, 64), "float32")
            tx = T.get_thread_binding(0)
            chosen(tx, S, A, B)

    a, b = np.random.default_rng(0).standard_normal((3, 64)).astype("float32"), np.zeros((3, 64), "float32")
    tw.compile(main, target=target)(a, b)
    assert np.array_equal(b, a[:, ::-1] + np.arange(3, dtype="float32")[:, None])


def test_one_thread_and_the_rest_of_its_warp():
    """The others are no whole warps: their tile ops have no role."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64,), "float32")
            tx = T.get_thread_binding(0)
            if tx == 0:
                B[0] = 1
            elif tx < 64:
                T.copy(A, S)

    with pytest.raises(tw.CompileError, match="TW3093"):
        tw.compile(main, engine="interpreter")
