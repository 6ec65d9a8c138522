"""A product with weights of 8 bits and a scale for each column: weights become float16 on chip, so memory moves half as much."""
import sys

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import UNIT, within

M, N, K = T.dynamic("M, N, K")


@tw.jit
def dequantized_gemm(A: T.Tensor[[M, K], T.float16], W: T.Tensor[[K, N], T.int8], S: T.Tensor[[N], T.float32]):
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
        a = T.alloc_shared((64, 32), "float16")
        small = T.alloc_shared((32, 64), "int8")
        w = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages=3):
            T.copy(A[by * 64, k * 32], a)
            T.copy(W[k * 32, bx * 64], small)
            for i, j in T.Parallel(32, 64):
                w[i, j] = T.cast(small[i, j], "float16")    # exact: whole numbers up to 2048 are
            T.gemm(a, w, c)
        for i, j in T.Parallel(64, 64):
            c[i, j] = c[i, j] * S[bx * 64 + j]
        T.copy(c, C[by * 64, bx * 64])
    return C


def main():
    rng = np.random.default_rng(0)
    a, w = rng.standard_normal((50, 200)).astype("float16"), rng.integers(-128, 128, (200, 100)).astype("int8")
    s = rng.uniform(0.001, 0.01, 100).astype("float32")
    wide = a.astype("float64"), w.astype("float64")
    # A sum of K exact products, and the scale.
    bound = UNIT["float32"] * (a.shape[1] + 1) * (abs(wide[0]) @ abs(wide[1])) * s
    wanted = wide[0] @ wide[1] * s
    return 0 if within("product of 50 x 100 x 200 with int8 weights", dequantized_gemm(a, w, s), wanted, bound) else 1


if __name__ == "__main__":
    sys.exit(main())
