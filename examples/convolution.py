"""A convolution of images in NHWC as a product: T.im2col makes a tile of the matrix of patches, which is never in memory."""
import sys
from typing import Any

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import UNIT, within
from numpy.typing import NDArray


@tw.jit(out_idx=-1)
def convolution(B: int, H: int, L: int, C: int, KH: int, KW: int, F: int, stride: int = 1, pad: int = 1):
    OH, OL = (H + 2 * pad - KH) // stride + 1, (L + 2 * pad - KW) // stride + 1

    @T.prim_func
    def of_images(
        X: T.Tensor[[B, H, L, C], T.float16], W: T.Tensor[[KH, KW, C, F], T.float16], Y: T.Tensor[[B, OH, OL, F], T.float32]
    ):
        with T.Kernel(T.ceildiv(F, 32), T.ceildiv(B * OH * OL, 64), threads=128) as (bx, by):
            patches = T.alloc_shared((64, 16), "float16")
            weights = T.alloc_shared((16, 32), "float16")
            y = T.alloc_fragment((64, 32), "float32")
            flat_weights = T.reshape(W, (KH * KW * C, F))
            flat = T.reshape(Y, (B * OH * OL, F))
            T.clear(y)
            for k in T.Pipelined(T.ceildiv(KH * KW * C, 16), num_stages=2):
                T.im2col(X, patches, by, k, KH, stride, 1, pad)
                T.copy(flat_weights[k * 16, bx * 32], weights)
                T.gemm(patches, weights, y)
            T.copy(y, flat[by * 64, bx * 32])

    return of_images


def convolved(x: NDArray[Any], w: NDArray[Any], pad: int) -> NDArray[Any]:
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[:2], axis=(1, 2))
    return np.einsum("bhlcij,ijcf->bhlf", windows, w)


def main():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 9, 11, 16)).astype("float16"), rng.standard_normal((3, 3, 16, 40)).astype("float16")
    wide = x.astype("float64"), w.astype("float64")
    bound = UNIT["float32"] * 3 * 3 * 16 * convolved(abs(wide[0]), abs(wide[1]), 1)  # a sum of 144 exact products
    kernel = convolution(*x.shape, *w.shape[:2], w.shape[3])
    return 0 if within("convolution of 2 x 9 x 11 x 16, 3 x 3 to 40", kernel(x, w), convolved(*wide, 1), bound) else 1


if __name__ == "__main__":
    sys.exit(main())
