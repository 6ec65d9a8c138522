"""Products with a matrix of which two elements in four are kept, against NumPy."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from tilewright.sparse import get_e_factor


def compressed(dense, kept, group, bits):
    """The kept elements of each group and the metadata: four bits a group, packed into words of `bits`."""
    rows, columns = dense.shape
    values, nibbles = np.zeros((rows, columns // group * kept), dense.dtype), np.zeros((rows, columns // group), "uint64")
    for i in range(rows):
        for g in range(columns // group):
            part = dense[i, g * group : (g + 1) * group]
            at = list(np.flatnonzero(part))
            at = sorted(at + [p for p in range(group) if p not in at][: kept - len(at)])
            values[i, g * kept : (g + 1) * kept] = part[at]
            nibbles[i, g] = at[0] | at[1] << 2 if kept == 2 else (0b1110 if at[0] else 0b0100)
    words = np.zeros((rows, nibbles.shape[1] * 4 // bits), "uint64")
    for k in range(bits // 4):
        words |= nibbles[:, k :: bits // 4] << np.uint64(4 * k)
    return values, words.astype(f"uint{bits}").view(f"int{bits}")


@pytest.mark.parametrize("engine", ["interpreter", "cpu"])
@pytest.mark.parametrize("name, bits, transposed", [("float16", 16, False), ("int8", 32, True), ("float32", 8, False), ("float16", 8, True)])
def test_products(engine, name, bits, transposed):
    M, N, K = 16, 24, 64
    kept, group = (1, 2) if name == "float32" else (2, 4)
    sum_type = "int32" if name == "int8" else "float32"
    factor = get_e_factor(name, f"int{bits}")
    sparse_shape, e_shape = (M, K // group * kept), (M, K // factor)
    if transposed:
        sparse_shape, e_shape = sparse_shape[::-1], e_shape[::-1]

    @T.prim_func
    def main(A: T.Tensor(sparse_shape, name), E: T.Tensor(e_shape, f"int{bits}"), B: T.Tensor((N, K), name), C: T.Tensor((M, N), sum_type)):
        with T.Kernel(1, threads=32):
            a, e = T.alloc_shared(sparse_shape, name), T.alloc_shared(e_shape, f"int{bits}")
            b, c = T.alloc_shared((N, K), name), T.alloc_fragment((M, N), sum_type)
            T.copy(A, a)
            T.copy(E, e)
            T.copy(B, b)
            T.clear(c)
            T.gemm_sp(a, e, b, c, transposed, transposed, True)
            T.copy(c, C)

    rng = np.random.default_rng(3)
    dense = rng.integers(1, 5, (M, K)).astype(name)
    for i in range(M):
        for g in range(K // group):
            dropped = rng.permutation(group)[: group - (kept if (i + g) % 3 else kept - 1)]
            dense[i, g * group + dropped] = 0
    values, meta = compressed(dense, kept, group, bits)
    b = rng.integers(-4, 5, (N, K)).astype(name)
    c = np.zeros((M, N), sum_type)
    arranged = [np.ascontiguousarray(x.T) if transposed else x for x in (values, meta)]
    tw.compile(main, engine=engine)(*arranged, b, c)
    assert (c == dense.astype("float64") @ b.astype("float64").T).all()


@pytest.mark.parametrize("name, arch, transposed", [("float16", "8.0", False), ("bfloat16", None, True), ("int8", "8.0", True), ("float32", "9.0", False)])
def test_products_of_what_is_compressed(name, arch, transposed):
    """By the functions that TileLang had in tilelang.utils.sparse."""
    torch = pytest.importorskip("torch")
    from tilewright import sparse

    M, N, K, kind = 16, 24, 64, getattr(torch, name)
    torch.manual_seed(1)
    if name == "int8":
        dense = sparse.randint_semi_sparse(M, K, -4, 5, device="cpu", transposed=transposed)
    else:
        dense = sparse.randn_semi_sparse(M, K, kind, device="cpu", transposed=transposed)
    values, meta = sparse.compress(dense, transposed, arch)
    words = "uint8" if arch != "8.0" else "int32" if name == "int8" else "int16"
    e_shape, sum_type = (M, K // get_e_factor(name, words)), "int32" if name == "int8" else "float32"
    assert tuple(meta.shape) == e_shape and str(meta.dtype) == f"torch.{words}" and values.numel() * 2 == dense.numel()

    @T.prim_func
    def main(A: T.Tensor(tuple(values.shape), name), E: T.Tensor(e_shape, words), B: T.Tensor((K, N), name), C: T.Tensor((M, N), sum_type)):
        with T.Kernel(1, threads=32):
            a, e = T.alloc_shared(tuple(values.shape), name), T.alloc_shared(e_shape, words)
            b, c = T.alloc_shared((K, N), name), T.alloc_fragment((M, N), sum_type)
            T.copy(A, a)
            T.copy(E, e)
            T.copy(B, b)
            T.gemm_sp(a, e, b, c, transpose_A=transposed, clear_accum=True)
            T.copy(c, C)

    b, c = torch.randint(-4, 5, (K, N)).to(kind), torch.zeros(M, N, dtype=getattr(torch, sum_type))
    tw.compile(main, engine="cpu")(values, meta, b, c)
    rows = dense.t() if transposed else dense
    assert torch.allclose(c.double(), rows.double() @ b.double(), rtol=1e-5, atol=1e-4)
    assert (sparse.arange_semi_sparse(2, 8, torch.float32, "cpu").view(2, 4, 2) != 0).sum(-1).max() == 1
    with pytest.raises(ValueError, match="a group of .* has more than"):
        sparse.compress(torch.ones(16, 64, dtype=kind))


def test_mistakes():
    def program(dtype, words):
        @T.prim_func
        def main(A: T.Tensor((1,), "float32")):
            with T.Kernel(1, threads=32):
                a, e = T.alloc_shared((16, 16), dtype), T.alloc_shared((16, words), "int16")
                b, c = T.alloc_shared((32, 16), dtype), T.alloc_fragment((16, 16), "float32")
                T.gemm_sp(a, e, b, c)

    with pytest.raises(tw.CompileError, match="TW1065.*a sparse 'a' of float64"):
        program("float64", 2)
    with pytest.raises(tw.CompileError, match="TW1086.*16 rows of 64 bits.* 16 rows of 8 groups"):
        program("float16", 4)


def test_the_order_of_arguments_of_earlier_releases_is_named():
    with pytest.raises(tw.CompileError, match=r"TW1086[\s\S]*help: it fits with transpose_E=False: by place, transpose_E stands between"):

        @T.prim_func
        def main(A: T.Tensor((1,), "float32")):
            with T.Kernel(1, threads=32):
                a, e = T.alloc_shared((32, 16), "float16"), T.alloc_shared((32, 2), "int16")
                b, c = T.alloc_shared((16, 32), "float16"), T.alloc_fragment((32, 16), "float32")
                T.gemm_sp(a, e, b, c, False, True)
