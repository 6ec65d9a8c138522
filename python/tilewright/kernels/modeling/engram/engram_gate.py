"""The gate of an engram with its gradient."""

from __future__ import annotations

import torch

from ...engram import engram_gate_bwd, engram_gate_fwd, fused_weight, grad_w_reduce


class EngramGateFn(torch.autograd.Function):
    """hidden_states + gate * v: apply(hidden_states, k, v, weight_hidden, weight_embed, clamp_value, eps).

    hidden_states, k: bfloat16 (..., streams, hidden); v: bfloat16 (..., hidden); both weights of norms: bfloat16 (streams,
    hidden). Gradients of weights are float32; of one with a float32 attribute main_grad they are added to that, and none is
    returned.
    """

    @staticmethod
    def forward(ctx, hidden_states, k, v, weight_hidden, weight_embed, clamp_value, eps):
        *outer, streams, hidden = hidden_states.shape
        x, k, v = hidden_states.reshape(-1, streams, hidden), k.reshape(-1, streams, hidden), v.reshape(-1, hidden)
        weight = fused_weight(weight_hidden, weight_embed)
        out, *saved = engram_gate_fwd(x, k, v, weight, eps, clamp_value)
        ctx.save_for_backward(x, k, v, weight_hidden, weight_embed, weight, *saved)
        ctx.clamp_value, ctx.outer = clamp_value, outer
        return out.view(hidden_states.shape)

    @staticmethod
    def backward(ctx, grad):
        x, k, v, weight_hidden, weight_embed, weight, *saved = ctx.saved_tensors
        _, streams, hidden = x.shape
        of_x, of_k, of_v, parts = engram_gate_bwd(grad.reshape(x.shape), x, k, v, weight, *saved, ctx.clamp_value)
        main = [getattr(w, "main_grad", None) for w in (weight_hidden, weight_embed)]
        sums = [
            torch.zeros_like(w, dtype=torch.float32) if kept is None else kept
            for w, kept in zip((weight_hidden, weight_embed), main)
        ]
        grad_w_reduce(parts, weight_hidden, weight_embed, *sums)
        of_weights = [s if kept is None else None for s, kept in zip(sums, main)]
        return (
            of_x.view(*ctx.outer, streams, hidden),
            of_k.view(*ctx.outer, streams, hidden),
            of_v.view(*ctx.outer, hidden),
            *of_weights,
            None,
            None,
        )


engram_gate = EngramGateFn.apply
