"""Quantization: casts to 8, 4 and 12 bits with scales, fused with SwiGLU, transposes and expansion, and back."""

from ..arguments import QuantTensor
from .casts import (
    cast_back,
    per_block_cast,
    per_block_cast_fp8,
    per_block_cast_lossless,
    per_block_cast_with_precomputed_sf,
    per_block_cast_with_sf_only,
    per_token_cast,
    per_token_cast_back,
    per_token_cast_fp8,
    per_token_cast_with_precomputed_sf,
    per_token_cast_with_sf_only,
    unpack_from_e2m1fn_x2,
)
from .channels import (
    per_channel_cast,
    per_channel_cast_and_transpose,
    per_channel_cast_fp8,
    per_channel_cast_fused,
    swiglu_forward_and_per_channel_cast_and_transpose,
)
from .swiglu import fused_swiglu_quant_fp8, swiglu_backward_and_per_token_cast, swiglu_forward_and_per_token_cast
