"""The reference of the rows of experts that are added up to tokens."""

from __future__ import annotations

import torch

from ..arguments import QuantTensor
from .numbers import fma


def reduce_fused(
    x: torch.Tensor | QuantTensor,
    topk_weights: torch.Tensor | None,
    token_topk_to_pos: torch.Tensor,
    fp8_format: str = "",
    sf: torch.Tensor | None = None,
) -> torch.Tensor:
    """The weighted sum of each token's rows, slot after slot in float32, each product and addition rounded once."""
    values, scales = x if isinstance(x, tuple) else (x, None)
    total = torch.zeros((token_topk_to_pos.shape[0], values.shape[1]), dtype=torch.float32, device=values.device)
    for slot, pos in enumerate(token_topk_to_pos.unbind(1)):
        lives = (pos >= 0).nonzero().squeeze(1)
        rows = pos[lives].long()
        factor = torch.ones_like(rows, dtype=torch.float32) if topk_weights is None else topk_weights[lives, slot]
        if scales is not None:
            factor = factor * scales[rows]
        total[lives] = fma(values[rows].float(), factor[:, None].double(), total[lives])
    if sf is not None:
        total = total * sf[0]
    return total.clamp(-448, 448).to(torch.float8_e4m3fn) if fp8_format == "e4m3" else total.to(values.dtype)
