"""Tensors in another order."""
from __future__ import annotations

from ..tracebacks import entry
from .calls import (Operator, Resolved, calling, check_tensor, chosen, compact, name_of, permuted, place_of, product, refuse_dtype, refuse_shape,
                    remember, remembered, reshaped, specialization)  # fmt: skip


def _resolve(x, first=-2, second=-1):
    """((the call, its tensor), the shape of the result, the dimensions; None: they are one)."""
    check_tensor("transpose", "x", x)
    rank = len(x.shape)
    for d in (first, second):
        if not isinstance(d, int) or not -rank <= d < rank:
            refuse_shape("transpose", f"there is no dimension {d!r} of shape {tuple(x.shape)}", "dimensions count from 0, and from -1 backwards")
    low, high = sorted((first % rank, second % rank))
    dtype = name_of(x.dtype)
    if dtype in ("int4", "uint4", "float4_e2m1fn"):
        refuse_dtype("transpose", "x", dtype, ["types of at least 8 bits"])
    shape = list(x.shape)
    if low == high:  # a copy
        x, low, high = reshaped(compact(x), (1, product(shape), 1)), 1, 2
        return _of_matrices(x, dtype), tuple(shape), None
    shape[low], shape[high] = shape[high], shape[low]
    m, n = x.shape[low], x.shape[high]
    between = product(x.shape[low + 1 : high])
    if between != 1 or high != rank - 1:  # what lies between or behind moves too: as one matrix of a batch, by a view
        order = [d for d in range(rank) if d not in (low, high)] + [low, high]
        x = permuted(x, order)
    batch = product(e for d, e in enumerate(shape) if d not in (low, high))
    return _of_matrices(reshaped(compact(x), (batch, m, n)), dtype), tuple(shape), (low, high)


def _of_matrices(x, dtype):
    place = place_of(x)
    choice = chosen("transpose", {"x": dtype}, place, {"M": x.shape[1], "N": x.shape[2]})
    wanted = specialization("transpose", {"x": dtype, **choice["options"]}, place, (1,))
    return Resolved(calling(wanted), [wanted]), x


_calls = {}


def _transpose(x, first=-2, second=-1):
    key = (x.dtype, x.shape, first, second) if hasattr(x, "dtype") else None
    call = key and remembered(_calls, key, x)
    if call:
        return call(x)
    (resolved, given), shape, dims = _resolve(x, first, second)
    made = resolved.run(given)
    if dims is None:
        return made.reshape(shape)
    (low, high), rank = dims, len(shape)
    if high == rank - 1 and product(shape[low + 1 : high]) == 1:
        extents = tuple(given.shape)
        remember(_calls, key, x, lambda x: resolved.run(x.reshape(extents)).reshape(shape))
        return made.reshape(shape)
    rest = [d for d in range(rank) if d not in (low, high)]
    made = made.reshape([*(shape[d] for d in rest), shape[low], shape[high]])
    place = {d: i for i, d in enumerate([*rest, low, high])}
    return compact(permuted(made, [place[d] for d in range(rank)]))


_transpose.__name__ = "transpose"
_transpose.__doc__ = """A copy without gaps in which two dimensions are exchanged. Elements of 8, 16, 32 or 64 bits of any dtype, unchanged."""
transpose = Operator(entry(_transpose), lambda x, first=-2, second=-1: _resolve(x, first, second)[0][0], traced=False)
