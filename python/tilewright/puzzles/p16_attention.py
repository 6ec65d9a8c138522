"""Puzzle 16: the forward pass of flash attention."""
import numpy as np

from .puzzle import Mistake, Puzzle


def _cases(random):
    for heads, s, d in ((1, 64, 32), (2, 100, 32)):
        q, k, v = (random.standard_normal((heads, s, d)).astype("float16") for _ in range(3))
        k = k * np.float16(2)
        yield {"Q": q * np.float16(2), "K": k - np.float16(4) * q.mean(1, keepdims=True), "V": v}


def _attention(Q, K, V, scale=None, padding=0, keep=True):
    q, k, v = (x.astype("float64") for x in (Q, K, V))
    scores = q @ k.transpose(0, 2, 1) * (1 / np.sqrt(Q.shape[2]) if scale is None else scale)
    scores = np.pad(scores, ((0, 0), (0, 0), (0, padding)))
    e = np.exp(scores - scores.max(2, keepdims=True))
    return (e[:, :, : k.shape[1]] @ v / (e.sum(2, keepdims=True) if keep else 1)).astype("float32")


def _blocked(Q, K, V, block, sums=True, output=True, divided=True, mask=True):
    """By tiles of keys, with the parts of the online softmax that a program may lack."""
    q, k, v = (x.astype("float64") for x in (Q, K, V))
    heads, n, d = q.shape
    largest, total, o = np.full((heads, n, 1), -np.inf), np.zeros((heads, n, 1)), np.zeros(q.shape)
    extra = -n % block
    k, v = (np.pad(x, ((0, 0), (0, extra), (0, 0))) for x in (k, v))
    for begin in range(0, n + extra, block):
        scores = q @ k[:, begin : begin + block].transpose(0, 2, 1) / np.sqrt(d)
        if mask:
            scores[:, :, max(n - begin, 0) :] = -np.inf
        new = np.maximum(largest, scores.max(2, keepdims=True))
        p, scale = np.exp(scores - new), np.exp(largest - new)
        total = total * (scale if sums else 1) + p.sum(2, keepdims=True)
        o = o * (scale if output else 1) + p @ v[:, begin : begin + block]
        largest = new
    return o / total if divided else o


def _of_whole_tiles(Q, K, V, block):
    end = K.shape[1] // block * block
    return _attention(Q, K[:, :end], V[:, :end]) if end else None


_NEW = "                new[i] = T.max(new[i], largest[i])\n"

