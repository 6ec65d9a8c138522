"""Programs of attention to keys that indices name, or to all up to a limit; and of scores by which they are chosen."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family

_LOG2E = 1.4426950408889634


@Family
def attend(x, dim, value_dim, own_values, named, block, limited, left, rows, keys, threads, tf32):
    """O of one query and `rows` of its heads that share a head of keys: the softmax of their scores times the values, which
    are V, or the first elements of keys. Key n of the walk is n, or `named`: I[n / block] * block + n % block, where a
    negative I is none. limited: keys up to (first + s + 1 - stride) // stride are seen by query s; left: and no more than
    `window` of them. L: log(sum(exp(scores)))."""
    B, S, H, HK, N, K = T.dynamic("B, S, H, HK, N, K")
    padded, wide = (dim + 15) // 16 * 16, (value_dim + 15) // 16 * 16
    low = -1e30

    @T.prim_func
    def attend_named(
        Q: T.Tensor((B, S, H, dim), x),
        KV: T.Tensor((B, N, HK, dim), x),
        V: T.Tensor((B, N, HK, value_dim) if own_values else (1,), x),
        I: T.Tensor((B, S, HK, K), "int32"),
        O: T.Tensor((B, S, H, value_dim), x),
        L: T.Tensor((B, S, H), "float32"),
        scale: T.float32,
        first: T.int32,
        stride: T.int32,
        window: T.int32,
    ):
        group = H // HK
        with T.Kernel(T.ceildiv(group, rows) * HK, S, B, threads=threads) as (bx, s, b):
            hk, h = bx % HK, bx % HK * group + bx // HK * rows
            last = hk * group + group
            q = T.alloc_shared((rows, padded), x)
            lying = T.alloc_shared((keys, padded), x)
            values = T.alloc_shared((keys, wide), x)
            at = T.alloc_shared((keys,), "int32")
            scores = T.alloc_fragment((rows, keys), "float32")
            weights = T.alloc_shared((rows, keys), x)
            acc = T.alloc_fragment((rows, wide), "float32")
            most, before, total, part = (T.alloc_fragment((rows,), "float32") for _ in (0, 1, 2, 3))
            T.clear(acc)
            T.clear(total)
            T.fill(most, T.float32(low))
            for i, j in T.Parallel(rows, padded):
                if T.logical_and(h + i < last, j < dim) if padded > dim else h + i < last:
                    q[i, j] = Q[b, s, h + i, j]
                else:
                    q[i, j] = T.cast(0, x)
            limit = (first + s + 1 - stride) // stride if limited else N
            begin = T.max(limit + 1 - window, 0) if left else 0
            walked = K * block if named else T.min(limit + 1, N) if limited else N
            for t in T.serial(0 if named or not left else begin // keys, T.ceildiv(walked, keys)):
                for j in T.Parallel(keys):
                    n = t * keys + j
                    found = T.if_then_else(n < K * block, I[b, s, hk, T.min(n // block, K - 1)], -1) if named else n
                    place = T.if_then_else(found >= 0, found * block + n % block, -1) if named else n
                    seen = T.logical_and(place >= begin, place < N)
                    at[j] = T.if_then_else(T.logical_and(seen, place <= limit) if limited else seen, place, -1)
                for j, d in T.Parallel(keys, padded):
                    if T.logical_and(at[j] >= 0, d < dim) if padded > dim else at[j] >= 0:
                        lying[j, d] = KV[b, at[j], hk, d]
                    else:
                        lying[j, d] = T.cast(0, x)
                for j, d in T.Parallel(keys, wide):
                    if T.logical_and(at[j] >= 0, d < value_dim) if wide > value_dim else at[j] >= 0:
                        values[j, d] = V[b, at[j], hk, d] if own_values else KV[b, at[j], hk, d]
                    else:
                        values[j, d] = T.cast(0, x)
                T.clear(scores)
                T.gemm(q, lying, scores, transpose_B=True)
                for i, j in T.Parallel(rows, keys):
                    scores[i, j] = T.if_then_else(at[j] >= 0, scores[i, j] * (scale * T.float32(_LOG2E)), T.float32(low))
                T.copy(most, before)
                T.reduce_max(scores, most, dim=1, clear=False)
                for i, j in T.Parallel(rows, keys):
                    scores[i, j] = T.if_then_else(at[j] >= 0, T.exp2(scores[i, j] - most[i]), T.float32(0))
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(rows):
                    before[i] = T.exp2(before[i] - most[i])
                    total[i] = total[i] * before[i] + part[i]
                for i, j in T.Parallel(rows, wide):
                    acc[i, j] = acc[i, j] * before[i]
                T.copy(scores, weights)
                T.gemm(weights, values, acc)
            for i, j in T.Parallel(rows, wide):
                if T.logical_and(h + i < last, j < value_dim):
                    O[b, s, h + i, j] = T.cast(T.if_then_else(total[i] > 0, acc[i, j] / total[i], T.float32(0)), x)
            for i in T.Parallel(rows):
                if h + i < last:
                    L[b, s, h + i] = T.if_then_else(
                        total[i] > 0, (most[i] + T.log2(total[i])) * T.float32(1 / _LOG2E), -T.infinity("float32")
                    )

    return attend_named


@T.macro
def _load_heads(Q, K, q, k, b, g, bx, by, heads, dim, S, N):
    """Tile `by` of the queries' heads of group g, a query's after each other, and tile `bx` of its keys; zeros beyond."""
    rows, padded = q.shape
    keys = k.shape[0]
    for i, j in T.Parallel(rows, padded):
        s = by * (rows // heads) + i // heads
        if T.logical_and(s < S, j < dim) if padded > dim else s < S:
            q[i, j] = Q[b, s, g * heads + i % heads, j]
        else:
            q[i, j] = T.cast(0, q.dtype)
    for i, j in T.Parallel(keys, padded):
        n = bx * keys + i
        if T.logical_and(n < N, j < dim) if padded > dim else n < N:
            k[i, j] = K[b, n, g, j]
        else:
            k[i, j] = T.cast(0, k.dtype)


@Family
def index(x, heads, dim, scaled, cleaned, queries, keys, threads, tf32):
    """Y[b, s, n, g] = the sum over the heads h of group g of max(Q[h] . K[n], 0) * W[s, h], times the scale of the key; keys
    outside of begin[s] up to end[s] are -inf, if `cleaned`."""
    B, S, N, G = T.dynamic("B, S, N, G")
    padded = (dim + 15) // 16 * 16
    rows = queries * heads

    @T.prim_func
    def index_scores(
        Q: T.Tensor((B, S, G * heads, dim), x),
        K: T.Tensor((B, N, G, dim), x),
        W: T.Tensor((S, G * heads), "float32"),
        scales: T.Tensor((B, N, G), "float32"),
        begin: T.Tensor((S,), "int32"),
        end: T.Tensor((S,), "int32"),
        Y: T.Tensor((B, S, N, G), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, keys), T.ceildiv(S, queries), B * G, threads=threads) as (bx, by, bz):
            b, g = bz // G, bz % G
            q = T.alloc_shared((rows, padded), x)
            k = T.alloc_shared((keys, padded), x)
            scores = T.alloc_fragment((rows, keys), "float32")
            lying = T.alloc_shared((rows, keys), "float32")
            _load_heads(Q, K, q, k, b, g, bx, by, heads, dim, S, N)
            T.clear(scores)
            T.gemm(q, k, scores, transpose_B=True)
            T.copy(scores, lying)
            for i, j in T.Parallel(queries, keys):
                s, n = by * queries + i, bx * keys + j
                if T.logical_and(s < S, n < N):
                    total = T.alloc_var("float32", init=0.0)
                    for h in T.serial(heads):
                        total = total + T.max(lying[i * heads + h, j], T.float32(0)) * W[s, g * heads + h]
                    if scaled:
                        total = total * scales[b, n, g]
                    outside = T.logical_or(n < begin[s], n >= end[s])
                    Y[b, s, n, g] = T.if_then_else(outside, -T.infinity("float32"), total) if cleaned else total

    return index_scores


@Family
def importance(x, heads, dim, queries, keys, threads, tf32):
    """W[b, g, s, n] = the sum over the heads h of group g of exp(scale Q[h] . K[n] - L[h]), of blocks n of positions that end
    before position s or at it; infinite of its own block, 0 of others. From E[0] = 0 to E[1] lie blocks that may be chosen."""
    B, S, N, G, C = T.dynamic("B, S, N, G, C")
    padded = (dim + 15) // 16 * 16
    rows = queries * heads

    @T.prim_func
    def weigh_blocks(
        Q: T.Tensor((B, S, G * heads, dim), x),
        K: T.Tensor((B, N, G, dim), x),
        L: T.Tensor((B, S, G * heads), "float32"),
        W: T.Tensor((B, G, S, C), "float32"),
        E: T.Tensor((2, B, G, S), "int32"),
        scale: T.float32,
        block: T.int32,
    ):
        with T.Kernel(T.ceildiv(C, keys), T.ceildiv(S, queries), B * G, threads=threads) as (bx, by, bz):
            b, g = bz // G, bz % G
            q = T.alloc_shared((rows, padded), x)
            k = T.alloc_shared((keys, padded), x)
            scores = T.alloc_fragment((rows, keys), "float32")
            logs = T.alloc_fragment((rows,), "float32")
            lying = T.alloc_shared((rows, keys), "float32")
            _load_heads(Q, K, q, k, b, g, bx, by, heads, dim, S, N)
            for i in T.Parallel(rows):
                logs[i] = L[b, by * queries + i // heads, g * heads + i % heads]
            T.clear(scores)
            T.gemm(q, k, scores, transpose_B=True)
            for i, j in T.Parallel(rows, keys):
                s, n = by * queries + i // heads, bx * keys + j
                seen = T.logical_and(n < N, (n + 1) * block <= s + 1)
                weight = T.exp2((scores[i, j] * scale - logs[i]) * T.float32(_LOG2E))
                scores[i, j] = T.if_then_else(seen, weight, T.float32(0))
            T.copy(scores, lying)
            for i, j in T.Parallel(queries, keys):
                s, n = by * queries + i, bx * keys + j
                if T.logical_and(s < S, n < C):
                    total = T.alloc_var("float32", init=0.0)
                    for h in T.serial(heads):
                        total = total + lying[i * heads + h, j]
                    W[b, g, s, n] = T.if_then_else(n == s // block, T.infinity("float32"), total)
            if bx == 0:
                for i in T.Parallel(queries):
                    if by * queries + i < S:
                        E[0, b, g, by * queries + i] = 0
                        E[1, b, g, by * queries + i] = (by * queries + i) // block + 1

    return weigh_blocks
