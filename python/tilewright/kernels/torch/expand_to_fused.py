"""References of tokens that are copied to the rows of their experts."""

from __future__ import annotations

import torch

from ..arguments import QuantTensor
from .cast import stored_scales


def expand_to_fused(x: torch.Tensor, token_topk_to_pos: torch.Tensor, pos_to_expert: torch.Tensor) -> torch.Tensor:
    """Row token_topk_to_pos[t, k] of the result is row t of x; the other rows are zeros."""
    out = torch.zeros((pos_to_expert.shape[0], x.shape[1]), dtype=x.dtype, device=x.device)
    token, slot = (token_topk_to_pos >= 0).nonzero(as_tuple=True)
    out[token_topk_to_pos[token, slot].long()] = x[token]
    return out


def expand_to_fused_with_sf(
    x: QuantTensor,
    num_per_channels: int,
    token_topk_to_pos: torch.Tensor,
    pos_to_expert: torch.Tensor,
    use_tma_aligned_col_major_sf: bool = False,
) -> QuantTensor:
    """Values and scales of tokens, both copied so."""
    values, scales = (expand_to_fused(part, token_topk_to_pos, pos_to_expert) for part in x)
    return values, stored_scales(scales, use_tma_aligned_col_major_sf, False)
