"""Reductions along any dimensions: a table, and the kernels that a row of it takes."""
from __future__ import annotations

import functools
from typing import NamedTuple

from ..tensors import empty
from ..trace import fail
from ..tracebacks import entry
from . import elementwise, gradients
from .calls import (Operator, Resolved, Spec, calling, check_tensor, chosen, compact, device_of, is_torch, name_of, permuted, place_of, product,
                    refuse_dtype, refuse_shape, remember, remembered, reshaped, specialization)  # fmt: skip
from .operators import Core

_FLOATS = ("float16", "bfloat16", "float32")
_NUMBERS = (*_FLOATS, "int32")
_ASKED = (*_FLOATS, "int8", "int16", "int32", "int64", "uint8", "bool")


class _Row(NamedTuple):
    """A reduction: what it takes and gives, and what a call needs besides."""

    means: str
    taken: tuple = _FLOATS
    result: str | None = None  # the dtype, where it is not x's
    sums: str = "float32"  # the dtype of parts
    of_none: bool = True  # whether there is a result of no elements
    centre: str | None = None  # the reduction whose result elements are compared with
    gradients: bool = True


TABLE = {
    "sum": _Row("The sum of elements", _NUMBERS, sums="x"),
    "mean": _Row("The sum of elements, divided by their number; NaN of none"),
    "prod": _Row("The product of elements"),
    "max": _Row("The largest element; NaN where one is", _NUMBERS, sums="x", of_none=False),
    "min": _Row("The least element; NaN where one is", _NUMBERS, sums="x", of_none=False),
    "amax": _Row("The largest element; NaN where one is; a gradient is shared among equals", _NUMBERS, sums="x", of_none=False),
    "amin": _Row("The least element; NaN where one is; a gradient is shared among equals", _NUMBERS, sums="x", of_none=False),
    "l1_norm": _Row("The sum of magnitudes"),
    "l2_norm": _Row("The root of the sum of squares"),
    "inf_norm": _Row("The largest magnitude; NaN where an element is; 0 of none"),
    "any": _Row("Whether an element is not 0", _ASKED, "bool", "int32", gradients=False),
    "all": _Row("Whether no element is 0", _ASKED, "bool", "int32", gradients=False),
    "count_nonzero": _Row("How many elements are not 0", _ASKED, "int64", "int32", gradients=False),
    "logsumexp": _Row("log(sum(exp(x))), where the largest is taken out first; -inf of -inf alone, and of none", centre="max"),
    "var": _Row("The mean of squared differences from the mean, divided by count - correction", centre="mean"),
    "std": _Row("The root of the variance, divided by count - correction", centre="mean"),
}
_PROGRAM = {"amax": "max", "amin": "min"}


def _axes(function, x, dim):
    rank = len(x.shape)
    if not rank and dim in (0, -1, (0,), (-1,), [0], [-1]):  # of the one element, as of a dimension of one
        return []
    given = range(rank) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    found = []
    for d in given:
        if not isinstance(d, int) or not -rank <= d < rank or d % rank in found:
            refuse_shape(function, f"dim is {dim!r}, but 'x' has {rank} dimensions", "dim is a dimension, several of them, each once, or None for all")
        found.append(d % rank)
    return sorted(found)


def _in_order(x, dim):
    """Whether the dimensions lie beside each other, so that the tensor is reduced where it is."""
    axes = _axes("", x, dim)
    return axes == list(range(axes[0], axes[-1] + 1))


def _laid_out(x, axes):
    """(x as (M, R, N) with R what is reduced, whether N is 1): dimensions that lie apart are brought together by a copy."""
    first, last = axes[0], axes[-1]
    if not _in_order(x, tuple(axes)):
        kept = [d for d in range(len(x.shape)) if d not in axes]
        x = permuted(x, [*kept, *axes])
        first, last = len(kept), len(x.shape) - 1
    shape = tuple(x.shape)
    m, r, n = product(shape[:first]), product(shape[first : last + 1]), product(shape[last + 1 :])
    x = compact(x)
    return (reshaped(x, (m, r)) if n == 1 else reshaped(x, (m, r, n))), n == 1


