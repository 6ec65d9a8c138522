"""Calls of every function of tilewright.kernels at the shapes of models: what bench/gpu/kernel_library.py measures.

A case is a name, the module and the function that it calls, and a function from a size to its arguments. Shapes are those that
TileKernels' own benchmarks have (4096 or 8192 tokens, 7168 columns, 256 experts of which a token takes 8); functions that
move little have a second case with sixteen times the tokens, where their time is not that of a launch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch


class Case(NamedTuple):
    """make(size) gives (arguments, named arguments); changed: which arguments the function writes to."""

    name: str
    module: str  # behind the package's name
    function: str
    make: Callable[[Size], tuple[tuple, dict[str, Any]]]
    changed: tuple = ()


class Size(NamedTuple):
    """What cases are made of. `small` is for tests without a GPU."""

    device: str
    tokens: int = 8192
    hidden: int = 7168
    experts: int = 256
    topk: int = 8

    def of(self, *shape, dtype=torch.bfloat16):
        return torch.randn(shape, device=self.device, dtype=torch.float32).to(dtype)

    def indices(self, tokens=None, groups=None):
        """Experts of tokens, int64, different ones in a row."""
        scores = torch.rand((tokens or self.tokens, groups or self.experts), device=self.device)
        return scores.topk(self.topk, dim=1).indices

    def mapping(self):
        """(experts of pairs, what get_fused_mapping() gives for them)."""
        from tilewright.kernels import moe

        idx = self.indices()
        return idx, moe.get_fused_mapping(idx, self.experts, 0, 128)


def small(device="cpu"):
    return Size(device, tokens=128, hidden=512, experts=16, topk=2)


CASES: list[Case] = []


def case(module, function, name="", changed=()):
    """Adds a case for what a function of a Size gives: a tuple of arguments, or that and named ones."""

    def add(make):
        def made(size):
            found = make(size)
            return found if len(found) == 2 and isinstance(found[1], dict) else (found, {})

        CASES.append(Case(f"{function} {name}".strip(), module, function, made, changed))
        return make

    return add


# ---- moe

for _times in (1, 16):
    _name = f"x{_times}" if _times > 1 else ""

    @case("moe", "topk_gate", _name)
    def _(size, times=_times):
        return size.of(times * size.tokens, size.experts, dtype=torch.float32), size.topk

    @case("moe", "topk_sum_and_topk_group_idx", _name)
    def _(size, times=_times):
        return size.of(times * size.tokens, size.topk, size.experts // size.topk, dtype=torch.float32), 2, size.topk // 2

    @case("moe", "top2_sum_gate", _name)
    def _(size, times=_times):
        logits, bias = (size.of(*shape, dtype=torch.float32) for shape in ((times * size.tokens, size.experts), (size.experts,)))
        return logits, bias, size.topk, size.topk // 2, size.topk, False, 0, 2.5, 0, 1, 0, 1, "sigmoid"

    @case("moe", "group_count", _name)
    def _(size, times=_times):
        return size.indices(times * size.tokens), size.experts

    @case("moe", "aux_fi", _name)
    def _(size, times=_times):
        return size.indices(times * size.tokens), size.experts, size.topk

    @case("moe", "get_fused_mapping", _name)
    def _(size, times=_times):
        rows = times * size.tokens * size.topk + 128 * size.experts
        return size.indices(times * size.tokens), size.experts, rows // 128 * 128, 128

    @case("moe", "normalize_weight", _name)
    def _(size, times=_times):
        return (torch.rand((times * size.tokens, size.topk), device=size.device),)

    @case("moe", "inplace_unique_group_indices", _name, changed=(0,))
    def _(size, times=_times):
        return torch.randint(0, size.topk, (times * size.tokens, size.topk), device=size.device), size.topk

    @case("moe", "mask_indices_by_tp", _name)
    def _(size, times=_times):
        return size.indices(times * size.tokens), size.experts, 8, 1, 2


@case("moe", "topk_gating")
def _(size):
    return size.of(size.tokens, size.experts, dtype=torch.float32), size.topk


@case("moe", "weight_normalize")
def _(size):
    return (torch.rand((size.tokens, size.topk), device=size.device),)


@case("moe", "token_to_expert_map")
def _(size):
    return size.indices(), size.experts, 128


@case("moe", "expand_to_fused")
def _(size):
    _, found = size.mapping()
    return size.of(size.tokens, size.hidden), found[3], found[0]


@case("moe", "expand_to_fused_with_sf")
def _(size):
    from tilewright.kernels import quant

    _, found = size.mapping()
    return quant.per_token_cast(size.of(size.tokens, size.hidden), "e4m3", 128), 128, found[3], found[0]


@case("moe", "reduce_fused")
def _(size):
    idx, found = size.mapping()
    return size.of(len(found[0]), size.hidden), torch.rand(idx.shape, device=size.device), found[3]


@case("moe", "fused_expand_reduce")
def _(size):
    from tilewright.kernels import moe

    idx = size.indices()
    return size.of(size.tokens, size.hidden), moe.token_to_expert_map(idx, size.experts), torch.rand(idx.shape, device=size.device)


# ---- quant

_LAYOUTS = {"": (False, False, False), "packed": (True, True, True)}  # columns, rounded, packed

for _fmt, _group in (("e4m3", 128), ("e4m3", 32), ("e2m1", 32), ("e5m6", 0)):
    for _layout, _flags in _LAYOUTS.items():
        if _layout and _group == 128:
            continue

        @case("quant", "per_token_cast", f"bf16 {_fmt} {_group or 'rows'} {_layout}".strip())
        def _(size, fmt=_fmt, group=_group, flags=_flags):
            return size.of(size.tokens, size.hidden), fmt, group or size.hidden, None, *flags


@case("quant", "per_token_cast", "f32 e4m3 128")
def _(size):
    return size.of(size.tokens, size.hidden, dtype=torch.float32), "e4m3", 128


def _narrow(size, fmt, group, rounded=False):
    from tilewright.kernels import quant

    return quant.per_token_cast(size.of(size.tokens, size.hidden), fmt, group, None, False, rounded, False)


@case("quant", "per_token_cast", "e4m3 e2m1 32")
def _(size):
    from tilewright.kernels import quant

    return quant.per_block_cast(size.of(size.tokens, size.hidden), "e4m3", (128, 128)), "e2m1", 32, (128, 128)


@case("quant", "per_token_cast_fp8")
def _(size):
    return (size.of(size.tokens, size.hidden),)


@case("quant", "per_token_cast_with_sf_only")
def _(size):
    return size.of(size.tokens, size.hidden), "e4m3", 128


@case("quant", "per_token_cast_with_precomputed_sf")
def _(size):
    x = size.of(size.tokens, size.hidden)
    return x, "e4m3", 128, torch.rand((size.tokens, size.hidden // 128), device=size.device) + 0.5


@case("quant", "per_block_cast")
def _(size):
    return size.of(size.tokens, size.hidden), "e4m3", (128, 128)


@case("quant", "per_block_cast_fp8")
def _(size):
    return (size.of(size.tokens, size.hidden),)


@case("quant", "per_block_cast_with_sf_only")
def _(size):
    return size.of(size.tokens, size.hidden), "e4m3", (128, 128)


@case("quant", "per_block_cast_with_precomputed_sf")
def _(size):
    scales = torch.rand((math.ceil(size.tokens / 128), size.hidden // 128), device=size.device) + 0.5
    return size.of(size.tokens, size.hidden), "e4m3", (128, 128), scales


@case("quant", "per_block_cast_lossless")
def _(size):
    return _narrow(size, "e2m1", 32, True), "e4m3", (1, 32), (128, 128), False, True


for _fmt, _group in (("e4m3", 128), ("e2m1", 32)):

    @case("quant", "cast_back", _fmt)
    def _(size, fmt=_fmt, group=_group):
        return _narrow(size, fmt, group), "bf16", (1, group)


@case("quant", "cast_back", "e5m6")
def _(size):
    return _narrow(size, "e5m6", size.hidden), "bf16", (1, size.hidden), "e5m6"


@case("quant", "per_token_cast_back")
def _(size):
    return _narrow(size, "e4m3", 128), "bf16", 128


@case("quant", "unpack_from_e2m1fn_x2")
def _(size):
    return (_narrow(size, "e2m1", 32)[0],)


@case("quant", "per_channel_cast")
def _(size):
    return size.of(size.tokens, size.hidden), "e4m3", 128


@case("quant", "per_channel_cast_fp8")
def _(size):
    return (size.of(size.tokens, size.hidden),)


@case("quant", "per_channel_cast_and_transpose")
def _(size):
    return size.of(size.tokens, size.hidden), "e4m3", 128


@case("quant", "per_channel_cast_fused")
def _(size):
    return _narrow(size, "e4m3", 128), "e4m3", 128, True, 128


@case("quant", "fused_swiglu_quant_fp8")
def _(size):
    return size.of(size.tokens, size.hidden // 2), size.of(size.tokens, size.hidden // 2)


@case("quant", "swiglu_forward_and_per_token_cast")
def _(size):
    return size.of(size.tokens, size.hidden), "e4m3", 128


@case("quant", "swiglu_forward_and_per_token_cast", "weighted")
def _(size):
    idx, found = size.mapping()
    x = size.of(len(found[0]), 2048 if size.hidden > 1024 else 256)
    return x, "e4m3", 128, found[2], torch.rand(idx.shape, device=size.device), found[0]


@case("quant", "swiglu_forward_and_per_channel_cast_and_transpose")
def _(size):
    return size.of(size.tokens, size.hidden), "e4m3", 128


@case("quant", "swiglu_backward_and_per_token_cast")
def _(size):
    from tilewright.kernels import quant

    idx, found = size.mapping()
    rows, hidden = len(found[0]), 512 if size.hidden > 1024 else 256
    x = quant.per_token_cast(size.of(rows, 2 * hidden), "e4m3", 128)
    weights = torch.rand(idx.shape, device=size.device)
    return x, size.of(rows, hidden), weights, found[2], found[3], 128, True


# ---- transpose

for _dtype in (torch.bfloat16, torch.float32, torch.float8_e4m3fn):

    @case("transpose", "transpose", str(_dtype).rpartition(".")[2])
    def _(size, dtype=_dtype):
        return (size.of(size.tokens, size.hidden, dtype=dtype),)


@case("transpose", "batched_transpose")
def _(size):
    return (size.of(8, size.tokens // 8, size.hidden),)


# ---- engram


@case("engram", "engram_hash")
def _(size):
    from tilewright.kernels.torch.engram import make_offsets

    ids = torch.randint(0, 100000, (size.tokens, 3), dtype=torch.int32, device=size.device)
    factors = torch.randint(0, 100000, (2, 3), device=size.device)
    sizes = torch.randint(100000, 1000000, (2, 2, 8), dtype=torch.int32, device=size.device)
    return ids, factors, sizes, make_offsets(sizes)


def _gate(size):
    x, k, v = (size.of(*shape) for shape in (*[(size.tokens // 2, 4, size.hidden)] * 2, (size.tokens // 2, size.hidden)))
    return x, k, v, size.of(4, size.hidden, dtype=torch.float32)


@case("engram", "engram_gate_fwd")
def _(size):
    return *_gate(size), 1e-20, 1e-6


@case("engram", "engram_gate_bwd")
def _(size):
    from tilewright.kernels import engram

    x, k, v, weight = _gate(size)
    _, *saved = engram.engram_gate_fwd(x, k, v, weight, 1e-20, 1e-6)
    return torch.randn_like(x), x, k, v, weight, *saved, 1e-6


@case("engram", "fused_weight")
def _(size):
    return size.of(4, size.hidden), size.of(4, size.hidden)


@case("engram", "grad_w_reduce", changed=(3, 4))
def _(size):
    from tilewright.kernels.config import get_num_sms

    parts = size.of(get_num_sms(), 4, size.hidden, dtype=torch.float32)
    grads = (torch.zeros((4, size.hidden), device=size.device) for _ in range(2))
    return parts, size.of(4, size.hidden), size.of(4, size.hidden), *grads


@case("engram", "engram_gate_forward")
def _(size):
    return size.of(size.tokens, size.hidden), size.of(size.topk, size.hidden)


@case("engram", "engram_gate_backward")
def _(size):
    x = size.of(size.tokens, size.hidden)
    return size.of(size.tokens, size.topk), x, size.of(size.topk, size.hidden), torch.randn_like(x)


@case("engram", "engram_weight_grad")
def _(size):
    return size.of(size.tokens, size.topk), size.of(size.tokens, size.hidden)


# ---- hyper-connections, four streams

_OPS = "modeling.mhc.ops"


@case(_OPS, "expand_to_mhc")
def _(size):
    return size.of(1, size.tokens, size.hidden), 4


def _streams(size, tokens=None):
    return size.of(1, tokens or size.tokens // 2, 4, size.hidden)


@case(_OPS, "mhc_pre_norm_fn")
def _(size):
    return _streams(size), size.of(24, 4 * size.hidden, dtype=torch.float32), None, 1e-6, False


def _weights(size, times, columns, scales):
    shapes = (1, times * size.tokens, columns), (scales,), (columns,)
    return tuple(size.of(*shape, dtype=torch.float32) for shape in shapes)


for _times in (1, 16):
    _name = f"x{_times}" if _times > 1 else ""

    @case(_OPS, "mhc_pre_split_mixes", _name)
    def _(size, times=_times):
        return *_weights(size, times, 24, 3), 4, 2.0, 1e-6

    @case(_OPS, "mhc_head_compute_mix", _name)
    def _(size, times=_times):
        return *_weights(size, times, 4, 1), 1e-6

    @case(_OPS, "sinkhorn_normalize", _name)
    def _(size, times=_times):
        return (size.of(1, times * size.tokens, 4, 4, dtype=torch.float32),)


@case("mhc", "mhc_mix_split")
def _(size):
    return *_weights(size, 1, 24, 3), 4


@case("mhc", "sinkhorn_normalize", "of mhc")
def _(size):
    return (size.of(1, size.tokens, 4, 4, dtype=torch.float32),)


@case("mhc", "mhc_mix_apply")
def _(size):
    x = _streams(size)
    return x, torch.rand((*x.shape[:-1], 1), device=size.device)


@case(_OPS, "mhc_pre_apply_mix")
def _(size):
    x = _streams(size)
    return x, torch.rand((*x.shape[:-1], 1), device=size.device)


def _post(size):
    x = _streams(size)
    return (
        size.of(1, x.shape[1], size.hidden), x,
        torch.rand((*x.shape[:-1], 1), device=size.device), torch.rand((*x.shape[:-1], 4), device=size.device),
    )  # fmt: skip


@case(_OPS, "mhc_post")
def _(size):
    return _post(size)


@case(_OPS, "mhc_post_fwd")
def _(size):
    return _post(size)


@case(_OPS, "mhc_post_bwd")
def _(size):
    return *_post(size), _streams(size), False


@case(_OPS, "mhc_pre_big_fuse")
def _(size):
    fn = size.of(24, 4 * size.hidden, dtype=torch.float32) * 1e-4
    scale, base = size.of(3, dtype=torch.float32), size.of(24, dtype=torch.float32)
    return _streams(size), fn, scale, base, 1e-6, 1e-6, 1e-6, 1.0, 10


@case(_OPS, "mhc_multilayer_recompute", changed=(5, 6))
def _(size):
    x, layers = _streams(size, size.tokens // 4), 4
    mixes = [torch.rand((*x.shape[:-1], 1), device=size.device) for _ in range(layers)]
    combs = [torch.rand((*x.shape[:-1], 4), device=size.device) for _ in range(layers)]
    outputs = [size.of(1, x.shape[1], size.hidden) for _ in range(layers)]
    inputs, residuals = [torch.empty_like(y) for y in outputs], [torch.empty_like(x) for _ in range(layers)]
    return x, mixes, outputs, mixes, combs, inputs, residuals