PUZZLE = Puzzle(
    16,
    "attention",
    "Flash attention, forward",
    """
O[h] = softmax(Q[h] @ K[h].T / sqrt(D)) @ V[h], for each head h. The scores, L x L of them, are never in memory: a block has
32 rows of Q and walks along the rows of K and V in tiles of 32. It is puzzle 8's online softmax between the two products of
puzzle 9:

    p     = q @ k.T * scale                      T.gemm(q, k, p, transpose_B=True), p cleared before
            -infinity for keys from L on
    new   = max(largest, the largest of p's rows)
    p     = exp(p - new)
    total = total * exp(largest - new) + the sum of p's rows
    o     = o * exp(largest - new) + p @ v       p as float16 in shared memory

At the end o / total. The output so far was made with an older largest element, as the sum was: both are scaled.
""",
    """
                  K tile 0   K tile 1   K tile 2
    Q[h] 32 rows  | scores | | scores | | scores :|   32 x 32 each, on chip only
                      |          |          |
                  exp, @ V0   exp, @ V1   exp, @ V2
                      o    ->    o    ->    o         scaled when the largest grows
""",
    """@tw.jit
def attention(Q, K, V, O):
    H, L, D = T.const("H, L, D")
    Q: T.Tensor((H, L, D), "float16")
    K: T.Tensor((H, L, D), "float16")
    V: T.Tensor((H, L, D), "float16")
    O: T.Tensor((H, L, D), "float32")
    scale = 1 / D**0.5
    with T.Kernel(T.ceildiv(L, 32), H, threads=128) as (bx, h):
        q, k, v = (T.alloc_shared((32, D), "float16") for _ in range(3))
        p16 = T.alloc_shared((32, 32), "float16")
        p = T.alloc_fragment((32, 32), "float32")
        o = T.alloc_fragment((32, D), "float32")
        largest, new, part, total = (T.alloc_fragment((32,), "float32") for _ in range(4))
""",
    """        T.copy(Q[h, bx * 32, 0], q)
        T.fill(largest, -T.infinity("float32"))
        T.clear(total)
        T.clear(o)
        for t in T.serial(T.ceildiv(L, 32)):
            T.copy(K[h, t * 32, 0], k)
            T.copy(V[h, t * 32, 0], v)
            T.clear(p)
            T.gemm(q, k, p, transpose_B=True)
            for i, j in T.Parallel(32, 32):
                p[i, j] = T.if_then_else(t * 32 + j < L, p[i, j] * scale, -T.infinity("float32"))
            T.reduce_max(p, new, dim=1)
            for i in T.Parallel(32):
                new[i] = T.max(new[i], largest[i])
            for i, j in T.Parallel(32, 32):
                p[i, j] = T.exp(p[i, j] - new[i])
            T.reduce_sum(p, part, dim=1)
            for i in T.Parallel(32):
                total[i] = total[i] * T.exp(largest[i] - new[i]) + part[i]
            for i, j in T.Parallel(32, D):
                o[i, j] = o[i, j] * T.exp(largest[i] - new[i])
            T.copy(new, largest)
            T.copy(p, p16)
            T.gemm(p16, v, o)
        for i, j in T.Parallel(32, D):
            o[i, j] = o[i, j] / total[i]
        T.copy(o, O[h, bx * 32, 0])
""",
    (
        "Begin as in puzzle 8: q copied, largest = -infinity, total and o cleared. The loop, for t in T.serial(T.ceildiv(L, "
        "32)), copies K[h, t * 32, 0] and V[h, t * 32, 0].",
        "In it: clear p, T.gemm(q, k, p, transpose_B=True), scale and mask by t * 32 + j < L, new, exp, part, total; then "
        "o[i, j] = o[i, j] * T.exp(largest[i] - new[i]).",
        "The round ends with T.copy(new, largest), T.copy(p, p16), T.gemm(p16, v, o). Behind the loop: o[i, j] / total[i], "
        "and T.copy(o, O[h, bx * 32, 0]).",
    ),
    ("Q", "K", "V", "O"),
    ("O",),
    _attention,
    _cases,
    [
        Mistake(
            "the scores are not scaled",
            "The softmax is too sharp: the scores are divided by sqrt(D) before it, p[i, j] * scale.",
            [("p[i, j] * scale,", "p[i, j],")],
            like=lambda Q, K, V: _attention(Q, K, V, scale=1),
        ),
        Mistake(
            "divided by D",
            "The softmax is too flat: the scores are divided by sqrt(D), not by D.",
            [("p[i, j] * scale,", "p[i, j] / D,")],
            like=lambda Q, K, V: _attention(Q, K, V, scale=1 / Q.shape[2]),
        ),
        Mistake(
            "the output is not scaled",
            "The sum is scaled when the largest score grows, and the output so far is not: o[i, j] * T.exp(largest[i] - "
            "new[i]), before the second product.",
            [("            for i, j in T.Parallel(32, D):\n                o[i, j] = o[i, j] * T.exp(largest[i] - new[i])\n", "")],
            like=lambda Q, K, V, block: _blocked(Q, K, V, block, output=False),
        ),
        Mistake(
            "the sum is not scaled",
            "The output so far is scaled when the largest score grows, and the sum is not: total[i] * T.exp(largest[i] - "
            "new[i]) + part[i].",
            [("total[i] * T.exp(largest[i] - new[i]) + part[i]", "total[i] + part[i]")],
            like=lambda Q, K, V, block: _blocked(Q, K, V, block, sums=False),
        ),
        Mistake(
            "nothing is scaled",
            "Neither the sum nor the output is scaled when the largest score grows: both by T.exp(largest[i] - new[i]), "
            "before largest becomes new.",
            [
                ("total[i] * T.exp(largest[i] - new[i]) + part[i]", "total[i] + part[i]"),
                ("            for i, j in T.Parallel(32, D):\n                o[i, j] = o[i, j] * T.exp(largest[i] - new[i])\n", ""),
            ],
            others=[[("            T.copy(new, largest)\n", ""), (_NEW, f"{_NEW}                largest[i] = new[i]\n")]],
            like=lambda Q, K, V, block: _blocked(Q, K, V, block, sums=False, output=False),
        ),
        Mistake(
            "the largest stays as it began",
            "Only the last keys are in the output: largest is -infinity in every round, and what was there before is scaled by "
            "exp(-infinity), which is 0. The round ends with T.copy(new, largest).",
            [("            T.copy(new, largest)\n", "")],
            like=lambda Q, K, V, block: _attention(Q, K[:, (K.shape[1] - 1) // block * block :], V[:, (K.shape[1] - 1) // block * block :]),
        ),
        Mistake(
            "keys behind the end take part",
            "There are keys behind the end of K, of which a copy makes zeros: their scores are 0, and exp() of them is in the "
            "sum. Put -infinity where t * 32 + j is not less than L.",
            [("T.if_then_else(t * 32 + j < L, p[i, j] * scale, -T.infinity(\"float32\"))", "p[i, j] * scale")],
            like=lambda Q, K, V, block: _blocked(Q, K, V, block, mask=False),
        ),
        Mistake(
            "not divided by the sum",
            "The output is not divided by the sum: o[i, j] / total[i] behind the loop.",
            [("        for i, j in T.Parallel(32, D):\n            o[i, j] = o[i, j] / total[i]\n", "")],
            like=lambda Q, K, V, block: _blocked(Q, K, V, block, divided=False),
        ),
        Mistake(
            "K is not transposed",
            "The first product is q @ k, but the scores are q @ k.T: T.gemm(q, k, p, transpose_B=True).",
            [("T.gemm(q, k, p, transpose_B=True)", "T.gemm(q, k, p)")],
            codes=("TW3084", "TW3085"),
            when=lambda f: any(f.is_like(model) for model in _untransposed(**f.inputs)),
        ),
        Mistake(
            "a tile begins undefined",
            "A tile is read before anything is in it. T.gemm adds to p and o: p is cleared in every round, o and total before "
            "the loop, and largest begins as -infinity.",
            [("        T.clear(o)\n", "")],
            others=[[("            T.clear(p)\n", "")], [("        T.clear(total)\n", "")]],
            codes=("TW1090", "TW6002"),
        ),
        Mistake(
            "all heads are the first",
            "Every head has the output of another one's keys or values: K[h, ...] and V[h, ...], as Q[h, ...].",
            [("K[h, t * 32, 0]", "K[0, t * 32, 0]")],
            when=lambda f: len(f.inputs["Q"]) > 1 and any(f.is_like(model) for model in _first_head(**f.inputs)),
        ),
        Mistake(
            "only whole tiles of keys",
            "The last keys are left out: L // 32 rounds do not reach them.",
            [("T.serial(T.ceildiv(L, 32))", "T.serial(L // 32)")],
            like=lambda Q, K, V, block: _of_whole_tiles(Q, K, V, block),
        ),
    ],
    tolerance=2e-3,
    steps=(3.0, 1.5),
)


def _first_head(Q, K, V):
    first = [np.repeat(x[:1], len(Q), 0) for x in (K, V)]
    yield from (_attention(Q, first[0], V), _attention(Q, K, first[1]), _attention(Q, *first))


def _untransposed(Q, K, V):
    """q @ k of tiles as wide as they are high."""
    n, d = Q.shape[1:]
    if n % d == 0:
        tiles = K.reshape(len(K), n // d, d, d).transpose(0, 1, 3, 2).reshape(K.shape)
        yield _attention(Q, tiles, V)
