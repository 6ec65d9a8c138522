"""Programs that choose experts: the largest scores of a row, and the best groups. A warp has a row, lane l the places l, l + 32,
l + 64, ..."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family

TAKEN = -(2**31)  # below the key of every score


def each_of(columns):
    """How many places of a row a lane has."""
    return (columns + 31) // 32


def passes_of(topk):
    """(the first, how many) of the places that lanes get at once."""
    return [(begin, min(32, topk - begin)) for begin in range(0, topk, 32)]


def key_of(score):
    """An int32 that grows with the score. NaN counts as infinity, and -0 as 0."""
    number = T.if_then_else(score == score, score, T.infinity("float32")) + 0.0
    bits = T.reinterpret(number, "int32")
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


def score_of(key):
    """The score of a key."""
    return T.reinterpret(key ^ ((key >> 31) & 0x7FFFFFFF), "float32")


def first_lane(condition):
    """The first lane where it holds."""
    return T.cast(T.ffs(T.ballot(condition)), "int32") - 1


@T.macro
def take_two(keys, head, head_at, next_key, next_at):
    """The two largest keys of each lane, of equal ones the first, and which they are."""
    head[0], head_at[0], next_key[0], next_at[0] = TAKEN, 0, TAKEN, 0
    for j in T.unroll(keys.shape[0]):
        above, second = keys[j] > head[0], keys[j] > next_key[0]
        next_at[0] = T.if_then_else(above, head_at[0], T.if_then_else(second, j, next_at[0]))
        next_key[0] = T.if_then_else(above, head[0], T.if_then_else(second, keys[j], next_key[0]))
        head_at[0] = T.if_then_else(above, j, head_at[0])
        head[0] = T.if_then_else(above, keys[j], head[0])


@T.macro
def choose(keys, best, place, count, head, head_at, next_key, next_at):
    """Lane k gets the k-th largest of the row's keys, of equal ones the first, and where it is; k < count, and as many keys are
    not TAKEN. Called again it goes on. A lane looks through its keys again where it has given away two."""
    lane = T.get_lane_idx()
    best[0], place[0] = TAKEN, 0
    for k in T.unroll(count):
        top = T.alloc_var("int32", init=T.warp_reduce_max(head[0]))
        votes = T.ballot(head[0] == top)
        leader = T.alloc_var("int32", init=T.cast(T.ffs(votes), "int32") - 1)
        if votes & (votes - T.uint32(1)) != T.uint32(0):
            leader = T.warp_reduce_min(T.if_then_else(head[0] == top, head_at[0] * 32 + lane, 2**31 - 1)) % 32
        at = T.alloc_var("int32", init=T.shfl_sync(head_at[0], leader))
        if lane == k:
            best[0] = top
            place[0] = at * 32 + leader
        spent = T.ballot(T.logical_and(lane == leader, next_key[0] == TAKEN))
        if lane == leader:
            head[0] = next_key[0]
            head_at[0] = next_at[0]
            next_key[0] = TAKEN
        if spent != T.uint32(0):
            if lane == leader:
                for j in T.unroll(keys.shape[0]):
                    left = T.logical_or(keys[j] < top, T.logical_and(keys[j] == top, j > at))
                    if T.logical_and(left, keys[j] > head[0]):
                        head[0] = keys[j]
                        head_at[0] = j


@T.macro
def rank_groups(keys, near, where, groups, width, summed, ranks):
    """ranks[group]: how many groups are better. A group's score is the sum of the `summed` (1 or 2) largest of its keys."""
    warp, lane = T.get_warp_idx(), T.get_lane_idx()
    if width % 32 == 0 and groups <= 32:
        of_lane = T.alloc_var("float32", init=0.0)
        for g in T.unroll(groups):
            head, next_head = T.alloc_var("int32", init=TAKEN), T.alloc_var("int32", init=TAKEN)
            for j in T.unroll(width // 32):
                next_head = T.max(next_head, T.min(head, keys[g * (width // 32) + j]))
                head = T.max(head, keys[g * (width // 32) + j])
            first = T.alloc_var("int32", init=T.warp_reduce_max(head))
            score = T.alloc_var("float32", init=score_of(first))
            if summed == 2:
                score += score_of(T.warp_reduce_max(T.if_then_else(lane == first_lane(head == first), next_head, head)))
            of_lane = T.if_then_else(lane == g, score, of_lane)
        if lane < groups:
            where[warp, lane] = key_of(of_lane)
    else:
        for j in T.unroll(keys.shape[0]):
            near[warp, j * 32 + lane] = keys[j]
        T.sync_warp()
        for g in T.serial(lane, groups, 32):
            first, second = T.alloc_var("int32", init=TAKEN), T.alloc_var("int32", init=TAKEN)
            for e in T.serial(width):
                key = T.alloc_var("int32", init=near[warp, g * width + (e + g) % width])  # from other banks
                second = T.max(second, T.min(first, key))
                first = T.max(first, key)
            where[warp, g] = key_of(score_of(first) + score_of(second) if summed == 2 else score_of(first))
    T.sync_warp()
    for g in T.serial(lane, groups, 32):
        own, better = T.alloc_var("int32", init=where[warp, g]), T.alloc_var("int32", init=0)
        for other in T.serial(groups):
            key = T.alloc_var("int32", init=where[warp, other])
            better += T.cast(T.logical_or(key > own, T.logical_and(key == own, other < g)), "int32")
        ranks[warp, g] = better
    T.sync_warp()


@Family
def topk(experts, topk, warps=4):
    """Where the largest scores of each row are."""
    tokens = T.dynamic("tokens")
    each, passes = each_of(experts), passes_of(topk)

    @T.prim_func
    def topk_gate(scores: T.Tensor((tokens, experts), "float32"), idx: T.Tensor((tokens, topk), "int64")):
        with T.Kernel(T.ceildiv(tokens, warps), threads=32 * warps) as bx:
            x, keys = T.alloc_local((each,), "float32"), T.alloc_local((each,), "int32")
            best, place = T.alloc_local((1,), "int32"), T.alloc_local((1,), "int32")
            row, lane = bx * warps + T.get_warp_idx(), T.get_lane_idx()
            for j in T.unroll(each):
                x[j] = scores[row, j * 32 + lane]
            for j in T.unroll(each):
                keys[j] = T.if_then_else(j * 32 + lane < experts, key_of(x[j]), T.int32(TAKEN))
            heads = [T.alloc_local((1,), "int32") for _ in range(4)]
            take_two(keys, *heads)
            for begin, count in passes:
                choose(keys, best, place, count, *heads)
                if lane < count:
                    idx[row, begin + lane] = T.cast(place[0], "int64")

    return topk_gate


@Family
def gating(experts, topk, x, warps=4):
    """The softmax over the largest logits of each row, and where they are."""
    tokens = T.dynamic("tokens")
    each, passes = each_of(experts), passes_of(topk)

    @T.prim_func
    def topk_gating(
        logits: T.Tensor((tokens, experts), x),
        weights: T.Tensor((tokens, topk), "float32"),
        idx: T.Tensor((tokens, topk), "int64"),
    ):
        with T.Kernel(T.ceildiv(tokens, warps), threads=32 * warps) as bx:
            powers = T.alloc_shared((warps, topk), "float32")
            number, keys = T.alloc_local((each,), x), T.alloc_local((each,), "int32")
            best, place = T.alloc_local((1,), "int32"), T.alloc_local((1,), "int32")
            first, total = T.alloc_var("float32", init=0.0), T.alloc_var("float32", init=0.0)
            warp, lane = T.get_warp_idx(), T.get_lane_idx()
            row = bx * warps + warp
            for j in T.unroll(each):
                number[j] = logits[row, j * 32 + lane]
            for j in T.unroll(each):
                keys[j] = T.if_then_else(j * 32 + lane < experts, key_of(T.cast(number[j], "float32")), T.int32(TAKEN))
            heads = [T.alloc_local((1,), "int32") for _ in range(4)]
            take_two(keys, *heads)
            for begin, count in passes:
                choose(keys, best, place, count, *heads)
                if begin == 0:
                    first = score_of(T.shfl_sync(best[0], 0))
                if lane < count:
                    idx[row, begin + lane] = T.cast(place[0], "int64")
                    powers[warp, begin + lane] = T.exp(score_of(best[0]) - first)
            T.sync_warp()
            for k in T.serial(topk):
                total += powers[warp, k]
            for k in T.serial(lane, topk, 32):
                weights[row, k] = powers[warp, k] / total

    return topk_gating


@Family
def best_groups(groups, width, summed, topk, warps=4):
    """Where the best groups of each row are."""
    tokens = T.dynamic("tokens")
    each = each_of(groups * width)

    @T.prim_func
    def topk_groups(scores: T.Tensor((tokens, groups * width), "float32"), idx: T.Tensor((tokens, topk), "int64")):
        with T.Kernel(T.ceildiv(tokens, warps), threads=32 * warps) as bx:
            near, where = T.alloc_shared((warps, each * 32), "int32"), T.alloc_shared((warps, each * 32), "int32")
            ranks = T.alloc_shared((warps, groups), "int32")
            x, keys = T.alloc_local((each,), "float32"), T.alloc_local((each,), "int32")
            warp, lane = T.get_warp_idx(), T.get_lane_idx()
            row = bx * warps + warp
            for j in T.unroll(each):
                x[j] = scores[row, j * 32 + lane]
            for j in T.unroll(each):
                keys[j] = key_of(x[j])
            rank_groups(keys, near, where, groups, width, summed, ranks)
            for g in T.serial(lane, groups, 32):
                if ranks[warp, g] < topk:
                    idx[row, ranks[warp, g]] = T.cast(g, "int64")

    return topk_groups
