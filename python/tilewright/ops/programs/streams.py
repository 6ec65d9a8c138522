"""Programs of hyper-connections and of engrams as models call them: streams mixed, memories gated and smoothed."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family


@Family
def mix(streams, turns, width, threads):
    """Of each row the streams of X mixed by a matrix whose rows and columns sum to 1 (Sinkhorn, `turns` times), and their
    sum by weights. H: products of X with the projections, of which the weights come first and the matrix last."""
    B, C, K = T.dynamic("B, C, K")

    @T.prim_func
    def mix_streams(
        X: T.Tensor((B, streams, C), "bfloat16"),
        H: T.Tensor((B, K), "float32"),
        bias: T.Tensor((K,), "float32"),
        norms: T.Tensor((B,), "float32"),
        R: T.Tensor((B, streams, C), "bfloat16"),
        L: T.Tensor((B, C), "bfloat16"),
        of_weights: T.float32,
        of_matrix: T.float32,
        epsilon: T.float32,
    ):
        with T.Kernel(T.ceildiv(C, width), B, threads=threads) as (bx, b):
            matrix = T.alloc_fragment((streams, streams), "float32")
            sums = T.alloc_fragment((streams,), "float32")
            lying = T.alloc_shared((streams, streams), "float32")
            weights = T.alloc_shared((streams,), "float32")
            for i in T.Parallel(streams):
                weights[i] = 1 / (1 + T.exp(-(of_weights * H[b, i] / norms[b] + bias[i])))
            for i, j in T.Parallel(streams, streams):
                at = 2 * streams + i * streams + j
                matrix[i, j] = of_matrix * H[b, at] / norms[b] + bias[at]
            T.reduce_max(matrix, sums, dim=1)
            for i, j in T.Parallel(streams, streams):
                matrix[i, j] = T.exp(matrix[i, j] - sums[i])
            for turn in T.serial(turns):
                T.reduce_sum(matrix, sums, dim=1)
                for i, j in T.Parallel(streams, streams):
                    matrix[i, j] = matrix[i, j] / (sums[i] + epsilon)
                T.reduce_sum(matrix, sums, dim=0)
                for i, j in T.Parallel(streams, streams):
                    matrix[i, j] = matrix[i, j] / (sums[j] + epsilon)
            T.copy(matrix, lying)
            for j in T.Parallel(width):
                c = bx * width + j
                total = T.alloc_var("float32", init=0.0)
                for m in T.serial(streams):
                    total = total + weights[m] * T.cast(X[b, m, c], "float32")
                L[b, c] = T.cast(total, "bfloat16")
                for n in T.serial(streams):
                    mixed = T.alloc_var("float32", init=0.0)
                    for m in T.serial(streams):
                        mixed = mixed + lying[n, m] * T.cast(X[b, m, c], "float32")
                    R[b, n, c] = T.cast(mixed, "bfloat16")

    return mix_streams


@Family
def spread(streams, width, threads):
    """Y[b, n] = W[b, n] * X[b] + R[b, n]."""
    B, C = T.dynamic("B, C")

    @T.prim_func
    def spread_streams(
        X: T.Tensor((B, C), "bfloat16"),
        W: T.Tensor((B, streams), "float32"),
        R: T.Tensor((B, streams, C), "bfloat16"),
        Y: T.Tensor((B, streams, C), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(C, width), streams, B, threads=threads) as (bx, n, b):
            for j in T.Parallel(width):
                c = bx * width + j
                Y[b, n, c] = T.cast(W[b, n] * T.cast(X[b, c], "float32") + T.cast(R[b, n, c], "float32"), "bfloat16")

    return spread_streams


@Family
def gate(x, hidden, threads):
    """V^ = sigmoid(norm(H) . norm(K) / sqrt(hidden)) V, and the inverse norms of H, K and V^. Both norms have the weight W."""
    M = T.dynamic("M")

    @T.prim_func
    def gate_memories(
        H: T.Tensor((M, hidden), x),
        K: T.Tensor((M, hidden), x),
        V: T.Tensor((M, hidden), x),
        W: T.Tensor((hidden,), x),
        Y: T.Tensor((M, hidden), x),
        alpha: T.Tensor((M,), "float32"),
        of_h: T.Tensor((M,), "float32"),
        of_k: T.Tensor((M,), "float32"),
        of_v: T.Tensor((M,), "float32"),
        epsilon: T.float32,
    ):
        with T.Kernel(M, threads=threads) as m:
            h = T.alloc_fragment((1, hidden), "float32")
            k = T.alloc_fragment((1, hidden), "float32")
            part = T.alloc_fragment((1, hidden), "float32")
            hh, kk, hk, vv = (T.alloc_fragment((1,), "float32") for _ in (0, 1, 2, 3))
            for i, j in T.Parallel(1, hidden):
                h[i, j] = T.cast(H[m, j], "float32")
                k[i, j] = T.cast(K[m, j], "float32")
            for i, j in T.Parallel(1, hidden):
                w = T.cast(W[j], "float32")
                part[i, j] = h[i, j] * k[i, j] * w * w
            T.reduce_sum(part, hk, dim=1)
            for i, j in T.Parallel(1, hidden):
                h[i, j] = h[i, j] * h[i, j]
                k[i, j] = k[i, j] * k[i, j]
            T.reduce_sum(h, hh, dim=1)
            T.reduce_sum(k, kk, dim=1)
            for i in T.Parallel(1):
                hh[i] = T.rsqrt(hh[i] / hidden + epsilon)
                kk[i] = T.rsqrt(kk[i] / hidden + epsilon)
                hk[i] = 1 / (1 + T.exp(-(hk[i] * hh[i] * kk[i] / T.sqrt(T.float32(hidden)))))
            for i, j in T.Parallel(1, hidden):
                made = T.cast(hk[i] * T.cast(V[m, j], "float32"), x)
                Y[m, j] = made
                part[i, j] = T.cast(made, "float32") * T.cast(made, "float32")
            T.reduce_sum(part, vv, dim=1)
            for i in T.Parallel(1):
                alpha[m] = hk[i]
                of_h[m] = hh[i]
                of_k[m] = kk[i]
                of_v[m] = T.rsqrt(vv[i] / hidden + epsilon)

    return gate_memories


@Family
def smooth(x, taps, rows, columns, threads):
    """Y = silu(sum over p of C[p] N[t - (taps - 1 - p) * dilation]) + X, N = X * of_v * W; positions before the first are
    zeros."""
    B, L, D = T.dynamic("B, L, D")

    @T.prim_func
    def smooth_memories(
        X: T.Tensor((B, L, D), x),
        of_v: T.Tensor((B, L), "float32"),
        W: T.Tensor((D,), x),
        C: T.Tensor((taps, D), x),
        Y: T.Tensor((B, L, D), x),
        dilation: T.int32,
    ):
        with T.Kernel(T.ceildiv(D, columns), T.ceildiv(L, rows), B, threads=threads) as (bx, by, b):
            for i, j in T.Parallel(rows, columns):
                t, d = by * rows + i, bx * columns + j
                if T.logical_and(t < L, d < D):
                    total = T.alloc_var("float32", init=0.0)
                    for p in T.serial(taps):
                        at = t - (taps - 1 - p) * dilation
                        if at >= 0:
                            total = total + T.cast(C[p, d], "float32") * (
                                T.cast(X[b, at, d], "float32") * of_v[b, at] * T.cast(W[d], "float32")
                            )
                    Y[b, t, d] = T.cast(total / (1 + T.exp(-total)) + T.cast(X[b, t, d], "float32"), x)

    return smooth_memories
