"""Puzzle 8: softmax of rows that are too long for a tile, in two passes."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    yield {"X": np.sort(random.standard_normal((8, 512)).astype("float32") * 3, 1)}
    yield {"X": (random.standard_normal((10, 300)) * 3 - 200 * np.arange(10)[:, None] * (np.arange(10) % 2)[:, None]).astype("float32")}


def _softmax(X):
    x = X.astype("float64")
    e = np.exp(x - x.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)).astype("float32")


def _running(X, block, scale, keep=True, begin=-np.inf, padding=False, whole=False):
    """What a program with this tile computes that scales its sum by scale(old largest, new largest)."""
    x = X.astype("float64")
    n = x.shape[1]
    if whole:
        n = n // block * block
    elif padding:
        x = np.pad(x, ((0, 0), (0, -n % block)))
        n = x.shape[1]
    largest, total = np.full(len(x), begin), np.zeros(len(x))
    for k in range(0, n, block):
        tile = x[:, k : min(k + block, n)]
        new = np.maximum(largest, tile.max(1))
        part = np.exp(tile - new[:, None]).sum(1)
        total = total * scale(largest, new) + part if keep else part
        largest = new
    return (np.exp(x - largest[:, None]) / total[:, None])[:, : X.shape[1]]


def _by_steps(X, first, second):
    """With tiles of 128 that begin so many elements for each round further on, in the walk for the sum and in that for the result."""
    x = X.astype("float64")
    n = x.shape[1]
    places = np.arange(n)
    seen, stored = (x[:, places // 128 * step + places % 128] for step in (first, second))
    largest = seen.max(1, keepdims=True)
    return np.exp(stored - largest) / np.exp(seen - largest).sum(1, keepdims=True)


def _written(facts):
    """How many elements of each row are written, where they are the first ones; else -1."""
    empty = facts.unwritten()
    n = int((~empty[0]).sum())
    return n if empty[:, n:].all() and not empty[:, :n].any() else -1


def _lost(X, rows):
    """Whether there are such rows, all of them far below 0."""
    return rows.any() and (X.max(1)[rows] < -80).all()


def _right(old, new):
    return np.exp(old - new)


_LAST = "                largest[i] = new[i]\n"
_FIRST = f'''            for i in T.Parallel(2):
                total[i] = total[i] * T.exp(largest[i] - new[i]) + part[i]
{_LAST}'''
_PASS = '''            for i, j in T.Parallel(2, 128):
                tile[i, j] = T.if_then_else(k * 128 + j < N, X[bx * 2 + i, k * 128 + j], -T.infinity("float32"))
'''
_WALKS = ["        for k in T.serial(T.ceildiv(N, 128)):\n" + _PASS, "        for k in T.serial(T.ceildiv(N, 128)):\n            T.copy"]

PUZZLE = Puzzle(
    8,
    "online_softmax",
    "Softmax of long rows, online",
    """
The rows are too long for a tile now: a block takes 2 rows, and walks along them in tiles of 2 x 128. Three walks would do:
for the largest, for the sum, for the result. Two are enough, for the sum need not wait for the largest: when a tile brings a
larger one, the sum so far shrinks by exp(old - new).

    new   = max(largest, the largest of the tile)
    total = total * exp(largest - new) + the sum of exp(tile - new)
    largest = new

Begin with largest = -infinity and total = 0. The second walk stores exp(x - largest) / total. Behind the end of a row a copy
gives 0, which is not -infinity.
""",
    """
    walk 1   | tile | tile | tile |..    largest:  2.0 -> 2.0 -> 3.0
                                         total:    1.4 -> 2.1 -> 2.1 * exp(2 - 3) + 1.6
    walk 2   | tile | tile | tile |..    Y = exp(tile - 3.0) / total
""",
    """@tw.jit
def online_softmax(X, Y):
    M, N = T.const("M, N")
    X: T.Tensor((M, N), "float32")
    Y: T.Tensor((M, N), "float32")
    with T.Kernel(T.ceildiv(M, 2), threads=128) as bx:
        tile = T.alloc_fragment((2, 128), "float32")
        largest, new, part, total = (T.alloc_fragment((2,), "float32") for _ in range(4))
""",
    """        T.fill(largest, -T.infinity("float32"))
        T.clear(total)
        for k in T.serial(T.ceildiv(N, 128)):
            for i, j in T.Parallel(2, 128):
                tile[i, j] = T.if_then_else(k * 128 + j < N, X[bx * 2 + i, k * 128 + j], -T.infinity("float32"))
            T.reduce_max(tile, new, dim=1)
            for i in T.Parallel(2):
                new[i] = T.max(new[i], largest[i])
            for i, j in T.Parallel(2, 128):
                tile[i, j] = T.exp(tile[i, j] - new[i])
            T.reduce_sum(tile, part, dim=1)
            for i in T.Parallel(2):
                total[i] = total[i] * T.exp(largest[i] - new[i]) + part[i]
                largest[i] = new[i]
        for k in T.serial(T.ceildiv(N, 128)):
            T.copy(X[bx * 2, k * 128], tile)
            for i, j in T.Parallel(2, 128):
                tile[i, j] = T.exp(tile[i, j] - largest[i]) / total[i]
            T.copy(tile, Y[bx * 2, k * 128])
