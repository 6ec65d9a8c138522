"""Programs that count the entries of groups and sort the pairs of tokens and slots by expert."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family

_PARTS = 512  # blocks that count, at most
_TOGETHER = 32  # counts of other blocks that are on their way together
_EACH = 8  # entries of a thread, which are on their way together


def as_expert(entry, experts):
    """An entry as an int32; -1 where it is no expert's."""
    return T.if_then_else(T.logical_and(entry >= 0, entry < experts), T.cast(entry, "int32"), -1)


@Family
def count(index, groups, as_share, threads=128):
    """How many entries each group has; as_share: times `factor`, divided by `total`. `parts` holds what each block has
    counted."""
    entries = T.dynamic("entries")
    chunk = threads * _EACH

    @T.prim_func
    def group_count(
        indices: T.Tensor((entries,), index),
        out: T.Tensor((groups,), "float32" if as_share else "int32"),
        factor: T.float32,
        total: T.float32,
    ):
        parts = T.alloc_global((_PARTS, groups), "int32")
        blocks = T.max(T.min(T.ceildiv(entries, chunk), _PARTS), 1)
        with T.Kernel(blocks, threads=threads) as bx:
            T.pdl_trigger()  # launches begin while those before them end
            of_block = T.alloc_shared((groups,), "int32")
            mine = T.alloc_fragment((chunk,), index)
            T.clear(of_block)
            T.sync_threads()
            for step in T.serial(T.ceildiv(entries, blocks * chunk)):
                first = (step * blocks + bx) * chunk
                for j in T.Parallel(chunk):
                    mine[j] = T.if_then_else(first + j < entries, indices[first + j], T.cast(-1, index))
                for j in T.Parallel(chunk):
                    if T.logical_and(mine[j] >= 0, mine[j] < groups):
                        T.atomic_add(of_block[T.cast(mine[j], "int32")], 1)
            T.sync_threads()
            for g in T.serial(T.get_thread_binding(), groups, threads):
                parts[bx, g] = of_block[g]
        with T.Kernel(groups, threads=128) as g:
            T.pdl_sync()
            counted = T.alloc_fragment((_PARTS,), "int32")
            found = T.alloc_fragment((1,), "int32")
            for b in T.Parallel(_PARTS):
                counted[b] = T.if_then_else(b < blocks, parts[b, g], 0)
            T.reduce_sum(counted, found, dim=0)
            if as_share:
                out[g] = T.cast(found[0], "float32") * factor / total
            else:
                out[g] = found[0]

    return group_count


@T.macro
def add_up(count, before, total, blocks, experts):
    """A launch: for each expert what the blocks before each one have counted, and what all have. A lane has an expert, a warp a
    share of the blocks."""
    with T.Kernel(T.ceildiv(experts, 32), threads=1024) as be:
        T.pdl_sync()
        T.pdl_trigger()
        warp, lane = T.get_warp_idx(), T.get_lane_idx()
        e, share = be * 32 + lane, T.ceildiv(blocks, 32)
        of_warp = T.alloc_shared((32, 32), "int32")
        mine = T.alloc_var("int32", init=0)
        for b in T.serial(warp * share, T.min((warp + 1) * share, blocks)):
            mine += count[b, e]
        of_warp[warp, lane] = mine
        T.sync_threads()
        sum_before = T.alloc_var("int32", init=0)
        for w in T.unroll(32):
            sum_before += T.if_then_else(w < warp, of_warp[w, lane], 0)
        if T.logical_and(warp == 31, e < experts):
            total[e] = sum_before + mine
        for b in T.serial(warp * share, T.min((warp + 1) * share, blocks)):
            before[b, e] = sum_before
            sum_before += count[b, e]


@T.macro
def add_up_here(count, before, total, e, bx, blocks):
    """The same of one expert for block bx alone."""
    some, together = T.alloc_local((_TOGETHER,), "int32"), _TOGETHER
    ahead, every = T.alloc_var("int32", init=0), T.alloc_var("int32", init=0)
    for begin in T.serial(0, blocks, together):
        for b in T.unroll(together):
            some[b] = count[begin + b, e]
        for b in T.unroll(together):
            every += some[b]
            ahead += T.if_then_else(begin + b < bx, some[b], 0)
    before[e], total[e] = ahead, every


@T.macro
def leave_empty(by_row, begin, end, step):
    """Rows without a pair."""
    for p in T.serial(begin, end, step):
        for written in by_row:
            written[p] = -1


