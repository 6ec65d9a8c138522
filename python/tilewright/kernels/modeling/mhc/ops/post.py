"""What comes out of a layer, spread over the streams."""

from __future__ import annotations

import torch

from ....mhc import functions
from ...applied import applied

_KEPT = "grad_from_mhc_post"  # of the memory of streams: their gradient, to which those of other uses are added in place


def kept_gradient(x):
    """The gradient that mhc_post() has left for the memory of x, or None."""
    kept = getattr(x.untyped_storage(), _KEPT, None)
    return None if kept is None else kept.view_as(x)


def mhc_post_fwd(
    x: torch.Tensor,
    residual: torch.Tensor,
    post_layer_mix: torch.Tensor,
    comb_res_mix: torch.Tensor,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """mhc_post() without a gradient."""
    return functions.post_fwd(x, residual, post_layer_mix, comb_res_mix, out)


def mhc_post_bwd(
    x: torch.Tensor,
    residual: torch.Tensor,
    post_layer_mix: torch.Tensor,
    comb_res_mix: torch.Tensor,
    d_o: torch.Tensor,
    fuse_grad_acc: bool = True,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of the four tensors of mhc_post(). fuse_grad_acc: that of residual is left at its memory, so that those of
    other uses are added to it in place."""
    made = functions.post_bwd(x, residual, post_layer_mix, comb_res_mix, d_o)
    if fuse_grad_acc:
        setattr(residual.untyped_storage(), _KEPT, made[1])
    return made


class MHCPost(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, post_layer_mix, comb_res_mix, out):
        x, post_layer_mix, comb_res_mix = x.contiguous(), post_layer_mix.contiguous(), comb_res_mix.contiguous()
        ctx.save_for_backward(x, residual, post_layer_mix, comb_res_mix)
        return functions.post_fwd(x, residual, post_layer_mix, comb_res_mix, out)

    @staticmethod
    def backward(ctx, grad):
        return (*mhc_post_bwd(*ctx.saved_tensors, grad), None)


def mhc_post(
    x: torch.Tensor,
    residual: torch.Tensor,
    post_layer_mix: torch.Tensor,
    comb_res_mix: torch.Tensor,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Stream n: x times post_layer_mix[n], plus the streams m of residual times comb_res_mix[m, n], in float32 and rounded to
    bfloat16.

    x: bfloat16 (..., hidden); residual, and the result: bfloat16 (..., streams, hidden); the weights float32 (..., streams,
    1) and (..., streams, streams). out: where it is written.
    """
    return applied(MHCPost, x, residual, post_layer_mix, comb_res_mix, out)
