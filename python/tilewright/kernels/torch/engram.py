"""References of the engram: n-gram hashes, and the gate with its norms."""

from __future__ import annotations

import torch


def make_offsets(vocab_sizes: torch.Tensor) -> torch.Tensor:
    """Where the table of each n-gram and head begins in its layer, int32: tables lie one behind the other."""
    sizes = vocab_sizes.flatten(1)
    return (sizes.cumsum(1) - sizes).int()


def engram_hash_ref(
    ngram_token_ids: torch.Tensor, multipliers: torch.Tensor, vocab_sizes: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    """Rows of the tables, int32 (layers, tokens, (n - 1) * heads): products of tokens and multipliers, joined by exclusive or."""
    joined = ngram_token_ids.long() * multipliers[:, None]
    columns, total = [], joined[..., 0]
    for n in range(1, multipliers.shape[1]):
        total = total ^ joined[..., n]
        columns.append(total[..., None] % vocab_sizes[:, None, n - 1].long())
    return torch.cat(columns, -1).int() + offsets[:, None]


def engram_gate_ref(
    hidden_states: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    weight_hidden: torch.Tensor,
    weight_embed: torch.Tensor,
    clamp_value: float,
    eps: float,
    save_for_backward: bool = False,
):
    """hidden_states + gate * v in bfloat16; with save_for_backward (that, dots, gates, both inverse norms). It has gradients."""
    x, k = hidden_states.float(), k.float()
    rstd_x, rstd_k = (torch.rsqrt(t.square().mean(-1) + eps) for t in (x, k))
    dot = ((x * weight_hidden.float()) * (k * weight_embed.float())).sum(-1)
    scaled = dot * rstd_x * rstd_k * x.shape[-1] ** -0.5
    gate = torch.sigmoid(scaled.abs().clamp_min(clamp_value).sqrt() * scaled.sign())
    out = (x + gate[..., None] * v.float()[..., None, :]).bfloat16()
    return (out, dot, gate, rstd_x, rstd_k) if save_for_backward else out
