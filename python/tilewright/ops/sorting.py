"""Places: of the largest and the least, of all in order, of the first few of that."""

from __future__ import annotations

from .calls import product, refuse_shape
from .operators import FLOATS, Core, check, check_number, dimension_of, launch, on_gpu, public, refuse_option, up_to_power_of_two

_NUMBERS = (*FLOATS, "int32")
_MOST = 16384  # elements that a block has on chip, with their places


def programs():
    from .programs import places

    return places


def _kind(x):
    return str(x.dtype).removeprefix("torch.")


def _run_extreme(x, largest, dim):
    import torch

    x = x.contiguous()
    shape = tuple(x.shape)
    m, r, n = product(shape[:dim]), shape[dim], product(shape[dim + 1 :])
    out = x.new_empty((*shape[:dim], *shape[dim + 1 :]), dtype=torch.int64)
    if out.numel():
        elements, last = 2048 if on_gpu(x) else 4096, n == 1
        tile = max(32, min(up_to_power_of_two(r), elements)) if last else 16
        options = {
            "x": _kind(x),
            "largest": largest,
            "last": last,
            "rows": elements // tile if last else 1,
            "tile": tile,
            "columns": 128,
        }
        launch(programs().of_extreme, options, x.view(m, r) if last else x.view(m, r, n), out.view(m) if last else out.view(m, n))
    return out


def _reference_extreme(x, largest, dim):
    import torch

    return (torch.argmax if largest else torch.argmin)(x, dim)


_extreme = Core("place_of_extreme", "(Tensor x, bool largest, int dim) -> Tensor", _run_extreme, _reference_extreme)


def _arg(function, largest):
    def of(x, dim=None, keepdim=False):
        x = check(function, "x", x, _NUMBERS)
        if dim is None or not len(x.shape):
            flat, d = x.reshape(-1), 0
        else:
            flat, d = x, dimension_of(function, x, dim)
        if not flat.shape[d]:
            refuse_shape(
                function, f"no elements along {d}: 'x' has shape {tuple(x.shape)}", "there is no largest or least of none"
            )
        made = _extreme(flat, largest, d)
        if not keepdim:
            return made
        return made.reshape([1] * len(x.shape)) if dim is None else made.unsqueeze(d)

    of.__name__ = of.__qualname__ = function
    of.__doc__ = f"""Where the {"largest" if largest else "least"} element along dimension dim stands, int64; the first of equals, the first NaN.

    dim: a dimension, or None for the place in the flattened tensor; keepdim keeps it with one element. float16, bfloat16, float32, int32."""
    return public(of)


argmax, argmin = _arg("argmax", True), _arg("argmin", False)


# ---- order


