"""All that is done in front of a layer, without gradients."""

from __future__ import annotations

import torch

from ....mhc import functions


def mhc_pre_big_fuse(
    residual: torch.Tensor,
    fn: torch.Tensor,
    mhc_scale: torch.Tensor,
    mhc_base: torch.Tensor,
    rms_eps: float,
    mhc_pre_eps: float,
    mhc_sinkhorn_eps: float,
    mhc_post_mult_value: float,
    sinkhorn_repeat: int,
    n_splits: int = 16,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(weights behind the layer, weights between streams, what goes into the layer): bit for bit what mhc_pre_norm_fn(),
    mhc_pre_split_mixes(), sinkhorn_normalize() and mhc_pre_apply_mix() give one after the other."""
    residual = residual.contiguous()
    *outer, streams, hidden = residual.shape
    with torch.no_grad():
        mixes, _, _ = functions.norm_fn_fwd(residual.view(-1, streams * hidden), fn, rms_eps, n_splits)
        pre, post, comb = functions.split_fwd(
            "mhc_pre_big_fuse", mixes, mhc_scale, mhc_base, streams, mhc_post_mult_value, mhc_pre_eps
        )
        comb = functions.sinkhorn_fwd(comb.view(-1, streams, streams), sinkhorn_repeat, mhc_sinkhorn_eps)
        layer_input = functions.pre_apply_mix_fwd(residual, pre.view(*outer, streams, 1))
    return post.view(*outer, streams, 1), comb.view(*outer, streams, streams), layer_input
