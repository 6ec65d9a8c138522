"""Scales of quantized tensors: where they lie, how a largest magnitude becomes one, and how kernels read and write them."""

from __future__ import annotations

from typing import NamedTuple

import tilewright.language as T
import torch

from ..arguments import align, ceil_div, refuse_option

VALUES = {"e4m3": torch.float8_e4m3fn, "e2m1": torch.int8, "e5m6": torch.uint8}  # what holds values of a format
LARGEST = {"e4m3": 448.0, "e2m1": 6.0, "e5m6": 65024.0}
LEAST = {"e4m3": 1e-4, "e2m1": 6.0 * 2.0**-126, "e5m6": 1e-4}  # magnitudes below this are scaled as this one


class Scales(NamedTuple):
    """How the scales of a result lie: float32 row after row, float32 column after column (each begins at a multiple of 16
    bytes), or so with the exponents of four neighbouring blocks of a row in the bytes of an int32."""

    in_columns: bool
    packed: bool

    def made(self, rows, columns, device, by_words=False):
        """(the tensor for so many blocks, what a kernel writes of it: of packed ones bytes, or words)."""
        if not self.packed:
            if not self.in_columns:
                made = torch.empty((rows, columns), dtype=torch.float32, device=device)
            else:
                made = torch.empty((columns, align(rows, 4)), dtype=torch.float32, device=device)[:, :rows].T
            return made, made
        words = ceil_div(columns, 4)
        buffer = torch.empty((words, align(rows, 4)), dtype=torch.int32, device=device)
        made = buffer[:, :rows].T
        if by_words:
            return made, made.view(torch.uint32)
        return made, buffer.view(torch.uint8).view(words, buffer.shape[1], 4).permute(1, 0, 2)[:rows]


def layout(function, use_tma_aligned_col_major_sf, round_sf, use_packed_ue8m0):
    """The layout that these arguments of a cast ask for."""
    if use_packed_ue8m0 and not (use_tma_aligned_col_major_sf and round_sf):
        refuse_option(
            function,
            "use_packed_ue8m0 keeps exponents alone, in columns",
            "pass round_sf=True and use_tma_aligned_col_major_sf=True too",
        )
    return Scales(bool(use_tma_aligned_col_major_sf), bool(use_packed_ue8m0))


# ---- in programs


def written_scales(rows, columns, packed, by_words=False):
    """The parameter of a program for scales that it writes, of as many blocks; by_words: packed ones four at once."""
    row, column = T.dynamic("scale_row, scale_column")
    if packed and by_words:
        return T.StridedTensor((rows, T.ceildiv(columns, 4)), (row, column), "uint32")
    if packed:
        return T.StridedTensor((rows, T.ceildiv(columns, 4), 4), (row, column, 1), "uint8")
    return T.StridedTensor((rows, columns), (row, column), "float32")


@T.macro
def write_scale(scales, row, column, number, scale, packed):
    """`scale` as `scale_and_inverse` gives it, of block `column` of `number` in a row."""
    if packed:
        scales[row, column // 4, column % 4] = scale
        for behind in (1, 2, 3):  # what no block has of the last word
            if T.logical_and(column == number - 1, column % 4 + behind < 4):
                scales[row, column // 4, column % 4 + behind] = T.uint8(0)
    else:
        scales[row, column] = scale


@T.macro
def write_scales(scales, magnitudes, row, column, number, least, largest, rounded, packed):
    """Stores the scales of largest magnitudes (rows, groups), from `row` and `column` of `number` on, and leaves their inverses
    in them. Packed ones of a row are written four at once: `column` and the groups are multiples of four, or there is one."""
    rows, groups = magnitudes.shape
    if packed:
        of_word = min(groups, 4)
        exponents = T.alloc_fragment((rows, groups), "uint32")
        words = T.alloc_fragment((rows, groups // of_word), "uint32")
        for i, g in T.Parallel(rows, groups):
            exponent, inverse = scale_and_inverse(magnitudes[i, g], least, largest, rounded, packed)
            placed = T.cast(exponent, "uint32") << T.cast(g % 4 * 8, "uint32")
            exponents[i, g] = T.if_then_else(column + g < number, placed, T.uint32(0))
            magnitudes[i, g] = inverse
        T.reduce_bitor(T.reshape(exponents, (rows, groups // of_word, of_word)), words, dim=2)
        for i, n in T.Parallel(rows, groups // of_word):
            scales[row + i, column // 4 + n] = words[i, n]
    else:
        for i, g in T.Parallel(rows, groups):
            scale, inverse = scale_and_inverse(magnitudes[i, g], least, largest, rounded, packed)
            if column + g < number:
                scales[row + i, column + g] = scale
            magnitudes[i, g] = inverse


def scale_and_inverse(magnitude, least, largest, rounded, packed):
    """(what is stored of a scale, its inverse) of the largest magnitude of a block. Rounded up to a power of two, both are
    exact; else they are two divisions."""
    magnitude = T.max(magnitude, least)
    if not rounded:
        return magnitude / largest, largest / magnitude
    exponent = ((T.reinterpret(magnitude / largest, "int32") - 1) >> 23) + 1
    inverse = T.reinterpret(T.max(254 - exponent, 0) << 23, "float32")
    return (T.cast(exponent, "uint8") if packed else T.reinterpret(exponent << 23, "float32")), inverse


def given_scales(rows, columns, packed):
    """The parameter of a program for scales that it reads, wherever they lie."""
    row, column = T.dynamic("given_row, given_column")
    if packed:
        return T.StridedTensor((rows, T.ceildiv(columns, 4)), (row, column), "int32")
    return T.StridedTensor((rows, columns), (row, column), "float32")


def exponent_at(scales, row, column, packed):
    """The biased exponent of a scale."""
    if packed:
        return (scales[row, column // 4] >> (column % 4 * 8)) & 255
    return T.reinterpret(scales[row, column], "int32") >> 23


def scale_at(scales, row, column, packed):
    """The scale as a float32."""
    if packed:
        return T.reinterpret(exponent_at(scales, row, column, packed) << 23, "float32")
    return scales[row, column]
