"""Programs of state spaces: step sizes, what a chunk of positions adds to the state, what comes out of one, and one position."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family


@Family
def chunk_state(x, step, marked, whole, rows, columns, depth, stages, threads):
    """What a chunk adds to the state: S[b, c, h] = X^T (B w), over positions, of w = exp(the decay that is left of the chunk)
    dt. Y: running sums of logarithms of decays. `marked`: positions whose ID is not the chunk's last count nothing. A block
    has rows values and columns of the state; `whole`: chunks are whole tiles of `depth` positions."""
    NB, NC, CL, H, P, G, N = T.dynamic("NB, NC, CL, H, P, G, N")

    @T.prim_func
    def chunk_states(
        X: T.Tensor((NB, NC, CL, H, P), x),
        B: T.Tensor((NB, NC, CL, G, N), x),
        D: T.Tensor((NB, H, NC, CL), step),
        Y: T.Tensor((NB, H, NC, CL), "float32"),
        ID: T.Tensor((NB, NC, CL) if marked else (1, 1, 1), "int32"),
        S: T.Tensor((NB, NC, H, P, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, columns), T.ceildiv(P, rows), NB * NC * H, threads=threads) as (bx, by, bz):
            b, c, h = bz // H // NC, bz // H % NC, bz % H
            g = h // (H // G)
            given = T.alloc_shared((depth, rows), x)
            a = T.alloc_shared((depth, rows), x)
            keys = T.alloc_shared((depth, columns), x)
            weight = T.alloc_shared((depth,), "float32")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for t in T.Pipelined(T.ceildiv(CL, depth), num_stages=stages):
                T.copy(X[b, c, t * depth : (t + 1) * depth, h, by * rows : (by + 1) * rows], given)
                T.copy(B[b, c, t * depth : (t + 1) * depth, g, bx * columns : (bx + 1) * columns], keys)
                for i in T.Parallel(depth):
                    at = t * depth + i
                    w = T.exp(Y[b, h, c, CL - 1] - Y[b, h, c, at]) * T.cast(D[b, h, c, at], "float32")
                    if marked:
                        w = T.if_then_else(ID[b, c, at] == ID[b, c, CL - 1], w, 0)
                    weight[i] = w if whole else T.if_then_else(at < CL, w, 0)
                for i, j in T.Parallel(depth, rows):
                    a[i, j] = T.cast(T.cast(given[i, j], "float32") * weight[i], x)
                T.gemm(a, keys, acc, transpose_A=True)
            for i, j in T.Parallel(rows, columns):
                S[b, c, h, by * rows + i, bx * columns + j] = acc[i, j]

    return chunk_states


@Family
def chunk_scan(x, product, state, step, whole, columns, depth, stages, threads, rows=64):
    """O = exp(Y_i) C S^T + sum over j <= i of CB[i, j] exp(Y_i - Y_j) dt_j X[j] of the positions i, j of a chunk. S: the state
    before it. A block has rows positions and columns values, and takes the state in tiles of `depth`; `whole`: chunks are
    whole tiles of rows."""
    NB, NC, CL, H, P, G, N = T.dynamic("NB, NC, CL, H, P, G, N")

    @T.prim_func
    def chunk_outputs(
        X: T.Tensor((NB, NC, CL, H, P), x),
        CB: T.Tensor((NB, NC, G, CL, CL), product),
        Y: T.Tensor((NB, H, NC, CL), "float32"),
        C: T.Tensor((NB, NC, CL, G, N), x),
        S: T.Tensor((NB, NC, H, P, N), state),
        D: T.Tensor((NB, H, NC, CL), step),
        O: T.Tensor((NB, NC, CL, H, P), "float32"),
    ):
        with T.Kernel(T.ceildiv(P, columns), T.ceildiv(CL, rows), NB * NC * H, threads=threads) as (bx, by, bz):
            b, c, h = bz // H // NC, bz // H % NC, bz % H
            g = h // (H // G)
            queries = T.alloc_shared((rows, depth), x)
            before = T.alloc_shared((columns, depth), x)
            cb = T.alloc_shared((rows, rows), product)
            v = T.alloc_shared((rows, columns), x)
            here = T.alloc_shared((rows,), "float32")
            there = T.alloc_shared((rows,), "float32")
            step_of = T.alloc_shared((rows,), "float32")
            weights = T.alloc_fragment((rows, rows), "float32")
            narrow = T.alloc_fragment((rows, rows), x)
            acc = T.alloc_fragment((rows, columns), "float32")
            for i in T.Parallel(rows):
                here[i] = Y[b, h, c, by * rows + i]
            T.clear(acc)
            for t in T.serial(T.ceildiv(N, depth)):
                T.copy(C[b, c, by * rows : (by + 1) * rows, g, t * depth : (t + 1) * depth], queries)
                T.copy(S[b, c, h, bx * columns : (bx + 1) * columns, t * depth : (t + 1) * depth], before)
                T.gemm(queries, before, acc, transpose_B=True)
            for i, j in T.Parallel(rows, columns):
                acc[i, j] = acc[i, j] * T.exp(here[i])
            for t in T.Pipelined(by + 1, num_stages=stages):
                T.copy(CB[b, c, g, by * rows : (by + 1) * rows, t * rows : (t + 1) * rows], cb)
                T.copy(X[b, c, t * rows : (t + 1) * rows, h, bx * columns : (bx + 1) * columns], v)
                for j in T.Parallel(rows):
                    there[j] = Y[b, h, c, t * rows + j]
                    step_of[j] = T.cast(D[b, h, c, t * rows + j], "float32")
                for i, j in T.Parallel(rows, rows):
                    near = by * rows + i >= t * rows + j
                    w = T.cast(cb[i, j], "float32") * T.exp(here[i] - there[j]) * step_of[j]
                    weights[i, j] = T.if_then_else(near, w, 0)
                T.copy(weights, narrow)
                T.gemm(narrow, v, acc)
            for i, j in T.Parallel(rows, columns):
                O[b, c, by * rows + i, h, bx * columns + j] = acc[i, j]

    return chunk_outputs


@Family
def step(x, rows, threads):
    """One position of a state whose every element decays by itself: S = exp(dt A) S + dt x B, y = S C. N is walked whole."""
    B, H, P, N, G = T.dynamic("B, H, P, N, G")
    width = 128

    @T.prim_func
    def state_step(
        A: T.Tensor((H, P, N), "float32"),
        dt: T.Tensor((B, H, P), "float32"),
        X: T.Tensor((B, H, P), x),
        Bs: T.Tensor((B, G, N), x),
        Cs: T.Tensor((B, G, N), x),
        S: T.Tensor((B, H, P, N), "float32"),
        Y: T.Tensor((B, H, P), "float32"),
        E: T.Tensor((B, H, P, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(P, rows), H, B, threads=threads) as (bx, h, b):
            total = T.alloc_fragment((rows, width), "float32")
            y = T.alloc_fragment((rows,), "float32")
            T.clear(total)
            g = h // (H // G)
            for t in T.serial(T.ceildiv(N, width)):
                for i, j in T.Parallel(rows, width):
                    p, n = bx * rows + i, t * width + j
                    if T.logical_and(p < P, n < N):
                        d = dt[b, h, p]
                        grown = T.exp(d * A[h, p, n]) * S[b, h, p, n] + d * T.cast(Bs[b, g, n], "float32") * T.cast(
                            X[b, h, p], "float32"
                        )
                        E[b, h, p, n] = grown
                        total[i, j] = total[i, j] + grown * T.cast(Cs[b, g, n], "float32")
            T.reduce_sum(total, y, dim=1)
            for i in T.Parallel(rows):
                Y[b, h, bx * rows + i] = y[i]

    return state_step


@Family
def steps(softplus, bias, bounded, heads, rows, threads):
    """Step sizes of a chunk and `heads` heads, dt plus its bias, softplus of that, between low and high; and the running sums
    of them times A. A chunk is walked in tiles of `rows` positions; results lie along positions."""
    B, L, H, CL = T.dynamic("B, L, H, CL")

    @T.prim_func
    def step_sizes(
        dt: T.Tensor((B, L, H), "float32"),
        A: T.Tensor((H,), "float32"),
        D: T.Tensor((H if bias else 1,), "float32"),
        S: T.Tensor((B, H, L), "float32"),
        Y: T.Tensor((B, H, L), "float32"),
        chunk: T.Tensor((CL,), "int8"),
        low: T.float32,
        high: T.float32,
    ):
        with T.Kernel(T.ceildiv(H, heads), L // CL, B, threads=threads) as (bx, c, b):
            held = T.alloc_shared((rows, heads), "float32")
            sums = T.alloc_shared((rows, heads), "float32")
            before = T.alloc_shared((heads,), "float32")
            T.clear(before)
            for t in T.serial(T.ceildiv(CL, rows)):
                for i, j in T.Parallel(rows, heads):
                    at, h = t * rows + i, bx * heads + j
                    v = dt[b, T.if_then_else(at < CL, c * CL + at, -1), h]
                    v = v + D[h] if bias else v
                    v = T.if_then_else(v > 20, v, T.log1p(T.exp(v))) if softplus else v
                    v = T.if_then_else(T.isnan(v), v, T.min(T.max(v, low), high)) if bounded else v
                    held[i, j] = v
                    sums[i, j] = v * A[h]
                T.cumsum(sums, sums, dim=0)
                for j, i in T.Parallel(heads, rows):
                    at, h = t * rows + i, bx * heads + j
                    if T.logical_and(at < CL, h < H):
                        S[b, h, c * CL + at] = held[i, j]
                        Y[b, h, c * CL + at] = before[j] + sums[i, j]
                for j in T.Parallel(heads):
                    before[j] = before[j] + sums[rows - 1, j]

    return step_sizes
