"""Manifold hyper-connections: the weights of streams, and their sums. tilewright.kernels.modeling has the layers."""

from __future__ import annotations

import torch

from ..arguments import refuse_option


def sinkhorn_normalize(x: torch.Tensor, num_iters: int = 20, eps: float = 1e-6) -> torch.Tensor:
    """softmax of the rows of float32 matrices (..., rows, columns), plus eps; then columns and rows divided in turn by their
    sums plus eps, columns num_iters times and last: of square ones both sum to one in the end. It has a gradient."""
    from ..modeling.mhc.ops import sinkhorn_normalize as normalize

    return normalize(x, num_iters, eps)


def mhc_mix_split(
    mixes: torch.Tensor,
    scale: torch.Tensor,
    base: torch.Tensor,
    num_connections: int | None = None,
    post_mult_value: float = 1.0,
    eps: float = 1e-6,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """mhc_pre_split_mixes(): (weights before a layer (..., m, 1), behind it (..., m, 1), between streams (..., m, m)) of
    mixes, float32 (..., m * (2 + m)), m = num_connections. scale: (3,); base: (m * (2 + m),). It has a gradient."""
    from ..modeling.mhc.ops import mhc_pre_split_mixes

    columns = mixes.shape[-1]
    streams = num_connections or round((columns + 1) ** 0.5) - 1
    if streams * (2 + streams) != columns:
        refuse_option("mhc_mix_split", f"mixes of {columns} columns", "m streams have m * (2 + m) of them: 8, 15, 24, ...")
    return mhc_pre_split_mixes(mixes, scale, base, streams, post_mult_value, eps)


def mhc_mix_apply(x: torch.Tensor, mix: torch.Tensor) -> torch.Tensor:
    """mhc_pre_apply_mix(): the sum of the streams of x, bfloat16 (..., m, hidden), times mix, float32 (..., m) or (..., m,
    1), in bfloat16. It has a gradient."""
    from ..modeling.mhc.ops import mhc_pre_apply_mix

    return mhc_pre_apply_mix(x, mix if mix.ndim == x.ndim else mix[..., None])
