"""References of SwiGLU of expanded tokens, forward and backward."""

from __future__ import annotations

import torch

from ..arguments import QuantTensor
from .numbers import exp, fma, repeated


def _weights_of_rows(pos_to_token_topk, weights):
    rows = pos_to_token_topk.clamp(min=0).long()
    return torch.where(pos_to_token_topk >= 0, weights.flatten()[rows].float(), torch.zeros((), device=weights.device))


def swiglu_forward(
    x: torch.Tensor,
    pos_to_token_topk: torch.Tensor | None = None,
    topk_weights: torch.Tensor | None = None,
    swiglu_clamp_value: float | None = None,
    clamped_count: torch.Tensor | None = None,
) -> torch.Tensor:
    """silu(left) * right in float32, of x = [left | right], times the weight of each row where weights are given."""
    left, right = x.float().chunk(2, -1)
    if swiglu_clamp_value is not None:
        limit = swiglu_clamp_value
        if clamped_count is not None:
            clamped_count += torch.stack([(left > limit).sum(), (right > limit).sum(), (right < -limit).sum()])
        left, right = left.clamp(max=limit), right.clamp(-limit, limit)
    out = left / (1.0 + exp(-left)) * right
    return out if pos_to_token_topk is None else out * _weights_of_rows(pos_to_token_topk, topk_weights)[:, None]


def swiglu_backward(
    x: QuantTensor,
    grad_out: torch.Tensor,
    weight: torch.Tensor,
    pos_to_token_topk: torch.Tensor,
    token_topk_to_pos: torch.Tensor,
    num_per_channels: int,
    swiglu_clamp_value: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(the weighted result, the gradient of x, that of the weights) in float32."""
    values, scales = x
    values = values.view(-1, values.shape[-1])
    numbers = values.float() * repeated(scales, (1, num_per_channels), *values.shape)
    left, right = numbers.chunk(2, -1)
    grad = grad_out.view(left.shape).float()
    limit = float("inf") if swiglu_clamp_value is None else swiglu_clamp_value
    beyond_left, beyond_right = left > limit, right.abs() > limit
    left, right = left.clamp(max=limit), right.clamp(-limit, limit)
    below = 1.0 + exp(-left)
    sigmoid = torch.ones_like(below) / below
    factor = _weights_of_rows(pos_to_token_topk, weight)[:, None]
    act = left / below * right
    through = grad * factor * sigmoid
    of_left = torch.where(beyond_left, 0.0, through * right * fma(left, 1.0 - sigmoid, 1.0))
    of_right = torch.where(beyond_right, 0.0, through * left)
    of_weight = torch.zeros_like(weight)
    lives = pos_to_token_topk >= 0
    of_weight.view(-1)[pos_to_token_topk[lives].long()] = (grad * act).sum(1)[lives]
    return act * factor, torch.cat([of_left, of_right], 1), of_weight