def _step(reduction, x, last, result, place, count, mapped=False):
    """The calls that reduce (M, R, N) or (M, R), and what elements are compared with: (run, specializations)."""
    options = {"reduction": reduction, "x": name_of(x.dtype), "result": result, "last": last, "mapped": mapped}
    extents = dict(zip("MRN", x.shape))
    choice = chosen("reduce", options, place, {**extents, "R": x.shape[1] or 1})
    tiles, parts = choice["options"], choice["parts"]
    row = TABLE[reduction]
    numbers = (float(count),) if reduction in ("mean", "var", "std") else ()
    compared = row.centre is not None and (not mapped or reduction == "logsumexp")
    if parts == 1:
        wanted = specialization("reduce", {**options, **tiles}, place, (2 if compared else 1,))
        return calling(wanted, *numbers), [wanted]
    # Each result in parts, which a second kernel combines.
    whole = row.sums if row.sums != "x" else "int32" if options["x"] == "int32" else "float32"
    first = specialization("reduce", {**options, **tiles, "result": whole, "split": True}, place, ())
    kept = tuple(e for d, e in enumerate(x.shape) if d != 1)
    partial = Spec((1, parts, product(kept)), whole, "cpu")
    more, wanted = _step(reduction, partial, False, result, place, count, True)
    of_more = reduction == "logsumexp"  # the second takes it too

    add_parts = calling(first)

    def run(given, *centre):
        made = empty(given, (parts, *kept), whole, place.engine)
        add_parts(given, *centre, made)
        return more(made.reshape((1, parts, product(kept))), *(c.reshape((1, product(kept))) for c in centre if of_more)).reshape(kept)

    return run, [first, *wanted]


def _resolve(function, x, dim=None, keepdim=False, correction=1):
    """(the call, its tensor, the shape of the result)."""
    row = TABLE[function]
    check_tensor(function, "x", x)
    dtype = name_of(x.dtype)
    if dtype not in row.taken:
        refuse_dtype(function, "x", dtype, row.taken)
    axes = _axes(function, x, dim)
    shape = tuple(e for d, e in enumerate(x.shape) if d not in axes)
    if keepdim:
        shape = tuple(1 if d in axes else e for d, e in enumerate(x.shape))
    if not axes and len(x.shape):
        fail("BadOption", f"{function}: dim names no dimension", "leave it out to reduce all")
    count = product(x.shape[d] for d in axes)
    if count == 0 and function == "logsumexp":  # the logarithm of 0
        total, given, shape = _resolve("sum", x, dim, keepdim)
        of_total = elementwise._along("log", Spec(shape, dtype, device_of(x)))
        return Resolved(lambda given: elementwise.run("log", ("x",), (total.run(given),)), [*total.specializations, *of_total.specializations]), given, shape
    if count == 0 and not row.of_none:
        refuse_shape(function, f"no elements along {tuple(axes)}: 'x' has shape {tuple(x.shape)}", "there is no largest or least of none")
    given, last = _laid_out(x, axes) if axes else (reshaped(x, (1, 1)), True)
    place, program = place_of(x), _PROGRAM.get(function, function)
    divided_by = count
    if function in ("var", "std"):
        divided_by = count - correction if count > correction else 0  # max() is a reduction here
    run, wanted = _step(program, given, last, row.result or dtype, place, divided_by)
    if row.centre is None:
        return Resolved(run, wanted), given, shape
    centre, more = _step(row.centre, given, last, "float32", place, count)
    return Resolved(lambda given: run(given, centre(given)), [*more, *wanted]), given, shape


_calls = {}


def compute(function, x, dim=None, keepdim=False, correction=1):
    """The result, without a gradient."""
    key = (function, x.dtype, x.shape, dim, keepdim, correction) if hasattr(x, "dtype") and isinstance(dim, (int, tuple, type(None))) else None
    call = key and remembered(_calls, key, x)
    if call:
        return call(x)
    resolved, given, shape = _resolve(function, x, dim, keepdim, correction)
    extents = tuple(given.shape)
    if key and len(x.shape) and _in_order(x, dim):
        remember(_calls, key, x, lambda x: resolved.run(x.reshape(extents)).reshape(shape))
    return resolved.run(given).reshape(shape)


def reference(function, x, dim, keepdim, correction=1):
    """The function in PyTorch's own ones; dim: a list of dimensions."""
    import torch

    if not x.dim():
        return reference(function, x.reshape(1), [0], False, correction).reshape(())
    if function == "prod":
        for d in sorted((d % x.dim() for d in dim), reverse=True):
            x = torch.prod(x, d, keepdim=True)
        return x if keepdim else x.squeeze([d % x.dim() for d in dim])
    if function in ("var", "std"):
        return getattr(torch, function)(x, dim, correction=correction, keepdim=keepdim)
    if function.endswith("_norm"):
        return torch.linalg.vector_norm(x, {"l1_norm": 1, "l2_norm": 2, "inf_norm": float("inf")}[function], dim, keepdim)
    if function in ("max", "min"):
        function = f"a{function}"
    if function == "count_nonzero":
        made = torch.count_nonzero(x, dim)
        for d in sorted(d % x.dim() for d in dim) if keepdim and x.dim() else ():
            made = made.unsqueeze(d)
        return made
    return getattr(torch, function)(x, dim, keepdim)


