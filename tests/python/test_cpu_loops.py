"""Loops of the CPU engine that are written otherwise than the program has them: maxima in chains, blocks that lie whole in their
tensors, tiles that only products read. The interpreter and NumPy say what comes out."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

torch = pytest.importorskip("torch")


def _extremes(columns, width):
    @T.prim_func
    def main(A: T.Tensor((columns, width), "float32"), Most: T.Tensor((2, width), "float32"), Least: T.Tensor((2, width), "float32")):
        with T.Kernel(1, threads=32):
            a, row = T.alloc_shared((columns, width), "float32"), T.alloc_fragment((width,), "float32")
            T.copy(A, a)
            T.reduce_max(a, row, dim=0)
            T.copy(row, Most[0, 0:width])
            T.copy(Most[1, 0:width], row)
            T.reduce_max(a, row, dim=0, clear=False)
            T.copy(row, Most[1, 0:width])
            T.reduce_min(a, row, dim=0)
            T.copy(row, Least[0, 0:width])
            T.copy(Least[1, 0:width], row)
            T.reduce_min(a, row, dim=0, clear=False)
            T.copy(row, Least[1, 0:width])

    return main


@pytest.mark.parametrize("columns, width", ((1, 16), (7, 32), (12, 32), (64, 16), (64, 64)))
def test_maxima_in_chains_are_those_of_one(columns, width):
    """NaN counts for nothing, -0 is less than +0, and of numbers that signal nothing stays."""
    random = np.random.default_rng(columns * width)
    special = np.array([0x7F800001, 0xFFC00000, 0x7FC12345, 0x80000000, 0, 0xFF800000, 0x80000001, 1], "uint32").view("float32")
    a = random.standard_normal((columns, width)).astype("float32")
    chosen = random.random((columns, width)) < 0.7
    a[chosen] = random.choice(special, chosen.sum())
    a[:, 0], a[:, 1], a[:, 2] = np.nan, -0.0, np.float32(-np.inf)
    made = []
    for engine in ("interpreter", "cpu"):
        most, least = (torch.from_numpy(np.resize(special[2:], (2, width)).astype("float32")) for _ in range(2))
        tw.compile(_extremes(columns, width), engine=engine)(torch.from_numpy(a), most, least)
        made.append((most, least))
    for x, y in zip(*made):
        x, y = x.numpy(), y.numpy()
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
        there = ~np.isnan(x)
        np.testing.assert_array_equal(x[there].view("uint32"), y[there].view("uint32"))


@pytest.mark.parametrize("length", (1, 15, 16383, 16384, 16385, 50000))
@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
def test_elements_of_any_length(length, dtype):
    x, y = (torch.randn(length, generator=torch.Generator().manual_seed(n)).to(getattr(torch, dtype)) for n in (1, 2))
    assert torch.equal(tw.ops.add(x, y), x + y)
    assert torch.equal(tw.ops.relu(x), x.relu())
    assert torch.equal(tw.ops.clamp(x, -1, 1), x.clamp(-1, 1))


@pytest.mark.parametrize("shape, form, dtype", (
    ((1, 700, 1000), "NN", "float32"), ((3, 129, 65), "NT", "float32"), ((17, 352, 257), "TN", "float32"), ((257, 1030, 70), "NN", "float32"),
    ((130, 353, 300), "NT", "bfloat16"), ((5, 700, 33), "NN", "int8")))  # fmt: skip
def test_products_of_any_shape(shape, form, dtype):
    M, N, K = shape
    random = torch.Generator().manual_seed(M * N + K)
    made = (lambda *s: torch.randint(-9, 9, s, generator=random, dtype=torch.int8)) if dtype == "int8" else (
        lambda *s: torch.randint(-4, 5, s, generator=random).to(getattr(torch, dtype)))  # fmt: skip
    a, b = made(*((K, M) if form[0] == "T" else (M, K))), made(*((N, K) if form[1] == "T" else (K, N)))
    out = tw.ops.matmul(a, b, transpose_a=form[0] == "T", transpose_b=form[1] == "T", out_dtype="int32" if dtype == "int8" else "float32")
    want = (a.T if form[0] == "T" else a).double() @ (b.T if form[1] == "T" else b).double()
    assert torch.equal(out.double(), want)


def _attending(dtype):
    @T.prim_func
    def main(S: T.Tensor((64, 64), "float32"), V: T.Tensor((64, 32), dtype), O: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=128):
            s, p = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), dtype)
            v, o = T.alloc_shared((64, 32), dtype), T.alloc_fragment((64, 32), "float32")
            T.copy(S, s)
            T.copy(V, v)
            for i, j in T.Parallel(64, 64):
                s[i, j] = T.exp2(s[i, j])
            T.copy(s, p)
            T.gemm(p, v, o, clear_accum=True)
            T.copy(o, O)

    return main


def test_subnormals_that_only_products_read():
    """A subnormal probability may count as zero, which no sum notices; numbers, infinities and NaN stay."""
    s = torch.randn(64, 64, generator=torch.Generator().manual_seed(3)) * 4
    s[:, 0], s[1, 1], s[2, 2], s[3, 3] = -140.0, float("inf"), float("nan"), -float("inf")
    v = torch.randn(64, 32, generator=torch.Generator().manual_seed(4)).to(torch.bfloat16)
    made = []
    for engine in ("interpreter", "cpu"):
        o = torch.zeros(64, 32)
        tw.compile(_attending("bfloat16"), engine=engine)(s, v, o)
        made.append(o)
    a, b = made
    assert torch.equal(a.isnan(), b.isnan()) and torch.equal(a.isinf(), b.isinf())
    there = a.isfinite()
    torch.testing.assert_close(a[there], b[there], rtol=1e-4, atol=1e-3)