def _on_gpu(x, n, count, limits):
    """The program by which a GPU orders rows, and its options."""
    walks = n > _MOST or (count < n and n > 2 * max(up_to_power_of_two(count), 4096))
    width = max(2 * up_to_power_of_two(count), 4096) if walks else up_to_power_of_two(n)
    if width <= 256 and not walks:
        return programs().in_order_by_warps, {"each": max(width // 32, 1), "limits": limits, "threads": 128}
    threads = min(max(width // 16, 32), 1024)
    return programs().in_order_by_digits, {"each": width // threads, "walks": walks, "limits": limits, "threads": threads}


def _on_cpu(n, count, limits):
    walks, chunk = 4 * count < n and n > 512, 64
    width = max(up_to_power_of_two(2 * count), 256) if walks else up_to_power_of_two(n)
    return programs().in_order, {"limits": limits, "width": width, "chunk": chunk, "walks": walks, "threads": 128}


def _run_order(x, count, largest, dim, starts, ends):
    import torch

    moved = x.movedim(dim, -1).contiguous()
    m, n = product(moved.shape[:-1]), moved.shape[-1]
    shape = (*moved.shape[:-1], count)
    values, places = moved.new_empty(shape), moved.new_empty(shape, dtype=torch.int64)
    if values.numel():
        gpu, limits = on_gpu(x), starts is not None
        if not limits:
            starts = ends = moved.new_empty((1,), dtype=torch.int32)
        family, options = _on_gpu(x, n, count, limits) if gpu else _on_cpu(n, count, limits)
        launch(
            family,
            {"x": _kind(x), "largest": largest, **options},
            moved.view(m, n),
            starts.contiguous().view(-1),
            ends.contiguous().view(-1),
            values.view(m, count),
            places.view(m, count),
        )
    return values.movedim(-1, dim).contiguous(), places.movedim(-1, dim).contiguous()


def _reference_order(x, count, largest, dim, starts, ends):
    import torch

    if starts is None:
        values, places = torch.sort(x, dim=dim, descending=largest, stable=True)
        return values.narrow(dim, 0, count), places.narrow(dim, 0, count)
    at = torch.arange(x.shape[-1], device=x.device)
    inside = (at >= starts[..., None]) & (at < ends[..., None])
    masked = torch.where(inside, x, -float("inf") if largest else float("inf"))
    order = torch.sort(masked, dim=-1, descending=largest, stable=True).indices[..., :count]
    there = inside.gather(-1, order)
    return torch.where(there, x.gather(-1, order), 0), torch.where(there, order, -1)


order = Core(
    "order",
    "(Tensor x, int count, bool largest, int dim, Tensor? starts, Tensor? ends) -> (Tensor, Tensor)",
    _run_order,
    _reference_order,
)


def check_count(function, count, n):
    if count > n:
        refuse_option(function, f"{count} of {n} elements", "there are no more than the dimension has")
    if count < n and count > _MOST // 2:
        refuse_option(function, f"the first {count} of {n} elements", f"a block keeps {_MOST // 2} at most")
    if count == n > _MOST:
        refuse_option(function, f"{n} elements in order", f"a block has {_MOST} at most")


def topk(x, k, dim=-1, largest=True):
    """(the k largest elements along dimension dim, the largest first, their places, int64): of equals the first comes first,
    and NaN counts as the largest. With largest=False the k least, the least first.

    k: up to the extent of dim, and 8192 where it is less than that; all of them up to 16384. float16, bfloat16, float32,
    int32. The elements have gradients in PyTorch."""
    x = check("topk", "x", x, _NUMBERS)
    d = dimension_of("topk", x, dim)
    check_number("topk", "k", k, 0, whole=True)
    check_count("topk", k, x.shape[d])
    return order(x, k, bool(largest), d, None, None)


def sort(x, dim=-1, descending=False):
    """(x with its elements along dimension dim in order, where they stood, int64): the least first, of equals the first; NaN
    last.

    float16, bfloat16, float32, int32, up to 16384 elements along dim. The elements have gradients in PyTorch."""
    x = check("sort", "x", x, _NUMBERS)
    d = dimension_of("sort", x, dim)
    check_count("sort", x.shape[d], x.shape[d])
    return order(x, x.shape[d], bool(descending), d, None, None)


def argsort(x, dim=-1, descending=False):
    """Where the elements along dimension dim stand, int64, in the order of sort()."""
    x = check("argsort", "x", x, _NUMBERS)
    d = dimension_of("argsort", x, dim)
    check_count("argsort", x.shape[d], x.shape[d])
    return order(x, x.shape[d], bool(descending), d, None, None)[1]


def kthvalue(x, k, dim=-1, keepdim=False):
    """(the k-th least element along dimension dim, counted from 1, its place, int64), of equals the first.

    k up to 8192, or to the extent of dim where that is 16384 at most. float16, bfloat16, float32, int32. The element has a
    gradient in PyTorch."""
    x = check("kthvalue", "x", x, _NUMBERS)
    d = dimension_of("kthvalue", x, dim)
    check_number("kthvalue", "k", k, 1, whole=True)
    check_count("kthvalue", k, x.shape[d])
    values, places = (t.narrow(d, k - 1, 1) for t in order(x, k, False, d, None, None))
    return (values, places) if keepdim else (values.squeeze(d), places.squeeze(d))


def median(x, dim=-1, keepdim=False):
    """(the element in the middle of the order along dimension dim, the lower one of two, its place, int64); the first NaN where
    there is one. Else as kthvalue()."""
    import torch

    x = check("median", "x", x, _NUMBERS)
    d = dimension_of("median", x, dim)
    n = x.shape[d]
    if not n:
        refuse_shape("median", f"no elements: 'x' has shape {tuple(x.shape)}", "there is no middle of none")
    value, place = kthvalue(x, (n + 1) // 2, dim, keepdim)
    if not x.is_floating_point():
        return value, place
    first = _extreme(x, True, d).unsqueeze(d)  # a NaN counts as the largest
    largest = x.gather(d, first)
    if not keepdim:
        first, largest = first.squeeze(d), largest.squeeze(d)
    return torch.where(largest.isnan(), largest, value), torch.where(largest.isnan(), first, place)


def topk_selector(index_score, starts, ends, topk):
    """The places, int32 (batch, queries, groups, topk), of the largest scores of each query among keys starts to ends - 1,
    the largest first; -1 where there are fewer.

    index_score: float32 (batch, queries, keys, groups); starts, ends: int32 (batch, queries). topk: up to the number of
    keys, 8192 at most where there are more."""
    name = "topk_selector"
    index_score = check(name, "index_score", index_score, ("float32",), rank=4)
    batch, queries, keys, groups = index_score.shape
    starts, ends = (check(name, n, t, ("int32",), shape=(batch, queries)) for n, t in (("starts", starts), ("ends", ends)))
    check_number(name, "topk", topk, 1, whole=True)
    check_count(name, topk, keys)
    scores = index_score.permute(0, 1, 3, 2).contiguous()
    starts, ends = (t[..., None].expand(batch, queries, groups).contiguous() for t in (starts, ends))
    return order(scores, topk, True, 3, starts, ends)[1].int()


topk, sort, argsort, kthvalue, median, topk_selector = map(public, (topk, sort, argsort, kthvalue, median, topk_selector))
