"""Layer norm: rows minus their mean, over their deviation, scaled and shifted. Mean and variance of a row on chip."""
import sys

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import UNIT, within

EPSILON = 1e-5
M = T.dynamic("M")


@tw.jit(out_idx=-1)
def layer_norm(N: int):
    @T.prim_func
    def norm_of_rows(
        X: T.Tensor[[M, N], T.float32], G: T.Tensor[[N], T.float32], B: T.Tensor[[N], T.float32], Y: T.Tensor[[M, N], T.float32]
    ):
        with T.Kernel(T.ceildiv(M, 4), threads=128) as by:
            x = T.alloc_fragment((4, N), "float32")
            squares = T.alloc_fragment((4, N), "float32")
            mean = T.alloc_fragment((4,), "float32")
            scale = T.alloc_fragment((4,), "float32")
            T.copy(X[by * 4, 0], x)
            T.reduce_sum(x, mean, dim=1)
            for i, j in T.Parallel(4, N):
                x[i, j] = x[i, j] - mean[i] / N
            for i, j in T.Parallel(4, N):
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, scale, dim=1)
            for i, j in T.Parallel(4, N):
                x[i, j] = x[i, j] * T.rsqrt(scale[i] / N + EPSILON) * G[j] + B[j]
            T.copy(x, Y[by * 4, 0])

    return norm_of_rows


def main():
    rng = np.random.default_rng(0)
    x, g, b = (rng.standard_normal(shape, "float32") for shape in ((37, 500), (500,), (500,)))
    wide = x.astype("float64")
    centred = wide - wide.mean(axis=1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
    # The mean errs by N u of the mean of magnitudes, which moves every element; the variance by N u, its root by half of that.
    u, n = UNIT["float32"], x.shape[1]
    spread = np.sqrt((centred**2).mean(axis=1, keepdims=True))
    moved = n * u * abs(wide).mean(axis=1, keepdims=True) / spread
    bound = (moved * (1 + abs(normed)) + (n + 8) * u * abs(normed)) * abs(g) + u * (abs(normed * g) + abs(b)) * 2
    return 0 if within("layer norm of 37 x 500 float32", layer_norm(n)(x, g, b), normed * g + b, bound) else 1


if __name__ == "__main__":
    sys.exit(main())
