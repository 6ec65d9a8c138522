"""Scales as tests compare them."""

from __future__ import annotations

import torch

from ..arguments import align, ceil_div


def clear_unused_sf(sf: torch.Tensor, hidden: int, num_per_channels: int) -> torch.Tensor:
    """Packed exponents as bytes (rows, blocks up to a multiple of four), zero where a row has no block."""
    blocks = ceil_div(hidden, num_per_channels)
    made = sf.contiguous().flatten().view(torch.uint8).view(-1, align(blocks, 4))
    made[:, blocks:] = 0
    return made
