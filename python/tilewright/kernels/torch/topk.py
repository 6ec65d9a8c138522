"""References of the choice of experts."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..moe.scoring import ScoringFunc


def stable_topk(scores: torch.Tensor, num_topk: int) -> torch.Tensor:
    """Indices of the largest elements of each row, the largest first, of equal ones the first."""
    return scores.argsort(dim=1, descending=True, stable=True)[:, :num_topk].contiguous()


def topk_sum_and_topk_group_idx(scores: torch.Tensor, num_group_sum_topk: int, num_topk_groups: int) -> torch.Tensor:
    """Indices of the best groups, whose score is the sum of their largest elements: scores are (tokens, groups, experts)."""
    return stable_topk(scores.topk(num_group_sum_topk, dim=-1).values.sum(-1), num_topk_groups)


def scores_of(logits: torch.Tensor, scoring_func: str) -> torch.Tensor:
    """Logits as scores."""
    kind = ScoringFunc.from_str(scoring_func)
    if kind == ScoringFunc.SIGMOID:
        return logits.sigmoid()
    if kind == ScoringFunc.SQRTSOFTPLUS:
        return F.softplus(logits).sqrt()
    return logits.softmax(-1) if kind == ScoringFunc.SOFTMAX else logits


def _chosen(scores, num_topk, num_topk_groups, num_groups):
    if num_topk_groups != num_groups:
        grouped = scores.view(scores.shape[0], num_groups, -1)
        lost = torch.ones(grouped.shape[:2], dtype=torch.bool, device=scores.device)
        lost.scatter_(1, topk_sum_and_topk_group_idx(grouped, 2, num_topk_groups), False)
        scores = grouped.masked_fill(lost[:, :, None], float("-inf")).view_as(scores)
    return stable_topk(scores, num_topk)


def _physical(idx, tokens, ep_rank, to_physical_map, logical_count):
    """Of the copies of an expert each token takes another."""
    expert = idx.clamp(min=0)
    copy = (ep_rank + tokens[:, None] * 23333) % logical_count[expert].long()
    return torch.where(idx >= 0, to_physical_map[expert, copy].long(), idx)


def _on_rank(idx, of_rank, tp_rank, num_tp_ranks):
    rank = torch.div(idx, of_rank, rounding_mode="floor")
    mine = (idx >= 0) & (rank % num_tp_ranks == tp_rank)
    return torch.where(mine, torch.div(rank, num_tp_ranks, rounding_mode="floor") * of_rank + idx % of_rank, -1)


def top2_sum_gate(
    logits: torch.Tensor,
    bias: torch.Tensor,
    num_topk: int,
    num_topk_groups: int,
    num_groups: int,
    use_shared_as_routed: bool,
    num_shared_experts: int,
    routed_scaling_factor: float,
    ep_rank: int,
    num_ep_ranks: int,
    tp_rank: int,
    num_tp_ranks: int,
    scoring_func: str,
    mask: torch.Tensor | None = None,
    fix_routing_mask: torch.Tensor | None = None,
    to_physical_map: torch.Tensor | None = None,
    logical_count: torch.Tensor | None = None,
    unmapped_topk_idx: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(experts of each token as this rank counts them, their weights): what tilewright.kernels.moe.top2_sum_gate() gives."""
    scores = scores_of(logits, scoring_func)
    ranked = (logits if ScoringFunc.from_str(scoring_func) == ScoringFunc.SOFTMAX else scores) + bias
    idx = _chosen(ranked, num_topk, num_topk_groups, num_groups)
    if fix_routing_mask is not None:
        idx = torch.where(fix_routing_mask[:, None], unmapped_topk_idx, idx)
    routed = torch.ones(logits.shape[0], dtype=torch.bool, device=logits.device) if mask is None else mask
    if unmapped_topk_idx is not None:
        unmapped_topk_idx.copy_(torch.where(routed[:, None], idx, -1))
    chosen = scores.gather(1, idx.clamp(min=0))
    weights = chosen / chosen.sum(-1, keepdim=True).clamp(min=1e-20) * routed_scaling_factor
    if use_shared_as_routed:
        shared = torch.arange(num_shared_experts, device=logits.device) + logits.shape[1]
        idx = torch.cat([idx, shared.expand(len(idx), -1)], 1)
        weights = torch.cat([weights, weights.new_ones((len(idx), num_shared_experts))], 1)
    more = 0
    if to_physical_map is not None:
        more = to_physical_map.shape[1] - 1
        idx = _physical(idx, torch.arange(len(idx), device=idx.device), ep_rank, to_physical_map, logical_count)
    idx = _on_rank(idx, (logits.shape[1] + more) // num_ep_ranks, tp_rank, num_tp_ranks)
    return torch.where(routed[:, None], idx, -1), torch.where(routed[:, None], weights, 0.0)


def topk_gating(logits: torch.Tensor, top_k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(weights, indices int64): the softmax over the largest logits of each row, and where they are."""
    idx = stable_topk(logits.float(), top_k)
    return logits.float().gather(1, idx).softmax(-1), idx
