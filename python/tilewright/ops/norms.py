"""Norms: of rows with a residual, adaptive ones, of groups, instances and batches."""

from __future__ import annotations

import math

from .calls import as_number, product, refuse_shape
from .operators import FLOATS, Core, check, check_number, launch, on_gpu, public, refuse_option, up_to_power_of_two

_ROW_ELEMENTS = 32  # of a thread, of a row that is on chip whole
_BLOCKS = 512  # that keep a device busy: four of each multiprocessor of an H200


def _kind(x):
    return str(x.dtype).removeprefix("torch.")


def _tiles(n, gpu):
    """(columns of a row on chip or 0, rows of a block, columns of a tile, threads)."""
    if not gpu:
        return (n if n <= 65536 else 0), max(1, min(64, 16384 // up_to_power_of_two(max(n, 1)))), 16384, 128
    threads = 128
    while threads < 1024 and n > threads * _ROW_ELEMENTS:
        threads *= 2
    if n > threads * _ROW_ELEMENTS:
        return 0, 1, 8192, 256
    return n, max(1, min(16, 4096 // up_to_power_of_two(n))), 8192, threads


def _near(length, width, gpu):
    """How many elements after each other are sure to be of one channel: what a thread, or a loop in vectors, goes through."""
    near = math.gcd(length, width, 8 if gpu else 256)
    return 1 if gpu and near < 8 else near


def _parts(m, n, tile):
    """How many blocks share a row: m rows alone would leave a device idle."""
    from .programs.norms import MOST_PARTS

    return max(1, min(MOST_PARTS, -(-_BLOCKS // m), -(-n // tile)))


def _run(x, residual, weight, bias, gate, kind, how, groups, length, epsilon):
    import torch

    from .programs import norms

    made, total = x.new_empty(x.shape), x.new_empty(x.shape if residual is not None else (0,))
    m, n = groups[0], groups[1]
    if x.numel():
        columns, rows, tile, threads = _tiles(n, on_gpu(x))
        one = x.new_empty((1,))
        of_each = how == "row"  # whether each element has its own weight and bias
        wide = [
            one if t is None else t.contiguous().view(m, n) if lies_as_x else t.contiguous()
            for t, lies_as_x in ((residual, True), (weight, of_each), (bias, of_each), (gate, True))
        ]
        options = {
            "x": _kind(x),
            "kind": kind,
            "added": residual is not None,
            "weight": how if weight is not None else "",
            "bias": how if bias is not None else "",
            "gate": gate is not None,
            "near": _near(length, columns or tile, on_gpu(x)) if how == "channel" else 1,
            "tile": tile,
            "threads": threads,
        }
        written = [made.view(m, n), total.view(m, n) if residual is not None else one]
        parts = _parts(m, n, tile) if on_gpu(x) and not columns else 1
        if parts > 1:
            family = norms.parts
            written.append(x.new_empty((m, parts, 2), dtype=torch.float32))
        else:
            family = norms.rows
            options |= {"columns": columns, "rows": rows}
        launch(family, options, x.contiguous().view(m, n), *wide, *written, float(epsilon), groups[2], groups[3], length)
    return made, total


def _reference(x, residual, weight, bias, gate, kind, how, groups, length, epsilon):
    import torch

    total = x if residual is None else x + residual
    wide = total.float() if total.dtype in (torch.float16, torch.bfloat16) else total
    m, n, group_count, count = groups
    rows = wide.reshape(m, n)
    if kind == "layer":
        rows = rows - rows.mean(-1, keepdim=True)
    rows = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + epsilon)

    def lying(t):
        if how == "channel":
            return (
                t.reshape(group_count, count, 1)
                .expand(group_count, count, length)
                .reshape(group_count, n)
                .repeat(m // group_count, 1)
                .to(wide.dtype)
            )
        return t.reshape(-1, n).to(wide.dtype)

    rows = rows if weight is None else rows * lying(weight)
    rows = rows if bias is None else rows + lying(bias)
    rows = rows if gate is None else rows * gate.reshape(m, n).to(wide.dtype)
    return rows.reshape(x.shape).to(x.dtype), total if residual is not None else x.new_empty((0,))


_norm = Core(
    "norm_of_rows",
    "(Tensor x, Tensor? residual, Tensor? weight, Tensor? bias, Tensor? gate, str kind, str how, int[] groups, int length, "
    "float epsilon) -> (Tensor, Tensor)",
    _run,
    _reference,
)


def _columns(name, x):
    x = check(name, "x", x)
    if not len(x.shape):
        refuse_shape(name, "'x' has no dimension", "its last dimension is what the function goes along")
    return x, [product(x.shape[:-1]), x.shape[-1], 1, 1]


def _beside(name, x, **tensors):
    return [None if t is None else check(name, argument, t, shape=tuple(x.shape), like=x) for argument, t in tensors.items()]


def _along(name, x, **tensors):
    return [None if t is None else check(name, argument, t, shape=tuple(x.shape[-1:]), like=x) for argument, t in tensors.items()]


def fused_add_rms_norm(x, residual, weight=None, *, epsilon=1e-6):
    """(rms_norm(x + residual) * weight, x + residual), where the sum is rounded to x's dtype before it is normalized.

    x, residual: (..., N) of float16, bfloat16 or float32; weight: (N,) or None. Computed in float32. Has gradients in PyTorch."""
    x, groups = _columns("fused_add_rms_norm", x)
    (residual,), (weight,) = _beside("fused_add_rms_norm", x, residual=residual), _along("fused_add_rms_norm", x, weight=weight)
    return _norm(x, residual, weight, None, None, "rms", "column", groups, 1, as_number("fused_add_rms_norm", "epsilon", epsilon))


def fused_add_layer_norm(x, residual, weight=None, bias=None, *, epsilon=1e-5):
    """(layer_norm(x + residual) * weight + bias, x + residual), where the sum is rounded to x's dtype before it is
    normalized.

    x, residual: (..., N) of float16, bfloat16 or float32; weight, bias: (N,) or None. Computed in float32. Has gradients in
    PyTorch."""
    name = "fused_add_layer_norm"
    x, groups = _columns(name, x)
    (residual,), (weight, bias) = _beside(name, x, residual=residual), _along(name, x, weight=weight, bias=bias)
    return _norm(x, residual, weight, bias, None, "layer", "column", groups, 1, as_number("fused_add_layer_norm", "epsilon", epsilon))


def ada_layer_norm(x, scale, shift, *, epsilon=1e-5):
    """layer_norm(x) * scale + shift, where both are as x: (..., N) of float16, bfloat16 or float32. Computed in float32. Has
    gradients in PyTorch."""
    x, groups = _columns("ada_layer_norm", x)
    scale, shift = _beside("ada_layer_norm", x, scale=scale, shift=shift)
    return _norm(x, None, scale, shift, None, "layer", "row", groups, 1, as_number("ada_layer_norm", "epsilon", epsilon))[0]


def ada_layer_norm_zero(x, scale, shift, gate, *, epsilon=1e-5):
    """gate * (layer_norm(x) * scale + shift), where all are as x: (..., N) of float16, bfloat16 or float32. Computed in
    float32. Has gradients in PyTorch."""
    x, groups = _columns("ada_layer_norm_zero", x)
    scale, shift, gate = _beside("ada_layer_norm_zero", x, scale=scale, shift=shift, gate=gate)
    return _norm(x, None, scale, shift, gate, "layer", "row", groups, 1, as_number("ada_layer_norm_zero", "epsilon", epsilon))[0]


def _of_groups(name, x, num_groups, weight, bias, epsilon):
    batch, channels = x.shape[:2]
    length, count = product(x.shape[2:]), channels // max(num_groups, 1)
    weight, bias = (
        None if t is None else check(name, n, t, shape=(channels,), like=x) for n, t in (("weight", weight), ("bias", bias))
    )
    return _norm(
        x,
        None,
        weight,
        bias,
        None,
        "layer",
        "channel",
        [batch * num_groups, count * length, num_groups, count],
        max(length, 1),
        as_number(name, "epsilon", epsilon),
    )[0]


def group_norm(x, num_groups, weight=None, bias=None, *, epsilon=1e-5):
    """x with mean 0 and variance 1 over each of num_groups groups of channels, times weight, plus bias.

    x: (batch, channels, ...) of float16, bfloat16 or float32; weight, bias: (channels,) of x's dtype, or None. num_groups divides
    channels. Computed in float32. Has gradients in PyTorch."""
    x = check("group_norm", "x", x, rank=(2, 3, 4, 5, 6))
    check_number("group_norm", "num_groups", num_groups, 1, whole=True)
    if x.shape[1] % num_groups:
        refuse_shape("group_norm", f"{x.shape[1]} channels do not divide among {num_groups} groups")
    return _of_groups("group_norm", x, num_groups, weight, bias, epsilon)


def instance_norm(
    x, running_mean=None, running_var=None, weight=None, bias=None, *, use_input_stats=True, momentum=0.1, epsilon=1e-5
):
    """x with mean 0 and variance 1 over each channel of each element of the batch, times weight, plus bias. Without
    use_input_stats by running_mean and running_var.

    x: (batch, channels, length, ...) of float16, bfloat16 or float32; weight, bias: (channels,) of x's dtype, or None.
    Running statistics: float32 (channels,); with use_input_stats they are brought nearer to those of the batch, by
    `momentum`. Computed in float32. Has gradients in PyTorch."""
    name = "instance_norm"
    x = check(name, "x", x, rank=(3, 4, 5, 6))
    batch, channels = x.shape[:2]
    statistics = _running(name, channels, running_mean, running_var)
    if not use_input_stats:
        if statistics is None:
            refuse_option(name, "neither statistics of the input nor running ones", "pass running_mean and running_var")
        return _by_channel(x, *statistics, weight, bias, epsilon, name)
    if statistics is not None:
        import torch

        from .reductions import compute

        length = product(x.shape[2:])
        flat = x.detach().reshape(batch * channels, length).float()
        mean, var = compute("mean", flat, 1).view(batch, channels), compute("var", flat, 1).view(batch, channels)
        with torch.no_grad():
            statistics[0].lerp_(mean.mean(0), momentum)
            statistics[1].lerp_(var.mean(0), momentum)
    return _of_groups(name, x, channels, weight, bias, epsilon)


def _running(name, channels, mean, var):
    if (mean is None) != (var is None):
        refuse_option(name, "one running statistic of two", "pass running_mean and running_var, or neither")
    if mean is None:
        return None
    for argument, t in (("running_mean", mean), ("running_var", var)):
        check(name, argument, t, ("float32",), shape=(channels,))
    return mean, var


# ---- by channel


def _run_channels(x, scale, shift):
    from .programs import norms

    made, channels = x.new_empty(x.shape), x.shape[1]
    if x.numel():
        m, n = x.shape[0] * channels, product(x.shape[2:])
        columns = max(8, min(up_to_power_of_two(n), 2048))
        options = {"x": _kind(x), "rows": max(1, 2048 // columns), "columns": columns, "threads": 128}
        launch(norms.channels, options, x.contiguous().view(m, n), scale.contiguous(), shift.contiguous(), made.view(m, n))
    return made


def _reference_channels(x, scale, shift):
    import torch

    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    lying = (1, -1, *[1] * (x.dim() - 2))
    return (wide * scale.reshape(lying) + shift.reshape(lying)).to(x.dtype)


_channels = Core("scale_channels", "(Tensor x, Tensor scale, Tensor shift) -> Tensor", _run_channels, _reference_channels)


def _by_channel(x, mean, var, weight, bias, epsilon, name):
    import torch

    channels = x.shape[1]
    for argument, t in (("weight", weight), ("bias", bias)):
        if t is not None:
            check(name, argument, t, FLOATS, shape=(channels,))
    scale = torch.rsqrt(var + epsilon)
    scale = scale if weight is None else scale * weight.float()
    shift = -mean * scale
    return _channels(x, scale, shift if bias is None else shift + bias.float())


def _in_parts(x):
    """(x as (batch, channels, length), tiles of it, room for two numbers of each channel and part of the batch)"""
    import torch

    batch, channels = x.shape[:2]
    length = product(x.shape[2:])
    columns = max(8, min(up_to_power_of_two(length), 2048))
    rows = min(max(1, 4096 // columns), up_to_power_of_two(batch))
    parts = max(1, min(-(-1024 // channels), -(-batch // rows)))
    options = {"x": _kind(x), "rows": rows, "columns": columns, "threads": 256}
    return x.contiguous().view(batch, channels, length), options, x.new_empty((channels, parts, 2), dtype=torch.float32)


def _run_moments(x):
    """Means and variances of channels, without a copy; on a CPU along what is behind the channels, then along the batch."""
    from .programs import norms
    from .reductions import moments

    if not on_gpu(x):
        return moments(x)
    given, options, parts = _in_parts(x)
    mean, var = (parts.new_empty(x.shape[1]) for _ in range(2))
    launch(norms.moments, options, given, parts, mean, var)
    return mean, var


def _reference_moments(x):
    import torch

    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    dims = [0, *range(2, x.dim())]
    return wide.mean(dims), wide.var(dims, correction=0)


_moments = Core("moments_of_channels", "(Tensor x) -> (Tensor, Tensor)", _run_moments, _reference_moments)


def batch_norm(x, running_mean=None, running_var=None, weight=None, bias=None, *, training=False, momentum=0.1, epsilon=1e-5):
    """x with mean 0 and variance 1 over each channel of the batch, times weight, plus bias; unless training, by running_mean
    and running_var.

    x: (batch, channels, ...) of float16, bfloat16 or float32; weight, bias: (channels,), or None; running statistics:
    float32 (channels,), when training brought nearer to those of the batch by `momentum`. Computed in float32. Has gradients
    in PyTorch."""
    name = "batch_norm"
    x = check(name, "x", x, rank=(2, 3, 4, 5))
    statistics = _running(name, x.shape[1], running_mean, running_var)
    if not training:
        if statistics is None:
            refuse_option(name, "no running statistics", "pass running_mean and running_var, or training=True")
        return _by_channel(x, *statistics, weight, bias, epsilon, name)
    count = product(x.shape) // max(x.shape[1], 1)
    if count < 2:
        refuse_shape(name, f"{count} elements of each channel: 'x' has shape {tuple(x.shape)}", "there is no variance of one")
    mean, var = _moments(x)
    if statistics is not None:
        import torch

        with torch.no_grad():
            statistics[0].lerp_(mean.detach(), momentum)
            statistics[1].lerp_(var.detach() * (count / (count - 1)), momentum)
    return _by_channel(x, mean, var, weight, bias, epsilon, name)


def batch_norm_backward(grad_out, x, weight, mean, rstd):
    """(the gradient of x, float32 gradients of weight and bias) of batch_norm() in training.

    grad_out, x: (batch, channels, ...) of one dtype; weight, mean, rstd: float32 (channels,), of the batch: rstd is 1 /
    sqrt(variance + epsilon). Computed in float32."""
    name = "batch_norm_backward"
    x = check(name, "x", x, rank=(2, 3, 4, 5))
    grad_out = check(name, "grad_out", grad_out, shape=tuple(x.shape), like=x)
    weight, mean, rstd = (
        check(name, n, t, ("float32",), shape=(x.shape[1],)) for n, t in (("weight", weight), ("mean", mean), ("rstd", rstd))
    )
    from . import elementwise
    from .reductions import moments

    if on_gpu(x) and product(x.shape) and _kind(x) in FLOATS:
        from .programs import norms

        given, options, parts = _in_parts(x)
        made = x.new_empty(x.shape)
        of_weight, of_bias = (parts.new_empty(x.shape[1]) for _ in range(2))
        grads = grad_out.contiguous().view(given.shape)
        numbers = (t.contiguous() for t in (weight, mean, rstd))
        launch(norms.channel_gradients, options, grads, given, *numbers, parts, made.view(given.shape), of_weight, of_bias)
        return made, of_weight, of_bias
    count = product(x.shape) // max(x.shape[1], 1)
    wide, normal = grad_out.float(), _run_channels(x.float(), rstd, -mean * rstd)
    of_bias = moments(wide, False)[0] * count
    of_weight = moments(elementwise.run("mul", ("a", "b"), (wide, normal)), False)[0] * count
    part = _run_channels(normal, of_weight / -count, of_bias / -count)
    of_x = _run_channels(elementwise.run("add", ("a", "b"), (wide, part)), weight * rstd, mean.new_zeros(mean.shape))
    return of_x.to(x.dtype), of_weight, of_bias


(
    fused_add_rms_norm,
    fused_add_layer_norm,
    ada_layer_norm,
    ada_layer_norm_zero,
    group_norm,
    instance_norm,
    batch_norm,
    batch_norm_backward,
) = map(
    public,
    (
        fused_add_rms_norm,
        fused_add_layer_norm,
        ada_layer_norm,
        ada_layer_norm_zero,
        group_norm,
        instance_norm,
        batch_norm,
        batch_norm_backward,
    ),
)
