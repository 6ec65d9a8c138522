"""The programs of examples/*.cpp in Python, with the names and the shapes that they have there."""
import math

import tilewright.language as T

LOG2E = math.log2(math.e)
EPSILON = 1e-6


def matmul(M, N, K, block_M, block_N, block_K, dtype, relu=False):
    @T.prim_func
    def matmul(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), T.float32)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    @T.prim_func
    def matmul_relu(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), T.float32)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j], 0)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return matmul_relu if relu else matmul


def matmul_relu(*arguments):
    return matmul(*arguments, relu=True)


def add(M, N, block_M, block_N, dtype):
    @T.prim_func
    def add(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                C[by * block_M + i, bx * block_N + j] = (
                    A[by * block_M + i, bx * block_N + j] + B[by * block_M + i, bx * block_N + j]
                )

    return add


def gated_residual(M, N, block_M, block_N, dtype):
    @T.prim_func
    def gated_residual(
        X: T.Tensor((M, N), dtype), G: T.Tensor((M, N), dtype), R: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
            tile = T.alloc_fragment((block_M, block_N), "float32")
            T.copy(X[by * block_M, bx * block_N], tile)
            for i, j in T.Parallel(block_M, block_N):
                tile[i, j] = (
                    tile[i, j] / (1 + T.exp(-tile[i, j])) * G[by * block_M + i, bx * block_N + j]
                    + R[by * block_M + i, bx * block_N + j]
                )
            T.copy(tile, Y[by * block_M, bx * block_N])

    return gated_residual


def batched_transpose(B, M, N, block_M, block_N, dtype):
    @T.prim_func
    def batched_transpose(X: T.Tensor((B, M, N), dtype), Y: T.Tensor((B, N, M), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), B, threads=256) as (bx, by, b):
            rows = T.alloc_shared((block_M, block_N), dtype)
            columns = T.alloc_fragment((block_N, block_M), dtype)
            T.copy(X[b, by * block_M, bx * block_N], rows)
            for j, i in T.Parallel(block_N, block_M):
                columns[j, i] = rows[i, j]
            T.copy(columns, Y[b, bx * block_N, by * block_M])

    return batched_transpose


def cumulative_sum(M, N, block_M, block_N, dtype):
    total = dtype if dtype == "int32" else "float32"

    @T.prim_func
    def cumulative_sum(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), total)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as by:
            x = T.alloc_shared((block_M, block_N), total)
            y = T.alloc_shared((block_M, block_N), total)
            carry = T.alloc_fragment((block_M,), total)
            T.clear(carry)
            for k in range(T.ceildiv(N, block_N)):
                T.copy(X[by * block_M, k * block_N], x)
                T.cumsum(x, y, dim=1)
                for i, j in T.Parallel(block_M, block_N):
                    y[i, j] += carry[i]
                for i in T.Parallel(block_M):
                    carry[i] = y[i, block_N - 1]
                T.copy(y, Y[by * block_M, k * block_N])

    return cumulative_sum


def histogram(N, bins, blocks, block_N):
    @T.prim_func
    def histogram(X: T.Tensor((N,), T.int32), H: T.Tensor((bins,), T.int32)):
        with T.Kernel(1, threads=128) as bx:
            for b in T.Parallel(bins):
                H[b] = 0
        with T.Kernel(blocks, threads=128) as bx:
            count = T.alloc_shared((bins,), T.int32)
            T.clear(count)
            for k in T.serial(T.ceildiv(N, blocks * block_N)):
                for i in T.Parallel(block_N):
                    at = (k * blocks + bx) * block_N + i
                    bin = X[at] if at < N else -1
                    if bin >= 0 and bin < bins:
                        T.atomic_add(count[bin], 1)
            for b in T.Parallel(bins):
                T.atomic_add(H[b], count[b])

    return histogram


def softmax(M, N, block_M, dtype):
    @T.prim_func
    def softmax(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as by:
            x = T.alloc_fragment((block_M, N), "float32")
            largest = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(X[by * block_M, 0], x)
            T.reduce_max(x, largest, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = T.exp2((x[i, j] - largest[i]) * LOG2E)
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] /= total[i]
            T.copy(x, Y[by * block_M, 0])

    return softmax


def online_softmax(M, N, block_M, block_N, dtype):
    @T.prim_func
    def online_softmax(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as by:
            x = T.alloc_fragment((block_M, block_N), "float32")
            largest = T.alloc_fragment((block_M,), "float32")
            previous = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            tile_total = T.alloc_fragment((block_M,), "float32")
            T.annotate_safe_value({X: -T.infinity(dtype)})
            T.fill(largest, -T.infinity("float32"))
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[by * block_M, k * block_N], x)
                T.copy(largest, previous)
                T.reduce_max(x, largest, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    x[i, j] = T.exp2((x[i, j] - largest[i]) * LOG2E)
                T.reduce_sum(x, tile_total, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * T.exp2((previous[i] - largest[i]) * LOG2E) + tile_total[i]
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[by * block_M, k * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    x[i, j] = T.exp2((x[i, j] - largest[i]) * LOG2E) / total[i]
                T.copy(x, Y[by * block_M, k * block_N])

    return online_softmax


def rms_norm(M, N, block_M, dtype):
    @T.prim_func
    def rms_norm(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as by:
            x = T.alloc_fragment((block_M, N), "float32")
            square = T.alloc_fragment((block_M, N), "float32")
            w = T.alloc_fragment((N,), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            T.copy(X[by * block_M, 0], x)
            T.copy(W, w)
            for i, j in T.Parallel(block_M, N):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + EPSILON)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] * scale[i] * w[j]
            T.copy(x, Y[by * block_M, 0])

    return rms_norm


def rms_norm_silu(M, C, block_M, block_C, dtype):
    @T.prim_func
    def rms_norm_silu(X: T.Tensor((M, C), dtype), W: T.Tensor((C,), dtype), Y: T.Tensor((M, C), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as by:
            x = T.alloc_fragment((block_M, block_C), "float32")
            w = T.alloc_fragment((block_C,), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            T.clear(scale)
            for k in T.Pipelined(T.ceildiv(C, block_C), num_stages=2):
                T.copy(X[by * block_M, k * block_C], x)
                for i, j in T.Parallel(block_M, block_C):
                    x[i, j] = x[i, j] * x[i, j]
                T.reduce_sum(x, scale, dim=1, clear=False)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / T.cast(C, "float32") + EPSILON)
            for k in T.Pipelined(T.ceildiv(C, block_C), num_stages=2):
                T.copy(X[by * block_M, k * block_C], x)
                T.copy(W[k * block_C], w)
                for i, j in T.Parallel(block_M, block_C):
                    normal = x[i, j] * scale[i] * w[j]
                    x[i, j] = normal / (1 + T.exp2(normal * -LOG2E))
                T.copy(x, Y[by * block_M, k * block_C])

    return rms_norm_silu


def layer_norm(M, N, block_M, dtype):
    @T.prim_func
    def layer_norm(
        X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as by:
            x = T.alloc_fragment((block_M, N), "float32")
            square = T.alloc_fragment((block_M, N), "float32")
            w = T.alloc_fragment((N,), "float32")
            b = T.alloc_fragment((N,), "float32")
            mean = T.alloc_fragment((block_M,), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            T.copy(X[by * block_M, 0], x)
            T.copy(W, w)
            T.copy(B, b)
            T.reduce_sum(x, mean, dim=1)
            for i in T.Parallel(block_M):
                mean[i] = mean[i] / N
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] - mean[i]
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + EPSILON)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] * scale[i] * w[j] + b[j]
            T.copy(x, Y[by * block_M, 0])

    return layer_norm


def topk_gate(Tokens, E, K, block_T):
    @T.prim_func
    def topk_gate(
        scores: T.Tensor((Tokens, E), "float32"),
        topk_idx: T.Tensor((Tokens, K), "int64"),
        topk_weights: T.Tensor((Tokens, K), "float32"),
    ):
        with T.Kernel(T.ceildiv(Tokens, block_T), threads=128) as bx:
            left = T.alloc_fragment((block_T, E), "float32")
            candidate = T.alloc_fragment((block_T, E), "int32")
            best = T.alloc_fragment((block_T,), "float32")
            expert = T.alloc_fragment((block_T,), "int32")
            total = T.alloc_fragment((block_T,), "float32")
            ids = T.alloc_fragment((block_T, K), "int32")
            weights = T.alloc_fragment((block_T, K), "float32")
            T.copy(scores[bx * block_T, 0], left)
            T.clear(total)
            for k in T.serial(K):
                T.reduce_max(left, best, dim=1)
                for i, e in T.Parallel(block_T, E):
                    candidate[i, e] = T.if_then_else(left[i, e] == best[i], e, E)
                T.reduce_min(candidate, expert, dim=1)
                for i, e in T.Parallel(block_T, E):
                    left[i, e] = -T.infinity("float32") if e == expert[i] else left[i, e]
                for i in T.Parallel(block_T):
                    ids[i, k] = expert[i]
                    weights[i, k] = best[i]
                    total[i] = total[i] + best[i]
            for i, k in T.Parallel(block_T, K):
                weights[i, k] = weights[i, k] / (total[i] + 1e-20)
            T.copy(ids, topk_idx[bx * block_T, 0])
            T.copy(weights, topk_weights[bx * block_T, 0])

    return topk_gate


def sinkhorn(Tokens, M, repeat, block_T):
    @T.prim_func
    def sinkhorn(X: T.Tensor((Tokens, M, M), "float32"), Y: T.Tensor((Tokens, M, M), "float32")):
        with T.Kernel(T.ceildiv(Tokens, block_T), threads=128) as bx:
            x = T.alloc_fragment((block_T, M, M), "float32")
            row = T.alloc_fragment((block_T, M), "float32")
            column = T.alloc_fragment((block_T, M), "float32")
            T.copy(X[bx * block_T, 0, 0], x)
            T.reduce_max(x, row, dim=2)
            for t, i, j in T.Parallel(block_T, M, M):
                x[t, i, j] = T.exp(x[t, i, j] - row[t, i])
            T.reduce_sum(x, row, dim=2)
            for t, i, j in T.Parallel(block_T, M, M):
                x[t, i, j] = x[t, i, j] / row[t, i] + EPSILON
            T.reduce_sum(x, column, dim=1)
            for t, i, j in T.Parallel(block_T, M, M):
                x[t, i, j] = x[t, i, j] / (column[t, j] + EPSILON)
            for r in T.serial(repeat - 1):
                T.reduce_sum(x, row, dim=2)
                for t, i, j in T.Parallel(block_T, M, M):
                    x[t, i, j] = x[t, i, j] / (row[t, i] + EPSILON)
                T.reduce_sum(x, column, dim=1)
                for t, i, j in T.Parallel(block_T, M, M):
                    x[t, i, j] = x[t, i, j] / (column[t, j] + EPSILON)
            T.copy(x, Y[bx * block_T, 0, 0])

    return sinkhorn


def matmul_packed_int4(M, N, K, block_M, block_N, block_K, group, dtype):
    @T.prim_func
    def matmul_packed_int4(
        A: T.Tensor((M, K), dtype),
        W: T.Tensor((N, T.ceildiv(K, 2)), "uint8"),
        S: T.Tensor((N, T.ceildiv(K, group)), "float32"),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            W_packed = T.alloc_shared((block_N, block_K // 2), "uint8")
            W_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(W[bx * block_N, k * (block_K // 2)], W_packed)
                for i, j in T.Parallel(block_N, block_K):
                    q = T.cast(W_packed[i, j // 2], "int32") >> (j % 2 * 4) & 15
                    W_shared[i, j] = T.cast(q - 8, "float32") * S[bx * block_N + i, (k * block_K + j) // group]
                T.gemm(A_shared, W_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return matmul_packed_int4


def flash_attention(batch, heads, kv_heads, queries, keys, dim, block_M, block_N, causal, dtype):
    scale = LOG2E / math.sqrt(dim)

    @T.prim_func
    def flash_attention(
        Q: T.Tensor((batch, heads, queries, dim), dtype),
        K: T.Tensor((batch, kv_heads, keys, dim), dtype),
        V: T.Tensor((batch, kv_heads, keys, dim), dtype),
        O: T.Tensor((batch, heads, queries, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(queries, block_M), heads, batch, threads=128) as (bx, h, b):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            acc_s = T.alloc_fragment((block_M, block_N), "float32")
            acc_s_cast = T.alloc_fragment((block_M, block_N), dtype)
            acc_o = T.alloc_fragment((block_M, dim), "float32")
            scores_max = T.alloc_fragment((block_M,), "float32")
            scores_max_prev = T.alloc_fragment((block_M,), "float32")
            scores_scale = T.alloc_fragment((block_M,), "float32")
            scores_sum = T.alloc_fragment((block_M,), "float32")
            logsum = T.alloc_fragment((block_M,), "float32")
            kv_head = h // (heads // kv_heads)
            T.copy(Q[b, h, bx * block_M, 0], Q_shared)
            T.clear(acc_o)
            T.clear(logsum)
            T.fill(scores_max, -T.infinity("float32"))
            last = T.min(keys, (bx + 1) * block_M) if causal else keys
            for k in T.Pipelined(T.ceildiv(last, block_N), num_stages=2):
                T.copy(K[b, kv_head, k * block_N, 0], K_shared)
                for i, j in T.Parallel(block_M, block_N):
                    key = k * block_N + j
                    if causal:
                        acc_s[i, j] = T.if_then_else(
                            key <= bx * block_M + i and key < keys, 0.0, -T.infinity("float32")
                        )
                    else:
                        acc_s[i, j] = T.if_then_else(key < keys, 0.0, -T.infinity("float32"))
                T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(V[b, kv_head, k * block_N, 0], V_shared)
                T.copy(scores_max, scores_max_prev)
                T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    scores_scale[i] = T.exp2((scores_max_prev[i] - scores_max[i]) * scale)
                for i, j in T.Parallel(block_M, block_N):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
                T.reduce_sum(acc_s, scores_sum, dim=1)
                for i in T.Parallel(block_M):
                    logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]
                T.copy(acc_s, acc_s_cast)
                for i, j in T.Parallel(block_M, dim):
                    acc_o[i, j] *= scores_scale[i]
                T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] /= logsum[i]
            T.copy(acc_o, O[b, h, bx * block_M, 0])

    return flash_attention


def expert_mapping(Tokens, K, E, P, alignment, blocks):
    threads, warp_size = 256, 32
    scan_threads = -(-E // warp_size) * warp_size

    @T.prim_func
    def expert_mapping(
        topk_idx: T.Tensor((Tokens, K), "int64"),
        pos_to_expert: T.Tensor((P,), "int32"),
        pos_to_token: T.Tensor((P,), "int32"),
        pos_to_token_topk: T.Tensor((P,), "int32"),
        token_topk_to_pos: T.Tensor((Tokens, K), "int32"),
        expert_start: T.Tensor((E,), "int32"),
        expert_end: T.Tensor((E,), "int32"),
        num_tokens_per_expert: T.Tensor((E,), "int32"),
    ):
        counts = T.alloc_global((blocks, E), "int32")
        with T.Kernel(blocks, threads=threads) as bx:
            count = T.alloc_shared((E,), "int32")
            tx = T.get_thread_binding()
            share = T.ceildiv(Tokens * K, blocks)
            for p in T.serial(bx * threads + tx, P, blocks * threads):
                pos_to_expert[p] = -1
                pos_to_token[p] = -1
                pos_to_token_topk[p] = -1
            for e in T.serial(tx, E, threads):
                count[e] = 0
            T.sync_threads()
            for i in T.serial(bx * share + tx, T.min((bx + 1) * share, Tokens * K), threads):
                e = T.cast(topk_idx[i // K, i % K], "int32")
                if e >= 0:
                    T.atomic_add(count[e], 1)
            T.sync_threads()
            for e in T.serial(tx, E, threads):
                counts[bx, e] = count[e]
        with T.Kernel(1, threads=scan_threads) as bx:
            warp_total = T.alloc_shared((scan_threads // warp_size,), "int32")
            e = T.get_thread_binding()
            lane = T.get_lane_idx()
            warp = T.get_warp_idx()
            count = T.alloc_var("int32", 0)
            if e < E:
                for b in T.serial(blocks):
                    count += counts[b, e]
            aligned = T.ceildiv(count, alignment) * alignment
            scan = T.alloc_var("int32", aligned)
            for delta in [1, 2, 4, 8, 16]:
                below = T.shfl_up(scan, delta)
                scan = T.if_then_else(lane >= delta, scan + below, scan)
            if lane == warp_size - 1:
                warp_total[warp] = scan
            T.sync_threads()
            start = T.alloc_var("int32", scan - aligned)
            for w in T.serial(warp):
                start += warp_total[w]
            if e < E:
                expert_start[e] = start
                expert_end[e] = start + aligned
                num_tokens_per_expert[e] = aligned
                next = T.alloc_var("int32", start)
                for b in T.serial(blocks):
                    of_block = counts[b, e]
                    counts[b, e] = next
                    next += of_block
        with T.Kernel(blocks, threads=threads) as bx:
            next = T.alloc_shared((E,), "int32")
            tx = T.get_thread_binding()
            lane = T.get_lane_idx()
            share = T.ceildiv(Tokens * K, blocks)
            for e in T.serial(tx, E, threads):
                next[e] = counts[bx, e]
            T.sync_threads()
            for step in T.serial(T.ceildiv(share, threads)):
                in_share = step * threads + tx
                i = bx * share + in_share
                is_pair = in_share < share and i < Tokens * K
                e = T.cast(topk_idx[i // K, i % K], "int32") if is_pair else -1
                peers = T.match_any_sync(e)
                one = T.uint32(1)
                before = T.cast(T.popcount(peers & ((one << T.cast(lane, "uint32")) - one)), "int32")
                leader = T.cast(T.ffs(peers), "int32") - 1
                first = T.alloc_var("int32", 0)
                if e >= 0 and lane == leader:
                    first = T.atomic_add(next[e], T.cast(T.popcount(peers), "int32"), return_prev=True)
                position = T.shfl_sync(first, leader) + before
                if e >= 0:
                    pos_to_expert[position] = e
                    pos_to_token[position] = i // K
                    pos_to_token_topk[position] = i
                if is_pair:
                    token_topk_to_pos[i // K, i % K] = T.if_then_else(e >= 0, position, -1)

    return expert_mapping
