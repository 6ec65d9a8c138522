"""Programs as talks, articles and teaching pages about TileLang write them, spellings that TileLang itself does not take
included."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

ENGINES = ["cpu", "interpreter", "simulator"]
rng = np.random.default_rng(3)


def halves(*shape):
    return rng.standard_normal(shape, dtype="float32").astype("float16")


def product(a, b):
    return a.astype("float32") @ b.astype("float32")


@pytest.mark.parametrize("engine", ENGINES)
def test_product_with_relu_and_its_profiler(engine):
    @tw.jit(engine=engine)
    def matmul(M, N, K, block_M, block_N, block_K, dtype="float16", accum_dtype="float"):
        @T.prim_func
        def clipped(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
            with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
                a, b = T.alloc_shared((block_M, block_K), dtype), T.alloc_shared((block_K, block_N), dtype)
                c = T.alloc_fragment((block_M, block_N), accum_dtype)
                T.use_swizzle(panel_size=4, order="col")
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                    T.copy(A[by * block_M, k * block_K], a)
                    T.copy(B[k * block_K, bx * block_N], b)
                    T.gemm(a, b, c)
                for i, j in T.Parallel(block_M, block_N):
                    c[i, j] = T.max(c[i, j], 0)
                T.copy(c, C[by * block_M, bx * block_N])

        return clipped

    kernel = matmul(96, 64, 64, block_M=32, block_N=32, block_K=32)
    a, b, c = halves(96, 64), halves(64, 64), np.zeros((96, 64), "float16")
    assert kernel(a, b, c) is None
    np.testing.assert_allclose(c, np.maximum(product(a, b), 0), rtol=1e-2, atol=1e-2)
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        profiler = kernel.get_profiler(tensor_supply_type=tw.profiler.TensorSupplyType.Normal)
        assert profiler.do_bench(warmup=1, rep=1) > 0 and kernel.get_kernel_source()


@pytest.mark.parametrize("width", [160, 256, 320, 512, 640, 1024])
@pytest.mark.parametrize("engine", ["cpu", "interpreter"])
def test_normalized_rows_with_silu(engine, width):
    """Two passes over chunks of a row whose width is a multiple of 32."""
    rows, block, chunk = 11, 4, next(c for c in (128, 64, 32) if width % c == 0)

    @T.prim_func
    def norm_silu(X: T.Tensor((rows, width), "float16"), gamma: T.Tensor((width,), "float16"),
                  Y: T.Tensor((rows, width), "float16")):  # fmt: skip
        with T.Kernel(T.ceildiv(rows, block), threads=128) as bm:
            tile = T.alloc_shared((block, chunk), "float16")
            squares = T.alloc_fragment((block, chunk), "float32")
            part, total = T.alloc_fragment((block,), "float32"), T.alloc_fragment((block,), "float32")
            T.clear(total)
            for k in T.serial(width // chunk):
                T.copy(X[bm * block, k * chunk], tile)
                for i, j in T.Parallel(block, chunk):
                    squares[i, j] = T.cast(tile[i, j], "float32") * T.cast(tile[i, j], "float32")
                T.reduce_sum(squares, part, dim=1)
                for i in T.Parallel(block):
                    total[i] += part[i]
            for k in T.serial(width // chunk):
                T.copy(X[bm * block, k * chunk], tile)
                for i, j in T.Parallel(block, chunk):
                    value = tile[i, j] * gamma[k * chunk + j] * T.rsqrt(total[i] / width + 1e-5)
                    tile[i, j] = value / (1 + T.exp(-value))
                T.copy(tile, Y[bm * block, k * chunk])

    x, gamma = halves(rows, width), halves(width)
    wide = x.astype("float32")
    value = wide * gamma.astype("float32") / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5)
    found = tw.compile(norm_silu, out_idx=[2], engine=engine)(x, gamma)
    np.testing.assert_allclose(found, value / (1 + np.exp(-value)), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("engine", ENGINES)
def test_factory_with_out_idx_that_is_called_with_all(engine):
    @tw.jit(engine=engine, out_idx=[2])
    def factory(M, N, K, block):
        @T.prim_func
        def main(A: T.Buffer((M, K), "float16"), B: T.Buffer((K, N), "float16"), C: T.Buffer((M, N), "float16")):
            with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
                a, b = T.alloc_shared((block, block), "float16"), T.alloc_shared((block, block), "float16")
                c = T.alloc_fragment((block, block), "float32")
                T.annotate_layout({a: T.make_swizzled_layout(a), b: T.make_swizzle_layout()})
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, block), num_stages=3):
                    T.copy(A[by * block, k * block], a)
                    T.copy(B[k * block, bx * block], b)
                    T.gemm(a, b, c, transpose_B=False)
                T.copy(c, C[by * block, bx * block])

        return main

    func = factory(M=64, N=64, K=96, block=32)
    a, b, c = halves(64, 96), halves(96, 64), np.zeros((64, 64), "float16")
    assert func(a, b, c) is c
    np.testing.assert_allclose(c, product(a, b), rtol=1e-2, atol=1e-2)
    assert (func(a, b) == c).all()


def scale_program(M, N):
    @T.prim_func
    def scale(A: T.Buffer((M, N), "float16"), factor: T.Buffer((M,), "float32"), B: T.Buffer((M, N), "float16")):
        for i, j in T.grid(M, N):
            B[i, j] = T.cast(T.cast(A[i, j], "float32") * factor[i], "float16")

    return scale


def test_a_program_without_a_launch_is_the_hosts(monkeypatch):
    a, factor, b = halves(20, 30), rng.standard_normal(20, dtype="float32"), np.zeros((20, 30), "float16")
    kernel = tw.compile(scale_program(20, 30))
    kernel(a, factor, b)
    assert (b == (a.astype("float32") * factor[:, None]).astype("float16")).all()
    monkeypatch.delenv("TILEWRIGHT_ENGINE", raising=False)
    monkeypatch.setattr(tw._native, "device_count", lambda: 1)
    assert tw.compile(scale_program(20, 30)).engine == "cpu"  # also where there is a device


@pytest.mark.parametrize("engine", ENGINES)
def test_latent_attention_of_one_token(engine):
    batch, heads, length, dim, rope, block_N, block_H = 2, 16, 100, 64, 16, 32, 16
    factor = (dim + rope) ** -0.5 * 1.44269504

    @T.prim_func
    def decode(Q: T.Tensor([batch, heads, dim], "float16"), Q_rope: T.Tensor([batch, heads, rope], "float16"),
               KV: T.Tensor([batch, length, 1, dim], "float16"), K_rope: T.Tensor([batch, length, 1, rope], "float16"),
               Output: T.Tensor([batch, heads, dim], "float16")):  # fmt: skip
        with T.Kernel(batch, heads // min(block_H, heads), threads=256) as (bx, by):
            q, q_rope = T.alloc_shared([block_H, dim], "float16"), T.alloc_shared([block_H, rope], "float16")
            kv, k_rope = T.alloc_shared([block_N, dim], "float16"), T.alloc_shared([block_N, rope], "float16")
            weights, result = T.alloc_shared([block_H, block_N], "float16"), T.alloc_shared([block_H, dim], "float16")
            s, o = T.alloc_fragment([block_H, block_N], "float32"), T.alloc_fragment([block_H, dim], "float32")
            largest, before = T.alloc_fragment([block_H], "float32"), T.alloc_fragment([block_H], "float32")
            scale, part, total = (T.alloc_fragment([block_H], "float32") for _ in range(3))
            T.annotate_layout({result: T.make_swizzle_layout()})
            T.copy(Q[bx, by * block_H : by * block_H + block_H, :], q)
            T.copy(Q_rope[bx, by * block_H : by * block_H + block_H, :], q_rope)
            T.clear(o)
            T.clear(total)
            T.fill(largest, -T.infinity("float32"))
            for k in T.Pipelined(T.ceildiv(length, block_N), num_stages=2):
                T.copy(KV[bx, k * block_N : k * block_N + block_N, 0, :], kv)
                T.copy(K_rope[bx, k * block_N : k * block_N + block_N, 0, :], k_rope)
                T.clear(s)
                T.gemm(q, kv, s, transpose_B=True)
                T.gemm(q_rope, k_rope, s, transpose_B=True)
                for i, j in T.Parallel(block_H, block_N):
                    s[i, j] = T.if_then_else(k * block_N + j < length, s[i, j], -T.infinity("float32"))
                T.copy(largest, before)
                T.reduce_max(s, largest, dim=1, clear=False)
                for i in T.Parallel(block_H):
                    scale[i] = T.exp2(before[i] * factor - largest[i] * factor)
                for i, j in T.Parallel(block_H, block_N):
                    s[i, j] = T.exp2(s[i, j] * factor - largest[i] * factor)
                T.reduce_sum(s, part, dim=1)
                T.copy(s, weights)
                for i in T.Parallel(block_H):
                    total[i] = total[i] * scale[i] + part[i]
                for i, j in T.Parallel(block_H, dim):
                    o[i, j] *= scale[i]
                T.gemm(weights, kv, o)
            for i, j in T.Parallel(block_H, dim):
                o[i, j] /= total[i]
            T.copy(o, result)
            T.copy(result, Output[bx, by * block_H : by * block_H + block_H, :])

    q, q_rope = halves(batch, heads, dim), halves(batch, heads, rope)
    kv, k_rope = halves(batch, length, 1, dim), halves(batch, length, 1, rope)
    queries, keys = (np.concatenate(x, -1).astype("float32") for x in ((q, q_rope), (kv[:, :, 0], k_rope[:, :, 0])))
    scores = queries @ keys.transpose(0, 2, 1) / np.sqrt(dim + rope)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ keys[..., :dim]
    found = tw.compile(decode, out_idx=-1, engine=engine)(q, q_rope, kv, k_rope)
    np.testing.assert_allclose(found, wanted, rtol=1e-2, atol=1e-2)
