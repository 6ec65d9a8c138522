"""Small matrices whose rows and columns are made to sum to 1, in turn, many times, without leaving the chip."""
import sys

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import UNIT, within

TURNS = 10
B = T.dynamic("B")


@tw.jit(out_idx=-1)
def sinkhorn(N: int):
    @T.prim_func
    def of_matrices(X: T.Tensor[[B, N, N], T.float32], Y: T.Tensor[[B, N, N], T.float32]):
        with T.Kernel(T.ceildiv(B, 16), threads=128) as bx:
            x = T.alloc_fragment((16, N, N), "float32")
            rows = T.alloc_fragment((16, N), "float32")
            columns = T.alloc_fragment((16, N), "float32")
            T.copy(X[bx * 16, 0, 0], x)
            for b, i, j in T.Parallel(16, N, N):
                x[b, i, j] = T.exp(x[b, i, j])
            for _ in T.serial(TURNS):
                T.reduce_sum(x, rows, dim=2)
                for b, i, j in T.Parallel(16, N, N):
                    x[b, i, j] = x[b, i, j] / rows[b, i]
                T.reduce_sum(x, columns, dim=1)
                for b, i, j in T.Parallel(16, N, N):
                    x[b, i, j] = x[b, i, j] / columns[b, j]
            T.copy(x, Y[bx * 16, 0, 0])

    return of_matrices


def main():
    x = np.random.default_rng(0).uniform(-2, 2, (100, 4, 4)).astype("float32")
    wanted = np.exp(x.astype("float64"))
    for _ in range(TURNS):
        wanted /= wanted.sum(axis=2, keepdims=True)
        wanted /= wanted.sum(axis=1, keepdims=True)
    # exp is within 2 ulp (4 u); a turn has two sums of N positive terms (N u each) and two quotients, on what came before: all
    # errors are relative, and add up.
    bound = UNIT["float32"] * (4 + TURNS * 2 * (2 * x.shape[1] + 2)) * wanted
    return 0 if within("100 matrices of 4 x 4, 10 turns", sinkhorn(x.shape[1])(x), wanted, bound) else 1


if __name__ == "__main__":
    sys.exit(main())
