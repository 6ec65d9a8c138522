"""Programs that choose experts: the largest scores of a row, the best groups, and the gate of both."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family


_TAKEN = -(2**31)  # below the key of every score


def key_of(score):
    """An int32 that grows with the score. NaN counts as infinity, and -0 as 0."""
    number = T.if_then_else(score == score, score, T.infinity("float32")) + 0.0
    bits = T.reinterpret(number, "int32")
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


def score_of(key):
    """The score of a key."""
    return T.reinterpret(key ^ ((key >> 31) & 0x7FFFFFFF), "float32")


@T.macro
def write_keys(scores, keys):
    rows, columns = scores.shape
    for i, e in T.Parallel(rows, columns):
        keys[i, e] = key_of(scores[i, e])


@T.macro
def take_best(keys, best, chosen):
    """The largest key of each row and where it is first; it is taken out."""
    rows, columns = keys.shape
    places = T.alloc_fragment((rows, columns), "int32")
    T.reduce_max(keys, best, dim=1)
    for i, e in T.Parallel(rows, columns):
        places[i, e] = T.if_then_else(keys[i, e] == best[i], e, columns)
    T.reduce_min(places, chosen, dim=1)
    for i, e in T.Parallel(rows, columns):
        keys[i, e] = T.if_then_else(e == chosen[i], T.int32(_TAKEN), keys[i, e])


@T.macro
def group_scores(grouped, scores, summed):
    """The sum of the `summed` (1 or 2) largest elements along the last dimension."""
    rows, groups, width = grouped.shape
    first = T.alloc_fragment((rows, groups), "float32")
    T.reduce_max(grouped, first, dim=2)
    if summed == 2:
        places = T.alloc_fragment((rows, groups, width), "int32")
        at = T.alloc_fragment((rows, groups), "int32")
        rest = T.alloc_fragment((rows, groups, width), "float32")
        for i, g, e in T.Parallel(rows, groups, width):
            places[i, g, e] = T.if_then_else(grouped[i, g, e] == first[i, g], e, width)
        T.reduce_min(places, at, dim=2)
        for i, g, e in T.Parallel(rows, groups, width):
            rest[i, g, e] = T.if_then_else(e == at[i, g], -T.infinity("float32"), grouped[i, g, e])
        T.reduce_max(rest, scores, dim=2)
        for i, g in T.Parallel(rows, groups):
            scores[i, g] = first[i, g] + scores[i, g]
    else:
        T.copy(first, scores)


@Family
def topk(experts, topk, rows=8):
    """Where the largest scores of each row are."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def topk_gate(scores: T.Tensor((tokens, experts), "float32"), idx: T.Tensor((tokens, topk), "int64")):
        with T.Kernel(T.ceildiv(tokens, rows), threads=128) as bx:
            left = T.alloc_fragment((rows, experts), "float32")
            keys = T.alloc_fragment((rows, experts), "int32")
            best = T.alloc_fragment((rows,), "int32")
            chosen = T.alloc_fragment((rows,), "int32")
            T.copy(scores[bx * rows, 0], left)
            write_keys(left, keys)
            for k in T.serial(topk):
                take_best(keys, best, chosen)
                for i in T.Parallel(rows):
                    idx[bx * rows + i, k] = T.cast(chosen[i], "int64")

    return topk_gate


@Family
def gating(experts, topk, x, rows=8):
    """The softmax over the largest logits of each row, and where they are."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def topk_gating(
        logits: T.Tensor((tokens, experts), x),
        weights: T.Tensor((tokens, topk), "float32"),
        idx: T.Tensor((tokens, topk), "int64"),
    ):
        with T.Kernel(T.ceildiv(tokens, rows), threads=128) as bx:
            left = T.alloc_fragment((rows, experts), "float32")
            keys = T.alloc_fragment((rows, experts), "int32")
            best = T.alloc_fragment((rows,), "int32")
            first = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((rows,), "float32")
            chosen = T.alloc_fragment((rows,), "int32")
            powers = T.alloc_fragment((rows, topk), "float32")
            T.copy(logits[bx * rows, 0], left)
            T.reduce_max(left, first, dim=1)
            T.clear(total)
            write_keys(left, keys)
            for k in T.serial(topk):
                take_best(keys, best, chosen)
                for i in T.Parallel(rows):
                    idx[bx * rows + i, k] = T.cast(chosen[i], "int64")
                    powers[i, k] = T.exp(score_of(best[i]) - first[i])
                    total[i] = total[i] + T.exp(score_of(best[i]) - first[i])
            for i, k in T.Parallel(rows, topk):
                weights[bx * rows + i, k] = powers[i, k] / total[i]

    return topk_gating


@Family
def best_groups(groups, width, summed, topk, rows=8):
    """Where the best groups of each row are."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def topk_groups(scores: T.Tensor((tokens, groups, width), "float32"), idx: T.Tensor((tokens, topk), "int64")):
        with T.Kernel(T.ceildiv(tokens, rows), threads=128) as bx:
            grouped = T.alloc_fragment((rows, groups, width), "float32")
            left = T.alloc_fragment((rows, groups), "float32")
            keys = T.alloc_fragment((rows, groups), "int32")
            best = T.alloc_fragment((rows,), "int32")
            chosen = T.alloc_fragment((rows,), "int32")
            T.copy(scores[bx * rows, 0, 0], grouped)
            group_scores(grouped, left, summed)
            write_keys(left, keys)
            for k in T.serial(topk):
                take_best(keys, best, chosen)
                for i in T.Parallel(rows):
                    idx[bx * rows + i, k] = T.cast(chosen[i], "int64")

    return topk_groups
