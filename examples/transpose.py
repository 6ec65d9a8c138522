"""A transpose through shared memory: rows in, rows out. The compiler chooses a layout in which no thread waits for another."""
import sys

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import within

M, N = T.dynamic("M, N")


@tw.jit
def transpose(A: T.Tensor[[M, N], T.float32]):
    B = T.empty((N, M), "float32")
    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
        tile = T.alloc_shared((32, 32), "float32")
        T.copy(A[by * 32, bx * 32], tile)
        for i, j in T.Parallel(32, 32):
            B[bx * 32 + i, by * 32 + j] = tile[j, i]
    return B


def main():
    rng, right = np.random.default_rng(0), True
    for shape in ((64, 64), (101, 333)):
        a = rng.standard_normal(shape, "float32")
        # Nothing is computed: the same bits.
        right &= within(f"transpose of {shape[0]} x {shape[1]} float32", transpose(a), a.T, 0)
    _, counts = transpose.compile().simulate(rng.standard_normal((64, 64), "float32"))
    total = counts["launches"][0]["total"]
    took, best = total["shared_wavefronts"], total["shared_wavefronts_ideal"]
    print(f"on a simulated GPU: {took} wavefronts of shared memory, {best} at best")
    return 0 if right and took == best else 1


if __name__ == "__main__":
    sys.exit(main())
