"""Hyper-connections, forward and backward, without autograd: what tilewright.kernels.modeling is made of."""

from __future__ import annotations

import torch

from ..arguments import align, ceil_div, check, refuse_option
from ..config import get_num_sms
from ..programs import takes_tf32
from . import mix_programs, norm_programs, stream_programs

_BF16, _F32 = (torch.bfloat16,), (torch.float32,)
_NAMES = {torch.bfloat16: "bfloat16", torch.float16: "float16", torch.float32: "float32"}
_LEAST = 1e-30  # of an epsilon with which one over a sum is finite


def _result(function, out, shape, dtype, device):
    if out is None:
        return torch.empty(shape, dtype=dtype, device=device)
    check(function, "out", out, (dtype,), shape=tuple(shape))
    return out


# ---- streams


def expand_fwd(hidden, streams, out=None):
    """hidden (..., h) for every stream: (..., streams, h)."""
    name = "expand_to_mhc"
    check(name, "hidden", hidden, tuple(_NAMES))
    if streams < 1 or hidden.ndim < 1:
        refuse_option(name, f"{streams} streams of a tensor of {hidden.ndim} dimensions", "both are 1 at least")
    out = _result(name, out, (*hidden.shape[:-1], streams, hidden.shape[-1]), hidden.dtype, hidden.device)
    _expand(hidden, out, False)
    return out


def expand_bwd(out_grad):
    """The sum over the streams of (..., streams, h), rounded once."""
    out_grad = out_grad.contiguous()
    made = out_grad.new_empty((*out_grad.shape[:-2], out_grad.shape[-1]))
    _expand(made, out_grad, True)
    return made


def _expand(row, streams, backward):
    if streams.numel():
        kernel = stream_programs.expand(row, streams=streams.shape[-2], x=_NAMES[row.dtype], backward=backward)
        kernel(row.view(-1, row.shape[-1]), streams.view(-1, *streams.shape[-2:]))


def _check_streams(function, argument, x):
    check(function, argument, x, _BF16)
    if x.ndim < 2:
        refuse_option(function, f"'{argument}' has {x.ndim} dimensions", "it is (..., streams, hidden)")


def pre_apply_mix_fwd(x, mix, out=None):
    """The sum of the streams of x, bfloat16 (..., streams, hidden), times mix, float32 (..., streams, 1)."""
    name = "mhc_pre_apply_mix"
    x, mix = x.contiguous(), mix.contiguous()
    _check_streams(name, "x", x)
    check(name, "mix", mix, _F32, shape=(*x.shape[:-1], 1))
    out = _result(name, out, (*x.shape[:-2], x.shape[-1]), torch.bfloat16, x.device)
    if out.numel():
        streams, hidden = x.shape[-2:]
        stream_programs.apply(x, streams=streams)(x.view(-1, streams, hidden), mix.view(-1, streams), out.view(-1, hidden))
    return out


def pre_apply_mix_bwd(o_grad, x, mix, x_grad):
    """The gradient of mix; that of x is added to x_grad."""
    streams, hidden = x.shape[-2:]
    mix_grad = torch.zeros_like(mix) if x.numel() == 0 else torch.empty_like(mix)
    if x.numel():
        kernel = stream_programs.apply_gradient(x, streams=streams)
        kernel(
            o_grad.contiguous().view(-1, hidden),
            x.view(-1, streams, hidden),
            mix.view(-1, streams),
            x_grad.view(-1, streams, hidden),
            mix_grad.view(-1, streams),
        )
    return mix_grad


