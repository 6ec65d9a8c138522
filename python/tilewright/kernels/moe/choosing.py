"""Which experts tokens take."""

from __future__ import annotations

import torch

from ..arguments import check, check_multiple, check_option, refuse_option
from . import choice_programs
from .gate_programs import top2_sum
from .scoring import ScoringFunc

_FLOATS = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}


def _warps(columns):
    """Rows of a block of the grid, each a warp's; of a long one shared memory has room for one."""
    return 2 if columns <= 4096 else 1


def _check_topk(function, topk, experts, what="num_topk"):
    if not 1 <= topk <= experts:
        refuse_option(function, f"{what} is {topk}", f"it is 1 to {experts}, as many as there are")


def topk_gate(scores: torch.Tensor, num_topk: int) -> torch.Tensor:
    """Indices, int64 (tokens, num_topk), of the largest of float32 scores (tokens, experts), the largest first, of equal ones
    the first. NaN counts as infinity."""
    name = "topk_gate"
    check(name, "scores", scores, (torch.float32,), rank=2)
    tokens, experts = scores.shape
    _check_topk(name, num_topk, experts)
    idx = torch.empty((tokens, num_topk), dtype=torch.int64, device=scores.device)
    if tokens:
        choice_programs.topk(scores, experts=experts, topk=num_topk, warps=_warps(experts))(scores, idx)
    return idx


def topk_gating(logits: torch.Tensor, top_k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(weights float32, indices int64), both (tokens, top_k): the largest logits (tokens, experts) of each row, float32,
    bfloat16 or float16, the largest first, of equal ones the first, and the softmax over them. NaN counts as infinity."""
    name = "topk_gating"
    check(name, "logits", logits, tuple(_FLOATS), rank=2)
    tokens, experts = logits.shape
    _check_topk(name, top_k, experts, "top_k")
    weights = torch.empty((tokens, top_k), dtype=torch.float32, device=logits.device)
    idx = torch.empty((tokens, top_k), dtype=torch.int64, device=logits.device)
    if tokens:
        choice_programs.gating(logits, experts=experts, topk=top_k, x=_FLOATS[logits.dtype], warps=_warps(experts))(
            logits, weights, idx
        )
    return weights, idx


def topk_sum_and_topk_group_idx(scores: torch.Tensor, num_topk_sum: int, num_topk_groups: int) -> torch.Tensor:
    """Indices, int64 (tokens, num_topk_groups), of the best groups: scores are float32 (tokens, groups, experts of a group),
    and a group's is the sum of its num_topk_sum (1 or 2) largest; of equal groups the first."""
    name = "topk_sum_and_topk_group_idx"
    check(name, "scores", scores, (torch.float32,), rank=3)
    tokens, groups, width = scores.shape
    check_option(name, "num_topk_sum", num_topk_sum, (1, 2))
    _check_topk(name, num_topk_sum, width, "num_topk_sum")
    _check_topk(name, num_topk_groups, groups, "num_topk_groups")
    idx = torch.empty((tokens, num_topk_groups), dtype=torch.int64, device=scores.device)
    if tokens:
        kernel = choice_programs.best_groups(
            scores, groups=groups, width=width, summed=num_topk_sum, topk=num_topk_groups, warps=_warps(groups * width)
        )
        kernel(scores.view(tokens, -1), idx)
    return idx


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
    """(experts int64, weights float32) of each token, both (tokens, num_topk + shared experts).

    logits: float32 (tokens, experts), made scores by scoring_func: "sigmoid", "sqrtsoftplus" or "softmax". Experts are those
    with the largest score (of softmax: logit) plus bias, float32 (experts,), of equal ones the first, from the
    num_topk_groups of num_groups groups whose two largest have the largest sum (0 of 0, or all: from all experts). Weights
    are scores without the bias, divided by their sum, times routed_scaling_factor. use_shared_as_routed: num_shared_experts
    more experts of weight 1 come behind them.

    mask: bool (tokens,); where it is false experts are -1 and weights 0. fix_routing_mask: bool (tokens,); where it is true
    the experts are those in unmapped_topk_idx, int64 (tokens, num_topk), to which the chosen experts are written otherwise.
    to_physical_map, int32 (experts, copies), and logical_count, int32 (experts,): which of its first copies an expert is for
    token t, copy (ep_rank + 23333 t) mod count. At last experts are counted as rank tp_rank of num_tp_ranks does, -1 where
    they are others'.
    """
    name = "top2_sum_gate"
    check(name, "logits", logits, (torch.float32,), rank=2)
    tokens, experts = logits.shape
    check(name, "bias", bias, (torch.float32,), shape=(experts,))
    _check_topk(name, num_topk, experts)
    if not 0 <= num_topk_groups <= num_groups or (num_groups == 0) != (num_topk_groups == 0):
        refuse_option(name, f"{num_topk_groups} of {num_groups} groups", "both are 0, or some of as many")
    if num_groups:
        check_multiple(name, "the number of experts", experts, num_groups)
        if num_topk > experts // num_groups * num_topk_groups or experts // num_groups < 2:
            refuse_option(
                name,
                f"{num_topk} experts from {num_topk_groups} groups of {experts // num_groups}",
                "they have as many, two at least each",
            )
    check_option(name, "scoring_func", scoring_func, tuple(map(str, list(ScoringFunc)[:3])))
    shared = num_shared_experts if use_shared_as_routed else 0
    if (to_physical_map is None) != (logical_count is None):
        refuse_option(name, "to_physical_map and logical_count go together", "pass both, or none")
    more = 0
    if to_physical_map is not None:
        check(name, "to_physical_map", to_physical_map, (torch.int32,), shape=(experts + shared, None))
        check(name, "logical_count", logical_count, (torch.int32,), shape=(experts + shared,))
        more = to_physical_map.shape[1] - 1
    of_rank = (experts + more) // num_ep_ranks
    if of_rank < 1 or not 0 <= tp_rank < num_tp_ranks:
        refuse_option(
            name,
            f"{experts + more} experts on {num_ep_ranks} ranks, rank {tp_rank} of {num_tp_ranks}",
            "each rank has an expert; ranks count from 0",
        )
    for what, flags in (("mask", mask), ("fix_routing_mask", fix_routing_mask)):
        if flags is not None:
            check(name, what, flags, (torch.bool,), shape=(tokens,))
    if unmapped_topk_idx is not None:
        check(name, "unmapped_topk_idx", unmapped_topk_idx, (torch.int64,), shape=(tokens, num_topk), compact=False)
    elif fix_routing_mask is not None:
        refuse_option(name, "fix_routing_mask names tokens whose experts are in unmapped_topk_idx", "pass that too")
    idx = torch.empty((tokens, num_topk + shared), dtype=torch.int64, device=logits.device)
    weights = torch.empty((tokens, num_topk + shared), dtype=torch.float32, device=logits.device)
    if tokens:
        kernel = top2_sum(
            logits,
            kind=scoring_func,
            topk=num_topk,
            kept=num_topk_groups,
            groups=num_groups,
            experts=experts,
            shared=shared,
            masked=mask is not None,
            fixed=fix_routing_mask is not None,
            unmapped=unmapped_topk_idx is not None,
            mapped=to_physical_map is not None,
            warps=_warps(experts),
        )
        kernel(
            logits,
            bias,
            mask,
            fix_routing_mask,
            to_physical_map,
            logical_count,
            idx,
            unmapped_topk_idx,
            weights,
            routed_scaling_factor,
            ep_rank,
            of_rank,
            tp_rank,
            num_tp_ranks,
        )
    return idx, weights
