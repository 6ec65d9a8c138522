"""Modules of PyTorch: gates of normalized rows, and a layer between hyper-connected streams."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..engram import engram_gate_backward, engram_gate_forward
from .applied import applied
from .mhc import expand_from_embedding, mhc_post, mhc_pre


class _Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, weight, eps):
        out, norm = engram_gate_forward(hidden, weight, eps)
        ctx.save_for_backward(hidden, weight, norm)
        ctx.eps = eps
        return out

    @staticmethod
    def backward(ctx, grad):
        hidden, weight, norm = ctx.saved_tensors
        return *engram_gate_backward(grad.contiguous(), hidden, weight, norm, ctx.eps), None


class EngramGateLayer(torch.nn.Module):
    """(..., hidden_size) to (..., num_experts): rows divided by their root mean square, times a weight (num_experts,
    hidden_size). Its parameters take the dtype of what it is given."""

    def __init__(self, hidden_size: int, num_experts: int, eps: float = 1e-6, device=None, dtype=torch.float32) -> None:
        super().__init__()
        self.hidden_size, self.num_experts, self.eps = hidden_size, num_experts, eps
        self.weight = torch.nn.Parameter(torch.empty(num_experts, hidden_size, device=device, dtype=dtype))
        torch.nn.init.normal_(self.weight, std=hidden_size**-0.5)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        rows = hidden_states.reshape(-1, self.hidden_size).contiguous()
        return applied(_Gate, rows, self.weight.to(rows.dtype), self.eps).view(*hidden_states.shape[:-1], self.num_experts)

    def extra_repr(self) -> str:
        return f"hidden_size={self.hidden_size}, num_experts={self.num_experts}, eps={self.eps}"


class MHCPipeline(torch.nn.Module):
    """A layer between hyper-connected streams: forward(residual, layer) mixes the streams into what goes into `layer`, calls
    it, and spreads what it gives over the streams, which are mixed on the way.

    residual: bfloat16 (..., num_connections, hidden_size), or (..., hidden_size), which every stream begins with. layer: a
    function from (..., hidden_size) to the same, or None for itself. Returns the streams behind the layer. Parameters are
    float32.
    """

    def __init__(
        self,
        num_connections: int,
        hidden_size: int,
        layer: Callable[[torch.Tensor], torch.Tensor] | None = None,
        norm_eps: float = 1e-6,
        sinkhorn_repeat: int = 10,
        post_mult_value: float = 2.0,
        device=None,
    ) -> None:
        super().__init__()
        self.num_connections, self.hidden_size, self.layer = num_connections, hidden_size, layer
        self.norm_eps, self.sinkhorn_repeat, self.post_mult_value = norm_eps, sinkhorn_repeat, post_mult_value
        columns = num_connections * (2 + num_connections)
        self.fn = torch.nn.Parameter(
            torch.randn(columns, num_connections * hidden_size, device=device) * 1e-2 * (num_connections * hidden_size) ** -0.5
        )
        self.scale = torch.nn.Parameter(torch.ones(3, device=device))
        between = 4 * torch.eye(num_connections).flatten()  # streams begin as themselves
        self.base = torch.nn.Parameter(torch.cat([torch.zeros(2 * num_connections), between]).to(device))

    def forward(self, residual: torch.Tensor, layer: Callable[[torch.Tensor], torch.Tensor] | None = None) -> torch.Tensor:
        if residual.shape[-2:] != (self.num_connections, self.hidden_size):
            residual = expand_from_embedding(residual, self.num_connections)
        layer_input, weights = mhc_pre(
            residual,
            self.fn,
            self.scale,
            self.base,
            norm_eps=self.norm_eps,
            mhc_mult=self.num_connections,
            post_mult_value=self.post_mult_value,
            sinkhorn_repeat=self.sinkhorn_repeat,
        )
        inner = layer or self.layer
        return mhc_post(layer_input if inner is None else inner(layer_input), residual, *weights)

    def extra_repr(self) -> str:
        return f"num_connections={self.num_connections}, hidden_size={self.hidden_size}"
