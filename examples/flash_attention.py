"""Attention whose table of scores is never in memory: a running softmax between two products. Causal if asked."""
import math
import sys
from typing import Any

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import UNIT, within
from numpy.typing import NDArray

M, N = T.dynamic("M, N")


@tw.jit(out_idx=-1)
def attention(D: int = 64, causal: bool = False):
    @T.prim_func
    def attention_of_one_head(
        Q: T.Tensor[[M, D], T.float32], K: T.Tensor[[N, D], T.float32], V: T.Tensor[[N, D], T.float32], O: T.Tensor[[M, D], T.float32]
    ):
        scale = math.log2(math.e) / math.sqrt(D)
        with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:
            q = T.alloc_shared((64, D), "float32")
            k = T.alloc_shared((64, D), "float32")
            v = T.alloc_shared((64, D), "float32")
            s = T.alloc_fragment((64, 64), "float32")
            out = T.alloc_fragment((64, D), "float32")
            largest = T.alloc_fragment((64,), "float32")
            before = T.alloc_fragment((64,), "float32")
            total = T.alloc_fragment((64,), "float32")
            part = T.alloc_fragment((64,), "float32")
            T.copy(Q[bx * 64, 0], q)
            T.fill(largest, -T.infinity("float32"))
            T.clear(total)
            T.clear(out)
            steps = T.min(T.ceildiv(N, 64), bx + 1) if causal else T.ceildiv(N, 64)
            for n in T.Pipelined(steps, num_stages=2):
                T.copy(K[n * 64, 0], k)
                for i, j in T.Parallel(64, 64):
                    seen = n * 64 + j <= bx * 64 + i if causal else n * 64 + j < N
                    s[i, j] = T.if_then_else(seen, 0.0, -T.infinity("float32"))
                T.gemm(q, k, s, transpose_B=True)
                T.copy(largest, before)
                T.reduce_max(s, largest, dim=1, clear=False)
                for i, j in T.Parallel(64, 64):
                    s[i, j] = T.exp2((s[i, j] - largest[i]) * scale)
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(64):
                    before[i] = T.exp2((before[i] - largest[i]) * scale)
                    total[i] = total[i] * before[i] + part[i]
                for i, j in T.Parallel(64, D):
                    out[i, j] = out[i, j] * before[i]
                T.copy(V[n * 64, 0], v)
                T.gemm(s, v, out)
            for i, j in T.Parallel(64, D):
                out[i, j] = out[i, j] / total[i]
            T.copy(out, O[bx * 64, 0])

    return attention_of_one_head


def exact(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], causal: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """(what it should be, how far it may be off): a score errs by D u of its terms' magnitudes, a weight by as much and its exp;
    sums of N terms by N u, and each of the steps rescales once more."""
    q, k, v = (x.astype("float64") for x in (q, k, v))
    scores = q @ k.T / math.sqrt(q.shape[1])
    if causal:
        scores = np.where(np.tri(*scores.shape) > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    of_scores = (q.shape[1] + 4) * (abs(q) @ abs(k).T / math.sqrt(q.shape[1])).max(axis=1, keepdims=True)
    error = UNIT["float32"] * (4 * of_scores + 2 * len(k) + 10 * -(-len(k) // 64) + 10)
    return weights @ v, error * (weights @ abs(v))


def main():
    rng, right = np.random.default_rng(0), True
    for causal in (False, True):
        q, k, v = (rng.standard_normal((150, 64), "float32") for _ in range(3))
        name = f"attention of 150 x 64 float32{', causal' if causal else ''}"
        right &= within(name, attention(causal=causal)(q, k, v), *exact(q, k, v, causal))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
