"""Softmax along rows of any length: in two walks over tiles, with the largest element and the sum so far."""
import sys

import numpy as np
import softmax
import tilewright as tw
import tilewright.language as T
from bounds import UNIT, within

WIDTH = 256
M, N = T.dynamic("M, N")


@tw.jit
def online_softmax(X: T.Tensor[[M, N], T.float32]):
    Y = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, 4), threads=128) as by:
        x = T.alloc_fragment((4, WIDTH), "float32")
        largest = T.alloc_fragment((4,), "float32")
        before = T.alloc_fragment((4,), "float32")
        total = T.alloc_fragment((4,), "float32")
        part = T.alloc_fragment((4,), "float32")
        T.annotate_safe_value({X: -T.infinity("float32")})
        T.fill(largest, -T.infinity("float32"))
        T.clear(total)
        for k in T.serial(T.ceildiv(N, WIDTH)):
            T.copy(X[by * 4, k * WIDTH], x)
            T.copy(largest, before)
            T.reduce_max(x, largest, dim=1, clear=False)
            for i, j in T.Parallel(4, WIDTH):
                x[i, j] = T.exp(x[i, j] - largest[i])
            T.reduce_sum(x, part, dim=1)
            for i in T.Parallel(4):
                total[i] = total[i] * T.exp(before[i] - largest[i]) + part[i]
        for k in T.serial(T.ceildiv(N, WIDTH)):
            T.copy(X[by * 4, k * WIDTH], x)
            for i, j in T.Parallel(4, WIDTH):
                x[i, j] = T.exp(x[i, j] - largest[i]) / total[i]
            T.copy(x, Y[by * 4, k * WIDTH])
    return Y


def main():
    rng, right = np.random.default_rng(0), True
    for shape in ((5, 33), (17, 5000)):
        x = rng.uniform(-8, 8, shape).astype("float32")
        # Each tile rescales the sum by another exp of a difference of at most 16: 32 u + 6 u more.
        bound = softmax.bound_of(x) + UNIT["float32"] * -(-shape[1] // WIDTH) * 38 * softmax.exact(x)
        right &= within(f"online softmax of {shape[0]} x {shape[1]} float32", online_softmax(x), softmax.exact(x), bound)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