def post_fwd(x, residual, post_layer_mix, comb_res_mix, out=None):
    """Stream n of (..., streams, hidden): x times post_layer_mix[n], and the streams m of residual times comb_res_mix[m, n].
    bfloat16."""
    name = "mhc_post"
    residual = residual.contiguous()
    _check_streams(name, "residual", residual)
    *outer, streams, hidden = residual.shape
    check(name, "x", x, _BF16, shape=(*outer, hidden))
    check(name, "post_layer_mix", post_layer_mix, _F32, shape=(*outer, streams, 1))
    check(name, "comb_res_mix", comb_res_mix, _F32, shape=(*outer, streams, streams))
    out = _result(name, out, residual.shape, torch.bfloat16, residual.device)
    if out.numel():
        kernel = stream_programs.post(residual, streams=streams)
        kernel(
            comb_res_mix.view(-1, streams, streams),
            residual.view(-1, streams, hidden),
            post_layer_mix.view(-1, streams),
            x.view(-1, hidden),
            out.view(-1, streams, hidden),
        )
    return out


def post_bwd(x, residual, post_layer_mix, comb_res_mix, d_o):
    """Gradients of x, residual, post_layer_mix and comb_res_mix."""
    *_, streams, hidden = residual.shape
    residual, d_o = residual.contiguous(), d_o.contiguous()
    made = torch.empty_like if d_o.numel() else torch.zeros_like
    d_x, d_residual, d_post, d_comb = made(x), made(residual), made(post_layer_mix), made(comb_res_mix)
    if d_o.numel():
        kernel = stream_programs.post_gradient(residual, streams=streams)
        kernel(
            d_o.view(-1, streams, hidden),
            comb_res_mix.view(-1, streams, streams),
            residual.view(-1, streams, hidden),
            post_layer_mix.view(-1, streams),
            x.view(-1, hidden),
            d_comb.view(-1, streams, streams),
            d_residual.view(-1, streams, hidden),
            d_post.view(-1, streams),
            d_x.view(-1, hidden),
        )
    return d_x, d_residual, d_post, d_comb


def recompute(residual, mixes, outputs, weights, combs, inputs, residuals):
    """Writes what pre_apply_mix_fwd() and post_fwd() give in turn, layer after layer, to `inputs` and `residuals`."""
    name = "mhc_multilayer_recompute"
    residual, mixes = residual.contiguous(), [mix.contiguous() for mix in mixes]
    _check_streams(name, "initial_residual", residual)
    *outer, streams, hidden = residual.shape
    whole, row, weight = tuple(residual.shape), (*outer, hidden), (*outer, streams, 1)
    for words, tensors, dtypes, shape in (
        ("pre_mix_list", mixes, _F32, weight),
        ("layer_output_list", outputs, _BF16, row),
        ("post_mix_list", weights, _F32, weight),
        ("comb_mix_list", combs, _F32, (*outer, streams, streams)),
        ("layer_input_list", inputs, _BF16, row),
        ("residual_list", residuals, _BF16, whole),
    ):
        for tensor in tensors:
            check(name, words, tensor, dtypes, shape=shape)
    most, shapes = stream_programs.LAYERS, ((-1, streams), (-1, hidden), (-1, hidden), (-1, streams), (-1, streams, streams))
    for first in range(0, len(mixes) if residual.numel() else 0, most):
        given = residual.view(-1, streams, hidden) if first == 0 else residuals[first - 1].view(-1, streams, hidden)
        lists = [of[first : first + most] for of in (mixes, inputs, outputs, weights, combs, residuals)]
        kernel = stream_programs.recompute(given, streams=streams, layers=len(lists[0]), behind=len(lists[2]))
        layers = [
            of[layer].view(shape) if layer < len(of) else None
            for layer in range(most)
            for of, shape in zip(lists, (*shapes, (-1, streams, hidden)))
        ]
        kernel(given, *layers)


# ---- weights


