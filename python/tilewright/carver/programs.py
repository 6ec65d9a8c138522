"""The programs that templates stand for, at the tiles of a hint: what the cost model is asked about."""
import math

from .. import language as T


def product(M, N, K, types, transposed, bias, hint):
    """C = A B, of (operands', result's, sum's) types; transposed: (A, B)."""
    operand, result, sums = types
    (rows, columns), (step,) = hint.block[-2:], hint.rstep
    shape_a, shape_b = (K, M) if transposed[0] else (M, K), (N, K) if transposed[1] else (K, N)

    @T.prim_func
    def matmul(A: T.Tensor(shape_a, operand), B: T.Tensor(shape_b, operand), Bias: T.Tensor((N,), sums), C: T.Tensor((M, N), result)):
        with T.Kernel(T.ceildiv(N, columns), T.ceildiv(M, rows), threads=hint.threads) as (bx, by):
            A_shared = T.alloc_shared((step, rows) if transposed[0] else (rows, step), operand)
            B_shared = T.alloc_shared((columns, step) if transposed[1] else (step, columns), operand)
            C_local = T.alloc_fragment((rows, columns), sums)
            T.use_swizzle(hint.rasterization_plan.panel_width_, enable=hint.rasterization_plan.panel_width_ > 0)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, step), num_stages=hint.pipeline_stage):
                if transposed[0]:
                    T.copy(A[k * step, by * rows], A_shared)
                else:
                    T.copy(A[by * rows, k * step], A_shared)
                if transposed[1]:
                    T.copy(B[bx * columns, k * step], B_shared)
                else:
                    T.copy(B[k * step, bx * columns], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A=transposed[0], transpose_B=transposed[1])
            if bias:
                for i, j in T.Parallel(rows, columns):
                    C_local[i, j] = C_local[i, j] + T.if_then_else(bx * columns + j < N, Bias[bx * columns + j], 0)
            T.copy(C_local, C[by * rows, bx * columns])

    return matmul


def product_of_vector(N, K, types, transposed, bias, hint):
    """c = B a, a row of the result at a time."""
    operand, result, sums = types
    (rows,), (step,) = hint.block[-1:], hint.rstep
    shape = (N, K) if transposed else (K, N)

    @T.prim_func
    def gemv(A: T.Tensor((K,), operand), B: T.Tensor(shape, operand), Bias: T.Tensor((N,), sums), C: T.Tensor((N,), result)):
        with T.Kernel(T.ceildiv(N, rows), threads=hint.threads) as bx:
            matrix = T.alloc_fragment((rows, step) if transposed else (step, rows), operand)
            vector = T.alloc_fragment((step,), operand)
            products = T.alloc_fragment((rows, step) if transposed else (step, rows), sums)
            total = T.alloc_fragment((rows,), sums)
            T.clear(total)
            for k in T.serial(T.ceildiv(K, step)):
                T.copy(A[k * step], vector)
                if transposed:
                    T.copy(B[bx * rows, k * step], matrix)
                    for i, j in T.Parallel(rows, step):
                        products[i, j] = T.cast(matrix[i, j], sums) * T.cast(vector[j], sums)
                else:
                    T.copy(B[k * step, bx * rows], matrix)
                    for j, i in T.Parallel(step, rows):
                        products[j, i] = T.cast(matrix[j, i], sums) * T.cast(vector[j], sums)
                T.reduce_sum(products, total, dim=1 if transposed else 0, clear=False)
            if bias:
                for i in T.Parallel(rows):
                    total[i] = total[i] + T.if_then_else(bx * rows + i < N, Bias[bx * rows + i], 0)
            T.copy(total, C[bx * rows])

    return gemv


