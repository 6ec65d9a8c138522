"""Kernels by name: matrix products, attention, norms, reductions, scans, convolutions, mixtures of experts and more, for tensors of
PyTorch, NumPy, CuPy or any library with DLPack, in the processor's memory or a GPU's. docs/ops.md lists them.

import tilewright.ops as ops
y = ops.matmul(x, w, bias=b, activation="gelu")

The module of a family is imported when one of its functions is named.
"""
import importlib
from typing import Any

# By module: what users import of it.
_FAMILIES = {
    "attending": (
        "attention attention_varlen"
    ),
    "calls": (
        "Spec plan seal unseal"
    ),
    "convolutions": (
        "conv1d conv2d conv3d"
    ),
    "decoding": (
        "decode_attention"
    ),
    "elementwise": (
        "abs acos acosh add addcdiv addcmul asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor "
        "cast ceil celu clamp copysign cos cosh div elu eq erf exp exp2 expm1 floor floor_divide fmax fmin fmod frac ge "
        "gelu gelu_and_mul gelu_tanh gelu_tanh_and_mul gt hardshrink hardsigmoid hardswish hardtanh hypot isfinite isinf "
        "isnan le leaky_relu lerp log log10 log1p log2 log_sigmoid logaddexp logical_and logical_not logical_or "
        "logical_xor lt masked_fill maximum minimum mish mul nan_to_num ne neg pow prelu reciprocal relu relu6 "
        "relu_and_mul remainder round rsqrt selu sigmoid sigmoid_and_mul sign silu silu_and_mul sin sinh softplus "
        "softshrink softsign sqrt square sub tan tanh tanhshrink threshold trunc where"
    ),
    "experts": (
        "fused_moe grouped_matmul moe_experts moe_gate_up moe_grouped_matmul moe_permute moe_permute_align moe_topk moe_unpermute"
    ),
    "fourier": (
        "fft fft2 ifft ifft2 irfft rfft"
    ),
    "gathering": (
        "dsa_attention lightning_indexer mla_decode nsa_attention nsa_compress nsa_compressed_attention nsa_selected_attention "
        "nsa_topk"
    ),
    "norms": (
        "ada_layer_norm ada_layer_norm_zero batch_norm batch_norm_backward fused_add_layer_norm fused_add_rms_norm group_norm "
        "instance_norm"
    ),
    "pooling": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool1d_indices "
        "adaptive_max_pool2d adaptive_max_pool2d_indices adaptive_max_pool3d adaptive_max_pool3d_indices avg_pool1d "
        "avg_pool2d avg_pool3d max_pool1d max_pool1d_indices max_pool2d max_pool2d_indices max_pool3d max_pool3d_indices"
    ),
    "products": (
        "matmul"
    ),
    "quantized": (
        "fp8_quant gemm_fp8 gemm_w4a16"
    ),
    "recurrences": (
        "delta_net delta_net_decode gated_delta_net gated_delta_net_decode gla gla_decode retention"
    ),
    "reductions": (
        "all amax amin any count_nonzero inf_norm l1_norm l2_norm logsumexp max mean min prod std sum var var_mean"
    ),
    "rotary": (
        "alibi dropout rope_llama31 rope_long_rope rope_neox rope_neox_position_ids rope_non_neox rope_yarn sinusoidal"
    ),
    "rows": (
        "layer_norm log_softmax rms_norm softmax"
    ),
    "scans": (
        "cummax cummin cumprod cumsum logcumsumexp"
    ),
    "streams": (
        "engram_decode engram_gate engram_gate_conv engram_hash mhc_post mhc_pre sinkhorn_normalize"
    ),
    "shapes": (
        "transpose"
    ),
    "sorting": (
        "argmax argmin argsort kthvalue median sort topk topk_selector"
    ),
    "state_spaces": (
        "mamba2 ssd_chunk_products ssd_chunk_scan ssd_chunk_state ssd_da_cumsum ssd_decode ssd_state_passing"
    ),
}
_HOME = {name: module for module, names in _FAMILIES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        if name in _FAMILIES:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    return found


__all__ = sorted(_HOME)


def __dir__() -> list[str]:
    return __all__
