"""Where rows of tokens go, and what is added up of what comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from ..arguments import QuantTensor, align, ceil_div, check, check_option, check_pair, refuse_option
from . import mapping_programs, row_programs


class RoutingMap(NamedTuple):
    """Where the pairs of tokens and slots go when they are sorted by expert: what get_fused_mapping() returns."""

    pos_to_expert: torch.Tensor
    pos_to_token: torch.Tensor
    pos_to_token_topk: torch.Tensor
    token_topk_to_pos: torch.Tensor
    expert_start: torch.Tensor
    expert_end: torch.Tensor
    num_tokens_per_expert: torch.Tensor
    num_tokens_per_expert_list: list[int]


_FEW_PAIRS = 1 << 17  # up to which blocks add up by themselves what the others have counted, of 512 experts at most
_BITS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
_INDICES = {torch.int64: "int64", torch.int32: "int32"}
_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16", torch.float8_e4m3fn: "float8_e4m3fn"}


def _count(function, indices, groups, factor, total, as_share):
    check(function, "indices", indices, tuple(_INDICES), rank=2)
    if groups < 1:
        refuse_option(function, f"{groups} groups", "there is one at least")
    out = torch.empty((groups,), dtype=torch.float32 if as_share else torch.int32, device=indices.device)
    kernel = mapping_programs.count(indices, index=_INDICES[indices.dtype], groups=groups, as_share=as_share)
    kernel(indices.view(-1), out, factor, total)
    return out


def group_count(group_idx: torch.Tensor, num_groups: int) -> torch.Tensor:
    """How many entries of group_idx (tokens, topk), int64 or int32, each group has: int32 (num_groups,). Other numbers are no
    group's."""
    return _count("group_count", group_idx, num_groups, 1.0, 1.0, False)


def aux_fi(topk_idx: torch.Tensor, num_experts: int, num_aux_topk: int) -> torch.Tensor:
    """How often each expert is chosen, divided by the mean: count * num_experts / (tokens * num_aux_topk), float32
    (num_experts,).

    topk_idx: int64 or int32 (tokens, topk); negative entries are no expert's.
    """
    total = topk_idx.shape[0] * num_aux_topk
    return _count("aux_fi", topk_idx, num_experts, float(num_experts), float(total or 1), True)


def get_fused_mapping(
    topk_idx: torch.Tensor, num_experts: int, num_expanded_tokens: int, alignment: int, force_no_sync: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, list[int]]:
    """Where the pairs of tokens and slots go when they are sorted by expert, pairs of one expert in their order.

    topk_idx: int64 or int32 (tokens, topk); pairs with a negative expert go nowhere. alignment: what the rows of an expert are padded
    to a multiple of. num_expanded_tokens: the rows that there are; 0: as many as are needed, for which the call waits for the
    device, or with force_no_sync as many as could be.

    Returns int32 tensors pos_to_expert, pos_to_token, pos_to_token_topk (rows,), -1 in padding; token_topk_to_pos (tokens,
    topk), -1 of pairs that go nowhere; expert_start, expert_end and num_tokens_per_expert (num_experts,), padding included;
    and the last one as a list, empty unless the call waited.
    """
    name = "get_fused_mapping"
    check(name, "topk_idx", topk_idx, tuple(_INDICES), rank=2)
    if num_experts < 1 or alignment < 1:
        refuse_option(name, f"{num_experts} experts, alignment {alignment}", "both are 1 at least")
    tokens, topk = topk_idx.shape
    waits = num_expanded_tokens == 0 and not force_no_sync
    rows = num_expanded_tokens or (tokens * topk + (alignment - 1) * num_experts) // alignment * alignment
    sizes = [rows, rows, rows, tokens * topk, num_experts, num_experts, num_experts]
    apart = [align(n, 4) for n in sizes]  # all of them in one allocation, each from a multiple of 16 bytes
    parts = torch.empty((sum(apart),), dtype=torch.int32, device=topk_idx.device).split(apart)
    *by_row, to_pos, start, end, number = (t if n == whole else t[:n] for t, n, whole in zip(parts, sizes, apart))
    kernel = mapping_programs.fused_mapping(
        topk_idx,
        index=_INDICES[topk_idx.dtype],
        experts=num_experts,
        topk=max(topk, 1),
        alignment=alignment,
        few=tokens * topk <= _FEW_PAIRS and num_experts <= 512,
    )
    kernel(topk_idx.view(-1), *by_row, to_pos, start, end, number)
    numbers = number.tolist() if waits else []
    if waits:
        rows = sum(numbers)
        by_row = [t.narrow(0, 0, rows) for t in by_row]
    return (*by_row, to_pos.view(tokens, topk), start, end, number, numbers)


def _check_mapping(function, tokens, token_topk_to_pos, pos_to_expert):
    check(function, "token_topk_to_pos", token_topk_to_pos, (torch.int32,), shape=(tokens, None))
    check(function, "pos_to_expert", pos_to_expert, (torch.int32,), rank=1)


