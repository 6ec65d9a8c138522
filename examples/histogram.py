"""Counts of values: a block counts its own share in shared memory, then adds its counts to all."""
import sys

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import within

BINS, SHARE = 64, 4096
N = T.dynamic("N")


@tw.jit
def histogram(X: T.Tensor[[N], T.int32], H: T.Tensor[[BINS], T.int32]):
    with T.Kernel(T.ceildiv(N, SHARE), threads=256) as bx:
        counts = T.alloc_shared((BINS,), "int32")
        T.clear(counts)
        for i in T.Parallel(SHARE):
            if bx * SHARE + i < N:
                T.atomic_add(counts[X[bx * SHARE + i]], 1)
        for b in T.Parallel(BINS):
            T.atomic_add(H[b], counts[b])


def main():
    x = np.random.default_rng(0).integers(0, BINS, 10_001).astype("int32")
    found = np.zeros(BINS, "int32")
    histogram(x, found)
    # Whole numbers: exact.
    return 0 if within("histogram of 10001 values in 64 bins", found, np.bincount(x, minlength=BINS), 0) else 1


if __name__ == "__main__":
    sys.exit(main())
