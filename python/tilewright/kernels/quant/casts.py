"""Casts of matrices to float8 (e4m3), four bits (e2m1) and twelve bits (e5m6) with scales, and back."""

from __future__ import annotations

import math

import torch

from ..arguments import QuantTensor, ceil_div, check, check_multiple, check_option, check_pair, is_power_of_two, refuse_option
from . import cast_programs as programs
from .scales import VALUES, layout

_FLOATS = (torch.bfloat16, torch.float32)
_NARROW = {torch.float8_e4m3fn: "e4m3", torch.int8: "e2m1"}
_RESULTS = {"bf16": torch.bfloat16, "fp32": torch.float32}
_NAMES = {torch.bfloat16: "bfloat16", torch.float32: "float32", torch.float8_e4m3fn: "float8_e4m3fn"}
_LINE = 128  # bytes that threads which share a group ask for at once, if the group has as many
_ON_CHIP = 16384  # columns of a row that stay in registers


def made_values(fmt, rows, columns, device):
    """(an empty tensor for values of a format, what a kernel writes of it)."""
    if fmt == "e4m3":
        made = torch.empty((rows, columns), dtype=VALUES[fmt], device=device)
        return made, made
    made = torch.empty((rows, columns // 2 if fmt == "e2m1" else columns * 3 // 2), dtype=VALUES[fmt], device=device)
    return made, made.view(torch.uint32)


def given_pair(function, argument, pair, block, taken=_NARROW):
    """(values as a kernel reads them, scales, the name of their format, whether scales are packed, logical columns)."""
    x, scales = check_pair(function, argument, pair)
    check(function, argument, x, taken, rank=2)
    fmt = _NARROW[x.dtype]
    columns = x.shape[1] * (2 if fmt == "e2m1" else 1)
    if fmt == "e2m1":
        check_multiple(function, f"the number of columns of '{argument}'", columns, 8)
    packed = check_scales(function, scales, x.shape[0], columns, block)
    return (x.view(torch.uint32) if fmt == "e2m1" else x), scales, ("e2m1" if fmt == "e2m1" else "float8_e4m3fn"), packed, columns


def check_scales(function, scales, rows, columns, block):
    """Whether scales of such blocks are packed exponents."""
    if not isinstance(block, tuple) or len(block) != 2 or min(block) < 1:
        refuse_option(function, f"the block of a scale is {block!r}", "it is (rows, columns)")
    check(function, "scales", scales, (torch.float32, torch.int32), rank=2, compact=False)
    packed = scales.dtype == torch.int32
    wanted = (ceil_div(rows, block[0]), ceil_div(ceil_div(columns, block[1]), 4 if packed else 1))
    check(function, "scales", scales, shape=wanted, compact=False)
    return packed


def _given(function, x, block):
    """(x as a kernel reads it, its scales or None, options that say what it is, its columns)."""
    if isinstance(x, (tuple, list)):
        values, scales, fmt, packed, columns = given_pair(function, "x", x, block)
        return values, scales, {"x": fmt, "given": (*block, packed)}, columns
    if block is not None:
        refuse_option(
            function, "x_block_size is given, but 'x' has no scales", "pass a pair of values and scales, or x_block_size=None"
        )
    check(function, "x", x, _FLOATS, rank=2, compact=False)
    if x.shape[1] > 1 and x.stride(1) != 1 or x.shape[0] > 1 and x.stride(0) < x.shape[1]:
        check(function, "x", x)
    return x, None, {"x": _NAMES[x.dtype], "given": ()}, x.shape[1]


def _per_token(function, x, fmt, group, x_block_size, in_columns, rounded, packed, mode="both", scales=None):
    check_option(function, "fmt", fmt, tuple(VALUES))
    values, given_scales, options, hidden = _given(function, x, x_block_size)
    tokens = values.shape[0]
    check_multiple(function, "the number of columns of 'x'", hidden, 8)
    if group != hidden and (group < 8 or group > 256 or not is_power_of_two(group)):
        refuse_option(function, f"num_per_channels is {group}", f"it is 8, 16, 32, 64, 128, 256, or all {hidden} columns")
    if fmt == "e5m6" and (given_scales is not None or group != hidden or mode != "both"):
        refuse_option(
            function,
            "e5m6 has one scale for a whole row of floats",
            f"pass num_per_channels={hidden} and a tensor without scales",
        )
    where = layout(function, in_columns, rounded, packed)
    number = ceil_div(hidden, group)
    if mode == "values":
        check(function, "sf", scales, (torch.float32,), shape=(tokens, number), compact=False)
        written = scales
    else:
        scales, written = where.made(tokens, number, values.device, by_words=True)
    made, stored = made_values(fmt, tokens if mode != "scales" else 0, hidden, values.device)
    if tokens and hidden:
        options.update(fmt=fmt, group=group, rounded=bool(rounded), packed=where.packed, mode=mode)
        if hidden == group and hidden > 256:
            _rows(values, given_scales, stored, written, hidden, options)
        else:
            by_thread = fmt == "e2m1" and group <= 32  # a thread has a group, which is more to compute than to wait for
            columns = columns_of_block(hidden, 4 * group if where.packed and number > 1 else group, 128 if by_thread else 1024)
            kernel = programs.per_token(
                values,
                groups=columns // group,
                rows=max(1, 4096 // columns),
                threads=128,
                near=1 if by_thread else math.gcd(group // 8, _LINE // 8 // values.element_size()),
                whole=False,
                **options,
            )
            kernel(values, given_scales, stored if mode != "scales" else None, written)
    return made, scales


def columns_of_block(hidden, least, most):
    """Columns of a row that a block of the grid has, a multiple of `least`: many, since neighbours in memory are best asked for
    at once, but with few behind the last."""
    return min((least << n for n in range(10, -1, -1) if least << n <= max(least, most)), key=lambda n: ceil_div(hidden, n) * n)


def threads_of_row(hidden, most):
    """So many that each has as many eights of a row, if more than half of the most can be."""
    return next((n for n in range(most, most // 2, -32) if hidden // 8 % n == 0), most)


def _rows(values, given_scales, stored, written, hidden, options):
    """One scale for a row: blocks of the grid hold whole rows."""
    if hidden > _ON_CHIP:
        programs_of_rows = programs.per_long_row
        kernel = programs_of_rows(values, **{n: v for n, v in options.items() if n != "group"})
    else:
        of_many = 128 if options["fmt"] == "e5m6" else 256  # there is more to compute, which more columns a thread hide
        threads, rows = threads_of_row(hidden, 128 if hidden <= 4096 else of_many if hidden <= 8192 else 512), max(1, 4096 // hidden)
        kernel = programs.per_token(
            values, groups=1, rows=rows, threads=threads, near=max(1, threads // rows), whole=True, **options
        )
    kernel(values, given_scales, stored if options["mode"] != "scales" else None, written)


def per_token_cast(
    x: torch.Tensor | QuantTensor,
    fmt: str,
    num_per_channels: int,
    x_block_size: tuple[int, int] | None = None,
    use_tma_aligned_col_major_sf: bool = False,
    round_sf: bool = False,
    use_packed_ue8m0: bool = False,
) -> QuantTensor:
    """(values, scales): x in a narrow format, with a scale for each `num_per_channels` columns of a row.

    x: (tokens, hidden) bfloat16 or float32, rows at any distance; or a pair of e4m3 or e2m1 values and the scales of their
    blocks of x_block_size. fmt: "e4m3" (float8_e4m3fn), "e2m1" (two in an int8) or "e5m6" (eight in twelve uint8; one scale a
    row). round_sf: scales are powers of two. use_tma_aligned_col_major_sf: scales lie column after column, each from a
    multiple of 16 bytes. use_packed_ue8m0: their exponents, four of a row in an int32. Refuses other dtypes (TW4004), shapes
    (TW4007), strides (TW4008) and options (TW1080).
    """
    return _per_token(
        "per_token_cast", x, fmt, num_per_channels, x_block_size, use_tma_aligned_col_major_sf, round_sf, use_packed_ue8m0
    )


def per_token_cast_with_sf_only(
    x: torch.Tensor | QuantTensor,
    fmt: str,
    num_per_channels: int,
    x_block_size: tuple[int, int] | None = None,
    use_tma_aligned_col_major_sf: bool = False,
    round_sf: bool = False,
    use_packed_ue8m0: bool = False,
) -> torch.Tensor:
    """The scales of per_token_cast() alone."""
    return _per_token(
        "per_token_cast_with_sf_only",
        x,
        fmt,
        num_per_channels,
        x_block_size,
        use_tma_aligned_col_major_sf,
        round_sf,
        use_packed_ue8m0,
        "scales",
    )[1]


def per_token_cast_with_precomputed_sf(
    x: torch.Tensor | QuantTensor,
    fmt: str,
    num_per_channels: int,
    sf: torch.Tensor,
    x_block_size: tuple[int, int] | None = None,
    use_tma_aligned_col_major_sf: bool = False,
    round_sf: bool = False,
    use_packed_ue8m0: bool = False,
) -> torch.Tensor:
    """The values of per_token_cast() for scales that are there: sf, float32 (tokens, groups). Each is multiplied by its
    inverse."""
    name = "per_token_cast_with_precomputed_sf"
    _refuse_layout(name, use_tma_aligned_col_major_sf, use_packed_ue8m0)
    return _per_token(name, x, fmt, num_per_channels, x_block_size, False, round_sf, False, "values", sf)[0]


def _refuse_layout(function, in_columns, packed):
    if in_columns or packed:
        refuse_option(
            function, "scales that are given are float32 and have strides of their own", "leave the layout of scales out"
        )


def _per_block(function, x, fmt, block, in_columns, rounded, packed, mode="both", scales=None):
    check_option(function, "fmt", fmt, ("e4m3", "e2m1"))
    check(function, "x", x, _FLOATS, rank=2)
    tokens, hidden = x.shape
    check_multiple(function, "the number of columns of 'x'", hidden, 8)
    if len(block) != 2 or not (
        1 <= block[0] <= 256 and 8 <= block[1] <= 256 and is_power_of_two(block[0]) and is_power_of_two(block[1])
    ):
        refuse_option(
            function, f"block_size is {block!r}", "it is (rows, columns), powers of two up to 256, of 8 columns at least"
        )
    where = layout(function, in_columns, rounded, packed)
    shape = ceil_div(tokens, block[0]), ceil_div(hidden, block[1])
    if mode == "values":
        check(function, "sf", scales, (torch.float32,), shape=shape, compact=False)
        written = scales
    else:
        scales, written = where.made(*shape, x.device)
    made, stored = made_values(fmt, tokens if mode != "scales" else 0, hidden, x.device)
    if tokens and hidden:
        groups = max(1, min(128, 4096 // block[0]) // block[1])
        kernel = programs.per_block(
            x,
            x=_NAMES[x.dtype],
            fmt=fmt,
            block=tuple(block),
            groups=groups,
            threads=256 if block[0] * block[1] >= 8192 else 128,
            rounded=bool(rounded),
            packed=where.packed,
            mode=mode,
        )
        kernel(x, stored if mode != "scales" else None, written)
    return made, scales


def per_block_cast(
    x: torch.Tensor,
    fmt: str,
    block_size: tuple[int, int],
    use_tma_aligned_col_major_sf: bool = False,
    round_sf: bool = False,
    use_packed_ue8m0: bool = False,
) -> QuantTensor:
    """(values, scales): x in "e4m3" or "e2m1", with a scale for each block of block_size (rows, columns).

    x: (tokens, hidden) bfloat16 or float32 without gaps. The layout of scales and what is refused are per_token_cast()'s.
    """
    return _per_block("per_block_cast", x, fmt, block_size, use_tma_aligned_col_major_sf, round_sf, use_packed_ue8m0)


def per_block_cast_with_sf_only(
    x: torch.Tensor,
    fmt: str,
    block_size: tuple[int, int],
    use_tma_aligned_col_major_sf: bool = False,
    round_sf: bool = False,
    use_packed_ue8m0: bool = False,
) -> torch.Tensor:
    """The scales of per_block_cast() alone."""
    return _per_block(
        "per_block_cast_with_sf_only", x, fmt, block_size, use_tma_aligned_col_major_sf, round_sf, use_packed_ue8m0, "scales"
    )[1]


def per_block_cast_with_precomputed_sf(
    x: torch.Tensor,
    fmt: str,
    block_size: tuple[int, int],
    sf: torch.Tensor,
    use_tma_aligned_col_major_sf: bool = False,
    round_sf: bool = False,
    use_packed_ue8m0: bool = False,
) -> torch.Tensor:
    """The values of per_block_cast() for scales that are there: sf, float32, one for each block."""
    name = "per_block_cast_with_precomputed_sf"
    _refuse_layout(name, use_tma_aligned_col_major_sf, use_packed_ue8m0)
    return _per_block(name, x, fmt, block_size, False, round_sf, False, "values", sf)[0]


def per_block_cast_lossless(
    x: QuantTensor,
    fmt: str,
    x_block_size: tuple[int, int],
    out_block_size: tuple[int, int],
    use_tma_aligned_col_major_sf: bool = False,
    round_sf: bool = False,
    use_packed_ue8m0: bool = False,
) -> QuantTensor:
    """(e4m3 values, scales of out_block_size) that are exactly the e2m1 values of x with scales of x_block_size.

    Scales of x are positive powers of two. Where those of a block are more than 2^11 apart an element could be inexact: the
    call raises. On a GPU it waits for that.
    """
    name = "per_block_cast_lossless"
    check_option(name, "fmt", fmt, ("e4m3",))
    values, scales, _, packed, hidden = given_pair(name, "x", x, x_block_size, (torch.int8,))
    where = layout(name, use_tma_aligned_col_major_sf, round_sf, use_packed_ue8m0)
    check_multiple(name, "the number of columns of a block of 'x'", x_block_size[1], 8)
    for of_result, of_x in zip(out_block_size, x_block_size):
        if of_result % of_x or not is_power_of_two(of_result):
            refuse_option(
                name, f"out_block_size is {out_block_size!r}", f"powers of two, multiples of x_block_size {x_block_size!r}"
            )
    tokens = values.shape[0]
    made = made_values("e4m3", tokens, hidden, values.device)[0]
    result, written = where.made(ceil_div(tokens, out_block_size[0]), ceil_div(hidden, out_block_size[1]), values.device)
    if tokens and hidden:
        kernel = programs.lossless(
            values, block=tuple(out_block_size), given=(*x_block_size, packed), in_columns=where.in_columns, packed=where.packed
        )
        kernel(values, scales, made.view(torch.uint32), written)
    return made, result


def cast_back(x: QuantTensor, fmt: str, x_block_size: tuple[int, int], x_special_fmt: str | None = None) -> torch.Tensor:
    """Values times scales, rounded once to fmt: "bf16" or "fp32".

    x: a pair of e4m3, e2m1 or, with x_special_fmt="e5m6", uint8 values, and the scales of blocks of x_block_size, float32 with
    any strides or packed exponents.
    """
    name = "cast_back"
    check_option(name, "fmt", fmt, tuple(_RESULTS))
    check_option(name, "x_special_fmt", x_special_fmt, (None, "e5m6"))
    if x_special_fmt == "e5m6":
        values, scales = check_pair(name, "x", x)
        check(name, "x", values, (torch.uint8,), rank=2)
        check_multiple(name, "the number of bytes of a row of 'x'", values.shape[1], 12)
        hidden, taken = values.shape[1] // 3 * 2, "e5m6"
        packed, values = check_scales(name, scales, values.shape[0], hidden, x_block_size), values.view(torch.uint32)
    else:
        values, scales, taken, packed, hidden = given_pair(name, "x", x, x_block_size)
    made = torch.empty((values.shape[0], hidden), dtype=_RESULTS[fmt], device=values.device)
    if made.numel():
        programs.back(values, x=taken, block=tuple(x_block_size), packed=packed, result=_NAMES[made.dtype])(values, scales, made)
    return made


def per_token_cast_back(x: QuantTensor, fmt: str, num_per_channels: int, x_special_fmt: str | None = None) -> torch.Tensor:
    """cast_back() of scales for `num_per_channels` columns of each row."""
    return cast_back(x, fmt, (1, num_per_channels), x_special_fmt)


def unpack_from_e2m1fn_x2(x: torch.Tensor, out_dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The numbers of e2m1 values, two in each byte of the last dimension, the first in the lower bits."""
    name = "unpack_from_e2m1fn_x2"
    check(name, "x", x, (torch.int8, torch.uint8), compact=False)
    if not x.ndim:
        refuse_option(name, "'x' has no dimension")
    made_dtype = out_dtype if out_dtype in _RESULTS.values() else torch.float32
    made = torch.empty((*x.shape[:-1], 2 * x.shape[-1]), dtype=made_dtype, device=x.device)
    if made.numel():
        bytes_of_x = x.contiguous().view(torch.uint8).view(-1)
        programs.unpacked(bytes_of_x, result=_NAMES[made_dtype])(bytes_of_x, made.view(-1, 2))
    return made.to(out_dtype)


def per_token_cast_fp8(x: torch.Tensor) -> QuantTensor:
    """(e4m3 values, float32 scales (tokens, 1)) of x (tokens, hidden), bfloat16 or float32: one scale for each row."""
    check("per_token_cast_fp8", "x", x, _FLOATS, rank=2, compact=False)
    return _per_token("per_token_cast_fp8", x, "e4m3", x.shape[1], None, False, False, False)


def per_block_cast_fp8(w: torch.Tensor, block_size: int = 128) -> QuantTensor:
    """(e4m3 values, float32 scales of square blocks) of w (rows, columns), bfloat16 or float32. block_size: 8, 16, ... 256."""
    return _per_block("per_block_cast_fp8", w, "e4m3", (block_size, block_size), False, False, False)
