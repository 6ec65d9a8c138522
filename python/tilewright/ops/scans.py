"""Scans: what stands before an element along a dimension, and itself, joined."""

from __future__ import annotations

from .calls import product
from .operators import FLOATS, Core, check, dimension_of, launch, on_gpu, public, up_to_power_of_two

_NUMBERS = (*FLOATS, "int32", "int64")
_BESIDE = 16  # rows that a CPU scans together


def _width(n, gpu):
    return max(min(up_to_power_of_two(n), 256 if gpu else 1024), 32)


def _rows(x, dim):
    """(x as (M, R, N) with R what is walked, M, R, N)."""
    shape = tuple(x.shape)
    m, r, n = product(shape[:dim]), shape[dim], product(shape[dim + 1 :])
    return x.reshape(m, r, n), m, r, n


def _run(x, scan, dim):
    x = x.contiguous()
    wide, m, r, n = _rows(x, dim)
    out, gpu = x.new_empty(x.shape), on_gpu(x)
    kind = str(x.dtype).removeprefix("torch.")
    if not x.numel():
        return out
    if n == 1:
        width = _width(r, gpu)
        family, rows = programs().along_rows, max(1, (1024 if gpu else 4096) // width)
        if not gpu and m > 1 and (scan, x.is_floating_point()) != ("sum", True):  # of floats the sum has an operation
            family, rows, width = programs().rows_beside, _BESIDE, min(width, 64)
        launch(family, {"x": kind, "scan": scan, "rows": rows, "width": width, "threads": 128}, wide.view(m, r), out.view(m, r))
    else:
        launch(
            programs().down_columns,
            {"x": kind, "scan": scan, "columns": 256 if gpu else 1024, "threads": 128},
            wide,
            out.view(m, r, n),
        )
    return out


def programs():
    from .programs import scans

    return scans


def _reference(x, scan, dim):
    import torch

    made = {"sum": torch.cumsum, "prod": torch.cumprod, "logsumexp": torch.logcumsumexp}[scan](x, dim)
    return made.to(x.dtype)


_scan = Core("scan", "(Tensor x, str scan, int dim) -> Tensor", _run, _reference)


def _run_places(x, largest, dim):
    import torch

    moved = x.movedim(dim, -1).contiguous()
    m, n = product(moved.shape[:-1]), moved.shape[-1]
    values, places = moved.new_empty(moved.shape), moved.new_empty(moved.shape, dtype=torch.int64)
    if x.numel():
        width = _width(n, on_gpu(x))
        family, rows = programs().running_places, max(1, 1024 // width)
        if not on_gpu(x):
            family, rows, width = programs().places_beside, _BESIDE, min(width, 64)
        options = {
            "x": str(x.dtype).removeprefix("torch."),
            "largest": largest,
            "rows": rows,
            "width": width,
            "threads": 128,
        }
        launch(family, options, moved.view(m, n), values.view(m, n), places.view(m, n))
    return values.movedim(-1, dim).contiguous(), places.movedim(-1, dim).contiguous()


def _reference_places(x, largest, dim):
    import torch

    return tuple((torch.cummax if largest else torch.cummin)(x, dim))


_places = Core("running_extreme", "(Tensor x, bool largest, int dim) -> (Tensor, Tensor)", _run_places, _reference_places)


def _of(function, scan, means):
    def of(x, dim=-1):
        x = check(function, "x", x, FLOATS if scan == "logsumexp" else _NUMBERS)
        return _scan(x, scan, dimension_of(function, x, dim))

    of.__name__ = of.__qualname__ = function
    dtypes = "float16, bfloat16, float32" + ("" if scan == "logsumexp" else ", int32, int64")
    of.__doc__ = f"""{means} of an element and all before it along dimension dim, of x's shape and dtype.

    {dtypes}; floats are joined in float32 and rounded once each, integers wrap. Has gradients in PyTorch."""
    return public(of)


cumsum = _of("cumsum", "sum", "The sum")
cumprod = _of("cumprod", "prod", "The product")
logcumsumexp = _of("logcumsumexp", "logsumexp", "The logarithm of the sum of exponentials")


def _extreme(function, largest):
    def of(x, dim=-1):
        x = check(function, "x", x)
        return _places(x, largest, dimension_of(function, x, dim))

    of.__name__ = of.__qualname__ = function
    of.__doc__ = f"""(the {"largest" if largest else "least"} so far along dimension dim, its places, int64): the last of equals; NaN once there is one.

    float16, bfloat16, float32. Has gradients in PyTorch."""
    return public(of)


cummax, cummin = _extreme("cummax", True), _extreme("cummin", False)
