"""References of what routes tokens to experts."""

from __future__ import annotations

import torch


def group_count(group_idx: torch.Tensor, num_groups: int) -> torch.Tensor:
    """How many entries each group has, int32; negative ones are none's."""
    return torch.bincount(group_idx[group_idx >= 0], minlength=num_groups).int()


def aux_fi(topk_idx: torch.Tensor, num_experts: int, num_aux_topk: int) -> torch.Tensor:
    """The share of entries that each expert has, times the number of experts: float32."""
    count = group_count(topk_idx, num_experts).float()
    return count * num_experts / (topk_idx.shape[0] * num_aux_topk) if topk_idx.shape[0] else count


def mask_indices_by_tp(indices: torch.Tensor, n: int, num_ep_ranks: int, tp_rank: int, num_tp_ranks: int) -> torch.Tensor:
    """Indices of experts as this rank counts its own; -1 for those of others."""
    of_rank = n // num_ep_ranks
    rank = torch.div(indices, of_rank, rounding_mode="floor")
    mine = (indices >= 0) & (rank % num_tp_ranks == tp_rank)
    return torch.where(mine, torch.div(rank, num_tp_ranks, rounding_mode="floor") * of_rank + indices % of_rank, -1)


def normalize_weight(topk_weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(1e-20 and the weights of each row, added one after the other; weights divided by that)."""
    total = torch.full_like(topk_weights[:, 0], 1e-20) if topk_weights.shape[1] else topk_weights.sum(1) + 1e-20
    for column in topk_weights.unbind(1):
        total = total + column
    return total, topk_weights / total[:, None]


def inplace_unique_group_indices(group_indices: torch.Tensor, num_groups: int) -> None:
    """Makes -1 of what a row has to the left already."""
    before = torch.ones((group_indices.shape[1],) * 2, dtype=torch.bool, device=group_indices.device).tril(-1)
    group_indices[((group_indices[:, :, None] == group_indices[:, None, :]) & before).any(2)] = -1
