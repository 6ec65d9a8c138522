"""Comparing tensors."""

from __future__ import annotations

import math

import torch


def _bytes(x):
    return x.contiguous().flatten().view(torch.uint8)


def assert_equal(
    x: torch.Tensor, y: torch.Tensor, check_dtype: bool = True, check_shape: bool = True, check_stride: bool = True
) -> None:
    """AssertionError unless both have the same bits, and dtype, shape and strides."""
    for what, checked, a, b in (
        ("dtype", check_dtype, x.dtype, y.dtype),
        ("shape", check_shape, x.shape, y.shape),
        ("device", True, x.device, y.device),
        ("strides", check_stride and x.numel() > 0, x.stride(), y.stride()),
    ):
        if checked and a != b:
            raise AssertionError(f"tensors differ in {what}: {a} and {b}")
    a, b = _bytes(x), _bytes(y)
    if a.shape != b.shape:
        raise AssertionError(f"tensors have {a.numel()} and {b.numel()} bytes")
    if not torch.equal(a, b):
        size = x.element_size()
        at = (a != b).view(-1, size).any(1).nonzero().flatten()
        place = tuple(int(i) for i in torch.unravel_index(at[0], x.shape))
        raise AssertionError(
            f"{at.numel()} of {x.numel()} elements differ, first at {place}: {x[place].item()} and {y[place].item()}"
        )


def calc_diff(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor | float:
    """1 - 2 <x, y> / (<x, x> + <y, y>) in float64: 0 of equal tensors, also of zeros."""
    x, y = x.double(), y.double()
    norm = (x * x + y * y).sum()
    return 1 - 2 * (x * y).sum() / norm if norm != 0 else 0


def check_bias(x: torch.Tensor, ref_x: torch.Tensor) -> None:
    """AssertionError if x is above ref_x much more often than below: ten standard errors of as many tosses of a coin, doubled."""
    count = x.numel()
    if count == 0:
        return
    below = ((x < ref_x).sum() + (x == ref_x).sum() / 2) / count
    if abs(below - 0.5) >= 10 / math.sqrt(count):
        raise AssertionError(f"of {count} elements a share of {below:.4f} is below the reference; rounding to nearest has 0.5")


def count_bytes(*tensors) -> int:
    """Bytes of tensors, and of those in tuples and lists; None has none."""
    return sum(
        count_bytes(*t) if isinstance(t, (tuple, list)) else 0 if t is None else t.numel() * t.element_size() for t in tensors
    )
