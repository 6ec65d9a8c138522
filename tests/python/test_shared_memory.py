"""Programs whose shared tiles fit a GPU only where those that are used up make room, simulated."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

M = N = 128
BLOCK = M * N * 4


def results(K, block_k, stages, copies):
    """A B, stored `copies` times, each through a tile of its own."""
    numbers = list(range(copies))

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((copies, M, N), "float32")):
        with T.Kernel(1, threads=128):
            A_shared = T.alloc_shared((M, block_k), "float16")
            B_shared = T.alloc_shared((block_k, N), "float16")
            acc = T.alloc_fragment((M, N), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // block_k, num_stages=stages):
                T.copy(A[0, k * block_k], A_shared)
                T.copy(B[k * block_k, 0], B_shared)
                T.gemm(A_shared, B_shared, acc)
            for i in numbers:
                tile = T.alloc_shared((M, N), "float32")
                for r, c in T.Parallel(M, N):
                    tile[r, c] = acc[r, c] + i
                for r, c in T.Parallel(M, N):
                    C[i, r, c] = tile[c, r]

    return main



@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("stages, block_k, copies", [(0, 128, 3), (2, 32, 4), (0, 64, 4)])
def test_tiles_that_are_used_up_make_room(stages, block_k, copies, arch):
    K = 2 * block_k
    program = results(K, block_k, stages, copies)
    random = np.random.default_rng(4)
    a = random.integers(-2, 3, (M, K)).astype("float16")
    b = random.integers(-2, 3, (K, N)).astype("float16")
    c = np.empty((copies, M, N), "float32")
    tw.compile(program, target=f"simulator -arch={arch}")(a, b, c)
    product = a.astype("float32") @ b.astype("float32")
    for i in range(copies):
        assert (c[i] == product.T + i).all()


def test_tiles_that_live_together_do_not_fit():
    @T.prim_func
    def main(A: T.Tensor((2, 4, M, N), "float32")):
        with T.Kernel(1, threads=128):
            tiles = [T.alloc_shared((M, N), "float32") for _ in range(4)]
            for i, tile in enumerate(tiles):
                T.copy(A[0, i, 0:M, 0:N], tile)
            for i, tile in enumerate(tiles):
                for r, c in T.Parallel(M, N):
                    A[1, i, r, c] = tile[c, r]

    assert 4 * BLOCK > 227 * 1024
    with pytest.raises(tw.CompileError, match="bytes of shared memory") as caught:
        tw.compile(main, target="simulator -arch=sm_90a")
    assert caught.value.code == "TW8203"
