"""Puzzle 4: an elementwise gradient, fused."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    for m, n in ((64, 128), (50, 70)):
        a, g = (random.integers(-4, 5, (m, n)).astype("float32") for _ in range(2))
        yield {"A": a, "B": random.integers(-4, 5, n).astype("float32") * 0.5, "G": g}


PUZZLE = Puzzle(
    4,
    "gradient",
    "Several operations in one pass",
    """
A layer computes Y = max(A * B, 0), where the row B is multiplied with every row of A. Somebody hands you G, the gradient of
Y, and wants that of A:

    D[i, j] = G[i, j] * B[j]   where A[i, j] * B[j] > 0, else 0

NumPy writes np.where(A * B > 0, G * B, 0), and walks through memory four times for it. In a kernel the temporaries are
values: read each element once, compute, store. T.if_then_else(condition, a, b) is np.where of one element. You choose the
blocks.
""",
    """
    A [i, j] ----+
    B    [j] ----+--> (A * B > 0) ? G * B : 0 --> D [i, j]
    G [i, j] ----+
                      nothing in between goes to memory
""",
    """@tw.jit
def gradient(A, B, G, D):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    B: T.Tensor((N,), "float32")
    G: T.Tensor((M, N), "float32")
    D: T.Tensor((M, N), "float32")
""",
    """    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 32), threads=128) as (bx, by):
        for i, j in T.Parallel(32, 64):
            a, b = A[by * 32 + i, bx * 64 + j], B[bx * 64 + j]
            D[by * 32 + i, bx * 64 + j] = T.if_then_else(a * b > 0, G[by * 32 + i, bx * 64 + j] * b, 0)
""",
    (
        "The blocks are those of puzzle 3, and so is the index of every matrix.",
        "Name what is used twice: b = B[bx * 64 + j]. Names are values, which live in registers.",
        "Store T.if_then_else(a * b > 0, g * b, 0), where a and g are the elements of A and G.",
    ),
    ("A", "B", "G", "D"),
    ("D",),
    lambda A, B, G: np.where(A * B > 0, G * B, np.float32(0)),
    _cases,
    [
        Mistake(
            "no mask",
            "G * B is there everywhere: where A * B is not positive, max() gave 0, and no gradient goes through.",
            [("T.if_then_else(a * b > 0, G[by * 32 + i, bx * 64 + j] * b, 0)", "G[by * 32 + i, bx * 64 + j] * b")],
            like=lambda A, B, G: G * B,
        ),
        Mistake(
            "the mask looks at A alone",
            "The condition is that of A > 0. B may be negative as well: what must be positive is the product A * B.",
            [("a * b > 0", "a > 0")],
            like=lambda A, B, G: np.where(A > 0, G * B, 0),
        ),
        Mistake(
            "the mask looks at B alone",
            "The condition is that of B > 0. A may be negative as well: what must be positive is the product A * B.",
            [("a * b > 0", "b > 0")],
            like=lambda A, B, G: np.where(B > 0, G * B, 0),
        ),
        Mistake(
            "the gradient of B",
            "The factor is A, as in the gradient of B. D is the gradient of A, and its factor is B.",
            [("G[by * 32 + i, bx * 64 + j] * b", "G[by * 32 + i, bx * 64 + j] * a")],
            others=[[("T.if_then_else(a * b > 0, G[by * 32 + i, bx * 64 + j] * b, 0)", "G[by * 32 + i, bx * 64 + j] * a")]],
            when=lambda f: any(
                f.is_like(model) for A, B, G in [f.inputs.values()] for model in (G * A, np.where(A * B > 0, G * A, 0))
            ),
        ),
        Mistake(
            "G times the layer",
            "This is G * max(A * B, 0), with the layer itself as factor. The gradient of max is 1 or 0: it lets G * B through, or not.",
            [("T.if_then_else(a * b > 0, G[by * 32 + i, bx * 64 + j] * b, 0)", "G[by * 32 + i, bx * 64 + j] * T.max(a * b, 0)")],
            like=lambda A, B, G: G * np.maximum(A * B, 0),
        ),
        Mistake(
            "zero counts as positive",
            "Elements with A * B = 0 let the gradient through: the condition is >, not >=.",
            [("a * b > 0", "a * b >= 0")],
            like=lambda A, B, G: np.where(A * B >= 0, G * B, 0),
        ),
        Mistake(
            "the mask is the wrong way round",
            "There is a gradient where there should be 0, and the reverse: T.if_then_else(condition, value if true, value if "
            "false).",
            [("a * b > 0", "a * b <= 0")],
            like=lambda A, B, G: np.where(A * B <= 0, G * B, 0),
        ),
        Mistake(
            "the factor B is missing",
            "The mask is right, but G is stored as it came: Y = A * B grows B times as fast as A does.",
            [("bx * 64 + j] * b, 0)", "bx * 64 + j], 0)")],
            like=lambda A, B, G: np.where(A * B > 0, G, 0),
        ),
        Mistake(
            "the layer, not its gradient",
            "This is Y, what the layer computes. Its gradient is asked for: G * B where Y is positive.",
            [("G[by * 32 + i, bx * 64 + j] * b, 0)", "a * b, 0)")],
            like=lambda A, B: np.maximum(A * B, 0),
        ),
        Mistake(
            "B is read by rows",
            "B is indexed by the row. It is a row itself: its index is that of the column, bx * 64 + j.",
            [("B[bx * 64 + j]", "B[by * 32 + i]")],
            when=lambda f: f.is_like(_by_rows(**f.inputs)),
        ),
        Mistake(
            "not fused",
            "A matrix goes to memory and comes back between two steps. Name the value and use it in the same loop: then it "
            "never leaves the registers.",
            [
                ("    with T.Kernel(", "    Y = T.alloc_global((M, N), \"float32\")\n    with T.Kernel("),
                (
                    "            D[by * 32 + i, bx * 64 + j] = T.if",
                    "            Y[by * 32 + i, bx * 64 + j] = a * b\n"
                    "    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 32), threads=128) as (bx, by):\n"
                    "        for i, j in T.Parallel(32, 64):\n"
                    "            b = B[bx * 64 + j]\n"
                    "            D[by * 32 + i, bx * 64 + j] = T.if",
                ),
                ("T.if_then_else(a * b > 0", "T.if_then_else(Y[by * 32 + i, bx * 64 + j] > 0"),
            ],
            slow=lambda f: f.counts["bytes_used"] > 1.2 * f.best["bytes_used"],
        ),
        Mistake(
            "elements are read under an if",
            "Right, but what stands under an `if` is read and stored one by one, not many neighbours at a time. "
            "Choose the value by T.if_then_else, and store it in one statement.",
            [
                (
                    "            D[by * 32 + i, bx * 64 + j] = T.if_then_else(a * b > 0, G[by * 32 + i, bx * 64 + j] * b, 0)\n",
                    "            if a * b > 0:\n                D[by * 32 + i, bx * 64 + j] = G[by * 32 + i, bx * 64 + j] * b\n"
                    "            else:\n                D[by * 32 + i, bx * 64 + j] = 0\n",
                )
            ],
            slow=lambda f: f.counts["bytes_moved"] > 1.3 * f.best["bytes_moved"],
        ),
    ],
    limits=(3.5, 1.25),
    steps=(8.0, 1.5),
)


def _by_rows(A, B, G):
    rows = np.arange(len(A))
    b = np.where(rows < len(B), B[np.minimum(rows, len(B) - 1)], 0)[:, None]
    return np.where(A * b > 0, G * b, 0)
