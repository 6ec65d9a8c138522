"""Programs of SwiGLU with a cast of its rows, and of its gradient."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family
from .cast_programs import dealt, write_values
from .gated import limited, silu_times
from .scales import LARGEST, LEAST, scale_and_inverse, write_scales, written_scales

_LANES = 8


@T.macro
def add_count(count, index, flags):
    """Adds how many of the flags (rows, groups, eights, lanes) are set to an element of `count`."""
    rows, groups, eights, lanes = flags.shape
    of_eight = T.alloc_fragment((rows, groups, eights), "int32")
    of_group = T.alloc_fragment((rows, groups), "int32")
    of_row = T.alloc_fragment((rows,), "int32")
    total = T.alloc_fragment((1,), "int32")
    T.reduce_sum(flags, of_eight, dim=3)
    T.reduce_sum(of_eight, of_group, dim=2)
    T.reduce_sum(of_group, of_row, dim=1)
    T.reduce_sum(of_row, total, dim=0)
    for n in T.Parallel(1):
        if total[n] > 0:
            T.atomic_add(count[index], T.cast(total[n], "int64"))


@Family
def forward(x, group, groups, rows, near, weighted, masked, clamped, counted, rounded, packed, threads=128):
    """silu(left) * right of each row, times its weight, in e4m3 with a scale for `group` columns. near: threads that share a
    group; masked: rows without an expert are zeros, and are not read."""
    tokens, hidden, pairs, gate_row, up_row = T.dynamic("tokens, hidden, pairs, gate_row, up_row")
    number, eights = T.ceildiv(hidden, group), group // _LANES
    shape = (rows, groups, eights, _LANES)
    deal = dealt(shape, near, threads)

    @T.prim_func
    def swiglu_cast(
        left: T.StridedTensor((tokens, hidden), (gate_row, 1), x),
        right: T.StridedTensor((tokens, hidden), (up_row, 1), x),
        Q: T.Tensor((tokens, hidden), "float8_e4m3fn"),
        scales: written_scales(tokens, number, packed, by_words=True),
        pos_to_token_topk: T.Tensor((tokens,), "int32"),
        weights: T.Tensor((pairs,), "float32"),
        pos_to_expert: T.Tensor((tokens,), "int32"),
        count: T.Tensor((3,), "int64"),
        limit: T.float32,
        least: T.float32,
    ):
        with T.Kernel(T.ceildiv(hidden, groups * group), T.ceildiv(tokens, rows), threads=threads) as (bx, by):
            t0, c0 = by * rows, bx * groups * group
            # Everything is asked for before anything is computed: what a row's number is looked up for, then both halves.
            if weighted:
                pair = T.alloc_fragment((rows,), "int32")
                for i in T.Parallel(rows):
                    pair[i] = T.if_then_else(t0 + i < tokens, pos_to_token_topk[t0 + i], -1)
            if masked:
                row_of = T.alloc_fragment((rows,), "int32")
                for i in T.Parallel(rows):
                    expert = T.if_then_else(t0 + i < tokens, pos_to_expert[t0 + i], -1)
                    row_of[i] = T.if_then_else(expert >= 0, t0 + i, tokens)  # behind the last row: zeros
            halves = [T.alloc_fragment(shape, x) for _ in range(2)]
            if deal is not None:
                T.annotate_layout({halves[0]: deal})
            for i, g, w, j in T.Parallel(*shape):
                t, c = row_of[i] if masked else t0 + i, c0 + (g * eights + w) * _LANES + j
                halves[0][i, g, w, j] = left[t, c]
                halves[1][i, g, w, j] = right[t, c]
            if weighted:
                factor = T.alloc_fragment((rows,), "float32")
                for i in T.Parallel(rows):
                    factor[i] = T.if_then_else(pair[i] >= 0, weights[T.max(pair[i], 0)], T.float32(0))
            if counted:
                for which in (0, 1, 2):
                    flags = T.alloc_fragment(shape, "int32")
                    for i, g, w, j in T.Parallel(*shape):
                        value = T.cast(halves[min(which, 1)][i, g, w, j], "float32")
                        beyond = value < -limit if which == 2 else value > limit
                        inside = c0 + (g * eights + w) * _LANES + j < hidden
                        flags[i, g, w, j] = T.if_then_else(T.logical_and(beyond, inside), 1, 0)
                    add_count(count, which, flags)
            act = T.alloc_fragment(shape, "float32")
            largest = T.alloc_fragment((rows, groups, eights), "float32")
            inverse = T.alloc_fragment((rows, groups), "float32")
            for i, g, w, j in T.Parallel(*shape):
                a, b = (T.cast(halves[half][i, g, w, j], "float32") for half in (0, 1))
                if clamped:
                    a, b = limited(a, b, limit)
                act[i, g, w, j] = silu_times(a, b) * factor[i] if weighted else silu_times(a, b)
            T.reduce_absmax(act, largest, dim=3)
            T.reduce_max(largest, inverse, dim=2)
            write_scales(scales, inverse, t0, bx * groups, number, least, LARGEST["e4m3"], rounded, packed)
            write_values(Q, act, inverse, t0, c0, "e4m3", False)

    return swiglu_cast


@Family
def backward(gradient, group, groups, rows, near, clamped, rounded, threads=128):
    """What comes back through silu(left) * right * weight, whose input was e4m3 with scales: the result again, the gradient of
    the input, in e4m3 with scales too, and that of each weight. Halves of a row are the second dimension."""
    tokens, hidden, pairs = T.dynamic("tokens, hidden, pairs")
    eights, columns = group // _LANES, groups * group
    shape = (rows, groups, eights, _LANES)
    deal = dealt(shape, near, threads)

    @T.prim_func
    def swiglu_backward(
        X: T.Tensor((tokens, 2, hidden), "float8_e4m3fn"),
        X_scales: T.Tensor((tokens, 2, hidden // group), "float32"),
        dY: T.Tensor((tokens, hidden), gradient),
        weights: T.Tensor((pairs,), "float32"),
        pos_to_token_topk: T.Tensor((tokens,), "int32"),
        Y: T.Tensor((tokens, hidden), gradient),
        dQ: T.Tensor((tokens, 2, hidden), "float8_e4m3fn"),
        dQ_scales: T.Tensor((tokens, 2, hidden // group), "float32"),
        dX: T.Tensor((tokens, 2, hidden), gradient),
        dW: T.Tensor((pairs,), "float32"),
        limit: T.float32,
    ):
        with T.Kernel(T.ceildiv(tokens, rows), threads=threads) as by:
            t0 = by * rows
            pair = T.alloc_fragment((rows,), "int32")
            factor = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((rows,), "float32")
            T.clear(total)
            for i in T.Parallel(rows):
                pair[i] = T.if_then_else(t0 + i < tokens, pos_to_token_topk[t0 + i], -1)
            for i in T.Parallel(rows):
                factor[i] = T.if_then_else(pair[i] >= 0, weights[T.max(pair[i], 0)], T.float32(0))
            for n in T.serial(hidden // columns):
                halves = [T.alloc_fragment(shape, "float32") for _ in range(2)]
                scales = [T.alloc_fragment((rows, groups), "float32") for _ in range(2)]
                upstream = T.alloc_fragment(shape, gradient)
                a = T.alloc_fragment(shape, "float32")
                b = T.alloc_fragment(shape, "float32")
                slope = T.alloc_fragment(shape, "float32")
                sigmoid = T.alloc_fragment(shape, "float32")
                silu = T.alloc_fragment(shape, "float32")
                of_eight = T.alloc_fragment((rows, groups, eights), "float32")
                of_group = T.alloc_fragment((rows, groups), "float32")
                of_row = T.alloc_fragment((rows,), "float32")
                inverse = T.alloc_fragment((rows, groups), "float32")
                T.annotate_layout({a: deal})
                for i, g in T.Parallel(rows, groups):
                    for half in (0, 1):
                        scales[half][i, g] = X_scales[t0 + i, half, n * groups + g]
                for half in (0, 1):
                    for i, g, w, j in T.Parallel(*shape):
                        halves[half][i, g, w, j] = T.cast(X[t0 + i, half, n * columns + (g * eights + w) * _LANES + j], "float32")
                for i, g, w, j in T.Parallel(*shape):
                    upstream[i, g, w, j] = dY[t0 + i, n * columns + (g * eights + w) * _LANES + j]
                for i, g, w, j in T.Parallel(*shape):
                    x, y = halves[0][i, g, w, j] * scales[0][i, g], halves[1][i, g, w, j] * scales[1][i, g]
                    halves[0][i, g, w, j], halves[1][i, g, w, j] = x, y
                    a[i, g, w, j], b[i, g, w, j] = limited(x, y, limit) if clamped else (x, y)
                for i, g, w, j in T.Parallel(*shape):
                    slope[i, g, w, j] = 1.0 + T.exp(-a[i, g, w, j])
                for i, g, w, j in T.Parallel(*shape):  # maps of one quotient each, for which threads branch once
                    sigmoid[i, g, w, j] = 1.0 / slope[i, g, w, j]
                for i, g, w, j in T.Parallel(*shape):
                    silu[i, g, w, j] = a[i, g, w, j] / slope[i, g, w, j]
                for i, g, w, j in T.Parallel(*shape):
                    act, come = silu[i, g, w, j] * b[i, g, w, j], T.cast(upstream[i, g, w, j], "float32")
                    Y[t0 + i, n * columns + (g * eights + w) * _LANES + j] = T.cast(act * factor[i], gradient)
                    silu[i, g, w, j] = come * act
                    through = come * factor[i] * sigmoid[i, g, w, j]
                    da = through * b[i, g, w, j] * T.fma(a[i, g, w, j], 1.0 - sigmoid[i, g, w, j], T.float32(1))
                    db = through * a[i, g, w, j]
                    if clamped:
                        x, y = halves[0][i, g, w, j], halves[1][i, g, w, j]
                        da = T.if_then_else(x > limit, T.float32(0), da)
                        db = T.if_then_else(T.logical_or(y > limit, y < -limit), T.float32(0), db)
                    a[i, g, w, j], b[i, g, w, j] = da, db
                T.reduce_sum(silu, of_eight, dim=3)
                T.reduce_sum(of_eight, of_group, dim=2)
                T.reduce_sum(of_group, of_row, dim=1)
                for i in T.Parallel(rows):
                    total[i] = total[i] + of_row[i]
                for half, part in ((0, a), (1, b)):
                    for i, g, w, j in T.Parallel(*shape):
                        dX[t0 + i, half, n * columns + (g * eights + w) * _LANES + j] = T.cast(part[i, g, w, j], gradient)
                    T.reduce_absmax(part, of_eight, dim=3)
                    T.reduce_max(of_eight, inverse, dim=2)
                    for i, g in T.Parallel(rows, groups):
                        scale, of_scale = scale_and_inverse(inverse[i, g], LEAST["e4m3"], LARGEST["e4m3"], rounded, False)
                        dQ_scales[t0 + i, half, n * groups + g] = scale
                        inverse[i, g] = of_scale
                    for i, g, w, j in T.Parallel(*shape):
                        narrow = T.cast(part[i, g, w, j] * inverse[i, g], "float8_e4m3fn")
                        dQ[t0 + i, half, n * columns + (g * eights + w) * _LANES + j] = narrow
            for i in T.Parallel(rows):
                if pair[i] >= 0:
                    dW[pair[i]] = total[i]

    return swiglu_backward
