"""Products of many matrices, A B^T each: the batch is a third dimension of the grid; all four dimensions are known at the call."""
import sys

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import UNIT, within

batch, M, N, K = T.dynamic("batch, M, N, K")


@tw.jit
def batched_gemm(A: T.Tensor[[batch, M, K], T.float16], B: T.Tensor[[batch, N, K], T.float16]):
    C = T.empty((batch, M, N), "float32")
    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), batch, threads=128) as (bx, by, bz):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((64, 32), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages=3):
            T.copy(A[bz, by * 64, k * 32], a)
            T.copy(B[bz, bx * 64, k * 32], b)
            T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C[bz, by * 64, bx * 64])
    return C


def main():
    rng, right = np.random.default_rng(0), True
    for batch in (1, 5):
        a, b = (rng.standard_normal(shape).astype("float16") for shape in ((batch, 70, 96), (batch, 100, 96)))
        wide = a.astype("float64"), b.astype("float64").transpose(0, 2, 1)
        bound = UNIT["float32"] * a.shape[2] * (abs(wide[0]) @ abs(wide[1]))  # a sum of K exact products
        right &= within(f"{batch} products of 70 x 100 x 96 float16", batched_gemm(a, b), wide[0] @ wide[1], bound)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
