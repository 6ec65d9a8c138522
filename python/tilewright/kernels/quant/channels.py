"""Casts with a scale for each column of some rows, and those fused with SwiGLU, gathering and transposing."""

from __future__ import annotations

import torch

from ..arguments import QuantTensor, ceil_div, check, check_multiple, check_option, check_pair, refuse_option
from . import channel_programs as programs
from .casts import _NAMES

_GROUPS = (32, 64, 128)


def _cast(x, x_scales, group, rounded, pos=None, gated=False, limit=None, across=False):
    tokens = x.shape[0] if pos is None else pos.shape[0]
    hidden = x.shape[1] // 2 if gated else x.shape[1]
    out = torch.empty((hidden, tokens) if across else (tokens, hidden), dtype=torch.float8_e4m3fn, device=x.device)
    scales = torch.empty((ceil_div(tokens, group), hidden), dtype=torch.float32, device=x.device)
    if out.numel():
        options = {"group": group, "rounded": bool(rounded)}
        if x_scales is not None:
            programs.per_channel_of_scaled(x, gathered=pos is not None, **options)(x, x_scales, pos, out, scales)
            return out, scales
        options.update(gated=gated, clamped=limit is not None)
        x, limit = x.view(x.shape[0], 2 if gated else 1, hidden), 0.0 if limit is None else limit
        if across:
            programs.transposed(x, threads=256 if gated else 128, **options)(x, limit, out, scales)
        else:
            lanes = 16 // x.element_size()
            kernel = programs.per_channel(x, x=_NAMES[x.dtype], gathered=pos is not None, lanes=lanes, **options)
            kernel(x, pos, limit, out, scales)
    return out, scales


def _check(function, x, fmt, num_per_tokens, dtypes=(torch.bfloat16,)):
    check_option(function, "fmt", fmt, ("e4m3",))
    check_option(function, "num_per_tokens", num_per_tokens, _GROUPS)
    check(function, "x", x, dtypes, rank=2)


def per_channel_cast_fused(
    x: torch.Tensor | QuantTensor,
    fmt: str,
    num_per_tokens: int,
    round_sf: bool = False,
    num_per_channels: int | None = None,
    pos_to_token: torch.Tensor | None = None,
) -> QuantTensor:
    """(values (tokens, hidden) in e4m3, scales (groups, hidden)): a float32 scale for each column of num_per_tokens rows.

    x: bfloat16 or float32, or e4m3 values and float32 scales of 128 columns of each row (num_per_channels=128), which are
    multiplied in first. pos_to_token: int32; row t of the result is row pos_to_token[t] of x, or zeros where that is negative.
    """
    name = "per_channel_cast_fused"
    scales = None
    if isinstance(x, (tuple, list)):
        x, scales = check_pair(name, "x", x)
        check_option(name, "num_per_channels", num_per_channels, (128,))
        _check(name, x, fmt, num_per_tokens, (torch.float8_e4m3fn,))
        check(name, "scales", scales, (torch.float32,), shape=(x.shape[0], ceil_div(x.shape[1], 128)))
    else:
        if num_per_channels is not None:
            refuse_option(name, "num_per_channels is given, but 'x' has no scales", "pass a pair of values and scales")
        _check(name, x, fmt, num_per_tokens, (torch.bfloat16, torch.float32))
    if pos_to_token is not None:
        check(name, "pos_to_token", pos_to_token, (torch.int32,), rank=1)
    return _cast(x, scales, num_per_tokens, round_sf, pos_to_token)


def per_channel_cast(x: torch.Tensor, fmt: str, num_per_tokens: int, round_sf: bool = False) -> QuantTensor:
    """(e4m3 values, scales (groups, hidden)) of x (tokens, hidden), bfloat16 or float32: a scale for each column of
    num_per_tokens rows (32, 64, 128). round_sf: scales are powers of two."""
    _check("per_channel_cast", x, fmt, num_per_tokens, (torch.bfloat16, torch.float32))
    return _cast(x, None, num_per_tokens, round_sf)


def per_channel_cast_and_transpose(x: torch.Tensor, fmt: str, num_per_tokens: int, round_sf: bool = False) -> QuantTensor:
    """per_channel_cast() with values transposed: (hidden, tokens). x: (tokens, hidden) bfloat16."""
    _check("per_channel_cast_and_transpose", x, fmt, num_per_tokens)
    return _cast(x, None, num_per_tokens, round_sf, across=True)


def swiglu_forward_and_per_channel_cast_and_transpose(
    x: torch.Tensor,
    fmt: str,
    num_per_tokens: int,
    round_sf: bool = False,
    without_transpose: bool = False,
    swiglu_clamp_value: float | None = None,
) -> QuantTensor:
    """(e4m3 values, scales) of silu(left) * right, rounded to bfloat16, where x (tokens, 2 * hidden) is [left | right].

    Values are (hidden, tokens), or (tokens, hidden) without_transpose. swiglu_clamp_value: left is at most that, right within
    both signs of it.
    """
    name = "swiglu_forward_and_per_channel_cast_and_transpose"
    _check(name, x, fmt, num_per_tokens)
    check_multiple(name, "the number of columns of 'x'", x.shape[1], 2)
    return _cast(x, None, num_per_tokens, round_sf, gated=True, limit=swiglu_clamp_value, across=not without_transpose)


def per_channel_cast_fp8(x: torch.Tensor, num_per_tokens: int = 128) -> QuantTensor:
    """(e4m3 values, float32 scales (groups, hidden)) of x (tokens, hidden), bfloat16 or float32: one for each column of
    num_per_tokens rows."""
    _check("per_channel_cast_fp8", x, "e4m3", num_per_tokens, (torch.bfloat16, torch.float32))
    return _cast(x, None, num_per_tokens, False)
