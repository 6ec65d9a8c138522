"""Hyper-connections (mHC) and engrams: what tilewright.kernels has, and the steps of layers as one call each."""

from __future__ import annotations

from .calls import refuse_shape
from .operators import Core, check, check_number, launch, on_gpu, public


def _kind(x):
    return str(x.dtype).removeprefix("torch.")


def programs():
    from .programs import streams

    return streams


# ---- hyper-connections


def _run_pre(phi, x, bias, alpha_pre, alpha_res, streams, turns, epsilon):
    from .products import matmul
    from .reductions import compute

    batch, width = x.shape
    c = width // streams
    mixed, layer = x.new_empty(x.shape), x.new_empty((batch, c))
    if mixed.numel():
        wide = x.float()
        norms = compute("l2_norm", wide, 1) / width**0.5 + 1e-4
        options = {"streams": streams, "turns": turns, "width": 256 if on_gpu(x) else 1024, "threads": 128}
        launch(
            programs().mix,
            options,
            x.view(batch, streams, c),
            matmul(wide, phi),
            bias,
            norms,
            mixed.view(batch, streams, c),
            layer,
            float(alpha_pre),
            float(alpha_res),
            float(epsilon),
        )
    return mixed, layer


def _reference_pre(phi, x, bias, alpha_pre, alpha_res, streams, turns, epsilon):
    import torch

    kind = torch.promote_types(x.dtype, torch.float32)
    wide = x.to(kind)
    norms = wide.square().sum(1).sqrt() / wide.shape[1] ** 0.5 + 1e-4
    h = wide @ phi / norms[:, None]
    weights = torch.sigmoid(alpha_pre * h[:, :streams] + bias[:streams])
    matrix = (alpha_res * h[:, 2 * streams :] + bias[2 * streams :]).unflatten(1, (streams, streams))
    matrix = (matrix - matrix.amax(-1, keepdim=True)).exp()
    for _ in range(turns):
        matrix = matrix / (matrix.sum(-1, keepdim=True) + epsilon)
        matrix = matrix / (matrix.sum(-2, keepdim=True) + epsilon)
    lying = wide.unflatten(1, (streams, -1))
    return (matrix @ lying).flatten(1).to(x.dtype), (weights[:, None] @ lying).squeeze(1).to(x.dtype)


_pre = Core(
    "mhc_mix",
    "(Tensor phi, Tensor x, Tensor bias, float alpha_pre, float alpha_res, int streams, int turns, float epsilon) -> (Tensor, Tensor)",
    _run_pre,
    _reference_pre,
)


def mhc_pre(phi, x, b, alpha_pre, alpha_post, alpha_res, sinkhorn_repeat, sinkhorn_eps=0.02):
    """(streams mixed, what the layer gets) of x, bfloat16 (batch, n * c): n streams mixed by exp(alpha_res * h + b), whose
    rows and columns are divided by their sums sinkhorn_repeat times, and added up by sigmoid(alpha_pre * h + b); h = x @
    phi divided by the root mean square of x plus 1e-4.

    phi: float32 (n * c, n * n + 2 n); b: float32 (n * n + 2 n,), of weights before, behind (which this call does not need,
    as alpha_post) and of the matrix. (batch, n * c) and (batch, c), bfloat16; computed in float32. Has gradients in PyTorch,
    of its own functions."""
    name = "mhc_pre"
    x, phi = check(name, "x", x, ("bfloat16",), rank=2), check(name, "phi", phi, ("float32",), rank=2)
    columns = phi.shape[1]
    streams = round((columns + 1) ** 0.5) - 1
    if streams < 1 or streams * (streams + 2) != columns or x.shape[1] % streams or phi.shape[0] != x.shape[1]:
        refuse_shape(
            name,
            f"'phi' has shape {tuple(phi.shape)}, 'x' {tuple(x.shape)}",
            "n streams of c elements: (n c, n n + 2 n) and (batch, n c)",
        )
    b = check(name, "b", b, ("float32",), shape=(columns,))
    check_number(name, "sinkhorn_repeat", sinkhorn_repeat, 0, whole=True)
    return _pre(phi, x, b, float(alpha_pre), float(alpha_res), streams, sinkhorn_repeat, float(sinkhorn_eps))


def _run_post(x, weights, residual):
    made, (batch, c), streams = residual.new_empty(residual.shape), x.shape, weights.shape[1]
    if made.numel():
        options = {"streams": streams, "width": 1024, "threads": 128}
        launch(programs().spread, options, x, weights, residual.view(batch, streams, c), made.view(batch, streams, c))
    return made


