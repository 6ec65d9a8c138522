"""The program of the gate of a mixture of experts: scores, groups, experts, weights, and which of them this rank has."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family
from .choice_programs import TAKEN, choose, each_of, key_of, passes_of, rank_groups, take_two


@T.macro
def score(x, scores, kind, experts):
    """Logits of a row as scores, each lane its own."""
    lane = T.get_lane_idx()
    if kind == "softmax":
        largest, total = T.alloc_var("float32", init=-T.infinity("float32")), T.alloc_var("float32", init=0.0)
        for j in T.unroll(x.shape[0]):
            largest = T.max(largest, T.if_then_else(j * 32 + lane < experts, x[j], -T.infinity("float32")))
        largest = T.warp_reduce_max(largest)
        for j in T.unroll(x.shape[0]):
            scores[j] = T.if_then_else(j * 32 + lane < experts, T.exp(x[j] - largest), 0.0)
            total += scores[j]
        total = T.warp_reduce_sum(total)
        for j in T.unroll(x.shape[0]):
            scores[j] = scores[j] / total
    else:
        for j in T.unroll(x.shape[0]):
            if kind == "sigmoid":
                scores[j] = 1.0 / (1.0 + T.exp(-x[j]))
            else:
                scores[j] = T.sqrt(T.if_then_else(x[j] > 20.0, x[j], T.log1p(T.exp(x[j]))))


def as_on_rank(expert, of_rank, rank, ranks):
    """The number of an expert as this rank counts its own, or -1."""
    number, width, count = (T.cast(n, "uint32") for n in (T.max(expert, 0), of_rank, ranks))
    at = number // width
    group = at // count
    mine = T.logical_and(expert >= 0, at - group * count == T.cast(rank, "uint32"))
    return T.if_then_else(mine, T.cast(group * width + number - at * width, "int32"), -1)


@Family
def top2_sum(kind, topk, kept, groups, experts, shared, masked, fixed, unmapped, mapped, warps=4):
    """kind: the scoring function; kept of `groups`: the groups that experts are chosen from; shared: experts that every token
    takes besides; masked, fixed, unmapped, mapped: which of the tensors are there."""
    tokens, logical, copies, row = T.dynamic("tokens, logical, copies, unmapped_row")
    slots, each, passes = topk + shared, each_of(experts), passes_of(topk)

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
        with T.Kernel(T.ceildiv(tokens, warps), threads=32 * warps) as bx:
            near, where = T.alloc_shared((warps, each * 32), "int32"), T.alloc_shared((warps, each * 32), "int32")
            better, by_expert = T.alloc_shared((warps, max(groups, 1)), "int32"), T.alloc_shared((warps, each * 32), "float32")
            chosen, taken_scores = T.alloc_shared((warps, topk), "int32"), T.alloc_shared((warps, topk), "float32")
            x, scores = T.alloc_local((each,), "float32"), T.alloc_local((each,), "float32")
            added, keys = T.alloc_local((each,), "float32"), T.alloc_local((each,), "int32")
            best, place = T.alloc_local((1,), "int32"), T.alloc_local((1,), "int32")
            heads = [T.alloc_local((1,), "int32") for _ in range(4)]
            total = T.alloc_var("float32", init=0.0)
            warp, lane = T.get_warp_idx(), T.get_lane_idx()
            t = bx * warps + warp
            for j in T.unroll(each):
                x[j] = logits[t, j * 32 + lane]
                added[j] = bias[j * 32 + lane]
            score(x, scores, kind, experts)
            for j in T.unroll(each):
                by_expert[warp, j * 32 + lane] = scores[j]
                key = key_of((x[j] if kind == "softmax" else scores[j]) + added[j])
                keys[j] = T.if_then_else(j * 32 + lane < experts, key, T.int32(TAKEN))
            if kept != groups:
                rank_groups(keys, near, where, groups, experts // groups, 2, better)
                for j in T.unroll(each):
                    group = T.min(j * 32 + lane, experts - 1) // (experts // groups)
                    keys[j] = T.if_then_else(better[warp, group] < kept, keys[j], T.int32(TAKEN))
            take_two(keys, *heads)
            for begin, together in passes:
                choose(keys, best, place, together, *heads)
                if lane < together:
                    chosen[warp, begin + lane] = place[0]
            T.sync_warp()
            live = T.alloc_var("bool", init=t < tokens)
            if masked:
                live = T.logical_and(t < tokens, mask[t])
            for k in T.serial(lane, topk, 32):
                if fixed:
                    if T.logical_and(t < tokens, fix[t]):
                        chosen[warp, k] = T.cast(raw[t, k], "int32")
                known = T.max(chosen[warp, k], 0)
                taken_scores[warp, k] = T.if_then_else(known < experts, by_expert[warp, T.min(known, experts - 1)], 0.0)
            T.sync_warp()
            for k in T.serial(topk):
                total += taken_scores[warp, k]
            for k in T.serial(lane, topk, 32):
                known = T.alloc_var("int32", init=chosen[warp, k])
                if unmapped:
                    raw[t, k] = T.cast(T.if_then_else(live, known, -1), "int64")
                taken = physical_of(physical, count, known, t, ep_rank) if mapped else known
                idx[t, k] = T.cast(T.if_then_else(live, as_on_rank(taken, of_rank, rank, ranks), -1), "int64")
                weight = taken_scores[warp, k] / T.max(total, 1e-20) * factor
                weights[t, k] = T.if_then_else(live, weight, T.float32(0))
            if shared > 0:
                for k in T.serial(lane, shared, 32):
                    taken = physical_of(physical, count, experts + k, t, ep_rank) if mapped else experts + k
                    idx[t, topk + k] = T.cast(T.if_then_else(live, as_on_rank(taken, of_rank, rank, ranks), -1), "int64")
                    weights[t, topk + k] = T.if_then_else(live, T.float32(1), T.float32(0))

    return top2_sum_gate


def physical_of(physical, count, expert, token, ep_rank):
    """Of the copies that an expert has each token takes another."""
    known = T.max(expert, 0)
    copy = (T.cast(ep_rank, "int64") + T.cast(token, "int64") * 23333) % T.cast(T.max(count[known], 1), "int64")
    return T.if_then_else(expert >= 0, physical[known, T.cast(copy, "int32")], -1)
