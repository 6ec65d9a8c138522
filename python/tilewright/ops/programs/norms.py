"""Programs of norms: of rows with what is added before and behind, and of channels whose sums are known."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family


MOST_PARTS = 64  # of a row


def _finishes(weight, bias, gate, channels):
    """What is done with a normal element j: times that of W, plus that of B, times that of G. `near`: an element of the same
    channel."""

    def element(of, how, m, j, near, group, count, length):
        if how == "column":
            return T.cast(of[j], "float32")
        if how == "row":
            return T.cast(of[m, j], "float32")
        return T.cast(of[T.min((m % group) * count + near // length, channels - 1)], "float32")

    def finished(made, W, B, G, m, j, near, *group):
        if weight:
            made = T.bind(made * element(W, weight, m, j, near, *group))
        if bias:
            made = T.bind(made + element(B, bias, m, j, near, *group))
        return T.bind(made * T.cast(G[m, j], "float32")) if gate else made

    return finished


@Family
def rows(x, kind, added, weight, bias, gate, near, columns, rows, tile, threads):
    """Y = (X + R) as normal rows, times W plus B, times G. kind: "rms" or "layer". weight, bias: "" (none), "column" [N],
    "row" (as X), or "channel": [groups * channels], of which row m has those of group m % groups, each for `length`
    columns; so many after each other as `near` says are sure to be of one. A row of `columns` is on chip whole, one of 0 is
    walked in tiles."""
    M, N = T.dynamic("M, N")
    channels = T.dynamic("C")
    width, whole, centred = columns or tile, columns > 0, kind == "layer"
    N = columns or N
    shapes = {"": (1,), "column": (N,), "row": (M, N), "channel": (channels,)}
    finished = _finishes(weight, bias, gate, channels)

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
                for i, j, k in T.Parallel(rows, width // near, near):
                    m, n = bx * rows + i, t * width + j * near + k
                    made = (v[i, j * near + k] - mean[i]) * scale[i]
                    Y[m, n] = T.cast(finished(made, W, B, G, m, n, t * width + j * near, groups, count, length), x)

    return norm_rows


@Family
def parts(x, kind, added, weight, bias, gate, near, tile, threads):
    """rows(), of rows that are too few for a block each: P has the moments of each part of a row, its mean and the sum of
    squares around it ("rms": around zero), which every block of the second launch joins for its row."""
    M, N, S, channels = T.dynamic("M, N, S, C")
    shapes = {"": (1,), "column": (N,), "row": (M, N), "channel": (channels,)}
    finished = _finishes(weight, bias, gate, channels)
    centred = kind == "layer"

    @T.prim_func
    def norm_parts(
        X: T.Tensor((M, N), x),
        R: T.Tensor((M, N) if added else (1,), x),
        W: T.Tensor(shapes[weight], x),
        B: T.Tensor(shapes[bias], x),
        G: T.Tensor((M, N) if gate else (1,), x),
        Y: T.Tensor((M, N), x),
        Z: T.Tensor((M, N) if added else (1,), x),
        P: T.Tensor((M, S, 2), "float32"),
        epsilon: T.float32,
        groups: T.int32,
        count: T.int32,
        length: T.int32,
    ):
        per = T.ceildiv(T.ceildiv(N, S), tile) * tile
        with T.Kernel(M, S, threads=threads) as (m, s):
            v = T.alloc_fragment((tile,), "float32")
            total = T.alloc_fragment((1,), "float32")
            middle, apart, known = (T.alloc_var("float32", init=0) for _ in range(3))
            for t in T.serial(T.ceildiv(T.max(T.min((s + 1) * per, N) - s * per, 0), tile)):
                first = s * per + t * tile
                for j in T.Parallel(tile):
                    if added:
                        both = T.cast(T.cast(X[m, first + j], "float32") + T.cast(R[m, first + j], "float32"), x)
                        Z[m, first + j] = both
                        v[j] = T.cast(both, "float32")
                    else:
                        v[j] = T.cast(X[m, first + j], "float32")
                if centred:
                    T.reduce_sum(v, total, dim=0)
                    here = T.cast(T.min(tile, N - first), "float32")
                    off = total[0] / here
                    for j in T.Parallel(tile):
                        d = v[j] - off
                        v[j] = T.if_then_else(first + j < N, d * d, T.float32(0))
                    T.reduce_sum(v, total, dim=0)
                    share = here / (known + here)
                    apart = apart + total[0] + (off - middle) * (off - middle) * known * share
                    middle = middle + (off - middle) * share
                    known = known + here
                else:
                    for j in T.Parallel(tile):
                        v[j] = v[j] * v[j]
                    T.reduce_sum(v, total, dim=0)
                    apart = apart + total[0]
            if T.get_thread_binding() == 0:
                P[m, s, 0] = middle
                P[m, s, 1] = apart
        with T.Kernel(M, S, threads=threads) as (m, s):
            means = T.alloc_fragment((MOST_PARTS,), "float32")
            counts = T.alloc_fragment((MOST_PARTS,), "float32")
            joined = T.alloc_fragment((MOST_PARTS,), "float32")
            mean = T.alloc_fragment((1,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            for i in T.Parallel(MOST_PARTS):
                part = T.min(i, S)
                means[i] = T.if_then_else(i < S, P[m, part, 0], T.float32(0))
                counts[i] = T.cast(T.max(T.min((part + 1) * per, N) - part * per, 0), "float32")
                joined[i] = means[i] * counts[i]
            T.reduce_sum(joined, mean, dim=0)
            mean[0] = mean[0] / T.cast(N, "float32")
            for i in T.Parallel(MOST_PARTS):
                d = means[i] - mean[0]
                joined[i] = T.if_then_else(i < S, P[m, T.min(i, S), 1], T.float32(0)) + d * d * counts[i]
            T.reduce_sum(joined, scale, dim=0)
            scale[0] = T.rsqrt(scale[0] / T.cast(N, "float32") + epsilon)
            for t in T.serial(T.ceildiv(T.max(T.min((s + 1) * per, N) - s * per, 0), tile)):
                for j, k in T.Parallel(tile // near, near):
                    n = s * per + t * tile + j * near + k
                    made = (T.cast(Z[m, n] if added else X[m, n], "float32") - mean[0]) * scale[0]
                    Y[m, n] = T.cast(finished(made, W, B, G, m, n, s * per + t * tile + j * near, groups, count, length), x)

    return norm_parts


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


@T.macro
def _add(v, row, total):
    """total[0]: the sum of a tile."""
    T.reduce_sum(v, row, dim=1)
    T.reduce_sum(row, total, dim=0)


@Family
def moments(x, rows, columns, threads):
    """The mean of each channel of X, and its variance without correction: a block has a part of the images, and joins the
    moments of its tiles; P are those of parts, which the second launch joins."""
    N, C, L, S = T.dynamic("N, C, L, S")

    @T.prim_func
    def moments_of_channels(
        X: T.Tensor((N, C, L), x), P: T.Tensor((C, S, 2), "float32"), mean: T.Tensor((C,), "float32"), var: T.Tensor((C,), "float32")
    ):
        per = T.ceildiv(T.ceildiv(N, S), rows) * rows
        with T.Kernel(C, S, threads=threads) as (c, s):
            v = T.alloc_fragment((rows, columns), "float32")
            row = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((1,), "float32")
            middle, apart, count = (T.alloc_var("float32", init=0) for _ in range(3))
            end, across = T.min((s + 1) * per, N), T.ceildiv(L, columns)
            for t in T.serial(T.max(T.ceildiv(end - s * per, rows), 0) * across):
                n = s * per + t // across * rows
                for i, j in T.Parallel(rows, columns):
                    v[i, j] = T.cast(X[n + i, c, t % across * columns + j], "float32")
                _add(v, row, total)
                here = T.cast(T.min(rows, end - n) * T.min(columns, L - t % across * columns), "float32")
                off = total[0] / here
                for i, j in T.Parallel(rows, columns):
                    d = v[i, j] - off
                    v[i, j] = T.if_then_else(T.logical_and(n + i < end, t % across * columns + j < L), d * d, T.float32(0))
                _add(v, row, total)
                d = off - middle
                share = here / (count + here)
                apart = apart + total[0] + d * d * count * share
                middle = middle + d * share
                count = count + here
            if T.get_thread_binding() == 0:
                P[c, s, 0] = middle
                P[c, s, 1] = apart
        with T.Kernel(T.ceildiv(C, 128), threads=128) as bx:
            for i in T.Parallel(128):
                c = bx * 128 + i
                if c < C:
                    whole, around, known = (T.alloc_var("float32", init=0) for _ in range(3))
                    for part in T.serial(S):
                        of_part = T.cast(T.max(T.min((part + 1) * per, N) - part * per, 0), "float32") * T.cast(L, "float32")
                        step = P[c, part, 0] - whole
                        weight = of_part / T.max(known + of_part, 1)
                        around = around + P[c, part, 1] + step * step * known * weight
                        whole = whole + step * weight
                        known = known + of_part
                    mean[c] = whole
                    var[c] = around / known

    return moments_of_channels


@Family
def channel_gradients(x, rows, columns, threads):
    """Gradients of X, W and B, where Y is X as normal channels, times W plus B, and G the gradient of Y: sums of G, and of it
    times the normal channels, by parts of the images, all of them, and what they leave of G."""
    N, C, L, S = T.dynamic("N, C, L, S")

    @T.prim_func
    def gradients_of_channels(
        G: T.Tensor((N, C, L), x),
        X: T.Tensor((N, C, L), x),
        W: T.Tensor((C,), "float32"),
        mean: T.Tensor((C,), "float32"),
        rstd: T.Tensor((C,), "float32"),
        P: T.Tensor((C, S, 2), "float32"),
        DX: T.Tensor((N, C, L), x),
        DW: T.Tensor((C,), "float32"),
        DB: T.Tensor((C,), "float32"),
    ):
        per = T.ceildiv(T.ceildiv(N, S), rows) * rows
        with T.Kernel(C, S, threads=threads) as (c, s):
            g = T.alloc_fragment((rows, columns), "float32")
            v = T.alloc_fragment((rows, columns), "float32")
            row = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.clear(g)
            T.clear(v)
            end, across = T.min((s + 1) * per, N), T.ceildiv(L, columns)
            for t in T.serial(T.max(T.ceildiv(end - s * per, rows), 0) * across):
                n = s * per + t // across * rows
                for i, j in T.Parallel(rows, columns):
                    of = T.cast(G[n + i, c, t % across * columns + j], "float32")
                    g[i, j] = g[i, j] + of
                    v[i, j] = v[i, j] + of * (T.cast(X[n + i, c, t % across * columns + j], "float32") - mean[c])
            _add(g, row, total)
            if T.get_thread_binding() == 0:
                P[c, s, 0] = total[0]
            _add(v, row, total)
            if T.get_thread_binding() == 0:
                P[c, s, 1] = total[0] * rstd[c]
        with T.Kernel(T.ceildiv(C, 128), threads=128) as bx:
            for i in T.Parallel(128):
                c = bx * 128 + i
                if c < C:
                    of_bias, of_weight = (T.alloc_var("float32", init=0) for _ in range(2))
                    for s in T.serial(S):
                        of_bias = of_bias + P[c, s, 0]
                        of_weight = of_weight + P[c, s, 1]
                    DB[c] = of_bias
                    DW[c] = of_weight
        with T.Kernel(T.ceildiv(L, columns), T.ceildiv(N, rows), C, threads=threads) as (bx, by, c):
            count = T.cast(N, "float32") * T.cast(L, "float32")
            mean_bias, mean_weight, scale = DB[c] / count, DW[c] / count * rstd[c], W[c] * rstd[c]
            for i, j in T.Parallel(rows, columns):
                n = by * rows + i
                d = T.cast(G[n, c, bx * columns + j], "float32") - mean_bias - (T.cast(X[n, c, bx * columns + j], "float32") - mean[c]) * mean_weight
                DX[n, c, bx * columns + j] = T.cast(d * scale, x)

    return gradients_of_channels
