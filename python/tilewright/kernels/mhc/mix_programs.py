"""Programs of the weights of hyper-connections: sigmoids of scaled products, Sinkhorn's normalization, and their gradients."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family, range_of
from .norm_programs import pieces, write_pieces, write_sums
from .stream_programs import tiles, write_mixed


def sigmoid(x):
    return 1.0 / (1.0 + T.exp(-x))


@Family
def mixes(columns, streams, scales):
    """x * scale + base of each column, and what becomes of it: a weight before the layer, behind it, or between streams.
    `scales`: 1 where all are of the first kind, or 3."""
    tokens = T.dynamic("tokens")
    rows = max(1, 512 // (streams if scales == 1 else streams * streams))  # a thread has four columns of the most frequent kind

    @T.prim_func
    def split_mixes(
        X: T.Tensor((tokens, columns), "float32"),
        scale: T.Tensor((scales,), "float32"),
        base: T.Tensor((columns,), "float32"),
        pre_mix: T.Tensor((tokens, streams), "float32"),
        post_mix: T.Tensor((tokens, streams), "float32"),
        comb: T.Tensor((tokens, streams * streams), "float32"),
        pre: T.float32,
        post: T.float32,
    ):
        with T.Kernel(T.ceildiv(tokens, rows), threads=128) as bx:
            before = T.alloc_fragment((rows, streams), "float32")
            T.copy(X[bx * rows, 0], before)
            if scales == 3:
                behind = T.alloc_fragment((rows, streams), "float32")
                between = T.alloc_fragment((rows, streams * streams), "float32")
                T.copy(X[bx * rows, streams], behind)
                T.copy(X[bx * rows, 2 * streams], between)
                for i, c in T.Parallel(rows, streams * streams):
                    comb[bx * rows + i, c] = between[i, c] * scale[2] + base[2 * streams + c]
                for i, c in T.Parallel(rows, streams):
                    post_mix[bx * rows + i, c] = sigmoid(behind[i, c] * scale[1] + base[streams + c]) * post
            for i, c in T.Parallel(rows, streams):
                pre_mix[bx * rows + i, c] = sigmoid(before[i, c] * scale[0] + base[c]) + pre

    return split_mixes


@Family
def mixes_gradient(columns, streams, scales, rows=64):
    """Gradients of mixes(): of x, and sums over some tokens of those of x * scale + base and of them times x, of each block."""
    tokens, blocks = T.dynamic("tokens, blocks")

    @T.prim_func
    def split_mixes_backward(
        d_pre: T.Tensor((tokens, streams), "float32"),
        d_post: T.Tensor((tokens, streams), "float32"),
        d_comb: T.Tensor((tokens, streams * streams), "float32"),
        X: T.Tensor((tokens, columns), "float32"),
        scale: T.Tensor((scales,), "float32"),
        base: T.Tensor((columns,), "float32"),
        dX: T.Tensor((tokens, columns), "float32"),
        sums: T.Tensor((blocks, 2, columns), "float32"),
        post: T.float32,
    ):
        with T.Kernel(blocks, threads=128) as bx:
            dz = T.alloc_fragment((rows, columns), "float32")
            times = T.alloc_fragment((rows, columns), "float32")
            of_base = T.alloc_fragment((columns,), "float32")
            of_scale = T.alloc_fragment((columns,), "float32")
            T.clear(of_base)
            T.clear(of_scale)
            for step in T.serial(bx, T.ceildiv(tokens, rows), blocks):
                for i, c in T.Parallel(rows, columns):
                    t = step * rows + i
                    kind = T.if_then_else(c < streams, 0, T.if_then_else(c < 2 * streams, 1, 2)) if scales == 3 else 0
                    dz[i, c] = 0.0
                    times[i, c] = 0.0
                    if t < tokens:
                        s = sigmoid(X[t, c] * scale[kind] + base[c])
                        slope = s * (1.0 - s)
                        if scales == 3:
                            dz[i, c] = T.if_then_else(
                                c < streams,
                                d_pre[t, T.min(c, streams - 1)] * slope,
                                T.if_then_else(
                                    c < 2 * streams,
                                    d_post[t, T.max(T.min(c - streams, streams - 1), 0)] * post * slope,
                                    d_comb[t, T.max(c - 2 * streams, 0)],
                                ),
                            )
                        else:
                            dz[i, c] = d_pre[t, c] * slope
                        times[i, c] = dz[i, c] * X[t, c]
                        dX[t, c] = dz[i, c] * scale[kind]
                T.reduce_sum(dz, of_base, dim=0, clear=False)
                T.reduce_sum(times, of_scale, dim=0, clear=False)
            for c in T.Parallel(columns):
                sums[bx, 0, c] = of_base[c]
                sums[bx, 1, c] = of_scale[c]

    return split_mixes_backward


@T.macro
def invert(sums, epsilon, exact):
    """What scale_columns() and scale_rows() want of sums: one over each plus epsilon, or where that might be too large the sum
    itself."""
    for n, t in T.Parallel(*sums.shape):
        sums[n, t] = sums[n, t] + epsilon if exact else 1.0 / (sums[n, t] + epsilon)


@T.macro
def scale_columns(x, by, exact):
    for i, j, t in T.Parallel(*x.shape):
        x[i, j, t] = x[i, j, t] / by[j, t] if exact else x[i, j, t] * by[j, t]


@T.macro
def scale_rows(x, by, exact):
    for i, j, t in T.Parallel(*x.shape):
        x[i, j, t] = x[i, j, t] / by[i, t] if exact else x[i, j, t] * by[i, t]


@T.macro
def soften(x, of_rows):
    """softmax of the rows of matrices (rows, columns, matrices)."""
    T.reduce_max(x, of_rows, dim=1)
    for i, j, t in T.Parallel(*x.shape):
        x[i, j, t] = T.exp(x[i, j, t] - of_rows[i, t])
    T.reduce_sum(x, of_rows, dim=1)
    invert(of_rows, 0.0, False)
    scale_rows(x, of_rows, False)


@T.macro
def shift(x, epsilon):
    for i, j, t in T.Parallel(*x.shape):
        x[i, j, t] = x[i, j, t] + epsilon


@Family
def pre(streams, steps, tf32, exact, many=32):
    """norm(), mixes(), sinkhorn() and apply() of the same tokens. What lies between the first and the last is one launch, where a
    thread has a token."""
    tokens, width, hidden, parts = T.dynamic("tokens, width, hidden, parts")
    outputs = streams * (2 + streams)
    count, padded = pieces(outputs, tf32)

    @T.prim_func
    def mhc_pre(
        rows_of: T.Tensor((tokens, width), "bfloat16"),
        X: T.Tensor((tokens, streams, hidden), "bfloat16"),
        F: T.Tensor((outputs, width), "float32"),
        scale: T.Tensor((3,), "float32"),
        base: T.Tensor((outputs,), "float32"),
        of_f: T.Tensor((count * padded, width), "bfloat16"),
        products: T.Tensor((parts, tokens, outputs), "float32"),
        squares: T.Tensor((parts, tokens), "float32"),
        pre_mix: T.Tensor((tokens, streams), "float32"),
        post_mix: T.Tensor((tokens, streams), "float32"),
        comb: T.Tensor((tokens, streams, streams), "float32"),
        Y: T.Tensor((tokens, hidden), "bfloat16"),
        norm_epsilon: T.float32,
        pre: T.float32,
        post: T.float32,
        epsilon: T.float32,
    ):
        write_pieces(F, of_f, outputs, tf32)
        write_sums(rows_of, of_f, products, squares, outputs, tf32)
        with T.Kernel(T.ceildiv(tokens, many), threads=many) as bx:
            found = tiles(outputs, (many,))
            total = T.alloc_fragment((many,), "float32")
            x = T.alloc_fragment((streams, streams, many), "float32")
            sums = T.alloc_fragment((streams, many), "float32")
            for each in (total, *found):
                T.clear(each)
            for part in T.unroll(parts, unroll_factor=4):
                for t in T.Parallel(many):
                    total[t] = total[t] + squares[part, bx * many + t]
                for n in range_of(outputs):
                    for t in T.Parallel(many):
                        found[n][t] = found[n][t] + products[part, bx * many + t, n]
            for t in T.Parallel(many):
                total[t] = T.rsqrt(total[t] / T.cast(width, "float32") + norm_epsilon)
            for n in range_of(outputs):
                for t in T.Parallel(many):
                    found[n][t] = found[n][t] * total[t]
            for n in range_of(streams):
                for t in T.Parallel(many):
                    pre_mix[bx * many + t, n] = sigmoid(found[n][t] * scale[0] + base[n]) + pre
                    post_mix[bx * many + t, n] = sigmoid(found[streams + n][t] * scale[1] + base[streams + n]) * post
            for n in range_of(streams * streams):
                for t in T.Parallel(many):
                    x[n // streams, n % streams, t] = found[2 * streams + n][t] * scale[2] + base[2 * streams + n]
            soften(x, sums)
            shift(x, epsilon)
            for step in T.serial((steps + 1) // 2):
                T.reduce_sum(x, sums, dim=0)
                invert(sums, epsilon, exact)
                scale_columns(x, sums, exact)
                if 2 * step + 1 < steps:
                    T.reduce_sum(x, sums, dim=1)
                    invert(sums, epsilon, exact)
                    scale_rows(x, sums, exact)
            for i, j, t in T.Parallel(streams, streams, many):
                comb[bx * many + t, i, j] = x[i, j, t]
        write_mixed(X, pre_mix, Y)

    return mhc_pre


@Family
def sinkhorn(rows, columns, steps, many, backward, exact):
    """Softmax of rows, then columns and rows in turn divided by their sums: `steps` divisions. `many` matrices a block, each of
    which a thread has to itself where they are small. backward: the gradient; the sums are made again, and each step undone."""
    matrices = T.dynamic("matrices")
    shape = (rows, columns, many)

    @T.prim_func
    def sinkhorn_normalize(
        X: T.Tensor((matrices, rows, columns), "float32"),
        Y: T.Tensor((matrices, rows, columns), "float32"),
        dX: T.Tensor((matrices, rows, columns), "float32"),
        epsilon: T.float32,
    ):
        with T.Kernel(T.ceildiv(matrices, many), threads=min(128, max(32, many * rows * columns))) as bx:
            x = T.alloc_fragment(shape, "float32")
            of_rows = T.alloc_fragment((rows, many), "float32")
            of_columns = T.alloc_fragment((columns, many), "float32")
            if backward:
                soft = T.alloc_fragment(shape, "float32")
                g = T.alloc_fragment(shape, "float32")
                product = T.alloc_fragment(shape, "float32")
                sums = T.alloc_shared((steps, max(rows, columns), many), "float32")
            for i, j, t in T.Parallel(*shape):
                x[i, j, t] = X[bx * many + t, i, j]
            soften(x, of_rows)
            if backward:
                T.copy(x, soft)
            shift(x, epsilon)
            for step in T.serial((steps + 1) // 2):
                T.reduce_sum(x, of_columns, dim=0)
                if backward:
                    for j, t in T.Parallel(columns, many):
                        sums[2 * step, j, t] = of_columns[j, t] + epsilon
                invert(of_columns, epsilon, exact)
                scale_columns(x, of_columns, exact)
                if 2 * step + 1 < steps:
                    T.reduce_sum(x, of_rows, dim=1)
                    if backward:
                        for i, t in T.Parallel(rows, many):
                            sums[2 * step + 1, i, t] = of_rows[i, t] + epsilon
                    invert(of_rows, epsilon, exact)
                    scale_rows(x, of_rows, exact)
            if backward:
                for i, j, t in T.Parallel(*shape):
                    g[i, j, t] = Y[bx * many + t, i, j]
                for undone in T.serial((steps + 1) // 2):
                    step = (steps - 1) // 2 - undone
                    if 2 * step + 1 < steps:
                        for i, j, t in T.Parallel(*shape):
                            product[i, j, t] = g[i, j, t] * x[i, j, t]
                        T.reduce_sum(product, of_rows, dim=1)
                        for i, j, t in T.Parallel(*shape):
                            g[i, j, t] = (g[i, j, t] - of_rows[i, t]) / sums[2 * step + 1, i, t]
                            x[i, j, t] = x[i, j, t] * sums[2 * step + 1, i, t]
                    for i, j, t in T.Parallel(*shape):
                        product[i, j, t] = g[i, j, t] * x[i, j, t]
                    T.reduce_sum(product, of_columns, dim=0)
                    for i, j, t in T.Parallel(*shape):
                        g[i, j, t] = (g[i, j, t] - of_columns[j, t]) / sums[2 * step, j, t]
                        x[i, j, t] = x[i, j, t] * sums[2 * step, j, t]
                for i, j, t in T.Parallel(*shape):
                    product[i, j, t] = g[i, j, t] * soft[i, j, t]
                T.reduce_sum(product, of_rows, dim=1)
                for i, j, t in T.Parallel(*shape):
                    dX[bx * many + t, i, j] = soft[i, j, t] * (g[i, j, t] - of_rows[i, t])
            else:
                for i, j, t in T.Parallel(*shape):
                    Y[bx * many + t, i, j] = x[i, j, t]

    return sinkhorn_normalize