""",
    (
        "Walk 1 fills the tile as puzzle 6 does, with -infinity behind the row, and reduces it to new, which then takes the "
        "larger of itself and largest.",
        "After that: tile = exp(tile - new), T.reduce_sum(tile, part, dim=1), total[i] = total[i] * T.exp(largest[i] - "
        "new[i]) + part[i], largest[i] = new[i].",
        "Walk 2 copies each tile again, computes T.exp(tile[i, j] - largest[i]) / total[i] and copies it to Y[bx * 2, k * 128].",
    ),
    ("X", "Y"),
    ("Y",),
    _softmax,
    _cases,
    [
        Mistake(
            "the sum is not scaled",
            "The rows do not add up to 1: the sum of the tiles before was made with an older, smaller largest element. Scale "
            "it by T.exp(largest[i] - new[i]) when a new one comes, before largest[i] becomes new[i].",
            [("total[i] * T.exp(largest[i] - new[i]) + part[i]", "total[i] + part[i]")],
            others=[[(_FIRST, _FIRST.replace(_LAST, "").replace("                total", _LAST + "                total"))]],
            like=lambda X, block: _running(X, block, lambda old, new: 1),
        ),
        Mistake(
            "only whole tiles",
            "The end of each row is left out: N // 128 rounds do not reach it.",
            [(_WALKS[0], _WALKS[0].replace("T.ceildiv(N, 128)", "N // 128"))],
            others=[
                [(_WALKS[1], _WALKS[1].replace("T.ceildiv(N, 128)", "N // 128"))],
                [(walk, walk.replace("T.ceildiv(N, 128)", "N // 128")) for walk in _WALKS],
            ],
            when=lambda f: (
                any(_written(f) == n // block * block < n for n in (f.inputs["X"].shape[1],) for block in (32, 64, 128, 256))
                or any(f.is_like(_running(f.inputs["X"], block, _right, whole=True)) for block in (32, 64, 128, 256))
            ),
        ),
        Mistake(
            "the scale is the wrong way round",
            "The sum grows where it should shrink: the scale is exp(old - new), at most 1.",
            [("T.exp(largest[i] - new[i])", "T.exp(new[i] - largest[i])")],
            like=lambda X, block: _running(X, block, lambda old, new: np.exp(new - old)),
        ),
        Mistake(
            "the sum of the last tile",
            "The rows add up to more than 1: only the last tile's sum is divided by. Add it to the scaled sum of those before.",
            [("total[i] * T.exp(largest[i] - new[i]) + part[i]", "part[i]")],
            like=lambda X, block: _running(X, block, _right, keep=False),
        ),
        Mistake(
            "the padding counts",
            "The rows add up to less than 1: the last tile's places behind the row hold 0, and exp() of them is in the sum. "
            "Put -infinity there.",
            [(_PASS, "            T.copy(X[bx * 2, k * 128], tile)\n")],
            like=lambda X, block: _running(X, block, _right, padding=True),
        ),
        Mistake(
            "the largest begins at 0",
            "Rows whose elements are far below 0 come out as NaN or 0: the largest so far begins at 0, and stays there. Begin "
            "at -infinity.",
            [('T.fill(largest, -T.infinity("float32"))', "T.clear(largest)")],
            when=lambda f: _lost(f.inputs["X"], ~np.isfinite(f.seen("Y")).all(1)),
        ),
        Mistake(
            "what was never written",
            "A tile is read before anything is in it: largest begins as -infinity, total as 0, before the first walk.",
            [("        T.clear(total)\n", "")],
            codes=("TW1090", "TW6002"),
        ),
        Mistake(
            "not divided by the sum",
            "The rows do not add up to 1: they are exp(x - largest), and wait for their division by total[i].",
            [(" / total[i]", "")],
            like=lambda X: np.exp(X.astype("float64") - X.max(1, keepdims=True)),
        ),
        Mistake(
            "the largest stays as it began",
            "Everything is infinite: after the first walk largest is -infinity still. Each round ends with largest[i] = new[i].",
            [(_LAST, "")],
            when=lambda f: np.isposinf(f.seen("Y")).all(),
        ),
        Mistake(
            "each tile is stored at the beginning",
            "Only the first places of each row are written, by all tiles: the tile of round k begins at column k * 128 of Y.",
            [("Y[bx * 2, k * 128]", "Y[bx * 2, 0]")],
            when=lambda f: any(_written(f) == block < f.inputs["X"].shape[1] for block in (32, 64, 128, 256)),
        ),
        Mistake(
            "tiles are read by their number",
            "The tiles of a walk begin at the wrong column of X: the one of round k begins at k * 128, not at k or at 0.",
            [("X[bx * 2, k * 128]", "X[bx * 2, k]")],
            others=[
                [("X[bx * 2, k * 128]", "X[bx * 2, 0]")],
                [("X[bx * 2 + i, k * 128 + j]", "X[bx * 2 + i, j]")],
                [("X[bx * 2 + i, k * 128 + j]", "X[bx * 2 + i, k + j]")],
            ],
            when=lambda f: any(f.is_like(_by_steps(f.inputs["X"], first, second)) for first in (0, 1, 128) for second in (0, 1, 128) if (first, second) != (128, 128)),
        ),
        Mistake(
            "three walks",
            "X is read three times: once for the largest, once for the sum, once for the result. The sum can be made in the "
            "first walk, if it is scaled by exp(old - new).",
            [
                (
                    "            for i, j in T.Parallel(2, 128):\n                tile[i, j] = T.exp(tile[i, j] - new[i])\n"
                    "            T.reduce_sum(tile, part, dim=1)\n" + _FIRST,
                    "            for i in T.Parallel(2):\n                largest[i] = new[i]\n"
                    "        for k in T.serial(T.ceildiv(N, 128)):\n" + _PASS + "            for i, j in T.Parallel(2, 128):\n"
                    "                tile[i, j] = T.exp(tile[i, j] - largest[i])\n            T.reduce_sum(tile, total, "
                    "dim=1, clear=False)\n",
                )
            ],
            slow=lambda f: f.counts["bytes_moved"] > 1.2 * f.best["bytes_moved"],
        ),
    ],
    limits=(1.5, 1.1),
)
