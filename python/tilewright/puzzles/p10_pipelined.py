"""Puzzle 10: a matrix product whose copies run ahead."""
import numpy as np

from .p09_matmul import _product
from .puzzle import Mistake, Puzzle


def _cases(random):
    for m, n, k in ((64, 64, 192), (64, 128, 200)):
        yield {"A": random.integers(-4, 5, (m, k)).astype("float16"), "B": random.integers(-4, 5, (k, n)).astype("float16")}


def _overlaps(facts):
    """What is missing where the copies of a loop do not run ahead: their tiles have one place on chip, not several."""
    return "" if facts.shared_bytes() > 1.6 * facts.tile_bytes() > 0 else "the copies of the loop over K do not run ahead of its products"


PUZZLE = Puzzle(
    10,
    "pipelined",
    "A product whose copies run ahead",
    """
C = A @ B again, with tiles of 64 x 64 and steps of 32 along K, which need not divide K. In puzzle 9 the block waits for each
pair of tiles, multiplies, waits again. A loop `for k in T.Pipelined(rounds, num_stages=2)` computes the same, but its copies
run ahead: while round k multiplies, the tiles of round k + 1 are on their way. For that every shared tile has num_stages
places. On a GPU this is what hides the way to memory. Shared memory is small: 2 or 3 stages are the usual choice.
""",
    """
    T.serial     | copy 0 | gemm 0 | copy 1 | gemm 1 | copy 2 | gemm 2 |

    T.Pipelined  | copy 0 | copy 1 | copy 2 |
                          | gemm 0 | gemm 1 | gemm 2 |
""",
    """@tw.jit
def pipelined(A, B, C):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), "float16")
    B: T.Tensor((K, N), "float16")
    C: T.Tensor((M, N), "float32")
    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
""",
    """        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
            T.copy(A[by * 64, k * 32], a)
            T.copy(B[k * 32, bx * 64], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * 64, bx * 64])
""",
    (
        "It is the loop of puzzle 9, with T.Pipelined(..., num_stages=2) for T.serial(...).",
        "K may be 200: T.ceildiv(K, 32) rounds. What the last tiles have too much is 0 and adds nothing.",
        "Rows begin at by * 64, columns at bx * 64, and round k at k * 32.",
    ),
    ("A", "B", "C"),
    ("C",),
    _product,
    _cases,
    [
        Mistake(
            "K is rounded down",
            "What K has beyond whole tiles is missing in the sums: K // 32 rounds leave it out. T.ceildiv(K, 32) takes it; "
            "zeros behind the edge add nothing.",
            [("T.ceildiv(K, 32)", "K // 32")],
            like=lambda A, B, block: _product(A[:, : A.shape[1] // block * block], B[: A.shape[1] // block * block]),
        ),
        Mistake(
            "the sums begin undefined",
            "T.gemm adds to c, and nothing is in it yet: T.clear(c) before the loop.",
            [("        T.clear(c)\n", "")],
            codes=("TW1090", "TW6002"),
        ),
        Mistake(
            "the loop is not pipelined",
            "Right, but the block waits for every copy: the loop has one place for each tile. T.Pipelined(T.ceildiv(K, 32), "
            "num_stages=2) lets the copies run ahead.",
            [("T.Pipelined(T.ceildiv(K, 32), num_stages=2)", "T.serial(T.ceildiv(K, 32))")],
            slow=_overlaps,
        ),
        Mistake(
            "clear_accum in every round",
            "This is the product of the last tiles alone: clear_accum=True clears in every round. Clear once before the loop, "
            "or say clear_accum=k == 0.",
            [("T.gemm(a, b, c)", "T.gemm(a, b, c, clear_accum=True)")],
            like=lambda A, B, block: _product(A[:, (A.shape[1] - 1) // block * block :], B[(A.shape[1] - 1) // block * block :]),
        ),
        Mistake(
            "the step along K is that of another tile",
            "Tiles overlap along K, or leave gaps: tiles are 32 wide along K, and round k begins at k * 32 in A and in B.",
            [("A[by * 64, k * 32]", "A[by * 64, k * 64]")],
            when=lambda f: any(f.is_like(model) for model in _other_steps(**f.inputs)),
        ),
        Mistake(
            "the tile is stored at its mirror image",
            "The tiles of C are in each other's places: the row of a tile is by * 64, its column bx * 64.",
            [("C[by * 64, bx * 64]", "C[bx * 64, by * 64]")],
            when=lambda f: f.unwritten()[:, 64:].any() and not f.differs("C")[:, :64].any(),
        ),
        Mistake(
            "tiles of C lie over each other",
            "Blocks store to the same elements of C: the tile of block bx, by begins at row by * 64, column bx * 64.",
            [("C[by * 64, bx * 64]", "C[by, bx]")],
            others=[[("C[by * 64, bx * 64]", "C[0, 0]")], [("C[by * 64, bx * 64]", "C[by * 64, 0]")]],
            codes=("TW9001",),
        ),
        Mistake(
            "B is read by columns of tiles",
            "The tile of B is the one at row bx, column k: in B the rows belong to the round, and the columns to the block: "
            "B[k * 32, bx * 64].",
            [("B[k * 32, bx * 64]", "B[bx * 64, k * 32]")],
            when=lambda f: f.is_like(_of_tiles(**f.inputs)),
        ),
        Mistake(
            "the store is inside of the loop",
            "Right, but C is written in every round: the copy to C belongs behind the loop.",
            [("        T.copy(c, C[by * 64, bx * 64])", "            T.copy(c, C[by * 64, bx * 64])")],
            slow=lambda f: f.counts["bytes_moved"] > 1.5 * f.best["bytes_moved"],
        ),
    ],
    tolerance=1e-6,
    steps=(3.0, 2.0),
    needs=_overlaps,
)


def _of_tiles(A, B):
    """The product of rounds of 32 along K whose tiles of B are 64 wide, and stand at row bx * 64, column k * 32."""
    k, n = B.shape
    rounds, columns = -(-k // 32), -(-n // 64)
    a, b = np.zeros((len(A), rounds * 32), "float32"), np.zeros((columns * 64 + 32, rounds * 32 + 64), "float32")
    a[:, :k] = A
    high, wide = min(k, len(b)), min(n, b.shape[1])
    b[:high, :wide] = B[:high, :wide]
    made = [sum(a[:, r * 32 : r * 32 + 32] @ b[c * 64 : c * 64 + 32, r * 32 : r * 32 + 64] for r in range(rounds)) for c in range(columns)]
    return np.concatenate(made, 1)[:, :n]


def _other_steps(A, B):
    """Products of tiles that advance in A, in B or in both by another step than their width."""
    k = A.shape[1]
    for width in (16, 32, 64):
        rounds = -(-k // width)
        other = (2 * width, width // 2, 1)
        for a_step, b_step in [(s, t) for s in (width, *other) for t in (width, *other) if (s, t) != (width, width)]:
            a_at, b_at = (np.concatenate([np.arange(r * s, r * s + width) for r in range(rounds)]) for s in (a_step, b_step))
            a = np.where(a_at < k, A[:, np.minimum(a_at, k - 1)], 0)
            b = np.where((b_at < k)[:, None], B[np.minimum(b_at, k - 1)], 0)
            yield _product(a, b)