def split_fwd(name, mixes, scale, base, streams, post, pre):
    """(weights before, behind, between streams) of rows (tokens, columns); the last two None where there are `streams`
    columns."""
    tokens, columns = mixes.shape
    whole = columns == streams * (2 + streams) and scale.numel() == 3
    check(name, "the weights", mixes, _F32, rank=2)
    check(name, "mhc_scale", scale, _F32, shape=(3 if whole else 1,))
    check(name, "mhc_base", base, _F32, shape=(columns,))
    made = [mixes.new_empty((tokens, n)) for n in ((streams, streams, streams * streams) if whole else (streams,))]
    made += [None] * (3 - len(made))
    if mixes.numel():
        mix_programs.mixes(mixes, columns=columns, streams=streams, scales=3 if whole else 1)(
            mixes, scale, base, *made, pre, post
        )
    return made


def split_bwd(grads, mixes, scale, base, streams, post):
    """Gradients of mixes, scale and base."""
    tokens, columns = mixes.shape
    grad = torch.empty_like(mixes)
    blocks = min(get_num_sms(), max(1, ceil_div(tokens, 64)))
    sums = (torch.empty if tokens else torch.zeros)((blocks, 2, columns), dtype=torch.float32, device=mixes.device)
    if mixes.numel():
        kernel = mix_programs.mixes_gradient(mixes, columns=columns, streams=streams, scales=scale.numel())
        kernel(*(None if g is None else g.contiguous().view(tokens, -1) for g in grads), mixes, scale, base, grad, sums, post)
    of_base, of_scale = sums.sum(0)
    sizes = [streams, streams, streams * streams] if scale.numel() == 3 else [columns]
    return grad, torch.stack([part.sum() for part in of_scale.split(sizes)]), of_base


