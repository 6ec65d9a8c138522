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


def test_fragments_that_do_not_fit_say_why_they_are_in_shared_memory():
    @T.prim_func
    def main(A: T.Tensor((256, 256), "float32"), B: T.Tensor((256, 256), "float32")):
        with T.Kernel(1, threads=128):
            F = T.alloc_fragment((256, 256), "float32")
            T.copy(A, F)
            for i, j in T.Parallel(256, 256):
                B[i, j] = F[j, i] + F[i, j]

    with pytest.raises(tw.CompileError, match="TW8203[\\s\\S]*'F' takes 262144 bytes: a fragment that lives in shared memory, since it is transposed"):
        tw.compile(main, target="simulator -arch=sm_90a")


def test_a_part_of_a_tile_is_read():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((4, 64), "float16")):
        with T.Kernel(1, threads=128):
            wide = T.alloc_shared((64, 64), "float32")
            narrow = T.alloc_shared((64, 64), "float16")
            T.copy(A, wide)
            for i, j in T.Parallel(64, 64):
                wide[i, j] = wide[i, j] * 2
            T.copy(wide, narrow)
            T.copy(narrow[0:4, :], B)

    a = np.random.default_rng(6).random((64, 64), dtype="float32")
    b = np.empty((4, 64), "float16")
    tw.compile(main, engine="simulator")(a, b)
    assert (b == (2 * a[:4]).astype("float16")).all()


def test_parts_of_a_fragment_stay_in_registers():
    K, half = 32, 64

    @T.prim_func
    def main(A: T.Tensor((128, K), "float16"), B: T.Tensor((K, 256), "float16"), C: T.Tensor((128, 256), "float32")):
        with T.Kernel(1, threads=256):
            A_shared, B_shared = T.alloc_shared((128, K), "float16"), T.alloc_shared((K, 256), "float16")
            acc = T.alloc_fragment((128, 256), "float32")
            part = T.alloc_shared((half, 256), "float32")
            T.copy(A, A_shared)
            T.copy(B, B_shared)
            T.gemm(A_shared, B_shared, acc, clear_accum=True)
            for s in range(2):
                for i, j in T.Parallel(128, 256):
                    if i < half:
                        part[i, j] = acc[i + s * half, j]
                for i, j in T.Parallel(half, 256):
                    C[s * half + i, j] = part[i, j] + s

    random = np.random.default_rng(7)
    a = random.integers(-2, 3, (128, K)).astype("float16")
    b = random.integers(-2, 3, (K, 256)).astype("float16")
    c = np.empty((128, 256), "float32")
    tw.compile(main, target="simulator -arch=sm_80")(a, b, c)  # acc in shared memory would not fit
    product = a.astype("float32") @ b.astype("float32")
    assert (c == product + np.repeat([0, 1], half)[:, None]).all()


@pytest.mark.parametrize("target", ["interpreter", "cpu", "simulator -arch=sm_80", "simulator -arch=sm_90a"])
@pytest.mark.parametrize("rows", [1, 4])
def test_rows_that_a_loop_goes_through_stay_in_registers(target, rows):
    """Fragments by rows, together more than the shared memory there is: the loop's turns are points like the others."""
    columns = 32768 // rows

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((rows, columns), "float16")
            f, d = T.alloc_fragment((rows, columns), "float32"), T.alloc_fragment((rows, columns), "float32")
            mean, found = T.alloc_fragment((rows,), "float32"), T.alloc_fragment((rows,), "float32")
            T.copy(A, s)
            for i in T.serial(rows):
                for j in T.Parallel(columns):
                    f[i, j] = T.cast(s[i, j], "float32")
            T.reduce_sum(f, mean, dim=1)
            for i in T.serial(rows):
                for j in T.Parallel(columns):
                    d[i, j] = (f[i, j] - mean[i] / columns) * (f[i, j] - mean[i] / columns)
            T.reduce_sum(d, found, dim=1)
            T.copy(found, B)

    half = np.random.default_rng(7).integers(-3, 4, (rows, columns // 2)).astype("float16")
    a, b = np.concatenate([half, 2 - half], axis=1), np.empty(rows, "float32")  # a mean of 1, and whole numbers
    tw.compile(main, target=target)(a, b)
    assert (b == ((a.astype("float32") - 1) ** 2).sum(1)).all()


def columns(rows, cols, threads, dtype, turns):
    @T.prim_func
    def main(A: T.Tensor((turns, rows, cols), dtype), B: T.Tensor((turns, cols), dtype), C: T.Tensor((turns, rows), dtype)):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_fragment((rows, cols), dtype)
            of_columns, of_rows = T.alloc_fragment((cols,), dtype), T.alloc_fragment((rows,), dtype)
            for k in T.serial(turns):
                T.copy(A[k, 0, 0], tile)
                T.reduce_sum(tile, of_columns, dim=0)
                T.reduce_max(tile, of_rows, dim=1)
                T.copy(of_columns, B[k, 0])
                T.copy(of_rows, C[k, 0])

    return main


@pytest.mark.parametrize("rows, cols, threads, dtype", [(32, 2048, 1024, "float32"), (33, 1000, 1024, "int32"), (64, 1024, 512, "float64")])
def test_sums_of_more_columns_than_shared_memory_has_room_for_take_turns(rows, cols, threads, dtype):
    """32 warps that share 2048 columns would want 256 KB."""
    kernel = tw.compile(columns(rows, cols, threads, dtype, 2), engine="simulator")
    a = np.random.default_rng(1).integers(-4, 5, (2, rows, cols)).astype(dtype)
    b, c = np.zeros((2, cols), dtype), np.zeros((2, rows), dtype)
    kernel(a, b, c)
    assert (b == a.sum(1)).all() and (c == a.max(2)).all()
    shared = kernel.explain("sm_90a", as_json=True)["launches"][0]["shared_bytes"]
    assert shared <= 80 << 10, shared