def _tile(values):
    """Columns and threads of a block of rows: 16 KB at most, up to eight pieces of 16 bytes for a thread."""
    piece, columns = 16 // values.element_size(), values.shape[1]
    pieces = ceil_div(columns, piece * ceil_div(columns, 1024 * piece))
    threads = 64 if pieces <= 512 else 128
    return {"width": align(pieces, threads) * piece, "threads": threads}


def _expand(values, scales):
    """(the dtype of integers of an element's size, the kernel that takes rows as those)."""
    kind = _BITS[values.element_size()]
    return getattr(torch, kind), row_programs.expand(values, kind=kind, scales=scales, **_tile(values))


def expand_to_fused(x: torch.Tensor, token_topk_to_pos: torch.Tensor, pos_to_expert: torch.Tensor) -> torch.Tensor:
    """(rows, hidden): row token_topk_to_pos[t, k] is row t of x (tokens, hidden); rows where pos_to_expert is negative are zeros.

    x: any dtype of 1 to 8 bytes. token_topk_to_pos: int32 (tokens, topk), negative: nowhere. pos_to_expert: int32 (rows,).
    """
    name = "expand_to_fused"
    check(name, "x", x, rank=2)
    _check_mapping(name, x.shape[0], token_topk_to_pos, pos_to_expert)
    out = torch.empty((pos_to_expert.shape[0], x.shape[1]), dtype=x.dtype, device=x.device)
    if out.numel():
        view, kernel = _expand(x, "")
        kernel(x.view(view), out.view(view), token_topk_to_pos, pos_to_expert, None, None)
    return out


def expand_to_fused_with_sf(
    x: QuantTensor,
    num_per_channels: int,
    token_topk_to_pos: torch.Tensor,
    pos_to_expert: torch.Tensor,
    use_tma_aligned_col_major_sf: bool = False,
) -> QuantTensor:
    """expand_to_fused() of values and of their scales for num_per_channels columns: float32, or int32 of four packed exponents.

    use_tma_aligned_col_major_sf: scales of the result lie column after column, each from a multiple of 16 bytes.
    """
    name = "expand_to_fused_with_sf"
    values, scales = check_pair(name, "x", x)
    check(name, "x", values, rank=2)
    check_option(name, "num_per_channels", num_per_channels, (32, 64, 128))
    _check_mapping(name, values.shape[0], token_topk_to_pos, pos_to_expert)
    hidden = values.shape[1] * (2 if values.dtype == torch.int8 else 1)
    groups = ceil_div(hidden, num_per_channels)
    check(name, "scales", scales, (torch.float32, torch.int32), rank=2)
    if scales.dtype == torch.int32:
        groups = ceil_div(groups, 4)
    check(name, "scales", scales, shape=(values.shape[0], groups))
    rows = pos_to_expert.shape[0]
    out = torch.empty((rows, values.shape[1]), dtype=values.dtype, device=values.device)
    if use_tma_aligned_col_major_sf:
        out_scales = torch.empty((groups, align(rows, 4)), dtype=scales.dtype, device=scales.device)[:, :rows].T
    else:
        out_scales = torch.empty((rows, groups), dtype=scales.dtype, device=scales.device)
    if out.numel():
        view, kernel = _expand(values, "int32")
        kernel(
            values.view(view),
            out.view(view),
            token_topk_to_pos,
            pos_to_expert,
            scales.view(torch.int32),
            out_scales.view(torch.int32),
        )
    return out, out_scales