@Family
def fused_mapping(index, experts, topk, alignment, few):
    """Where each pair of a token and a slot goes when pairs are sorted by expert, pairs of an expert in their order; rows of an
    expert are padded to a multiple of `alignment`. A warp has steps * 32 neighbouring pairs. The blocks of the first launch
    rank their pairs among those of the same expert; those of the last one sort theirs before they write, so that neighbours
    go to neighbouring rows. few: there are so few pairs that a launch between them costs more than it saves."""
    pairs, rows = T.dynamic("pairs, rows")
    warps, steps = 16 if experts <= 2048 else 4, 2 if few else 8
    threads, chunk, width = 32 * warps, 32 * warps * steps, (experts + 31) // 32 * 32

    @T.prim_func
    def get_fused_mapping(
        indices: T.Tensor((pairs,), index),
        pos_to_expert: T.Tensor((rows,), "int32"),
        pos_to_token: T.Tensor((rows,), "int32"),
        pos_to_pair: T.Tensor((rows,), "int32"),
        pair_to_pos: T.Tensor((pairs,), "int32"),
        start: T.Tensor((experts,), "int32"),
        end: T.Tensor((experts,), "int32"),
        number: T.Tensor((experts,), "int32"),
    ):
        blocks = T.max(T.ceildiv(pairs, chunk), 1)
        count = T.alloc_global((blocks, experts), "int32")
        before = T.alloc_global((blocks, experts), "int32")
        total = T.alloc_global((experts,), "int32")
        with T.Kernel(blocks, threads=threads) as bx:
            T.pdl_trigger()  # launches begin while those before them end
            found = T.alloc_shared((warps, experts), "int32")
            entry, expert = T.alloc_local((steps,), index), T.alloc_local((steps,), "int32")
            rank = T.alloc_local((steps,), "int32")
            tx, warp, lane = T.get_thread_binding(), T.get_warp_idx(), T.get_lane_idx()
            first = bx * chunk + warp * (steps * 32) + lane
            for s in T.unroll(steps):
                entry[s] = T.if_then_else(first + s * 32 < pairs, indices[first + s * 32], T.cast(-1, index))
            for e in T.serial(tx, warps * experts, threads):
                found[e // experts, e % experts] = 0
            T.sync_threads()
            for s in T.unroll(steps):
                expert[s] = as_expert(entry[s], experts)
                peers = T.match_any_sync(expert[s])
                leader = T.cast(T.ffs(peers), "int32") - 1
                taken = T.alloc_var("int32", init=0)
                if T.logical_and(expert[s] >= 0, lane == leader):
                    taken = T.atomic_add(found[warp, expert[s]], T.cast(T.popcount(peers), "int32"), return_prev=True)
                below = peers & ((T.uint32(1) << T.cast(lane, "uint32")) - T.uint32(1))
                rank[s] = T.shfl_sync(taken, leader) + T.cast(T.popcount(below), "int32")
            T.sync_threads()
            for e in T.serial(tx, experts, threads):
                sum_of_warps, of_warp = T.alloc_var("int32", init=0), T.alloc_local((warps,), "int32")
                for w in T.unroll(warps):
                    of_warp[w] = found[w, e]
                for w in T.unroll(warps):
                    found[w, e] = sum_of_warps
                    sum_of_warps += of_warp[w]
                count[bx, e] = sum_of_warps
            T.sync_threads()
            for s in T.unroll(steps):
                if first + s * 32 < pairs:
                    pair_to_pos[first + s * 32] = rank[s] + found[warp, T.max(expert[s], 0)]
        if not few:
            add_up(count, before, total, blocks, experts)
        with T.Kernel(blocks, threads=threads) as bx:
            ends = T.alloc_shared((2, width), "int32")  # of experts among all rows, and among the block's sorted pairs
            filled, base, own = (T.alloc_shared((width,), "int32") for _ in range(3))
            pair, to = T.alloc_shared((chunk,), "int32"), T.alloc_shared((chunk,), "int32")
            of = T.alloc_shared((chunk,), "int32")
            entry, expert = T.alloc_local((steps,), index), T.alloc_local((steps,), "int32")
            rank = T.alloc_local((steps,), "int32")
            tx, by_row = T.get_thread_binding(), [pos_to_expert, pos_to_token, pos_to_pair]
            for s in T.unroll(steps):
                i = bx * chunk + s * threads + tx
                entry[s] = T.if_then_else(i < pairs, indices[i], T.cast(-1, index))
            T.pdl_sync()
            for s in T.unroll(steps):
                i = bx * chunk + s * threads + tx
                rank[s] = T.if_then_else(i < pairs, pair_to_pos[i], 0)
                expert[s] = as_expert(entry[s], experts)
            for e in T.serial(tx, width, threads):
                if few:
                    add_up_here(count, base, filled, e, bx, blocks)
                else:
                    filled[e], base[e] = total[e], before[bx, e]
                own[e] = count[bx, e]  # 0 beyond the experts
            for e in T.serial(tx, width, threads):
                ends[0, e], ends[1, e] = T.ceildiv(filled[e], alignment) * alignment, own[e]
            T.sync_threads()
            T.cumsum(ends, dim=1)
            for e in T.serial(tx, experts, threads):
                padded = T.ceildiv(filled[e], alignment) * alignment
                base[e] = ends[0, e] - padded + base[e]
                own[e] = ends[1, e] - own[e]
                if bx == 0:
                    start[e] = ends[0, e] - padded
                    end[e] = ends[0, e]
                    number[e] = padded
            T.sync_threads()
            for s in T.unroll(steps):
                i = bx * chunk + s * threads + tx
                if i < pairs:
                    if expert[s] >= 0:
                        pair_to_pos[i] = base[expert[s]] + rank[s]
                        pair[own[expert[s]] + rank[s]] = i
                        to[own[expert[s]] + rank[s]] = base[expert[s]] + rank[s]
                        of[own[expert[s]] + rank[s]] = expert[s]
                    else:
                        pair_to_pos[i] = -1
            T.sync_threads()
            for j in T.serial(tx, ends[1, width - 1], threads):
                position = T.alloc_var("int32", init=to[j])
                pos_to_expert[position] = of[j]
                pos_to_token[position] = pair[j] // topk
                pos_to_pair[position] = pair[j]
            for e in T.serial(bx, experts, blocks):
                padding = ends[0, e] - T.ceildiv(filled[e], alignment) * alignment + filled[e]
                leave_empty(by_row, padding + tx, ends[0, e], threads)
            leave_empty(by_row, ends[0, width - 1] + bx * threads + tx, rows, blocks * threads)

    return get_fused_mapping
