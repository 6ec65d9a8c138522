"""Programs of casts whose scales are those of rows one below the other: as they lie, gathered, behind SwiGLU, transposed."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family
from .gated import limited, silu_times
from .scales import LARGEST, LEAST, scale_and_inverse

_LANES = 8


@Family
def per_channel(x, group, scaled, gathered, gated, clamped, rounded, across, columns=64, threads=256):
    """A scale for each column of `group` rows, in e4m3. scaled: float32 scales of 128 columns of each row of X; gathered:
    row t of the result is row pos[t] of X, or zeros; gated: SwiGLU of two halves comes first; across: the result is transposed.
    """
    tokens, source, hidden = T.dynamic("tokens, source, hidden")
    down, rows = 128 // group, 128
    shape = (down, group, columns // _LANES, _LANES)

    def value_of(X, X_scales, limit, t, c, lane):
        if gated:
            gate, up = T.cast(X[t, c], "float32"), T.cast(X[t, c + hidden], "float32")
            if clamped:
                gate, up = limited(gate, up, limit)
            return T.cast(T.cast(silu_times(gate, up), "bfloat16"), "float32")
        value = T.cast(X[t, c], "float32")
        return value * X_scales[t, (c - lane) // 128] if scaled else value

    @T.prim_func
    def per_channel_cast(
        X: T.Tensor((source, hidden * 2 if gated else hidden), x),
        X_scales: T.Tensor((source, T.ceildiv(hidden, 128)), "float32"),
        pos: T.Tensor((tokens,), "int32"),
        limit: T.float32,
        Q: T.Tensor((hidden, tokens) if across else (tokens, hidden), "float8_e4m3fn"),
        scales: T.Tensor((T.ceildiv(tokens, group), hidden), "float32"),
    ):
        with T.Kernel(T.ceildiv(hidden, columns), T.ceildiv(tokens, rows), threads=threads) as (bx, by):
            t0, c0 = by * rows, bx * columns
            values = T.alloc_fragment(shape, "float32")
            inverse = T.alloc_fragment((down, columns // _LANES, _LANES), "float32")
            if gathered:
                row_of = T.alloc_fragment((down, group), "int32")
                for b, i in T.Parallel(down, group):
                    row = T.if_then_else(t0 + b * group + i < tokens, pos[t0 + b * group + i], -1)
                    row_of[b, i] = T.if_then_else(row >= 0, row, source)  # behind the last row: zeros
            for b, i, w, j in T.Parallel(*shape):
                t, c = t0 + b * group + i, c0 + w * _LANES + j
                if gathered:
                    values[b, i, w, j] = value_of(X, X_scales, limit, row_of[b, i], c, j)
                else:
                    values[b, i, w, j] = (
                        T.if_then_else(c < hidden, value_of(X, X_scales, limit, t, c, j), T.float32(0))
                        if gated
                        else value_of(X, X_scales, limit, t, c, j)
                    )
            T.reduce_absmax(values, inverse, dim=1)
            for b, w, j in T.Parallel(down, columns // _LANES, _LANES):
                scale, of_scale = scale_and_inverse(inverse[b, w, j], LEAST["e4m3"], LARGEST["e4m3"], rounded, False)
                scales[by * down + b, c0 + w * _LANES + j] = scale
                inverse[b, w, j] = of_scale
            if across:
                narrow = T.alloc_shared((rows, columns), "float8_e4m3fn")
                turned = T.alloc_fragment((columns, rows), "float8_e4m3fn")
                for b, i, w, j in T.Parallel(*shape):
                    narrow[b * group + i, w * _LANES + j] = T.cast(values[b, i, w, j] * inverse[b, w, j], "float8_e4m3fn")
                for c, t in T.Parallel(columns, rows):
                    turned[c, t] = narrow[t, c]
                T.copy(turned, Q[c0, t0])
            else:
                for b, i, w, j in T.Parallel(*shape):
                    Q[t0 + b * group + i, c0 + w * _LANES + j] = T.cast(values[b, i, w, j] * inverse[b, w, j], "float8_e4m3fn")

    return per_channel_cast
