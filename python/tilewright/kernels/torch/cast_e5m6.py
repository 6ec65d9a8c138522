"""References of casts to twelve bits (e5m6), and back."""

from __future__ import annotations

import torch

from ..arguments import QuantTensor, ceil_div
from .cast import scales_of, stored_scales
from .numbers import float_scales, repeated


def _codes(x: torch.Tensor) -> torch.Tensor:
    """A float16 without its mantissa's last four bits, rounded by the 17 bits of a float32 that are below them."""
    half = x.half()
    bits = half.view(torch.int16).int() & 0xFFFF
    bits = bits - (half.float().abs() > x.abs()).int()  # toward zero
    below = x.view(torch.int32) & 0x1FFFF
    code = bits >> 4
    return (code + ((code & 1) + below > 0x10000).int()) & 0xFFF


def cast_to_e5m6(
    x: torch.Tensor,
    num_per_channels: int,
    use_tma_aligned_col_major_sf: bool = False,
    round_sf: bool = False,
    use_packed_ue8m0: bool = False,
) -> QuantTensor:
    """(uint8 values, twelve bytes for eight of them, scales) with a scale for `num_per_channels` columns of each row."""
    x = x.float().contiguous()
    rows, columns = x.shape
    magnitude = x.view(rows, columns // num_per_channels, num_per_channels).abs().amax(-1)
    scale, inverse = scales_of(magnitude, 65024.0, 1e-4, round_sf)
    codes = _codes(x * repeated(inverse, (1, num_per_channels), rows, columns)).view(rows, columns // 8, 2, 4).long()
    of_four = codes[..., 0] << 36 | codes[..., 1] << 24 | codes[..., 2] << 12 | codes[..., 3]  # 48 bits
    first, second = of_four.unbind(-1)
    words = torch.stack([first >> 16, (first & 0xFFFF) << 16 | second >> 32, second & 0xFFFFFFFF], -1)
    packed = words.to(torch.uint32).view(rows, columns // 8 * 3).view(torch.uint8)
    return packed, stored_scales(scale, use_tma_aligned_col_major_sf, use_packed_ue8m0)


def cast_back_from_e5m6(x: QuantTensor, fmt: str, x_block_size: tuple[int, int]) -> torch.Tensor:
    """Values times the scales of their blocks, in "bf16" or "fp32"."""
    packed, scales = x
    rows, columns = packed.shape[0], packed.shape[1] // 3 * 2
    words = packed.contiguous().view(torch.uint32).view(rows, columns // 8, 3).long()
    first = words[..., 0] << 16 | words[..., 1] >> 16
    second = (words[..., 1] & 0xFFFF) << 32 | words[..., 2]
    codes = torch.stack([of >> shift & 0xFFF for of in (first, second) for shift in (36, 24, 12, 0)], -1).view(rows, columns)
    numbers = (((codes << 4) ^ 0x8000) - 0x8000).to(torch.int16).view(torch.float16).float()
    factors = repeated(float_scales(scales, ceil_div(columns, x_block_size[1])), x_block_size, rows, columns)
    return (numbers * factors).to({"bf16": torch.bfloat16, "fp32": torch.float32}[fmt])
