"""Hashes of n-grams, and the gate that adds what is found to hidden states."""

from __future__ import annotations

import torch

from ..arguments import check, check_multiple
from ..config import get_num_sms
from . import programs

_BF16, _F32 = (torch.bfloat16,), (torch.float32,)


def _check_rows(function, argument, x, shape, dtypes=_BF16):
    """Rows lie without gaps, and at any distance from each other."""
    check(function, argument, x, dtypes, shape=shape, compact=False)
    if x.numel() and x.stride(-1) != 1:
        check(function, argument, x)


def fused_weight(weight_hidden: torch.Tensor, weight_embed: torch.Tensor) -> torch.Tensor:
    """weight_hidden * weight_embed in float32: both bfloat16 (streams, hidden)."""
    check("fused_weight", "weight_hidden", weight_hidden, _BF16, rank=2)
    check("fused_weight", "weight_embed", weight_embed, _BF16, shape=tuple(weight_hidden.shape))
    out = torch.empty(weight_hidden.shape, dtype=torch.float32, device=weight_hidden.device)
    if out.numel():
        programs.product(out)(weight_hidden.view(-1), weight_embed.view(-1), out.view(-1))
    return out


def engram_hash(
    ngram_token_ids: torch.Tensor, multipliers: torch.Tensor, vocab_sizes: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    """Rows of embedding tables, int32 (layers, tokens, (n - 1) * heads), of the n-grams of 2 to n tokens that end at each
    token.

    ngram_token_ids: int32 (tokens, n), the last first. multipliers: int64 (layers, n). vocab_sizes: int32 (layers, n - 1,
    heads), positive. offsets: int32 (layers, (n - 1) * heads), where each table begins. The hash of the first m tokens is the
    exclusive or of their products with the multipliers, modulo the table's size.
    """
    name = "engram_hash"
    check(name, "ngram_token_ids", ngram_token_ids, (torch.int32,), rank=2)
    tokens, size = ngram_token_ids.shape
    check(name, "vocab_sizes", vocab_sizes, (torch.int32,), rank=3)
    layers, _, heads = vocab_sizes.shape
    check(name, "vocab_sizes", vocab_sizes, shape=(layers, size - 1, heads))
    check(name, "multipliers", multipliers, (torch.int64,), shape=(layers, size))
    check(name, "offsets", offsets, (torch.int32,), shape=(layers, (size - 1) * heads))
    out = torch.empty((layers, tokens, (size - 1) * heads), dtype=torch.int32, device=ngram_token_ids.device)
    if out.numel():
        programs.hashes(ngram_token_ids, size=size, heads=heads)(ngram_token_ids, multipliers, vocab_sizes, offsets, out)
    return out


def engram_gate_fwd(
    hidden_states: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    weight_fused: torch.Tensor,
    eps: float,
    clamp_value: float,
    save_for_backward: bool = True,
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """(hidden_states + gate * v, dots, gates, inverse norms of hidden_states and of k); the last four None without
    save_for_backward.

    hidden_states, k: bfloat16 (tokens, streams, hidden); v: bfloat16 (tokens, hidden); weight_fused: float32 (streams,
    hidden), the product of both norms' weights. dots are sums of hidden_states * weight * k; inverse norms 1 / sqrt(mean of
    squares + eps). The gate is the sigmoid of the signed root of d = dot * both norms / sqrt(hidden), whose magnitude is
    clamp_value at least. What is saved is float32 (tokens, streams).
    """
    name = "engram_gate_fwd"
    check(name, "hidden_states", hidden_states, _BF16, rank=3)
    tokens, streams, hidden = hidden_states.shape
    check_multiple(name, "the last dimension of 'hidden_states'", hidden, 8)
    _check_rows(name, "k", k, (tokens, streams, hidden))
    _check_rows(name, "v", v, (tokens, hidden))
    check(name, "weight_fused", weight_fused, _F32, shape=(streams, hidden))
    out = torch.empty_like(hidden_states)
    saved = [
        torch.empty((tokens, streams), dtype=torch.float32, device=out.device) if save_for_backward else None for _ in range(4)
    ]
    if out.numel():
        kernel = programs.gate(out, streams=streams, hidden=hidden, saved=bool(save_for_backward), threads=programs.row_threads(hidden))
        kernel(hidden_states, k, v, weight_fused, out, *saved, eps, clamp_value, hidden**-0.5)
    return (out, *saved)


def engram_gate_bwd(
    grad_out: torch.Tensor,
    hidden_states: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    weight_fused: torch.Tensor,
    dot: torch.Tensor,
    gate_score: torch.Tensor,
    rstd_x: torch.Tensor,
    rstd_k: torch.Tensor,
    clamp_value: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of hidden_states, k and v, bfloat16, and parts of that of weight_fused, float32 (parts, streams, hidden), to
    be added up.

    grad_out: bfloat16 as hidden_states; the rest as engram_gate_fwd() took and saved it. There is a part for each of
    get_num_sms().
    """
    name = "engram_gate_bwd"
    check(name, "hidden_states", hidden_states, _BF16, rank=3)
    shape = tokens, streams, hidden = tuple(hidden_states.shape)
    check_multiple(name, "the last dimension of 'hidden_states'", hidden, 8)
    grad_out = grad_out.contiguous()
    check(name, "grad_out", grad_out, _BF16, shape=shape)
    _check_rows(name, "k", k, shape)
    _check_rows(name, "v", v, (tokens, hidden))
    check(name, "weight_fused", weight_fused, _F32, shape=(streams, hidden))
    for what, x in (("dot", dot), ("gate_score", gate_score), ("rstd_x", rstd_x), ("rstd_k", rstd_k)):
        check(name, what, x, _F32, shape=(tokens, streams))
    grad_x, grad_k = torch.empty_like(hidden_states), torch.empty(shape, dtype=k.dtype, device=k.device)
    grad_v = torch.empty((tokens, hidden), dtype=v.dtype, device=v.device)
    parts = torch.zeros if tokens == 0 else torch.empty
    grad_w = parts((get_num_sms(), streams, hidden), dtype=torch.float32, device=v.device)
    if tokens and streams and hidden:
        kernel = programs.gate_gradient(v, streams=streams, hidden=hidden)
        kernel(
            grad_out,
            hidden_states,
            k,
            v,
            weight_fused,
            dot,
            gate_score,
            rstd_x,
            rstd_k,
            dot.new_empty((*dot.shape, 3)),
            grad_x,
            grad_k,
            grad_v,
            grad_w,
            clamp_value,
            hidden**-0.5,
        )
    return grad_x, grad_k, grad_v, grad_w


def grad_w_reduce(
    grad_w_partial: torch.Tensor,
    weight_hidden: torch.Tensor,
    weight_embed: torch.Tensor,
    grad_weight_hidden: torch.Tensor,
    grad_weight_embed: torch.Tensor,
) -> None:
    """Adds to both gradients, float32 (streams, hidden), the sum of grad_w_partial (parts, streams, hidden) times the other
    weight, bfloat16."""
    name = "grad_w_reduce"
    check(name, "grad_w_partial", grad_w_partial, _F32, rank=3)
    shape = tuple(grad_w_partial.shape[1:])
    for what, x, dtypes in (
        ("weight_hidden", weight_hidden, _BF16),
        ("weight_embed", weight_embed, _BF16),
        ("grad_weight_hidden", grad_weight_hidden, _F32),
        ("grad_weight_embed", grad_weight_embed, _F32),
    ):
        check(name, what, x, dtypes, shape=shape)
    if grad_weight_hidden.numel():
        programs.weight_gradient(grad_w_partial)(
            grad_w_partial, weight_hidden, weight_embed, grad_weight_hidden, grad_weight_embed
        )
