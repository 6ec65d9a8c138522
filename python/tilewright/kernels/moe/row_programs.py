"""Programs that move rows of tokens to those of experts and add them up again."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family
from .gate_programs import as_on_rank


@T.macro
def scatter_scales(S, out, pair_to_pos, t, groups, topk, threads):
    """Row t of the scales, copied to the rows that the pairs of token t have."""
    for g in T.serial(T.get_thread_binding(), groups, threads):
        scale = S[t, g]
        for k in T.serial(topk):
            position = pair_to_pos[t, k]
            if position >= 0:
                out[position, g] = scale


@Family
def expand(kind, scales, width, threads, unused=4):
    """kind: an integer type of an element's size; scales: those of their scales, or "". The first blocks copy a row of a token
    each, the others write zeros to those of `unused` rows that have no expert. Where a row goes is known before its elements
    are dealt to threads, which move them by 16 bytes."""
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
        with T.Kernel(tokens + T.ceildiv(rows, unused), T.ceildiv(columns, width), threads=threads) as (b, bx):
            if b < tokens:
                values = T.alloc_fragment((width,), kind)
                for j in T.Parallel(width):
                    values[j] = X[b, bx * width + j]
                for k in T.serial(topk):
                    position = pair_to_pos[b, k]
                    if position >= 0:
                        for j in T.Parallel(width):
                            Y[position, bx * width + j] = values[j]
                if scales:
                    if bx == 0:
                        scatter_scales(S, out, pair_to_pos, b, groups, topk, threads)
            else:
                experts = T.alloc_shared((unused,), "int32")
                first = (b - tokens) * unused
                T.copy(pos_to_expert[first], experts)
                for r in T.serial(T.min(unused, rows - first)):
                    if experts[r] < 0:
                        for j in T.Parallel(width):
                            Y[first + r, bx * width + j] = T.cast(0, kind)
                        if scales:
                            if bx == 0:
                                for g in T.serial(T.get_thread_binding(), groups, threads):
                                    out[first + r, g] = 0

    return expand_to_fused


@T.macro
def add_row(total, row, times, position):
    """Adds a slot's row to what the slots before it have come to, unless the slot has none."""
    for j in T.Parallel(total.shape[0]):
        total[j] = T.if_then_else(position >= 0, T.fma(T.cast(row[j], "float32"), times, total[j]), total[j])


@Family
def reduce(x, result, topk, weighted, scaled, factored, width=1024, threads=128, together=8):
    """The sum of the rows of each token, slot after slot, each times its weight and scale; then times `factor`. The pieces of
    `together` slots are on their way before the first is added, and neighbouring blocks have pieces of the same rows."""
    tokens, rows, columns = T.dynamic("tokens, rows, columns")
    parts = [(begin, min(together, topk - begin)) for begin in range(0, topk, together)]

    @T.prim_func
    def reduce_fused(
        X: T.Tensor((rows, columns), x),
        weights: T.Tensor((tokens, topk), "float32"),
        pair_to_pos: T.Tensor((tokens, topk), "int32"),
        Y: T.Tensor((tokens, columns), result),
        factor: T.Tensor((1,), "float32"),
        scales: T.Tensor((rows,), "float32"),
    ):
        pieces = T.ceildiv(columns, width)
        with T.Kernel(tokens * pieces, threads=threads) as b:
            t, bx = b // pieces, b % pieces
            total = T.alloc_fragment((width,), "float32")
            values = [T.alloc_fragment((width,), x) for _ in range(min(topk, together))]
            position, times = T.alloc_local((together,), "int32"), T.alloc_local((together,), "float32")
            T.clear(total)
            for begin, count in parts:
                for k in T.unroll(count):
                    position[k] = pair_to_pos[t, begin + k]
                    times[k] = weights[t, begin + k] if weighted else 1.0
                for k in list(range(count)):
                    for j in T.Parallel(width):
                        values[k][j] = X[position[k], bx * width + j]
                if scaled:
                    for k in T.unroll(count):
                        times[k] = times[k] * scales[position[k]]
                for k in list(range(count)):
                    add_row(total, values[k], times[k], position[k])
            for j in T.Parallel(width):
                Y[t, bx * width + j] = T.cast(total[j] * factor[0] if factored else total[j], result)

    return reduce_fused


@Family
def weigh(x, topk, weighted, width, threads):
    """What reduce() gives where each row of a token is its own."""
    tokens, columns = T.dynamic("tokens, columns")

    @T.prim_func
    def weigh_rows(
        X: T.Tensor((tokens, columns), x),
        weights: T.Tensor((tokens, topk), "float32"),
        pair_to_pos: T.Tensor((tokens, topk), "int32"),
        Y: T.Tensor((tokens, columns), x),
    ):
        with T.Kernel(tokens, T.ceildiv(columns, width), threads=threads) as (t, bx):
            total, row = T.alloc_fragment((width,), "float32"), T.alloc_fragment((width,), x)
            for j in T.Parallel(width):
                row[j] = X[t, bx * width + j]
            T.clear(total)
            for k in T.unroll(topk):
                add_row(total, row, weights[t, k] if weighted else T.float32(1), pair_to_pos[t, k])
            for j in T.Parallel(width):
                Y[t, bx * width + j] = T.cast(total[j], x)

    return weigh_rows


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
def mask(index, rows=512):
    """Indices of experts as one rank counts them: those of other ranks are -1."""
    entries = T.dynamic("entries")

    @T.prim_func
    def mask_indices(
        X: T.Tensor((entries,), index), Y: T.Tensor((entries,), index), of_rank: T.int32, rank: T.int32, ranks: T.int32
    ):
        with T.Kernel(T.ceildiv(entries, rows), threads=256) as bx:
            for i in T.Parallel(rows):
                expert = T.cast(X[bx * rows + i], "int32")
                Y[bx * rows + i] = T.cast(as_on_rank(expert, of_rank, rank, ranks), index)

    return mask_indices
