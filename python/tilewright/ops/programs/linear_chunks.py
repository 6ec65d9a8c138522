"""Programs of linear attention by chunks of 64 positions, whose sums are products of matrices: what of a chunk does not
depend on the state, the states before chunks one after the other, and the outputs of all chunks at once."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family

CHUNK = 64
_BLOCK = 16  # of a chunk's matrix that is inverted row by row
_LOG2E = 1.4426950408889634
_LEAST = -200.0  # as the logarithm of a decay: exp of it is 0 beside 1, and differences of sums of it are numbers


@T.macro
def _decays(G, b, c, h, sums, to, behind):
    """Of chunk c the running sums of the logarithms of decays, of base 2; the decays up to positions, and those behind them."""
    for i in T.Parallel(CHUNK):
        d = G[b, c * CHUNK + i, h]
        sums[i] = T.if_then_else(d < _LEAST, _LEAST, d) * _LOG2E
    T.cumsum(sums, sums, dim=0)
    for i in T.Parallel(CHUNK):
        to[i] = T.exp2(sums[i])
        behind[i] = T.exp2(sums[CHUNK - 1] - sums[i])


@T.macro
def _merged(a, t, half, width):
    """t of blocks of `width` on the diagonal, inverses, becomes that of blocks twice as wide: what is below the diagonal is
    -T_22 A_21 T_11."""
    made = T.alloc_fragment((CHUNK // 2, width), "float32")
    T.clear(made)
    for k in T.serial(width):
        for r, j in T.Parallel(CHUNK // 2, width):
            at = r // width * (2 * width)
            made[r, j] = made[r, j] + a[at + width + r % width, at + k] * t[at + k, at + j]
    for r, j in T.Parallel(CHUNK // 2, width):
        half[r, j] = made[r, j]
    T.clear(made)
    for k in T.serial(width):
        for r, j in T.Parallel(CHUNK // 2, width):
            at = r // width * (2 * width) + width
            made[r, j] = made[r, j] - t[at + r % width, at + k] * half[r // width * width + k, j]
    for r, j in T.Parallel(CHUNK // 2, width):
        at = r // width * (2 * width)
        t[at + width + r % width, at + j] = made[r, j]


@Family
def corrections(x, decays, keys, columns, threads):
    """What delta rules make of a chunk, of N = (1 + A)^-1, A[i, j] = beta_i exp(G_i - G_j) k_i k_j for j < i: U = N beta V and
    W = N beta exp(G) K, for what is written at its positions is U - W S of the state S before it. N is made in float32:
    blocks of 16 row by row, then blocks twice as wide of four."""
    B, L, H, HK, D, V, NC = T.dynamic("B, L, H, HK, D, V, NC")
    (kb, kt, kh), (vb, vt, vh) = T.dynamic("kb, kt, kh"), T.dynamic("vb, vt, vh")
    (gb, gt, gh), (eb, et, eh) = T.dynamic("gb, gt, gh"), T.dynamic("eb, et, eh")
    blocks = CHUNK // _BLOCK

    @T.prim_func
    def corrections_of_chunks(
        K: T.StridedTensor((B, L, HK, D), (kb, kt, kh, 1), x),
        X: T.StridedTensor((B, L, H, V), (vb, vt, vh, 1), x),
        G: T.StridedTensor((B, L, H) if decays else (1, 1, 1), (gb, gt, gh), "float32"),
        beta: T.StridedTensor((B, L, H), (eb, et, eh), "float32"),
        W: T.Tensor((B * H, NC, CHUNK, keys), x),
        U: T.Tensor((B * H, NC, CHUNK, V), x),
    ):
        with T.Kernel(NC, B * H, threads=threads) as (c, by):
            b, h = by // H, by % H
            hk = h // (H // HK)
            k = T.alloc_shared((CHUNK, keys), x)
            v = T.alloc_shared((CHUNK, columns), x)
            g = T.alloc_shared((CHUNK,), "float32")
            to = T.alloc_shared((CHUNK,), "float32")
            behind = T.alloc_shared((CHUNK,), "float32")
            e = T.alloc_shared((CHUNK,), "float32")
            a = T.alloc_shared((CHUNK, CHUNK), "float32")
            t = T.alloc_shared((CHUNK, CHUNK), "float32")
            half = T.alloc_shared((CHUNK // 2, CHUNK // 2), "float32")
            pairs = T.alloc_fragment((CHUNK, CHUNK), "float32")
            part = T.alloc_fragment((blocks, _BLOCK), "float32")
            narrow = T.alloc_fragment((CHUNK, CHUNK), x)
            of_keys = T.alloc_fragment((CHUNK, keys), "float32")
            of_values = T.alloc_fragment((CHUNK, columns), "float32")
            T.copy(K[b, c * CHUNK : (c + 1) * CHUNK, hk, 0:keys], k)
            for i in T.Parallel(CHUNK):
                e[i] = beta[b, c * CHUNK + i, h]
            if decays:
                _decays(G, b, c, h, g, to, behind)
            T.clear(pairs)
            T.gemm(k, k, pairs, transpose_B=True)
            for i, j in T.Parallel(CHUNK, CHUNK):
                w = pairs[i, j] * e[i]
                a[i, j] = T.if_then_else(j < i, w * T.exp2(g[i] - g[j]) if decays else w, 0)
                t[i, j] = T.if_then_else(i == j, T.float32(1), 0)
            for i in T.serial(1, _BLOCK):
                T.clear(part)
                for j in T.serial(i):
                    for n, m in T.Parallel(blocks, _BLOCK):
                        at = n * _BLOCK
                        part[n, m] = part[n, m] - a[at + i, at + j] * t[at + j, at + m]
                for n, m in T.Parallel(blocks, _BLOCK):
                    t[n * _BLOCK + i, n * _BLOCK + m] = T.if_then_else(m == i, T.float32(1), part[n, m])
            _merged(a, t, half, _BLOCK)
            _merged(a, t, half, 2 * _BLOCK)
            for i, j in T.Parallel(CHUNK, CHUNK):
                w = t[i, j] * e[j]
                narrow[i, j] = T.cast(w * to[j] if decays else w, x)
            T.clear(of_keys)
            T.gemm(narrow, k, of_keys)
            for i, j in T.Parallel(CHUNK, keys):
                W[by, c, i, j] = T.cast(of_keys[i, j], x)
            for i, j in T.Parallel(CHUNK, CHUNK):
                narrow[i, j] = T.cast(t[i, j] * e[j], x)
            for n in T.serial(T.ceildiv(V, columns)):
                T.copy(X[b, c * CHUNK : (c + 1) * CHUNK, h, n * columns : (n + 1) * columns], v)
                T.clear(of_values)
                T.gemm(narrow, v, of_values)
                for i, j in T.Parallel(CHUNK, columns):
                    U[by, c, i, n * columns + j] = T.cast(of_values[i, j], x)

    return corrections_of_chunks


@Family
def weights(x, decay, keys, threads):
    """Where each key decays by itself, of a chunk, with G the running sums of logarithms of decays: queries times exp(G), keys
    times exp(what is left of the chunk), exp of the whole, and A[i, j] = sum over keys of q_i k_j exp(G_i - G_j) for j <=
    i. Pairs of positions whose numbers first differ at one bit have a place between them, the same for all of a block, that
    both decays are taken to: for each bit a product of factors of at most 1, whatever the decays are."""
    B, L, H, HK, D, NC = T.dynamic("B, L, H, HK, D, NC")
    (qb, qt, qh), (kb, kt, kh), (gb, gt, gh) = T.dynamic("qb, qt, qh"), T.dynamic("kb, kt, kh"), T.dynamic("gb, gt, gh")

    @T.prim_func
    def weights_of_pairs(
        Q: T.StridedTensor((B, L, HK, D), (qb, qt, qh, 1), x),
        K: T.StridedTensor((B, L, HK, D), (kb, kt, kh, 1), x),
        G: T.StridedTensor((B, L, H, D), (gb, gt, gh, 1), decay),
        QG: T.Tensor((B * H, NC, CHUNK, keys), x),
        KG: T.Tensor((B * H, NC, CHUNK, keys), x),
        left: T.Tensor((B * H, NC, keys), "float32"),
        A: T.Tensor((B * H, NC, CHUNK, CHUNK), x),
    ):
        with T.Kernel(NC, B * H, threads=threads) as (c, by):
            if keys <= 128:
                T.annotate_min_blocks_per_sm(2)
            b, h = by // H, by % H
            hk = h // (H // HK)
            q = T.alloc_shared((CHUNK, keys), x)
            k = T.alloc_shared((CHUNK, keys), x)
            g = T.alloc_shared((CHUNK, keys), "float32")
            near = T.alloc_shared((CHUNK, keys), x)
            sum_of = T.alloc_fragment((CHUNK, keys), "float32")
            pairs = T.alloc_fragment((CHUNK, CHUNK), "float32")
            made = T.alloc_fragment((CHUNK, CHUNK), "float32")
            T.copy(Q[b, c * CHUNK : (c + 1) * CHUNK, hk, 0:keys], q)
            T.copy(K[b, c * CHUNK : (c + 1) * CHUNK, hk, 0:keys], k)
            for i, j in T.Parallel(CHUNK, keys):
                d = T.cast(G[b, c * CHUNK + i, h, j], "float32")
                g[i, j] = T.if_then_else(d < _LEAST, _LEAST, d) * _LOG2E
            T.cumsum(g, g, dim=0)
            for i, j in T.Parallel(CHUNK, keys):
                sum_of[i, j] = g[i, j]
                QG[by, c, i, j] = T.cast(T.cast(q[i, j], "float32") * T.exp2(sum_of[i, j]), x)
                KG[by, c, i, j] = T.cast(T.cast(k[i, j], "float32") * T.exp2(g[CHUNK - 1, j] - sum_of[i, j]), x)
            for j in T.Parallel(keys):
                left[by, c, j] = T.exp2(g[CHUNK - 1, j])
            T.clear(made)
            T.gemm(q, k, made, transpose_B=True)
            for i, j in T.Parallel(CHUNK, CHUNK):
                made[i, j] = T.if_then_else(i == j, made[i, j], 0)
            for bit in T.serial((CHUNK - 1).bit_length()):
                for i, j in T.Parallel(CHUNK, keys):
                    far = sum_of[i, j] - g[((i >> (bit + 1)) << (bit + 1)) + (1 << bit) - 1, j]
                    later = ((i >> bit) & 1) == 1
                    value = T.cast(T.if_then_else(later, q[i, j], k[i, j]), "float32")
                    near[i, j] = T.cast(value * T.exp2(T.if_then_else(later, far, -far)), x)
                T.clear(pairs)
                T.gemm(near, near, pairs, transpose_B=True)
                for i, j in T.Parallel(CHUNK, CHUNK):
                    first = T.logical_and(i > j, ((i ^ j) >> bit) == 1)
                    made[i, j] = T.if_then_else(first, pairs[i, j], made[i, j])
            for i, j in T.Parallel(CHUNK, CHUNK):
                A[by, c, i, j] = T.cast(made[i, j], x)

    return weights_of_pairs


@Family
def attend(x, result, decays, gates, corrects, begins, keys, columns, state, stages, threads):
    """O = scale (exp(G) Q S + P Y), P[i, j] = q_i k_j exp(G_i - G_j) for j <= i, of a chunk's positions, of the state S before
    it and of what is written at its positions, Y: X, times beta if `gates`; with `corrects` X - W S. Then S = exp(the chunk's
    decay) S + K^T (Y times the decay that is left of the chunk). decays: "" (none), "head", or "key": Q, K, P, and exp of
    the chunk's decay, `left`, are those of weights(). A block walks over the chunks with `columns` columns of the state of a
    head; I is where it `begins`, E where it ends."""
    B, L, H, HK, D, V, NC = T.dynamic("B, L, H, HK, D, V, NC")
    (qb, qt, qh), (kb, kt, kh) = T.dynamic("qb, qt, qh"), T.dynamic("kb, kt, kh")
    (vb, vt, vh), (gb, gt, gh), (eb, et, eh), (ob, ot, oh) = (T.dynamic(f"{n}b, {n}t, {n}h") for n in "vgeo")
    weighs = gates or decays == "head"  # what is written, before it is added to the state

    @T.prim_func
    def attention_by_chunks(
        Q: T.StridedTensor((B, L, HK, D), (qb, qt, qh, 1), x),
        K: T.StridedTensor((B, L, HK, D), (kb, kt, kh, 1), x),
        X: T.StridedTensor((B, L, H, V), (vb, vt, vh, 1), x),
        G: T.StridedTensor((B, L, H) if decays == "head" else (1, 1, 1), (gb, gt, gh), "float32"),
        beta: T.StridedTensor((B, L, H) if gates else (1, 1, 1), (eb, et, eh), "float32"),
        left: T.Tensor((B * H, NC, keys) if decays == "key" else (1, 1, 1), "float32"),
        P: T.Tensor((B * H, NC, CHUNK, CHUNK) if decays == "key" else (1, 1, 1, 1), x),
        W: T.Tensor((B * H, NC, CHUNK, keys) if corrects else (1, 1, 1, 1), x),
        I: T.Tensor((B, H, D, V), state),
        O: T.StridedTensor((B, L, H, V), (ob, ot, oh, 1), result),
        E: T.Tensor((B, H, D, V), state),
        scale: T.float32,
    ):
        with T.Kernel(T.ceildiv(V, columns), B * H, threads=threads) as (bx, by):
            b, h = by // H, by % H
            hk = h // (H // HK)
            s = T.alloc_fragment((keys, columns), "float32")
            before = T.alloc_shared((keys, columns), x)
            q = T.alloc_shared((CHUNK, keys), x)
            k = T.alloc_shared((CHUNK, keys), x)
            v = T.alloc_shared((CHUNK, columns), x)
            w = T.alloc_shared((CHUNK, keys), x)
            p = T.alloc_shared((CHUNK, CHUNK), x)
            written = T.alloc_shared((CHUNK, columns), x)
            weighed = T.alloc_shared((CHUNK, columns), x)
            g = T.alloc_shared((CHUNK,), "float32")
            to = T.alloc_shared((CHUNK,), "float32")
            behind = T.alloc_shared((CHUNK,), "float32")
            e = T.alloc_shared((CHUNK,), "float32")
            made = T.alloc_fragment((CHUNK, columns), "float32")
            acc = T.alloc_fragment((CHUNK, columns), "float32")
            pairs = T.alloc_fragment((CHUNK, CHUNK), "float32")
            # Two warpgroups have columns of it each, and multiply rows.
            narrow = T.alloc_fragment((CHUNK, CHUNK), x) if threads == 128 and decays != "key" else p
            if begins:
                # Loads under conditions straight into accumulators make the device compiler spill them (NVRTC 13.0).
                held = T.alloc_shared((keys, columns), state)
                T.copy(I[b, h, 0:keys, bx * columns : (bx + 1) * columns], held)
                T.copy(held, s)
            else:
                T.clear(s)
            for c in T.Pipelined(T.ceildiv(L, CHUNK), num_stages=stages):
                T.copy(Q[b, c * CHUNK : (c + 1) * CHUNK, hk, 0:keys], q)
                T.copy(K[b, c * CHUNK : (c + 1) * CHUNK, hk, 0:keys], k)
                T.copy(X[b, c * CHUNK : (c + 1) * CHUNK, h, bx * columns : (bx + 1) * columns], v)
                T.copy(s, before)
                if decays == "head":
                    _decays(G, b, c, h, g, to, behind)
                if gates:
                    for i in T.Parallel(CHUNK):
                        e[i] = beta[b, c * CHUNK + i, h]
                T.clear(acc)
                T.gemm(q, before, acc)
                if corrects:
                    T.copy(W[by, c, 0:CHUNK, 0:keys], w)
                    T.clear(made)
                    T.gemm(w, before, made)
                    for i, j in T.Parallel(CHUNK, columns):
                        made[i, j] = T.cast(v[i, j], "float32") - made[i, j]
                        written[i, j] = T.cast(made[i, j], x)
                        if weighs:
                            weighed[i, j] = T.cast(made[i, j] * behind[i], x)
                elif weighs:
                    for i, j in T.Parallel(CHUNK, columns):
                        value = T.cast(v[i, j], "float32")
                        value = value * e[i] if gates else value
                        weighed[i, j] = T.cast(value * behind[i] if decays else value, x)
                if decays == "head":
                    for i, j in T.Parallel(CHUNK, columns):
                        acc[i, j] = acc[i, j] * to[i]
                if decays == "key":
                    T.copy(P[by, c, 0:CHUNK, 0:CHUNK], p)
                else:
                    T.clear(pairs)
                    T.gemm(q, k, pairs, transpose_B=True)
                    for i, j in T.Parallel(CHUNK, CHUNK):
                        value = pairs[i, j] * T.exp2(g[i] - g[j]) if decays else pairs[i, j]
                        narrow[i, j] = T.cast(T.if_then_else(j <= i, value * e[j] if gates else value, 0), x)
                T.gemm(narrow, written if corrects else v, acc)
                for i, j in T.Parallel(CHUNK, columns):
                    O[b, c * CHUNK + i, h, bx * columns + j] = T.cast(acc[i, j] * scale, result)
                if decays:
                    for i, j in T.Parallel(keys, columns):
                        s[i, j] = s[i, j] * (left[by, c, i] if decays == "key" else to[CHUNK - 1])
                T.gemm(k, weighed if weighs else written if corrects else v, s, transpose_A=True)
            for i, j in T.Parallel(keys, columns):
                E[b, h, i, bx * columns + j] = T.cast(s[i, j], state)

    return attention_by_chunks
