"""Names of names, each used more than once: where their values stood in their places, every line would double the text."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T


@T.macro
def hashed(x, lines):
    for _ in [0] * lines:
        x = (x * 3 + 1) ^ (x >> 2)
    return x


@T.macro
def folded(v, lines):
    for q in list(range(1, lines + 1)):
        v = T.if_then_else(v > float(q), v - float(q), v)
    return v


@T.macro
def divided(v, lines):
    for _ in [0] * lines:
        v = v / (v * v + 1.0) + v
    return v


def program(kind, lines):
    """A program of A: int32[256] and F: float32[64, 64] that stores to O: int32[256] and P: float32[64, 64]."""

    @T.prim_func
    def main(A: T.Tensor[[256], T.int32], F: T.Tensor[[64, 64], T.float32], O: T.Tensor[[256], T.int32], P: T.Tensor[[64, 64], T.float32]):
        with T.Kernel(1, threads=128):
            c = T.alloc_fragment((64, 64), "float32")
            r = T.alloc_fragment((64,), "float32")
            s = T.alloc_shared((256,), "int32")
            T.copy(F, c)
            if kind == "values":
                for i in T.Parallel(256):
                    O[i] = hashed(A[i], lines)
            elif kind == "loads":
                for i in T.Parallel(256):
                    O[i] = A[hashed(i, lines) & 255]
            elif kind == "stores":
                for i in T.Parallel(256):
                    s[i] = i
                for i in T.Parallel(256):  # points that meet take turns
                    x = hashed(i, lines)
                    s[x & 255] = s[x & 255] * 2 + A[i]
                T.copy(s, O)
            elif kind == "conditions":
                for i in T.Parallel(256):
                    if hashed(i, lines) % 3 == 0:
                        O[i] = A[i]
            elif kind == "sums":
                T.clear(s)
                for i in T.Parallel(256):
                    T.atomic_add(s[0], hashed(A[i], lines))
                T.copy(s, O)
            elif kind == "places":
                x = hashed(A[0], lines) & 3
                T.copy(A[x * 64 : x * 64 + 64], O[0:64])
            elif kind == "masks":
                a = T.alloc_shared((64, 64), "float16")
                T.copy(F, a)
                for i, j in T.Parallel(64, 64):
                    c[i, j] = T.if_then_else(hashed(i + j, lines) % 2 == 0, 0.0, -1000.0)
                T.gemm(a, a, c)
                T.copy(c, P)
            else:
                for i, j in T.Parallel(64, 64):
                    c[i, j] = (divided if kind == "quotients" else folded)(c[i, j], lines)
                T.reduce_sum(c, r, dim=1)
                for i, j in T.Parallel(64, 64):
                    P[i, j] = c[i, j] * c[i, j] + r[i]

    return main


KINDS = ["values", "loads", "stores", "conditions", "sums", "places", "masks", "quotients", "reduced"]


@pytest.mark.parametrize("kind", KINDS)
def test_texts_grow_with_the_lines(kind):
    counts = (5, 10) if kind == "quotients" else (20, 40)  # of which each has branches of its own
    for arch in ("sm_80", "sm_90a"):
        few, many = (len(tw.compile(program(kind, lines), target=f"cuda -arch={arch}").get_kernel_source()) for lines in counts)
        assert many < 3 * few


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_the_interpreter(kind):
    results = []
    for engine in ("interpreter", "simulator"):
        rng = np.random.default_rng(1)
        a, f = rng.integers(0, 1000, 256).astype("int32"), (30 * rng.random((64, 64))).astype("float32")
        o, p = np.zeros(256, "int32"), np.zeros((64, 64), "float32")
        tw.compile(program(kind, 40), engine=engine)(a, f, o, p)
        results.append((o, p))
    (o, p), (of_gpu, p_of_gpu) = results
    assert (o == of_gpu).all()
    np.testing.assert_allclose(p_of_gpu, p, rtol=1e-5)
