"""Programs of rotary embedding and of what is made of places alone: position encodings, random masks."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family


@Family
def rotate(x, neighbours, pairs, rest, positions, back, rows, threads):
    """Turns pairs of elements of each head: `pairs` apart, or neighbours; `rest` elements behind them stay. Row m of X is
    head m % heads of token m / heads, which stands at P[token], or at token % length."""
    M, tokens, places, heads = T.dynamic("M, tokens, places, heads")
    width = 2 * pairs + rest

    @T.prim_func
    def rotary(
        X: T.Tensor((M, width), x),
        C: T.Tensor((places, pairs), "float32"),
        S: T.Tensor((places, pairs), "float32"),
        P: T.Tensor((tokens,), positions or "int32"),
        Y: T.Tensor((M, width), x),
        of_token: T.int32,
        length: T.int32,
    ):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            places_of = T.alloc_shared((rows,), "int32")
            one = T.alloc_fragment((rows, pairs), x)
            two = T.alloc_fragment((rows, pairs), x)
            both = T.alloc_fragment((rows, 2 * pairs), x)
            if positions:
                for i in T.Parallel(rows):
                    token = T.min(bx * rows + i, M - 1) // of_token
                    places_of[i] = T.min(T.max(T.cast(P[token], "int32"), 0), places - 1)
            for i, j in T.Parallel(rows, pairs):
                m = bx * rows + i
                place = places_of[i] if positions else T.min(m, M - 1) // of_token % length
                first, second = (2 * j, 2 * j + 1) if neighbours else (j, j + pairs)
                a, b = T.cast(X[m, first], "float32"), T.cast(X[m, second], "float32")
                c, s = C[place, j], -S[place, j] if back else S[place, j]
                if neighbours:
                    both[i, first] = T.cast(a * c - b * s, x)
                    both[i, second] = T.cast(b * c + a * s, x)
                else:
                    one[i, j] = T.cast(a * c - b * s, x)
                    two[i, j] = T.cast(b * c + a * s, x)
            if neighbours:
                T.copy(both, Y[bx * rows, 0])
            else:
                T.copy(one, Y[bx * rows, 0])
                T.copy(two, Y[bx * rows, pairs])
            if rest:
                for i, j in T.Parallel(rows, rest):
                    Y[bx * rows + i, 2 * pairs + j] = X[bx * rows + i, 2 * pairs + j]

    return rotary


@Family
def biases(x, rows, columns, threads):
    """Y[h, i, j] = -slopes[h] * |i - j|."""
    H, N = T.dynamic("H, N")

    @T.prim_func
    def distance_biases(slopes: T.Tensor((H,), "float32"), Y: T.Tensor((H, N, N), x)):
        with T.Kernel(T.ceildiv(N, columns), T.ceildiv(N, rows), H, threads=threads) as (bx, by, h):
            made = T.alloc_fragment((rows, columns), x)
            for i, j in T.Parallel(rows, columns):
                d = T.abs(T.cast(by * rows + i - bx * columns - j, "float32"))
                made[i, j] = T.cast(-slopes[h] * d, x)
            T.copy(made, Y[h, by * rows, bx * columns])

    return distance_biases


@Family
def waves(x, rows, columns, threads):
    """Y[i, 2 j] = sin(i * frequencies[j]), Y[i, 2 j + 1] the cosine."""
    N, K, D = T.dynamic("N, K, D")

    @T.prim_func
    def position_waves(frequencies: T.Tensor((K,), "float32"), Y: T.Tensor((N, D), x)):
        with T.Kernel(T.ceildiv(D, columns), T.ceildiv(N, rows), threads=threads) as (bx, by):
            made = T.alloc_fragment((rows, columns), x)
            for i, j in T.Parallel(rows, columns):
                d = bx * columns + j
                angle = T.cast(by * rows + i, "float32") * frequencies[T.min(d // 2, K - 1)]
                made[i, j] = T.cast(T.if_then_else(d % 2 == 0, T.sin(angle), T.cos(angle)), x)
            T.copy(made, Y[by * rows, bx * columns])

    return position_waves


def _u32(number):
    return T.uint32(number & 0xFFFFFFFF)


def philox(counter, low, high):
    """Ten rounds of Philox 4x32: four random words of a counter and a key of 64 bits."""
    a, b, c, d = counter, _u32(0), _u32(0), _u32(0)
    for turn in range(10):
        k, l = low + _u32(0x9E3779B9 * turn), high + _u32(0xBB67AE85 * turn)
        a, b, c, d = (
            T.mulhi(c, _u32(0xCD9E8D57)) ^ b ^ k,
            c * _u32(0xCD9E8D57),
            T.mulhi(a, _u32(0xD2511F53)) ^ d ^ l,
            a * _u32(0xD2511F53),
        )
    return a, b, c, d


@Family
def drop(x, width, threads):
    """Y = X / (1 - p) where the random word of an element is at least p * 2^32, else 0. Word e % 4 of counter e / 4 is
    element e's."""
    N = T.dynamic("N")

    @T.prim_func
    def dropout(X: T.Tensor((N,), x), Y: T.Tensor((N,), x), low: T.uint32, high: T.uint32, least: T.uint32, scale: T.float32):
        with T.Kernel(T.ceildiv(N, width), threads=threads) as bx:
            words = T.alloc_fragment((width // 8, 8), "uint32")
            for q in T.Parallel(width // 8):
                quad = T.cast((bx * width + 8 * q) // 4, "uint32")
                for part in (0, 1):
                    of_quad = philox(quad + T.uint32(part), low, high)
                    for e in (0, 1, 2, 3):
                        words[q, 4 * part + e] = of_quad[e]
            for q, e in T.Parallel(width // 8, 8):
                at = bx * width + 8 * q + e
                Y[at] = T.cast(T.if_then_else(words[q, e] >= least, T.cast(X[at], "float32") * scale, T.float32(0)), x)

    return dropout
