"""SwiGLU of expanded tokens with a cast of its rows, forward and backward."""

from __future__ import annotations

import math

import torch

from ..arguments import QuantTensor, ceil_div, check, check_multiple, check_option, check_pair, refuse_option
from . import swiglu_programs as programs
from .casts import _NAMES, columns_of_block, threads_of_row
from .scales import LEAST, layout


def _forward(x, hidden, group, **options):
    if group == hidden:
        threads, rows = threads_of_row(group, 128 if group <= 2048 else 256 if group <= 8192 else 512), min(max(1, 4096 // group), 32)
        groups, near = 1, max(1, threads // rows)
    else:
        columns = columns_of_block(hidden, 4 * group if options["packed"] else group, 512)
        threads, rows, groups, near = 64, 2048 // columns, columns // group, 4
    return programs.forward(x, x=_NAMES[x.dtype], group=group, groups=groups, rows=rows, near=near, threads=threads, **options)


def fused_swiglu_quant_fp8(gate: torch.Tensor, up: torch.Tensor) -> QuantTensor:
    """(e4m3 values (tokens, hidden), float32 scales (tokens, 1)) of silu(gate) * up, both bfloat16 or float32 (tokens,
    hidden)."""
    name = "fused_swiglu_quant_fp8"
    check(name, "gate", gate, (torch.bfloat16, torch.float32), rank=2)
    check(name, "up", up, (gate.dtype,), shape=tuple(gate.shape))
    tokens, hidden = gate.shape
    check_multiple(name, "the number of columns of 'gate'", hidden, 8)
    out = torch.empty((tokens, hidden), dtype=torch.float8_e4m3fn, device=gate.device)
    scales = torch.empty((tokens, 1), dtype=torch.float32, device=gate.device)
    if out.numel():
        kernel = _forward(gate, hidden, hidden, weighted=False, masked=False, clamped=False, counted=False, rounded=False, packed=False)
        kernel(gate, up, out, scales, None, None, None, None, 0.0, LEAST["e4m3"])
    return out, scales


def swiglu_forward_and_per_token_cast(
    x: torch.Tensor,
    fmt: str,
    num_per_channels: int,
    pos_to_token_topk: torch.Tensor | None = None,
    topk_weights: torch.Tensor | None = None,
    pos_to_expert: torch.Tensor | None = None,
    use_tma_aligned_col_major_sf: bool = False,
    round_sf: bool = False,
    use_packed_ue8m0: bool = False,
    swiglu_clamp_value: float | None = None,
    clamped_count: torch.Tensor | None = None,
    sf_clamp_min: float | None = None,
) -> QuantTensor:
    """(e4m3 values (rows, hidden), scales) of silu(left) * right, where x (rows, 2 * hidden) is [left | right].

    x: bfloat16 or float32. num_per_channels: 32, 64, 128, or all columns. pos_to_token_topk: int32 (rows,); row r is
    multiplied by element pos_to_token_topk[r] of topk_weights, float32 (tokens, topk), by zero where that is negative.
    pos_to_expert: int32 (rows,); rows of a negative one are zeros, and x is not read there. swiglu_clamp_value: left is at
    most that, right within both signs of it; clamped_count: int64 (3,), to which it adds how many elements were so: of left,
    of right above, of right below. sf_clamp_min: the least magnitude that a scale is made for (1e-4). Layouts of scales are
    those of per_token_cast().
    """
    name = "swiglu_forward_and_per_token_cast"
    check_option(name, "fmt", fmt, ("e4m3",))
    check(name, "x", x, (torch.bfloat16, torch.float32), rank=2)
    tokens, hidden = x.shape[0], x.shape[1] // 2
    check_multiple(name, "the number of columns of 'x'", x.shape[1], 16)
    check_option(name, "num_per_channels", num_per_channels, (32, 64, 128, hidden))
    where = layout(name, use_tma_aligned_col_major_sf, round_sf, use_packed_ue8m0)
    if (pos_to_token_topk is None) != (topk_weights is None):
        refuse_option(name, "pos_to_token_topk and topk_weights go together", "pass both, or none")
    if pos_to_token_topk is not None:
        check(name, "pos_to_token_topk", pos_to_token_topk, (torch.int32,), shape=(tokens,))
        check(name, "topk_weights", topk_weights, (torch.float32,), rank=2)
    if pos_to_expert is not None:
        check(name, "pos_to_expert", pos_to_expert, (torch.int32,), shape=(tokens,))
    if clamped_count is not None:
        if swiglu_clamp_value is None:
            refuse_option(name, "clamped_count counts what swiglu_clamp_value changes", "pass that too")
        check(name, "clamped_count", clamped_count, (torch.int64,), shape=(3,))
    out = torch.empty((tokens, hidden), dtype=torch.float8_e4m3fn, device=x.device)
    scales, written = where.made(tokens, ceil_div(hidden, num_per_channels), x.device, by_words=True)
    if out.numel():
        kernel = _forward(
            x,
            hidden,
            num_per_channels,
            weighted=topk_weights is not None,
            masked=pos_to_expert is not None,
            clamped=swiglu_clamp_value is not None,
            counted=clamped_count is not None,
            rounded=bool(round_sf),
            packed=where.packed,
        )
        kernel(
            x[:, :hidden],
            x[:, hidden:],
            out,
            written,
            pos_to_token_topk,
            topk_weights if topk_weights is None else topk_weights.view(-1),
            pos_to_expert,
            clamped_count,
            swiglu_clamp_value or 0.0,
            LEAST["e4m3"] if sf_clamp_min is None else sf_clamp_min,
        )
    return out, scales


def swiglu_backward_and_per_token_cast(
    x: QuantTensor,
    grad_out: torch.Tensor,
    weight: torch.Tensor,
    pos_to_token_topk: torch.Tensor,
    token_topk_to_pos: torch.Tensor,
    num_per_channels: int,
    round_sf: bool = False,
    swiglu_clamp_value: float | None = None,
) -> tuple[torch.Tensor, QuantTensor, torch.Tensor, torch.Tensor]:
    """(out, (e4m3 gradient, scales), gradient, gradient of weights) of swiglu_forward_and_per_token_cast().

    x: e4m3 values (rows, 2 * hidden) and float32 scales of num_per_channels (32 or 128) columns. grad_out: (rows, hidden)
    bfloat16 or float32, the dtype of `out`, the result again, and of the gradient (rows, 2 * hidden). weight: float32
    (tokens, topk), as its gradient, zero where token_topk_to_pos, int32 (tokens, topk), is negative. swiglu_clamp_value: as
    it was forward.
    """
    name = "swiglu_backward_and_per_token_cast"
    values, scales = check_pair(name, "x", x)
    check_option(name, "num_per_channels", num_per_channels, (32, 128))
    check(name, "x", values, (torch.float8_e4m3fn,))
    check_multiple(name, "the number of columns of 'x'", values.shape[-1], 2 * num_per_channels)
    values = values.view(-1, values.shape[-1])
    rows, hidden = values.shape[0], values.shape[1] // 2
    check(name, "scales", scales, (torch.float32,), shape=(rows, 2 * hidden // num_per_channels))
    check(name, "grad_out", grad_out, (torch.bfloat16, torch.float32))
    gradient = grad_out.view(-1, hidden)
    check(name, "grad_out", gradient, shape=(rows, hidden))
    check(name, "token_topk_to_pos", token_topk_to_pos, (torch.int32,), rank=2)
    check(name, "weight", weight, (torch.float32,), shape=tuple(token_topk_to_pos.shape))
    check(name, "pos_to_token_topk", pos_to_token_topk, (torch.int32,), shape=(rows,))
    out, x_grad = torch.empty_like(gradient), torch.empty((rows, 2 * hidden), dtype=gradient.dtype, device=gradient.device)
    narrow, narrow_scales = torch.empty_like(values), torch.empty_like(scales)
    weight_grad = torch.zeros_like(weight)
    if rows:
        groups = math.gcd(hidden // num_per_channels, 256 // num_per_channels)
        kernel = programs.backward(
            values,
            gradient=_NAMES[gradient.dtype],
            group=num_per_channels,
            groups=groups,
            rows=2048 // (groups * num_per_channels),
            near=num_per_channels // 16,
            clamped=swiglu_clamp_value is not None,
            rounded=bool(round_sf),
        )
        halves = (rows, 2, -1)
        kernel(
            values.view(halves),
            scales.view(halves),
            gradient,
            weight.view(-1),
            pos_to_token_topk,
            out,
            narrow.view(halves),
            narrow_scales.view(halves),
            x_grad.view(halves),
            weight_grad.view(-1),
            swiglu_clamp_value or 0.0,
        )
    return out, (narrow, narrow_scales), x_grad, weight_grad
