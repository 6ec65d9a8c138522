"""Mixtures of experts: which experts a token takes, where its rows go, and the sum of what comes back."""

from .choosing import top2_sum_gate, topk_gate, topk_gating, topk_sum_and_topk_group_idx
from .routing import (
    RoutingMap,
    aux_fi,
    expand_to_fused,
    expand_to_fused_with_sf,
    fused_expand_reduce,
    get_fused_mapping,
    group_count,
    inplace_unique_group_indices,
    mask_indices_by_tp,
    normalize_weight,
    reduce_fused,
    token_to_expert_map,
    weight_normalize,
)
