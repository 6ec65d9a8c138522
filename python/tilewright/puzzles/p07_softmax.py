"""Puzzle 7: softmax of rows that fit into a tile."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    yield {"X": (random.standard_normal((32, 128)) + 0.5).astype("float32")}
    yield {"X": (random.standard_normal((21, 100)) * 100 + 200 * np.arange(-10, 11)[:, None]).astype("float32")}


def _shares(x):
    return x / x.sum(1, keepdims=True)


def _softmax(X):
    x = X.astype("float64")
    return _shares(np.exp(x - x.max(1, keepdims=True))).astype("float32")


def _with_padding(X, block):
    """The places of a tile behind the row count as zeros."""
    x = np.pad(X.astype("float64"), ((0, 0), (0, -X.shape[1] % block)))
    return _shares(np.exp(x - x.max(1, keepdims=True)))[:, : X.shape[1]]


def _one_largest(X, block):
    """The largest of a tile for all of its rows."""
    x = X.astype("float64")
    largest = np.concatenate([np.full(len(x[k : k + block]), x[k : k + block].max()) for k in range(0, len(x), block)])
    return _shares(np.exp((x - largest[:, None]).astype("float32").astype("float64")).astype("float32"))


PUZZLE = Puzzle(
    7,
    "softmax",
    "Softmax of rows",
    """
Y[i, :] = exp(X[i, :] - m) / s, where m is the largest element of the row, and s the sum of what is above the line. N is a
number that the compiler knows, so a tile may be as wide as a row: 4 x N. T.exp is np.exp; a loop over T.Parallel(4, N)
changes a tile element by element, and reads largest[i] or total[i] where it likes.

Why subtract the largest? exp(89) is more than float32 can hold.
""",
    """
    X[i]   1.0   3.0   2.0        largest 3.0
    - max -2.0   0.0  -1.0
    exp    0.14  1.0   0.37       total   1.50
    Y[i]   0.09  0.67  0.24
""",
    """@tw.jit
def softmax(X, Y):
    M, N = T.const("M, N")
    X: T.Tensor((M, N), "float32")
    Y: T.Tensor((M, N), "float32")
    with T.Kernel(T.ceildiv(M, 4), threads=128) as bx:
        x = T.alloc_fragment((4, N), "float32")
        largest = T.alloc_fragment((4,), "float32")
        total = T.alloc_fragment((4,), "float32")
""",
    """        T.copy(X[bx * 4, 0], x)
        T.reduce_max(x, largest, dim=1)
        for i, j in T.Parallel(4, N):
            x[i, j] = T.exp(x[i, j] - largest[i])
        T.reduce_sum(x, total, dim=1)
        for i, j in T.Parallel(4, N):
            x[i, j] = x[i, j] / total[i]
        T.copy(x, Y[bx * 4, 0])
""",
    (
        "Copy the rows into x, reduce them to largest, change x, reduce it to total, change x again, copy it to Y.",
        "The first change: for i, j in T.Parallel(4, N): x[i, j] = T.exp(x[i, j] - largest[i]).",
        "The second: x[i, j] = x[i, j] / total[i]. The reductions have dim=1, the copies begin at row bx * 4.",
    ),
    ("X", "Y"),
    ("Y",),
    _softmax,
    _cases,
    [
        Mistake(
            "the largest is not subtracted",
            "Large elements overflow: exp(89) is infinite in float32, and infinity / infinity is NaN. Subtract the row's "
            "largest element before T.exp.",
            [("x[i, j] - largest[i]", "x[i, j]")],
            when=lambda f: f.inputs["X"].max() > 88 and not np.isfinite(f.seen("Y")[f.inputs["X"].max(1).argmax()]).all(),
        ),
        Mistake(
            "not divided by the sum",
            "The rows do not add up to 1: they are exp(x - max), and wait for their division by the sum.",
            [("x[i, j] / total[i]", "x[i, j]")],
            like=lambda X: np.exp(X.astype("float64") - X.max(1, keepdims=True)),
        ),
        Mistake(
            "a base of 2",
            "These are powers of 2: T.exp2(x) is 2 ** x. Softmax takes T.exp(x), or T.exp2(x * 1.44269504).",
            [("T.exp(", "T.exp2(")],
            like=lambda X: _shares(np.exp2(X.astype("float64") - X.max(1, keepdims=True))),
        ),
        Mistake(
            "multiplied by the sum",
            "exp(x - max) is multiplied by the sum: divide.",
            [("x[i, j] / total[i]", "x[i, j] * total[i]")],
            like=lambda X: (lambda e: e * e.sum(1, keepdims=True))(np.exp(X.astype("float64") - X.max(1, keepdims=True))),
        ),
        Mistake(
            "divided by the number of elements",
            "exp(x - max) is divided by N: it is to be divided by the row's sum, T.reduce_sum of x after T.exp.",
            [("x[i, j] / total[i]", "x[i, j] / N")],
            like=lambda X: np.exp(X.astype("float64") - X.max(1, keepdims=True)) / X.shape[1],
        ),
        Mistake(
            "the sum of what was there before exp",
            "It is divided by the sum of the elements of X: reduce x to total after T.exp, not before.",
            [
                (" - largest[i])\n        T.reduce_sum(x, total, dim=1)\n", " - largest[i])\n"),
                ("        T.reduce_max(x, largest, dim=1)\n", "        T.reduce_max(x, largest, dim=1)\n        T.reduce_sum(x, total, dim=1)\n"),
            ],
            like=lambda X: np.exp(X.astype("float64") - X.max(1, keepdims=True)) / X.astype("float64").sum(1, keepdims=True),
        ),
        Mistake(
            "the padding counts",
            "The rows add up to less than 1: the tile is wider than a row, its places behind the row are 0, and exp() of them "
            "is in the sum. Make the tile N wide, or put -infinity there.",
            [
                ("x = T.alloc_fragment((4, N)", "x = T.alloc_fragment((4, 128)"),
                ("T.Parallel(4, N):\n            x[i, j] = T.exp(", "T.Parallel(4, 128):\n            x[i, j] = T.exp("),
                ("T.Parallel(4, N):\n            x[i, j] = x", "T.Parallel(4, 128):\n            x[i, j] = x"),
            ],
            like=_with_padding,
        ),
        Mistake(
            "rows are read by the block's number",
            "These are the softmax of other rows: the first row of block bx is bx * 4, and X[bx, 0] is the one whose number is the block's.",
            [("X[bx * 4, 0]", "X[bx, 0]")],
            like=lambda X, block: _softmax(X)[np.arange(len(X)) // block + np.arange(len(X)) % block],
        ),
        Mistake(
            "one largest for all rows of a tile",
            "Rows that are much less than others of their tile are lost: each row subtracts its own largest element, largest[i].",
            [("x[i, j] - largest[i]", "x[i, j] - T.max(T.max(largest[0], largest[1]), T.max(largest[2], largest[3]))")],
            like=_one_largest,
        ),
    ],
)
