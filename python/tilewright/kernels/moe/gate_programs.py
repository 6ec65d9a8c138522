"""The program of the gate of a mixture of experts: scores, groups, experts, weights, and which of them this rank has."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family
from .choice_programs import group_scores, take_best, write_keys


@T.macro
def score(logits, scores, kind):
    """Logits as scores, of rows."""
    rows, experts = logits.shape
    if kind == "softmax":
        largest = T.alloc_fragment((rows,), "float32")
        total = T.alloc_fragment((rows,), "float32")
        T.reduce_max(logits, largest, dim=1)
        for i, e in T.Parallel(rows, experts):
            scores[i, e] = T.exp(logits[i, e] - largest[i])
        T.reduce_sum(scores, total, dim=1)
        for i, e in T.Parallel(rows, experts):
            scores[i, e] = scores[i, e] / total[i]
    else:
        for i, e in T.Parallel(rows, experts):
            x = logits[i, e]
            if kind == "sigmoid":
                scores[i, e] = 1.0 / (1.0 + T.exp(-x))
            else:
                scores[i, e] = T.sqrt(T.if_then_else(x > 20.0, x, T.log1p(T.exp(x))))


@T.macro
def keep_best_groups(ranked, groups, kept):
    """Scores outside of the best groups become minus infinity. A group's score is the sum of its two largest."""
    rows, experts = ranked.shape
    width = experts // groups
    grouped = T.alloc_fragment((rows, groups, width), "float32")
    left = T.alloc_fragment((rows, groups), "float32")
    keys = T.alloc_fragment((rows, groups), "int32")
    is_kept = T.alloc_fragment((rows, groups), "int32")
    best = T.alloc_fragment((rows,), "int32")
    chosen = T.alloc_fragment((rows,), "int32")
    for i, g, e in T.Parallel(rows, groups, width):
        grouped[i, g, e] = ranked[i, g * width + e]
    group_scores(grouped, left, 2)
    T.clear(is_kept)
    write_keys(left, keys)
    for k in T.serial(kept):
        take_best(keys, best, chosen)
        for i, g in T.Parallel(rows, groups):
            is_kept[i, g] = T.if_then_else(g == chosen[i], 1, is_kept[i, g])
    for i, e in T.Parallel(rows, experts):
        ranked[i, e] = T.if_then_else(is_kept[i, e // width] > 0, ranked[i, e], -T.infinity("float32"))


def as_on_rank(expert, of_rank, rank, ranks):
    """The number of an expert as this rank counts its own, or -1."""
    at = T.max(expert, 0) // of_rank
    mine = T.logical_and(expert >= 0, at % ranks == rank)
    return T.if_then_else(mine, at // ranks * of_rank + T.max(expert, 0) % of_rank, -1)


@Family
def top2_sum(kind, topk, kept, groups, experts, shared, masked, fixed, unmapped, mapped, rows=8):
    """kind: the scoring function; kept of `groups`: the groups that experts are chosen from; shared: experts that every token
    takes besides; masked, fixed, unmapped, mapped: which of the tensors are there."""
    tokens, logical, copies, row = T.dynamic("tokens, logical, copies, unmapped_row")
    slots = topk + shared

    @T.prim_func
    def top2_sum_gate(
        logits: T.Tensor((tokens, experts), "float32"),
        bias: T.Tensor((experts,), "float32"),
        mask: T.Tensor((tokens,), "bool"),
        fix: T.Tensor((tokens,), "bool"),
        physical: T.Tensor((logical, copies), "int32"),
        count: T.Tensor((logical,), "int32"),
        idx: T.Tensor((tokens, slots), "int64"),
        raw: T.StridedTensor((tokens, topk), (row, 1), "int64"),
        weights: T.Tensor((tokens, slots), "float32"),
        factor: T.float32,
        ep_rank: T.int32,
        of_rank: T.int32,
        rank: T.int32,
        ranks: T.int32,
    ):
        with T.Kernel(T.ceildiv(tokens, rows), threads=128) as bx:
            x = T.alloc_fragment((rows, experts), "float32")
            scores = T.alloc_fragment((rows, experts), "float32")
            ranked = T.alloc_fragment((rows, experts), "float32")
            keys = T.alloc_fragment((rows, experts), "int32")
            picked = T.alloc_fragment((rows, experts), "float32")
            best = T.alloc_fragment((rows,), "int32")
            total = T.alloc_fragment((rows,), "float32")
            chosen = T.alloc_fragment((rows,), "int32")
            expert = T.alloc_fragment((rows,), "int32")
            weight = T.alloc_fragment((rows,), "float32")
            live = T.alloc_fragment((rows,), "int32")
            kept_experts = T.alloc_fragment((rows, topk), "int32")
            kept_scores = T.alloc_fragment((rows, topk), "float32")
            T.copy(logits[bx * rows, 0], x)
            score(x, scores, kind)
            for i, e in T.Parallel(rows, experts):
                ranked[i, e] = (x[i, e] if kind == "softmax" else scores[i, e]) + bias[e]
            if kept != groups:
                keep_best_groups(ranked, groups, kept)
            for i in T.Parallel(rows):
                live[i] = T.cast(bx * rows + i < tokens, "int32")
                if masked:
                    live[i] = T.if_then_else(bx * rows + i < tokens, T.cast(mask[bx * rows + i], "int32"), 0)
            T.clear(total)
            write_keys(ranked, keys)
            for k in T.serial(topk):
                take_best(keys, best, chosen)
                for i in T.Parallel(rows):
                    t = bx * rows + i
                    expert[i] = (
                        T.if_then_else(T.logical_and(t < tokens, fix[t]), T.cast(raw[t, k], "int32"), chosen[i])
                        if fixed
                        else chosen[i]
                    )
                for i, e in T.Parallel(rows, experts):
                    picked[i, e] = T.if_then_else(e == T.max(expert[i], 0), scores[i, e], T.float32(0))
                T.reduce_sum(picked, weight, dim=1)
                for i in T.Parallel(rows):
                    kept_experts[i, k] = expert[i]
                    kept_scores[i, k] = weight[i]
                    total[i] = total[i] + weight[i]
            for i, k in T.Parallel(rows, topk):
                t = bx * rows + i
                if unmapped:
                    raw[t, k] = T.cast(T.if_then_else(live[i] > 0, kept_experts[i, k], -1), "int64")
                known = kept_experts[i, k]
                taken = physical_of(physical, count, known, t, ep_rank) if mapped else known
                idx[t, k] = T.cast(T.if_then_else(live[i] > 0, as_on_rank(taken, of_rank, rank, ranks), -1), "int64")
                weights[t, k] = T.if_then_else(live[i] > 0, kept_scores[i, k] / T.max(total[i], 1e-20) * factor, T.float32(0))
            if shared > 0:
                for i, k in T.Parallel(rows, shared):
                    t = bx * rows + i
                    taken = physical_of(physical, count, experts + k, t, ep_rank) if mapped else experts + k
                    idx[t, topk + k] = T.cast(T.if_then_else(live[i] > 0, as_on_rank(taken, of_rank, rank, ranks), -1), "int64")
                    weights[t, topk + k] = T.if_then_else(live[i] > 0, T.float32(1), T.float32(0))

    return top2_sum_gate


def physical_of(physical, count, expert, token, ep_rank):
    """Of the copies that an expert has each token takes another."""
    known = T.max(expert, 0)
    copy = (T.cast(ep_rank, "int64") + T.cast(token, "int64") * 23333) % T.cast(T.max(count[known], 1), "int64")
    return T.if_then_else(expert >= 0, physical[known, T.cast(copy, "int32")], -1)
