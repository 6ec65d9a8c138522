"""What the functions of this package share: which kernel a call takes, kernels that are compiled ahead, tensors."""
from __future__ import annotations

import functools
import inspect
import json
import math
import os
import sys
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

from .. import _native
from ..device import get_architecture
from ..dtypes import dtype
from ..errors import CompileError
from ..jitted import each_by_threads
from ..kernel import Kernel
from ..pretended_gpu import is_pretended
from ..trace import fail
from ..tracebacks import entry


class Spec:
    """A tensor that is not there yet: plan() and choice() take it in a tensor's place. device: "cpu" or "cuda"."""

    def __init__(self, shape: Iterable[int], dtype: str = "float32", device: str = "cpu") -> None:
        self.shape, self.dtype, self.device = tuple(shape), dtype, device

    def __repr__(self):
        return f"Spec({self.shape}, {self.dtype!r}, {self.device!r})"


class Specialization(NamedTuple):
    """A program of the library, compiled for an engine: what kernels are kept by."""

    family: str
    options: tuple  # of (name, text), in order; of programs that are written in Python (name, value)
    engine: str
    arch: str
    outputs: tuple

    def __str__(self):
        return f"{self.family}({', '.join(f'{n}={t}' for n, t in self.options)}) on {self.arch or self.engine}"


class Place(NamedTuple):
    """Where a call runs: its engine, the GPU that this is or simulates ("" is the CPU)."""

    engine: str
    arch: str


PROGRAMS: dict[str, Any] = {}  # by family: functions from options to programs that are written in Python
_kernels: dict[Specialization, Kernel] = {}
_operators: list[Operator] = []
_sealed = False


class _Recording(threading.local):
    """While a call is planned: what it would launch, and where."""

    found: list | None = None
    place: Place


recording = _Recording()


def compiled(specialization):
    """The kernel; TW1080 once the package is sealed and there is none."""
    if recording.found is not None:
        recording.found.append(specialization)
        return _launch_nothing
    kernel = _kernels.get(specialization)
    if kernel is None:
        if _sealed:
            fail("BadOption", f"this call wants a kernel that was not compiled before ops.seal(): {specialization}",
                 "add the call to ops.plan([...]), or ops.unseal()")  # fmt: skip
        options, made = dict(specialization.options), PROGRAMS.get(specialization.family)
        recorded = made(**options) if made else None
        program = recorded.program if made else _native.library_program(specialization.family, options)
        kernel = Kernel(program, specialization.engine, specialization.arch, list(specialization.outputs))
        kernel.program, kernel.prim_func, kernel.outputs = program, recorded, list(specialization.outputs)
        kernel = _kernels.setdefault(specialization, kernel)
    return kernel


def _launch_nothing(*arguments):
    pass


def calling(specialization, *numbers):
    """A function that calls the kernel with tensors, and these numbers behind them."""
    kernel = None

    def call(*tensors):
        nonlocal kernel
        if kernel is None:
            kernel = compiled(specialization)
        return kernel(*tensors, *numbers)

    return call


@entry
def plan(calls: Iterable[Iterable[Specialization]], num_workers: int | None = None) -> list[Specialization]:
    """Compiles what calls will want, by several threads, with a progress bar: plan([ops.matmul.plan(Spec((M, K), "bfloat16",
    "cuda"), ...), ...]). Returns the specializations, each once."""
    wanted = list(dict.fromkeys(s for call in calls for s in call))
    each_by_threads([functools.partial(compiled, s) for s in wanted if s not in _kernels], "compiling", num_workers)
    return wanted


def seal() -> None:
    """From here on no call compiles: one that would is refused (TW1080)."""
    global _sealed
    _sealed = True


def unseal() -> None:
    """Calls may compile again."""
    global _sealed
    _sealed = False


def device_of(tensor):
    if isinstance(tensor, Spec):
        return tensor.device
    if hasattr(tensor, "is_cuda"):
        return "cuda" if tensor.is_cuda else "cpu"
    if hasattr(tensor, "__cuda_array_interface__"):
        return "cuda"
    return "cpu"


@functools.cache
def _architecture():
    return get_architecture() or "sm_90a"


@functools.cache
def _place(device, engine):
    if device == "cuda" and not is_pretended():
        return Place("cuda", _architecture())
    engine = os.fsdecode(engine or "auto")
    # "auto" would take a GPU, which does not reach these tensors.
    return Place("host" if engine == "auto" else engine, "sm_90a" if engine == "simulator" else "")


def place_of(tensor):
    """Where a call on this tensor runs."""
    if recording.found is not None:
        return recording.place
    return _place(device_of(tensor), engine_asked_for())


_ENVIRONMENT = getattr(os.environ, "_data", os.environ)  # what it keeps, in the system's words: asked for at every call
_ENGINE = "TILEWRIGHT_ENGINE" if _ENVIRONMENT is os.environ else os.environ.encodekey("TILEWRIGHT_ENGINE")


