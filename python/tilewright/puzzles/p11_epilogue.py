"""Puzzle 11: a product with odd extents, int8 weights and an epilogue."""
import numpy as np

from .p09_matmul import _mirrored
from .puzzle import Mistake, Puzzle


def _cases(random):
    for m, n, k in ((64, 128, 64), (50, 70, 90)):
        yield {
            "X": random.integers(-3, 4, (m, k)).astype("float16"),
            "W": random.integers(-100, 101, (k, n)).astype("int8"),
            "scale": (2.0 ** random.integers(-8, -3, n)).astype("float32"),
            "bias": random.integers(-40, 41, n).astype("float32"),
        }


def _sums(X, W, whole=None):
    k = X.shape[1] if whole is None else X.shape[1] // whole * whole
    return X[:, :k].astype("float32") @ W[:k].astype("float32")


def _layer(X, W, scale, bias):
    return np.maximum(_sums(X, W) * scale + bias, 0)


PUZZLE = Puzzle(
    11,
    "epilogue",
    "A layer with int8 weights",
    """
Y = max(X @ (W * scale) + bias, 0). The weights W were quantized: int8, one scale for each column, so that W * scale is about
what they were. The scale of a column may wait until its sums are there: (X @ W) * scale. What happens to the sums before
they are stored is called the epilogue: it runs in registers, once, after the loop.

T.copy converts: from int8 in memory to a shared tile in float16. No extent need be a multiple of a tile's.
""",
    """
    X (M, K) float16 --+
                       +--> sums --> * scale[j] --> + bias[j] --> max(., 0) --> Y (M, N)
    W (K, N) int8  ----+   in the loop             the epilogue, once
""",
    """@tw.jit
def epilogue(X, W, scale, bias, Y):
    M, N, K = T.const("M, N, K")
    X: T.Tensor((M, K), "float16")
    W: T.Tensor((K, N), "int8")
    scale: T.Tensor((N,), "float32")
    bias: T.Tensor((N,), "float32")
    Y: T.Tensor((M, N), "float32")
""",
    """    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
        x = T.alloc_shared((32, 32), "float16")
        w = T.alloc_shared((32, 32), "float16")
        y = T.alloc_fragment((32, 32), "float32")
        T.clear(y)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
            T.copy(X[by * 32, k * 32], x)
            T.copy(W[k * 32, bx * 32], w)
            T.gemm(x, w, y)
        for i, j in T.Parallel(32, 32):
            y[i, j] = T.max(y[i, j] * scale[bx * 32 + j] + bias[bx * 32 + j], 0)
        T.copy(y, Y[by * 32, bx * 32])
""",
    (
        "The product is that of puzzle 10, or 9: w is a float16 tile, into which T.copy brings the int8 elements.",
        "After the loop and before the copy to Y: for i, j in T.Parallel(32, 32), which changes y[i, j].",
        "y[i, j] = T.max(y[i, j] * scale[bx * 32 + j] + bias[bx * 32 + j], 0)",
    ),
    ("X", "W", "scale", "bias", "Y"),
    ("Y",),
    _layer,
    _cases,
    [
        Mistake(
            "K is rounded down",
            "What K has beyond whole tiles is missing in the sums: the loop has T.ceildiv(K, 32) rounds.",
            [("T.ceildiv(K, 32)", "K // 32")],
            like=lambda X, W, scale, bias, block: np.maximum(_sums(X, W, block) * scale + bias, 0),
        ),
        Mistake(
            "the scale is missing",
            "The weights are the int8 numbers themselves: multiply the sums of column j by scale[bx * 32 + j].",
            [("y[i, j] * scale[bx * 32 + j] + bias", "y[i, j] + bias")],
            like=lambda X, W, bias: np.maximum(_sums(X, W) + bias, 0),
        ),
        Mistake(
            "the bias is scaled",
            "The bias is multiplied by the scale, which is that of the weights alone: sums * scale + bias.",
            [("y[i, j] * scale[bx * 32 + j] + bias[bx * 32 + j]", "(y[i, j] + bias[bx * 32 + j]) * scale[bx * 32 + j]")],
            like=lambda X, W, scale, bias: np.maximum((_sums(X, W) + bias) * scale, 0),
        ),
        Mistake(
            "max comes before the bias",
            "The bias is added behind max(., 0): max is the last step.",
            [("T.max(y[i, j] * scale[bx * 32 + j] + bias[bx * 32 + j], 0)", "T.max(y[i, j] * scale[bx * 32 + j], 0) + bias[bx * 32 + j]")],
            like=lambda X, W, scale, bias: np.maximum(_sums(X, W) * scale, 0) + bias,
        ),
        Mistake(
            "no max",
            "There are negative elements: max(., 0) is missing at the end.",
            [("T.max(y[i, j] * scale[bx * 32 + j] + bias[bx * 32 + j], 0)", "y[i, j] * scale[bx * 32 + j] + bias[bx * 32 + j]")],
            like=lambda X, W, scale, bias: _sums(X, W) * scale + bias,
        ),
        Mistake(
            "no bias",
            "The bias is missing: sums * scale + bias[bx * 32 + j].",
            [("scale[bx * 32 + j] + bias[bx * 32 + j]", "scale[bx * 32 + j]")],
            like=lambda X, W, scale: np.maximum(_sums(X, W) * scale, 0),
        ),
        Mistake(
            "the scale or bias of the first columns",
            "All tiles take the scale or the bias of the first columns: j counts within the tile, the column is bx * 32 + j.",
            [("+ bias[bx * 32 + j]", "+ bias[j]")],
            others=[[("* scale[bx * 32 + j]", "* scale[j]")], [("* scale[bx * 32 + j]", "* scale[j]"), ("+ bias[bx * 32 + j]", "+ bias[j]")]],
            when=lambda f: any(f.is_like(model) for model in _first_columns(**f.inputs)),
        ),
        Mistake(
            "the epilogue is in the loop",
            "The epilogue runs in every round, on sums that are not done: it belongs behind the loop.",
            [
                (
                    "        for i, j in T.Parallel(32, 32):\n            y[i, j] = T.max(y[i, j] * scale[bx * 32 + j] + "
                    "bias[bx * 32 + j], 0)\n",
                    "            for i, j in T.Parallel(32, 32):\n                y[i, j] = T.max(y[i, j] * scale[bx * 32 + "
                    "j] + bias[bx * 32 + j], 0)\n",
                )
            ],
            like=lambda X, W, scale, bias, block: _in_the_loop(X, W, scale, bias, block),
        ),
        Mistake(
            "the grid is rounded down",
            "The last rows or columns are missing: the grid has T.ceildiv(N, 32) times T.ceildiv(M, 32) blocks.",
            [("T.ceildiv(N, 32)", "N // 32"), ("T.ceildiv(M, 32)", "M // 32")],
            when=lambda f: f.unwritten()[-1, -1] and not (f.differs("Y") & ~f.unwritten()).any(),
        ),
        Mistake(
            "the tile is stored at its mirror image",
            "The tiles of Y are in each other's places: the row of a tile is by * 32, its column bx * 32.",
            [("Y[by * 32, bx * 32]", "Y[bx * 32, by * 32]")],
            when=lambda f: _mirrored(f.seen("Y"), f.want()),
        ),
        Mistake(
            "the sums begin undefined",
            "T.gemm adds to y, and nothing is in it yet: T.clear(y) before the loop.",
            [("        T.clear(y)\n", "")],
            codes=("TW1090", "TW6002"),
        ),
        Mistake(
            "divided by the scale",
            "The sums are divided by the scale: W * scale is about what the weights were, so that the sums are multiplied by it.",
            [("* scale[bx * 32 + j]", "/ scale[bx * 32 + j]")],
            like=lambda X, W, scale, bias: np.maximum(_sums(X, W) / scale + bias, 0),
        ),
    ],
    tolerance=1e-6,
    steps=(3.0, 2.0),
)


def _first_columns(X, W, scale, bias):
    for block in (16, 32, 64):
        for s in (scale, np.resize(scale[:block], scale.shape)):
            for b in (bias, np.resize(bias[:block], bias.shape)):
                yield np.maximum(_sums(X, W) * s + b, 0)


def _in_the_loop(X, W, scale, bias, block):
    sums = np.zeros((len(X), W.shape[1]), "float32")
    for k in range(0, X.shape[1], block):
        sums = np.maximum((sums + _sums(X[:, k : k + block], W[k : k + block])) * scale + bias, 0)
    return sums
