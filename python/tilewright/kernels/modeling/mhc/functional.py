"""What stands in front of a layer and behind it, in a call each."""

from __future__ import annotations

import torch

from .ops import (
    expand_to_mhc,
    mhc_head_compute_mix,
    mhc_pre_apply_mix,
    mhc_pre_big_fuse,
    mhc_pre_norm_fn,
    mhc_pre_split_mixes,
    sinkhorn_normalize,
)


def expand_from_embedding(x: torch.Tensor, mhc_mult: int = 4) -> torch.Tensor:
    """An embedding (..., hidden) as streams (..., mhc_mult, hidden)."""
    return expand_to_mhc(x, mhc_mult)


def mhc_pre(
    residual: torch.Tensor,
    fn: torch.Tensor,
    scale: torch.Tensor,
    base: torch.Tensor,
    *,
    norm_weight: torch.Tensor | None = None,
    norm_eps: float = 1e-6,
    mhc_mult: int = 4,
    post_mult_value: float = 1.0,
    pre_eps: float = 1e-6,
    sinkhorn_eps: float = 1e-6,
    sinkhorn_repeat: int = 10,
    n_splits: int = 16,
) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    """(what goes into a layer (..., hidden), (weights behind it, weights between streams) for mhc_post()).

    residual: bfloat16 (..., mhc_mult, hidden); fn: float32 (mhc_mult * (2 + mhc_mult), mhc_mult * hidden); scale (3,), base
    (mhc_mult * (2 + mhc_mult),) and norm_weight (mhc_mult * hidden,) float32.
    """
    if not torch.is_grad_enabled():
        fn = fn if norm_weight is None else fn * norm_weight
        post_mix, comb_mix, layer_input = mhc_pre_big_fuse(
            residual, fn, scale, base, norm_eps, pre_eps, sinkhorn_eps, post_mult_value, sinkhorn_repeat, n_splits
        )
        return layer_input, (post_mix, comb_mix)
    mixes = mhc_pre_norm_fn(residual, fn, norm_weight, norm_eps, n_splits=n_splits)
    pre_mix, post_mix, comb_mix = mhc_pre_split_mixes(mixes, scale, base, mhc_mult, post_mult_value, pre_eps)
    comb_mix = sinkhorn_normalize(comb_mix, sinkhorn_repeat, sinkhorn_eps)
    return mhc_pre_apply_mix(residual, pre_mix), (post_mix, comb_mix)


def mhc_head(
    residual: torch.Tensor,
    fn: torch.Tensor,
    scale: torch.Tensor,
    base: torch.Tensor,
    *,
    norm_weight: torch.Tensor | None = None,
    norm_eps: float = 1e-6,
    mhc_mult: int = 4,
    pre_eps: float = 1e-6,
    n_splits: int = 16,
) -> torch.Tensor:
    """What goes into the head of a model (..., hidden): the streams weighted by sigmoids. fn: float32 (mhc_mult, mhc_mult *
    hidden), which may have more rows; scale: one number; base: (mhc_mult,)."""
    mixes = mhc_pre_norm_fn(residual, fn, norm_weight, norm_eps, n_splits=n_splits)[..., :mhc_mult]
    mix = mhc_head_compute_mix(mixes, scale.reshape(1), base, pre_eps)
    return mhc_pre_apply_mix(residual, mix[..., None])
