"""Programs of quantized numbers: rows to float8 with a scale each, products with weights of four bits."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family


@Family
def rows(x, columns, rows, threads):
    """S = the largest magnitude of a row, 1e-4 at least, divided by 448; Y = X / S in float8_e4m3fn."""
    M = T.dynamic("M")

    @T.prim_func
    def quantize_rows(X: T.Tensor((M, columns), x), Y: T.Tensor((M, columns), "float8_e4m3fn"), S: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            v = T.alloc_fragment((rows, columns), "float32")
            scale = T.alloc_fragment((rows,), "float32")
            for i, j in T.Parallel(rows, columns):
                v[i, j] = T.cast(X[bx * rows + i, j], "float32")
            T.reduce_absmax(v, scale, dim=1, nan_propagate=True)
            for i in T.Parallel(rows):
                scale[i] = T.max_nan(scale[i], T.float32(1e-4)) / T.float32(448)
                S[bx * rows + i] = scale[i]
            for i, j in T.Parallel(rows, columns):
                Y[bx * rows + i, j] = T.cast(v[i, j] / scale[i], "float8_e4m3fn")

    return quantize_rows


@Family
def four_bits(x, group, rows, columns, depth, threads):
    """C = A W^T, W[n, k] = (the four bits - Z[n, k / group]) * S[n, k / group]; the lower bits of a byte are the even k."""
    M, N, K, half, groups = T.dynamic("M, N, K, half, groups")

    @T.prim_func
    def four_bit_product(
        A: T.Tensor((M, K), x),
        W: T.Tensor((N, half), "uint8"),
        S: T.Tensor((N, groups), "float32"),
        Z: T.Tensor((N, groups), "uint8"),
        C: T.Tensor((M, N), x),
    ):
        with T.Kernel(T.ceildiv(N, columns), T.ceildiv(M, rows), threads=threads) as (bx, by):
            a = T.alloc_shared((rows, depth), x)
            w = T.alloc_shared((columns, depth), x)
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.serial(T.ceildiv(K, depth)):
                T.copy(A[by * rows, k * depth], a)
                for i, j in T.Parallel(columns, depth // 2):
                    n, byte = T.min(bx * columns + i, N - 1), k * (depth // 2) + j
                    g = T.min(byte * 2 // group, groups - 1)
                    packed = T.cast(W[n, byte], "int32")
                    zero = T.cast(Z[n, g], "int32")
                    w[i, 2 * j] = T.cast(T.cast((packed & 15) - zero, "float32") * S[n, g], x)
                    w[i, 2 * j + 1] = T.cast(T.cast((packed >> 4) - zero, "float32") * S[n, g], x)
                T.gemm(a, w, acc, transpose_B=True)
            T.copy(acc, C[by * rows, bx * columns])

    return four_bit_product