def engine_asked_for():
    """The environment's engine, as it stands there, or None."""
    return _ENVIRONMENT.get(_ENGINE)


def _where(tensor):
    """What place_of() depends on."""
    return getattr(tensor, "is_cuda", None) or engine_asked_for()


def remembered(calls, key, *tensors):
    """What calls of this key do, if one has been there on such a device and these tensors have no gaps; else None."""
    if recording.found is not None:
        return None
    found = calls.get((key, _where(tensors[0])))
    if found is None:
        return None
    for tensor in tensors:
        try:
            if not tensor.is_contiguous():
                return None
        except AttributeError:  # not PyTorch's
            if not is_compact(tensor):
                return None
    return found


def remember(calls, key, tensor, run):
    if recording.found is None:
        calls[key, _where(tensor)] = run


def chosen(family, options, place, shape):
    """What suits the shape, as kernels.h's Choice has it; options by name, texts or numbers."""
    return _chosen(family, tuple(sorted((n, _text(v)) for n, v in options.items())), place, tuple(shape.items()))


@functools.lru_cache(4096)
def _chosen(family, texts, place, extents):
    return json.loads(_native.library_choose(family, dict(texts), place.arch, dict(extents)))


_NEAR = 1.02  # a kernel that is there is taken for a better one that is not


def best_of(choice, specialization_of):
    """(specialization, microseconds) of a choice among tiles: the best, or one that is compiled and about as good. Once sealed,
    the best of those that are compiled."""
    taken = choice["options"]["tile"]
    considered = sorted(choice["considered"].items(), key=lambda of: (of[0] != taken, of[1])) or [(taken, 0)]
    least = considered[0][1]
    for tile, microseconds in considered:
        if not _sealed and microseconds > _NEAR * least:
            break
        wanted = specialization_of(tile)
        if wanted in _kernels:
            return wanted, microseconds
    wanted = specialization_of(considered[0][0])
    return (_nearest(wanted) if _sealed else wanted), least


def _nearest(wanted):
    """Of the kernels that are compiled, and differ in the tile alone, the one whose tile is the nearest; without any, `wanted`."""

    def apart_from_tile(s):
        return s._replace(options=tuple(o for o in s.options if o[0] != "tile"))

    def distance(s):
        extents = (dict(t.options)["tile"].split("x") for t in (s, wanted))
        return sum(abs(math.log2((int(a) + 1) / (int(b) + 1))) for a, b in zip(*extents))

    return min((s for s in _kernels if apart_from_tile(s) == apart_from_tile(wanted)), key=distance, default=wanted)


def specialization(family, options, place, outputs):
    """Of options by name, texts or numbers."""
    return Specialization(family, tuple(sorted((n, _text(v)) for n, v in options.items())), place.engine, place.arch if place.engine == "simulator" else "", outputs)


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


