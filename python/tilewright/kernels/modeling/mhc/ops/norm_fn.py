"""Products of the streams, normalized as one row, with some others."""

from __future__ import annotations

import torch

from ....arguments import check
from ....mhc import functions
from ...applied import applied
from .post import _KEPT, kept_gradient


class MergeNormWeight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, weight):
        ctx.save_for_backward(fn, weight)
        return functions.merge_fwd(fn, weight)

    @staticmethod
    def backward(ctx, grad):
        kept = [getattr(t, "main_grad", None) for t in ctx.saved_tensors]
        sums = [torch.zeros_like(t) if k is None else k for t, k in zip(ctx.saved_tensors, kept)]
        functions.merge_bwd(grad, *ctx.saved_tensors, *sums)
        return tuple(s if k is None else None for s, k in zip(sums, kept))


class MHCPreNormFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, fn, norm_eps, fuse_grad_acc, n_splits):
        rows = x.view(-1, x.shape[-2] * x.shape[-1])
        out, product, square = functions.norm_fn_fwd(rows, fn, norm_eps, n_splits)
        ctx.save_for_backward(x, fn, product, square)
        ctx.norm_eps, ctx.fuse_grad_acc = norm_eps, fuse_grad_acc
        return out.view(*x.shape[:-2], fn.shape[0])

    @staticmethod
    def backward(ctx, grad):
        x, fn, product, square = ctx.saved_tensors
        rows = x.view(-1, fn.shape[1])
        kept = kept_gradient(x) if ctx.fuse_grad_acc else None
        x_grad = torch.zeros_like(x) if kept is None else kept
        fn_grad = functions.norm_fn_bwd(
            grad.view(-1, fn.shape[0]), rows, fn, product, square, ctx.norm_eps, x_grad.view(rows.shape)
        )
        if kept is not None:
            delattr(x.untyped_storage(), _KEPT)
        return x_grad if kept is None else None, fn_grad, None, None, None


def mhc_pre_norm_fn(
    residual: torch.Tensor,
    mhc_fn: torch.Tensor,
    mhc_norm_weight: torch.Tensor | None,
    mhc_norm_eps: float,
    fuse_grad_acc: bool = True,
    n_splits: int = 16,
) -> torch.Tensor:
    """Products (..., n) of the streams of residual, as one row divided by the root of its mean square plus mhc_norm_eps, with
    mhc_fn.

    residual: bfloat16 (..., streams, hidden); mhc_fn: float32 (n, streams * hidden), multiplied by mhc_norm_weight (streams *
    hidden,) where that is given. On a GPU products are those of 10 bits of mantissa, rounded. n_splits: into how many parts
    at most a row's sums are made where there are few rows. fuse_grad_acc: where mhc_post() has left the gradient of
    residual's memory, that of residual is added to it.
    """
    residual = residual.contiguous()
    check("mhc_pre_norm_fn", "residual", residual, (torch.bfloat16,))
    if mhc_norm_weight is not None:
        mhc_fn = applied(MergeNormWeight, mhc_fn, mhc_norm_weight)
    return applied(MHCPreNormFn, residual, mhc_fn, mhc_norm_eps, fuse_grad_acc, n_splits)
