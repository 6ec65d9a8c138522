"""Programs of casts whose scales are those of rows one below the other: as they lie, gathered, behind SwiGLU, transposed."""

from __future__ import annotations

import functools

import tilewright.language as T

from ..programs import Family, range_of
from .gated import limited, silu_times
from .scales import LARGEST, LEAST, scale_and_inverse

_ROWS = 128  # of a block of the grid
_LANES = 8  # neighbouring columns of a thread that turns them


def largest_of(terms):
    """The largest of terms of a program."""
    return functools.reduce(T.max, terms)


@T.macro
def read_gated(X, values, limit, t0, c0, clamped):
    """SwiGLU of two halves of rows (tokens, 2, hidden), in bfloat16. Both halves are asked for before anything is computed."""
    lanes = values.shape[-1]
    gate = T.alloc_fragment(values.shape, "bfloat16")
    up = T.alloc_fragment(values.shape, "bfloat16")
    for i, w, j in T.Parallel(*values.shape):
        gate[i, w, j] = X[t0 + i, 0, c0 + w * lanes + j]
        up[i, w, j] = X[t0 + i, 1, c0 + w * lanes + j]
    for i, w, j in T.Parallel(*values.shape):
        a, b = T.cast(gate[i, w, j], "float32"), T.cast(up[i, w, j], "float32")
        if clamped:
            a, b = limited(a, b, limit)
        values[i, w, j] = T.cast(silu_times(a, b), "bfloat16")


