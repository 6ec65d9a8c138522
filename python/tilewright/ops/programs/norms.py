"""Programs of norms: of rows with what is added before and behind, and of channels whose sums are known."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family


@Family
def rows(x, kind, added, weight, bias, gate, columns, rows, tile, threads):
    """Y = (X + R) as normal rows, times W plus B, times G. kind: "rms" or "layer". weight, bias: "" (none), "column" [N],
    "row" (as X), or "channel": [groups * channels], of which row m has those of group m % groups, each for `length`
    columns. A row of `columns` is on chip whole, one of 0 is walked in tiles."""
    M, N = T.dynamic("M, N")
    channels = T.dynamic("C")
    width, whole, centred = columns or tile, columns > 0, kind == "layer"
    N = columns or N
    shapes = {"": (1,), "column": (N,), "row": (M, N), "channel": (channels,)}

    def element(of, how, m, j, group, count, length):
        if how == "column":
            return T.cast(of[j], "float32")
        if how == "row":
            return T.cast(of[m, j], "float32")
        return T.cast(of[T.min((m % group) * count + j // length, channels - 1)], "float32")

    @T.prim_func
    def norm_rows(
        X: T.Tensor((M, N), x),
        R: T.Tensor((M, N) if added else (1,), x),
        W: T.Tensor(shapes[weight], x),
        B: T.Tensor(shapes[bias], x),
        G: T.Tensor((M, N) if gate else (1,), x),
        Y: T.Tensor((M, N), x),
        S: T.Tensor((M, N) if added else (1,), x),
        epsilon: T.float32,
        groups: T.int32,
        count: T.int32,
        length: T.int32,
    ):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            v = T.alloc_fragment((rows, width), "float32")
            part = T.alloc_fragment((rows, width), "float32")
            mean = T.alloc_fragment((rows,), "float32")
            scale = T.alloc_fragment((rows,), "float32")
            T.clear(mean)
            T.clear(scale)
            tiles = T.int32(1) if whole else T.ceildiv(N, width)
            for t in T.serial(tiles):
                for i, j in T.Parallel(rows, width):
                    m, n = bx * rows + i, t * width + j
                    if added:
                        total = T.cast(T.cast(X[m, n], "float32") + T.cast(R[m, n], "float32"), x)
                        S[m, n] = total
                        v[i, j] = T.cast(total, "float32")
                    else:
                        v[i, j] = T.cast(X[m, n], "float32")
                if centred:
                    T.reduce_sum(v, mean, dim=1, clear=False)
                else:
                    for i, j in T.Parallel(rows, width):
                        part[i, j] = v[i, j] * v[i, j]
                    T.reduce_sum(part, scale, dim=1, clear=False)
            if centred:
                for i in T.Parallel(rows):
                    mean[i] = mean[i] / T.cast(N, "float32")
                for t in T.serial(tiles):
                    if not whole:
                        for i, j in T.Parallel(rows, width):
                            v[i, j] = T.cast(
                                S[bx * rows + i, t * width + j] if added else X[bx * rows + i, t * width + j], "float32"
                            )
                    for i, j in T.Parallel(rows, width):
                        d = v[i, j] - mean[i]
                        part[i, j] = T.if_then_else(t * width + j < N, d * d, T.float32(0))
                    T.reduce_sum(part, scale, dim=1, clear=False)
            for i in T.Parallel(rows):
                scale[i] = T.rsqrt(scale[i] / T.cast(N, "float32") + epsilon)
            for t in T.serial(tiles):
                if not whole:
                    for i, j in T.Parallel(rows, width):
                        v[i, j] = T.cast(S[bx * rows + i, t * width + j] if added else X[bx * rows + i, t * width + j], "float32")
                for i, j in T.Parallel(rows, width):
                    m, n = bx * rows + i, t * width + j
                    made = (v[i, j] - mean[i]) * scale[i]
                    if weight:
                        made = made * element(W, weight, m, n, groups, count, length)
                    if bias:
                        made = made + element(B, bias, m, n, groups, count, length)
                    if gate:
                        made = made * T.cast(G[m, n], "float32")
                    Y[m, n] = T.cast(made, x)

    return norm_rows


@Family
def channels(x, rows, columns, threads):
    """Y[m, j] = X[m, j] * A[m % C] + B[m % C]."""
    M, N, C = T.dynamic("M, N, C")

    @T.prim_func
    def scale_channels(
        X: T.Tensor((M, N), x), A: T.Tensor((C,), "float32"), B: T.Tensor((C,), "float32"), Y: T.Tensor((M, N), x)
    ):
        with T.Kernel(T.ceildiv(M, rows), T.ceildiv(N, columns), threads=threads) as (by, bx):
            for i, j in T.Parallel(rows, columns):
                c = (by * rows + i) % C
                Y[by * rows + i, bx * columns + j] = T.cast(
                    T.cast(X[by * rows + i, bx * columns + j], "float32") * A[c] + B[c], x
                )

    return scale_channels
