"""Puzzle 12: a transpose through shared memory."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    for m, n in ((128, 192), (70, 100)):
        yield {"A": random.standard_normal((m, n)).astype("float32")}


def _reached(A, block, other):
    whole = A.T.copy()
    whole[A.shape[1] // other * other :], whole[:, A.shape[0] // block * block :] = np.nan, np.nan
    return whole


def _untransposed_tiles(A, block):
    """Tiles in their new places that are not transposed themselves; zeros behind the edges of A."""
    m, n = A.shape
    padded = np.pad(A, ((0, -m % block), (0, -n % block)))
    rows, columns = (extent // block for extent in padded.shape)
    tiles = padded.reshape(rows, block, columns, block).transpose(2, 1, 0, 3).reshape(columns * block, rows * block)
    return tiles[:n, :m]


def _conflicts(facts):
    c = facts.counts
    return "" if c["shared_wavefronts"] <= 1.3 * c["shared_wavefronts_ideal"] else "threads wait for each other at the banks of shared memory"


_IN = "        for i, j in T.Parallel(32, 32):\n            s[i, j] = A[by * 32 + i, bx * 32 + j]\n"
_OUT = "        for i, j in T.Parallel(32, 32):\n            B[bx * 32 + i, by * 32 + j] = s[j, i]\n"

PUZZLE = Puzzle(
    12,
    "transpose",
    "A transpose through shared memory",
    """
B = A.T. Memory likes neighbours: a warp whose 32 threads touch 32 neighbours in a row is served at once, one that walks down
a column asks for 32 pieces of which it uses 4 bytes each. A transpose reads rows and writes columns, or the reverse; so it
goes through a tile in shared memory: rows in, rows out, and the turn happens on chip.

Shared memory has 32 banks of 4 bytes; threads of a warp that touch different rows of one bank wait for each other. The
compiler deals the points of T.Parallel so that they do not. If you deal them yourself, by tx = T.get_thread_binding(0), it is
yours to see to: a column of a tile that is 32 wide is all in one bank. T.alloc_shared((32, 33), ...) has a column more than
is used, which moves each row on by a bank.
""",
    """
       A            tile s              B
    | 1 2 3 |    | 1 2 3 . |        | 1 4 7 |
    | 4 5 6 | -> | 4 5 6 . |   ->   | 2 5 8 |    B[bx tile, by tile][i, j] = s[j, i]
    | 7 8 9 |    | 7 8 9 . |        | 3 6 9 |
      rows in      read by columns    rows out
""",
    """@tw.jit
def transpose(A, B):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    B: T.Tensor((N, M), "float32")
""",
    """    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
        s = T.alloc_shared((32, 33), "float32")
        for i, j in T.Parallel(32, 32):
            s[i, j] = A[by * 32 + i, bx * 32 + j]
        for i, j in T.Parallel(32, 32):
            B[bx * 32 + i, by * 32 + j] = s[j, i]
