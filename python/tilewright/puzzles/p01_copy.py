"""Puzzle 1: a copy."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    for n in (1024, 1000):
        yield {"A": random.standard_normal(n).astype("float32")}


def _is_one_block(f):
    """Whether all blocks stored to the same places, where any of them may be the last."""
    a, b = f.inputs["A"], f.seen("B")
    for block in (32, 64, 128, 256, 512):
        blocks = np.pad(a, (0, -len(a) % block)).reshape(-1, block)
        if (blocks == b[:block]).any(0).all() and np.isnan(b[block:]).all():
            return True
    return False


def _has_gaps(f):
    """Whether what was stored is right, and more than the first places was."""
    b, stored = f.seen("B"), ~np.isnan(f.seen("B"))
    return stored[256:].any() and not stored.all() and (b == f.inputs["A"])[stored].all()


def _without_tail(A, block):
    copied = A.copy()
    copied[len(A) // block * block :] = np.nan
    return copied


PUZZLE = Puzzle(
    1,
    "copy",
    "Copy an array",
    """
In NumPy it is B[:] = A. Here the array is cut into blocks of 256 elements, and the lines under T.Kernel run once for each
block, all blocks at the same time. `bx` is the number of the block: 0, 1, 2, ... The loop `for i in T.Parallel(256)` goes
through the places 0 to 255 of a block, in no order. Store what belongs there: one line.

The array's length need not be a multiple of 256: what is written behind its end is dropped, what is read there is 0.

`threads=128` is how many workers a block has on a GPU; T.Parallel deals the places to them. They go in groups of 32 that do
the same step at once, called warps: it is their steps that a check counts.
""",
    """
          block bx = 0        block bx = 1        block bx = 2
    A   [ 0 1 2 ... 255 ]   [ 256 ...  511 ]   [ 512 ...   N |  nothing ]
            |                     |                  |
    B   [ 0 1 2 ... 255 ]   [ 256 ...  511 ]   [ 512 ...   N |  nothing ]
          i = 0 1 2 ...       i = 0 1 2 ...
""",
    """@tw.jit
def copy(A, B):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B: T.Tensor((N,), "float32")
    with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:
        for i in T.Parallel(256):
""",
    """            B[bx * 256 + i] = A[bx * 256 + i]
""",
    (
        "The line stores one element: B[...] = A[...]. Both sides have the same index.",
        "Block 0 has the elements 0 to 255, block 1 those from 256 on: block bx begins at bx * 256.",
        "The element at place i of block bx is A[bx * 256 + i].",
    ),
    ("A", "B"),
    ("B",),
    lambda A: A,
    _cases,
    [
        Mistake(
            "the source has no block",
            "B repeats the first elements of A: the index of A lacks bx.",
            [("= A[bx * 256 + i]", "= A[i]")],
            like=lambda A, block: np.resize(A[:block], A.shape),
        ),
        Mistake(
            "the target has no block",
            "All blocks store to the first places of B, over each other: the index of B lacks bx.",
            [("B[bx * 256 + i] =", "B[i] =")],
            others=[[("B[bx * 256 + i] = A[bx * 256 + i]", "B[i] = A[i]")]],
            codes=("TW9001",),
            when=_is_one_block,
        ),
        Mistake(
            "the grid is rounded down",
            "The last elements are missing: N // 256 blocks do not reach the end of an array whose length is no multiple of "
            "256. T.ceildiv rounds up.",
            [("T.ceildiv(N, 256)", "N // 256")],
            like=_without_tail,
        ),
        Mistake(
            "the place is missing",
            "Each block stores one element alone: the index has the block in it, but lacks the place i.",
            [("B[bx * 256 + i] = A[bx * 256 + i]", "B[bx] = A[bx]")],
            like=lambda A, block: np.where(np.arange(len(A)) < -(-len(A) // block), A, np.nan),
        ),
        Mistake(
            "the blocks begin elsewhere",
            "What is stored is right, but some elements have no block: block bx has the 256 elements from bx * 256 on, so that the "
            "blocks begin at 0, 256, 512, ...",
            [("B[bx * 256 + i] = A[bx * 256 + i]", "B[bx + i] = A[bx + i]")],
            others=[
                [("B[bx * 256 + i] = A[bx * 256 + i]", f"B[{index}] = A[{index}]")]
                for index in ("bx * 128 + i", "bx * i", "(bx + 1) * 256 + i", "bx * 256 + i + 1", "i * 256 + bx", "bx * 255 + i")
            ],
            when=_has_gaps,
        ),
        Mistake(
            "the index is stored",
            "These are the indices themselves: what belongs there is the element of A with that index, A[...].",
            [("= A[bx * 256 + i]", "= bx * 256 + i")],
            like=lambda A: np.arange(len(A)),
        ),
        Mistake(
            "the copy goes the wrong way",
            "A has changed, and B has not: the side that is stored to stands on the left of the =.",
            [("B[bx * 256 + i] = A[bx * 256 + i]", "A[bx * 256 + i] = B[bx * 256 + i]")],
            when=lambda f: f.changed_inputs() and f.unwritten().all(),
        ),
        Mistake(
            "one thread does it all",
            "One thread walks over the elements one after the other. The 32 threads of a warp read 32 neighbours in one step: deal "
            "them out by T.Parallel.",
            [
                ("        for i in T.Parallel(256):\n", "        tx = T.get_thread_binding(0)\n        for i in T.serial(256):\n"),
                ("            B[bx * 256 + i] = A[bx * 256 + i]", "            if tx == 0:\n                B[bx * 256 + i] = A[bx * 256 + i]"),
            ],
            slow=lambda f: f.counts["global_accesses"] > 8 * f.best["global_accesses"],
        ),
    ],
    steps=(5.0, 2.1),
)
