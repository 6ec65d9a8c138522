"""Measuring functions, and names for what was measured."""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from .numeric import count_bytes


class Result(NamedTuple):
    """Of many calls, milliseconds: their mean, median and least; gbps: bytes of tensors that went in and came out, 1e9 a
    second, at the mean."""

    mean: float
    median: float
    min: float
    gbps: float


def benchmark_kernel(
    fn: Callable[..., Any], args: tuple = (), kwargs: dict[str, Any] | None = None, warmup: float = 25, rep: float = 100
) -> Result:
    """Measures fn(*args, **kwargs). warmup, rep: milliseconds that calls are made for, before and while they are measured."""
    from ...profiler import do_bench

    def call():
        return fn(*args, **(kwargs or {}))

    made = call()
    size = count_bytes(*(t for t in _tensors((args, kwargs or {}, made))))
    times = do_bench(call, warmup, rep, quantiles=[0, 0.5], return_mode="mean")
    mean = do_bench(call, 0, rep, return_mode="mean")
    return Result(mean, times[1], times[0], size / mean / 1e6)


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


class empty_suppress(contextlib.nullcontext):
    """Hides nothing."""

    def __init__(self) -> None:
        super().__init__(self)


class suppress_stdout_stderr:
    """Sends what the process writes to its output and errors nowhere, what libraries write too."""

    def __enter__(self):
        sys.stdout.flush(), sys.stderr.flush()
        self._kept = [(fd, os.dup(fd)) for fd in (1, 2)]
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for fd, _ in self._kept:
            os.dup2(nowhere, fd)
        os.close(nowhere)
        return self

    def __exit__(self, *error):
        sys.stdout.flush(), sys.stderr.flush()
        for fd, kept in self._kept:
            os.dup2(kept, fd)
            os.close(kept)


def print_average_perf(latency_list: list[float], bandwidth_list: list[float], relative_speed_list: list[float]) -> None:
    """Prints the geometric means of microseconds, GB/s and speedups."""
    if not latency_list or not bandwidth_list:
        print("nothing was measured")
        return
    mean = statistics.geometric_mean
    speedup = mean(relative_speed_list) if relative_speed_list else 1
    print(f"on average {mean(latency_list):.1f} us, {mean(bandwidth_list):.0f} GB/s, {speedup:.2f} times as fast")


_DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float8_e4m3fn: "e4m3", torch.int8: "e2m1"}


def dtype_to_str(dtype: torch.dtype) -> str:
    """fp32, bf16, e4m3; e2m1 of int8, which holds two of them."""
    if dtype not in _DTYPES:
        raise ValueError(f"no short name for {dtype}; it is one of: {', '.join(map(str, _DTYPES))}")
    return _DTYPES[dtype]


_SHORT = {
    "num_ep_ranks": "ep",
    "num_experts": "experts",
    "use_tma_aligned_col_major_sf": "col",
    "use_packed_ue8m0": "ue8m0",
    "round_sf": "round",
}
_WIDTHS = {
    "num_tokens": 5,
    "num_ep_ranks": 2,
    "num_experts": 3,
    "hidden": 4,
    "use_tma_aligned_col_major_sf": 1,
    "use_packed_ue8m0": 1,
    "round_sf": 1,
    "num_per_channels": 4,
}


def make_param_key(params: dict) -> str:
    """The parameters of a measurement as text, numbers in columns; None is left out."""
    return ",".join(
        f"{_SHORT.get(n, n)}={format(v, f'>{_WIDTHS[n]}') if n in _WIDTHS else v}" for n, v in params.items() if v is not None
    )


def make_param_id(params: dict) -> str:
    """The parameters of a test as text."""

    def word(value):
        if isinstance(value, torch.dtype):
            return dtype_to_str(value)
        return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)

    return "-".join(f"{name}={word(value)}" for name, value in params.items()) or "default"
