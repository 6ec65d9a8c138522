"""Rows as int8, with a scale each: the largest magnitude of a row becomes 127."""
import sys

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import UNIT, within

M = T.dynamic("M")


@tw.jit(out_idx=[1, 2])
def quantize(N: int):
    @T.prim_func
    def quantized_rows(X: T.Tensor[[M, N], T.float32], Q: T.Tensor[[M, N], T.int8], S: T.Tensor[[M], T.float32]):
        with T.Kernel(T.ceildiv(M, 4), threads=128) as by:
            x = T.alloc_fragment((4, N), "float32")
            largest = T.alloc_fragment((4,), "float32")
            T.copy(X[by * 4, 0], x)
            T.reduce_absmax(x, largest, dim=1)
            for i in T.Parallel(4):
                largest[i] = T.max(largest[i], 1e-30) / 127     # rows of zeros have a scale too
                S[by * 4 + i] = largest[i]
            for i, j in T.Parallel(4, N):
                Q[by * 4 + i, j] = T.cast(T.round(x[i, j] / largest[i]), "int8")

    return quantized_rows


def main():
    x = np.random.default_rng(0).standard_normal((33, 300), "float32")
    x[5] = 0
    q, s = quantize(x.shape[1])(x)
    back = q.astype("float64") * s[:, None]
    right = within("scales of 33 rows", s, np.maximum(abs(x).max(axis=1), 1e-30) / 127, UNIT["float32"] * 2 * s)
    # Half a step of rounding to whole numbers, and the quotient's own rounding, 127 u of a step.
    bound = (0.5 + 127 * 2 * UNIT["float32"]) * s[:, None]
    return 0 if within("33 x 300 float32 as int8, and back", back, x, bound) and right else 1


if __name__ == "__main__":
    sys.exit(main())
