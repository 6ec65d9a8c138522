"""Pooling over one, two and three dimensions: means and largest elements of windows, of a fixed size or of a fixed number."""

from __future__ import annotations

from .calls import product, refuse_shape
from .operators import Core, check, launch, on_gpu, public, refuse_option, up_to_power_of_two

_OF_RANK = ("", "1d", "2d", "3d")


def spread(name, argument, value, dimensions, least=0):
    """A number for each dimension; one number stands for all."""
    values = list(value) if isinstance(value, (tuple, list)) else [value] * dimensions
    if len(values) != dimensions or not all(isinstance(v, int) and not isinstance(v, bool) and v >= least for v in values):
        refuse_option(name, f"{argument} is {value!r}", f"it is a whole number of at least {least}, or {dimensions} of them")
    return values


def _in_three(values, of_others):
    return [of_others] * (3 - len(values)) + list(values)


def _results(extent, window, stride, padding, dilation, ceil):
    span = extent + 2 * padding - dilation * (window - 1) - 1
    count = (-(-span // stride) if ceil else span // stride) + 1
    # The last window begins inside, or in the padding before.
    return count - 1 if ceil and (count - 1) * stride >= extent + padding else count


def _fit(extent, results, window, stride, dilation):
    """Whether windows without padding end inside."""
    return (results - 1) * stride + dilation * (window - 1) < extent


def by_lines(windows, extents, results):
    """The options by which a CPU goes along lines of images, if these fill vectors and have room."""
    width = up_to_power_of_two(results[-1])
    window, stride, padding, dilation = (windows[name][2] for name in ("window", "stride", "padding", "dilation"))
    if results[-1] < 16 or width > 32768 or window > 64:
        return None
    room = max(results[-1] + (window - 1) * dilation // stride, (extents[-1] + padding) // stride + 1)
    return {"room": up_to_power_of_two(room), "width": width, "lines": max(1, min(16, 4096 // width))}


def _run(x, largest, places, window, stride, padding, dilation, ceil, counts_padding, divisor, sizes):
    import torch

    from .programs import pooling

    n = len(window) or len(sizes)
    lead, extents = x.shape[: x.dim() - n], x.shape[x.dim() - n :]
    results = list(sizes) or [_results(*of, ceil) for of in zip(extents, window, stride, padding, dilation)]
    shape = (*lead, *results)
    made = x.new_empty(shape)
    at = x.new_empty(shape if places else (0,), dtype=torch.int64)
    if made.numel():
        m = product(lead)
        options = {
            "x": str(x.dtype).removeprefix("torch."),
            "largest": largest,
            "places": places,
            "adaptive": bool(sizes),
            "window": tuple(_in_three(window, 1)),
            "stride": tuple(_in_three(stride, 1)),
            "padding": tuple(_in_three(padding, 0)),
            "dilation": tuple(_in_three(dilation, 1)),
            "counts_padding": counts_padding,
            "divisor": divisor,
            "threads": 128,
        }
        # What a window has at most, along each dimension.
        most = [min(e, -(-e // r) + 1) for e, r in zip(extents, results)] if sizes else window
        # So many elements of a window for each lane, four lanes and more where there are as many for four: on an H200 windows
        # of 585 elements of a line take 63 us by 16 lanes and 90 by 32, of 8 x 8 x 8 24 by 2 x 2 and 75 by 4 x 8.
        lanes = up_to_power_of_two(max(product(most) // (64 if n == 1 else 256), 1))
        lanes = min(max(lanes, min(4, up_to_power_of_two(product(most)) // 4)), 32)
        if largest and not places and not sizes and not on_gpu(x) and (lines := by_lines(options, extents, results)):
            (d, h, w), (od, oh, ow) = _in_three(extents, 1), _in_three(results, 1)
            lines.update({name: options[name] for name in ("x", "window", "stride", "padding", "dilation", "threads")})
            given, made_in_lines = x.contiguous().view(m, d * h, w), made.view(m, od * oh, ow)
            launch(pooling.largest_by_lines, lines, given, made_in_lines, d, h, oh)
            return made, at
        family = pooling.windows
        if on_gpu(x) and lanes > 1 and (sizes or product(most) > 64):
            across = min(lanes if n == 1 else max(lanes // 2, 1), up_to_power_of_two(most[-1]))
            family = pooling.wide_windows
            options.update(down=lanes // across, across=across)
        else:
            inside = not sizes and not any(padding) and all(map(_fit, extents, results, window, stride, dilation))
            options.update(rank=n, inside=inside, branches=not on_gpu(x), width=256 if on_gpu(x) else 1024)
        given = at.view(m, -1) if places else at.new_empty((1, product(results)))
        sizes_in_three = (*_in_three(extents, 1), *_in_three(results, 1))
        launch(family, options, x.contiguous().view(m, -1), made.view(m, -1), given, *sizes_in_three)
    return made, at


def _reference(x, largest, places, window, stride, padding, dilation, ceil, counts_padding, divisor, sizes):
    import torch

    f, n = torch.nn.functional, len(window) or len(sizes)
    kind = _OF_RANK[n]
    lead = x.shape[: x.dim() - n]
    wide = x.reshape(product(lead), 1, *x.shape[x.dim() - n :])
    if sizes:
        made = (
            getattr(f, f"adaptive_max_pool{kind}")(wide, list(sizes), return_indices=True)
            if largest
            else getattr(f, f"adaptive_avg_pool{kind}")(wide, list(sizes))
        )
    elif largest:
        made = getattr(f, f"max_pool{kind}")(wide, window, stride, padding, dilation, ceil, return_indices=True)
    else:
        divided = {} if n == 1 or not divisor else {"divisor_override": divisor}
        made = getattr(f, f"avg_pool{kind}")(wide, window, stride, padding, ceil, counts_padding, **divided)
    values, at = made if largest else (made, None)
    shape = (*lead, *values.shape[2:])
    return values.reshape(shape), at.reshape(shape) if places else x.new_empty((0,), dtype=torch.int64)


_pool = Core(
    "pool",
    "(Tensor x, bool largest, bool places, int[] window, int[] stride, int[] padding, int[] dilation, bool ceil, bool counts_padding, "
    "int divisor, int[] sizes) -> (Tensor, Tensor)",
    _run,
    _reference,
)


def _checked(name, x, n):
    x = check(name, "x", x, rank=(n + 1, n + 2))
    if not product(x.shape[-n:]):
        refuse_shape(name, f"'x' has shape {tuple(x.shape)}", "its last dimensions are not empty")
    return x


def _windows(name, x, n, kernel_size, stride, padding, dilation, ceil_mode):
    window = spread(name, "kernel_size", kernel_size, n, 1)
    stride = window if stride is None else spread(name, "stride", stride, n, 1)
    padding, dilation = spread(name, "padding", padding, n), spread(name, "dilation", dilation, n, 1)
    for p, w in zip(padding, window):
        if 2 * p > w:
            refuse_option(
                name, f"padding {padding} of windows {window}", "it is half a window at most: each window has an element"
            )
    results = [_results(*of, bool(ceil_mode)) for of in zip(x.shape[-n:], window, stride, padding, dilation)]
    if any(r < 1 for r in results):
        refuse_shape(name, f"windows {window} with dilation {dilation} do not fit into 'x' of shape {tuple(x.shape)}")
    return window, stride, padding, dilation


_DTYPES = """x: ({batch}channels, {extents}) of float16, bfloat16 or float32, with or without a batch in front. kernel_size, stride, padding{dilation}: a number,
    or one for each dimension; padding is half a window at most. stride: that of the window if None. ceil_mode: a last window may hang over the end"""
_EXTENTS = ("", "length", "height, width", "depth, height, width")


def _avg(n):
    name = f"avg_pool{_OF_RANK[n]}"

    def of(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        x = _checked(name, x, n)
        if divisor_override is not None and (not isinstance(divisor_override, int) or divisor_override < 1 or n == 1):
            refuse_option(
                name,
                f"divisor_override is {divisor_override!r}",
                "it is a whole number above 0, of two dimensions and three, or None",
            )
        window, stride, padding, dilation = _windows(name, x, n, kernel_size, stride, padding, 1, ceil_mode)
        return _pool(
            x,
            False,
            False,
            window,
            stride,
            padding,
            dilation,
            bool(ceil_mode),
            bool(count_include_pad),
            divisor_override or 0,
            [],
        )[0]

    of.__name__ = of.__qualname__ = name
    of.__doc__ = f"""The mean of each window. Divided by divisor_override, or by the elements of the window, padding included or not.

    {_DTYPES.format(batch="batch, ", extents=_EXTENTS[n], dilation="")}. Sums are float32. Has gradients in PyTorch."""
    return public(of)


def _max(n, places):
    name = f"max_pool{_OF_RANK[n]}" + ("_indices" if places else "")

    def of(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        x = _checked(name, x, n)
        made = _pool(
            x,
            True,
            places,
            *_windows(name, x, n, kernel_size, stride, padding, dilation, ceil_mode),
            bool(ceil_mode),
            True,
            0,
            [],
        )
        return made if places else made[0]

    of.__name__ = of.__qualname__ = name
    what = (
        "(the largest element of each window, its place in the flattened last dimensions, int64)"
        if places
        else "The largest element of each window"
    )
    of.__doc__ = f"""{what}; NaN where one is, of equals the first.

    {_DTYPES.format(batch="batch, ", extents=_EXTENTS[n], dilation=", dilation")}. Has gradients in PyTorch."""
    return public(of)


def _adaptive(n, largest, places):
    name = f"adaptive_{'max' if largest else 'avg'}_pool{_OF_RANK[n]}" + ("_indices" if places else "")

    def of(x, output_size):
        x = _checked(name, x, n)
        given = output_size if isinstance(output_size, (tuple, list)) else [output_size] * n
        sizes = [e if s is None else s for s, e in zip(given, x.shape[-n:])]
        sizes = spread(name, "output_size", sizes if len(given) == n else list(given), n, 1)
        made = _pool(x, largest, places, [], [], [], [], False, True, 0, sizes)
        return made if places else made[0]

    of.__name__ = of.__qualname__ = name
    what = (
        "(the largest element of each window, its place in the flattened last dimensions, int64)"
        if places
        else "The largest element of each window"
        if largest
        else "The mean of each window"
    )
    of.__doc__ = f"""{what}, of output_size windows: window w of n begins at the whole part of w * extent / n and ends where the next begins, rounded up.

    x: (batch, channels, {_EXTENTS[n]}) of float16, bfloat16 or float32, with or without a batch in front. output_size: a number, or one for each
    dimension, None for the extent. Sums are float32. Has gradients in PyTorch."""
    return public(of)


for _n in (1, 2, 3):
    globals().update(
        {
            f"avg_pool{_n}d": _avg(_n),
            f"max_pool{_n}d": _max(_n, False),
            f"max_pool{_n}d_indices": _max(_n, True),
            f"adaptive_avg_pool{_n}d": _adaptive(_n, False, False),
            f"adaptive_max_pool{_n}d": _adaptive(_n, True, False),
            f"adaptive_max_pool{_n}d_indices": _adaptive(_n, True, True),
        }
    )
