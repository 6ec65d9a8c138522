"""A product with a long K and a small result: several blocks share the terms of a tile, and add their parts by atomics."""
import sys

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import UNIT, within

M, N, K = T.dynamic("M, N, K")


@tw.jit
def split_gemm(A: T.Tensor[[M, K], T.float16], B: T.Tensor[[K, N], T.float16], C: T.Tensor[[M, N], T.float32], splits: int = 4):
    rounds = T.ceildiv(K, 32 * splits)
    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), splits, threads=128) as (bx, by, bz):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(rounds, num_stages=3):
            T.copy(A[by * 64, (bz * rounds + k) * 32], a)
            T.copy(B[(bz * rounds + k) * 32, bx * 64], b)
            T.gemm(a, b, c)
        T.atomic_add(C[by * 64, bx * 64], c)


def main():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((70, 4000)).astype("float16"), rng.standard_normal((4000, 100)).astype("float16")
    c = np.zeros((70, 100), "float32")
    split_gemm(a, b, c)
    wide = [x.astype("float64") for x in (a, b)]
    # Products of float16 are exact in float32; a sum of K of them, in any order, errs by K u of their magnitudes.
    bound = UNIT["float32"] * a.shape[1] * (abs(wide[0]) @ abs(wide[1]))
    return 0 if within("split product of 70 x 100 x 4000 float16", c, wide[0] @ wide[1], bound) else 1


if __name__ == "__main__":
    sys.exit(main())
