"""What tests of kernels use: marks for machines, seeds, comparing tensors."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .device import get_compute_capability


def _gpu():
    from . import _native

    return _native.device_count() > 0


def _requirement(holds: Callable[[], Any], reason: str) -> Any:
    """A decorator for tests, which also gives its marks: requires_cuda, requires_cuda.marks()."""

    def mark(test=None):
        import pytest

        skip = pytest.mark.skipif(not holds(), reason=reason)
        return skip if test is None else skip(test)

    def marks():
        return [mark()]

    mark.marks = marks
    return mark


requires_cuda: Any = _requirement(_gpu, "needs a CUDA device")
requires_rocm: Any = _requirement(lambda: False, "another maker's GPU")
requires_metal: Any = requires_rocm
requires_cdna: Any = requires_rocm
requires_gfx950: Any = requires_rocm
requires_llvm: Any = _requirement(lambda: True, "")
requires_cuda_or_cdna: Any = requires_cuda


def requires_package(*names: str) -> Any:
    import importlib.util

    return _requirement(lambda: all(importlib.util.find_spec(n) for n in names), f"needs {', '.join(names)}")


def _compared(word: str, compare: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def requires(major, minor=0):
        return _requirement(
            lambda: _gpu() and compare(get_compute_capability(), (major, minor)), f"needs compute capability {word} {major}.{minor}"
        )

    return requires


requires_cuda_compute_version_ge: Callable[..., Any] = _compared(">=", lambda a, b: a >= b)
requires_cuda_compute_version: Callable[..., Any] = requires_cuda_compute_version_ge
requires_cuda_compute_version_gt: Callable[..., Any] = _compared(">", lambda a, b: a > b)
requires_cuda_compute_version_le: Callable[..., Any] = _compared("<=", lambda a, b: a <= b)
requires_cuda_compute_version_lt: Callable[..., Any] = _compared("<", lambda a, b: a < b)
requires_cuda_compute_version_eq: Callable[..., Any] = _compared("==", lambda a, b: a == b)


def set_random_seed(seed: int = 42) -> None:
    """Seeds random, NumPy and PyTorch, as far as they are there."""
    import random

    random.seed(seed)
    for name in ("numpy", "torch"):
        module = sys.modules.get(name)
        if module is not None:
            (module.random.seed if name == "numpy" else module.manual_seed)(seed)


def main() -> None:
    """Runs the tests of the calling file."""
    import pytest

    file = sys._getframe(1).f_globals["__file__"]
    sys.exit(pytest.main([file, *sys.argv[1:]]))


def torch_assert_close(actual: Any, expected: Any, rtol: float = 1e-2, atol: float = 1e-3, max_mismatched_ratio: float = 1e-3, verbose: bool = False,
                       equal_nan: bool = True, check_device: bool = True, check_dtype: bool = True, check_stride: bool = False,
                       base_name: str = "actual", ref_name: str = "expected") -> bool:  # fmt: skip
    """Raises AssertionError if more than that share of the elements differs by more than atol + rtol * |expected|."""
    import torch

    if actual.shape != expected.shape:
        raise AssertionError(f"{base_name} has shape {tuple(actual.shape)}, {ref_name} {tuple(expected.shape)}")
    a, b = actual.to(torch.float64), expected.to(actual.device, torch.float64)
    differ = ~torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    count, total = int(differ.sum()), max(1, differ.numel())
    if count > max_mismatched_ratio * total:
        at = tuple(int(i) for i in differ.nonzero()[0])
        raise AssertionError(
            f"{base_name} and {ref_name} differ in {count} of {total} elements (more than {max_mismatched_ratio:.2%}), "
            f"first at {at}: {a[at].item()} and {b[at].item()} (rtol {rtol}, atol {atol})"
        )
    return True


def process_func(func: Callable[..., Any], name: str | None = None, **kwargs: Any) -> Any:
    """Calls a benchmark of its own kind."""
    return func(**kwargs)


def regression(prefixes: Any = None, verbose: bool = True) -> None:
    """Runs the functions of the calling file whose name begins with regression_."""
    frame = sys._getframe(1)
    for name, func in list(frame.f_globals.items()):
        if name.startswith("regression_") and callable(func):
            func()
