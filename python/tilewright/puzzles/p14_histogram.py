"""Puzzle 14: a histogram by atomics."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    for n in (4096, 3000):
        x = np.minimum(random.integers(0, 64, n), random.integers(0, 64, n)).astype("int32")
        yield {"X": x, "H": np.zeros(64, "int32")}


def _counts(X):
    return np.bincount(X, minlength=64).astype("int32")


def _in_blocks(X, block):
    """In how many blocks a number occurs."""
    return sum(np.minimum(_counts(X[k : k + block]), 1) for k in range(0, len(X), block))


def _of_first(X):
    """All blocks count the same elements, the last one with or without a guard."""
    blocks = -(-len(X) // 1024)
    yield _counts(X[:1024]) * blocks
    yield _counts(X[:1024]) * (blocks - 1) + _counts(X[: len(X) - (blocks - 1) * 1024])


_ADD = "        for b in T.Parallel(64):\n            T.atomic_add(H[b], counts[b])\n"

PUZZLE = Puzzle(
    14,
    "histogram",
    "A histogram",
    """
H[b] = how often b stands in X, for b from 0 to 63; np.bincount. H begins as zeros. Many threads find the same number at once:
if two of them read a count, add 1 and store it, one of the two is lost. T.atomic_add(H[b], 1) does all three as one step.

Steps of this kind stand in a queue, and the way to global memory is long. So each block counts in a tile of its own in shared
memory first, and adds its 64 counts to H at the end. Nothing is counted behind the end of X.
""",
    """
    X      3 0 3 1 | 3 3 0 2 | ...         1024 elements for each block
    block  counts  | counts  |             atomic_add(counts[X[...]], 1), in shared memory
               |         |
    H           + + + + + + + +            atomic_add(H[b], counts[b])
""",
    """@tw.jit
def histogram(X, H):
    N = T.const("N")
    X: T.Tensor((N,), "int32")
    H: T.Tensor((64,), "int32")
    with T.Kernel(T.ceildiv(N, 1024), threads=128) as bx:
""",
    """        counts = T.alloc_shared((64,), "int32")
        T.clear(counts)
        for i in T.Parallel(1024):
            if bx * 1024 + i < N:
                T.atomic_add(counts[X[bx * 1024 + i]], 1)
        for b in T.Parallel(64):
            T.atomic_add(H[b], counts[b])
""",
    (
        "The shortest right answer has one loop: for i in T.Parallel(1024), a guard as in puzzle 2, and T.atomic_add(H[X[bx * "
        "1024 + i]], 1).",
        "For more stars: counts = T.alloc_shared((64,), \"int32\"), T.clear(counts), and the loop adds to counts instead of H.",
        "Then a second loop: for b in T.Parallel(64): T.atomic_add(H[b], counts[b]).",
    ),
    ("X", "H"),
    ("H",),
    _counts,
    _cases,
    [
        Mistake(
            "zeros behind the end are counted",
            "There are too many zeros: behind the end of X a read gives 0, and it is counted. Guard it: if bx * 1024 + i < N.",
            [
                ("            if bx * 1024 + i < N:\n                T.atomic_add(counts", "            T.atomic_add(counts"),
            ],
            when=lambda f: (f.got()[1:] == f.want()[1:]).all() and f.got()[0] > f.want()[0],
        ),
        Mistake(
            "blocks store without atomics",
            "Several blocks or threads change one count at a time, and what one adds, another overwrites: this is a race. "
            "T.atomic_add(H[b], x) reads, adds and stores as one step.",
            [("            T.atomic_add(H[b], counts[b])", "            H[b] += counts[b]")],
            others=[
                [("            T.atomic_add(H[b], counts[b])", "            H[b] = counts[b]")],
                [("T.atomic_add(counts[X[bx * 1024 + i]], 1)", "H[X[bx * 1024 + i]] += 1"), (_ADD, "")],
            ],
            codes=("TW9001", "TW6003", "TW6016"),
        ),
        Mistake(
            "the counts begin undefined",
            "The tile of counts is added to before anything is in it: T.clear(counts).",
            [("        T.clear(counts)\n", "")],
            codes=("TW1090", "TW6002"),
        ),
        Mistake(
            "seen, not counted",
            "There are ones where a number occurs: it is stored, not added. T.atomic_add(counts[x], 1).",
            [("T.atomic_add(counts[X[bx * 1024 + i]], 1)", "counts[X[bx * 1024 + i]] = 1")],
            like=lambda X, block: iter([np.minimum(_counts(X), 1), _in_blocks(X, block)]),
        ),
        Mistake(
            "sums of the numbers",
            "H[b] is b times what it should be: each element counts as 1, not as itself.",
            [("T.atomic_add(counts[X[bx * 1024 + i]], 1)", "T.atomic_add(counts[X[bx * 1024 + i]], X[bx * 1024 + i])")],
            like=lambda X: _counts(X) * np.arange(64),
        ),
        Mistake(
            "the grid is rounded down",
            "The last elements are not counted: T.ceildiv(N, 1024) blocks reach them.",
            [("T.ceildiv(N, 1024)", "N // 1024")],
            like=lambda X, block: _counts(X[: len(X) // block * block]),
        ),
        Mistake(
            "all blocks count the first elements",
            "Each block counts the same elements, the first ones: those of block bx begin at bx * 1024.",
            [("counts[X[bx * 1024 + i]]", "counts[X[i]]")],
            when=lambda f: any(f.is_like(model) for model in _of_first(f.inputs["X"])),
        ),
        Mistake(
            "every element goes to global memory",
            "Right, but every element is an atomic addition in global memory. Count in a shared tile, and add its 64 counts "
            "to H once.",
            [("T.atomic_add(counts[X[bx * 1024 + i]], 1)", "T.atomic_add(H[X[bx * 1024 + i]], 1)"), (_ADD, "")],
            slow=lambda f: f.counts["global_accesses"] > 1.5 * f.best["global_accesses"],
        ),
    ],
    limits=(20.0, 1.3),
)
