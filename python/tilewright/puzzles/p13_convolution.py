"""Puzzle 13: a convolution of one dimension, by shifted tiles."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    for n, k in ((1030, 7), (700, 5)):
        x, w = (random.integers(-8, 9, size).astype("float32") for size in (n, k))
        yield {"X": x, "W": w + np.arange(k, dtype="float32") * 3}


def _correlation(X, W):
    return np.correlate(X, W, "valid")


def _shifted(X, W, by):
    """The same, begun somewhere else; zeros in front of and behind X."""
    k = len(W)
    return np.correlate(np.pad(X, k), W, "valid")[k + by : k + by + len(X) - k + 1]


def _without_halo(X, W, block, halo):
    """Each block sees its own elements and so many of the next."""
    y = np.zeros(len(X) - len(W) + 1, "float32")
    for begin in range(0, len(y), block):
        tile = np.zeros(block + len(W) - 1, "float32")
        seen = X[begin : begin + block + halo]
        tile[: len(seen)] = seen
        y[begin : begin + block] = np.correlate(tile, W, "valid")[: len(y[begin : begin + block])]
    return y


PUZZLE = Puzzle(
    13,
    "convolution",
    "A convolution by shifted tiles",
    """
Y[i] = X[i] * W[0] + X[i + 1] * W[1] + ... + X[i + K - 1] * W[K - 1], for the L = N - K + 1 places where all of them are
there; in NumPy, np.correlate(X, W, "valid"). Each element of X is needed K times, by its own block and at the edge by the one
before.

So a block brings what it needs into shared memory once: 256 elements, and K - 1 more, the halo. Then it adds up K shifted
views of the tile, each times one weight. A loop over the weights, T.serial(K), and in it one over the places,
T.Parallel(256).
""",
    """
    tile   | x0 x1 x2 x3 ........ x255 | x256 .. |  256 + K - 1
    k = 0  | x0 x1 x2 ..          x255 |   * W[0]
    k = 1     | x1 x2 x3 ..            x256 |   * W[1]
    k = 2        | x2 x3 x4 ..              x257 |   * W[2]
                                                   + -> Y[bx * 256 + i]
""",
    """@tw.jit
def convolution(X, W, Y):
    N, K, L = T.const("N, K, L")
    X: T.Tensor((N,), "float32")
    W: T.Tensor((K,), "float32")
    Y: T.Tensor((L,), "float32")
""",
    """    with T.Kernel(T.ceildiv(L, 256), threads=128) as bx:
        x = T.alloc_shared((256 + K - 1,), "float32")
        y = T.alloc_fragment((256,), "float32")
        T.copy(X[bx * 256], x)
        T.clear(y)
        for k in T.serial(K):
            for i in T.Parallel(256):
                y[i] += x[i + k] * W[k]
        T.copy(y, Y[bx * 256])
""",
    (
        "x = T.alloc_shared((256 + K - 1,), \"float32\"), filled by T.copy(X[bx * 256], x). y = T.alloc_fragment((256,), "
        "\"float32\"), which begins as zeros.",
        "for k in T.serial(K), and in it for i in T.Parallel(256): the tile shifted by k is x[i + k].",
        "y[i] += x[i + k] * W[k], and after the loops T.copy(y, Y[bx * 256]).",
    ),
    ("X", "W", "Y"),
    ("Y",),
    _correlation,
    _cases,
    [
        Mistake(
            "the tile has no halo",
            "An index lies outside of the tile: the view shifted by k is x[i + k], and its last places need K - 1 elements more than 256. "
            "The tile is (256 + K - 1,).",
            [("T.alloc_shared((256 + K - 1,)", "T.alloc_shared((256,)")],
            codes=("TW6001", "TW1036", "TW3010", "TW3073"),
        ),
        Mistake(
            "the halo is empty",
            "The last places of each block are wrong: the halo holds zeros instead of the next block's first elements. Copy "
            "256 + K - 1 elements, from X[bx * 256] on.",
            [("        T.copy(X[bx * 256], x)", "        T.clear(x)\n        T.copy(X[bx * 256 : bx * 256 + 256], x[0:256])")],
            like=lambda X, W, block: (_without_halo(X, W, block, halo) for halo in range(len(W) - 1)),
        ),
        Mistake(
            "the weights are turned round",
            "The weights are taken from the last to the first, as np.convolve does: here W[0] goes with X[i].",
            [("x[i + k] * W[k]", "x[i + k] * W[K - 1 - k]")],
            like=lambda X, W: np.convolve(X, W, "valid"),
        ),
        Mistake(
            "the tile begins at another element",
            "The sums belong to other places: the window begins at X[i], not before or behind it.",
            [("T.copy(X[bx * 256], x)", "T.copy(X[bx * 256 + 1], x)")],
            when=lambda f: any(f.is_like(_shifted(**f.inputs, by=by)) for by in (-4, -3, -2, -1, 1, 2, 3, 4)),
        ),
        Mistake(
            "tiles are read by their number",
            "A tile begins at an element: the one of block bx at X[bx * 256], and X[bx] is one of the first elements.",
            [("T.copy(X[bx * 256], x)", "T.copy(X[bx], x)")],
            like=lambda X, W, block: np.correlate(X, W, "valid")[(lambda i: i // block + i % block)(np.arange(len(X) - len(W) + 1))],
        ),
        Mistake(
            "the last weight is left out",
            "A weight is missing: the loop has K rounds, from W[0] to W[K - 1].",
            [("T.serial(K)", "T.serial(K - 1)")],
            like=lambda X, W: np.correlate(X, np.append(W[:-1], np.float32(0)), "valid"),
        ),
        Mistake(
            "only the last weight",
            "Only the last weight's products are there: add with +=, to a tile that begins as zeros.",
            [("y[i] += x", "y[i] = x")],
            like=lambda X, W: X[len(W) - 1 :] * W[-1],
        ),
        Mistake(
            "the sums begin undefined",
            "The sums are added to before anything is in them: T.clear(y) before the loop.",
            [("        T.clear(y)\n", "")],
            codes=("TW1090", "TW6002"),
        ),
        Mistake(
            "every shift goes to memory",
            "Right, but every element of X is read from memory K times. Bring 256 + K - 1 of them into shared memory once, "
            "and shift there.",
            [("y[i] += x[i + k]", "y[i] += X[bx * 256 + i + k]"), ("        T.copy(X[bx * 256], x)\n", "")],
            slow=lambda f: f.counts["bytes_moved"] > 1.4 * f.best["bytes_moved"] or f.counts["global_accesses"] > 1.4 * f.best["global_accesses"],
        ),
    ],
    limits=(3.0, 1.2),
    steps=(3.0, 1.35),
)
