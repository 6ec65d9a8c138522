"""Products of tiles whose rows and columns wgmma has not: padded, or done the other way round."""
import pytest
import tilewright as tw
import tilewright.language as T

torch = pytest.importorskip("torch")

# rows, columns, step, threads, transposed, type, instruction
TILES = [
    (96, 128, 64, 128, "nn", "bfloat16", "m64n96k16"),
    (80, 256, 64, 256, "tn", "float16", "m64n80k16"),
    (48, 128, 64, 128, "nt", "float16", "m64n48k16"),
    (96, 128, 32, 128, "nt", "tfloat32", "m64n96k8"),
    (112, 96, 64, 128, "tn", "bfloat16", "m64n96k16"),
    (208, 96, 64, 256, "nn", "float16", "m64n96k16"),
    (208, 160, 64, 256, "nn", "float16", "m64n104k16"),
    (208, 80, 32, 128, "tt", "bfloat16", "m64n80k16"),
    (64, 208, 64, 256, "nn", "float16", "m64n128k16"),
    (152, 104, 64, 128, "nt", "float8_e4m3fn", "m64n104k32"),
    (208, 144, 64, 256, "nt", "int8", "m64n144k32"),
]


def _out(summed, end):
    return {"cast": "float16", "shared": "bfloat16"}.get(end, summed) if summed == "float32" else summed


def _product(rows, columns, step, threads, transposed, dtype, shape, end):
    M, N, K = shape
    ta, tb = (x == "t" for x in transposed)
    summed = "int32" if dtype == "int8" else "float32"
    out = _out(summed, end)
    a_shape, b_shape = ((K, M) if ta else (M, K)), ((N, K) if tb else (K, N))
    a_tile, b_tile = ((step, rows) if ta else (rows, step)), ((columns, step) if tb else (step, columns))

    @T.prim_func
    def main(
        A: T.Tensor(a_shape, dtype),
        B: T.Tensor(b_shape, dtype),
        bias: T.Tensor((N,), summed),
        C: T.Tensor((M, N), out),
        S: T.Tensor((M, T.ceildiv(N, columns)), summed),
    ):
        with T.Kernel(T.ceildiv(N, columns), T.ceildiv(M, rows), threads=threads) as (bx, by):
            a, b = T.alloc_shared(a_tile, dtype), T.alloc_shared(b_tile, dtype)
            c = T.alloc_fragment((rows, columns), summed)
            s = T.alloc_fragment((rows,), summed)
            c_shared = T.alloc_shared((rows, columns), out)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, step), num_stages=3):
                T.copy(A[k * step, by * rows] if ta else A[by * rows, k * step], a)
                T.copy(B[bx * columns, k * step] if tb else B[k * step, bx * columns], b)
                T.gemm(a, b, c, transpose_A=ta, transpose_B=tb)
            if end == "bias":
                for i, j in T.Parallel(rows, columns):
                    c[i, j] = c[i, j] + bias[bx * columns + j]
            if end == "sums":
                T.reduce_sum(c, s, dim=1)
                T.copy(s, S[by * rows : (by + 1) * rows, bx])
            if end == "shared":
                T.copy(c, c_shared)
                T.copy(c_shared, C[by * rows, bx * columns])
            elif end == "atomic":
                for i, j in T.Parallel(rows, columns):
                    T.atomic_add(C[by * rows + i, bx * columns + j], c[i, j])
            else:
                T.copy(c, C[by * rows, bx * columns])

    return main


@pytest.mark.parametrize("end", ["stored", "bias", "sums", "cast", "shared", "atomic"])
@pytest.mark.parametrize("rows, columns, step, threads, transposed, dtype, instruction", TILES)
def test_tiles_that_wgmma_has_not(rows, columns, step, threads, transposed, dtype, instruction, end):
    shape = M, N, K = rows + rows // 2 + 8, columns + 48, 2 * step + 16  # no whole tiles
    summed = "int32" if dtype == "int8" else "float32"
    kernel = tw.compile(_product(rows, columns, step, threads, transposed, dtype, shape, end), target="interpreter")
    (gemm,) = [o for o in kernel.explain("sm_90a", as_json=True)["launches"][0]["operations"] if o["operation"] == "gemm"]
    if end != "sums":
        assert instruction in gemm["becomes"][0], gemm
    elif rows % 64 != 0:  # sums over columns would have those that are none of the product
        assert "wgmma" in gemm["becomes"][0], gemm
    random = torch.Generator().manual_seed(rows)
    a, b, bias = (torch.randint(-2, 3, s, generator=random) for s in ((M, K), (K, N), (N,)))
    c = a @ b + (bias if end == "bias" else 0)
    types = {"tfloat32": torch.float32}
    operands = [(x.T if t == "t" else x).contiguous().to(types.get(dtype) or getattr(torch, dtype)) for x, t in zip((a, b), transposed)]
    got, got_sums = torch.zeros((M, N), dtype=getattr(torch, _out(summed, end))), torch.zeros((M, -(-N // columns)), dtype=getattr(torch, summed))
    kernel.simulate(*operands, bias.to(got_sums.dtype), got, got_sums, arch="sm_90a")
    assert torch.equal(got, c.to(got.dtype))
    if end == "sums":
        assert torch.equal(got_sums, torch.stack([c[:, i : i + columns].sum(1) for i in range(0, N, columns)], 1).to(got_sums.dtype))