def elementwise(shape, dtype, hint):
    """B = A + 1, as a map of all dimensions: the tile is of the last two, the others are the grid's."""
    tile = list(hint.block)
    grid = [math.ceil(n / b) for n, b in zip(shape, tile)]

    @T.prim_func
    def mapped(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(math.prod(grid), threads=hint.threads) as block:
            at = _corner(block, grid, tile)
            values = T.alloc_fragment(tile, dtype)
            T.copy(A[at], values)
            for where in T.Parallel(*tile):
                index = tuple(where) if len(tile) > 1 else (where,)
                values[index] = values[index] + 1
            T.copy(values, B[at])

    return mapped


def reduction(structure, shape, dtype, hint):
    """C = the sum of A over its dimensions R; of several, the last one is in the tile, and the others are loops."""
    spatial = [d for d, kind in enumerate(structure) if kind == "S"]
    reduced = [d for d, kind in enumerate(structure) if kind == "R"]
    tile, step, inner = list(hint.block), hint.rstep[-1], reduced[-1]
    grid = [math.ceil(shape[d] / b) for d, b in zip(spatial, tile)]
    whole = [tile[spatial.index(d)] if d in spatial else step for d in range(len(shape)) if d in spatial or d == inner]
    axis = [d for d in range(len(shape)) if d in spatial or d == inner].index(inner)

    @T.prim_func
    def reduced_sum(A: T.Tensor(shape, dtype), C: T.Tensor([shape[d] for d in spatial], dtype)):
        with T.Kernel(math.prod(grid), threads=hint.threads) as block:
            at = _corner(block, grid, tile)
            values, total = T.alloc_fragment(whole, dtype), T.alloc_fragment(tile, "float32")
            wide = T.alloc_fragment(whole, "float32")
            T.clear(total)
            for outer in T.serial(math.prod(shape[d] for d in reduced[:-1])):
                turns = _corner(outer, [shape[d] for d in reduced[:-1]], [1] * (len(reduced) - 1))
                for k in T.serial(T.ceildiv(shape[inner], step)):
                    T.copy(A[_slices(shape, spatial, at, tile, reduced, turns, k * step, step)], values)
                    T.copy(values, wide)
                    T.reduce_sum(wide, total, dim=axis, clear=False)
            T.copy(total, C[at])

    return reduced_sum


def _corner(number, grid, tile):
    """Where the tile of a block begins: a number by its digits."""
    at, rest = [], number
    for count, size in zip(reversed(grid), reversed(tile)):
        at.insert(0, rest % count * size)
        rest = rest // count
    return tuple(at)


def _slices(shape, spatial, at, tile, reduced, turns, begin, step):
    parts = []
    for d in range(len(shape)):
        if d in spatial:
            n = spatial.index(d)
            parts.append(slice(at[n], at[n] + tile[n]))
        elif d == reduced[-1]:
            parts.append(slice(begin, begin + step))
        else:
            parts.append(turns[reduced.index(d)])
    return tuple(parts)


def attention(batch, heads, queries, keys, dim, causal, types, hint):
    operand, result, sums = types
    (rows, _), (step,) = hint.block[-2:], hint.rstep
    scale = 1 / math.sqrt(dim) * 1.4426950408889634

    @T.prim_func
    def flash_attention(Q: T.Tensor((batch, heads, queries, dim), operand), K: T.Tensor((batch, heads, keys, dim), operand),
                        V: T.Tensor((batch, heads, keys, dim), operand), O: T.Tensor((batch, heads, queries, dim), result)):  # fmt: skip
        with T.Kernel(T.ceildiv(queries, rows), heads, batch, threads=hint.threads) as (bx, h, b):
            Q_shared, K_shared = T.alloc_shared((rows, dim), operand), T.alloc_shared((step, dim), operand)
            V_shared = T.alloc_shared((step, dim), operand)
            scores, weights = T.alloc_fragment((rows, step), sums), T.alloc_fragment((rows, step), operand)
            out = T.alloc_fragment((rows, dim), sums)
            largest, before = T.alloc_fragment((rows,), sums), T.alloc_fragment((rows,), sums)
            part, total = T.alloc_fragment((rows,), sums), T.alloc_fragment((rows,), sums)
            T.copy(Q[b, h, bx * rows, 0], Q_shared)
            T.clear(out)
            T.clear(total)
            T.fill(largest, -T.infinity(sums))
            turns = T.min(T.ceildiv(keys, step), T.ceildiv((bx + 1) * rows, step)) if causal else T.ceildiv(keys, step)
            for k in T.Pipelined(turns, num_stages=hint.pipeline_stage):
                T.copy(K[b, h, k * step, 0], K_shared)
                for i, j in T.Parallel(rows, step):
                    seen = (bx * rows + i >= k * step + j) if causal else (k * step + j < keys)
                    scores[i, j] = T.if_then_else(seen, 0, -T.infinity(sums))
                T.gemm(Q_shared, K_shared, scores, transpose_B=True)
                T.copy(largest, before)
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i, j in T.Parallel(rows, step):
                    scores[i, j] = T.exp2(scores[i, j] * scale - largest[i] * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(rows):
                    before[i] = T.exp2(before[i] * scale - largest[i] * scale)
                    total[i] = total[i] * before[i] + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(rows, dim):
                    out[i, j] = out[i, j] * before[i]
                T.copy(V[b, h, k * step, 0], V_shared)
                T.gemm(weights, V_shared, out)
            for i, j in T.Parallel(rows, dim):
                out[i, j] = out[i, j] / total[i]
            T.copy(out, O[b, h, bx * rows, 0])

    return flash_attention


def convolution(N, C, H, W, F, K, S, D, P, types, bias, hint):
    """NHWC images and HWCF filters, as a product of patches, which are made on the way."""
    operand, result, sums = types
    (rows, columns), (step,) = hint.block[-2:], hint.rstep
    OH, OW = (H + 2 * P - D * (K - 1) - 1) // S + 1, (W + 2 * P - D * (K - 1) - 1) // S + 1

    @T.prim_func
    def convolved(A: T.Tensor((N, H, W, C), operand), B: T.Tensor((K, K, C, F), operand), Bias: T.Tensor((F,), sums),
                  Out: T.Tensor((N, OH, OW, F), result)):  # fmt: skip
        with T.Kernel(T.ceildiv(F, columns), T.ceildiv(N * OH * OW, rows), threads=hint.threads) as (bx, by):
            patches, filters = T.alloc_shared((rows, step), operand), T.alloc_shared((step, columns), operand)
            sums_of = T.alloc_fragment((rows, columns), sums)
            flat_filters, flat = T.reshape(B, (K * K * C, F)), T.reshape(Out, (N * OH * OW, F))
            T.clear(sums_of)
            for k in T.Pipelined(T.ceildiv(K * K * C, step), num_stages=hint.pipeline_stage):
                T.im2col(A, patches, by, k, K, S, D, P)
                T.copy(flat_filters[k * step, bx * columns], filters)
                T.gemm(patches, filters, sums_of)
            if bias:
                for i, j in T.Parallel(rows, columns):
                    sums_of[i, j] = sums_of[i, j] + T.if_then_else(bx * columns + j < F, Bias[bx * columns + j], 0)
            T.copy(sums_of, flat[by * rows, bx * columns])

    return convolved
