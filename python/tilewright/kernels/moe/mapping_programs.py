"""Programs that count the entries of groups and sort the pairs of tokens and slots by expert."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family

_THREADS, _WARPS = 256, 8


def group_at(indices, i, groups):
    """Entry i as an int32; -1 where it is no group's."""
    entry = indices[i]
    return T.if_then_else(T.logical_and(entry >= 0, entry < groups), T.cast(entry, "int32"), -1)


@T.macro
def count_entries(count, indices, groups, begin, end, step):
    """Adds up in shared memory how many of the entries of this thread, from `begin` on, each group has."""
    for i in T.serial(begin, end, step):
        group = group_at(indices, i, groups)
        if group >= 0:
            T.atomic_add(count[group], 1)


@Family
def count(index, groups, as_share):
    """How many entries each group has; as_share: times `factor`, divided by `total`. `parts` holds what each block has
    counted."""
    entries, blocks = T.dynamic("entries, blocks")

    @T.prim_func
    def group_count(
        indices: T.Tensor((entries,), index),
        parts: T.Tensor((blocks, groups), "int32"),
        out: T.Tensor((groups,), "float32" if as_share else "int32"),
        factor: T.float32,
        total: T.float32,
    ):
        with T.Kernel(blocks, threads=_THREADS) as bx:
            T.pdl_trigger()  # launches begin while those before them end
            of_block = T.alloc_shared((groups,), "int32")
            tx = T.get_thread_binding()
            for g in T.serial(tx, groups, _THREADS):
                of_block[g] = 0
            T.sync_threads()
            count_entries(of_block, indices, groups, bx * _THREADS + tx, entries, blocks * _THREADS)
            T.sync_threads()
            for g in T.serial(tx, groups, _THREADS):
                parts[bx, g] = of_block[g]
        with T.Kernel(groups, threads=32) as g:
            T.pdl_sync()
            lane = T.get_lane_idx()
            mine = T.alloc_var("int32", init=0)
            for b in T.serial(lane, blocks, 32):
                mine += parts[b, g]
            found = T.warp_reduce_sum(mine)
            if lane == 0:
                if as_share:
                    out[g] = T.cast(found, "float32") * factor / total
                else:
                    out[g] = found

    return group_count


@Family
def fused_mapping(experts, topk, alignment):
    """Where each pair of a token and a slot goes when pairs are sorted by expert, pairs of an expert in their order; the rows of
    an expert are padded to a multiple of `alignment`. A warp has a share of neighbouring pairs; `before` is how many pairs of
    an expert the blocks before have."""
    pairs, rows, blocks = T.dynamic("pairs, rows, blocks")
    width = (experts + 31) // 32 * 32

    @T.prim_func
    def get_fused_mapping(
        indices: T.Tensor((pairs,), "int64"),
        pos_to_expert: T.Tensor((rows,), "int32"),
        pos_to_token: T.Tensor((rows,), "int32"),
        pos_to_pair: T.Tensor((rows,), "int32"),
        pair_to_pos: T.Tensor((pairs,), "int32"),
        start: T.Tensor((experts,), "int32"),
        end: T.Tensor((experts,), "int32"),
        number: T.Tensor((experts,), "int32"),
        before: T.Tensor((blocks, experts), "int32"),
        total: T.Tensor((experts,), "int32"),
    ):
        with T.Kernel(blocks, threads=_THREADS) as bx:
            T.pdl_trigger()
            of_block = T.alloc_shared((experts,), "int32")
            tx = T.get_thread_binding()
            share = T.ceildiv(T.ceildiv(pairs, blocks * _WARPS), 32) * 32 * _WARPS
            for p in T.serial(bx * _THREADS + tx, rows, blocks * _THREADS):
                pos_to_expert[p] = -1
                pos_to_token[p] = -1
                pos_to_pair[p] = -1
            for e in T.serial(tx, experts, _THREADS):
                of_block[e] = 0
            T.sync_threads()
            count_entries(of_block, indices, experts, bx * share + tx, T.min((bx + 1) * share, pairs), _THREADS)
            T.sync_threads()
            for e in T.serial(tx, experts, _THREADS):
                before[bx, e] = of_block[e]
        with T.Kernel(experts, threads=32) as e:
            T.pdl_sync()
            T.pdl_trigger()
            lane = T.get_lane_idx()
            sum_before = T.alloc_var("int32", init=0)
            for step in T.serial(T.ceildiv(blocks, 32)):
                b = step * 32 + lane
                own = T.if_then_else(b < blocks, before[b, e], 0)
                scan = T.alloc_var("int32", init=own)
                for distance in (1, 2, 4, 8, 16):
                    below = T.shfl_up(scan, distance)
                    scan = T.if_then_else(lane >= distance, scan + below, scan)
                if b < blocks:
                    before[b, e] = sum_before + scan - own
                sum_before += T.shfl_sync(scan, 31)
            if lane == 0:
                total[e] = sum_before
        with T.Kernel(blocks, threads=_THREADS) as bx:
            T.pdl_sync()
            begin = T.alloc_shared((width,), "int32")
            next_of = T.alloc_shared((_WARPS, experts), "int32")
            tx, warp, lane = T.get_thread_binding(), T.get_warp_idx(), T.get_lane_idx()
            share = T.ceildiv(T.ceildiv(pairs, blocks * _WARPS), 32) * 32
            first = (bx * _WARPS + warp) * share
            for e in T.serial(tx, width, _THREADS):
                begin[e] = T.if_then_else(e < experts, T.ceildiv(total[T.min(e, experts - 1)], alignment) * alignment, 0)
            for e in T.serial(tx, _WARPS * experts, _THREADS):
                next_of[e // experts, e % experts] = 0
            T.sync_threads()
            T.cumsum(begin, dim=0)
            for i in T.serial(first + lane, T.min(first + share, pairs), 32):
                counted = group_at(indices, i, experts)
                if counted >= 0:
                    T.atomic_add(next_of[warp, counted], 1)
            T.sync_threads()
            for e in T.serial(tx, experts, _THREADS):
                padded = T.ceildiv(total[e], alignment) * alignment
                position = T.alloc_var("int32", init=begin[e] - padded)
                if bx == 0:
                    start[e] = position
                    end[e] = begin[e]
                    number[e] = padded
                position += before[bx, e]
                for w in T.serial(_WARPS):
                    of_warp = next_of[w, e]
                    next_of[w, e] = position
                    position += of_warp
            T.sync_threads()
            for step in T.serial(share // 32):
                i = first + step * 32 + lane
                expert = T.if_then_else(i < pairs, group_at(indices, T.min(i, pairs - 1), experts), -1)
                peers = T.match_any_sync(expert)
                rank = T.cast(T.popcount(peers & ((T.uint32(1) << T.cast(lane, "uint32")) - T.uint32(1))), "int32")
                leader = T.cast(T.ffs(peers), "int32") - 1
                taken = T.alloc_var("int32", init=0)
                if T.logical_and(expert >= 0, lane == leader):
                    taken = T.atomic_add(next_of[warp, expert], T.cast(T.popcount(peers), "int32"), return_prev=True)
                position = T.shfl_sync(taken, leader) + rank
                if expert >= 0:
                    pos_to_expert[position] = expert
                    pos_to_token[position] = i // topk
                    pos_to_pair[position] = i
                if i < pairs:
                    pair_to_pos[i] = T.if_then_else(expert >= 0, position, -1)

    return get_fused_mapping
