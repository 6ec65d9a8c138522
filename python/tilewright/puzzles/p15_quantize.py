"""Puzzle 15: rows as int8 with scales."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    yield from (_case(random, m, n, zero) for m, n, zero in ((32, 128, False), (30, 200, True)))


def _case(random, m, n, zero):
    """Rows whose elements are not halfway between two numbers, so that all ways to round to nearest agree; most are positive or
    negative together."""
    q = random.integers(-120, 60, (m, n)).astype("float64")
    q[:, 0] = -127
    x = (q + random.uniform(-0.3, 0.3, (m, n)) * (q > -127)) * (2.0 ** random.integers(-4, 5, (m, 1)))
    if zero:
        x[m // 2] = 0
    return {"X": x.astype("float32")}


def _scales(X):
    most = np.abs(X).max(1)
    return np.where(most > 0, most / np.float32(127), np.float32(1))


def _quantized(X, rounded=np.rint):
    return np.clip(rounded(X / _scales(X).astype("float64")[:, None]), -128, 127)


def _reference(X):
    return _quantized(X).astype("int8"), _scales(X)


PUZZLE = Puzzle(
    15,
    "quantize",
    "Rows as int8, with scales",
    """
Q[i, j] = round(X[i, j] / S[i]) in int8, where S[i] = the largest |X[i, j]| of the row / 127: the largest element becomes 127
or -127, and Q * S is about X again, in a quarter of the memory. A row of zeros has no such scale: there S[i] = 1.

T.reduce_absmax(tile, most, dim=1) is the largest |x| of each row. T.cast(x, "int8") cuts off what is behind the point:
T.round rounds first. A tile may be as wide as a row again, 4 x N; T.copy from a float32 tile to an int8 tile or tensor
converts as T.cast does.
""",
    """
    X[i]     0.5  -2.0   1.0       largest |x| 2.0,  S[i] = 2.0 / 127
    / S[i]  31.75 -127  63.5
    Q[i]      32  -127   64
""",
    """@tw.jit
def quantize(X, Q, S):
    M, N = T.const("M, N")
    X: T.Tensor((M, N), "float32")
    Q: T.Tensor((M, N), "int8")
    S: T.Tensor((M,), "float32")
    with T.Kernel(T.ceildiv(M, 4), threads=128) as bx:
        x = T.alloc_fragment((4, N), "float32")
        scale = T.alloc_fragment((4,), "float32")
""",
    """        T.copy(X[bx * 4, 0], x)
        T.reduce_absmax(x, scale, dim=1)
        for i in T.Parallel(4):
            scale[i] = T.if_then_else(scale[i] > 0, scale[i] / 127, 1)
        for i, j in T.Parallel(4, N):
            x[i, j] = T.round(x[i, j] / scale[i])
        T.copy(x, Q[bx * 4, 0])
        T.copy(scale, S[bx * 4])
""",
    (
        "Copy the rows to x, then T.reduce_absmax(x, scale, dim=1), and divide each of the 4 scales by 127: scale[i] = "
        "T.if_then_else(scale[i] > 0, scale[i] / 127, 1).",
        "Then, for i, j in T.Parallel(4, N): x[i, j] = T.round(x[i, j] / scale[i]).",
        "Two copies end it: T.copy(x, Q[bx * 4, 0]), T.copy(scale, S[bx * 4]).",
    ),
    ("X", "Q", "S"),
    ("Q", "S"),
    _reference,
    _cases,
    [
        Mistake(
            "the largest, with its sign",
            "A row whose largest distance from 0 is that of a negative element is out of range: T.reduce_absmax takes the "
            "largest |x|.",
            [("T.reduce_absmax(", "T.reduce_max(")],
            like=lambda X: (None, X.max(1) / np.float32(127)),
        ),
        Mistake(
            "divided by 128",
            "The scales are a little too small: int8 goes from -128 to 127, and the largest element is to become 127.",
            [("scale[i] / 127, 1)", "scale[i] / 128, 1)")],
            like=lambda X: (None, np.abs(X).max(1) / np.float32(128)),
        ),
        Mistake(
            "cut off, not rounded",
            "Elements are off by one towards 0: the conversion to int8 cuts off what is behind the point. T.round before it.",
            [("T.round(x[i, j] / scale[i])", "x[i, j] / scale[i]")],
            like=lambda X: (_quantized(X, rounded=np.trunc), _scales(X)),
        ),
        Mistake(
            "rounded down",
            "Elements are off by one downwards: T.floor rounds down, T.round to nearest.",
            [("T.round(", "T.floor(")],
            like=lambda X: (_quantized(X, rounded=lambda q: np.floor(q + 1e-6)), _scales(X)),
        ),
        Mistake(
            "a row of zeros",
            "The scale of a row of zeros is 0, and whoever divides by it gets NaN: choose 1 there, T.if_then_else(scale[i] > "
            "0, scale[i] / 127, 1).",
            [("T.if_then_else(scale[i] > 0, scale[i] / 127, 1)", "scale[i] / 127")],
            like=lambda X: None if X.any(1).all() else (None, np.abs(X).max(1) / np.float32(127)),
        ),
        Mistake(
            "multiplied by the scale",
            "X is multiplied by its scale: the quantized numbers are X / S, and X is about Q * S.",
            [("x[i, j] / scale[i]", "x[i, j] * scale[i]")],
            like=lambda X: (np.clip(np.rint(X * _scales(X)[:, None]), -128, 127), _scales(X)),
        ),
        Mistake(
            "the scales are not divided by 127",
            "S is the largest |x| itself: it is to be divided by 127, before X is divided by it.",
            [("scale[i] / 127, 1)", "scale[i], 1)")],
            like=lambda X: (None, np.abs(X).max(1)),
        ),
        Mistake(
            "rows are read by the block's number",
            "These are other rows: the first row of block bx is bx * 4, and X[bx, 0] is the one whose number is the block's.",
            [("X[bx * 4, 0]", "X[bx, 0]")],
            like=lambda X, block: _reference(X[np.arange(len(X)) // block + np.arange(len(X)) % block]),
        ),
        Mistake(
            "the scales are not stored",
            "Q is right, and S was never written: T.copy(scale, S[bx * 4]) at the end.",
            [("        T.copy(scale, S[bx * 4])\n", "")],
            when=lambda f: not f.differs("Q").any() and f.unwritten("S").all(),
        ),
    ],
    tolerance=1e-6,
)
