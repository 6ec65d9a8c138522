"""Lines of plans that are handed in (docs/plans.md): in the kernel, and to compile."""
import numpy as np
import pytest

import tilewright as tw
import tilewright.language as T


def product(lines=""):
    @T.prim_func
    def product(A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 256), "float16"), C: T.Tensor((256, 256), "float16")):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            T.annotate_plan(lines)
            A_shared = T.alloc_shared((128, 32), "float16")
            B_shared = T.alloc_shared((32, 128), "float16")
            acc = T.alloc_fragment((128, 128), "float32")
            T.clear(acc)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[by * 128, k * 32], A_shared)
                T.copy(B[k * 32, bx * 128], B_shared)
                T.gemm(A_shared, B_shared, acc)
            T.copy(acc, C[by * 128, bx * 128])

    return product


def arrays():
    random = np.random.default_rng(3)
    a, b = (random.integers(-4, 5, (256, 256)).astype("float16") for _ in range(2))
    return a, b, np.zeros((256, 256), "float16")


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
def test_a_kernel_says_lines_of_its_plan(engine):
    kernel = tw.compile(product("ring A_shared slots=3\noverlap no"), engine=engine)
    assert 'plan("ring A_shared slots=3", "overlap no")' in kernel.program.text
    a, b, c = arrays()
    kernel(a, b, c)
    assert np.array_equal(c, (a.astype("float32") @ b.astype("float32")).astype("float16"))


def test_compile_takes_lines_of_a_plan():
    kernel = tw.compile(product(), engine="interpreter", plan="# few\nring A_shared slots=3\n")
    assert 'plan("ring A_shared slots=3")' in kernel.program.text


@pytest.mark.parametrize(
    "lines, what",
    [
        ("ring A_shared slots=some", "slots is 'some'"),
        ("launch other\noverlap no", "the plan speaks of a launch 'other'"),
        ("sideways", "'sideways' is no part of one"),
        ("ring A_Shared slots=2", "speaks of a tile 'A_Shared', which it has not"),
        ("order overlapped of z", "speaks of a loop 'z', which it has not"),
        ("fit half_steps=q", "speaks of a loop 'q', which it has not"),
        ("overlap no\noverlap yes", "another line says otherwise"),
        ("work one_tile\nwork persistent blocks=3", "another line says otherwise"),
    ],
)
def test_what_no_plan_has_is_refused_on_every_engine(lines, what):
    with pytest.raises(tw.CompileError, match="TW8206") as error:
        tw.compile(product(), engine="interpreter", plan=lines)
    assert what in str(error.value)


def test_texts_pages_and_simulators_are_of_the_plan_and_the_options():
    plain, more = (tw.compile(product(), plan=plan, target="cuda -arch=sm_90a", engine=None) for plan in ("", "ring A_shared slots=3"))
    assert plain.get_kernel_source() != more.get_kernel_source()
    assert "a ring of 3 slots" in str(more.explain("sm_90a")) and "a ring of 3 slots" not in str(plain.explain("sm_90a"))
    with pytest.raises(tw.CompileError, match="TW8206"):
        tw.compile(product(), plan="ring A_shared slots=60", target="cuda -arch=sm_90a").get_kernel_source()
    A, B, C = (np.ones((256, 256), np.float16) for _ in range(3))
    with pytest.raises(tw.CompileError, match="TW8206"):
        tw.compile(product(), plan="ring A_shared slots=60", engine="interpreter").simulate(A, B, C)


@pytest.mark.parametrize("shape, blocks", [((200, 136, 296), 5), ((130, 264, 520), 7), ((64, 64, 1000), 6), ((384, 128, 72), 4)])
def test_runs_of_turns_at_any_shape_with_what_comes_behind(shape, blocks):
    M, N, K = shape

    @T.prim_func
    def biased(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), bias: T.Tensor((N,), "float32"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            A_shared, B_shared = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=3):
                T.copy(A[by * 64, k * 64], A_shared)
                T.copy(B[bx * 64, k * 64], B_shared)
                T.gemm(A_shared, B_shared, acc, transpose_B=True)
            for i, j in T.Parallel(64, 64):
                acc[i, j] = T.max(acc[i, j] + bias[bx * 64 + j], 0)
            T.copy(acc, C[by * 64, bx * 64])

    random = np.random.default_rng(5)
    a, b = (random.integers(-3, 4, (rows, K)).astype("float16") for rows in (M, N))
    bias = random.integers(-3, 4, N).astype("float32")
    kernel = tw.compile(biased, out_idx=[-1], plan=f"work stream_k blocks={blocks}", target="simulator -arch=sm_90a")
    want = np.maximum(a.astype("float32") @ b.astype("float32").T + bias, 0).astype("float16")
    assert np.array_equal(kernel(a, b, bias), want)


def test_operands_that_are_views_come_by_tma():
    """An image and a filter with their dimensions joined, as TileLang's convolutions have them: the loop has a loader."""

    @T.prim_func
    def convolution(X: T.Tensor((4, 8, 8, 64), "float16"), F: T.Tensor((3, 3, 64, 64), "float16"), Y: T.Tensor((4, 8, 8, 64), "float16")):
        with T.Kernel(1, 4, threads=128) as (bx, by):
            flat = T.Tensor((576, 64), "float16", F.data)
            out = T.Tensor((256, 64), "float16", Y.data)
            patches = T.alloc_shared((64, 64), "float16")
            filters = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for k in T.Pipelined(9, num_stages=3):
                T.c2d_im2col(X, patches, by, k, 3, 1, 1, 1)
                T.copy(flat[k * 64, bx * 64], filters)
                T.gemm(patches, filters, acc)
            T.copy(acc, out[by * 64, bx * 64])

    assert "ring patches, filters" in str(tw.compile(convolution, engine="simulator").explain(predict=True))
    random = np.random.default_rng(5)
    x, f = (random.integers(-2, 3, shape).astype("float16") for shape in ((4, 8, 8, 64), (3, 3, 64, 64)))
    padded = np.pad(x.astype("float32"), ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = sum(padded[:, i : i + 8, j : j + 8] @ f[i, j].astype("float32") for i in range(3) for j in range(3))
    for engine in ("interpreter", "cpu", "simulator"):
        y = np.zeros((4, 8, 8, 64), "float16")
        tw.compile(convolution, engine=engine)(x, f, y)
        assert np.array_equal(y, want.astype("float16")), engine
