"""Rotary embedding of heads, and what is made of places: position encodings, dropout."""

from __future__ import annotations

import functools
import math

from .calls import product, refuse_shape
from .operators import FLOATS, Core, check, check_choice, check_number, launch, public, refuse_option

_LAYOUTS = ("1d", "2d")


def _kind(x):
    return str(x.dtype).removeprefix("torch.")


def programs():
    from .programs import rotary

    return rotary


# ---- rotation


def _rotate(x, cosines, sines, positions, neighbours, heads, length, back):
    made, width = x.new_empty(x.shape), x.shape[-1]
    if x.numel():
        import torch

        m, pairs = product(x.shape[:-1]), cosines.shape[-1]
        rows = max(1, 1024 // pairs)
        options = {
            "x": _kind(x),
            "neighbours": neighbours,
            "pairs": pairs,
            "rest": width - 2 * pairs,
            "positions": "" if positions is None else _kind(positions),
            "back": back,
            "rows": rows,
            "threads": 128,
        }
        given = x.new_empty((1,), dtype=torch.int32) if positions is None else positions.contiguous()
        launch(
            programs().rotate, options, x.contiguous().view(m, width), cosines, sines, given, made.view(m, width), heads, length
        )
    return made


def _run(x, cosines, sines, positions, neighbours, heads, length):
    return _rotate(x, cosines, sines, positions, neighbours, heads, length, False)


def _reference(x, cosines, sines, positions, neighbours, heads, length):
    import torch

    width, pairs = x.shape[-1], cosines.shape[-1]
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    rows = wide.reshape(-1, heads, width)
    at = torch.arange(rows.shape[0], device=x.device) % length if positions is None else positions.reshape(-1).long()
    c, s = cosines.to(wide.dtype)[at][:, None], sines.to(wide.dtype)[at][:, None]
    turned, rest = rows[..., : 2 * pairs], rows[..., 2 * pairs :]
    a, b = (turned[..., 0::2], turned[..., 1::2]) if neighbours else (turned[..., :pairs], turned[..., pairs:])
    first, second = a * c - b * s, b * c + a * s
    made = torch.stack((first, second), -1).flatten(-2) if neighbours else torch.cat((first, second), -1)
    return torch.cat((made, rest), -1).reshape(x.shape).to(x.dtype)


_rotary = Core(
    "rotary",
    "(Tensor x, Tensor cosines, Tensor sines, Tensor? positions, bool neighbours, int heads, int length) -> Tensor",
    _run,
    _reference,
)


def _table(frequencies, length, device, factor=1.0):
    """Cosines and sines (length, pairs), in float32, of angles in float32."""
    import torch

    angles = torch.outer(torch.arange(length, dtype=torch.float32, device=device), frequencies.to(device))
    return torch.cos(angles) * factor, torch.sin(angles) * factor


@functools.lru_cache(64)
def _kept(kind, pairs, length, device, *options):
    frequencies, factor = _FREQUENCIES[kind](pairs, *options)
    return _table(frequencies, length, device, factor)


def _plain(pairs, base):
    import torch

    return base ** -(torch.arange(pairs, dtype=torch.float32) / pairs), 1.0


def _llama31(pairs, base, scale_factor, low_freq_factor, high_freq_factor, original_max_position):
    import torch

    frequencies, _ = _plain(pairs, base)
    turns = original_max_position * frequencies / (2 * math.pi)  # in the length that was trained
    smooth = ((turns - low_freq_factor) / (high_freq_factor - low_freq_factor)).clamp(0, 1)
    return torch.lerp(frequencies / scale_factor, frequencies, smooth), 1.0


def _yarn(pairs, base, scale, original_max_position, beta_fast, beta_slow, attn_factor):
    import torch

    def dimension(turns):
        return pairs * math.log(original_max_position / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(dimension(beta_fast)), 0), min(math.ceil(dimension(beta_slow)), pairs - 1)
    kept = 1 - ((torch.arange(pairs, dtype=torch.float32) - low) / ((high if high != low else high + 1) - low)).clamp(0, 1)
    return torch.lerp(_plain(pairs, scale * base)[0], _plain(pairs, base)[0], kept), attn_factor


def _long(pairs, base, factors, max_positions, original_positions):
    import torch

    frequencies, _ = _plain(pairs, base)
    grown = max_positions / original_positions
    factor = math.sqrt(1 + math.log(grown) / math.log(original_positions)) if grown > 1 else 1.0
    return (frequencies if factors is None else frequencies / torch.tensor(factors)), factor


_FREQUENCIES = {"plain": _plain, "llama31": _llama31, "yarn": _yarn, "long": _long}


def _checked(name, x, layout):
    check_choice(name, "layout", layout, _LAYOUTS)
    x = check(name, "x", x, rank=2 if layout == "1d" else 4)
    if x.shape[-1] % 2 or not x.shape[-1]:
        refuse_shape(name, f"'x' has head dim {x.shape[-1]}", "it is even: pairs of elements are turned")
    return x, (1, x.shape[0]) if layout == "1d" else (x.shape[2], x.shape[1])


def _turn(name, x, layout, kind, *options, neighbours=False):
    x, (heads, length) = _checked(name, x, layout)
    if not product(x.shape):
        return x.new_empty(x.shape)
    device = "cpu" if x.device.type == "meta" else x.device
    cosines, sines = _kept(kind, x.shape[-1] // 2, length, device, *options)
    return _rotary(x, cosines, sines, None, neighbours, heads, length)


_MORE = """x: (positions, head dim) with layout "1d", (batch, positions, heads, head dim) with "2d", of float16, bfloat16 or float32; the
    head dim is even. Angles, their cosines and the products are float32, rounded once. Has gradients in PyTorch."""


def rope_neox(x, layout="1d", base=10000.0):
    """x with the pairs (j, j + head dim / 2) of each head turned by the angle position * base^(-2 j / head dim)."""
    return _turn("rope_neox", x, layout, "plain", float(base))


def rope_non_neox(x, layout="1d", base=10000.0):
    """x with the pairs (2 j, 2 j + 1) of each head turned by the angle position * base^(-2 j / head dim)."""
    return _turn("rope_non_neox", x, layout, "plain", float(base), neighbours=True)


def rope_llama31(
    x, layout="1d", base=10000.0, scale_factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position=8192
):
    """rope_neox() where frequencies with fewer than low_freq_factor turns in original_max_position are divided by
    scale_factor, those with more than high_freq_factor stay, and between them it goes over."""
    return _turn(
        "rope_llama31", x, layout, "llama31", float(base), scale_factor, low_freq_factor, high_freq_factor, original_max_position
    )


def rope_yarn(
    x, layout="1d", base=10000.0, scale=16.0, original_max_position=4096, beta_fast=32.0, beta_slow=1.0, attn_factor=1.0
):
    """rope_neox() where frequencies go over from those of `base`, of pairs with beta_fast turns in original_max_position, to
    those of scale * base, of pairs with beta_slow turns; cosines and sines times attn_factor."""
    return _turn("rope_yarn", x, layout, "yarn", float(base), scale, original_max_position, beta_fast, beta_slow, attn_factor)


def rope_long_rope(
    x, layout="1d", base=10000.0, rescale_factors=None, max_position_embeddings=4096, original_max_position_embeddings=4096
):
    """rope_neox() where frequencies are divided by rescale_factors (head dim / 2 of them), and cosines and sines are
    multiplied by sqrt(1 + log(s) / log(original)), s the quotient of both maximal positions, where that is above 1."""
    name = "rope_long_rope"
    factors = None if rescale_factors is None else tuple(float(f) for f in rescale_factors)
    if factors is not None and len(factors) != x.shape[-1] // 2:
        refuse_shape(name, f"{len(factors)} rescale_factors for a head dim of {x.shape[-1]}", "there is one for each pair")
    return _turn(name, x, layout, "long", float(base), factors, max_position_embeddings, original_max_position_embeddings)


def rope_neox_position_ids(x, position_ids, max_position, base=10000.0, rotary_dim=None):
    """rope_neox() of tokens that stand at position_ids, of the first rotary_dim elements of each head; the others stay.

    x: (tokens, heads, head dim) of float16, bfloat16 or float32; position_ids: int32 or int64 (tokens,), 0 to max_position -
    1: others count as the nearest of these. rotary_dim: even, the head dim if None. Has gradients in PyTorch."""
    name = "rope_neox_position_ids"
    x = check(name, "x", x, rank=3)
    position_ids = check(name, "position_ids", position_ids, ("int32", "int64"), shape=(x.shape[0],))
    turned = x.shape[-1] if rotary_dim is None else rotary_dim
    if not isinstance(turned, int) or not 0 < turned <= x.shape[-1] or turned % 2:
        refuse_option(
            name, f"rotary_dim is {turned!r} of a head dim of {x.shape[-1]}", "it is even, and no more than the head dim"
        )
    check_number(name, "max_position", max_position, 1, whole=True)
    device = "cpu" if x.device.type == "meta" else x.device
    cosines, sines = _kept("plain", turned // 2, max_position, device, float(base))
    return _rotary(x, cosines, sines, position_ids, False, x.shape[1], max_position)


for _f in (rope_neox, rope_non_neox, rope_llama31, rope_yarn, rope_long_rope):
    _f.__doc__ = _f.__doc__.rstrip() + "\n\n    " + _MORE
rope_neox, rope_non_neox, rope_llama31, rope_yarn, rope_long_rope, rope_neox_position_ids = map(
    public, (rope_neox, rope_non_neox, rope_llama31, rope_yarn, rope_long_rope, rope_neox_position_ids)
)


# ---- encodings of positions


def _made_tensor(name, shape, dtype, device):
    import torch

    from .calls import name_of

    kind = name_of(dtype)
    check_choice(name, "dtype", kind, FLOATS)
    return torch.empty(shape, dtype=getattr(torch, kind), device=device)


def alibi(seq_len, num_heads, dtype="float32", device="cpu"):
    """-slope * |i - j| of each head and pair of positions, (num_heads, seq_len, seq_len): the slope of head h is 2^(-8 (h + 1) /
    num_heads). float16, bfloat16 or float32, rounded once."""
    import torch

    check_number("alibi", "seq_len", seq_len, 1, whole=True), check_number("alibi", "num_heads", num_heads, 1, whole=True)
    out = _made_tensor("alibi", (num_heads, seq_len, seq_len), dtype, device)
    slopes = torch.exp2(torch.arange(1, num_heads + 1, dtype=torch.float32) * (-8 / num_heads)).to(device)
    launch(programs().biases, {"x": _kind(out), "rows": 16, "columns": 128, "threads": 128}, slopes, out)
    return out


def sinusoidal(seq_len, d_model, dtype="float32", device="cpu"):
    """Sines (even columns) and cosines (odd ones) of position * 10000^(-2 j / d_model), (seq_len, d_model), j the pair of
    columns. d_model is even. float16, bfloat16 or float32; angles are float32."""
    import torch

    check_number("sinusoidal", "seq_len", seq_len, 1, whole=True), check_number("sinusoidal", "d_model", d_model, 2, whole=True)
    if d_model % 2:
        refuse_option("sinusoidal", f"d_model is {d_model}", "it is even")
    out = _made_tensor("sinusoidal", (seq_len, d_model), dtype, device)
    frequencies = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float32) * (-math.log(10000.0) / d_model)).to(device)
    launch(programs().waves, {"x": _kind(out), "rows": 16, "columns": 128, "threads": 128}, frequencies, out)
    return out


alibi, sinusoidal = map(public, (alibi, sinusoidal))


# ---- dropout


def _key(seed):
    return seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF


def _run_dropout(x, p, seed):
    made, count = x.new_empty(x.shape), x.numel()
    if count:
        low, high = _key(seed)
        least = min(round(p * 2**32), 2**32 - 1)
        launch(
            programs().drop,
            {"x": _kind(x), "width": 2048, "threads": 128},
            x.contiguous().view(count),
            made.view(count),
            low,
            high,
            least,
            1 / (1 - p),
        )
    return made


def _words(count, seed, device):
    """The random words of `count` elements, as int64."""
    import torch

    mask, quads = 0xFFFFFFFF, -(-count // 4)
    a = torch.arange(quads, dtype=torch.int64, device=device)
    b = c = d = torch.zeros_like(a)
    k, l = _key(seed)

    def times(x, m):  # high and low words of a product of 64 bits
        low, high = (x & 0xFFFF) * m, (x >> 16) * m
        whole = (low >> 16) + (high & 0xFFFFFFFFFFFF)
        return (whole >> 16) & mask, ((whole << 16) | (low & 0xFFFF)) & mask

    for turn in range(10):
        high0, low0 = times(a, 0xD2511F53)
        high1, low1 = times(c, 0xCD9E8D57)
        a, b, c, d = high1 ^ b ^ ((k + 0x9E3779B9 * turn) & mask), low1, high0 ^ d ^ ((l + 0xBB67AE85 * turn) & mask), low0
    return torch.stack((a, b, c, d), 1).reshape(-1)[:count]


def _reference_dropout(x, p, seed):
    import torch

    kept = _words(x.numel(), seed, x.device).reshape(x.shape) >= min(round(p * 2**32), 2**32 - 1)
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return torch.where(kept, wide * (1 / (1 - p)), 0).to(x.dtype)


_dropout = Core("dropout", "(Tensor x, float p, int seed) -> Tensor", _run_dropout, _reference_dropout)


def dropout(x, p=0.5, seed=0, training=True):
    """x / (1 - p), with 0 in the place of each element with probability p. x itself, copied, unless training.

    Of which elements, `seed` and their places say alone: Philox 4x32-10, on every engine the same. x: any shape, float16,
    bfloat16 or float32, up to 2^31 elements. p: 0 up to 1. Has gradients in PyTorch, through the elements that stay."""
    x = check("dropout", "x", x)
    if not isinstance(p, (int, float)) or not 0 <= p <= 1:
        refuse_option("dropout", f"p is {p!r}", "it is a probability, 0 up to 1")
    check_number("dropout", "seed", seed, whole=True)
    if not training or p == 0:
        return x.clone()
    return x * 0 if p == 1 else _dropout(x, float(p), seed)


dropout = public(dropout)
