"""Sums, means, largest and least elements along any dimensions."""
from __future__ import annotations

from ..tensors import empty
from ..trace import fail
from ..tracebacks import entry
from .calls import (Operator, Resolved, Spec, calling, check_tensor, chosen, compact, name_of, permuted, place_of, product,
                    refuse_dtype, refuse_shape, remember, remembered, reshaped, specialization)  # fmt: skip

_FLOATS = ("float16", "bfloat16", "float32")
_TAKEN = (*_FLOATS, "int32")


def _axes(function, x, dim):
    rank = len(x.shape)
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


def _step(reduction, x, last, result, place, count):
    """The calls that reduce (M, R, N) or (M, R): (run, specializations)."""
    options = {"reduction": reduction, "x": name_of(x.dtype), "result": result, "last": last}
    extents = dict(zip("MRN", x.shape))
    choice = chosen("reduce", options, place, {**extents, "R": x.shape[1] or 1})
    tiles, parts = choice["options"], choice["parts"]
    numbers = (float(count),) if reduction == "mean" else ()
    if parts == 1:
        wanted = specialization("reduce", {**options, **tiles}, place, (1,))
        return calling(wanted, *numbers), [wanted]
    # Each result in parts, which a second kernel adds.
    whole = "int32" if options["x"] == "int32" else "float32"
    adds = "sum" if reduction == "mean" else reduction
    first = specialization("reduce", {**options, **tiles, "reduction": adds, "result": whole, "split": True}, place, ())
    kept = tuple(e for d, e in enumerate(x.shape) if d != 1)
    partial = Spec((1, parts, product(kept)), whole, "cpu")
    more, wanted = _step(reduction, partial, False, result, place, count)

    add_parts = calling(first)

    def run(given):
        made = empty(given, (parts, *kept), whole, place.engine)
        add_parts(given, made)
        return more(made.reshape((1, parts, product(kept))))

    return run, [first, *wanted]


def _resolve(function, x, dim=None, keepdim=False):
    """(the call, its tensor, the shape of the result)."""
    check_tensor(function, "x", x)
    dtype = name_of(x.dtype)
    if dtype not in _TAKEN or (function == "mean" and dtype == "int32"):
        refuse_dtype(function, "x", dtype, _FLOATS if function == "mean" else _TAKEN)
    axes = _axes(function, x, dim)
    shape = tuple(e for d, e in enumerate(x.shape) if d not in axes)
    if keepdim:
        shape = tuple(1 if d in axes else e for d, e in enumerate(x.shape))
    if not axes:
        fail("BadOption", f"{function}: dim names no dimension", "leave it out to reduce all")
    count = product(x.shape[d] for d in axes)
    if count == 0 and function in ("max", "min"):
        refuse_shape(function, f"no elements along {tuple(axes)}: 'x' has shape {tuple(x.shape)}", "there is no largest or least of none")
    given, last = _laid_out(x, axes)
    run, wanted = _step(function, given, last, dtype, place_of(x), count)
    return Resolved(run, wanted), given, shape


def _reduction(function, doc):
    calls = {}

    def plain(x, dim=None, keepdim=False):
        key = (x.dtype, x.shape, dim, keepdim) if hasattr(x, "dtype") and isinstance(dim, (int, tuple, type(None))) else None
        call = key and remembered(calls, key, x)
        if call:
            return call(x)
        resolved, given, shape = _resolve(function, x, dim, keepdim)
        extents = tuple(given.shape)
        if key and _in_order(x, dim):
            remember(calls, key, x, lambda x: resolved.run(x.reshape(extents)).reshape(shape))
        return resolved.run(given).reshape(shape)

    plain.__name__, plain.__doc__ = function, doc
    return Operator(entry(plain), lambda x, dim=None, keepdim=False: _resolve(function, x, dim, keepdim)[0], traced=False)


_MORE = "dim: a dimension, several, or None for all; keepdim keeps them with one element. Of x's dtype:"
sum = _reduction("sum", f"The sum of elements. {_MORE} float16, bfloat16, float32, summed in float32 and rounded once, or int32, which wraps.")
mean = _reduction("mean", f"The sum of elements, divided by their number; NaN of none. {_MORE} float16, bfloat16, float32.")
max = _reduction("max", f"The largest element; NaN where one is. {_MORE} float16, bfloat16, float32, int32.")
min = _reduction("min", f"The least element; NaN where one is. {_MORE} float16, bfloat16, float32, int32.")
