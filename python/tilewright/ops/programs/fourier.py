"""The program of Fourier transforms of rows: Stockham's passes of several radices, which leave all in order."""

from __future__ import annotations

import cmath
import math

import tilewright.language as T

from ...kernels.programs import Family

# Complex numbers are pairs of values; each function names what it computes, so that nothing is computed twice.


def _named(pair):
    return tuple(map(T.bind, pair))


def _plus(x, y):
    return x[0] + y[0], x[1] + y[1]


def _minus(x, y):
    return x[0] - y[0], x[1] - y[1]


def _times(x, y):
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _turned(x, angle, kind):
    """x times exp(2 pi i angle), for a constant angle."""
    quarters = angle % 1 * 4
    if quarters == int(quarters):
        return (x, (-x[1], x[0]), (-x[0], -x[1]), (x[1], -x[0]))[int(quarters)]
    c, s = (T.cast(part, kind) for part in (math.cos(2 * math.pi * angle), math.sin(2 * math.pi * angle)))
    return x[0] * c - x[1] * s, x[0] * s + x[1] * c


def _odd(x, sign, kind):
    """The transform of an odd number of values, a prime: by sums and differences of those that lie opposite."""
    n, half = len(x), len(x) // 2
    sums = [_named(_plus(x[q], x[n - q])) for q in range(1, half + 1)]
    apart = [_named(_minus(x[q], x[n - q])) for q in range(1, half + 1)]
    total = x[0]
    for s in sums:
        total = _plus(total, s)
    made = [_named(total)] + [None] * (n - 1)
    for k in range(1, half + 1):
        even, odd = x[0], (T.cast(0, kind), T.cast(0, kind))
        for q in range(1, half + 1):
            turn = cmath.exp(sign * 2j * math.pi * (q * k % n) / n)
            c, s = T.cast(turn.real, kind), T.cast(turn.imag, kind)
            even = even[0] + c * sums[q - 1][0], even[1] + c * sums[q - 1][1]
            odd = odd[0] - s * apart[q - 1][1], odd[1] + s * apart[q - 1][0]
        even, odd = _named(even), _named(odd)
        made[k], made[n - k] = _named(_plus(even, odd)), _named(_minus(even, odd))
    return made


def _of_few(x, sign, kind):
    """The transform of a list of values, in registers."""
    n = len(x)
    if n == 1:
        return x
    if n == 2:
        return [_named(_plus(*x)), _named(_minus(*x))]
    if n == 4:
        a, b = _named(_plus(x[0], x[2])), _named(_minus(x[0], x[2]))
        c, d = _named(_plus(x[1], x[3])), _named(_turned(_minus(x[1], x[3]), sign / 4, kind))
        return [_named(_plus(a, c)), _named(_plus(b, d)), _named(_minus(a, c)), _named(_minus(b, d))]
    first = 4 if n % 4 == 0 else next((p for p in range(2, n) if n % p == 0), n)
    if first == n:
        return _odd(x, sign, kind)
    second = n // first
    rows = [_of_few(x[b::second], sign, kind) for b in range(second)]
    made = [None] * n
    for a in range(first):
        column = [_named(_turned(rows[b][a], sign * a * b / n, kind)) for b in range(second)]
        made[a::first] = _of_few(column, sign, kind)
    return made


