"""Programs of linear attention: a state of keys by values that decays, is corrected, and grows by one outer product a
position."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family


@Family
def walk(x, result, decays, gates, corrects, begins, keys, columns, positions, state, threads):
    """For each position t of a head: S = exp(G) S; with `corrects` v = beta (v - S^T k), else v = beta v; S = S + k v^T; O =
    scale S^T q. decays: "" (none), "head" (G is one number) or "key" (one for each row of S). `gates`: there is a beta. A
    block has `columns` columns of the state of a head; `begins`: I is where it begins. Heads of q and k may be fewer:
    neighbours share. `positions`: the extent of time if it is small and fixed, or 0. state: the dtype of I and of E,
    where it ends; result: that of O."""
    B, L, H, HK, D, V = T.dynamic("B, L, H, HK, D, V")
    (qb, qt, qh), (kb, kt, kh) = T.dynamic("qb, qt, qh"), T.dynamic("kb, kt, kh")
    (vb, vt, vh), (gb, gt, gh), (eb, et, eh), (ob, ot, oh) = (T.dynamic(f"{n}b, {n}t, {n}h") for n in "vgeo")

    @T.prim_func
    def recurrence(
        Q: T.StridedTensor((B, L, HK, D), (qb, qt, qh, 1), x),
        K: T.StridedTensor((B, L, HK, D), (kb, kt, kh, 1), x),
        X: T.StridedTensor((B, L, H, V), (vb, vt, vh, 1), x),
        G: T.StridedTensor((B, L, H, D if decays == "key" else 1), (gb, gt, gh, 1), "float32"),
        beta: T.StridedTensor((B, L, H), (eb, et, eh), "float32"),
        I: T.Tensor((B, H, D, V), state),
        O: T.StridedTensor((B, L, H, V), (ob, ot, oh, 1), result),
        E: T.Tensor((B, H, D, V), state),
        scale: T.float32,
    ):
        with T.Kernel(T.ceildiv(V, columns), B * H, threads=threads) as (bx, by):
            b, h = by // H, by % H
            hk = h // (H // HK)
            s = T.alloc_fragment((keys, columns), "float32")
            part = T.alloc_fragment((keys, columns), "float32")
            q = T.alloc_shared((keys,), "float32")
            k = T.alloc_shared((keys,), "float32")
            g = T.alloc_shared((keys,), "float32")
            v = T.alloc_fragment((columns,), "float32")
            o = T.alloc_fragment((columns,), "float32")
            T.clear(s)
            if begins:
                for i, j in T.Parallel(keys, columns):
                    s[i, j] = T.cast(I[b, h, i, bx * columns + j], "float32")
            for t in T.serial(L):
                for i in T.Parallel(keys):
                    q[i] = T.cast(Q[b, t, hk, i], "float32") * scale
                    k[i] = T.cast(K[b, t, hk, i], "float32")
                    if decays == "key":
                        g[i] = T.exp(G[b, t, h, i])
                for j in T.Parallel(columns):
                    v[j] = T.cast(X[b, t, h, bx * columns + j], "float32")
                if decays:
                    left = T.exp(G[b, t, h, 0]) if decays == "head" else 1
                    for i, j in T.Parallel(keys, columns):
                        s[i, j] = s[i, j] * (g[i] if decays == "key" else left)
                if corrects:
                    for i, j in T.Parallel(keys, columns):
                        part[i, j] = s[i, j] * k[i]
                    T.reduce_sum(part, o, dim=0)
                    for j in T.Parallel(columns):
                        v[j] = v[j] - o[j]
                if gates:
                    for j in T.Parallel(columns):
                        v[j] = v[j] * beta[b, t, h]
                for i, j in T.Parallel(keys, columns):
                    s[i, j] = s[i, j] + k[i] * v[j]
                    part[i, j] = s[i, j] * q[i]
                T.reduce_sum(part, o, dim=0)
                for j in T.Parallel(columns):
                    O[b, t, h, bx * columns + j] = T.cast(o[j], result)
            for i, j in T.Parallel(keys, columns):
                E[b, h, i, bx * columns + j] = T.cast(s[i, j], state)

    return recurrence
