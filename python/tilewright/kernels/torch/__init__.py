"""References in plain PyTorch of what this package computes."""

from .cast import cast, cast_back, per_block_cast_fp8, per_channel_cast_fp8, per_token_cast_fp8
from .cast_e5m6 import cast_back_from_e5m6, cast_to_e5m6
from .expand_to_fused import expand_to_fused, expand_to_fused_with_sf
from .mhc import (
    expand_to_mhc_ref,
    mhc_head_compute_mix_ref,
    mhc_post_ref,
    mhc_pre_apply_mix_ref,
    mhc_pre_norm_fn_ref,
    mhc_pre_split_mixes_ref,
    sinkhorn_normalize_ref,
)
from .moe import aux_fi, group_count, inplace_unique_group_indices, mask_indices_by_tp, normalize_weight
from .per_channel_cast_fused import per_channel_cast_fused
from .reduce_fused import reduce_fused
from .swiglu import swiglu_backward, swiglu_forward
from .topk import stable_topk, top2_sum_gate, topk_gating, topk_sum_and_topk_group_idx
