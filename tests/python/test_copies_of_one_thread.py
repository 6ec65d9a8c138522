"""Copies by TMA that one thread asks for, under conditions that let no other by: against NumPy, on every engine."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

TARGETS = ["interpreter", "cpu", "simulator -arch=sm_90a"]
on_every_target = pytest.mark.parametrize("target", TARGETS)

# What lets one of 128 threads by.
CONDITIONS = {
    "elected": lambda: T.shuffle_elect(128),
    "of_block": lambda: T.shuffle_elect(0),
    "first": lambda: T.get_thread_binding() == 0,
    "not_first": lambda: T.get_thread_binding() == 77,
    "below": lambda: T.get_thread_binding() < 1,
    "lane_and_warp": lambda: T.And(T.get_lane_idx() == 0, T.get_warp_idx() == 3),
}


@pytest.mark.parametrize("condition", CONDITIONS)
@on_every_target
def test_a_load_and_a_store(condition, target):
    chosen = CONDITIONS[condition]

    @T.prim_func
    def main(A: T.Tensor((2, 64, 64), "float16"), B: T.Tensor((2, 64, 64), "float16")):
        with T.Kernel(2, threads=128) as b:
            S = T.alloc_shared((64, 64), "float16")
            D = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(1)
            if chosen():
                T.tma_copy(A[b, :, :], S, barrier=bar)
                T.barrier_arrive(bar)
            T.barrier_wait(bar, 0)
            for i, j in T.Parallel(64, 64):
                D[i, j] = S[j, i] + 1
            if chosen():
                T.tma_copy(D, B[b, :, :])
                T.tma_store_wait()

    a = np.random.default_rng(0).standard_normal((2, 64, 64)).astype("float16")
    b = np.zeros_like(a)
    tw.compile(main, target=target)(a, b)
    assert (b == a.transpose(0, 2, 1) + np.float16(1)).all()


@on_every_target
def test_all_wait_for_stores_of_a_thread(target):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            for k in range(4):
                for i in T.Parallel(64):
                    S[i] = A[k, i] * 2
                if T.get_thread_binding() == 40:
                    T.tma_copy(S, B[k, :])
                T.tma_store_wait(0)

    a = np.random.default_rng(1).standard_normal((4, 64)).astype("float32")
    b = np.zeros_like(a)
    tw.compile(main, target=target)(a, b)
    assert (b == a * 2).all()


# Tiles through two slots, brought by one thread of a warpgroup.
@T.macro
def bring(A, S, full, empty):
    for k in range(5):
        T.barrier_wait(empty[k % 2], ((k // 2) & 1) ^ 1)
        T.tma_copy(A[k, :, :], S[k % 2, :, :], barrier=full[k % 2])
        T.barrier_arrive(full[k % 2])


@T.macro
def use(B, S, full, empty):
    for k in range(5):
        T.barrier_wait(full[k % 2], (k // 2) & 1)
        for i, j in T.Parallel(32, 64):
            B[k, i, j] = S[k % 2, i, j] * 3
        T.barrier_arrive(empty[k % 2])


@pytest.mark.parametrize("way", ["roles", "elif", "branches", "elected_warp", "else"])
@on_every_target
def test_a_ring_that_one_thread_fills(way, target):
    @T.prim_func
    def main(A: T.Tensor((5, 32, 64), "float16"), B: T.Tensor((5, 32, 64), "float16")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((2, 32, 64), "float16")
            full = T.alloc_barrier([1, 1])
            empty = T.alloc_barrier([128, 128])
            tx = T.get_thread_binding()
            group = tx // 128
            warp = T.get_warp_idx_sync()
            if way == "roles":
                with T.ws(1):
                    if T.shuffle_elect(128):
                        bring(A, S, full, empty)
                with T.ws(0):
                    use(B, S, full, empty)
            elif way == "elif":
                if tx == 128:
                    bring(A, S, full, empty)
                elif group == 0:
                    use(B, S, full, empty)
            elif way == "branches":
                if tx == 200:
                    bring(A, S, full, empty)
                if tx < 128:
                    use(B, S, full, empty)
            elif way == "elected_warp":
                if warp == 5:
                    if T.shuffle_elect(32):
                        bring(A, S, full, empty)
                elif warp < 4:
                    use(B, S, full, empty)
            else:
                if group == 0:
                    use(B, S, full, empty)
                else:
                    if tx % 128 == 96:
                        bring(A, S, full, empty)

    a = np.random.default_rng(2).standard_normal((5, 32, 64)).astype("float16")
    b = np.zeros_like(a)
    tw.compile(main, target=target)(a, b)
    assert (b == a * np.float16(3)).all()


def test_a_thread_that_asks_is_not_elected_again():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(1)
            if T.get_thread_binding() == 5:
                T.tma_copy(A, S, barrier=bar)
                T.barrier_arrive(bar)
            T.barrier_wait(bar, 0)
            if T.get_thread_binding() == 5:
                T.tma_copy(S, B)
                T.tma_store_wait()

    text = tw.compile(main, engine="cpu").get_kernel_source(arch="sm_90a")
    chosen = text[text.index("== 5"):]
    assert "elect" not in chosen


@pytest.mark.parametrize("many", [lambda: T.get_thread_binding() % 2 == 0, lambda: T.get_thread_binding() < 2, lambda: T.shuffle_elect(64)])
def test_several_threads_may_not(many):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(1)
            if many():
                T.tma_copy(A, S, barrier=bar)
            T.barrier_wait(bar, 0)
            T.copy(S, B)

    with pytest.raises(tw.CompileError, match=r"TW3093[\s\S]*help: move it out of the branch, or let one thread by, as in if tx == 0"):
        tw.compile(main, engine="interpreter")
