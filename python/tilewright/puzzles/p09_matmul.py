"""Puzzle 9: a matrix product by tiles."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    for m, n, k in ((64, 128, 96), (128, 64, 160)):
        yield {"A": random.integers(0, 16, (m, k)).astype("float16"), "B": random.integers(0, 16, (k, n)).astype("float16")}


def _product(A, B):
    return A.astype("float32") @ B.astype("float32")


def transposed_tiles(B, block):
    """A matrix whose tiles are transposed where they are; None where they do not fill it."""
    if any(extent % block for extent in B.shape):
        return None
    k, n = (extent // block for extent in B.shape)
    return B.reshape(k, block, n, block).transpose(0, 3, 2, 1).reshape(B.shape)


def _with_transposed_tiles(A, B, block):
    tiles = transposed_tiles(B, block)
    return None if tiles is None else _product(A, tiles)


PUZZLE = Puzzle(
    9,
    "matmul",
    "A matrix product by tiles",
    """
C = A @ B. A block makes one tile of C, 32 x 32, out of a row of tiles of A and a column of tiles of B: it brings them on chip
one pair after the other, and adds their product to a tile of sums. All extents are multiples of 32 here.

T.alloc_shared makes a tile in the block's shared memory, where T.gemm(a, b, c) reads a and b: it is c += a @ b. The elements
are float16, the sums float32: sums of float16 lose their last digits.
""",
    """
                           B      | k=0 |
                           (K, N) | k=1 |  column bx
                                  | ... |
                                  +-----+
    A (M, K)  row by  [k=0][k=1].. | C   |   C[by, bx] = A[by, 0] @ B[0, bx]
                                  +-----+              + A[by, 1] @ B[1, bx] + ...
""",
    """@tw.jit
def matmul(A, B, C):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), "float16")
    B: T.Tensor((K, N), "float16")
    C: T.Tensor((M, N), "float32")
    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
""",
    """        a = T.alloc_shared((32, 32), "float16")
        b = T.alloc_shared((32, 32), "float16")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.serial(T.ceildiv(K, 32)):
            T.copy(A[by * 32, k * 32], a)
            T.copy(B[k * 32, bx * 32], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * 32, bx * 32])
