"""Convolutions over one, two and three dimensions."""

from __future__ import annotations

from .calls import product, refuse_shape
from .operators import Core, check, check_number, launch, on_gpu, public, refuse_option, up_to_power_of_two
from .pooling import _in_three, by_lines, spread

_MANY = 264  # tiles of 256 places: enough for a GPU, where twice as many share the weights that they bring


def _results(extents, window, stride, padding, dilation):
    return [(e + 2 * p - d * (w - 1) - 1) // s + 1 for e, w, s, p, d in zip(extents, window, stride, padding, dilation)]


def _turned(x):
    """(m, c, p) with the last two dimensions exchanged."""
    from .programs import convolutions

    made = x.new_empty((x.shape[0], x.shape[2], x.shape[1]))
    launch(convolutions.turned, {"x": str(x.dtype).removeprefix("torch.")}, x, made)
    return made


def _straight(of_group, terms, windows, extents, results):
    """The options by which a CPU goes along lines of images, if that is the way: a tile of products would be for the most part
    empty."""
    options = by_lines(windows, extents, results) if of_group < 16 or terms <= 32 else None
    if options:
        options["rows"] = min(8, up_to_power_of_two(of_group), 64 // windows["window"][2], 32768 // options["width"])
    return options


def _run(x, weight, bias, stride, padding, dilation, groups):
    import torch

    from .programs import convolutions

    outputs, of_channels = weight.shape[:2]
    window, extents = list(weight.shape[2:]), x.shape[2:]
    results = _results(extents, window, stride, padding, dilation)
    made = x.new_empty((x.shape[0], outputs, *results))
    if not made.numel():
        return made
    gpu, of_group, taps = on_gpu(x), outputs // groups, product(window)
    piece, places = 4 if x.dtype is torch.float32 else 8, product(extents)
    rows = next((n for n in (16, 32, 64) if of_group <= n), 128 if gpu and piece == 8 else 64)
    options = {
        "x": str(x.dtype).removeprefix("torch."),
        "index": "int64" if max(made.numel(), product(x.shape[1:])) >= 2**31 else "int32",
        "bias": bias is not None,
        "tf32": False,
        "rows": rows,
        "columns": 128 if gpu else 64,
        "depth": 32,
        "threads": 256 if rows > 64 else 128,
    }
    windows = {
        "window": tuple(_in_three(window, 1)),
        "stride": tuple(_in_three(stride, 1)),
        "padding": tuple(_in_three(padding, 0)),
        "dilation": tuple(_in_three(dilation, 1)),
    }
    numbers = *_in_three(extents, 1), *_in_three(results, 1)
    count = torch.empty((groups,), dtype=torch.int8, device=x.device)
    x, weight = x.contiguous().view(*x.shape[:2], places), weight.contiguous().view(outputs, of_channels, taps)
    bias, result = x.new_empty((1,)) if bias is None else bias.contiguous(), made.view(-1)
    still = taps == 1 and set(stride) == {1} and not any(padding)
    if still and (groups == 1 or of_channels % 64 == 0) and not (gpu and places % piece):
        options.update(depth=64 if piece == 8 else 32, stages=3)
        launch(convolutions.lines, options, x, weight.view(outputs, of_channels), bias, result, count)
    elif gpu and of_channels % piece == 0 and x.shape[0] * places < 2**31:
        options.update(windows, depth=64 if piece == 8 else 32, stages=3)
        if rows == 64 and piece == 8 and made.numel() // outputs >= 256 * _MANY:
            options.update(columns=256, threads=256)
        x, weight = _turned(x).view(-1, x.shape[1]), _turned(weight).view(-1, of_channels)
        launch(convolutions.channels, options, x, weight, bias, result, count, *numbers)
    elif not gpu and (plan := _straight(of_group, of_channels * taps, windows, extents, results)):
        plan.update(windows, x=options["x"], bias=options["bias"], threads=128)
        d, h, w, od, oh, ow = numbers
        x, result = x.view(-1, d * h, w), made.view(-1, od * oh, ow)
        launch(convolutions.straight, plan, x, weight.view(outputs, -1), bias, result, count, d, h, oh)
    else:
        options.update(windows, rows=min(rows, 64), threads=128)
        launch(convolutions.patches, options, x.view(x.shape[0], -1), weight.view(outputs, -1), bias, result, count, *numbers)
    return made


def _reference(x, weight, bias, stride, padding, dilation, groups):
    import torch

    of = getattr(torch.nn.functional, f"conv{len(stride)}d")
    return of(x, weight, bias, stride, padding, dilation, groups)


_convolution = Core(
    "convolution",
    "(Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor",
    _run,
    _reference,
)


def _conv(n):
    name = f"conv{n}d"

    def of(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        x = check(name, "x", x, rank=(n + 1, n + 2))
        weight = check(name, "weight", weight, rank=n + 2, like=x)
        lone = len(x.shape) == n + 1
        x = x[None] if lone else x
        check_number(name, "groups", groups, 1, whole=True)
        outputs, channels = weight.shape[:2]
        if x.shape[1] != channels * groups or outputs % groups:
            refuse_shape(
                name,
                f"'x' has {x.shape[1]} channels and 'weight' has shape {tuple(weight.shape)}, in {groups} groups",
                "'weight' is (channels of the result, channels of x / groups, window), and groups divide both",
            )
        bias = None if bias is None else check(name, "bias", bias, shape=(outputs,), like=x)
        stride, dilation, window = (
            spread(name, "stride", stride, n, 1),
            spread(name, "dilation", dilation, n, 1),
            weight.shape[2:],
        )
        if not product(window):
            refuse_shape(name, f"'weight' has shape {tuple(weight.shape)}", "a window has an element")
        if padding == "same":
            if any(s != 1 for s in stride):
                refuse_option(name, f"padding 'same' with stride {stride}", "'same' wants a stride of 1")
            spans = [d * (w - 1) for d, w in zip(dilation, window)]
            if any(s % 2 for s in spans):  # one more behind than before
                import torch

                x = torch.nn.functional.pad(x, [e for s in reversed(spans) for e in (0, s % 2)])
            padding = [s // 2 for s in spans]
        else:
            padding = spread(name, "padding", 0 if padding == "valid" else padding, n)
        if any(r < 1 for r in _results(x.shape[2:], window, stride, padding, dilation)):
            refuse_shape(name, f"windows {tuple(window)} with dilation {dilation} do not fit into 'x' of shape {tuple(x.shape)}")
        made = _convolution(x, weight, bias, stride, padding, dilation, groups)
        return made[0] if lone else made

    of.__name__ = of.__qualname__ = name
    extents = ("", "length", "height, width", "depth, height, width")[n]
    of.__doc__ = f"""The convolution of x with weight, plus bias, as torch.nn.functional.{name}.

    x: (batch, channels, {extents}), with or without a batch; weight: (results, channels / groups, window); bias: (results,) or None; all of one
    dtype, float16, bfloat16 or float32, summed in float32 and rounded once. stride, padding, dilation: a number, or one for each dimension;
    padding also "valid" or, with a stride of 1, "same". Has gradients in PyTorch, of its own functions."""
    return public(of)


conv1d, conv2d, conv3d = map(_conv, (1, 2, 3))
