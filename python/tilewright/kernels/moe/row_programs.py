"""Programs that move rows of tokens to those of experts and add them up again."""
from __future__ import annotations

import tilewright.language as T

from ..programs import Family


@T.macro
def scatter(X, Y, pair_to_pos, pos_to_expert, tokens, rows, columns, topk, height, width, kind):
    """Copies row t of X to the rows of Y that its pairs have; rows of Y without an expert become zeros."""
    with T.Kernel(T.ceildiv(columns, width), T.ceildiv(tokens, height), threads=128) as (bx, by):
        values = T.alloc_fragment((height, width), kind)
        to = T.alloc_fragment((height,), "int32")
        T.copy(X[by * height, bx * width], values)
        for k in T.serial(topk):
            for i in T.Parallel(height):
                to[i] = T.if_then_else(by * height + i < tokens, pair_to_pos[by * height + i, k], -1)
            for i, j in T.Parallel(height, width):
                if to[i] >= 0:
                    Y[to[i], bx * width + j] = values[i, j]
    with T.Kernel(T.ceildiv(columns, width), T.ceildiv(rows, height), threads=128) as (bx, by):
        without = T.alloc_fragment((height,), "int32")
        for i in T.Parallel(height):
            without[i] = T.if_then_else(by * height + i < rows, T.cast(pos_to_expert[by * height + i] < 0, "int32"), 0)
        for i, j in T.Parallel(height, width):
            if without[i] > 0:
                Y[by * height + i, bx * width + j] = T.cast(0, kind)


@Family
def expand(kind, scales):
    """kind: an integer type of an element's size; scales: those of their scales, or ""."""
    tokens, rows, columns, topk, groups, row, column = T.dynamic("tokens, rows, columns, topk, groups, scale_row, scale_column")

    @T.prim_func
    def expand_to_fused(X: T.Tensor((tokens, columns), kind), Y: T.Tensor((rows, columns), kind), pair_to_pos: T.Tensor((tokens, topk), "int32"),
                        pos_to_expert: T.Tensor((rows,), "int32"), S: T.Tensor((tokens, groups), scales or "int32"),
                        out: T.StridedTensor((rows, groups), (row, column), scales or "int32")):  # fmt: skip
        scatter(X, Y, pair_to_pos, pos_to_expert, tokens, rows, columns, topk, 8, 128 * 4 // T.dtype(kind).bytes, kind)
        if scales:
            scatter(S, out, pair_to_pos, pos_to_expert, tokens, rows, groups, topk, 16, 32, scales)

    return expand_to_fused


@Family
def reduce(x, result, weighted, scaled, factored, height=4, width=256):
    """The sum of the rows of each token, slot after slot, each times its weight and scale; then times `factor`."""
    tokens, rows, columns, topk = T.dynamic("tokens, rows, columns, topk")

    @T.prim_func
    def reduce_fused(X: T.Tensor((rows, columns), x), weights: T.Tensor((tokens, topk), "float32"), pair_to_pos: T.Tensor((tokens, topk), "int32"),
                     Y: T.Tensor((tokens, columns), result), factor: T.Tensor((1,), "float32"), scales: T.Tensor((rows,), "float32")):  # fmt: skip
        with T.Kernel(T.ceildiv(columns, width), T.ceildiv(tokens, height), threads=128) as (bx, by):
            total = T.alloc_fragment((height, width), "float32")
            at = T.alloc_fragment((height,), "int32")
            times = T.alloc_fragment((height,), "float32")
            T.clear(total)
            for k in T.serial(topk):
                for i in T.Parallel(height):
                    t = by * height + i
                    at[i] = T.if_then_else(t < tokens, pair_to_pos[t, k], -1)
                    times[i] = weights[t, k] if weighted else T.float32(1)
                    if scaled:
                        times[i] = times[i] * T.if_then_else(at[i] >= 0, scales[T.max(at[i], 0)], T.float32(0))
                for i, j in T.Parallel(height, width):
                    if at[i] >= 0:
                        total[i, j] = T.fma(T.cast(X[at[i], bx * width + j], "float32"), times[i], total[i, j])
            for i, j in T.Parallel(height, width):
                Y[by * height + i, bx * width + j] = T.cast(total[i, j] * factor[0] if factored else total[i, j], result)

    return reduce_fused


@Family
def normalize(topk, rows=64):
    """Weights divided by their sum, which is added up slot after slot."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def normalize_weight(W: T.Tensor((tokens, topk), "float32"), total: T.Tensor((tokens,), "float32"), Y: T.Tensor((tokens, topk), "float32")):
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
    def mask_indices(X: T.Tensor((entries,), index), Y: T.Tensor((entries,), index), of_rank: T.int32, rank: T.int32, ranks: T.int32):
        with T.Kernel(T.ceildiv(entries, rows), threads=256) as bx:
            for i in T.Parallel(rows):
                expert = T.cast(X[bx * rows + i], "int32")
                at = expert // of_rank
                mine = T.logical_and(expert >= 0, at % ranks == rank)
                Y[bx * rows + i] = T.cast(T.if_then_else(mine, at // ranks * of_rank + expert % of_rank, -1), index)

    return mask_indices
