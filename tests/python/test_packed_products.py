"""Products on the CPU whose blocks share tiles, in longer steps than the program's: what is laid out once, or by each
block, gives what NumPy gives."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T


def product(M, N, K, tile, dtype, form, stages=2):
    block_M, block_N, block_K = tile
    A_shape, A_tile = ((K, M), (block_K, block_M)) if form[0] == "T" else ((M, K), (block_M, block_K))
    B_shape, B_tile = ((N, K), (block_N, block_K)) if form[1] == "T" else ((K, N), (block_K, block_N))

    @T.prim_func
    def gemm(A: T.Tensor(A_shape, dtype), B: T.Tensor(B_shape, dtype), C: T.Tensor((M, N), "int32" if dtype == "int8" else "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared(A_tile, dtype)
            B_shared = T.alloc_shared(B_tile, dtype)
            C_local = T.alloc_fragment((block_M, block_N), "int32" if dtype == "int8" else "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                if form[0] == "T":
                    T.copy(A[ko * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, ko * block_K], A_shared)
                if form[1] == "T":
                    T.copy(B[bx * block_N, ko * block_K], B_shared)
                else:
                    T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A=form[0] == "T", transpose_B=form[1] == "T")
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


def operands(M, N, K, dtype, form):
    rng = np.random.default_rng(M + N + K)
    a, b = (rng.integers(-9, 9, shape).astype("int8" if dtype == "int8" else "float32") for shape in ((M, K), (K, N)))
    exact = a.astype("int64") @ b.astype("int64")
    return np.ascontiguousarray(a.T if form[0] == "T" else a), np.ascontiguousarray(b.T if form[1] == "T" else b), exact


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("form", ["NN", "NT", "TN", "TT"])
def test_blocks_that_share(dtype, form):
    """Whole numbers, so that no order of sums matters; extents that no tile divides, and steps that are left."""
    M, N, K = 150, 170, 200
    a, b, exact = operands(M, N, K, dtype, form)
    c = np.zeros((M, N), "int32" if dtype == "int8" else "float32")
    kernel = tw.compile(product(M, N, K, (32, 32, 32), dtype, form), engine="cpu")
    assert "tw_borrow" in kernel.get_kernel_source()
    for _ in range(2):  # again in the memory that is kept
        c[:] = -1
        kernel(a, b, c)
        assert (c == exact).all()


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_sizes_of_the_call(dtype):
    """One kernel of any shape: few blocks bring their tiles themselves, many share them, larger calls get more memory."""
    m, n, k = (T.dynamic(x) for x in "mnk")
    kernel = tw.compile(product(m, n, k, (32, 32, 32), dtype, "NN"), engine="cpu")
    for M, N, K in ((20, 30, 40), (130, 140, 500), (33, 200, 64), (260, 190, 700), (130, 140, 31), (1, 1, 1)):
        a, b, exact = operands(M, N, K, dtype, "NN")
        c = np.full((M, N), -1, "int32" if dtype == "int8" else "float32")
        kernel(a, b, c)
        assert (c == exact).all(), (M, N, K)


def test_turns_of_a_triangle():
    """The block says how many turns there are."""

    @T.prim_func
    def triangle(A: T.Tensor((320, 320), "float32"), B: T.Tensor((320, 320), "float32"), C: T.Tensor((320, 320), "float32")):
        with T.Kernel(5, 5, threads=128) as (bx, by):
            A_shared = T.alloc_shared((64, 64), "float32")
            B_shared = T.alloc_shared((64, 64), "float32")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.clear(C_local)
            for k in T.Pipelined(by + 1, num_stages=2):
                T.copy(A[by * 64, k * 64], A_shared)
                T.copy(B[k * 64, bx * 64], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * 64, bx * 64])

    a, b, _ = operands(320, 320, 320, "float32", "NN")
    c = np.zeros((320, 320), "float32")
    tw.compile(triangle, engine="cpu")(a, b, c)
    mask = np.kron(np.tri(5), np.ones((64, 64)))
    assert (c == (a * mask) @ b).all()


def test_what_the_launch_writes_is_brought_anew():
    """A tensor that is read and written in place keeps its tiles where the program copies them."""

    @T.prim_func
    def again(A: T.Tensor((256, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(4, threads=128) as bx:
            A_shared = T.alloc_shared((64, 64), "float32")
            B_shared = T.alloc_shared((64, 64), "float32")
            C_local = T.alloc_fragment((64, 64), "float32")
            for _ in T.serial(2):
                T.clear(C_local)
                for k in T.Pipelined(1, num_stages=1):
                    T.copy(A[bx * 64, k * 64], A_shared)
                    T.copy(B[k * 64, 0], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, A[bx * 64, 0])

    a, b, _ = operands(256, 64, 64, "float32", "NN")
    expected = (a.astype("int64") @ b.astype("int64")) @ b.astype("int64")
    kernel = tw.compile(again, engine="cpu")
    kernel(a, b)
    assert np.allclose(a, expected, rtol=1e-6)
