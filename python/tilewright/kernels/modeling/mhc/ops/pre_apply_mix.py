"""What goes into a layer: the weighted sum of the streams."""

from __future__ import annotations

import torch

from ....mhc import functions
from ...applied import applied
from .post import kept_gradient


class MHCPreApplyMix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mix, out):
        x, mix = x.contiguous(), mix.contiguous()
        ctx.save_for_backward(x, mix)
        return functions.pre_apply_mix_fwd(x, mix, out)

    @staticmethod
    def backward(ctx, grad):
        x, mix = ctx.saved_tensors
        kept = kept_gradient(x)
        x_grad = torch.zeros_like(x) if kept is None else kept
        mix_grad = functions.pre_apply_mix_bwd(grad, x, mix, x_grad)
        return x_grad if kept is None else None, mix_grad, None


def mhc_pre_apply_mix(x: torch.Tensor, mix: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """The sum of the streams of x, bfloat16 (..., streams, hidden), times mix, float32 (..., streams, 1), in float32 and
    rounded to bfloat16. out: where it is written. Where mhc_post() has left the gradient of x's memory, that of x is added
    to it."""
    return applied(MHCPreApplyMix, x, mix, out)
