"""Programs that move rows of tokens to those of experts and add them up again."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family


@T.macro
def scatter(X, Y, pair_to_pos, pos_to_expert, tokens, rows, columns, topk, width, kind):
    """Copies row t of X to the rows of Y that its pairs have; rows of Y without an expert become zeros. Where a row goes is
    known before its elements are dealt to threads, which move them by 16 bytes."""
    with T.Kernel(tokens, T.ceildiv(columns, width), threads=128) as (t, bx):
        values = T.alloc_fragment((width,), kind)
        for j in T.Parallel(width):
            values[j] = X[t, bx * width + j]
        for k in T.serial(topk):
            position = pair_to_pos[t, k]
            if position >= 0:
                for j in T.Parallel(width):
                    Y[position, bx * width + j] = values[j]
    with T.Kernel(rows, T.ceildiv(columns, width), threads=128) as (r, bx):
        if pos_to_expert[r] < 0:
            for j in T.Parallel(width):
                Y[r, bx * width + j] = T.cast(0, kind)


@Family
def expand(kind, scales):
    """kind: an integer type of an element's size; scales: those of their scales, or ""."""
    tokens, rows, columns, topk, groups, row, column = T.dynamic("tokens, rows, columns, topk, groups, scale_row, scale_column")

    @T.prim_func
    def expand_to_fused(
        X: T.Tensor((tokens, columns), kind),
        Y: T.Tensor((rows, columns), kind),
        pair_to_pos: T.Tensor((tokens, topk), "int32"),
        pos_to_expert: T.Tensor((rows,), "int32"),
        S: T.Tensor((tokens, groups), scales or "int32"),
        out: T.StridedTensor((rows, groups), (row, column), scales or "int32"),
    ):
        scatter(X, Y, pair_to_pos, pos_to_expert, tokens, rows, columns, topk, 128 * 16 // T.dtype(kind).bytes, kind)
        if scales:
            scatter(S, out, pair_to_pos, pos_to_expert, tokens, rows, groups, topk, 128, scales)

    return expand_to_fused


@Family
def reduce(x, result, weighted, scaled, factored, width=1024):
    """The sum of the rows of each token, slot after slot, each times its weight and scale; then times `factor`."""
    tokens, rows, columns, topk = T.dynamic("tokens, rows, columns, topk")

    @T.prim_func
    def reduce_fused(
        X: T.Tensor((rows, columns), x),
        weights: T.Tensor((tokens, topk), "float32"),
        pair_to_pos: T.Tensor((tokens, topk), "int32"),
        Y: T.Tensor((tokens, columns), result),
        factor: T.Tensor((1,), "float32"),
        scales: T.Tensor((rows,), "float32"),
    ):
        with T.Kernel(tokens, T.ceildiv(columns, width), threads=128) as (t, bx):
            total = T.alloc_fragment((width,), "float32")
            T.clear(total)
            for k in T.serial(topk):
                position = pair_to_pos[t, k]
                if position >= 0:
                    times = T.alloc_var("float32", init=1.0)
                    if weighted:
                        times = times * weights[t, k]
                    if scaled:
                        times = times * scales[position]
                    for j in T.Parallel(width):
                        total[j] = T.fma(T.cast(X[position, bx * width + j], "float32"), times, total[j])
            for j in T.Parallel(width):
                Y[t, bx * width + j] = T.cast(total[j] * factor[0] if factored else total[j], result)

    return reduce_fused


@Family
def normalize(topk, rows=64):
    """Weights divided by their sum, which is added up slot after slot."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def normalize_weight(
        W: T.Tensor((tokens, topk), "float32"), total: T.Tensor((tokens,), "float32"), Y: T.Tensor((tokens, topk), "float32")
    ):
        with T.Kernel(T.ceildiv(tokens, rows), threads=rows) as bx:
            lying = T.alloc_shared((rows, topk), "float32")
            sums = T.alloc_shared((rows,), "float32")
            T.copy(W[bx * rows, 0], lying)
            for i in T.Parallel(rows):
                found = T.alloc_var("float32", init=1e-20)
                for k in T.serial(topk):
                    found = found + lying[i, k]
                sums[i] = found
                total[bx * rows + i] = found
            for i, k in T.Parallel(rows, topk):
                Y[bx * rows + i, k] = lying[i, k] / sums[i]

    return normalize_weight


@Family
def unique(index, topk, rows=32):
    """-1 in place of what a row has to the left already."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def unique_group_indices(G: T.Tensor((tokens, topk), index)):
        with T.Kernel(T.ceildiv(tokens, rows), threads=128) as bx:
            lying = T.alloc_shared((rows, topk), index)
            T.copy(G[bx * rows, 0], lying)
            for i, k in T.Parallel(rows, topk):
                found = T.alloc_var("int32", init=0)
                for before in T.serial(k):
                    found = found | T.cast(lying[i, before] == lying[i, k], "int32")
                if found > 0:
                    G[bx * rows + i, k] = T.cast(-1, index)

    return unique_group_indices


@Family
def mask(index, rows=1024):
    """Indices of experts as one rank counts them: those of other ranks are -1."""
    entries = T.dynamic("entries")

    @T.prim_func
    def mask_indices(
        X: T.Tensor((entries,), index), Y: T.Tensor((entries,), index), of_rank: T.int32, rank: T.int32, ranks: T.int32
    ):
        with T.Kernel(T.ceildiv(entries, rows), threads=256) as bx:
            for i in T.Parallel(rows):
                expert = T.cast(X[bx * rows + i], "int32")
                at = expert // of_rank
                mine = T.logical_and(expert >= 0, at % ranks == rank)
                Y[bx * rows + i] = T.cast(T.if_then_else(mine, at // ranks * of_rank + expert % of_rank, -1), index)

    return mask_indices
