"""Arithmetic of the references that PyTorch has no function for."""

from __future__ import annotations

import torch


def exp(x: torch.Tensor) -> torch.Tensor:
    """The exponential that kernels have where x is: CUDA's own on a GPU, Tilewright's in the processor's memory. Both are
    within an ULP."""
    if x.is_cuda:
        return torch.exp(x)
    from ...ops import exp as of_engine

    return of_engine(x)


def fma(a: torch.Tensor, b: torch.Tensor | float, c: torch.Tensor | float) -> torch.Tensor:
    """a * b + c of float32, rounded once: the sum is made in float64 and rounded to odd, which a second rounding does not
    spoil."""
    product = a.double() * b  # 48 bits: exact
    c = torch.as_tensor(c, dtype=torch.float64, device=a.device)
    total = product + c
    part = total - product
    error = (product - (total - part)) + (c - part)  # of the sum, exact
    bits = total.view(torch.int64)
    is_even = (bits & 1) == 0
    outwards = (error > 0) == (total > 0)
    odd = torch.where(is_even & (error != 0), torch.where(outwards, bits + 1, bits - 1), bits)
    return torch.where(torch.isfinite(total), odd.view(torch.float64), total).float()


def repeated(scales: torch.Tensor, block: tuple[int, int], rows: int, columns: int) -> torch.Tensor:
    """The scale of each element, from those of blocks."""
    return scales.repeat_interleave(block[0], 0)[:rows].repeat_interleave(block[1], 1)[:, :columns]


def float_scales(scales: torch.Tensor, columns: int) -> torch.Tensor:
    """Scales as float32: those of packed exponents are the powers of two, `columns` of a row."""
    if scales.dtype == torch.float32:
        return scales
    exponents = torch.stack([(scales >> shift) & 255 for shift in (0, 8, 16, 24)], -1).flatten(1)
    return (exponents[:, :columns] << 23).view(torch.float32)