def _powers(w, n):
    """1, w, ..., w to the power n - 1."""
    made = [None, w]
    for q in range(2, n):
        made.append(_named(_times(made[q // 2], made[q - q // 2])))
    return made


@Family
def transform(kind, form, words, radices, inverse, rows, threads):
    """Y[m] = `scale` times the transform of X[m], whose length is the product of the radices. W: cosines and sines of -2 pi
    j / `turns`, which is the length, or twice as much. form: complex: of pairs, into pairs. rfft: the pairs are real numbers,
    two and two, and the result one more than half of their transform; irfft: the other way round. odd rfft, odd irfft: the
    same of a length that is odd, number by number. words: pairs are given as integers of 64 bits. A radix is a pass: a
    thread has so many values in registers."""
    M = T.dynamic("M")
    length, sign = math.prod(radices), 1 if inverse else -1
    doubled = form in ("rfft", "irfft")
    turns = 2 * length if doubled else length
    given = {"irfft": length + 1, "odd irfft": length // 2 + 1}.get(form, length)
    result = {"rfft": length + 1, "odd rfft": length // 2 + 1}.get(form, length)

    def rows_of(n, numbers):
        if numbers:
            return T.Tensor((M, n), kind)
        return T.Tensor((M, n), "int64") if words else T.Tensor((M, n, 2), kind)

    passes = [(radix, math.prod(radices[:p]), p) for p, radix in enumerate(radices)]
    buffers = min(len(radices) - (form != "rfft"), 2)
    held = (rows, length + length // 32)  # a gap after each 32: neighbours of a pass are in other banks

    def place(e):
        return e + e // 32

    def angle(W, at):
        return _named((W[at, 0], -W[at, 1] if inverse else W[at, 1]))

    def pair(X, m, e):
        if not words:
            return _named((X[m, e, 0], X[m, e, 1]))
        both = T.bind(X[m, e])
        return _named(T.reinterpret(T.cast(x, "int32"), kind) for x in (both, both >> 32))

    def store_pair(Y, m, e, x):
        if words:
            low, high = T.reinterpret(x[0], "uint32"), T.reinterpret(x[1], "uint32")
            Y[m, e] = T.cast(low, "int64") | (T.cast(high, "int64") << 32)
        else:
            Y[m, e, 0], Y[m, e, 1] = x

    def loaded(X, W, m, e):
        """Element e of what is transformed."""
        if form == "odd rfft":
            return X[m, e], T.cast(0, kind)
        if form == "odd irfft":
            k = T.bind(T.min(e, length - e))
            real, imaginary = pair(X, m, k)
            turned = T.bind(T.if_then_else(e > k, -imaginary, imaginary))
            return real, T.if_then_else(e == 0, T.cast(0, kind), turned)
        if form != "irfft":
            return pair(X, m, e)
        a, b = pair(X, m, e), pair(X, m, length - e)
        a, b = ((x[0], T.bind(T.if_then_else(e == 0, T.cast(0, kind), y))) for x, y in ((a, a[1]), (b, -b[1])))
        p, q = _plus(a, b), _times(_named(_minus(a, b)), angle(W, e))
        return _named((p[0] - q[1], p[1] + q[0]))

    def stored(Y, m, e, x, scale):
        if form == "odd irfft":
            Y[m, e] = x[0] * scale
        elif form == "odd rfft":
            with T.If(e < length // 2 + 1), T.Then():
                store_pair(Y, m, e, (x[0] * scale, x[1] * scale))
        else:
            store_pair(Y, m, e, (x[0] * scale, x[1] * scale))

    def one_pass(j, radix, size, W, read, write):
        """Values j, j + length / radix, ... become those at (j / size) * size * radix + j % size, + size, ..."""
        x = [_named(read(j + q * (length // radix))) for q in range(radix)]
        at = T.bind(j % size) if size > 1 else 0
        if size > 1:
            w = _powers(angle(W, at * (turns // (size * radix))), radix)
            x = [x[0]] + [_named(_times(x[q], w[q])) for q in range(1, radix)]
        first = T.bind(j // size * (size * radix) + at)
        for q, y in enumerate(_of_few(x, sign, kind)):
            write(first + q * size, y)

    def between(real, imaginary, i):
        def read(e):
            return real[i, place(e)], imaginary[i, place(e)]

        def write(e, x):
            real[i, place(e)], imaginary[i, place(e)] = x

        return read, write

    @T.prim_func
    def fourier(
        X: rows_of(given, form == "odd rfft"),
        W: T.Tensor((turns, 2), kind),
        Y: rows_of(result, form == "odd irfft"),
        factor: T.float32,
    ):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            real = [T.alloc_shared(held, kind) for _ in range(buffers)]
            imaginary = [T.alloc_shared(held, kind) for _ in range(buffers)]
            scale = T.cast(factor, kind)
            for radix, size, p in tuple(passes):
                for i, j in T.Parallel(rows, length // radix):
                    m = bx * rows + i
                    read = lambda e: loaded(X, W, m, e)
                    write = lambda e, x: stored(Y, m, e, x, scale)
                    if p > 0:
                        read = between(real[(p - 1) % 2], imaginary[(p - 1) % 2], i)[0]
                    if p + 1 < len(passes) or form == "rfft":
                        write = between(real[p % 2], imaginary[p % 2], i)[1]
                    one_pass(j, radix, size, W, read, write)
            if form == "rfft":
                for i, k in T.Parallel(rows, length + 1):
                    read = between(real[(len(passes) - 1) % 2], imaginary[(len(passes) - 1) % 2], i)[0]
                    a, b = _named(read(k % length)), _named(read((length - k) % length))
                    p, q = _plus(a, (b[0], -b[1])), _times(_named(_minus(a, (b[0], -b[1]))), angle(W, k % turns))
                    half = scale * T.cast(0.5, kind)
                    store_pair(Y, bx * rows + i, k, ((p[0] + q[1]) * half, (p[1] - q[0]) * half))

    return fourier
