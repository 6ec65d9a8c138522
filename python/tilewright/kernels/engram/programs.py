"""Programs of the engram: hashes of n-grams, the gate with its norms, and what comes back through it."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family, added


def row_threads(hidden):
    """Of a block that has a row in registers."""
    return 128 if hidden <= 4096 else 256 if hidden <= 8192 else 512


@Family
def product(columns=512):
    """The product of two tensors of bfloat16 in float32."""
    count = T.dynamic("count")

    @T.prim_func
    def fused_weight(A: T.Tensor((count,), "bfloat16"), B: T.Tensor((count,), "bfloat16"), C: T.Tensor((count,), "float32")):
        with T.Kernel(T.ceildiv(count, columns), threads=128) as bx:
            for j in T.Parallel(columns):
                C[bx * columns + j] = T.cast(A[bx * columns + j], "float32") * T.cast(B[bx * columns + j], "float32")

    return fused_weight


@Family
def hashes(size, heads, rows=32):
    """Rows of the tables of each n-gram of 2 to `size` tokens: products of tokens and multipliers, joined by exclusive or."""
    layers, tokens = T.dynamic("layers, tokens")
    sizes = tuple(range(1, size))

    def joined(ids, multipliers, layer, t, last):
        total = T.cast(ids[t, 0], "int64") * multipliers[layer, 0]
        for n in range(1, last + 1):
            total = total ^ (T.cast(ids[t, n], "int64") * multipliers[layer, n])
        return total

    @T.prim_func
    def engram_hash(
        ids: T.Tensor((tokens, size), "int32"),
        multipliers: T.Tensor((layers, size), "int64"),
        vocabularies: T.Tensor((layers, size - 1, heads), "int32"),
        offsets: T.Tensor((layers, (size - 1) * heads), "int32"),
        out: T.Tensor((layers, tokens, (size - 1) * heads), "int32"),
    ):
        with T.Kernel(T.ceildiv(tokens, rows), layers, threads=128) as (bx, layer):
            for n in sizes:
                for i, h in T.Parallel(rows, heads):
                    if bx * rows + i < tokens:
                        found = joined(ids, multipliers, layer, bx * rows + i, n) % T.cast(vocabularies[layer, n - 1, h], "int64")
                        out[layer, bx * rows + i, (n - 1) * heads + h] = (
                            T.cast(found, "int32") + offsets[layer, (n - 1) * heads + h]
                        )

    return engram_hash


@Family
def gate(streams, hidden, saved, threads):
    """x + gate * v, where the gate is the sigmoid of the signed root of the product of the norms of x and k."""
    tokens, k_token, k_stream, v_token = T.dynamic("tokens, k_token, k_stream, v_token")

    @T.prim_func
    def engram_gate(
        X: T.Tensor((tokens, streams, hidden), "bfloat16"),
        K: T.StridedTensor((tokens, streams, hidden), (k_token, k_stream, 1), "bfloat16"),
        V: T.StridedTensor((tokens, hidden), (v_token, 1), "bfloat16"),
        W: T.Tensor((streams, hidden), "float32"),
        Y: T.Tensor((tokens, streams, hidden), "bfloat16"),
        dots: T.Tensor((tokens, streams), "float32"),
        gates: T.Tensor((tokens, streams), "float32"),
        x_norms: T.Tensor((tokens, streams), "float32"),
        k_norms: T.Tensor((tokens, streams), "float32"),
        epsilon: T.float32,
        least: T.float32,
        factor: T.float32,
    ):
        with T.Kernel(streams * tokens, threads=threads) as block:
            t, h = block // streams, block % streams
            x = T.alloc_fragment((1, hidden), "float32")
            k = T.alloc_fragment((1, hidden), "float32")
            part = T.alloc_fragment((1, hidden), "float32")
            xx = T.alloc_fragment((1,), "float32")
            kk = T.alloc_fragment((1,), "float32")
            xk = T.alloc_fragment((1,), "float32")
            for i, j in T.Parallel(1, hidden):
                x[i, j] = T.cast(X[t, h, j], "float32")
                k[i, j] = T.cast(K[t, h, j], "float32")
            for i, j in T.Parallel(1, hidden):
                part[i, j] = x[i, j] * W[h, j] * k[i, j]
            T.reduce_sum(part, xk, dim=1)
            for i, j in T.Parallel(1, hidden):
                part[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(part, xx, dim=1)
            for i, j in T.Parallel(1, hidden):
                k[i, j] = k[i, j] * k[i, j]
            T.reduce_sum(k, kk, dim=1)
            for i in T.Parallel(1):
                of_x, of_k = T.rsqrt(xx[i] / hidden + epsilon), T.rsqrt(kk[i] / hidden + epsilon)
                scaled = xk[i] * of_x * of_k * factor
                root = T.sqrt(T.max(T.abs(scaled), least))
                signed = T.if_then_else(scaled > 0, root, T.if_then_else(scaled < 0, -root, T.float32(0)))
                opened = 1.0 / (1.0 + T.exp(-signed))
                if saved:
                    dots[t, h] = xk[i]
                    gates[t, h] = opened
                    x_norms[t, h] = of_x
                    k_norms[t, h] = of_k
                kk[i] = opened
            for i, j in T.Parallel(1, hidden):
                Y[t, h, j] = T.cast(x[i, j] + kk[i] * T.cast(V[t, j], "float32"), "bfloat16")

    return engram_gate


@Family
def gate_gradient(streams, hidden, columns=1024):
    """Gradients of gate(): what comes back through the gates, and that of V; then the others, elementwise, where each block of the
    grid has some tokens and columns of one stream, and keeps its part of the weight's."""
    tokens, blocks, k_token, k_stream, v_token = T.dynamic("tokens, blocks, k_token, k_stream, v_token")
    numbers = tuple(range(streams))

    @T.prim_func
    def engram_gate_backward(
        dY: T.Tensor((tokens, streams, hidden), "bfloat16"),
        X: T.Tensor((tokens, streams, hidden), "bfloat16"),
        K: T.StridedTensor((tokens, streams, hidden), (k_token, k_stream, 1), "bfloat16"),
        V: T.StridedTensor((tokens, hidden), (v_token, 1), "bfloat16"),
        W: T.Tensor((streams, hidden), "float32"),
        dots: T.Tensor((tokens, streams), "float32"),
        gates: T.Tensor((tokens, streams), "float32"),
        x_norms: T.Tensor((tokens, streams), "float32"),
        k_norms: T.Tensor((tokens, streams), "float32"),
        through: T.Tensor((tokens, streams, 3), "float32"),  # to x * w * k, to the squares of x and of k
        dX: T.Tensor((tokens, streams, hidden), "bfloat16"),
        dK: T.Tensor((tokens, streams, hidden), "bfloat16"),
        dV: T.Tensor((tokens, hidden), "bfloat16"),
        dW: T.Tensor((blocks, streams, hidden), "float32"),
        least: T.float32,
        factor: T.float32,
    ):
        with T.Kernel(tokens, threads=128) as t:
            dy = T.alloc_shared((streams, columns), "bfloat16")
            v = T.alloc_shared((columns,), "bfloat16")
            part = T.alloc_fragment((streams, columns), "float32")
            total = T.alloc_fragment((streams,), "float32")
            T.clear(part)
            for step in T.Pipelined(T.ceildiv(hidden, columns), num_stages=4):
                T.copy(dY[t, 0, step * columns], dy)
                T.copy(V[t, step * columns], v)
                for h in numbers:
                    for j in T.Parallel(columns):
                        part[h, j] = part[h, j] + T.cast(dy[h, j], "float32") * T.cast(v[j], "float32")
                for j in T.Parallel(columns):
                    found = added([gates[t, h] * T.cast(dy[h, j], "float32") for h in numbers])
                    dV[t, step * columns + j] = T.cast(found, "bfloat16")
            T.reduce_sum(part, total, dim=1)
            for h in T.Parallel(streams):
                of_x, of_k, opened = x_norms[t, h], k_norms[t, h], gates[t, h]
                scaled = dots[t, h] * of_x * of_k * factor
                slope = T.if_then_else(T.abs(scaled) >= least, 0.5 / T.sqrt(T.max(T.abs(scaled), least)), T.float32(0))
                to_scaled = total[h] * opened * (1.0 - opened) * slope
                to_square = -to_scaled * scaled / hidden
                through[t, h, 0] = to_scaled * of_x * of_k * factor
                through[t, h, 1] = to_square * (of_x * of_x)
                through[t, h, 2] = to_square * (of_k * of_k)
        with T.Kernel(T.ceildiv(hidden, columns), streams, blocks, threads=128) as (bx, h, s):
            w = T.alloc_fragment((columns,), "float32")
            of_weight = T.alloc_fragment((columns,), "float32")
            T.copy(W[h, bx * columns], w)
            T.clear(of_weight)
            lying = [T.alloc_shared((columns,), "bfloat16") for _ in range(3)]
            each = T.ceildiv(tokens, blocks)
            for step in T.Pipelined(T.min(each, tokens - s * each), num_stages=4):
                t = s * each + step
                for of, to in ((dY, lying[0]), (X, lying[1]), (K, lying[2])):
                    T.copy(of[t, h, bx * columns], to)
                to_all, to_x, to_k = through[t, h, 0], through[t, h, 1], through[t, h, 2]
                for j in T.Parallel(columns):
                    c = bx * columns + j
                    dy, x, k = (T.cast(of[j], "float32") for of in lying)
                    dX[t, h, c] = T.cast(dy + to_all * w[j] * k + to_x * x, "bfloat16")
                    dK[t, h, c] = T.cast(to_all * w[j] * x + to_k * k, "bfloat16")
                    of_weight[j] = of_weight[j] + to_all * x * k
            T.copy(of_weight, dW[s, h, bx * columns])

    return engram_gate_backward


