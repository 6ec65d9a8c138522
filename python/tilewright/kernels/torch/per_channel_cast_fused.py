"""The reference of casts with a scale for each column of some rows, of gathered ones too."""

from __future__ import annotations

import torch

from ..arguments import QuantTensor
from .cast import cast


def per_channel_cast_fused(
    x: torch.Tensor | QuantTensor,
    num_per_tokens: int,
    num_per_channels: int | None,
    round_sf: bool,
    pos_to_token: torch.Tensor | None,
) -> QuantTensor:
    """(e4m3 values, float32 scales) of x, or of its rows pos_to_token, where negative ones are zeros."""
    parts = list(x) if isinstance(x, tuple) else [x]
    if pos_to_token is not None:
        lives = (pos_to_token >= 0)[:, None]
        gathered = [part.float()[pos_to_token.clamp(min=0).long()] for part in parts]
        parts = [torch.where(lives, rows, torch.zeros_like(rows)).to(part.dtype) for rows, part in zip(gathered, parts)]
    given = (parts[0], parts[1]) if isinstance(x, tuple) else parts[0]
    return cast(
        given,
        "e4m3",
        (num_per_tokens, 1),
        x_block_size=(1, num_per_channels) if isinstance(x, tuple) else None,
        round_sf=round_sf,
    )
