"""Matrices whose rows and columns sum to one."""

from __future__ import annotations

import torch

from ....mhc import functions
from ...applied import applied


class SinkhornNormalize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, repeat, eps):
        ctx.save_for_backward(x)
        ctx.repeat, ctx.eps = repeat, eps
        return functions.sinkhorn_fwd(x, repeat, eps)

    @staticmethod
    def backward(ctx, grad):
        return functions.sinkhorn_bwd(grad, *ctx.saved_tensors, ctx.repeat, ctx.eps), None, None


def sinkhorn_normalize(x: torch.Tensor, repeat: int = 10, eps: float = 1e-6) -> torch.Tensor:
    """softmax of the rows of float32 matrices (..., rows, columns), plus eps; then columns and rows divided in turn by their
    sums plus eps, columns `repeat` times and last."""
    return applied(SinkhornNormalize, x.contiguous(), repeat, eps)
