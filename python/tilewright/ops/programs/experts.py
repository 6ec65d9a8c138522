"""Programs of mixtures of experts: products of rows that lie expert after expert with the matrix of each."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family

_GATES = {
    "silu": lambda x: x / (1 + T.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + T.erf(x * 0.7071067811865476)),
    "gelu_tanh": lambda x: 0.5 * x * (1 + T.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),
    "relu": lambda x: T.max(x, T.float32(0)),
}


@Family
def grouped(x, result, transposed, gate, rows, columns, depth, stages, threads, tf32):
    """C[r] = A[r] B[e] for the rows begin[e] up to begin[e] + size[e] of each expert e; transposed: B is [experts, N, K].
    gate: B has 2 N columns, and C is the gate of the first N times the others. The first launch says which expert each
    tile of rows has."""
    R, N, K, E, tiles, BN = T.dynamic("R, N, K, E, tiles, BN")
    act = _GATES.get(gate)

    @T.prim_func
    def grouped_product(
        A: T.Tensor((R, K), x),
        B: T.Tensor((E, BN, K) if transposed else (E, K, BN), x),
        begin: T.Tensor((E,), "int32"),
        size: T.Tensor((E,), "int32"),
        of_tile: T.Tensor((tiles,), "int32"),
        row_of_tile: T.Tensor((tiles,), "int32"),
        C: T.Tensor((R, N), result),
    ):
        with T.Kernel(T.ceildiv(tiles, 1024), threads=128) as bx:
            for i in T.Parallel(1024):
                of_tile[bx * 1024 + i] = -1
        with T.Kernel(T.ceildiv(E, 128), threads=128) as bx:
            for i in T.Parallel(128):
                e = bx * 128 + i
                if e < E:
                    before = T.alloc_var("int32", init=0)
                    for other in T.serial(e):
                        before = before + T.ceildiv(size[other], rows)
                    for t in T.serial(T.ceildiv(size[e], rows)):
                        if before + t < tiles:
                            of_tile[before + t] = e
                            row_of_tile[before + t] = begin[e] + t * rows
        with T.Kernel(T.ceildiv(N, columns), tiles, threads=threads) as (bx, by):
            expert = of_tile[by]
            if expert >= 0:
                row, last = row_of_tile[by], begin[expert] + size[expert]
                a = T.alloc_shared((rows, depth), x)
                b = T.alloc_shared((columns, depth) if transposed else (depth, columns), x)
                acc = T.alloc_fragment((rows, columns), "float32")
                T.clear(acc)
                if gate:
                    second = T.alloc_shared((columns, depth) if transposed else (depth, columns), x)
                    up = T.alloc_fragment((rows, columns), "float32")
                    T.clear(up)
                for k in T.Pipelined(T.ceildiv(K, depth), num_stages=stages):
                    T.copy(A[row, k * depth], a)
                    if transposed:
                        T.copy(B[expert, bx * columns : (bx + 1) * columns, k * depth : (k + 1) * depth], b)
                    else:
                        T.copy(B[expert, k * depth : (k + 1) * depth, bx * columns : (bx + 1) * columns], b)
                    if gate:
                        at = N + bx * columns
                        if transposed:
                            T.copy(B[expert, at : at + columns, k * depth : (k + 1) * depth], second)
                        else:
                            T.copy(B[expert, k * depth : (k + 1) * depth, at : at + columns], second)
                        T.gemm(a, second, up, transpose_B=transposed)
                    T.gemm(a, b, acc, transpose_B=transposed)
                for i, j in T.Parallel(rows, columns):
                    if row + i < last:
                        C[row + i, bx * columns + j] = T.cast(act(acc[i, j]) * up[i, j] if gate else acc[i, j], result)

    return grouped_product


@Family
def outer(x, rows, columns, depth, threads, tf32):
    """C[e] = A^T B over the rows of each expert: A [R, M], B [R, N], C [experts, M, N]."""
    R, M, N, E = T.dynamic("R, M, N, E")

    @T.prim_func
    def grouped_outer(
        A: T.Tensor((R, M), x),
        B: T.Tensor((R, N), x),
        begin: T.Tensor((E,), "int32"),
        size: T.Tensor((E,), "int32"),
        C: T.Tensor((E, M, N), x),
    ):
        with T.Kernel(T.ceildiv(N, columns), T.ceildiv(M, rows), E, threads=threads) as (bx, by, e):
            a = T.alloc_shared((depth, rows), x)
            b = T.alloc_shared((depth, columns), x)
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.serial(T.ceildiv(size[e], depth)):
                for i, j in T.Parallel(depth, rows):
                    r = k * depth + i
                    a[i, j] = T.if_then_else(
                        r < size[e], A[T.min(begin[e] + r, R - 1), T.min(by * rows + j, M - 1)], T.cast(0, x)
                    )
                for i, j in T.Parallel(depth, columns):
                    r = k * depth + i
                    b[i, j] = T.if_then_else(
                        r < size[e], B[T.min(begin[e] + r, R - 1), T.min(bx * columns + j, N - 1)], T.cast(0, x)
                    )
                T.gemm(a, b, acc, transpose_A=True)
            for i, j in T.Parallel(rows, columns):
                C[e, by * rows + i, bx * columns + j] = T.cast(acc[i, j], x)

    return grouped_outer
