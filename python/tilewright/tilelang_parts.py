"""Modules of TileLang that programs import from. What they have that is known here is found; every other name of them can be
imported, and says that it is not there when it is used."""
import types

from . import language, packed_numbers
from .trace import fail


class Missing:
    """A name of a module of TileLang's that has nothing here."""

    func = function = None  # it holds no function, though it has every name

    def __init__(self, name):
        self._name = name

    def _refuse(self):
        fail("UnknownOperation", f"{self._name} is part of TileLang's own machinery, of which there is none here", "")

    def __call__(self, *arguments, **named):
        self._refuse()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self._name}.{name}")

    def __mro_entries__(self, bases):
        return ()

    def __repr__(self):
        return f"<{self._name}, which is not there>"


class Open(types.ModuleType):
    """A module any name of which can be imported."""

    __tilewright__ = True

    def __init__(self, name, content=()):
        super().__init__(name, "Tilewright under TileLang's name.")
        self.__path__ = []
        self.__dict__.update(content)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self.__name__}.{name}")


_OPEN = (
    "analysis analysis.ast_printer analysis.fragment_loop_checker analysis.layout_visual analysis.nested_loop_checker cache "
    "cache.kernel_cache cache.cuda_binary_cache quantize quantize.mxfp quantize.quantization quantize.lop3 engine.lower engine.phase "
    "engine.semantic_check jit.adapter jit.adapter.base jit.adapter.cython jit.adapter.cython.adapter jit.adapter.kernel_cache "
    "jit.adapter.libgen jit.adapter.nvrtc jit.adapter.nvrtc.adapter jit.adapter.torch jit.adapter.tvm_ffi jit.adapter.utils "
    "jit.adapter.wrapper jit.diagnostics jit.env jit.param utils.deprecated utils.language utils.pass_diff utils.pass_diff_hook "
    "utils.version tools.pass_timing tools.pass_visualizer autotuner.capture autotuner.param autotuner.grouped_compile carver.analysis "
    "carver.common_schedules carver.matmul_analysis carver.roller.node"
).split()


def modules():
    """name -> what the module has."""
    found = {f"tilelang.{name}": Open(f"tilelang.{name}") for name in _OPEN}
    for name in ("tilelang.quantize", "tilelang.quantize.quantization"):
        found[name] = Open(name, packed_numbers.names())
    for name in (*language._PARTS, "tir.ir", "tir.op", "tir.exports", "tir.entry", "tir.common", "eager.builder", "eager.ast", "eager.utils"):
        found[f"tilelang.language.{name}"] = language._part(name)
    for name in ("", ".cluster", ".intrinsics", ".pdl", ".print", ".random", ".tir", ".warpgroup"):
        found[f"tilelang.cuda.language{name}"] = language._Part(f"tilelang.cuda.language{name}")
    return found
