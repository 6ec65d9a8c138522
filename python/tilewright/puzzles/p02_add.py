"""Puzzle 2: a sum, with a guard."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    for n, m in ((1000, 1500), (130, 400)):
        a, b, c = (random.standard_normal(k).astype("float32") for k in (n, n, m))
        yield {"A": a, "B": b, "C": c}


def _sum(A, B, C):
    C = C.copy()
    C[: len(A)] = A + B
    return C


def _behind(A, B, C, block):
    """Without a guard: zeros up to the end of the last block."""
    wrong = _sum(A, B, C)
    wrong[len(A) : -(-len(A) // block) * block] = 0
    return wrong


def _one_more(A, B, C):
    wrong = _sum(A, B, C)
    wrong[len(A)] = 0
    return wrong


def _one_less(A, B, C):
    wrong = _sum(A, B, C)
    wrong[len(A) - 1] = C[len(A) - 1]
    return wrong


def _without_tail(A, B, C, block):
    wrong, end = C.copy(), len(A) // block * block
    wrong[:end] = (A + B)[:end]
    return wrong


def _first_block(A, B, C, block):
    wrong, end = C.copy(), min(block, len(A))
    wrong[:end] = (A + B)[:end]
    return wrong


PUZZLE = Puzzle(
    2,
    "add",
    "Add two arrays, and leave the rest alone",
    """
C[:N] = A + B, where A and B have N elements, and C has more. What C holds from N on belongs to somebody else and must stay
as it is. Blocks of 256 hang over the end of A and B: what is read there is 0, but what is stored there lands in the rest
of C. An `if` keeps a store to the places where it is true.
""",
    """
               bx = 0              bx = 1
    A  +  B  [ 0 ... 255 ]   [ 256 ...   N |  0  0  0 ]
                 |                 |          no!
    C        [ 0 ... 255 ]   [ 256 ...   N | somebody else's ... ]
""",
    """@tw.jit
def add(A, B, C):
    N, M = T.const("N, M")  # M is more than N
    A: T.Tensor((N,), "float32")
    B: T.Tensor((N,), "float32")
    C: T.Tensor((M,), "float32")
    with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:
        for i in T.Parallel(256):
""",
    """            if bx * 256 + i < N:
                C[bx * 256 + i] = A[bx * 256 + i] + B[bx * 256 + i]
""",
    (
        "Without the rest of C it is the copy of puzzle 1, with a + on the right.",
        "The place in the arrays is bx * 256 + i. It belongs to you while it is less than N.",
        "if bx * 256 + i < N: and below it, further in, the line that stores the sum.",
    ),
    ("A", "B", "C"),
    ("C",),
    _sum,
    _cases,
    [
        Mistake(
            "no guard",
            "The last block writes zeros behind the first N elements: a guard is missing, or is true there. Compare the place "
            "in the array, not the place in the block: if bx * 256 + i < N.",
            [("if bx * 256 + i < N", "if i < N")],
            like=_behind,
        ),
        Mistake(
            "the guard lets one too many in",
            "One element too many is written, C[N]. Arrays count from 0: N - 1 is the last place that is yours, so the guard "
            "is < and not <=.",
            [("+ i < N", "+ i <= N")],
            like=_one_more,
        ),
        Mistake(
            "the guard keeps the last one out",
            "The last sum is missing: the guard ends one too early. The places that are yours are those less than N.",
            [("+ i < N", "+ i < N - 1")],
            like=_one_less,
        ),
        Mistake(
            "the grid is rounded down",
            "The sums of the last, incomplete block are missing: N // 256 rounds down. T.ceildiv(N, 256) rounds up.",
            [("T.ceildiv(N, 256)", "N // 256")],
            like=_without_tail,
        ),
        Mistake(
            "every block takes the first elements",
            "Only the first block's sums are there: the indices lack bx, so all blocks store the same.",
            [("C[bx * 256 + i] = A[bx * 256 + i] + B[bx * 256 + i]", "C[i] = A[i] + B[i]")],
            like=_first_block,
        ),
        Mistake(
            "adds to what was there",
            "What C held before is in the sums: C is stored to with =, not +=.",
            [("C[bx * 256 + i] =", "C[bx * 256 + i] +=")],
            like=lambda A, B, C: _sum(A, B, C) + np.where(np.arange(len(C)) < len(A), C, 0),
        ),
    ],
)