def _reference_post(x, weights, residual):
    made = weights[:, :, None] * x.to(weights.dtype)[:, None] + residual.to(weights.dtype).unflatten(1, (weights.shape[1], -1))
    return made.flatten(1).to(residual.dtype)


_post = Core("mhc_spread", "(Tensor x, Tensor weights, Tensor residual) -> Tensor", _run_post, _reference_post)


def mhc_post(x_layer_out, h_post, x_res):
    """What a layer made, for each stream times its weight, added to the streams: bfloat16 (batch, n * c).

    x_layer_out: bfloat16 (batch, c); h_post: float32 (batch, n); x_res: bfloat16 (batch, n * c). Computed in float32 and
    rounded once. Has gradients in PyTorch, of its own functions."""
    name = "mhc_post"
    x = check(name, "x_layer_out", x_layer_out, ("bfloat16",), rank=2)
    h_post = check(name, "h_post", h_post, ("float32",), shape=(x.shape[0], None))
    return _post(x, h_post, check(name, "x_res", x_res, ("bfloat16",), shape=(x.shape[0], h_post.shape[1] * x.shape[1])))


def sinkhorn_normalize(x, num_iters=20, eps=1e-6):
    """softmax of the rows of float32 matrices (..., rows, columns), plus eps; then columns and rows divided in turn by their
    sums plus eps. Has a gradient in PyTorch. It is tilewright.kernels.mhc.sinkhorn_normalize()."""
    from ..kernels.mhc import sinkhorn_normalize as normalize

    return normalize(x, num_iters, eps)


# ---- engrams


def _run_gate(h, k, v, weight_h, weight_v, conv, dilation, epsilon):
    import torch

    batch, length, hidden = h.shape
    made, gated = h.new_empty(h.shape), h.new_empty(h.shape)
    saved = [torch.empty((batch, length), dtype=torch.float32, device=h.device) for _ in range(4)]
    if made.numel():
        m = batch * length
        launch(
            programs().gate,
            {"x": _kind(h), "hidden": hidden, "threads": 128 if hidden <= 4096 else 256},
            *(t.view(m, hidden) for t in (h, k, v)),
            weight_h,
            gated.view(m, hidden),
            *(t.view(m) for t in saved),
            float(epsilon),
        )
        options = {"x": _kind(h), "taps": conv.shape[0], "rows": 4, "columns": 256, "threads": 128}
        launch(programs().smooth, options, gated, saved[3], weight_v, conv, made, dilation)
    return made, gated, *saved


def _reference_gate(h, k, v, weight_h, weight_v, conv, dilation, epsilon):
    import torch

    kind = torch.promote_types(h.dtype, torch.float32)

    def inverse(x):
        return torch.rsqrt(x.square().mean(-1) + epsilon)

    wide_h, wide_k, wide_v = (t.to(kind) for t in (h, k, v))
    of_h, of_k = inverse(wide_h), inverse(wide_k)
    dots = (wide_h * wide_k * weight_h.to(kind).square()).sum(-1)
    alpha = torch.sigmoid(dots * of_h * of_k / h.shape[-1] ** 0.5)
    gated = (alpha[..., None] * wide_v).to(h.dtype).to(kind)
    of_v = inverse(gated)
    normal, taps = gated * of_v[..., None] * weight_v.to(kind), conv.shape[0]
    total = torch.zeros_like(normal)
    for p in range(taps):
        back = (taps - 1 - p) * dilation
        total = total + conv[p].to(kind) * torch.nn.functional.pad(normal, (0, 0, back, 0))[:, : h.shape[1]]
    return (
        (torch.nn.functional.silu(total) + gated).to(h.dtype),
        gated.to(h.dtype),
        alpha.float(),
        of_h.float(),
        of_k.float(),
        of_v.float(),
    )


_gate = Core(
    "engram_gate_conv",
    "(Tensor h, Tensor k, Tensor v, Tensor weight_h, Tensor weight_v, Tensor conv, int dilation, float epsilon) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _run_gate,
    _reference_gate,
)


