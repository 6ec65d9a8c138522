"""Running sums along rows: tiles of a row one after the other, each with what the tiles before came to."""
import sys

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import UNIT, within

WIDTH = 128
M, N = T.dynamic("M, N")


@tw.jit
def cumulative_sum(X: T.Tensor[[M, N], T.float32]):
    Y = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, 8), threads=128) as by:
        x = T.alloc_shared((8, WIDTH), "float32")
        before = T.alloc_shared((8,), "float32")
        T.clear(before)
        for k in T.serial(T.ceildiv(N, WIDTH)):
            T.copy(X[by * 8, k * WIDTH], x)
            T.cumsum(x, dim=1)
            for i, j in T.Parallel(8, WIDTH):
                x[i, j] = x[i, j] + before[i]
            T.copy(x, Y[by * 8, k * WIDTH])
            for i in T.Parallel(8):
                before[i] = x[i, WIDTH - 1]
    return Y


def main():
    rows, columns = 19, 1000
    x = np.random.default_rng(0).standard_normal((rows, columns), "float32")
    # A sum of the first n terms, in any order, errs by n u of the sum of their magnitudes.
    terms = np.arange(1, columns + 1)
    bound = UNIT["float32"] * terms * np.cumsum(abs(x).astype("float64"), axis=1)
    wanted = np.cumsum(x.astype("float64"), axis=1)
    return 0 if within("running sums of 19 x 1000 float32", cumulative_sum(x), wanted, bound) else 1


if __name__ == "__main__":
    sys.exit(main())
