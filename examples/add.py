"""Sums of arrays of any length, by one kernel: the length is known at the call."""
import sys

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import within

N = T.dynamic("N")


@tw.jit
def add(A: T.Tensor[[N], T.float32], B: T.Tensor[[N], T.float32]):
    C = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, 1024), threads=128) as bx:
        for i in T.Parallel(1024):
            C[bx * 1024 + i] = A[bx * 1024 + i] + B[bx * 1024 + i]
    return C


def main():
    rng, right = np.random.default_rng(0), True
    for length in (1, 1000, 100_000):
        a, b = (rng.standard_normal(length, "float32") for _ in range(2))
        # One rounding, as NumPy's: the same bits.
        right &= within(f"add of {length} float32", add(a, b), a + b, 0)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