_core = Core("reduction", "(Tensor x, str function, int[] dim, bool keepdim, float correction) -> Tensor",
             lambda x, function, dim, keepdim, correction: compute(function, x, tuple(dim), keepdim, correction),
             lambda x, function, dim, keepdim, correction: reference(function, x, dim, keepdim, correction))  # fmt: skip


def _call(function, x, dim, keepdim, correction=1):
    if is_torch(x) and gradients.wanted(x):
        return _core(x, function, _axes(function, x, dim), bool(keepdim), float(correction))
    return compute(function, x, dim, keepdim, correction)


def _reduction(function, doc):
    def plain(x, dim=None, keepdim=False):
        return _call(function, x, dim, keepdim)

    def spread(x, dim=None, *, correction=1, keepdim=False):
        return _call(function, x, dim, keepdim, correction)

    made = spread if function in ("var", "std") else plain
    made.__name__, made.__doc__ = function, doc
    if made is spread:
        return Operator(entry(made), lambda x, dim=None, *, correction=1, keepdim=False: _resolve(function, x, dim, keepdim, correction)[0])
    return Operator(entry(made), lambda x, dim=None, keepdim=False: _resolve(function, x, dim, keepdim)[0])


def _referred(function, x, dim=None, keepdim=False, *, correction=1):
    return reference(function, x, _axes(function, x, dim), keepdim, correction)


def _docs(row):
    dtypes = ", ".join(row.taken) + (", summed in float32 and rounded once" if row.taken == _FLOATS else "; int32 wraps" if row.taken == _NUMBERS else "")
    result = f"Of dtype {row.result}" if row.result else "Of x's dtype"
    return (f"{row.means}. dim: a dimension, several, or None for all; keepdim keeps them with one element. {result}, of {dtypes}."
            + (" Has gradients in PyTorch." if row.gradients else ""))  # fmt: skip


globals().update({name: _reduction(name, _docs(row)) for name, row in TABLE.items()})
for _name in TABLE:
    globals()[_name].reference = functools.partial(_referred, _name)


def _var_mean(x, dim=None, *, correction=1, keepdim=False):
    return _call("var", x, dim, keepdim, correction), _call("mean", x, dim, keepdim)


_var_mean.__name__ = "var_mean"
_var_mean.__doc__ = "(var(), mean()) along the same dimensions. float16, bfloat16, float32. Has gradients in PyTorch."
var_mean = Operator(entry(_var_mean), lambda x, dim=None, *, correction=1, keepdim=False: _resolve("var", x, dim, keepdim, correction)[0])


def moments(x, variance=True):
    """(mean, variance without correction or None) of each channel of x (batch, channels, ...), in float32, without a copy of
    x: along what is behind the channels, then along the batch."""
    batch, channels = x.shape[:2]
    length, place = product(x.shape[2:]), place_of(x)
    x = x.contiguous()

    def step(reduction, given, count, *centre):
        extents = tuple(given.shape)
        run, _ = _step(reduction, Spec(extents, name_of(given.dtype)), len(extents) == 2, "float32", place, count)
        return run(given, *centre)

    if length == 1 or batch == 1:  # one reduction
        wide = x.view(1, batch, channels) if length == 1 else x.view(channels, length)
        mean = step("mean", wide, batch * length).view(channels)
        return mean, step("var", wide, batch * length, mean.view(wide.shape[0], -1) if length == 1 else mean).view(channels) if variance else None
    flat = x.view(batch * channels, length)
    mean = step("mean", step("sum", flat, 0).view(1, batch, channels), batch * length).view(channels)
    if not variance:
        return mean, None
    parts = step("var", flat, 1, mean.expand(batch, channels).reshape(-1).contiguous()).view(1, batch, channels)
    return mean, step("mean", parts, batch * length).view(channels)
var_mean.reference = lambda x, dim=None, **named: tuple(_referred(name, x, dim, **named) for name in ("var", "mean"))
