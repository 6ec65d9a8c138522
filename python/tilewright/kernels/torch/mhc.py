"""References of manifold hyper-connections. All of them have gradients."""

from __future__ import annotations

import torch


def expand_to_mhc_ref(hidden: torch.Tensor, mhc_mult: int) -> torch.Tensor:
    """Each row `mhc_mult` times: (..., hidden) becomes (..., mhc_mult, hidden)."""
    return torch.broadcast_to(hidden[..., None, :], (*hidden.shape[:-1], mhc_mult, hidden.shape[-1])).clone()


def sinkhorn_normalize_ref(x: torch.Tensor, repeat: int = 10, eps: float = 1e-6) -> torch.Tensor:
    """Rows and columns of square matrices divided by their sums, in turn; a softmax of rows is the first step."""
    x = torch.softmax(x, -1) + eps
    for step in range(2 * repeat - 1):
        x = x / (x.sum(-1 if step % 2 else -2, keepdim=True) + eps)
    return x


def mhc_head_compute_mix_ref(
    input_mix: torch.Tensor, mhc_scale: torch.Tensor, mhc_base: torch.Tensor, mhc_pre_eps: float
) -> torch.Tensor:
    """sigmoid(input_mix * scale + base) + eps"""
    return torch.sigmoid(torch.addcmul(mhc_base, input_mix, mhc_scale)) + mhc_pre_eps


def mhc_pre_split_mixes_ref(
    input_mixes: torch.Tensor,
    mhc_scale: torch.Tensor,
    mhc_base: torch.Tensor,
    mhc_mult: int,
    mhc_post_mult_value: float,
    mhc_pre_eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The weights of what goes into a layer, of what comes out, and of what passes by."""
    sizes = [mhc_mult, mhc_mult, mhc_mult * mhc_mult]
    scaled = (part * scale + base for part, scale, base in zip(input_mixes.split(sizes, -1), mhc_scale, mhc_base.split(sizes)))
    pre, post, comb = scaled
    return (
        torch.sigmoid(pre)[..., None] + mhc_pre_eps,
        mhc_post_mult_value * torch.sigmoid(post)[..., None],
        comb.unflatten(-1, (mhc_mult, mhc_mult)),
    )


def mhc_pre_apply_mix_ref(x: torch.Tensor, mix: torch.Tensor) -> torch.Tensor:
    """The weighted sum of the streams, in bfloat16."""
    return torch.einsum("...mh,...m->...h", x.float(), mix.squeeze(-1)).bfloat16()


def mhc_post_ref(
    x: torch.Tensor, residual: torch.Tensor, post_layer_mix: torch.Tensor, comb_res_mix: torch.Tensor
) -> torch.Tensor:
    """What a layer gives, spread over the streams, and the streams mixed: stream n gets comb_res_mix[m, n] of stream m.
    bfloat16."""
    mixed = torch.einsum("...mn,...mh->...nh", comb_res_mix, residual.float())
    return (x.float()[..., None, :] * post_layer_mix + mixed).bfloat16()


def mhc_pre_norm_fn_ref(
    residual: torch.Tensor, mhc_fn: torch.Tensor, mhc_norm_weight: torch.Tensor | None, mhc_norm_eps: float
) -> torch.Tensor:
    """Products of the streams, as one row divided by its root mean square, with the rows of mhc_fn."""
    x = residual.flatten(-2).float()
    fn = mhc_fn if mhc_norm_weight is None else mhc_fn * mhc_norm_weight
    return x @ fn.T * torch.rsqrt(x.square().mean(-1, keepdim=True) + mhc_norm_eps)
