from __future__ import annotations

import tilewright.language as T


def strided(M, N, pitch):
    @T.prim_func
    def main(X: T.StridedTensor((M, N), (pitch, 1), "float32"), Y: T.Tensor((M, N), T.float32)):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(M, N):
                Y[i, j] = X[i, j]

    return main
