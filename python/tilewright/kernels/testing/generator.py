"""Shapes and tensors that kernels are tested and measured with. TK_FULL_TEST=1 asks for more of them."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable

import torch

from ..arguments import align
from ..config import get_device_num_sms


def _is_full() -> bool:
    return os.environ.get("TK_FULL_TEST") in ("1", "true", "True")


def generate_num_tokens(alignment: int = 1, is_benchmark: bool = False) -> list[int]:
    """Numbers of tokens, multiples of the alignment; 0 among them in full tests."""
    return [align(n, alignment) for n in ([0] if _is_full() and not is_benchmark else []) + [4001, 8001]]


def generate_hidden_sizes(align: int = 64) -> list[int]:
    """Numbers of columns that are multiples of `align`."""
    return [n for n in (576, 2048, 2560, 3072, 4096, 6144, 7168) if n % align == 0]


def generate_num_sms() -> list[int]:
    """Numbers of multiprocessors, all of the device last."""
    every = get_device_num_sms()
    return ([1] if _is_full() else []) + [max(1, every - 20), every]


def generate_moe_params(is_benchmark: bool = False) -> Iterable[dict]:
    """Mixtures of experts: tokens that are sent, experts of a token, experts of a rank, ranks."""
    more = _is_full()
    if more and not is_benchmark:
        yield {"num_send_tokens": 0, "num_topk": 1, "num_experts": 1, "num_ep_ranks": 1}
    for topk in (2, 6, 8, 9, *((1, 7) if more else ())):
        for experts in (72, 256, *((288, 384) if more else ())):
            for ranks in (8, 64, *((1, 72, 256) if more else ())):
                if experts % ranks == 0:
                    yield {"num_send_tokens": 4001, "num_topk": topk, "num_experts": experts // ranks, "num_ep_ranks": ranks}


def generate_topk_idx(params: dict) -> torch.Tensor:
    """Experts of the tokens that reach one rank, int64 (tokens, topk); -1 are those of other ranks."""
    tokens, topk, experts, ranks = (params[n] for n in ("num_send_tokens", "num_topk", "num_experts", "num_ep_ranks"))
    if tokens == 0:
        return torch.empty((0, topk), dtype=torch.int64, device="cuda")
    scores = torch.rand((tokens * ranks, experts * ranks), dtype=torch.bfloat16, device="cuda")
    idx = scores.topk(topk, dim=-1, sorted=False).indices
    idx = torch.where(idx < experts, idx, -1)
    return idx[(idx >= 0).any(1)]


def generate_e5m6_inputs(num_tokens: int, hidden: int, dtype: torch.dtype) -> Iterable[tuple[torch.Tensor, bool]]:
    """(tensor, whether all of its elements are a special one): random numbers; the ends of e5m6's small ones, beside its
    largest."""
    yield torch.randn((num_tokens, hidden), dtype=dtype, device="cuda"), False
    for value in (2.0**-20, 2.0**-14 * 63 / 64, 2.0**-14):
        x = torch.full((num_tokens, hidden), value, dtype=dtype, device="cuda")
        x[:, -1] = 65024.0
        yield x, True


def generate_rand_float(shape: tuple[int, ...]) -> torch.Tensor:
    """float32 of a magnitude that is drawn from all of them, at most an eighth of the largest."""
    largest = torch.finfo(torch.float32).max / 8
    x = torch.randn(shape, dtype=torch.float32, device="cuda") * 2.0 ** random.randint(-110, 126)
    return torch.where(torch.isfinite(x), x, torch.randn(shape, dtype=torch.float32, device="cuda")).clamp(-largest, largest)
