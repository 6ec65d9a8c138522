"""The weights of the streams in front of a head."""

from __future__ import annotations

import torch

from ....mhc import functions
from ...applied import applied

_NAME = "mhc_head_compute_mix"


class MHCHeadComputeMix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_mix, mhc_scale, mhc_base, mhc_pre_eps):
        rows = input_mix.contiguous().view(-1, input_mix.shape[-1])
        out = functions.split_fwd(_NAME, rows, mhc_scale, mhc_base, rows.shape[1], 1.0, mhc_pre_eps)[0]
        ctx.save_for_backward(rows, mhc_scale, mhc_base)
        return out.view(input_mix.shape)

    @staticmethod
    def backward(ctx, grad):
        rows, scale, base = ctx.saved_tensors
        of_mix, of_scale, of_base = functions.split_bwd((grad, None, None), rows, scale, base, rows.shape[1], 1.0)
        return of_mix.view(grad.shape), of_scale, of_base, None


def mhc_head_compute_mix(
    input_mix: torch.Tensor, mhc_scale: torch.Tensor, mhc_base: torch.Tensor, mhc_pre_eps: float
) -> torch.Tensor:
    """sigmoid(input_mix * mhc_scale + mhc_base) + mhc_pre_eps: float32 (..., streams), (1,) and (streams,)."""
    return applied(MHCHeadComputeMix, input_mix, mhc_scale, mhc_base, mhc_pre_eps)
