"""Calls of TileOPs' operators as calls of tilewright.ops: by class, from what an operator was made with and what it is given."""

import re

def _none(name, given):
    raise NotImplementedError(f"{name} with {given}")


def _implicit(x, dim):
    """The dimension that PyTorch's softmax takes where none is given."""
    return dim if dim is not None else 0 if x.dim() in (0, 1, 3) else 1


def _reduced(name):
    def of(ops, given, x):
        named = {n: given[n] for n in ("keepdim", "correction") if n in given}
        return getattr(ops, name)(x, given["dim"], **named)

    return of


def _named(name, *options):
    """The function of that name, with these options of the operator behind its tensors."""
    return lambda ops, given, *tensors: getattr(ops, name)(*tensors, *(given[o] for o in options))


def _keyed(name, *first, **options):
    """The same with options by keyword: its name there=the operator's."""
    return lambda ops, given, *tensors: getattr(ops, name)(*tensors, *(given[o] for o in first), **{n: given[o] for n, o in options.items()})


def _pool(name, *options):
    return lambda ops, given, x: getattr(ops, name)(x, **{o: given[o] for o in options})


def _placed(name, count):
    return lambda ops, given: getattr(ops, name)(given["seq_len"], given[count], given.get("dtype") or "float32", "cuda")


def _window(given):
    left, right = (given.get(f"window_size_{side}", -1) for side in ("left", "right"))
    return None if left < 0 and right < 0 else (left if left >= 0 else None, right if right >= 0 else None)


def _attention(ops, given, q, k, v):
    if given.get("softcap"):
        _none("attention", given)
    return ops.attention(q, k, v, causal=given["is_causal"], scale=given.get("sm_scale"), window=_window(given))


def _varlen(ops, given, q, k, v, starts_q, starts_k, longest=None):
    longest = longest if isinstance(longest, int) else given.get("max_seqlen_q")
    return ops.attention_varlen(q, k, v, starts_q, starts_k, causal=given["is_causal"], scale=given.get("sm_scale"), window=_window(given),
                                max_seqlen_q=longest, max_seqlen_k=given.get("max_seqlen_kv", longest))  # fmt: skip


def _one_query(ops, given, q, k, v):
    return ops.decode_attention(q if q.dim() == 3 else q[:, 0], k, v, scale=given.get("sm_scale")).view(q.shape)


def _queries(ops, given, q, k, v):
    return _one_query(ops, given, q, k, v) if q.shape[1] == 1 else ops.attention(q, k, v)


def _paged(ops, given, q, k, v, lengths, block_table):
    page = given["page_size"]
    k, v = (t.view(-1, page, *t.shape[-2:]) for t in (k, v))
    return ops.decode_attention(q if q.dim() == 3 else q[:, 0], k, v, lengths=lengths, block_table=block_table).view(q.shape)


def _moe(ops, given, hidden, gating, w_gate_up, w_down, bias=None):
    return ops.fused_moe(hidden, gating, w_gate_up, w_down, given["top_k"], correction_bias=bias, scoring_func=given["scoring_func"],
                         renormalize=given["renormalize"], routed_scaling_factor=given["routed_scaling_factor"])  # fmt: skip