@Family
def transposed(group, gated, clamped, rounded, threads, columns=64):
    """A scale for each column of `group` rows of bfloat16, in e4m3, transposed. gated: SwiGLU of two halves comes first."""
    tokens, hidden = T.dynamic("tokens, hidden")
    down, parts = _ROWS // group, group // 16

    @T.prim_func
    def per_channel_cast_and_transpose(
        X: T.Tensor((tokens, 2 if gated else 1, hidden), "bfloat16"),
        limit: T.float32,
        Q: T.Tensor((hidden, tokens), "float8_e4m3fn"),
        scales: T.Tensor((T.ceildiv(tokens, group), hidden), "float32"),
    ):
        with T.Kernel(T.ceildiv(hidden, columns), T.ceildiv(tokens, _ROWS), threads=threads) as (bx, by):
            t0, c0 = by * _ROWS, bx * columns
            lying = T.alloc_shared((_ROWS // 16, 16, columns), "bfloat16")
            values = T.alloc_fragment((columns, _ROWS // 16, 16), "float32")
            of_part = T.alloc_fragment((columns, _ROWS // 16), "float32")
            inverse = T.alloc_fragment((columns, down), "float32")
            if gated:
                made = T.alloc_fragment((_ROWS, columns // _LANES, _LANES), "bfloat16")
                read_gated(X, made, limit, t0, c0, clamped)
                for h, i, c in T.Parallel(_ROWS // 16, 16, columns):
                    lying[h, i, c] = made[h * 16 + i, c // _LANES, c % _LANES]
            else:
                for h, i, c in T.Parallel(_ROWS // 16, 16, columns):
                    lying[h, i, c] = X[t0 + h * 16 + i, 0, c0 + c]
            for c, h, i in T.Parallel(columns, _ROWS // 16, 16):
                values[c, h, i] = T.cast(lying[h, i, c], "float32")
            T.reduce_absmax(values, of_part, dim=2)
            T.reduce_max(T.reshape(of_part, (columns, down, parts)), inverse, dim=2)
            for c, b in T.Parallel(columns, down):
                scale, of_scale = scale_and_inverse(inverse[c, b], LEAST["e4m3"], LARGEST["e4m3"], rounded, False)
                scales[by * down + b, c0 + c] = scale
                inverse[c, b] = of_scale
            for c, h, i in T.Parallel(columns, _ROWS // 16, 16):
                Q[c0 + c, t0 + h * 16 + i] = T.cast(values[c, h, i] * inverse[c, h // parts], "float8_e4m3fn")

    return per_channel_cast_and_transpose


@Family
def per_channel(x, group, gathered, gated, clamped, rounded, lanes, columns=64, threads=128):
    """A scale for each column of `group` rows, in e4m3. gathered: row t of the result is row pos[t] of X, or zeros; gated:
    SwiGLU of two halves of bfloat16 comes first; lanes: neighbouring columns of a thread."""
    tokens, source, hidden = T.dynamic("tokens, source, hidden")
    down, vectors, warps = _ROWS // group, columns // lanes, threads // 32
    of_warp = 32 // vectors  # rows that a warp has at once
    shape = (_ROWS, vectors, lanes)

    @T.prim_func
    def per_channel_cast(
        X: T.Tensor((source, 2 if gated else 1, hidden), x),
        pos: T.Tensor((tokens,), "int32"),
        limit: T.float32,
        Q: T.Tensor((tokens, hidden), "float8_e4m3fn"),
        scales: T.Tensor((T.ceildiv(tokens, group), hidden), "float32"),
    ):
        with T.Kernel(T.ceildiv(hidden, columns), T.ceildiv(tokens, _ROWS), threads=threads) as (bx, by):
            t0, c0 = by * _ROWS, bx * columns
            values = T.alloc_fragment(shape, x)
            deal = T.Fragment(shape, lambda i, w, j: ((i * vectors + w) % threads, (i * vectors + w) // threads * lanes + j))
            T.annotate_layout({values: deal})
            if gated:
                read_gated(X, values, limit, t0, c0, clamped)
            else:
                if gathered:
                    row_of = T.alloc_fragment((_ROWS,), "int32")
                    for i in T.Parallel(_ROWS):
                        row = T.if_then_else(t0 + i < tokens, pos[t0 + i], -1)
                        row_of[i] = T.if_then_else(row >= 0, row, source)  # behind the last row: zeros
                for i, w, j in T.Parallel(*shape):
                    values[i, w, j] = X[row_of[i] if gathered else t0 + i, 0, c0 + w * lanes + j]
            # A thread has a few rows of its columns, a warp a few more; what becomes of a column's largest magnitude, one has.
            sizes = T.alloc_fragment(shape, "float32")
            of_threads = T.alloc_fragment((down, warps * of_warp, vectors, lanes), "float32")
            of_warps = T.alloc_fragment((down, warps, vectors, lanes), "float32")
            parts = T.alloc_shared((down, warps, vectors, lanes), "float32")
            inverse = T.alloc_shared((down, vectors, lanes), "float32")
            for i, w, j in T.Parallel(*shape):
                sizes[i, w, j] = T.cast(values[i, w, j], "float32")
            T.reduce_absmax(T.reshape(sizes, (down, group // (warps * of_warp), warps * of_warp, vectors, lanes)), of_threads, dim=1)
            T.reduce_max(T.reshape(of_threads, (down, warps, of_warp, vectors, lanes)), of_warps, dim=2)
            T.copy(of_warps, parts)
            for b, w, j in T.Parallel(down, vectors, lanes):
                size = largest_of([parts[b, n, w, j] for n in range_of(warps)])
                scale, of_scale = scale_and_inverse(size, LEAST["e4m3"], LARGEST["e4m3"], rounded, False)
                scales[by * down + b, c0 + w * lanes + j] = scale
                inverse[b, w, j] = of_scale
            for i, w, j in T.Parallel(*shape):  # again, for two at a time: kept since then they would be twice the registers
                sizes[i, w, j] = T.cast(values[i, w, j], "float32")
            for i, w, j in T.Parallel(*shape):
                Q[t0 + i, c0 + w * lanes + j] = T.cast(sizes[i, w, j] * inverse[i // group, w, j], "float8_e4m3fn")

    return per_channel_cast


@Family
def per_channel_of_scaled(group, gathered, rounded, threads=256):
    """The same of e4m3 with float32 scales of 128 columns of each row. A warp has all columns of a row, so that a thread finds
    the largest of its columns over many rows; what is computed again waits in shared memory, where it takes a byte."""
    tokens, source, hidden = T.dynamic("tokens, source, hidden")
    lanes, warps = _LANES, threads // 32
    down, columns = _ROWS // group, 32 * lanes
    shape = (32, 32, lanes)  # of some rows: what is computed of all at once would take too many registers
    steps = range(_ROWS // 32)

    def deal(i, w, j):
        return i % warps * 32 + w, i // warps * lanes + j

    @T.prim_func
    def per_channel_cast_of_scaled(
        X: T.Tensor((source, hidden), "float8_e4m3fn"),
        X_scales: T.Tensor((source, T.ceildiv(hidden, 128)), "float32"),
        pos: T.Tensor((tokens,), "int32"),
        Q: T.Tensor((tokens, hidden), "float8_e4m3fn"),
        scales: T.Tensor((T.ceildiv(tokens, group), hidden), "float32"),
    ):
        with T.Kernel(T.ceildiv(hidden, columns), T.ceildiv(tokens, _ROWS), threads=threads) as (bx, by):
            t0, c0 = by * _ROWS, bx * columns
            row_of = T.alloc_shared((_ROWS,), "int32")
            factor = T.alloc_shared((_ROWS, columns // 128), "float32")
            waiting = T.alloc_shared((_ROWS, 32, lanes), "float8_e4m3fn")
            inverse = T.alloc_shared((down, columns), "float32")
            parts = [T.alloc_fragment((warps, 32, lanes), "float32") for _ in range(down)]
            largest = T.alloc_fragment((32, lanes), "float32")
            if gathered:
                for i in T.Parallel(_ROWS):
                    row = T.if_then_else(t0 + i < tokens, pos[t0 + i], -1)
                    row_of[i] = T.if_then_else(row >= 0, row, source)  # behind the last row: zeros
            for i, n in T.Parallel(_ROWS, columns // 128):
                factor[i, n] = X_scales[row_of[i] if gathered else t0 + i, c0 // 128 + n]
            for i, w, j in T.Parallel(_ROWS, 32, lanes):
                waiting[i, w, j] = X[row_of[i] if gathered else t0 + i, c0 + w * lanes + j]
            for step in steps:
                sizes = T.alloc_fragment(shape, "float32")
                T.annotate_layout({sizes: T.Fragment(shape, deal)})
                for i, w, j in T.Parallel(*shape):
                    sizes[i, w, j] = T.cast(waiting[step * 32 + i, w, j], "float32")
                for i, w, j in T.Parallel(*shape):
                    sizes[i, w, j] = sizes[i, w, j] * factor[step * 32 + i, w * lanes // 128]
                first = step * 32 % group == 0
                T.reduce_absmax(T.reshape(sizes, (32 // warps, warps, 32, lanes)), parts[step * 32 // group], dim=0, clear=first)
            for b, part in enumerate(parts):
                T.reduce_max(part, largest, dim=0)
                for w, j in T.Parallel(32, lanes):
                    inverse[b, w * lanes + j] = largest[w, j]
            for b, c in T.Parallel(down, columns):
                scale, of_scale = scale_and_inverse(inverse[b, c], LEAST["e4m3"], LARGEST["e4m3"], rounded, False)
                scales[by * down + b, c0 + c] = scale
                inverse[b, c] = of_scale
            for step in steps:
                again = T.alloc_fragment(shape, "float32")
                T.annotate_layout({again: T.Fragment(shape, deal)})
                for i, w, j in T.Parallel(*shape):
                    again[i, w, j] = T.cast(waiting[step * 32 + i, w, j], "float32")
                for i, w, j in T.Parallel(*shape):
                    again[i, w, j] = again[i, w, j] * factor[step * 32 + i, w * lanes // 128]
                for i, w, j in T.Parallel(*shape):
                    narrow = T.cast(again[i, w, j] * inverse[step * 32 // group, w * lanes + j], "float8_e4m3fn")
                    Q[t0 + step * 32 + i, c0 + w * lanes + j] = narrow

    return per_channel_cast_of_scaled
