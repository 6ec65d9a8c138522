"""The weights of the streams before a layer, behind it, and between them."""

from __future__ import annotations

import torch

from .....ops.calls import refuse_shape
from ....mhc import functions
from ...applied import applied

_NAME = "mhc_pre_split_mixes"


class MHCPreSplitMixes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_mixes, mhc_scale, mhc_base, mhc_mult, mhc_post_mult_value, mhc_pre_eps):
        *outer, columns = input_mixes.shape
        if columns != mhc_mult * (2 + mhc_mult):
            refuse_shape(_NAME, f"'input_mixes' has {columns} columns, but {mhc_mult} streams have {mhc_mult * (2 + mhc_mult)}")
        rows = input_mixes.contiguous().view(-1, columns)
        pre, post, comb = functions.split_fwd(_NAME, rows, mhc_scale, mhc_base, mhc_mult, mhc_post_mult_value, mhc_pre_eps)
        ctx.save_for_backward(rows, mhc_scale, mhc_base)
        ctx.outer, ctx.streams, ctx.post = outer, mhc_mult, mhc_post_mult_value
        return pre.view(*outer, mhc_mult, 1), post.view(*outer, mhc_mult, 1), comb.view(*outer, mhc_mult, mhc_mult)

    @staticmethod
    def backward(ctx, *grads):
        rows, scale, base = ctx.saved_tensors
        of_mixes, of_scale, of_base = functions.split_bwd(grads, rows, scale, base, ctx.streams, ctx.post)
        return of_mixes.view(*ctx.outer, rows.shape[1]), of_scale, of_base, None, None, None


def mhc_pre_split_mixes(
    input_mixes: torch.Tensor,
    mhc_scale: torch.Tensor,
    mhc_base: torch.Tensor,
    mhc_mult: int,
    mhc_post_mult_value: float,
    mhc_pre_eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(weights before a layer (..., m, 1), behind it (..., m, 1), between streams (..., m, m)) of float32 (..., m * (2 + m)),
    m = mhc_mult.

    The columns of each are times one of three mhc_scale, plus mhc_base (m * (2 + m),). The first are sigmoids plus
    mhc_pre_eps, the second sigmoids times mhc_post_mult_value, the third stay as they are.
    """
    return applied(MHCPreSplitMixes, input_mixes, mhc_scale, mhc_base, mhc_mult, mhc_post_mult_value, mhc_pre_eps)
