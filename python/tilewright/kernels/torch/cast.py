"""References of casts to e4m3 and e2m1, and back."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..arguments import QuantTensor, align, ceil_div
from .numbers import float_scales, repeated

_RANGES = {
    "e4m3": (448.0, 1e-4),
    "e2m1": (6.0, 6.0 * 2.0**-126),
}  # the largest number of a format, the least magnitude that is scaled


def e2m1_numbers(pairs: torch.Tensor) -> torch.Tensor:
    """float32 of e2m1 values, two in each byte of the last dimension, the first in the lower bits."""
    numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], device=pairs.device)
    return numbers[torch.stack([pairs & 15, (pairs >> 4) & 15], -1).flatten(-2).long()]


def _numbers(x: QuantTensor, block) -> torch.Tensor:
    values, scales = x
    numbers = e2m1_numbers(values) if values.dtype == torch.int8 else values.float()
    rows, columns = numbers.shape
    return numbers * repeated(float_scales(scales, ceil_div(columns, block[1])), block, rows, columns)


def cast_back(x: QuantTensor, fmt: str, block_size: tuple[int, int] = (32, 32)) -> torch.Tensor:
    """Values times the scales of their blocks, in "bf16" or "fp32"."""
    return _numbers(x, block_size).to({"bf16": torch.bfloat16, "fp32": torch.float32}[fmt])


def e2m1_codes(x: torch.Tensor) -> torch.Tensor:
    """The four bits of the nearest e2m1 of each element, ties to even, as uint8."""
    magnitude = x.abs()
    step = torch.where(magnitude < 2, 0.5, torch.where(magnitude < 4, 1.0, 2.0))
    nearest = torch.clamp(torch.round(magnitude / step) * step, max=6.0)
    code = torch.bucketize(nearest, torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device=x.device))
    return (torch.where(torch.isnan(x), 7, code) | torch.signbit(x).long() << 3).to(torch.uint8)


def stored_scales(scales: torch.Tensor, in_columns: bool, packed: bool) -> torch.Tensor:
    """float32 scales as casts give them: column after column from multiples of 16 bytes, as exponents four to an int32."""
    if packed:
        bits = F.pad((scales.view(torch.int32) >> 23).to(torch.uint8), (0, -scales.shape[1] % 4))
        scales = bits.contiguous().view(torch.int32)
    if not in_columns:
        return scales
    rows, columns = scales.shape
    made = torch.zeros((columns, align(rows, 4)), dtype=scales.dtype, device=scales.device)
    made[:, :rows] = scales.T
    return made[:, :rows].T


def scales_of(magnitude: torch.Tensor, largest: float, least: float, rounded: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """(scales, their inverses) of the largest magnitudes of blocks."""
    magnitude = magnitude.clamp(min=least)
    largest = torch.full_like(magnitude, largest)  # by a tensor: PyTorch multiplies by the inverse of a number
    scale = magnitude / largest
    if not rounded:
        return scale, largest / magnitude
    fraction, exponent = torch.frexp(scale)  # fraction in [0.5, 1)
    scale = torch.ldexp(torch.ones_like(scale), exponent - (fraction == 0.5).int())
    return scale, 1 / scale


def cast(
    x: torch.Tensor | QuantTensor,
    fmt: str,
    block_size: tuple[int, int] = (32, 32),
    sf: torch.Tensor | None = None,
    x_block_size: tuple[int, int] | None = None,
    round_sf: bool = False,
    use_tma_aligned_col_major_sf: bool = False,
    use_packed_ue8m0: bool = False,
) -> torch.Tensor | QuantTensor:
    """(values, scales) in "e4m3" or "e2m1" with a scale for each block of block_size; values alone where sf gives the scales."""
    x = _numbers(x, x_block_size) if isinstance(x, tuple) else x.float()
    rows, columns = x.shape
    height, width = block_size
    if sf is None:
        padded = F.pad(x, (0, -columns % width, 0, -rows % height))
        blocks = padded.view(padded.shape[0] // height, height, padded.shape[1] // width, width)
        magnitude = blocks.abs().amax((1, 3)) if rows else x.new_zeros((0, ceil_div(columns, width)))
        scale, inverse = scales_of(magnitude, *_RANGES[fmt], round_sf)
    else:
        inverse = sf.reciprocal()
    scaled = x * repeated(inverse, block_size, rows, columns)
    if fmt == "e4m3":
        values = scaled.clamp(-448, 448).to(torch.float8_e4m3fn)
    else:
        codes = e2m1_codes(scaled)
        values = (codes[:, ::2] | codes[:, 1::2] << 4).view(torch.int8)
    return values if sf is not None else (values, stored_scales(scale, use_tma_aligned_col_major_sf, use_packed_ue8m0))


def per_token_cast_fp8(x: torch.Tensor) -> QuantTensor:
    """(e4m3 values, float32 scales (tokens, 1)): one scale for each row."""
    return cast(x, "e4m3", (1, x.shape[1]))


def per_block_cast_fp8(w: torch.Tensor, block_size: int = 128) -> QuantTensor:
    """(e4m3 values, float32 scales of square blocks)."""
    return cast(w, "e4m3", (block_size, block_size))


def per_channel_cast_fp8(x: torch.Tensor, num_per_tokens: int = 128) -> QuantTensor:
    """(e4m3 values, float32 scales of each column of num_per_tokens rows)."""
    return cast(x, "e4m3", (num_per_tokens, 1))
