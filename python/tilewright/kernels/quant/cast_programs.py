"""Programs of casts: to narrow floats with a scale for a block of elements, and back."""

from __future__ import annotations

import math

import tilewright.language as T

from ..programs import Family
from .formats import WORDS, code_in_words, e2m1_code, e2m1_value, e4m3_of_e2m1, e5m6_code, e5m6_value, part_of_word
from .scales import LARGEST, LEAST, exponent_at, given_scales, scale_and_inverse, scale_at, write_scale, write_scales, written_scales

_LANES = 8  # neighbouring elements that stay together: 16 bytes of bfloat16, a word of e2m1, three of e5m6


def given_values(fmt, rows, columns):
    """The parameter for values that are read: floats with any distance between rows, or words of narrow ones."""
    if fmt in WORDS:
        return T.Tensor((rows, columns // _LANES * WORDS[fmt]), "uint32")
    return T.StridedTensor((rows, columns), (T.dynamic("x_row"), 1), fmt)


def value_at(X, t, c, fmt):
    """Element (t, c) as float32, where c is a multiple of eight and a number below eight."""
    if fmt == "e2m1":
        return e2m1_value((X[t, c // _LANES] >> T.cast(4 * (c % _LANES), "uint32")) & 15)
    return T.cast(X[t, c], "float32")


def block_of(first, lane, columns):
    """The block that a lane of eight neighbouring elements is in: one for all of them where blocks are as wide."""
    return first // columns if columns % _LANES == 0 else (first + lane) // columns


def written_values(fmt, rows, columns):
    """The parameter for values that are written."""
    if fmt in WORDS:
        return T.Tensor((rows, columns // _LANES * WORDS[fmt]), "uint32")
    return T.Tensor((rows, columns), "float8_e4m3fn")


def dealt(shape, near, threads):
    """Who has what of (rows, groups, eights, lanes): `near` neighbouring threads share a group, its eights in turns, so that
    what they ask for at once lies together and what is known of a group is exchanged by few; None where some are left over."""
    rows, groups, eights, lanes = shape
    if rows * groups * near % threads or eights % near:
        return None

    def deal(i, g, w, j):
        at = (i * groups + g) * near + w % near
        return at % threads, (at // threads * (eights // near) + w // near) * lanes + j

    return T.Fragment(shape, deal)


@T.macro
def write_values(Q, x, inverse, t0, c0, fmt, one_for_rows):
    """Stores x times the inverse scales of its groups, narrowed, from row t0 and column c0 on."""
    rows, groups, eights, lanes = x.shape
    if fmt == "e4m3":
        for i, g, w, j in T.Parallel(rows, groups, eights, lanes):
            scaled = x[i, g, w, j] * (inverse[g] if one_for_rows else inverse[i, g])
            Q[t0 + i, c0 + (g * eights + w) * lanes + j] = T.cast(scaled, "float8_e4m3fn")
    else:
        codes = T.alloc_fragment((rows, groups, eights, lanes), "uint32")
        words = [T.alloc_fragment((rows, groups, eights), "uint32") for _ in range(WORDS[fmt])]
        for i, g, w, j in T.Parallel(rows, groups, eights, lanes):
            scaled = x[i, g, w, j] * (inverse[g] if one_for_rows else inverse[i, g])
            codes[i, g, w, j] = e2m1_code(scaled) if fmt == "e2m1" else e5m6_code(scaled)
        for k, word in enumerate(words):
            parts = T.alloc_fragment((rows, groups, eights, lanes), "uint32")
            for i, g, w, j in T.Parallel(rows, groups, eights, lanes):
                parts[i, g, w, j] = part_of_word(fmt, codes[i, g, w, j], j, k)
            T.reduce_bitor(parts, word, dim=3)
        if len(words) == 1:
            for i, g, w in T.Parallel(rows, groups, eights):
                Q[t0 + i, c0 // lanes + g * eights + w] = words[0][i, g, w]
        else:  # Every third word at a time would write each sector of 32 bytes three times: rows are put together first.
            lying = T.alloc_shared((rows, groups * eights * len(words)), "uint32")
            for i, g, w in T.Parallel(rows, groups, eights):
                for k, word in enumerate(words):
                    lying[i, (g * eights + w) * len(words) + k] = word[i, g, w]
            for i, n in T.Parallel(*lying.shape):
                Q[t0 + i, c0 // lanes * len(words) + n] = lying[i, n]


@Family
def per_token(x, given, fmt, group, groups, rows, threads, near, whole, rounded, packed, mode):
    """A scale for `group` columns of each row, or for `whole` rows of as many. x: the format of the values; given: () for
    floats, (rows, columns, packed) of the blocks whose scales they have; near: threads that share a group; mode: "both",
    "scales" alone, or "values" with scales that are there."""
    tokens = T.dynamic("tokens")
    hidden = group if whole else T.dynamic("hidden")
    block_rows, block_columns, given_packed = given or (1, 1, False)
    number = T.ceildiv(hidden, group)
    of_factor = math.gcd(block_columns, group)  # columns of a group that have one scale in any case

    @T.prim_func
    def per_token_cast(
        X: given_values(x, tokens, hidden),
        X_scales: given_scales(T.ceildiv(tokens, block_rows), T.ceildiv(hidden, block_columns), given_packed),
        Q: written_values(fmt, tokens, hidden),
        scales: written_scales(tokens, number, packed, by_words=True),
    ):
        with T.Kernel(T.ceildiv(hidden, groups * group), T.ceildiv(tokens, rows), threads=threads) as (bx, by):
            t0, c0 = by * rows, bx * groups * group
            values = T.alloc_fragment((rows, groups, group // _LANES, _LANES), "float32")
            inverse = T.alloc_fragment((rows, groups), "float32")
            deal = dealt(values.shape, near, threads)
            if deal is not None:
                T.annotate_layout({values: deal})
            # Scales that are there are asked for in front of the values.
            if given:
                factor = T.alloc_fragment((rows, groups, group // of_factor), "float32")
                for i, g, n in T.Parallel(rows, groups, group // of_factor):
                    column = (c0 + g * group + n * of_factor) // block_columns
                    factor[i, g, n] = scale_at(X_scales, (t0 + i) // block_rows, column, given_packed)
            if mode == "values":
                for i, g in T.Parallel(rows, groups):
                    inverse[i, g] = scales[t0 + i, bx * groups + g]
            for i, g, w, j in T.Parallel(rows, groups, group // _LANES, _LANES):
                values[i, g, w, j] = value_at(X, t0 + i, c0 + (g * (group // _LANES) + w) * _LANES + j, x)
            if given:  # behind, that neighbours are converted two at a time
                for i, g, w, j in T.Parallel(rows, groups, group // _LANES, _LANES):
                    values[i, g, w, j] = values[i, g, w, j] * factor[i, g, (w * _LANES + j) // of_factor]
            if mode == "values":
                for i, g in T.Parallel(rows, groups):
                    inverse[i, g] = 1.0 / inverse[i, g]
            else:
                largest = T.alloc_fragment((rows, groups, group // _LANES), "float32")
                T.reduce_absmax(values, largest, dim=3)
                T.reduce_max(largest, inverse, dim=2)
                write_scales(scales, inverse, t0, bx * groups, number, LEAST[fmt], LARGEST[fmt], rounded, packed)
            if mode != "scales":
                write_values(Q, values, inverse, t0, c0, fmt, False)

    return per_token_cast


@Family
def per_block(x, fmt, block, groups, threads, rounded, packed, mode):
    """A scale for a block of rows and columns; a block of the grid has `groups` of them side by side."""
    tokens, hidden = T.dynamic("tokens, hidden")
    rows, columns = block
    number = T.ceildiv(hidden, columns)

    @T.prim_func
    def per_block_cast(
        X: given_values(x, tokens, hidden),
        Q: written_values(fmt, tokens, hidden),
        scales: written_scales(T.ceildiv(tokens, rows), number, packed),
    ):
        with T.Kernel(T.ceildiv(hidden, groups * columns), T.ceildiv(tokens, rows), threads=threads) as (bx, by):
            t0, c0 = by * rows, bx * groups * columns
            values = T.alloc_fragment((rows, groups, columns // _LANES, _LANES), "float32")
            inverse = T.alloc_fragment((groups,), "float32")
            for i, g, w, j in T.Parallel(rows, groups, columns // _LANES, _LANES):
                values[i, g, w, j] = value_at(X, t0 + i, c0 + (g * (columns // _LANES) + w) * _LANES + j, x)
            if mode == "values":
                for g in T.Parallel(groups):
                    inverse[g] = 1.0 / scales[by, bx * groups + g]
            else:
                of_eight = T.alloc_fragment((rows, groups, columns // _LANES), "float32")
                of_row = T.alloc_fragment((rows, groups), "float32")
                T.reduce_absmax(values, of_eight, dim=3)
                T.reduce_max(of_eight, of_row, dim=2)
                T.reduce_max(of_row, inverse, dim=0)
                for g in T.Parallel(groups):
                    scale, of_scale = scale_and_inverse(inverse[g], LEAST[fmt], LARGEST[fmt], rounded, packed)
                    if bx * groups + g < number:
                        write_scale(scales, by, bx * groups + g, number, scale, packed)
                    inverse[g] = of_scale
            if mode != "scales":
                write_values(Q, values, inverse, t0, c0, fmt, True)

    return per_block_cast


@Family
def back(x, block, packed, result, rows=16, columns=256):
    """Values times their scales."""
    tokens, hidden = T.dynamic("tokens, hidden")
    block_rows, block_columns = block

    @T.prim_func
    def cast_back(
        X: given_values(x, tokens, hidden),
        scales: given_scales(T.ceildiv(tokens, block_rows), T.ceildiv(hidden, block_columns), packed),
        Y: T.Tensor((tokens, hidden), result),
    ):
        with T.Kernel(T.ceildiv(hidden, columns), T.ceildiv(tokens, rows), threads=128) as (bx, by):
            words = [T.alloc_fragment((rows, columns // _LANES), "uint32") for _ in range(WORDS[x] if x == "e5m6" else 0)]
            for k, word in enumerate(words):
                for i, w in T.Parallel(rows, columns // _LANES):
                    word[i, w] = X[by * rows + i, (bx * (columns // _LANES) + w) * len(words) + k]
            for i, w, j in T.Parallel(rows, columns // _LANES, _LANES):
                t, c = by * rows + i, bx * columns + w * _LANES + j
                value = e5m6_value(code_in_words([word[i, w] for word in words], j)) if words else value_at(X, t, c, x)
                Y[t, c] = T.cast(value * scale_at(scales, t // block_rows, block_of(c - j, j, block_columns), packed), result)

    return cast_back


@Family
def unpacked(result, block=4096, threads=256):
    """The numbers of pairs of e2m1."""
    pairs = T.dynamic("pairs")

    @T.prim_func
    def unpack_from_e2m1(X: T.Tensor((pairs,), "uint8"), Y: T.Tensor((pairs, 2), result)):
        with T.Kernel(T.ceildiv(pairs, block), threads=threads) as bx:
            for n, j in T.Parallel(block, 2):
                code = T.cast(X[bx * block + n], "uint32") >> T.cast(4 * j, "uint32")
                Y[bx * block + n, j] = T.cast(e2m1_value(code & 15), result)

    return unpack_from_e2m1


@Family
def lossless(block, given, in_columns, packed, threads=256):
    """e2m1 values as e4m3 with scales of larger blocks: six exponents below the largest scale in the block, all are exact."""
    tokens, words_of_row = T.dynamic("tokens, words_of_row")
    hidden = words_of_row * _LANES
    (rows, columns), (block_rows, block_columns, given_packed) = block, given
    groups = max(1, 128 // columns) if rows > 1 else max(1, 1024 // columns)
    down = max(rows, 16 if rows == 1 else 1) // rows  # blocks of the grid hold some rows of blocks
    height, number = rows * down, T.ceildiv(hidden, columns)
    words = math.gcd(block_columns // _LANES, 2)  # that have one scale, and are read at once
    parts = columns // (words * _LANES)

    @T.prim_func
    def per_block_cast_lossless(
        X: T.Tensor((tokens, words_of_row), "uint32"),
        X_scales: given_scales(T.ceildiv(tokens, block_rows), T.ceildiv(hidden, block_columns), given_packed),
        Q: T.Tensor((tokens, 2 * words_of_row), "uint32"),
        scales: written_scales(T.ceildiv(tokens, rows), number, packed),
    ):
        with T.Kernel(T.ceildiv(hidden, groups * columns), T.ceildiv(tokens, height), threads=threads) as (bx, by):
            codes = T.alloc_fragment((down, rows, groups, parts, words), "uint32")
            exponents = T.alloc_fragment((down, rows, groups, parts), "int32")
            # The largest exponent, and the largest of what the least is negative: one reduction.
            both = T.alloc_fragment((down, rows, groups, parts, 2), "int32")
            of_parts = T.alloc_fragment((down, groups, parts, 2), "int32")
            most = T.alloc_fragment((down, groups, 2), "int32")
            lowest = T.alloc_fragment((down, groups), "int32")
            for b, i, g, w in T.Parallel(down, rows, groups, parts):
                t, c = by * height + b * rows + i, (bx * groups + g) * columns + w * words * _LANES
                inside = T.logical_and(t < tokens, c < hidden)
                exponents[b, i, g, w] = T.if_then_else(
                    inside, exponent_at(X_scales, t // block_rows, c // block_columns, given_packed), -1
                )
            for b, i, g, w, k in T.Parallel(down, rows, groups, parts, words):
                t, c = by * height + b * rows + i, (bx * groups + g) * columns // _LANES + w * words + k
                codes[b, i, g, w, k] = X[t, c]
            for b, i, g, w, k in T.Parallel(down, rows, groups, parts, 2):
                exponent = exponents[b, i, g, w]
                both[b, i, g, w, k] = T.if_then_else(exponent < 0, -255, T.if_then_else(k == 0, exponent, -exponent))
            T.reduce_max(both, of_parts, dim=1)
            T.reduce_max(of_parts, most, dim=2)
            for b, g in T.Parallel(down, groups):
                lowest[b, g] = T.max(most[b, g, 0] - 6, 0)
                scale = T.cast(lowest[b, g], "uint8") if packed else T.reinterpret(lowest[b, g] << 23, "float32")
                if (bx * groups + g) * columns < hidden:
                    write_scale(scales, by * down + b, bx * groups + g, number, scale, packed)
                T.device_assert(5 - most[b, g, 1] >= lowest[b, g], "scales of a block are too far apart for e4m3")
            for b, i, g, w, k, half in T.Parallel(down, rows, groups, parts, words, 2):
                t, c = by * height + b * rows + i, (bx * groups + g) * columns // 4 + (w * words + k) * 2 + half
                Q[t, c] = e4m3_of_e2m1(codes[b, i, g, w, k], half, exponents[b, i, g, w] - lowest[b, g])

    return per_block_cast_lossless


@Family
def per_long_row(x, given, fmt, rounded, packed, mode, columns=4096, threads=256):
    """A scale for a row that is too long to stay on chip: it is read twice."""
    tokens, hidden = T.dynamic("tokens, hidden")
    block_rows, block_columns, given_packed = given or (1, 1, False)
    shape = (1, 1, columns // _LANES, _LANES)

    @T.macro
    def read(values, X, X_scales, t, c0):
        for i, g, w, j in T.Parallel(*shape):
            c = c0 + w * _LANES + j
            if given:
                values[i, g, w, j] = value_at(X, t, c, x) * scale_at(
                    X_scales, t // block_rows, block_of(c - j, j, block_columns), given_packed
                )
            else:
                values[i, g, w, j] = value_at(X, t, c, x)

    @T.prim_func
    def per_long_row_cast(
        X: given_values(x, tokens, hidden),
        X_scales: given_scales(T.ceildiv(tokens, block_rows), T.ceildiv(hidden, block_columns), given_packed),
        Q: written_values(fmt, tokens, hidden),
        scales: written_scales(tokens, 1, packed, by_words=True),
    ):
        with T.Kernel(tokens, threads=threads) as t:
            values = T.alloc_fragment(shape, "float32")
            inverse = T.alloc_fragment((1, 1), "float32")
            if mode == "values":
                inverse[0, 0] = 1.0 / scales[t, 0]
            else:
                of_eight = T.alloc_fragment((1, 1, columns // _LANES), "float32")
                T.clear(inverse)
                for step in T.serial(T.ceildiv(hidden, columns)):
                    read(values, X, X_scales, t, step * columns)
                    T.reduce_absmax(values, of_eight, dim=3)
                    T.reduce_max(of_eight, inverse, dim=2, clear=False)
                write_scales(scales, inverse, t, 0, 1, LEAST[fmt], LARGEST[fmt], rounded, packed)
            if mode != "scales":
                for step in T.serial(T.ceildiv(hidden, columns)):
                    read(values, X, X_scales, t, step * columns)
                    write_values(Q, values, inverse, t, step * columns, fmt, False)

    return per_long_row_cast
