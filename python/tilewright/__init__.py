"""Tilewright: tile programs in Python, compiled for CPUs and GPUs.

import tilewright as tw
import tilewright.language as T
"""
import importlib.util
from typing import TYPE_CHECKING, Any

try:
    from . import _native
except ImportError:
    if importlib.util.find_spec(f"{__name__}._native") is None:
        raise ImportError(f"{__path__[0]} is the source of tilewright, without its compiled part; help: start Python elsewhere after "
                          "`pip install .`, or set PYTHONPATH to build/release/python of a build", name=__name__) from None  # fmt: skip
    raise
from . import errors, gradients, tensors, tracebacks, values
from .errors import CompileError, InternalError, LaunchError, TilewrightError

_native.register(
    expr=values.Expr,
    buffer=values.Buffer,
    tile=values.Tile,
    error=errors.make_error,
    empty=tensors.empty,
    options=tensors.options,
    to_dlpack=tensors.to_dlpack,
    refusal=errors.refused_argument,
    gradient=gradients.refused,
    bools=tensors.with_bools,
    range=tensors.range_of_profiler,
)

from . import language  # noqa: E402
from .jitted import Jit, jit, par_compile  # noqa: E402
from .kernel import Kernel, compile  # noqa: E402
from .program import PrimFunc  # noqa: E402

__version__ = _native.version()


def cdiv(a: Any, b: Any) -> Any:
    """The quotient of integers, rounded up."""
    return -(-a // b)


def next_power_of_2(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()


def parse(text: str, file: str = "program.tile") -> _native.Program:
    """The program of a .tile text."""
    if not isinstance(text, str) or not isinstance(file, str):
        from .trace import fail

        fail("OperandKind", f"parse() is given {(file if isinstance(text, str) else text)!r}", "it takes a program as text, and the name of its file")
    return _native.parse(text, file)


def install_as_tilelang(force: bool = False) -> None:
    """From here on `import tilelang` gives Tilewright. An installed TileLang is never hidden unless `force`."""
    from .as_tilelang import install

    install(force)


def install_as_tile_kernels(force: bool = False) -> None:
    """From here on `import tile_kernels` gives tilewright.kernels. An installed tile_kernels is never hidden unless `force`."""
    from .as_tile_kernels import install

    install(force)


if TYPE_CHECKING:
    from . import cost, kernels, ops, profiler, puzzles, testing, torch_ops, tuner
    from .pictures import plot
    from .pretended_gpu import without_gpu
    from .profiler import TensorSupplyType, do_bench
    from .torch_ops import custom_op
    from .tuner import AutoTuner, autotune, set_autotune_inputs

# What not every program needs: found when it is named.
_LATER = {
    "AutoTuner": "tuner", "TensorSupplyType": "profiler", "autotune": "tuner", "custom_op": "torch_ops",
    "do_bench": "profiler", "plot": "pictures", "set_autotune_inputs": "tuner",
    "without_gpu": "pretended_gpu",
}  # fmt: skip
_PARTS = ("cost", "kernels", "ops", "profiler", "puzzles", "testing", "torch_ops", "tuner")


def __getattr__(name: str) -> Any:
    import importlib

    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AutoTuner", "CompileError", "InternalError", "Jit", "Kernel", "LaunchError", "PrimFunc", "TensorSupplyType", "TilewrightError",
    "autotune", "cdiv", "compile", "custom_op", "do_bench", "install_as_tile_kernels", "install_as_tilelang", "jit", "language", "next_power_of_2",
    "par_compile", "parse", "plot", "set_autotune_inputs", "without_gpu",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


tracebacks.install()
