"""Neighbours that are loaded under conditions, and stored in a narrower type: g++ 12 loads a group of them by one mask."""
import numpy as np
import pytest
import tilewright.language as T
from on_engines import run

torch = pytest.importorskip("torch")

ROWS = 64


def beyond_the_tensor(count):
    @T.prim_func
    def main(A: T.Tensor((ROWS * count,), "float32"), M: T.Tensor((ROWS * count,), "bool"), O: T.Tensor((ROWS, count), "bfloat16")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(ROWS, count):
                O[i, j] = T.cast(A[count * i + j - 5], "bfloat16")

    return main, lambda a, m: np.concatenate([np.zeros(5), a[:-5]])


def masked(count):
    @T.prim_func
    def main(A: T.Tensor((ROWS * count,), "float32"), M: T.Tensor((ROWS * count,), "bool"), O: T.Tensor((ROWS, count), "bfloat16")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(ROWS, count):
                O[i, j] = T.cast(T.if_then_else(M[count * i + j], A[count * i + j], 0.0), "bfloat16")

    return main, lambda a, m: np.where(m, a, 0)


def written_out(count):
    @T.prim_func
    def main(A: T.Tensor((ROWS * count,), "float32"), M: T.Tensor((ROWS * count,), "bool"), O: T.Tensor((ROWS, count), "bfloat16")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(ROWS):
                for j in [k for k in (0, 1, 2, 3) if k < count]:
                    O[i, j] = T.cast(T.if_then_else(M[count * i + j], A[count * i + j], 0.0), "bfloat16")

    return main, lambda a, m: np.where(m, a, 0)


def by_variables(count):
    @T.prim_func
    def main(A: T.Tensor((ROWS * count,), "float32"), M: T.Tensor((ROWS * count,), "bool"), O: T.Tensor((ROWS, count), "bfloat16")):
        with T.Kernel(1, threads=32):
            for i in T.serial(ROWS):
                x = [T.alloc_var("float32") for _ in range(count)]
                for j in [k for k in (0, 1, 2, 3) if k < count]:
                    x[j][0] = 0.0
                    if M[count * i + j]:
                        x[j][0] = A[count * i + j]
                for j in [k for k in (0, 1, 2, 3) if k < count]:
                    O[i, j] = T.cast(x[j][0], "bfloat16")

    return main, lambda a, m: np.where(m, a, 0)


def rows_beyond_the_tensor(count):
    @T.prim_func
    def main(A: T.Tensor((32, 101), "float32"), M: T.Tensor((1,), "bool"), O: T.Tensor((16, 96), "bfloat16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((96, 96), "bfloat16")
            b = T.alloc_shared((16, 96), "bfloat16")
            c = T.alloc_fragment((96, 16), "float32")
            T.fill(a, 1)
            T.copy(A[1:17, -8:88], b)  # in pairs, as products of bfloat16 on a CPU want them
            T.gemm(a, b, c, transpose_B=True, clear_accum=True)
            T.copy(b, O)

    return main, lambda a, m: np.concatenate([np.zeros((16, 8)), a.reshape(32, 101)[1:17, :88]], axis=1)


def result(program, engine, a, m, shape):
    out = torch.zeros(shape, dtype=torch.bfloat16)
    run(program, engine, torch.from_numpy(a), torch.from_numpy(m), out)
    return out.float().numpy()


@pytest.mark.parametrize("count", (2, 3, 4))
@pytest.mark.parametrize("form", (beyond_the_tensor, masked, written_out, by_variables))
@pytest.mark.parametrize("engine", ("interpreter", "cpu"))
def test_neighbours_are_loaded_under_their_own_conditions(engine, form, count):
    program, reference = form(count)
    random = np.random.default_rng(count)
    a, m = random.integers(1, 100, ROWS * count).astype("float32"), random.random(ROWS * count) < 0.5
    assert np.array_equal(result(program, engine, a, m, (ROWS, count)), reference(a, m).reshape(ROWS, count))


def test_a_tile_in_pairs_that_begins_before_its_tensor():
    program, reference = rows_beyond_the_tensor(2)
    a = np.random.default_rng(1).integers(1, 100, (32, 101)).astype("float32")
    assert np.array_equal(result(program, "cpu", a, np.zeros(1, bool), (16, 96)), reference(a, None))
