"""Modules of TileLang that programs import from. What they have that is known here is found; every other name of them can be
imported, and says that it is not there when it is used."""
import importlib.machinery
import sys
import types

from . import language, packed_numbers, tvm_nodes
from .trace import fail


class Missing:
    """A name of a module of TileLang's that has nothing here."""

    func = function = None  # it holds no function, though it has every name

    def __init__(self, name, instead=""):
        self._name, self._instead = name, instead

    def _refuse(self, *ignored):
        fail("UnknownOperation", f"{self._name} is part of TileLang's own machinery, of which there is none here", self._instead)

    def __call__(self, *arguments, **named):
        self._refuse()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self._name}.{name}", self._instead)

    def __mro_entries__(self, bases):
        return ()

    def __getitem__(self, key):
        return Missing(f"{self._name}[{key!r}]", self._instead)

    def __or__(self, other):  # as annotations have it
        return self

    __ror__ = __or__
    __setitem__ = __iter__ = __len__ = __contains__ = __index__ = __int__ = __float__ = __enter__ = __exit__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = _refuse
    __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __repr__(self):
        return f"<{self._name}, which is not there>"


class Open(types.ModuleType):
    """A module any name of which can be imported."""

    __tilewright__ = True

    def __init__(self, name, content=(), absent=None):
        super().__init__(name, "Tilewright under TileLang's name.")
        self.__path__ = []
        self.__dict__.update(content)
        self.__absent__ = absent or (lambda name: Missing(f"{self.__name__}.{name}"))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__absent__(name)

    def __call__(self, *arguments, **named):
        """A function of the same name as its module, as tilelang.primitives.gemm was."""
        return Missing(self.__name__)(*arguments, **named)


# Folders of TileLang, of this release and of earlier ones, all modules of which can be imported.
_OPEN = frozenset(
    "_ffi_api _typing analysis arch autodd autotuner backend cache carver common contrib cpu cuda distributed engine graph instrumentation "
    "intrinsics ir libinfo metal primitives quantize relax rocm schedule tileop tilesight tools transform typing utils version webgpu".split()
)
_OPEN_JIT = frozenset("abi adapter core diagnostics env exceptions execution_backend param".split())


def is_open(name):
    """Whether any name of that module of TileLang's can be imported."""
    _, part, below = (*name.split(".", 2), "", "")[:3]
    return part in _OPEN or (part == "jit" and below.partition(".")[0] in _OPEN_JIT)


class Command:
    """python -m tilelang.NAME runs the module's __command__, if it has one; elsewhere there is nothing to run."""

    @staticmethod
    def get_code(name):
        module = name.removesuffix(".__main__")
        runs = "__command__" in vars(sys.modules[module])
        return compile(f"import sys, {module} as module; sys.exit(module.__command__())" if runs else "", f"<{module}>", "exec")


class Finder:
    """Finds what no table names: parts of the language, modules of TileLang's own machinery, and TVM's."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        top, _, below = name.partition(".")
        ours = getattr(sys.modules.get(top), "__tilewright__", False)
        if ours and name.endswith(".__main__") and below != "__main__":
            return importlib.machinery.ModuleSpec(name, Command, origin=name.removesuffix(".__main__"))
        if ours and below and (top == "tvm" or below.startswith("language.") or is_open(name)):
            return importlib.machinery.ModuleSpec(name, Finder, is_package=True)
        return None

    @staticmethod
    def create_module(spec):
        if spec.name.startswith("tvm."):
            return Open(spec.name, absent=tvm_nodes.absent)
        return language._Part(spec.name) if spec.name.startswith("tilelang.language.") else Open(spec.name)

    @staticmethod
    def exec_module(module):
        pass


def modules():
    """name -> what the module has."""
    found = {f"tilelang.{name}": {} for name in "analysis common intrinsics ir jit.adapter primitives tileop".split()}  # no import needed
    found.update(dict.fromkeys(("tilelang.quantize", "tilelang.quantize.quantization"), packed_numbers.names()))
    for name in (*language._PARTS, "tir.ir", "tir.op", "tir.exports", "tir.entry", "tir.common", "eager.builder", "eager.ast", "eager.utils"):
        found[f"tilelang.language.{name}"] = language._part(name)
    for name in ("", ".cluster", ".intrinsics", ".pdl", ".print", ".random", ".tir", ".warpgroup"):
        found[f"tilelang.cuda.language{name}"] = language._Part(f"tilelang.cuda.language{name}")
    return found
