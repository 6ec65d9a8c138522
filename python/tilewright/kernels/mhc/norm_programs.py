"""Programs of products of normalized rows with a few others: the sums, the norm, and the gradients of both."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family, added, range_of

_DEPTH = 64  # columns of a step of a product


def rounded(x, tf32):
    """What a product takes of a float32: all of it, or as tensor cores want it, 10 bits of mantissa, rounded."""
    return T.reinterpret((T.reinterpret(x, "uint32") + T.uint32(0x1000)) & T.uint32(0xFFFFE000), "float32") if tf32 else x


def upper(x):
    """The upper half of a float32: a number of bfloat16."""
    return T.reinterpret(T.reinterpret(x, "uint32") & T.uint32(0xFFFF0000), "float32")


def pieces(outputs, tf32):
    """(numbers of bfloat16 whose sum is an element of F: two for 10 bits of mantissa, three for all; rows of each)."""
    return 2 if tf32 else 3, (outputs + 7) // 8 * 8


@T.macro
def write_pieces(F, of_f, outputs, tf32):
    """A launch: rows of F as sums of bfloat16, rows of zeros behind them."""
    width, (count, padded) = F.shape[1], pieces(outputs, tf32)
    with T.Kernel(T.ceildiv(width, 512), padded, threads=128) as (bx, n):
        rest = T.alloc_fragment((512,), "float32")
        for j in T.Parallel(512):
            rest[j] = T.if_then_else(n < outputs, rounded(F[T.min(n, outputs - 1), bx * 512 + j], tf32), T.float32(0))
        for piece in range_of(count):
            for j in T.Parallel(512):
                of_f[piece * padded + n, bx * 512 + j] = T.cast(upper(rest[j]), "bfloat16")
            for j in T.Parallel(512):  # an infinity is no sum
                rest[j] = T.if_then_else(rest[j] == upper(rest[j]), T.float32(0), rest[j] - upper(rest[j]))


@T.macro
def write_sums(X, of_f, products, squares, outputs, tf32, rows=128, depth=128):
    """A launch: products of rows of X with those of F, exact in float32, and sums of squares, over a part of the columns each."""
    tokens, width = X.shape
    parts, (count, padded) = squares.shape[0], pieces(outputs, tf32)
    with T.Kernel(T.ceildiv(tokens, rows), parts, threads=256) as (bx, part):
        lying = T.alloc_shared((rows, depth), "bfloat16")
        f = T.alloc_shared((count * padded, depth), "bfloat16")
        square = T.alloc_fragment((rows, depth), "float32")
        total = T.alloc_fragment((rows,), "float32")
        acc = T.alloc_fragment((rows, count * padded), "float32")
        steps = T.ceildiv(T.ceildiv(width, depth), parts)
        T.clear(acc)
        T.clear(square)
        for step in T.Pipelined(steps, num_stages=4):
            c = (part * steps + step) * depth
            T.copy(X[bx * rows, c], lying)
            T.copy(of_f[0, c], f)
            T.gemm(lying, f, acc, transpose_B=True)
            for i, j in T.Parallel(rows, depth):
                x = T.cast(lying[i, j], "float32")
                square[i, j] = square[i, j] + x * x
        T.reduce_sum(square, total, dim=1)
        for i, n in T.Parallel(rows, outputs):
            products[part, bx * rows + i, n] = added([acc[i, piece * padded + n] for piece in range_of(count)])
        for i in T.Parallel(rows):
            squares[part, bx * rows + i] = total[i]


@Family
def norm(outputs, tf32, rows=32):
    """Products of rows of X with those of F, divided by the roots of their mean squares. Those of F become sums of bfloat16
    first: what X is multiplied by as it lies."""
    tokens, width, parts = T.dynamic("tokens, width, parts")
    count, padded = pieces(outputs, tf32)

    @T.prim_func
    def norm_fn(
        X: T.Tensor((tokens, width), "bfloat16"),
        F: T.Tensor((outputs, width), "float32"),
        of_f: T.Tensor((count * padded, width), "bfloat16"),
        products: T.Tensor((parts, tokens, outputs), "float32"),
        squares: T.Tensor((parts, tokens), "float32"),
        product: T.Tensor((tokens, outputs), "float32"),
        square: T.Tensor((tokens,), "float32"),
        Y: T.Tensor((tokens, outputs), "float32"),
        epsilon: T.float32,
    ):
        write_pieces(F, of_f, outputs, tf32)
        write_sums(X, of_f, products, squares, outputs, tf32)
        with T.Kernel(T.ceildiv(tokens, rows), threads=128) as bx:
            found = T.alloc_fragment((outputs, rows), "float32")
            total = T.alloc_fragment((rows,), "float32")
            T.clear(found)
            T.clear(total)
            for part in T.serial(parts):
                for i in T.Parallel(rows):
                    total[i] = total[i] + squares[part, bx * rows + i]
                for n, i in T.Parallel(outputs, rows):
                    found[n, i] = found[n, i] + products[part, bx * rows + i, n]
            for i in T.Parallel(rows):
                square[bx * rows + i] = total[i]
                total[i] = T.rsqrt(total[i] / T.cast(width, "float32") + epsilon)
            for n, i in T.Parallel(outputs, rows):
                product[bx * rows + i, n] = found[n, i]
                Y[bx * rows + i, n] = found[n, i] * total[i]

    return norm_fn


@Family
def gradient(outputs, tf32, rows=64, columns=128):
    """Gradients of products and squares, then that of X, which is added to what is there, then that of F."""
    tokens, width = T.dynamic("tokens, width")
    padded = (outputs + 15) // 16 * 16

    @T.prim_func
    def norm_fn_gradient(
        dY: T.Tensor((tokens, outputs), "float32"),
        product: T.Tensor((tokens, outputs), "float32"),
        square: T.Tensor((tokens,), "float32"),
        X: T.Tensor((tokens, width), "bfloat16"),
        F: T.Tensor((outputs, width), "float32"),
        d_product: T.Tensor((tokens, padded), "float32"),
        d_square: T.Tensor((tokens,), "float32"),
        dX: T.Tensor((tokens, width), "bfloat16"),
        dF: T.Tensor((outputs, width), "float32"),
        mean: T.float32,
        epsilon: T.float32,
    ):
        with T.Kernel(T.ceildiv(tokens, rows), threads=128) as bx:
            times = T.alloc_fragment((rows, padded), "float32")
            total = T.alloc_fragment((rows,), "float32")
            norm = T.alloc_fragment((rows,), "float32")
            for i in T.Parallel(rows):
                norm[i] = T.rsqrt(T.if_then_else(bx * rows + i < tokens, square[bx * rows + i], T.float32(1)) / mean + epsilon)
            for i, n in T.Parallel(rows, padded):
                inside = T.logical_and(bx * rows + i < tokens, n < outputs)
                dy = T.if_then_else(inside, dY[bx * rows + i, T.min(n, outputs - 1)], T.float32(0))
                times[i, n] = T.if_then_else(inside, dy * product[bx * rows + i, T.min(n, outputs - 1)], T.float32(0))
                d_product[bx * rows + i, n] = rounded(dy * norm[i], tf32)
            T.reduce_sum(times, total, dim=1)
            for i in T.Parallel(rows):
                d_square[bx * rows + i] = total[i] * norm[i] * norm[i] * norm[i] * (-0.5 / mean)
        with T.Kernel(T.ceildiv(width, columns), T.ceildiv(tokens, rows), threads=128) as (bx, by):
            of_product = T.alloc_shared((rows, padded), "float32")
            of_f = T.alloc_shared((padded, columns), "float32")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.copy(d_product[by * rows, 0], of_product)
            for n, j in T.Parallel(padded, columns):
                inside = T.logical_and(n < outputs, bx * columns + j < width)
                of_f[n, j] = T.if_then_else(inside, rounded(F[T.min(n, outputs - 1), bx * columns + j], tf32), T.float32(0))
            T.clear(acc)
            T.gemm(of_product, of_f, acc)
            for i, j in T.Parallel(rows, columns):
                t, c = by * rows + i, bx * columns + j
                if t < tokens:
                    x = T.cast(X[t, c], "float32")
                    dX[t, c] = T.cast(T.cast(dX[t, c], "float32") + acc[i, j] + 2.0 * x * d_square[t], "bfloat16")
        with T.Kernel(T.ceildiv(width, columns), threads=128) as bx:
            of_product = T.alloc_shared((_DEPTH, padded), "float32")
            lying = T.alloc_shared((_DEPTH, columns), "bfloat16")
            of_x = T.alloc_shared((_DEPTH, columns), "float32")
            acc = T.alloc_fragment((padded, columns), "float32")
            T.clear(acc)
            for step in T.Pipelined(T.ceildiv(tokens, _DEPTH), num_stages=2):
                T.copy(d_product[step * _DEPTH, 0], of_product)
                T.copy(X[step * _DEPTH, bx * columns], lying)
                T.copy(lying, of_x)
                T.gemm(of_product, of_x, acc, transpose_A=True)
            for n, j in T.Parallel(padded, columns):
                if n < outputs:
                    dF[n, bx * columns + j] = acc[n, j]

    return norm_fn_gradient


@Family
def merge(backward, columns=512):
    """F times a weight for each column; backward: adds the gradients of both."""
    outputs, width = T.dynamic("outputs, width")

    @T.prim_func
    def norm_fn_merge(
        F: T.Tensor((outputs, width), "float32"),
        weight: T.Tensor((width,), "float32"),
        merged: T.Tensor((outputs, width), "float32"),
        dF: T.Tensor((outputs, width), "float32"),
        d_weight: T.Tensor((width,), "float32"),
    ):
        with T.Kernel(T.ceildiv(width, columns), threads=128) as bx:
            sums_of = T.alloc_fragment((columns,), "float32")
            T.clear(sums_of)
            for n in T.serial(outputs):
                for j in T.Parallel(columns):
                    c = bx * columns + j
                    if c < width:
                        if backward:
                            sums_of[j] = sums_of[j] + merged[n, c] * F[n, c]
                            dF[n, c] = dF[n, c] + merged[n, c] * weight[c]
                        else:
                            merged[n, c] = F[n, c] * weight[c]
            if backward:
                for j in T.Parallel(columns):
                    d_weight[bx * columns + j] = d_weight[bx * columns + j] + sums_of[j]

    return norm_fn_merge