@Family
def weight_gradient(columns=128, together=16):
    """Adds the gradients of both weights of a product, from parts of the product's."""
    parts, streams, hidden = T.dynamic("parts, streams, hidden")

    @T.prim_func
    def grad_w_reduce(
        dW: T.Tensor((parts, streams, hidden), "float32"),
        A: T.Tensor((streams, hidden), "bfloat16"),
        B: T.Tensor((streams, hidden), "bfloat16"),
        dA: T.Tensor((streams, hidden), "float32"),
        dB: T.Tensor((streams, hidden), "float32"),
    ):
        with T.Kernel(T.ceildiv(hidden, columns), streams, threads=128) as (bx, h):
            a, b, of_a, of_b, sums = (T.alloc_fragment((columns,), "float32") for _ in range(5))
            lying = T.alloc_shared((together, columns), "float32")
            for to, of in ((a, A), (b, B), (of_a, dA), (of_b, dB)):
                T.copy(of[h, bx * columns], to)
            T.clear(sums)
            for step in T.Pipelined(T.ceildiv(parts, together), num_stages=6):
                T.copy(dW[step * together : (step + 1) * together, h, bx * columns : (bx + 1) * columns], lying)
                for i in T.serial(together):
                    for j in T.Parallel(columns):
                        sums[j] = sums[j] + lying[i, j]
            for j in T.Parallel(columns):
                dA[h, bx * columns + j] = of_a[j] + sums[j] * b[j]
                dB[h, bx * columns + j] = of_b[j] + sums[j] * a[j]

    return grad_w_reduce
