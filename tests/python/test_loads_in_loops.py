"""How loops load: by whole vectors, ahead of their turn, with what is found row by row; and what they compute on a small machine."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

HOPPER = "simulator -arch=sm_90a"


def text_of(program):
    return tw.compile(program, target="cuda -arch=sm_90a").get_kernel_source()


def run(program, *arguments):
    tw.compile(program, target=HOPPER)(*arguments)
    return arguments[-1]


def convolution(channels, block):
    N, H, F, K = 1, 8, 64, 3

    @T.prim_func
    def main(data: T.Tensor((N, H, H, channels), "float16"), weight: T.Tensor((K * K * channels, F), "float16"), out: T.Tensor((N * H * H, F), "float16")):
        with T.Kernel(1, T.ceildiv(N * H * H, 64), threads=128) as (bx, by):
            patches = T.alloc_shared((64, block), "float16")
            weights = T.alloc_shared((block, F), "float16")
            o = T.alloc_fragment((64, F), "float32")
            T.clear(o)
            for k in T.Pipelined(T.ceildiv(K * K * channels, block), num_stages=3):
                for i, j in T.Parallel(64, block):
                    kk = k * block + j
                    m = by * 64 + i
                    h = m % (H * H) // H + kk // (K * channels) - 1
                    w = m % H + kk // channels % K - 1
                    inside = (h >= 0) & (w >= 0) & (h < H) & (w < H)
                    patches[i, j] = T.if_then_else(inside, data[m // (H * H), h, w, kk % channels], 0)
                T.copy(weight[k * block, 0], weights)
                T.gemm(patches, weights, o)
            T.copy(o, out[by * 64, 0])

    return main


@pytest.mark.parametrize("channels, block", [(64, 32), (96, 32), (24, 48)])
def test_patches_of_an_image_come_by_cp_async(channels, block):
    """Nine times the channels is no power of two, and a tile may hold several pixels: pieces of 16 bytes are whole all the same."""
    program = convolution(channels, block)
    text = text_of(program)
    assert "cp.async.cg.shared.global" in text and "cp.async.bulk.tensor" in text  # the weights by TMA
    assert "tw_arrive_copied(" in text.partition("tw_take_registers")[0]  # the loader's threads gather
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, 8, 8, channels)).astype("float16")
    weight = (rng.standard_normal((9 * channels, 64)) / 16).astype("float16")
    padded = np.pad(data.astype("float32"), ((0, 0), (1, 1), (1, 1), (0, 0)))
    patches = np.stack([padded[:, y : y + 8, x : x + 8] for y in range(3) for x in range(3)], axis=-2).reshape(64, -1)
    got = run(program, data, weight, np.zeros((64, 64), "float16"))
    np.testing.assert_allclose(got, patches @ weight.astype("float32"), atol=2e-2, rtol=2e-2)


def test_patches_that_pieces_do_not_divide_are_read_by_elements():
    """Of 20 channels a piece of 16 bytes holds two pixels."""
    assert "cp.async.cg" not in text_of(convolution(20, 32)).partition("weights")[0]


@pytest.mark.parametrize("scaled", [False, True])
def test_gathered_rows_and_the_others_come_together(scaled):
    """The loader's threads gather beside TMA. Where the loop does more than multiply, those who compute gather, and all tiles come by cp.async."""

    @T.prim_func
    def main(A: T.Tensor((128, 128), "bfloat16"), B: T.Tensor((64, 128), "bfloat16"), index: T.Tensor((64,), "int32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((64, 32), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=3):
                for i, j in T.Parallel(64, 32):
                    a[i, j] = A[index[i], k * 32 + j]
                T.copy(B[0, k * 32], b)
                T.gemm(a, b, c, transpose_B=True)
                if scaled:
                    for i, j in T.Parallel(64, 64):
                        c[i, j] = c[i, j] * T.if_then_else(k < 2, 2.0, 1.0)
            T.copy(c, C)

    text = text_of(main)
    assert "wgmma" in text
    explained = str(tw.compile(main, target="cuda -arch=sm_90a").explain("sm_90a"))
    if scaled:
        assert "cp.async.bulk.tensor" not in text and text.count("cp.async.cg.shared.global") >= 4
        assert "'a' comes by cp.async: the rows of it are found one by one" in explained
    else:
        assert "cp.async.bulk.tensor" in text and "tw_arrive_copied(" in text
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(0)
    A, B = (torch.randn(n, 128, generator=generator).bfloat16() for n in (128, 64))
    index = torch.randint(0, 128, (64,), generator=generator, dtype=torch.int32)
    got = run(main, A, B, index, torch.zeros(64, 64))
    a, b = A[index.long()].float(), B.float()
    wanted = a @ b.T
    if scaled:
        wanted = 4 * a[:, :32] @ b[:, :32].T + 2 * a[:, 32:64] @ b[:, 32:64].T + a[:, 64:] @ b[:, 64:].T
    assert (got - wanted).abs().max() < 2e-2


def guarded(M, N, static=True):
    rows, columns = (M, N) if static else (T.dynamic("M"), T.dynamic("N"))

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32"), C: T.Tensor((rows, columns), "float32")):
        with T.Kernel(T.ceildiv(columns, 64), T.ceildiv(rows, 32), threads=128) as (bx, by):
            for i, j in T.Parallel(32, 64):
                row = by * 32 + i
                column = bx * 64 + j
                if (row < rows) & (column < columns):
                    C[row, column] = A[row, column] + B[row, column]

    return main


@pytest.mark.parametrize("M, N, vectors", [(40, 72, True), (40, 74, False), (40, 70, False)])
def test_a_bound_at_a_whole_vector_is_asked_once(M, N, vectors):
    """The condition around a store is the same for four lanes where the bound is a multiple of four, and else is not."""
    text = text_of(guarded(M, N))
    assert ("(float4*)&C" in text) == vectors
    a, b = (np.random.default_rng(s).standard_normal((M, N)).astype("float32") for s in (0, 1))
    assert (run(guarded(M, N), a, b, np.zeros((M, N), "float32")) == a + b).all()


def test_a_bound_of_the_call_is_asked_once():
    """What the call says decides between vectors and elements."""
    program = guarded(0, 0, static=False)
    assert "(float4*)&C" in text_of(program)
    for M, N in ((40, 72), (33, 70), (5, 3)):
        a, b = (np.random.default_rng(s).standard_normal((M, N)).astype("float32") for s in (0, 1))
        assert (run(program, a, b, np.zeros((M, N), "float32")) == a + b).all()


def test_tiles_that_fit_once_have_a_loader_all_the_same():
    """Of two rings of one slot each, one is filled while the other is in use."""
    rows, dim = 64, 256

    @T.prim_func
    def main(Q: T.Tensor((rows, dim), "float16"), K: T.Tensor((256, dim), "float16"), V: T.Tensor((256, dim), "float16"), O: T.Tensor((rows, dim), "float32")):
        with T.Kernel(1, threads=256):
            q, k = T.alloc_shared((rows, dim), "float16"), T.alloc_shared((128, dim), "float16")
            v, p = T.alloc_shared((128, dim), "float16"), T.alloc_shared((rows, 128), "float16")
            s, o = T.alloc_fragment((rows, 128), "float32"), T.alloc_fragment((rows, dim), "float32")
            T.copy(Q, q)
            T.clear(o)
            for i in T.Pipelined(2, num_stages=1):
                T.copy(K[i * 128, 0], k)
                T.gemm(q, k, s, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullCol)
                T.copy(s, p)
                T.copy(V[i * 128, 0], v)
                T.gemm(p, v, o, policy=T.GemmWarpPolicy.FullCol)
            T.copy(o, O)

    assert text_of(main).count("tw_tma_load_2d(") >= 3
    rng = np.random.default_rng(0)
    Q, K, V = (rng.standard_normal((n, dim)).astype("float16") / 8 for n in (rows, 256, 256))
    S = (Q.astype("float32") @ K.astype("float32").T).astype("float16").astype("float32")
    got = run(main, Q, K, V, np.zeros((rows, dim), "float32"))
    np.testing.assert_allclose(got, S @ V.astype("float32"), atol=2e-2, rtol=2e-2)


def test_a_plain_loop_loads_ahead():
    """A product of a matrix and a vector: what the next turn multiplies is on its way."""
    N, K = 16, 4096

    @T.prim_func
    def main(a: T.Tensor((K,), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((N,), "float32")):
        with T.Kernel(2, threads=128) as bx:
            a_s, x = T.alloc_shared((128,), "float16"), T.alloc_fragment((8, 128), "float16")
            total, r = T.alloc_fragment((8, 128), "float32"), T.alloc_fragment((8,), "float32")
            T.clear(total)
            for k in T.serial(K // 128):
                T.copy(a[k * 128], a_s)
                T.copy(B[bx * 8, k * 128], x)
                for i, j in T.Parallel(8, 128):
                    total[i, j] += x[i, j].astype("float32") * a_s[j].astype("float32")
            T.reduce_sum(total, r, dim=1)
            T.copy(r, C[bx * 8])

    text = text_of(main)
    assert "x_staged" in text and "cp.async.wait_group 2" in text
    rng = np.random.default_rng(0)
    a, B = rng.standard_normal(K).astype("float16"), rng.standard_normal((N, K)).astype("float16")
    np.testing.assert_allclose(run(main, a, B, np.zeros(N, "float32")), B.astype("float32") @ a.astype("float32"), atol=1e-2, rtol=1e-3)


def test_rows_that_lanes_do_not_divide_are_summed_by_shuffles():
    """20 of 32 lanes have a part of the row: the others exchange nothing that counts."""

    @T.prim_func
    def main(A: T.Tensor((4, 320), "float32"), B: T.Tensor((4, 320), "float32")):
        with T.Kernel(4, threads=128) as bx:
            x, total, most = T.alloc_fragment((320,), "float32"), T.alloc_fragment((1,), "float32"), T.alloc_fragment((1,), "float32")
            T.copy(A[bx, 0], x)
            T.reduce_max(x, most, dim=0)
            T.reduce_sum(x, total, dim=0)
            for j in T.Parallel(320):
                x[j] = (x[j] - most[0]) / (total[0] + 1000.0)
            T.copy(x, B[bx, 0])

    text = text_of(main)
    assert text.count("__shfl_xor_sync") == 10
    a = -np.abs(np.random.default_rng(0).standard_normal((4, 320))).astype("float32") - 1  # 0 is no element's
    expected = (a - a.max(1, keepdims=True)) / (a.sum(1, keepdims=True) + 1000)
    np.testing.assert_allclose(run(main, a, np.zeros_like(a)), expected, rtol=1e-5)