def reduce_fused(
    x: torch.Tensor | QuantTensor,
    topk_weights: torch.Tensor | None,
    token_topk_to_pos: torch.Tensor,
    fp8_format: str = "",
    sf: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """(tokens, hidden): the sum over k of row token_topk_to_pos[t, k] of x times topk_weights[t, k], in float32 and rounded
    once.

    x: (rows, hidden) float32, bfloat16, float16 or e4m3, or a pair of that and a float32 scale for each row. Each slot is one
    fused product and sum, slot after slot; negative positions are left out. fp8_format: "e4m3", of the sum times sf, float32
    (1,); or "", the dtype of x. out: where the result is written.
    """
    name = "reduce_fused"
    values, scales = check_pair(name, "x", x) if isinstance(x, (tuple, list)) else (x, None)
    check(name, "x", values, tuple(_NAMES), rank=2)
    check_option(name, "fp8_format", fp8_format, ("", "e4m3"))
    check(name, "token_topk_to_pos", token_topk_to_pos, (torch.int32,), rank=2)
    tokens, topk = token_topk_to_pos.shape
    if topk_weights is not None:
        check(name, "topk_weights", topk_weights, (torch.float32,), shape=(tokens, topk))
    if scales is not None:
        check(name, "scales", scales, (torch.float32,), shape=(values.shape[0],))
    if sf is not None:
        if not fp8_format:
            refuse_option(name, "sf scales e4m3 results", 'pass fp8_format="e4m3" too')
        check(name, "sf", sf, (torch.float32,), shape=(1,))
    dtype = torch.float8_e4m3fn if fp8_format else values.dtype
    if out is None:
        out = torch.empty((tokens, values.shape[1]), dtype=dtype, device=values.device)
    check(name, "out", out, (dtype,), shape=(tokens, values.shape[1]))
    if topk == 0:
        return out.zero_()
    if out.numel():
        kernel = row_programs.reduce(
            values,
            x=_NAMES[values.dtype],
            result=_NAMES[dtype],
            topk=topk,
            weighted=topk_weights is not None,
            scaled=scales is not None,
            factored=sf is not None,
        )
        kernel(values, topk_weights, token_topk_to_pos, out, sf, scales)
    return out


def normalize_weight(topk_weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(sums (tokens,), weights divided by them) of float32 weights (tokens, topk): 1e-20 and the weights, added slot after
    slot."""
    name = "normalize_weight"
    check(name, "topk_weights", topk_weights, (torch.float32,), rank=2)
    tokens, topk = topk_weights.shape
    total = (
        torch.full((tokens,), 1e-20, dtype=torch.float32, device=topk_weights.device)
        if topk == 0
        else topk_weights.new_empty((tokens,))
    )
    out = torch.empty_like(topk_weights)
    if out.numel():
        row_programs.normalize(topk_weights, topk=topk)(topk_weights, total, out)
    return total, out


def inplace_unique_group_indices(group_indices: torch.Tensor, num_groups: int) -> None:
    """Writes -1 where a row of group_indices, int64 or int32 (tokens, topk), has the same number further left. Any number of
    groups."""
    name = "inplace_unique_group_indices"
    check(name, "group_indices", group_indices, tuple(_INDICES), rank=2)
    if group_indices.numel():
        row_programs.unique(group_indices, index=_INDICES[group_indices.dtype], topk=group_indices.shape[1])(group_indices)


def mask_indices_by_tp(indices: torch.Tensor, n: int, num_ep_ranks: int, tp_rank: int, num_tp_ranks: int) -> torch.Tensor:
    """Experts as rank tp_rank of num_tp_ranks counts them, -1 for those of others: indices int64 or int32 (tokens, topk) of n
    experts, which lie n / num_ep_ranks to a rank, ranks of one group side by side."""
    name = "mask_indices_by_tp"
    check(name, "indices", indices, tuple(_INDICES))
    if num_ep_ranks < 1 or n // num_ep_ranks < 1 or not 0 <= tp_rank < num_tp_ranks:
        refuse_option(
            name,
            f"{n} experts on {num_ep_ranks} ranks, rank {tp_rank} of {num_tp_ranks}",
            "each rank has an expert; ranks count from 0",
        )
    out = torch.empty_like(indices)
    if out.numel():
        row_programs.mask(indices, index=_INDICES[indices.dtype])(
            indices.view(-1), out.view(-1), n // num_ep_ranks, tp_rank, num_tp_ranks
        )
    return out


def weight_normalize(topk_weights: torch.Tensor) -> torch.Tensor:
    """Weights, float32 (tokens, topk), divided by their sum over each token."""
    return normalize_weight(topk_weights)[1]


def token_to_expert_map(topk_indices: torch.Tensor, num_experts: int, alignment: int = 1) -> RoutingMap:
    """Where the rows of each expert are: get_fused_mapping() of indices (tokens, topk), int64 or int32, with names. The call
    waits for the device."""
    check("token_to_expert_map", "topk_indices", topk_indices, tuple(_INDICES), rank=2)
    return RoutingMap(*get_fused_mapping(topk_indices, num_experts, 0, alignment))


def fused_expand_reduce(
    x: torch.Tensor,
    routing_map: RoutingMap,
    topk_weights: torch.Tensor | None = None,
    fn: Callable[[torch.Tensor, RoutingMap], torch.Tensor] | None = None,
) -> torch.Tensor:
    """Rows of x (tokens, hidden) copied to those of their experts, fn(rows, routing_map) of them, and the sum of what comes
    back, weighted by topk_weights, float32 (tokens, topk): (tokens, columns of what fn gives). Without fn rows come back
    as they are."""
    if fn is not None:
        rows = expand_to_fused(x, routing_map.token_topk_to_pos, routing_map.pos_to_expert)
        return reduce_fused(fn(rows, routing_map), topk_weights, routing_map.token_topk_to_pos)
    name = "fused_expand_reduce"
    check(name, "x", x, tuple(_NAMES), rank=2)
    _check_mapping(name, x.shape[0], routing_map.token_topk_to_pos, routing_map.pos_to_expert)
    if topk_weights is not None:
        check(name, "topk_weights", topk_weights, (torch.float32,), shape=tuple(routing_map.token_topk_to_pos.shape))
    positions = routing_map.token_topk_to_pos
    if positions.shape[1] == 0:
        return torch.zeros_like(x)
    out = torch.empty_like(x)
    if out.numel():
        options = {"topk": positions.shape[1], "weighted": topk_weights is not None, **_tile(x)}
        row_programs.weigh(x, x=_NAMES[x.dtype], **options)(x, topk_weights, positions, out)
    return out