def _matrices(name, x, repeat):
    check(name, "x", x, _F32)
    if x.ndim < 2 or repeat < 1:
        refuse_option(
            name,
            f"'x' has {x.ndim} dimensions, {repeat} repetitions",
            "it is (..., rows, columns), and is repeated once at least",
        )
    rows, columns = x.shape[-2:]
    if rows * columns > 4096:
        refuse_option(name, f"matrices of {rows} by {columns}", "they stay in registers: at most 4096 elements")
    return rows, columns, max(1, min(128, 2048 // max(rows * columns, 1)))


def sinkhorn_fwd(x, repeat, eps):
    """Rows of matrices by a softmax, then columns and rows divided by their sums in turn, columns `repeat` times and last."""
    rows, columns, many = _matrices("sinkhorn_normalize", x, repeat)
    out = torch.empty_like(x)
    if x.numel():
        kernel = mix_programs.sinkhorn(x, rows=rows, columns=columns, steps=2 * repeat - 1, many=many, backward=False, exact=eps < _LEAST)
        kernel(x.view(-1, rows, columns), out.view(-1, rows, columns), None, eps)
    return out


def sinkhorn_bwd(grad, x, repeat, eps):
    """The gradient of x."""
    rows, columns, many = _matrices("sinkhorn_normalize", x, repeat)
    made, grad = torch.empty_like(x), grad.contiguous()
    if x.numel():
        many = max(1, min(many, 12288 // ((2 * repeat - 1) * max(rows, columns))))
        kernel = mix_programs.sinkhorn(x, rows=rows, columns=columns, steps=2 * repeat - 1, many=many, backward=True, exact=eps < _LEAST)
        kernel(*(t.view(-1, rows, columns) for t in (x, grad, made)), eps)
    return made


# ---- norms


def _sums_of(x, outputs, parts, tf32):
    """What norm() and pre() put between their launches: pieces of fn, and sums of parts of the columns."""
    tokens, width = x.shape
    parts = max(1, min(parts, ceil_div(width, 512), get_num_sms() // max(1, ceil_div(tokens, 128))))
    count, padded = norm_programs.pieces(outputs, tf32)
    shapes = (parts, tokens, outputs), (parts, tokens)
    return x.new_empty((count * padded, width)), *(x.new_empty(shape, dtype=torch.float32) for shape in shapes)


def norm_fn_fwd(x, fn, eps, parts):
    """(products of the normalized rows of x with those of fn, products, sums of squares): x bfloat16 (tokens, width), fn
    float32."""
    name = "mhc_pre_norm_fn"
    check(name, "residual", x, _BF16, rank=2)
    tokens, width = x.shape
    check(name, "mhc_fn", fn, _F32, shape=(None, width))
    outputs = fn.shape[0]
    out, product, square = (
        x.new_empty(shape, dtype=torch.float32) for shape in ((tokens, outputs), (tokens, outputs), (tokens,))
    )
    if tokens and outputs and width:
        tf32 = takes_tf32(x)
        norm_programs.norm(x, outputs=outputs, tf32=tf32)(
            x, fn, *_sums_of(x, outputs, parts, tf32), product, square, out, eps
        )
    return out, product, square


def pre_fwd(x, fn, scale, base, norm_eps, pre_eps, sinkhorn_eps, post, repeat, parts):
    """(weights behind the layer, between streams, what goes into it): bit for bit what norm_fn_fwd(), split_fwd(), sinkhorn_fwd()
    and pre_apply_mix_fwd() give one after the other."""
    name = "mhc_pre_big_fuse"
    _check_streams(name, "residual", x)
    *outer, streams, hidden = x.shape
    outputs = streams * (2 + streams)
    check(name, "fn", fn, _F32, shape=(outputs, streams * hidden))
    check(name, "mhc_scale", scale, _F32, shape=(3,))
    check(name, "mhc_base", base, _F32, shape=(outputs,))
    if repeat < 1:
        refuse_option(name, f"{repeat} repetitions", "it is repeated once at least")
    before, behind, between, out = (
        x.new_empty((*outer, *shape), dtype=dtype)
        for shape, dtype in (
            ((streams,), torch.float32),
            ((streams, 1), torch.float32),
            ((streams, streams), torch.float32),
            ((hidden,), torch.bfloat16),
        )
    )
    if x.numel():
        rows, tf32 = x.view(-1, streams * hidden), takes_tf32(x)
        kernel = mix_programs.pre(x, streams=streams, steps=2 * repeat - 1, tf32=tf32, exact=sinkhorn_eps < _LEAST)
        kernel(
            rows,
            rows.view(-1, streams, hidden),
            fn,
            scale,
            base,
            *_sums_of(rows, outputs, parts, tf32),
            before.view(-1, streams),
            behind.view(-1, streams),
            between.view(-1, streams, streams),
            out.view(-1, hidden),
            norm_eps,
            pre_eps,
            post,
            sinkhorn_eps,
        )
    return behind, between, out


def norm_fn_bwd(grad, x, fn, product, square, eps, x_grad):
    """The gradient of fn; that of x is added to x_grad."""
    (tokens, width), outputs = x.shape, fn.shape[0]
    if not x.numel():
        return torch.zeros_like(fn)
    fn_grad = torch.empty_like(fn)
    d_product = x.new_empty((tokens, align(outputs, 16)), dtype=torch.float32)
    kernel = norm_programs.gradient(x, outputs=outputs, tf32=takes_tf32(x))
    kernel(grad.contiguous(), product, square, x, fn, d_product, torch.empty_like(square), x_grad, fn_grad, float(width), eps)
    return fn_grad


def merge_fwd(fn, weight):
    """fn times the weight of each column."""
    check("mhc_pre_norm_fn", "mhc_fn", fn, _F32, rank=2)
    check("mhc_pre_norm_fn", "mhc_norm_weight", weight, _F32, shape=(fn.shape[1],))
    out = torch.empty_like(fn)
    if fn.numel():
        norm_programs.merge(fn, backward=False)(fn, weight, out, None, None)
    return out


def merge_bwd(grad, fn, weight, fn_grad, weight_grad):
    """Adds the gradients of fn and weight."""
    if fn.numel():
        norm_programs.merge(fn, backward=True)(fn, weight, grad.contiguous(), fn_grad, weight_grad)
