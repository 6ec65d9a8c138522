"""Softmax along rows that fit on chip: one read and one write of each element."""
import sys
from typing import Any

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import UNIT, within
from numpy.typing import NDArray

M = T.dynamic("M")


@tw.jit(out_idx=-1)
def softmax(N: int):
    @T.prim_func
    def softmax_of_rows(X: T.Tensor[[M, N], T.float32], Y: T.Tensor[[M, N], T.float32]):
        with T.Kernel(T.ceildiv(M, 4), threads=128) as by:
            x = T.alloc_fragment((4, N), "float32")
            largest = T.alloc_fragment((4,), "float32")
            total = T.alloc_fragment((4,), "float32")
            T.copy(X[by * 4, 0], x)
            T.reduce_max(x, largest, dim=1)
            for i, j in T.Parallel(4, N):
                x[i, j] = T.exp(x[i, j] - largest[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(4, N):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, Y[by * 4, 0])

    return softmax_of_rows


def exact(x: NDArray[Any]) -> NDArray[Any]:
    e = np.exp(x.astype("float64") - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def bound_of(x: NDArray[Any]) -> NDArray[Any]:
    """A difference of d is rounded (d u), exp is within 2 ulp (4 u), a sum of N terms in any order (N u), a quotient (u)."""
    d = x.max(axis=1, keepdims=True) - x.min(axis=1, keepdims=True)
    return UNIT["float32"] * (2 * d + x.shape[1] + 10) * exact(x)


def main():
    x = np.random.default_rng(0).uniform(-8, 8, (101, 777)).astype("float32")
    return 0 if within("softmax of 101 x 777 float32", softmax(x.shape[1])(x), exact(x), bound_of(x)) else 1


if __name__ == "__main__":
    sys.exit(main())
