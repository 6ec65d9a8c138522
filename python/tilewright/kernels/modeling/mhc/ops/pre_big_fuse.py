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
    with torch.no_grad():
        return functions.pre_fwd(
            residual.contiguous(),
            fn,
            mhc_scale,
            mhc_base,
            rms_eps,
            mhc_pre_eps,
            mhc_sinkhorn_eps,
            mhc_post_mult_value,
            sinkhorn_repeat,
            n_splits,
        )
