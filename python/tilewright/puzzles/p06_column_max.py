"""Puzzle 6: the largest of each column, where a zero from behind the edge is in the way."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    for m, n in ((64, 128), (100, 70)):
        yield {"X": -1 - random.random((m, n)).astype("float32")}


def _chunks(X, block):
    return [X[k : k + block] for k in range(0, len(X), block)]


PUZZLE = Puzzle(
    6,
    "column_max",
    "The largest of each column",
    """
C = X.max(axis=0). A block takes 64 columns and walks down them in tiles of 32 x 64. The way is that of puzzle 5, along the
other axis, with one thing to think of: what a copy brings from behind the edge is 0, which does not disturb a sum. Here every
element of X is negative.

    T.fill(tile, value)                       the value everywhere
    -T.infinity("float32")                    less than every number
    T.reduce_max(tile, most, dim=0, clear=False)   most[j] = max(most[j], the largest of tile[:, j])
""",
    """
             bx = 0    bx = 1
           +---------+---------+
    k = 0  | 32 x 64 |         |
           +---------+---------+
    k = 1  | -3 -1 ..|         |
           |. 0  0 ..:.. 0  0 .:  not elements of X!
           +----|----+----|----+
    C         max       max
""",
    """@tw.jit
def column_max(X, C):
    M, N = T.const("M, N")
    X: T.Tensor((M, N), "float32")
    C: T.Tensor((N,), "float32")
    with T.Kernel(T.ceildiv(N, 64), threads=128) as bx:
        tile = T.alloc_fragment((32, 64), "float32")
        most = T.alloc_fragment((64,), "float32")
""",
    """        T.fill(most, -T.infinity("float32"))
        for k in T.serial(T.ceildiv(M, 32)):
            for i, j in T.Parallel(32, 64):
                tile[i, j] = T.if_then_else(k * 32 + i < M, X[k * 32 + i, bx * 64 + j], -T.infinity("float32"))
            T.reduce_max(tile, most, dim=0, clear=False)
        T.copy(most, C[bx * 64])
""",
    (
        "T.fill(most, -T.infinity(\"float32\")) first, then a loop over T.ceildiv(M, 32) tiles, each reduced with dim=0 and "
        "clear=False.",
        "Rows from M on must not be zeros: fill the tile by T.Parallel(32, 64) instead of T.copy, and choose by T.if_then_else.",
        "tile[i, j] = T.if_then_else(k * 32 + i < M, X[k * 32 + i, bx * 64 + j], -T.infinity(\"float32\"))",
    ),
    ("X", "C"),
    ("C",),
    lambda X: X.max(0),
    _cases,
    [
        Mistake(
            "zeros take part everywhere",
            "The result is 0 where every element is negative: the largest begins as 0. Begin with T.fill(most, "
            "-T.infinity(\"float32\")).",
            [("T.fill(most, -T.infinity(\"float32\"))", "T.clear(most)")],
            when=lambda f: f.is_like(np.maximum(f.want(), 0)) and len(f.inputs["X"]) % 32 == 0,
        ),
        Mistake(
            "zeros from behind the last row",
            "The result is 0 where X has no 0: rows behind the last one are read as 0, and 0 is the largest here. Put "
            "-infinity there: T.if_then_else(row < M, X[row, column], -T.infinity(\"float32\")).",
            [
                (
                    "            for i, j in T.Parallel(32, 64):\n"
                    "                tile[i, j] = T.if_then_else(k * 32 + i < M, X[k * 32 + i, bx * 64 + j], "
                    "-T.infinity(\"float32\"))\n",
                    "            T.copy(X[k * 32, bx * 64], tile)\n",
                )
            ],
            like=lambda X: np.maximum(X.max(0), 0),
        ),
        Mistake(
            "the wrong axis",
            "dim is the dimension that disappears: dim=0 leaves a number for each column, and dim=1 one for each row, of "
            "which most has none.",
            [("dim=0", "dim=1")],
            codes=("TW1069", "TW3089"),
        ),
        Mistake(
            "each round begins anew",
            "These are the largest of the last tile alone: a reduction clears its result first. With clear=False it goes on "
            "from what is there.",
            [(", clear=False", "")],
            like=lambda X, block: _chunks(X, block)[-1].max(0),
        ),
        Mistake(
            "only whole tiles",
            "The last rows are left out: M // 32 rounds do not reach them. T.ceildiv(M, 32) does.",
            [("T.ceildiv(M, 32)", "M // 32")],
            like=lambda X, block: X[: len(X) // block * block].max(0) if len(X) >= block else None,
        ),
        Mistake(
            "the least",
            "These are the least elements: T.reduce_max, which begins at -infinity.",
            [("T.reduce_max(", "T.reduce_min("), ("T.fill(most, -T", "T.fill(most, T"), ("bx * 64 + j], -T", "bx * 64 + j], T")],
            like=lambda X: X.min(0),
        ),
        Mistake(
            "the largest absolute value",
            "The signs are lost: T.reduce_absmax takes the largest distance from 0, T.reduce_max the largest element.",
            [
                ("T.reduce_max(", "T.reduce_absmax("),
                ("T.fill(most, -T.infinity(\"float32\"))", "T.clear(most)"),
                ("bx * 64 + j], -T.infinity(\"float32\")", "bx * 64 + j], 0"),
            ],
            like=lambda X: np.abs(X).max(0),
        ),
        Mistake(
            "a tile begins one row after the other",
            "In round k the tile begins at row k, so that the tiles overlap, and the last rows are left out. They are 32 rows "
            "high: it begins at k * 32.",
            [("k * 32 + i < M, X[k * 32 + i,", "k + i < M, X[k + i,")],
            like=lambda X, block: X[: -(-len(X) // block) - 1 + block].max(0),
        ),
        Mistake(
            "two blocks store to one element",
            "Two blocks store to the same element of C. Each has 64 columns, and those of block bx begin at C[bx * 64].",
            [("C[bx * 64]", "C[bx]")],
            codes=("TW9001",),
        ),
    ],
)
