"""Tiles that take longer the further they lie along the grid, dealt to fewer blocks than there are tiles: each is taken once."""
import itertools

import numpy as np
import pytest

import tilewright as tw
import tilewright.language as T

TILE = 64
RANDOM = np.random.default_rng(8)


def triangular(blocks, along, falls):
    """C[b, h, i] = the sum of A[b, h, j] @ B[j] over the tiles j up to i, or from i on."""
    batch, heads, rows = (T.dynamic(n) for n in ("batch", "heads", "rows"))

    @T.prim_func
    def triangular(A: T.Tensor((batch, heads, rows, TILE, TILE), "float16"), B: T.Tensor((rows, TILE, TILE), "float16"),
                   C: T.Tensor((batch, heads, rows, TILE, TILE), "float32")):  # fmt: skip
        with T.Kernel(*((rows, heads, batch) if along == 0 else (batch, heads, rows)), threads=128) as (x, h, z):
            T.annotate_plan(f"work persistent blocks={blocks}")
            A_shared, B_shared = (T.alloc_shared((TILE, TILE), "float16") for _ in range(2))
            sums = T.alloc_fragment((TILE, TILE), "float32")
            i, b = (x, z) if along == 0 else (z, x)
            T.clear(sums)
            first = i if falls else 0
            for j in T.Pipelined(rows - i if falls else i + 1, num_stages=2):
                T.copy(A[b, h, first + j, 0, 0], A_shared)
                T.copy(B[first + j, 0, 0], B_shared)
                T.gemm(A_shared, B_shared, sums)
            T.copy(sums, C[b, h, i, 0, 0])

    return triangular


@pytest.mark.parametrize("along, falls", list(itertools.product((0, 2), (False, True))))
@pytest.mark.parametrize("blocks, extents", [
    (1, (1, 2, 3)), (2, (1, 1, 5)), (2, (1, 3, 3)), (3, (1, 3, 5)), (4, (2, 2, 4)), (4, (1, 1, 3)), (5, (1, 5, 1)), (5, (3, 1, 5)), (7, (2, 3, 3)),
])  # fmt: skip
def test_each_tile_is_taken_once(blocks, extents, along, falls):
    batch, heads, rows = extents
    kernel = tw.compile(triangular(blocks, along, falls), target="simulator -arch=sm_90a")
    a, b = (RANDOM.integers(-2, 3, shape).astype("float16") for shape in ((*extents, TILE, TILE), (rows, TILE, TILE)))
    c = np.full(a.shape, np.nan, "float32")
    kernel(a, b, c)
    products = a.astype("float32") @ b.astype("float32")
    sums = np.cumsum(products[:, :, ::-1], 2)[:, :, ::-1] if falls else np.cumsum(products, 2)
    assert np.array_equal(c, sums)


def turns_of(program):
    text = str(tw.compile(program, engine="interpreter").explain("sm_90a"))
    return text.count("for turn in 0 .. turns:"), text.count("last_wave")


def test_pairs_are_dealt_where_one_dimension_says_how_long_a_tile_takes():
    assert turns_of(triangular(4, 0, False)) == turns_of(triangular(4, 2, True)) == (2, 0)