class Operator:
    """A function of this package. resolve(*arguments) gives (a function of the arguments, its specializations). traced: whether it
    is an operator of PyTorch's where torch.compile traces it; else the graph ends in front of it, and goes on behind."""

    def __init__(self, function, resolve, traced=True):
        functools.update_wrapper(self, function)
        self.signature = inspect.signature(function)
        self._function, self._resolve, self._traced, self._apart = function, resolve, traced, None
        self.calls = {}  # by everything that a call is told from another by
        _operators.append(self)

    def __repr__(self):
        return f"<op {self.__name__}{self.signature}>"

    def __reduce__(self):
        return _by_name, (self.__name__,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._traced and "torch" in sys.modules and sys.modules["torch"].compiler.is_compiling():
            _keep_apart()
            return self._apart(*args, **kwargs)
        return self._function(*args, **kwargs)

    @entry
    def plan(self, *args: Any, **kwargs: Any) -> list[Specialization]:
        """The specializations of a call with these tensors, or Specs in their place."""
        return self._resolve(*args, **kwargs).specializations

    @entry
    def choice(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """What was chosen for such a call: {"kernels": [...], "predicted_us": ...}."""
        resolved = self._resolve(*args, **kwargs)
        found = {"kernels": [str(s) for s in resolved.specializations]}
        return {**found, "predicted_us": resolved.microseconds} if resolved.microseconds else found


_SHORT = 4096  # elements of a vector, of which there are kernels for few and for many


def is_long(count):
    return count > _SHORT


def _is_traced():
    """Whether torch.compile reads these lines: PyTorch's own function, once there is a table."""
    return False


class FlatOperator(Operator):
    """A function of elements: calls with tensors of PyTorch of one shape and dtype, without gaps and gradients, go to their kernel by a
    table of the extension module."""

    def __init__(self, function, resolve, defaults=()):
        super().__init__(function, resolve)
        self._flat, self._defaults = None, defaults  # of its last parameters

    def __call__(self, *operands: Any, **named: Any) -> Any:
        flat = self._flat
        if flat is not None and not named and not _is_traced():
            made = flat(*operands)
            if made is not NotImplemented:
                return made
        return self._function(*operands, **named)

    def remember_flat(self, operands, specialization):
        """That calls with operands of these types are calls of this kernel of vectors."""
        global _is_traced
        if recording.found is None and is_torch(*operands):
            _is_traced = sys.modules["torch"].compiler.is_dynamo_compiling
            flat = self._flat or _native.FlatCalls(_ENVIRONMENT, _ENGINE, _SHORT, self._defaults)
            flat.keep(compiled(specialization), *operands)
            self._flat = flat


def _by_name(name):
    """What a function is pickled as."""
    return next(operator for operator in _operators if operator.__name__ == name)


def _keep_apart():
    """Makes functions that torch.compile calls, and does not look into, of those that are no operators."""
    disable = sys.modules["torch"].compiler.disable
    for operator in _operators:
        if not operator._traced and operator._apart is None:
            operator._apart = disable(operator._function)
    return True


_keep_apart._dynamo_marked_constant = True  # torch.compile calls it while it traces


class Resolved(NamedTuple):
    """A call that is decided: run(*tensors) calls its kernels."""

    run: Any
    specializations: list
    microseconds: float = 0


# ---- tensors


def name_of(type_):
    """The name of a tensor's dtype; of one that is none here, as its library has it."""
    return _name_of(type_)


name_of._dynamo_marked_constant = True


@functools.lru_cache(1024)
def _name_of(type_):
    name = str(type_).removeprefix("torch.")
    try:
        return str(dtype(name))
    except CompileError:
        if name[0] in "<>":  # of numpy, of the other order of bytes: how to turn them is said there
            raise
        return name


def refuse_dtype(function, argument, name, taken):
    fail("ArgumentDtype", f"{function}: '{argument}' has dtype {name}, which it does not take", f"it takes {', '.join(taken)}", also=TypeError)


def refuse_shape(function, message, help=""):
    fail("ArgumentShape", f"{function}: {message}", help, also=ValueError)


def is_torch(*tensors):
    torch = sys.modules.get("torch")
    if torch is not None:
        for t in tensors:
            if isinstance(t, torch.Tensor):
                return True
    return False


def as_number(function, name, value):
    """The value as a float."""
    try:
        return float(value)
    except (TypeError, ValueError):
        fail("BadOption", f"{function}: {name} is {value!r}", "it is a number", also=TypeError)


def check_tensor(function, argument, value):
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        fail("ArgumentKind", f"{function}: '{argument}' must be a tensor, but is of type {type(value).__name__}",
             "pass a tensor of NumPy, PyTorch or another library with DLPack", also=TypeError)  # fmt: skip


def strides_of(tensor):
    """In elements."""
    if isinstance(tensor, Spec):
        return _compact_strides(tensor.shape)
    stride = getattr(tensor, "stride", None)
    if callable(stride):
        return tuple(stride())
    size = tensor.dtype.itemsize
    return tuple(s // size for s in tensor.strides)


def _compact_strides(shape):
    out, step = [], 1
    for extent in reversed(shape):
        out.append(step)
        step *= extent
    return tuple(reversed(out))


def is_compact(tensor):
    known = getattr(tensor, "is_contiguous", None)  # PyTorch's
    if known is not None:
        return known()
    known = getattr(getattr(tensor, "flags", None), "c_contiguous", None)  # NumPy's and CuPy's
    if known is not None:
        return known
    return all(e == 1 or s == c for e, s, c in zip(tensor.shape, strides_of(tensor), _compact_strides(tensor.shape))) or 0 in tensor.shape


def compact(tensor):
    """The tensor, or a copy of it without gaps, row by row."""
    if isinstance(tensor, Spec) or is_compact(tensor):
        return tensor
    if hasattr(tensor, "contiguous"):
        return tensor.contiguous()
    import numpy

    library = numpy if isinstance(tensor, numpy.ndarray) else sys.modules[type(tensor).__module__.partition(".")[0]]
    return library.ascontiguousarray(tensor)


def swapped(tensor):
    """A view with its last two dimensions exchanged."""
    if isinstance(tensor, Spec):
        return Spec((*tensor.shape[:-2], tensor.shape[-1], tensor.shape[-2]), tensor.dtype, tensor.device)
    return tensor.mT if is_torch(tensor) else tensor.swapaxes(-1, -2)


def reshaped(tensor, shape):
    return Spec(shape, tensor.dtype, tensor.device) if isinstance(tensor, Spec) else tensor.reshape(shape)


def permuted(tensor, order):
    if isinstance(tensor, Spec):
        return Spec([tensor.shape[d] for d in order], tensor.dtype, tensor.device)
    return tensor.permute(*order) if is_torch(tensor) else tensor.transpose(order)


def product(extents):
    return math.prod(extents)


def bucket(extent):
    """Calls whose extents are of one bucket share a choice: the power of two that an extent is at most."""
    return 16 if extent <= 16 else 1 << (extent - 1).bit_length()
