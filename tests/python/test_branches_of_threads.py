"""Branches that only some threads take, in which they read what others of them wrote: against NumPy, on every engine."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

TARGETS = ["interpreter", "cpu", "simulator -arch=sm_80", "simulator -arch=sm_90a"]
N = 64


@T.macro
def turned_around(tx, A, O, S):
    if tx < 48:
        x = A[tx]
        S[tx] = x
        y = S[47 - tx]
        S[tx] = y + x
        O[tx] = S[(tx + 1) % 48] * 2 + x


def of_turned_around(a, o, s, t):
    x = a[:48]
    sums = x[::-1] + x
    o[:48] = np.roll(sums, -1) * 2 + x


@T.macro
def in_loops(tx, A, O, S):
    if A[tx] % 3 != 0:
        S[tx] = 1
        for k in T.serial(3):
            z = S[(tx + 1) % N]
            S[tx] = z + k + A[tx]
        O[tx] = S[N - 1 - tx]
    else:
        S[tx] = 100
        O[tx] = S[(tx + 7) % N]


def of_in_loops(a, o, s, t):
    some = a % 3 != 0
    s[some] = 1
    for k in range(3):
        s[some] = (np.roll(s, -1) + k + a)[some]
    o[some] = s[::-1][some]
    s[~some] = 100
    o[~some] = np.roll(s, -7)[~some]


@T.macro
def nested(tx, A, O, S):
    if tx % 2 == 0:
        S[tx] = A[tx]
        if S[(tx + 2) % N] > 50:
            S[tx] = S[tx] + 1000
            w = S[(tx + 4) % N]
            O[tx] = w
        else:
            O[tx] = S[(tx + 6) % N]
    elif tx % 4 == 1:
        S[tx] = tx
        O[tx] = S[tx - 1]


def of_nested(a, o, s, t):
    even, odd = t % 2 == 0, t % 4 == 1
    s[even] = a[even]
    large = even & (np.roll(s, -2) > 50)
    s[large] += 1000
    o[large] = np.roll(s, -4)[large]
    o[even & ~large] = np.roll(s, -6)[even & ~large]
    s[odd] = t[odd]
    o[odd] = np.roll(s, 1)[odd]


@T.macro
def counted(tx, A, O, S):
    if tx >= 5:
        b = A[tx] % 8
        old = T.atomic_add(S[b], 1, return_prev=True)
        T.atomic_max(S[32 + b], old)
        O[tx] = S[b] * 100 + S[32 + b]


def of_counted(a, o, s, t):
    count = np.bincount(a[5:] % 8, minlength=8)[a % 8]
    o[5:] = (count * 100 + count - 1)[5:]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("branch, model", [(turned_around, of_turned_around), (in_loops, of_in_loops), (nested, of_nested), (counted, of_counted)])
def test_threads_meet_in_branches(target, branch, model):
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), O: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            S = T.alloc_shared((N,), "int32")
            tx = T.get_thread_binding()
            O[tx] = -1
            T.clear(S)
            branch(tx, A, O, S)

    a = np.random.default_rng(5).integers(0, 100, N).astype("int32")
    found, want = np.zeros(N, "int32"), np.full(N, -1, "int32")
    model(a, want, np.zeros(N, "int32"), np.arange(N))
    tw.compile(main, target=target)(a, found)
    assert (found == want).all()


def test_what_one_thread_does_is_not_parted():
    @T.prim_func
    def main(A: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            S = T.alloc_shared((4,), "int32")
            tx = T.get_thread_binding()
            if tx == 3:
                S[0] = A[0]
                S[1] = S[0] + 1
                A[1] = S[1]

    text = tw.compile(main, target="cuda -arch=sm_90a").get_kernel_source()
    assert text.count("if (") == 1 and "sync" not in text.split("main_kernel")[-1]