""",
    (
        "The grid is that of puzzle 3, for tiles of 32 x 32; the tile: s = T.alloc_shared((32, 33), \"float32\").",
        "Two loops over T.Parallel(32, 32). The first: s[i, j] = A[by * 32 + i, bx * 32 + j].",
        "The second stores rows of B, whose tile is at row bx * 32 and column by * 32: B[bx * 32 + i, by * 32 + j] = s[j, i].",
    ),
    ("A", "B"),
    ("B",),
    lambda A: A.T.copy(),
    _cases,
    [
        Mistake(
            "only the tiles change places",
            "The tiles are in their new places, but each one lies as it did: read s[j, i], not s[i, j].",
            [("= s[j, i]", "= s[i, j]")],
            like=_untransposed_tiles,
        ),
        Mistake(
            "only the tiles are transposed",
            "Each tile is transposed, but stands where it stood: the tile at row by * 32, column bx * 32 of A comes to row bx * 32, "
            "column by * 32 of B.",
            [("B[bx * 32 + i, by * 32 + j]", "B[by * 32 + i, bx * 32 + j]")],
            when=lambda f: _tiles_stayed(f.seen("B"), f.inputs["A"]),
        ),
        Mistake(
            "nothing is transposed",
            "B is A, as far as it fits: the index of B has to be that of A the other way round.",
            [("B[bx * 32 + i, by * 32 + j] = s[j, i]", "B[by * 32 + i, bx * 32 + j] = s[i, j]")],
            when=lambda f: np.array_equal(*(x[: min(x.shape), : min(x.shape)] for x in (f.got(), f.inputs["A"]))),
        ),
        Mistake(
            "transposed in place",
            "Places of a tile read what others of the same loop write, and nothing says who is first. Read the tile in one "
            "loop, and store to B in that same statement: B[...] = s[j, i].",
            [
                (
                    "        for i, j in T.Parallel(32, 32):\n            B[bx * 32 + i, by * 32 + j] = s[j, i]",
                    "        for i, j in T.Parallel(32, 32):\n            s[i, j] = s[j, i]\n        for i, j in "
                    "T.Parallel(32, 32):\n            B[bx * 32 + i, by * 32 + j] = s[i, j]",
                )
            ],
            codes=("TW6016", "TW6003", "TW1091"),
        ),
        Mistake(
            "tiles of B lie over each other",
            "Blocks store to the same elements of B: the tile of block bx, by begins at row bx * 32, column by * 32.",
            [("B[bx * 32 + i, by * 32 + j]", "B[bx + i, by + j]")],
            others=[[("B[bx * 32 + i, by * 32 + j]", "B[i, j]")]],
            codes=("TW9001",),
        ),
        Mistake(
            "the tile is too small",
            "An index lies outside of the tile: T.alloc_shared((32, 33), ...) has the rows 0 to 31 and the columns 0 to 32.",
            [("T.alloc_shared((32, 33)", "T.alloc_shared((32, 16)")],
            codes=("TW6001", "TW1036", "TW3010", "TW3073"),
        ),
        Mistake(
            "the grid is rounded down",
            "The last rows or columns are missing: T.ceildiv rounds up.",
            [("T.ceildiv(N, 32)", "N // 32"), ("T.ceildiv(M, 32)", "M // 32")],
            like=_reached,
        ),
        Mistake(
            "memory is walked through by columns",
            "Right, but warps touch global memory by columns, in pieces of which they use a part. Go through a shared tile: rows in, "
            "rows out, the last index of A and of B is j both times.",
            [
                ('        s = T.alloc_shared((32, 33), "float32")\n' + _IN, "        tx = T.get_thread_binding(0)\n"),
                (
                    _OUT,
                    "        for r in T.serial(8):\n            B[bx * 32 + r * 4 + tx // 32, by * 32 + tx % 32] = A[by * 32 + tx % 32, "
                    "bx * 32 + r * 4 + tx // 32]\n",
                ),
            ],
            slow=lambda f: f.counts["global_sectors"] > 1.3 * f.best["global_sectors"],
        ),
        Mistake(
            "bank conflicts",
            "Right, but threads wait for each other at the banks of shared memory: a column of a tile that is 32 wide lies in "
            "one bank. Make the tile 33 wide, or leave the dealing to T.Parallel.",
            [
                ("T.alloc_shared((32, 33)", "T.alloc_shared((32, 32)"),
                (
                    _IN,
                    "        tx = T.get_thread_binding(0)\n        for r in T.serial(8):\n"
                    "            s[r * 4 + tx // 32, tx % 32] = A[by * 32 + r * 4 + tx // 32, bx * 32 + tx % 32]\n",
                ),
                (
                    _OUT,
                    "        for r in T.serial(8):\n            B[bx * 32 + r * 4 + tx // 32, by * 32 + tx % 32] = s[tx % 32, "
                    "r * 4 + tx // 32]\n",
                ),
            ],
            slow=_conflicts,
        ),
    ],
    limits=(1.4, 1.15),
    steps=(6.0, 1.6),
    needs=_conflicts,
)


def _tiles_stayed(got, A):
    for block in (8, 16, 32, 64):
        k = min(A.shape) // block * block
        if k > block and np.array_equal(got[:k, :k], A[:k, :k].reshape(k // block, block, k // block, block).transpose(0, 3, 2, 1).reshape(k, k)):
            return True
    return False