_POOL = ("kernel_size", "stride", "padding", "ceil_mode")
CALLS = {
    "Add": lambda ops, given, a, b: ops.add(a, b, alpha=given.get("alpha", 1)),
    "Sub": lambda ops, given, a, b: ops.sub(a, b, alpha=given.get("alpha", 1)),
    "Div": lambda ops, given, a, b: ops.div(a, b, rounding_mode=given.get("rounding_mode")),
    "Lerp": _named("lerp", "weight"),
    "LerpTensor": _named("lerp"),
    "Round": lambda ops, given, x: ops.round(x) if not given.get("decimals") else _none("round", given),
    "Gelu": lambda ops, given, x: (ops.gelu_tanh if given.get("approximate") == "tanh" else ops.gelu)(x),
    "LeakyRelu": _named("leaky_relu", "negative_slope"),
    "Elu": _named("elu", "alpha"),
    "Hardtanh": _named("hardtanh", "min_val", "max_val"),
    "Softplus": _named("softplus", "beta", "threshold"),
    "ClampScalar": _named("clamp", "min", "max"),
    "MaskedFillScalar": _named("masked_fill", "value"),
    "NanToNum": _named("nan_to_num", "nan", "posinf", "neginf"),
    "Alibi": _placed("alibi", "num_heads"),
    "Sinusoidal": _placed("sinusoidal", "d_model"),
    **{n: _reduced(f) for n, f in (
        ("Sum", "sum"), ("Mean", "mean"), ("Amax", "amax"), ("Amin", "amin"), ("Prod", "prod"), ("Std", "std"), ("Var", "var"), ("VarMean", "var_mean"),
        ("All", "all"), ("Any", "any"), ("CountNonzero", "count_nonzero"), ("L1Norm", "l1_norm"), ("L2Norm", "l2_norm"), ("InfNorm", "inf_norm"),
        ("LogSumExp", "logsumexp"), ("Argmax", "argmax"), ("Argmin", "argmin"), ("Cumsum", "cumsum"), ("Cumprod", "cumprod"))},
    "Softmax": lambda ops, given, x: ops.softmax(x, _implicit(x, given["dim"])),
    "LogSoftmax": lambda ops, given, x: ops.log_softmax(x, _implicit(x, given["dim"])),
    "LayerNorm": _keyed("layer_norm", epsilon="eps"),
    "RMSNorm": _keyed("rms_norm", epsilon="eps"),
    "FusedAddLayerNorm": _keyed("fused_add_layer_norm", epsilon="eps"),
    "FusedAddRMSNorm": _keyed("fused_add_rms_norm", epsilon="eps"),
    "AdaLayerNorm": _keyed("ada_layer_norm", epsilon="eps"),
    "AdaLayerNormZero": _keyed("ada_layer_norm_zero", epsilon="eps"),
    "GroupNorm": lambda ops, given, x, w=None, b=None: ops.group_norm(x, given["num_groups"], w, b, epsilon=given["eps"]),
    "InstanceNorm": _keyed("instance_norm", use_input_stats="use_input_stats", momentum="momentum", epsilon="eps"),
    "BatchNorm": _keyed("batch_norm", training="training", momentum="momentum", epsilon="eps"),
    "BatchNormBwd": _named("batch_norm_backward"),
    "RopeNeox": _named("rope_neox", "layout", "base"),
    "RopeNonNeox": _named("rope_non_neox", "layout", "base"),
    "RopeLlama31": _named("rope_llama31", "layout", "base", "scale_factor", "low_freq_factor", "high_freq_factor", "original_max_position"),
    "RopeYarn": _named("rope_yarn", "layout", "base", "scale", "original_max_position", "beta_fast", "beta_slow", "attn_factor"),
    "RopeLongRope": _named("rope_long_rope", "layout", "base", "rescale_factors", "max_position_embeddings", "original_max_position_embeddings"),
    "RopeNeoxPositionIds": _named("rope_neox_position_ids", "max_position", "base", "rotary_dim"),
    "Dropout": _named("dropout", "p", "seed", "training"),
    **{f"Conv{n}d": _keyed(f"conv{n}d", stride="stride", padding="padding", dilation="dilation", groups="groups") for n in (1, 2, 3)},
    **{f"AvgPool{n}d": _pool(f"avg_pool{n}d", *_POOL, "count_include_pad", *(["divisor_override"] if n > 1 else [])) for n in (1, 2, 3)},
    **{f"MaxPool{n}d{i}": _pool(f"max_pool{n}d{'_indices' if i else ''}", *_POOL, "dilation") for n in (1, 2, 3) for i in ("", "Indices")},
    "AdaptiveAvgPool2d": _named("adaptive_avg_pool2d", "output_size"),
    "AdaptiveMaxPool2d": _named("adaptive_max_pool2d", "output_size"),
    "AdaptiveMaxPool2dIndices": _named("adaptive_max_pool2d_indices", "output_size"),
    "FFTC2C": _named("fft"),
    "TopkSelector": _named("topk_selector", "topk"),
    "FP8Quant": _named("fp8_quant"),
    "FP8LightningIndexer": lambda ops, given, *x: ops.lightning_indexer(*x, clean_logits=given["clean_logits"]),
    "Gemm": _keyed("matmul", transpose_a="trans_a", transpose_b="trans_b"),
    "Bmm": _named("matmul"),
    "GemmFp8": _keyed("gemm_fp8", out_dtype="out_dtype"),
    "GemmW4A16": _keyed("gemm_w4a16", group_size="group_size"),
    "GroupedGemm": lambda ops, given, a, b, sizes, offsets, padded=None: ops.grouped_matmul(
        a, b, sizes, offsets, transpose_a=given["transpose_a"], transpose_b=given["transpose_b"]),
    "MoeGroupedGemmNopad": _named("moe_grouped_matmul"),
    "MoeGateUp": lambda ops, given, a, b, sizes, offsets: ops.moe_gate_up(a, b, sizes, offsets, given["activation"]),
    "FusedTopK": _named("moe_topk", "top_k", "scoring_func", "renormalize"),
    "MoePermuteAlign": _named("moe_permute_align", "num_experts", "block_size"),
    "MoePermuteNopad": lambda ops, given, x, ids, expert_map=None: ops.moe_permute(x, ids, given["num_experts"], expert_map),
    "MoeUnpermute": _named("moe_unpermute"),
    "FusedMoe": _moe,
    "GLA": lambda ops, given, q, k, v, g, state=None: ops.gla(q, k, v, g, state, scale=given["scale"] if given["scale"] > 0 else None),
    "GLADecode": lambda ops, given, q, k, v, g, state: ops.gla_decode(q, k, v, g, state, scale=given["scale"] if given["scale"] > 0 else None),
    "DeltaNet": lambda ops, given, *x: ops.delta_net(*x, layout="bhtd"),
    "DeltaNetDecode": _named("delta_net_decode"),
    "GatedDeltaNetBHTD": lambda ops, given, *x: ops.gated_delta_net(*x, layout="bhtd"),
    "GatedDeltaNetBTHD": _named("gated_delta_net"),
    "GatedDeltaNetPrefillBHTD": lambda ops, given, *x: ops.gated_delta_net(*x, layout="bhtd"),
    "GatedDeltaNetPrefillBTHD": _named("gated_delta_net"),
    "GatedDeltaNetDecode": _named("gated_delta_net_decode"),
    "DaCumsum": lambda ops, given, dt, A, bias=None: ops.ssd_da_cumsum(
        dt, A, given["chunk_len"], bias, dt_softplus=given["dt_softplus"], dt_min=given["dt_min"], dt_max=given["dt_max"]),
    "CBProducer": lambda ops, given, C, B: ops.ssd_chunk_products(C, B, given["chunk_len"]),
    "SSDChunkState": _named("ssd_chunk_state"),
    "SSDStatePassing": _named("ssd_state_passing"),
    "SSDChunkScan": _named("ssd_chunk_scan"),
    "SSDDecode": _named("ssd_decode"),
    "Mamba2": lambda ops, given, *x: ops.mamba2(*x, dt_softplus=given["dt_softplus"]),
    "MHCPre": _named("mhc_pre"),
    "MHCPost": _named("mhc_post"),
    "EngramGateConv": _keyed("engram_gate_conv", epsilon="eps"),
    "EngramDecode": _keyed("engram_decode", dilation="dilation", max_conv_len="max_conv_len", epsilon="eps"),
    "MultiHeadAttention": _attention,
    "GroupedQueryAttention": _attention,
    "GroupedQueryAttentionSlidingWindow": _attention,
    "GroupedQueryAttentionSlidingWindowVarlen": _varlen,
    "GroupedQueryAttentionPrefillVarlen": _varlen,
    "MultiHeadAttentionDecodeWithKVCache": _queries,
    "GroupedQueryAttentionDecodeWithKVCache": _one_query,
    "MultiHeadAttentionDecodePagedWithKVCache": _paged,
    "GroupedQueryAttentionDecodePagedWithKVCache": _paged,
    "MultiHeadLatentAttentionDecodeWithKVCache": _named("mla_decode"),
    "DeepSeekSparseAttentionDecodeWithKVCache": lambda ops, given, q, kv, indices: ops.dsa_attention(
        q, kv, indices, dim_tail=given["dim_tail"], scale=given["sm_scale"], is_causal=given["is_causal"], q_start=given["q_start_index_s"],
        stride=given["stride_kv"]),
}
RANDOM = ("Dropout",)  # each library draws its own numbers
# Places of the largest: of equal ones, or equal but for rounding, each library takes its own.
TIES = ("Argmax", "Argmin", "TopkSelector", "FusedTopK", *(f"{kind}MaxPool{n}dIndices" for kind in ("", "Adaptive") for n in (1, 2, 3)))
FIRST = ("GLA", "DeltaNet", "GatedDeltaNet", "MoePermute", "Mamba2", "DeepSeek", "EngramGate", "MultiHead", "GroupedQuery")  # the first result is compared


def stem(name):
    """The operator that a class is called by: GemmFwdOp is Gemm, BatchNormBwdOp BatchNormBwd."""
    return re.sub(r"(Fwd)?Op$", "", name)


def call_of(name, ops):
    """The call of a class of operators, (ops, made with, *tensors) -> results; None where there is no function of the kind."""
    found = CALLS.get(stem(name))
    if found is None:
        plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem(name)).lower()
        if plain in ops.__all__:
            return _named(plain)
    return found