""",
    (
        "Three tiles of 32 x 32: a and b by T.alloc_shared in float16, c by T.alloc_fragment in float32. T.clear(c) first.",
        "A loop of T.ceildiv(K, 32) rounds. Round k copies the tile of A at row by * 32, column k * 32, and that of B at row "
        "k * 32, column bx * 32.",
        "T.gemm(a, b, c) ends the round. After the loop: T.copy(c, C[by * 32, bx * 32]).",
    ),
    ("A", "B", "C"),
    ("C",),
    _product,
    _cases,
    [
        Mistake(
            "the sums begin undefined",
            "T.gemm adds to c, and nothing is in it yet: T.clear(c) before the loop.",
            [("        T.clear(c)\n", "")],
            codes=("TW1090",),
            says="gemm adds",
        ),
        Mistake(
            "the sums are cleared in each round",
            "This is the product of the last tiles alone: T.clear(c) belongs before the loop, and T.gemm(a, b, c) into it.",
            [("        T.clear(c)\n", ""), ("            T.gemm(a, b, c)", "            T.clear(c)\n            T.gemm(a, b, c)")],
            others=[[("            T.gemm(a, b, c)\n        T.copy(c,", "        T.gemm(a, b, c)\n        T.copy(c,")]],
            like=lambda A, B, block: _product(A[:, (A.shape[1] - 1) // block * block :], B[(A.shape[1] - 1) // block * block :]),
        ),
        Mistake(
            "a round is missing",
            "The last tiles along K are not in the sums: the loop has T.ceildiv(K, 32) rounds.",
            [("T.serial(T.ceildiv(K, 32))", "T.serial(T.ceildiv(K, 32) - 1)")],
            others=[[("T.serial(T.ceildiv(K, 32))", "T.serial(T.ceildiv(N, 32))")], [("T.serial(T.ceildiv(K, 32))", "T.serial(2)")]],
            when=lambda f: any(f.is_like(_product(f.inputs["A"][:, :k], f.inputs["B"][:k])) for k in range(16, f.inputs["A"].shape[1], 16)),
        ),
        Mistake(
            "the sums are float16",
            "The sums lack their last digits: they are added up in float16, which has 11 bits. The tile of sums is float32.",
            [("c = T.alloc_fragment((32, 32), \"float32\")", "c = T.alloc_fragment((32, 32), \"float16\")")],
            when=lambda f: (abs(f.seen("C") - f.want()) <= f.want() * 2e-3 + 4).all(),
        ),
        Mistake(
            "B's tiles are transposed",
            "The tiles of B are read the other way round: transpose_B=True is for a tile that lies as (columns, K).",
            [("T.gemm(a, b, c)", "T.gemm(a, b, c, transpose_B=True)")],
            like=_with_transposed_tiles,
        ),
        Mistake(
            "the tile is stored at its mirror image",
            "The tiles of C are in each other's places: the row of a tile is by * 32, its column bx * 32.",
            [("C[by * 32, bx * 32]", "C[bx * 32, by * 32]")],
            when=lambda f: _mirrored(f.seen("C"), f.want()),
        ),
        Mistake(
            "the first tile in every round",
            "Each round multiplies the same tiles of A or B: the column in A and the row in B go on with k * 32.",
            [("A[by * 32, k * 32]", "A[by * 32, 0]")],
            when=lambda f: any(_product(a, b).shape == f.got().shape and f.is_like(_product(a, b)) for a, b in _first_tiles(**f.inputs)),
        ),
        Mistake(
            "A's tiles are transposed",
            "The tiles of A are read the other way round: transpose_A=True is for a tile that lies as (K, rows).",
            [("T.gemm(a, b, c)", "T.gemm(a, b, c, transpose_A=True)")],
            when=lambda f: any(
                tiles is not None and f.is_like(_product(tiles, f.inputs["B"])) for tiles in (transposed_tiles(f.inputs["A"], b) for b in (16, 32, 64))
            ),
        ),
        Mistake(
            "the operands are exchanged",
            "Each round multiplies the tiles in the wrong order: b @ a is not a @ b. T.gemm(a, b, c) is c += a @ b.",
            [("T.gemm(a, b, c)", "T.gemm(b, a, c)")],
            when=lambda f: f.is_like(_by_tiles(f.inputs["A"], f.inputs["B"], lambda a, b: b @ a)),
        ),
        Mistake(
            "elements are multiplied",
            "a[i, j] * b[i, j] multiplies element by element, as NumPy's * does. T.gemm(a, b, c) is c += a @ b.",
            [("T.gemm(a, b, c)", "for i, j in T.Parallel(32, 32):\n                c[i, j] += a[i, j] * b[i, j]")],
            when=lambda f: f.is_like(_by_tiles(f.inputs["A"], f.inputs["B"], lambda a, b: a * b)),
        ),
        Mistake(
            "tiles are read by their number",
            "A tile begins at an element: tile by, k of A begins at row by * 32, column k * 32, and A[by, k] names one of the first elements.",
            [("A[by * 32, k * 32]", "A[by, k]"), ("B[k * 32, bx * 32]", "B[k, bx]")],
            others=[
                [("A[by * 32, k * 32]", "A[by * 32, k]"), ("B[k * 32, bx * 32]", "B[k, bx * 32]")],
                [("A[by * 32, k * 32]", "A[by, k]")],
                [("B[k * 32, bx * 32]", "B[k, bx * 32]")],
            ],
            when=lambda f: any(f.is_like(model) for model in _by_number(**f.inputs)),
        ),
        Mistake(
            "tiles of C lie over each other",
            "Blocks store to the same elements of C: a tile begins at an element, and the one of block bx, by at row by * 32, column bx * 32.",
            [("C[by * 32, bx * 32]", "C[by, bx]")],
            others=[[("C[by * 32, bx * 32]", "C[0, 0]")], [("C[by * 32, bx * 32]", "C[by * 32, 0]")]],
            codes=("TW9001",),
        ),
        Mistake(
            "the matrix unit does not take the tiles",
            "The matrix unit multiplies tiles of float16 in shared memory and adds to float32 in registers: a and b are T.alloc_shared of "
            "\"float16\", c is T.alloc_fragment of \"float32\".",
            [(f'{t} = T.alloc_shared((32, 32), "float16")', f'{t} = T.alloc_shared((32, 32), "float32")') for t in "ab"],
            slow=lambda f: f.tile_bytes() > 4096 and f.counts["bytes_moved"] <= 1.2 * f.best["bytes_moved"],
        ),
        Mistake(
            "A is read by columns of tiles",
            "The tile of A is the one at row k, column by: in A the rows belong to the block, and the columns to the round: "
            "A[by * 32, k * 32].",
            [("A[by * 32, k * 32]", "A[k * 32, by * 32]")],
            when=lambda f: any(f.is_like(model) for model in _other_tiles(**f.inputs)),
        ),
    ],
    tolerance=1e-6,
)


def _by_tiles(A, B, product, a_at=(32, 32), b_at=(32, 32)):
    """C of tiles of 32 x 32, whose place in A and B is so many elements for each number of a tile; zeros behind the edges."""
    padded = [np.zeros((x.shape[0] + 32, x.shape[1] + 32), "float32") for x in (A, B)]
    for whole, x in zip(padded, (A, B)):
        whole[: x.shape[0], : x.shape[1]] = x
    made = np.zeros((A.shape[0], B.shape[1]), "float32")
    for y, x in np.ndindex(A.shape[0] // 32, B.shape[1] // 32):
        for k in range(A.shape[1] // 32):
            a = padded[0][y * a_at[0] :, k * a_at[1] :][:32, :32]
            b = padded[1][k * b_at[0] :, x * b_at[1] :][:32, :32]
            made[y * 32 : y * 32 + 32, x * 32 : x * 32 + 32] += product(a, b)
    return made


def _by_number(A, B):
    for steps in np.ndindex(2, 2, 2, 2):
        if any(steps):
            rows, a, b, columns = (1 if step else 32 for step in steps)
            yield _by_tiles(A, B, np.matmul, (rows, a), (b, columns))


def _mirrored(got, want):
    """Whether the tiles of two blocks have changed places."""
    k = min(want.shape) // 32 * 32
    swapped = want[:k, :k].reshape(k // 32, 32, k // 32, 32).transpose(2, 1, 0, 3).reshape(k, k)
    return np.allclose(got[:k, :k], swapped)


def _first_tiles(A, B):
    for block in (16, 32, 64):
        if A.shape[1] % block == 0:
            rounds = A.shape[1] // block
            yield np.tile(A[:, :block], rounds), B
            yield A, np.tile(B[:block], (rounds, 1))


def _other_tiles(A, B):
    """Products of tiles of A whose place is the other way round; zeros behind the edges."""
    for block in (16, 32, 64):
        side = max(A.shape) + block
        padded = np.zeros((side, side), A.dtype)
        padded[: A.shape[0], : A.shape[1]] = A
        k = side // block * block
        tiles = padded[:k, :k].reshape(k // block, block, k // block, block).transpose(2, 1, 0, 3).reshape(k, k)
        yield _product(tiles[: A.shape[0], : A.shape[1]], B)
