"""Puzzle 3: an outer sum, by blocks of two dimensions."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    for m, n in ((128, 192), (100, 70)):
        yield {"A": random.standard_normal(m).astype("float32"), "B": random.standard_normal(n).astype("float32")}


def _outer(A, B):
    return A[:, None] + B[None, :]


def _reached(A, B, rows, columns):
    """The outer sum as far as blocks reach."""
    whole = _outer(A, B)
    whole[rows:], whole[:, columns:] = np.nan, np.nan
    return whole


def _at(values, places):
    """Elements of an array; 0 behind its end."""
    return np.where(places < len(values), values[np.minimum(places, len(values) - 1)], 0).astype("float32")


PUZZLE = Puzzle(
    3,
    "outer",
    "The outer sum",
    """
C[i, j] = A[i] + B[j] for all i and j; in NumPy, A[:, None] + B[None, :]. The grid has two dimensions now: T.Kernel(x, y)
starts x * y blocks, and `bx, by` say which one this is. A block makes a tile of 32 rows and 64 columns of C: bx counts
tiles along the columns, by along the rows.
""",
    """
                    B  [ bx=0: 64 ][ bx=1: 64 ] ...
                       +-----------+-----------+
    A  by=0: 32 rows   |  (0, 0)   |  (1, 0)   |     C: one block (bx, by)
                       +-----------+-----------+        for each tile of 32 x 64
       by=1: 32 rows   |  (0, 1)   |  (1, 1)   |
                       +-----------+-----------+
""",
    """@tw.jit
def outer(A, B, C):
    M, N = T.const("M, N")
    A: T.Tensor((M,), "float32")
    B: T.Tensor((N,), "float32")
    C: T.Tensor((M, N), "float32")
""",
    """    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 32), threads=128) as (bx, by):
        for i, j in T.Parallel(32, 64):
            C[by * 32 + i, bx * 64 + j] = A[by * 32 + i] + B[bx * 64 + j]
""",
    (
        "Begin with: with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 32), threads=128) as (bx, by):",
        "T.Parallel(32, 64) has two places: for i, j in T.Parallel(32, 64). The row in C is by * 32 + i.",
        "The column is bx * 64 + j. A is read at the row, B at the column.",
    ),
    ("A", "B", "C"),
    ("C",),
    _outer,
    _cases,
    [
        Mistake(
            "the grid is rounded down",
            "The last rows or columns are missing: // rounds down, and T.ceildiv up.",
            [("T.ceildiv(N, 64)", "N // 64"), ("T.ceildiv(M, 32)", "M // 32")],
            others=[[("T.ceildiv(N, 64)", "N // 64")], [("T.ceildiv(M, 32)", "M // 32")]],
            like=lambda A, B, block, other: _reached(A, B, len(A) // block * block, len(B) // other * other),
        ),
        Mistake(
            "the grid counts the other way round",
            "A part of C is missing, on one side: the grid has as many blocks along x as rows ask for, and along y as columns "
            "do. The first extent of T.Kernel is that of bx, which counts columns here: T.ceildiv(N, 64).",
            [("T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 32)", "T.Kernel(T.ceildiv(M, 32), T.ceildiv(N, 64)")],
            when=lambda f: any(
                f.is_like(_reached(f.inputs["A"], f.inputs["B"], -(-len(f.inputs["B"]) // c) * r, -(-len(f.inputs["A"]) // r) * c))
                for r in (8, 16, 32, 64, 128)
                for c in (8, 16, 32, 64, 128)
                if r != c
            ),
        ),
        Mistake(
            "A and B take each other's index",
            "A is read at the column and B at the row. C[i, j] is A[i] + B[j].",
            [("A[by * 32 + i] + B[bx * 64 + j]", "A[bx * 64 + j] + B[by * 32 + i]")],
            like=lambda A, B: _at(A, np.arange(len(B)))[None, :] + _at(B, np.arange(len(A)))[:, None],
        ),
        Mistake(
            "a row of blocks is missing in an index",
            "Every row of blocks reads the same elements of A, the first ones, or every column of blocks those of B: an index "
            "lacks its by * 32 or bx * 64.",
            [("A[by * 32 + i]", "A[i]")],
            others=[[("B[bx * 64 + j]", "B[j]")], [("A[by * 32 + i] + B[bx * 64 + j]", "A[i] + B[j]")]],
            when=lambda f: any(
                f.is_like(model)
                for a, c in [(f.inputs["A"], f.inputs["B"])]
                for rows in [a, *(np.resize(a[:b], a.shape) for b in (8, 16, 32, 64, 128))]
                for columns in [c, *(np.resize(c[:b], c.shape) for b in (8, 16, 32, 64, 128))]
                for model in [_outer(rows, columns)]
                if rows is not a or columns is not c
            ),
        ),
        Mistake(
            "the store is transposed",
            "C[i, j] holds what belongs at C[j, i], as far as it fits: the row comes first in the index of C.",
            [("C[by * 32 + i, bx * 64 + j]", "C[bx * 64 + j, by * 32 + i]")],
            when=lambda f: _is_transposed(f.got(), f.want()),
        ),
        Mistake(
            "a product",
            "These are products: the outer sum adds.",
            [("A[by * 32 + i] + B", "A[by * 32 + i] * B")],
            like=lambda A, B: A[:, None] * B[None, :],
        ),
    ],
)


def _is_transposed(got, want):
    """Whether it is the other way round where both have a place for it."""
    k = min(got.shape)
    return np.allclose(got[:k, :k], want[:k, :k].T)
