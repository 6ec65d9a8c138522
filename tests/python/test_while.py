"""Loops of which run time knows the turns: left from inside, with conditions that do something, and of blocks that wait."""
import random

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
def test_a_while_that_is_left_from_inside(engine):
    """Its condition is always true: of threads, each of which leaves in a turn of its own, and of tiles."""

    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32"), C: T.Tensor((2, 32), "int32")):
        with T.Kernel(2, threads=32) as b:
            tile = T.alloc_shared((32,), "int32")
            left = 3 * b
            T.copy(A, tile)
            while True:
                if left <= 0:
                    break
                left = left - 1
                for i in T.Parallel(32):
                    tile[i] = tile[i] * 2 + 1
            T.copy(tile, C[b, :])
            x, turns, found = A[T.get_thread_binding()], 0, False
            while True:
                if x % 3 == 0:
                    found = True
                    break
                if x <= 1:
                    break
                x = x // 2
                turns += 1
            if b == 0:
                B[T.get_thread_binding()] = turns if found else -turns

    def turns_of(x, turns=0):
        return turns if x % 3 == 0 else -turns if x <= 1 else turns_of(x // 2, turns + 1)

    a, b, c = np.arange(32, dtype="int32"), np.empty(32, "int32"), np.empty((2, 32), "int32")
    tw.compile(main, engine=engine)(a, b, c)
    assert b.tolist() == [turns_of(int(x)) for x in a] and (c[0] == a).all() and (c[1] == a * 8 + 7).all()


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
def test_a_condition_that_does_something_does_it_before_every_turn(engine):
    """An atomic in the condition of a while: blocks that wait for others, places in a table, votes of a warp."""

    @T.prim_func
    def main(A: T.Tensor((4, 32), "int32"), F: T.Tensor((4,), "int32"), S: T.Tensor((4,), "int32"), H: T.Tensor((128,), "int32"),
             N: T.Tensor((4, 32), "int32")):  # fmt: skip
        with T.Kernel(4, threads=32) as b:
            tx = T.get_thread_binding()
            if tx == 0:
                before = 0
                if b > 0:
                    while T.atomic_load(F[b - 1], memory_order="acquire") == 0:
                        T.evaluate(0)
                    before = S[b - 1]
                S[b] = before + A[b, 0]
                T.atomic_store(F[b], 1, memory_order="release")
            place = A[b, tx] % 128
            while T.atomic_add(H[place], 1, return_prev=True) != 0 and place >= 0:
                place = (place + 1) % 128
                if place == 200:
                    continue
            left, turns = A[b, tx], 0
            while T.any_sync(left > 0):
                left = left - 7
                turns += 1
            N[b, tx] = turns

    a = np.random.default_rng(5).integers(0, 99, (4, 32)).astype("int32")
    f, s, h, n = np.zeros(4, "int32"), np.zeros(4, "int32"), np.zeros(128, "int32"), np.zeros((4, 32), "int32")
    tw.compile(main, engine=engine)(a, f, s, h, n)
    assert (f == 1).all() and (s == np.cumsum(a[:, 0])).all() and (h > 0).all()
    assert (n == -(-a.max(1, keepdims=True) // 7)).all()


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
def test_a_name_that_the_condition_of_a_while_binds(engine):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), F: T.Tensor((4,), "int32"), S: T.Tensor((4,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(4, threads=32) as b:
            tx = T.get_thread_binding()
            if tx == 0:
                seen = 0
                if b > 0:
                    while (seen := T.atomic_load(F[b - 1], memory_order="acquire")) == 0:
                        T.evaluate(0)
                S[b] = seen
                T.atomic_store(F[b], b + 7, memory_order="release")
            if b == 0:
                i, v = 0, 0
                while (v := A[(tx + i) % 32]) % 5 != 0 and i < 40:
                    i += 1
                B[tx] = v * 100 + i

    a = np.random.default_rng(1).integers(1, 50, 32).astype("int32")
    a[3] = 25
    f, s, b = np.zeros(4, "int32"), np.zeros(4, "int32"), np.zeros(32, "int32")
    tw.compile(main, engine=engine)(a, f, s, b)
    turns = [next(i for i in range(40) if a[(x + i) % 32] % 5 == 0) for x in range(32)]
    assert s.tolist() == [0, 7, 8, 9] and b.tolist() == [a[(x + i) % 32] * 100 + i for x, i in enumerate(turns)]


@pytest.mark.parametrize("blocks", [4, 9])
@pytest.mark.parametrize("target", ["interpreter", "cpu", "simulator -arch=sm_80", "simulator -arch=sm_90a"])
def test_blocks_that_wait_for_later_ones(target, blocks):
    """A ring by flags: each block takes over what the one before it has, the first what the last has."""

    @T.prim_func
    def main(A: T.Tensor((blocks, 32), "float32"), W: T.Tensor((blocks, blocks, 32), "float32"), F: T.Tensor((blocks, blocks), "int32"),
             N: T.Tensor((blocks,), "int32")):  # fmt: skip
        with T.Kernel(blocks, threads=32) as b:
            tx = T.get_thread_binding()
            W[b, b, tx] = A[b, tx]
            T.sync_threads()
            if tx == 0:
                T.atomic_store(F[b, b], 1, memory_order="release")
            for step in T.serial(1, blocks):
                part = (b + blocks - step) % blocks
                if tx == 0:
                    while True:
                        if T.atomic_load(F[(b + blocks - 1) % blocks, part], memory_order="acquire") != 0:
                            break
                T.sync_threads()
                W[b, part, tx] = W[(b + blocks - 1) % blocks, part, tx]
                T.sync_threads()
                if tx == 0:
                    T.atomic_store(F[b, part], 1, memory_order="release")
            if tx == 0 and b + 1 < blocks:
                while T.atomic_load(F[b + 1, b + 1], memory_order="acquire") == 0:
                    T.evaluate(0)
                N[b] = b + 1

    a, w = np.random.default_rng(7).random((blocks, 32), "float32"), np.zeros((blocks, blocks, 32), "float32")
    f, n = np.zeros((blocks, blocks), "int32"), np.zeros(blocks, "int32")
    tw.compile(main, target=target)(a, w, f, n)
    assert (w == a).all() and (f == 1).all() and n.tolist() == [*range(1, blocks), 0]


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
@pytest.mark.parametrize("poll", ["add", "or", "cas", "shared"])
def test_waiting_by_what_changes_no_memory_of_others(engine, poll):
    """A poll by an atomic that leaves what it finds, and one whose answer all threads read in shared memory."""

    @T.prim_func
    def main(F: T.Tensor((5,), "int32"), S: T.Tensor((5,), "int32")):
        with T.Kernel(5, threads=64) as b:
            tx = T.get_thread_binding()
            seen = T.alloc_shared((1,), "int32")
            if b < 4:
                if poll == "shared":
                    if tx == 0:
                        seen[0] = 0
                    T.sync_threads()
                    while seen[0] == 0:
                        T.sync_threads()
                        if tx == 0:
                            seen[0] = T.atomic_load(F[b + 1], memory_order="acquire")
                        T.sync_threads()
                elif tx == 0:
                    if poll == "add":
                        while T.atomic_add(F[b + 1], 0, memory_order="acquire", return_prev=True) == 0:
                            T.evaluate(0)
                    elif poll == "or":
                        while T.atomic_or(F[b + 1], 0, memory_order="acquire", return_prev=True) == 0:
                            T.evaluate(0)
                    else:
                        while T.atomic_cas(F[b + 1], 1, 1) == 0:
                            T.evaluate(0)
                        T.atomic_load(F[b + 1], memory_order="acquire")
            if tx == 0:
                S[b] = S[b + 1] + 1 if b < 4 else 1
                T.atomic_store(F[b], 1, memory_order="release")

    f, s = np.zeros(5, "int32"), np.zeros(5, "int32")
    tw.compile(main, engine=engine)(f, s)
    assert f.tolist() == [1] * 5 and s.tolist() == [5, 4, 3, 2, 1]
