"""A row for every stream."""

from __future__ import annotations

import torch

from ....mhc import functions
from ...applied import applied


class ExpandToMHCFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, mhc_mult, out):
        return functions.expand_fwd(hidden.contiguous(), mhc_mult, out)

    @staticmethod
    def backward(ctx, grad):
        return functions.expand_bwd(grad), None, None


def expand_to_mhc(hidden: torch.Tensor, mhc_mult: int, out: torch.Tensor | None = None) -> torch.Tensor:
    """hidden (..., h), bfloat16, float16 or float32, as (..., mhc_mult, h). out: where it is written. Its gradient is the sum
    over the streams, rounded once."""
    return applied(ExpandToMHCFn, hidden, mhc_mult, out)
