"""The program of convolutions: products of weights with patches, which are gathered into tiles as the sum goes on."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family


@Family
def patches(x, window, stride, padding, dilation, bias, tf32, rows, columns, depth, threads):
    """Y[n, g * F + f, at] = sum over (channel, window) of W[g * F + f, channel, window] X[n, g * C + channel, at * stride -
    padding + window * dilation], plus B. A block has `rows` channels of the result and `columns` places, and sums `depth`
    terms in a step."""
    N, IC, D, H, W_, OC, C, OD, OH, OW, G = T.dynamic("N, IC, D, H, W, OC, C, OD, OH, OW, G")
    taps = window[0] * window[1] * window[2]

    @T.prim_func
    def convolution(
        X: T.Tensor((N, IC, D, H, W_), x),
        K: T.Tensor((OC, C * taps), x),
        B: T.Tensor((OC if bias else 1,), x),
        Y: T.Tensor((N, OC, OD, OH, OW), x),
        groups: T.Tensor((G,), "int8"),
    ):
        F = OC // G
        with T.Kernel(T.ceildiv(OD * OH * OW, columns), T.ceildiv(F, rows), N * G, threads=threads) as (bx, by, bz):
            n, g = bz // G, bz % G
            lying = T.alloc_shared((rows, depth), x)
            patch = T.alloc_shared((depth, columns), x)
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.serial(T.ceildiv(C * taps, depth)):
                for i, j in T.Parallel(rows, depth):
                    f, t = by * rows + i, k * depth + j
                    inside = T.logical_and(f < F, t < C * taps)
                    lying[i, j] = T.if_then_else(inside, K[T.min(g * F + f, OC - 1), T.min(t, C * taps - 1)], T.cast(0, x))
                for i, j in T.Parallel(depth, columns):
                    t, at = k * depth + i, bx * columns + j
                    c, tap = t // taps, t % taps
                    d = at // (OH * OW) * stride[0] - padding[0] + tap // (window[1] * window[2]) * dilation[0]
                    h = at // OW % OH * stride[1] - padding[1] + tap // window[2] % window[1] * dilation[1]
                    w = at % OW * stride[2] - padding[2] + tap % window[2] * dilation[2]
                    low = T.logical_and(d >= 0, T.logical_and(h >= 0, w >= 0))
                    high = T.logical_and(d < D, T.logical_and(h < H, w < W_))
                    if T.logical_and(T.logical_and(low, high), T.logical_and(c < C, at < OD * OH * OW)):
                        patch[i, j] = X[n, g * C + c, d, h, w]
                    else:
                        patch[i, j] = T.cast(0, x)
                T.gemm(lying, patch, acc)
            for i, j in T.Parallel(rows, columns):
                f, at = by * rows + i, bx * columns + j
                if T.logical_and(f < F, at < OD * OH * OW):
                    made = acc[i, j] + T.cast(B[g * F + f], "float32") if bias else acc[i, j]
                    Y[n, g * F + f, at // (OH * OW), at // OW % OH, at % OW] = T.cast(made, x)

    return convolution