def engram_gate_conv(H, k, v, rms_w_h, rms_w_v, conv_w, *, epsilon=1e-6, dilation=1, return_saved=False):
    """Memories gated and smoothed: silu(causal convolution of rms_norm(v^) * rms_w_v) + v^, with v^ = sigmoid(rms_norm(H) .
    rms_norm(k) / sqrt(hidden)) * v, both norms times rms_w_h.

    H, k, v: (batch, positions, hidden); rms_w_h, rms_w_v: (hidden,); conv_w: (taps, hidden), the last for the position
    itself, others `dilation` positions apart; all of one dtype, float16, bfloat16 or float32; hidden up to 32768. Computed
    in float32; v^ is rounded to the dtype. return_saved: also v^, the gates, and the inverse norms of H, k and v^, float32
    (batch, positions). Has gradients in PyTorch, of its own functions."""
    name = "engram_gate_conv"
    H = check(name, "H", H, rank=3)
    k, v = (check(name, n, t, shape=tuple(H.shape), like=H) for n, t in (("k", k), ("v", v)))
    rms_w_h, rms_w_v = (check(name, n, t, shape=(H.shape[2],), like=H) for n, t in (("rms_w_h", rms_w_h), ("rms_w_v", rms_w_v)))
    conv_w = check(name, "conv_w", conv_w, shape=(None, H.shape[2]), like=H)
    check_number(name, "dilation", dilation, 1, whole=True)
    if not 0 < H.shape[2] <= 32768 or not conv_w.shape[0]:
        refuse_shape(
            name, f"'H' has shape {tuple(H.shape)}, 'conv_w' {tuple(conv_w.shape)}", "hidden is 1 to 32768, and there is a tap"
        )
    made = _gate(H, k, v, rms_w_h, rms_w_v, conv_w, dilation, float(epsilon))
    return made if return_saved else made[0]


def engram_decode(e_t, h_t, conv_state, W_K, W_V, rms_w_h, rms_w_v, conv_w, *, dilation=1, max_conv_len=None, epsilon=1e-6):
    """One position of engram_gate_conv() with k = e_t @ W_K and v = e_t @ W_V: (output (batch, hidden), the normal memories
    of the last max_conv_len positions).

    e_t: (batch, memory); h_t: (batch, hidden); conv_state: (batch, positions, hidden), the last position last, fewer than
    max_conv_len at the beginning; W_K, W_V: (memory, hidden); the others as for engram_gate_conv(); float16, bfloat16 or
    float32. max_conv_len: the positions of conv_state if None."""
    import torch

    from .products import matmul

    name = "engram_decode"
    e_t, h_t = check(name, "e_t", e_t, rank=2), check(name, "h_t", h_t, rank=2, like=e_t)
    conv_state = check(name, "conv_state", conv_state, shape=(h_t.shape[0], None, h_t.shape[1]), like=h_t)
    W_K, W_V = (check(name, n, t, shape=(e_t.shape[1], h_t.shape[1]), like=h_t) for n, t in (("W_K", W_K), ("W_V", W_V)))
    conv_w = check(name, "conv_w", conv_w, shape=(None, h_t.shape[1]), like=h_t)
    most = conv_state.shape[1] if max_conv_len is None else max_conv_len
    k, v = matmul(e_t, W_K), matmul(e_t, W_V)
    _, gated, _, _, _, of_v = engram_gate_conv(
        h_t[:, None], k[:, None], v[:, None], rms_w_h, rms_w_v, conv_w[-1:], epsilon=epsilon, return_saved=True
    )
    normal = (gated.float() * of_v[..., None] * rms_w_v.float()).to(conv_state.dtype)
    state = torch.cat((conv_state, normal), 1)
    total, taps = torch.zeros_like(normal[:, 0], dtype=torch.float32), conv_w.shape[0]
    for p in range(taps):
        at = state.shape[1] - 1 - (taps - 1 - p) * dilation
        if at >= 0 and (taps - 1 - p) * dilation <= most:
            total = total + conv_w[p].float() * state[:, at].float()
    made = torch.nn.functional.silu(total) + gated[:, 0].float()
    return made.to(h_t.dtype), state[:, -most:] if most and state.shape[1] > most else state


def engram_hash(ngram_token_ids, multipliers, vocab_sizes, offsets):
    """Rows of embedding tables, int32, of the n-grams that end at each token: tilewright.kernels.engram.engram_hash()."""
    from ..kernels.engram import engram_hash as hashed

    return hashed(ngram_token_ids, multipliers, vocab_sizes, offsets)


def engram_gate(hidden_states, k, v, weight_hidden, weight_embed, clamp_value=1e-6, eps=1e-6):
    """hidden_states + gate * v, the gate of the norms of hidden_states and k:
    tilewright.kernels.modeling.engram.engram_gate(). bfloat16 (tokens, streams, hidden), v (tokens, hidden), weights
    (streams, hidden). Has gradients in PyTorch."""
    from ..kernels.modeling.engram import engram_gate as gate

    return gate(hidden_states, k, v, weight_hidden, weight_embed, clamp_value, eps)


(mhc_pre, mhc_post, sinkhorn_normalize, engram_gate_conv, engram_decode, engram_hash, engram_gate) = map(
    public, (mhc_pre, mhc_post, sinkhorn_normalize, engram_gate_conv, engram_decode, engram_hash, engram_gate)
)
