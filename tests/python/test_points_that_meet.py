"""Points of a Parallel that change one element by what is there, against NumPy."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from on_engines import every_engine, run

M, N = 24, 40


def summed(space, accumulate):
    alloc = {"fragment": T.alloc_fragment, "shared": T.alloc_shared}

    @T.prim_func
    def main(X: T.Tensor((M, 2 * N), "float32"), R: T.Tensor((M,), "float32")):
        with T.Kernel(1, threads=64):
            x = alloc[space[0]]((M, N), "float32")
            r = alloc[space[1]]((M,), "float32")
            T.fill(r, 0)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(X[0, k * N], x)
                for i, j in T.Parallel(M, N):
                    if k * N + j < 2 * N - 3:
                        r[i] = accumulate(r[i], x[i, j])
            T.copy(r, R)

    return main


@every_engine
@pytest.mark.parametrize("to", ["fragment", "shared"])
@pytest.mark.parametrize("source", ["fragment", "shared"])
def test_rows_are_summed(source, to, engine):
    x = np.random.default_rng(1).integers(-8, 9, (M, 2 * N)).astype("float32")
    r = np.empty(M, "float32")
    run(summed((source, to), lambda r, x: r + x), engine, x, r)
    assert (r == x[:, :-3].sum(1)).all()
    run(summed((source, to), T.max), engine, x, r)
    assert (r == np.maximum(x[:, :-3].max(1), 0)).all()


@every_engine
def test_products_and_what_is_stored_beside_a_sum(engine):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), P: T.Tensor((M, M), "float32"), E: T.Tensor((M, N), "float32"), S: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((M, N), "float32")
            p = T.alloc_fragment((M, M), "float32")
            s = T.alloc_fragment((1,), "float32")
            T.copy(A, a)
            T.clear(p)
            T.clear(s)
            for i, j, k in T.Parallel(M, M, N):
                p[i, j] += a[i, k] * a[j, k]
            for i, j in T.Parallel(M, N):
                E[i, j] = a[i, j] + 1
                s[0] += a[i, j]
            T.copy(p, P)
            T.copy(s, S)

    a = np.random.default_rng(2).integers(-4, 5, (M, N)).astype("float32")
    p, e, s = np.empty((M, M), "float32"), np.empty((M, N), "float32"), np.empty(1, "float32")
    run(main, engine, a, p, e, s)
    assert (p == a @ a.T).all() and (e == a + 1).all() and s[0] == a.sum()
