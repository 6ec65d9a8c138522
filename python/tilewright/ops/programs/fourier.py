"""The program of Fourier transforms of rows whose length is a power of two: Stockham's, which leaves all in order."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family


@Family
def transform(kind, length, inverse, rows, threads):
    """Y[m] = the transform of X[m], pairs of real and imaginary parts, times `scale`. W: cosines and sines of -2 pi j /
    length."""
    M = T.dynamic("M")
    half, steps = length // 2, range(length.bit_length() - 1)

    @T.prim_func
    def fourier(
        X: T.Tensor((M, length, 2), kind),
        W: T.Tensor((max(half, 1), 2), kind),
        Y: T.Tensor((M, length, 2), kind),
        scale: T.float32,
    ):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            a = T.alloc_shared((rows, length), kind)
            b = T.alloc_shared((rows, length), kind)
            c = T.alloc_shared((rows, length), kind)
            d = T.alloc_shared((rows, length), kind)
            for i, j in T.Parallel(rows, length):
                a[i, j] = X[bx * rows + i, j, 0]
                b[i, j] = X[bx * rows + i, j, 1]
            real, imaginary, to_real, to_imaginary = a, b, c, d
            for step in tuple(steps):
                size = 1 << step
                for i, j in T.Parallel(rows, half):
                    at = j % size
                    cosine, sine = W[at * (half // size), 0], W[at * (half // size), 1]
                    if inverse:
                        sine = -sine
                    x, y, u, v = real[i, j], imaginary[i, j], real[i, j + half], imaginary[i, j + half]
                    p, q = u * cosine - v * sine, u * sine + v * cosine
                    to = (j // size) * (2 * size) + at
                    to_real[i, to] = x + p
                    to_imaginary[i, to] = y + q
                    to_real[i, to + size] = x - p
                    to_imaginary[i, to + size] = y - q
                real, imaginary, to_real, to_imaginary = to_real, to_imaginary, real, imaginary
            for i, j in T.Parallel(rows, length):
                Y[bx * rows + i, j, 0] = real[i, j] * T.cast(scale, kind)
                Y[bx * rows + i, j, 1] = imaginary[i, j] * T.cast(scale, kind)

    return fourier
