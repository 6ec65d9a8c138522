"""Puzzle 5: sums of rows."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    for m, n in ((64, 256), (50, 200)):
        yield {"X": random.integers(-8, 9, (m, n)).astype("float32")}


def _whole_chunks(X, block):
    return X[:, : X.shape[1] // block * block].sum(1)


def _last_chunk(X, block):
    return X[:, (X.shape[1] - 1) // block * block :].sum(1)


def _first_chunk(X, block):
    return X[:, :block].sum(1)


PUZZLE = Puzzle(
    5,
    "row_sum",
    "Sums of rows",
    """
S = X.sum(axis=1). A block takes 16 rows, and walks along them in tiles of 16 x 64, for rows may be long. A tile is a small
array on the chip: T.alloc_fragment(shape, dtype) makes one in the registers of the block's threads. What it holds at first is
undefined.

    T.copy(X[r, c], tile)                     the tile at row r and column c of X, zeros behind its edges
    T.clear(tile)                             zeros
    T.reduce_sum(tile, sums, dim=1)           sums[i] = the sum of tile[i, :]
    T.reduce_sum(tile, sums, dim=1, clear=False)   the same, added to what is in sums
    T.copy(sums, S[r])                        a tile to its place in S
""",
    """
             k = 0      k = 1      k = 2
           +----------+----------+------+...+
    bx = 0 | 16 x 64  | 16 x 64  |      : 0 :  --> + + +  --> S[0:16]
           +----------+----------+------+...+
    bx = 1 |          |          |      : 0 :  --> + + +  --> S[16:32]
           +----------+----------+------+...+
""",
    """@tw.jit
def row_sum(X, S):
    M, N = T.const("M, N")
    X: T.Tensor((M, N), "float32")
    S: T.Tensor((M,), "float32")
    with T.Kernel(T.ceildiv(M, 16), threads=128) as bx:
        tile = T.alloc_fragment((16, 64), "float32")
        sums = T.alloc_fragment((16,), "float32")
""",
    """        T.clear(sums)
        for k in T.serial(T.ceildiv(N, 64)):
            T.copy(X[bx * 16, k * 64], tile)
            T.reduce_sum(tile, sums, dim=1, clear=False)
        T.copy(sums, S[bx * 16])
""",
    (
        "A loop of T.ceildiv(N, 64) rounds: for k in T.serial(T.ceildiv(N, 64)). In it, a copy and a reduction.",
        "The sums go on from round to round: T.clear(sums) before the loop, clear=False in it.",
        "In round k: T.copy(X[bx * 16, k * 64], tile), then T.reduce_sum(tile, sums, dim=1, clear=False). After the loop: "
        "T.copy(sums, S[bx * 16]).",
    ),
    ("X", "S"),
    ("S",),
    lambda X: X.sum(1),
    _cases,
    [
        Mistake(
            "the sums begin undefined",
            "The sums are added to before anything is in them: T.clear(sums) before the loop. (np.empty has the same trap.)",
            [("        T.clear(sums)\n", "")],
            codes=("TW1090", "TW6002"),
        ),
        Mistake(
            "only whole tiles are summed",
            "The sums stop before the end of the rows: N // 64 rounds leave the rest of a row out. T.ceildiv(N, 64) takes it, "
            "and what the last tile has too much is 0.",
            [("T.ceildiv(N, 64)", "N // 64")],
            like=_whole_chunks,
        ),
        Mistake(
            "each round begins anew",
            "These are the sums of the last tile alone: they are cleared in every round. Clear them once, before the loop, "
            "and reduce with clear=False.",
            [(", clear=False", "")],
            like=_last_chunk,
        ),
        Mistake(
            "the same tile in every round",
            "Every round adds the same tile: the copy's column must go on with the loop, k * 64.",
            [("k * 64", "0")],
            like=lambda X, block: X[:, :block].sum(1) * -(-X.shape[1] // block),
        ),
        Mistake(
            "only the first tile is summed",
            "These are the sums of the first tile alone: a loop over the tiles of the rows is missing.",
            [("T.serial(T.ceildiv(N, 64))", "T.serial(1)")],
            like=_first_chunk,
        ),
        Mistake(
            "the wrong axis",
            "dim is the dimension that disappears, as axis in NumPy: rows of 64 elements become one number by dim=1. With "
            "dim=0 there is a number for each column, and sums has none for them.",
            [("dim=1", "dim=0")],
            codes=("TW1069", "TW3089"),
        ),
        Mistake(
            "the largest, not the sum",
            "These are the largest elements of the rows: T.reduce_sum adds.",
            [("T.reduce_sum(tile", "T.reduce_max(tile")],
            when=lambda f: f.is_like(f.inputs["X"].max(1)) or f.is_like(np.maximum(f.inputs["X"].max(1), 0)),
        ),
        Mistake(
            "every block sums the first rows",
            "The sums of the first rows stand everywhere: the copy of the tile begins at row 0 in every block. Its rows begin "
            "at bx * 16.",
            [("X[bx * 16, k * 64]", "X[0, k * 64]")],
            like=lambda X, block: np.resize(X[:block].sum(1), len(X)),
        ),
        Mistake(
            "a tile begins one column after the other",
            "In round k the tile begins at column k, so that the tiles overlap. They are 64 columns wide: it begins at k * 64.",
            [("k * 64]", "k]")],
            like=lambda X, block: sum(X[:, k : k + block].sum(1) for k in range(-(-X.shape[1] // block))),
        ),
        Mistake(
            "a block begins one row after the other",
            "The tile of block bx begins at row bx, so that the blocks overlap. They have 16 rows: it begins at bx * 16.",
            [("X[bx * 16, ", "X[bx, ")],
            like=lambda X, block: X.sum(1)[[r // block + r % block for r in range(len(X))]],
        ),
        Mistake(
            "two blocks store to one element",
            "Two blocks store to the same element of S. Each has 16 sums, and those of block bx begin at S[bx * 16].",
            [("S[bx * 16]", "S[bx]")],
            codes=("TW9001",),
        ),
    ],
)
