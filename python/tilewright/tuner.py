"""autotune: the fastest of several configurations of a jitted function."""
from __future__ import annotations

import functools
import inspect
import itertools
import os
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any, overload

from . import _native
from .elsewhere import nearest
from .errors import TilewrightError
from .jitted import Jit, bound_to, each_by_threads
from .jitted import jit as plain_jit
from .kernel import Kernel, compile as compile_program, engine_of
from .settings import depth_of_user
from .surroundings import Surroundings
from .trace import fail
from .tracebacks import entry
from .tuning import Search


class _Inputs(threading.local):
    given = None


_inputs = _Inputs()


class set_autotune_inputs:
    """with set_autotune_inputs(a, b): candidates are measured on these tensors."""

    tensors: list[Any]
    outer: Any

    def __init__(self, *tensors: Any) -> None:
        self.tensors = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)

    def __enter__(self) -> None:
        self.outer, _inputs.given = _inputs.given, self.tensors

    def __exit__(self, *error: Any) -> None:
        _inputs.given = self.outer


def _listed_by(configs, args, kwargs):
    """What a function gives for the arguments; older programs take those by position and those by name as two tuples."""
    two = tuple(args), tuple(sorted(kwargs.items()))
    fits = [_takes(configs, *args, **kwargs), _takes(configs, *two)]
    return configs(*two) if fits == [False, True] else configs(*args, **kwargs)


def _takes(function, *args, **kwargs):
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return False
    return True


def configurations(configs, args, kwargs):
    """The dictionaries that `configs` stands for: a list of them, lists by name, or a function that gives either."""
    listed = _listed_by(configs, args, kwargs) if callable(configs) else configs
    if isinstance(listed, dict):
        keys = list(listed)
        listed = [dict(zip(keys, values)) for values in itertools.product(*(listed[k] for k in keys))]
    listed = [] if listed is None else list(listed)
    wrong = next((c for c in listed if not isinstance(c, Mapping)), None)
    if wrong is not None or not listed:
        what = f"a configuration is {wrong!r}" if wrong is not None else "there is no configuration to choose from"
        fail("BadOption", what, 'configs is a list of dictionaries, [{"block": 32}, {"block": 64}], or lists by name, {"block": [32, 64]}')
    return [dict(c) for c in listed]


class Tuned:
    """A jitted function under @autotune. Given a tunable argument, it is the function itself; one that do_not_specialize
    names is only where the search starts, and the configurations stand in its place."""

    function: Any
    configs: Any
    options: dict[str, Any]
    same_for: frozenset[str]
    portable: bool
    best: dict[Any, Any]

    def __init__(self, function: Any, configs: Any, options: dict[str, Any], do_not_specialize: Any = (), portable: bool = False) -> None:
        options = {**getattr(function, "measuring", {}), **options}
        self.function, self.configs, self.options = function, configs, options
        names = [do_not_specialize] if isinstance(do_not_specialize, str) else do_not_specialize or ()
        unknown = set(names) - set(function.order)
        _refuse_unknown(function, unknown, "do_not_specialize")
        self.same_for, self.portable = frozenset(names), portable
        self.best = {}
        functools.update_wrapper(self, function)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return bound_to(instance, self, self.function.order)

    def __reduce__(self) -> str:
        return self.__qualname__

    def __deepcopy__(self, memo: Any) -> Tuned:
        return self

    def _tune(self, args, kwargs):
        candidates = configurations(self.configs, args, kwargs)
        names = {n for c in candidates for n in c} - {"pass_configs"}
        unknown = names - set(self.function.order)
        _refuse_unknown(self.function, unknown, "a configuration")
        given = set(kwargs).union(self.function.order[: len(args)])
        if names & given - self.same_for:
            return None
        key, exact = self._key(args, kwargs)
        if key not in self.best:
            if self.portable:
                _warn_of_closure(self.function.func)
            asked = _asked(self.function)
            makers = [(functools.partial(self._compiled, args, kwargs, c), functools.partial(self._compiled, args, kwargs, c, asked)) for c in candidates]
            machine = self.options.get("machine") or _machine_of(self.function.target, self.function.engine)
            self.best[key] = _fastest(self.function.func.__name__, candidates, makers, self._tensors(args), {**self.options, "machine": machine})
        best = self.best[key]
        if exact and not self.same_for:
            return best
        kernel = self._compiled(args, kwargs, best.config)
        kernel.latency, kernel.config, kernel.ref_latency = best.latency, best.config, best.ref_latency
        return kernel

    def _compiled(self, args, kwargs, config, function=None):
        args, kwargs = self._with(config, args, kwargs)
        return (function or self.function).compile(*args, **kwargs)

    def _with(self, config, args, kwargs):
        """The arguments with what the configuration gives in their place."""
        values = parameters_of(config)
        args = [values.pop(name, arg) for name, arg in itertools.zip_longest(self.function.order[: len(args)], args)]
        return args, {**kwargs, **values}

    def _key(self, args, kwargs):
        """(what the choice depends on, whether that is all of it): all arguments but those of do_not_specialize, and what stands around the function."""
        named = {**dict(zip(self.function.order, args)), **kwargs}
        kept = {n: _shape_of(v) for n, v in named.items() if n not in self.same_for}
        around = Surroundings(self.function.func, dict(sorted(kept.items())))
        return (around.arguments, around.key), around.exact

    def _tensors(self, args):
        """The tensors of an eager call, which candidates are measured on; None where some are left out."""
        count = self.function.tensor_count
        if self.function.mode == "lazy" or not count or len(args) < count:
            return None
        return list(args[:count]) if all(hasattr(a, "__dlpack__") for a in args[:count]) else None

    @entry
    def compile(self, *args: Any, **kwargs: Any) -> Kernel:
        """The best kernel for these arguments; given a tunable one, the kernel with it."""
        best = self._tune(args, kwargs)
        return self.function.compile(*args, **kwargs) if best is None else best

    @entry
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kernel_only = kwargs.pop("__return_kernel", False)
        best = self._tune(args, kwargs)
        if best is None:
            return (self.function.compile if kernel_only else self.function)(*args, **kwargs)
        if self.function.mode_ == "lazy" or kernel_only:
            return best
        args, kwargs = self._with(best.config, args, kwargs)
        return self.function(*args, **kwargs)


def _refuse_unknown(function, names, where):
    for name in sorted(names):
        near = nearest(name, function.order)
        fail("BadOption", f"'{function.func.__name__}' has no parameter '{name}', which {where} names",
             f"the nearest it has: {near}" if near else f"it has {', '.join(function.order)}")  # fmt: skip


def _warn_of_closure(function):
    """TileLang's tuner takes no function that closes over more than numbers and texts. This one does."""
    free = zip(function.__code__.co_freevars, function.__closure__ or ())
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount + function.__code__.co_kwonlyargcount]
    for name, cell in free:
        try:
            value = cell.cell_contents
        except ValueError:  # not bound yet
            continue
        if name not in parameters and not isinstance(value, (int, float, str, bool, type(None))):
            warnings.warn(f"'{name}', which '{function.__name__}' closes over, is {type(value).__name__}: not serializable. TileLang "
                          "refuses to tune such a function (AssertionError); here it is tuned", stacklevel=depth_of_user())  # fmt: skip


def parameters_of(config):
    """What a configuration gives the function; options of passes change no result."""
    return {k: v for k, v in config.items() if k != "pass_configs"}


def _shape_of(argument):
    """Tensors of one shape and dtype are tuned once."""
    return (tuple(argument.shape), str(argument.dtype)) if hasattr(argument, "shape") else argument


def _asked(function):
    """The function for the model alone: nothing is compiled for a device."""
    return Jit(function.func, function.out_idx, None, function.pass_configs, "interpreter", function.compile_flags)


def _machine_of(target, engine):
    """The machine whose model ranks candidates: the device, where they run on one."""
    name, arch = engine_of(target, engine)
    if name == "auto":
        name = os.environ.get("TILEWRIGHT_ENGINE") or "cuda"
    if name != "cuda" or not _native.device_count():
        return None
    from .carver.arch import _device_here

    return _device_here() or arch or None


def _ranked(name, programs, machine):
    """Numbers of the candidates, those that the model expects to be fastest first. What it knows no time of stays behind, in order."""
    from .cost import Machine, machine as machine_of, predict

    wanted = machine if isinstance(machine, Machine) else machine_of(machine)

    def expected(make):
        return predict(make(), wanted).us

    times = each_by_threads([functools.partial(expected, make) for make in programs], f"predicting {name}", catch=TilewrightError)
    known = [time if isinstance(time, float) else float("inf") for time in times]
    return sorted(range(len(known)), key=known.__getitem__)


def _fastest(name, candidates, makers, given, options):
    """The fastest kernel of those that can be compiled and are right. makers: of each candidate what compiles it, and what gives the
    model its program."""
    options = {"log": os.environ.get("TILEWRIGHT_TUNING_LOG"), **options}
    machine, most = options.pop("machine", None), options.pop("compiles", None)
    if most is not None and (not isinstance(most, int) or most < 1):
        fail("BadOption", f"autotune with compiles={most!r}", "how many configurations are compiled at most, 1 or more; without it all are")
    if machine and len(candidates) > 1:
        order = _ranked(name, [program for _, program in makers], machine)
        candidates, makers = [candidates[i] for i in order], [makers[i] for i in order]
    candidates, makers = candidates[:most], makers[:most]
    kernels = each_by_threads([make for make, _ in makers], f"compiling {name}", catch=TilewrightError)
    return Search(name, **options).best_of(candidates, kernels, _inputs.given or given)


@overload
def autotune(function: Jit, **options: Any) -> Tuned: ...
@overload
def autotune(function: None = None, *, configs: Any = None, do_not_specialize: Any = (), portable: bool = False, **options: Any) -> Callable[[Jit], Tuned]: ...
@entry
def autotune(function=None, *, configs=None, do_not_specialize=(), portable=False, **options):
    """Chooses among configs, dictionaries of parameters, by measuring; wraps a function under @jit.

    What each computes is compared with ref_prog or, without one, with what most of them compute; skip_check=True leaves
    that out. On a GPU those that the cost model expects to be fastest come first, and compiles=8 takes so many alone (docs/tuner.md);
    machine: whose model, "H100", instead of the device's. do_not_specialize: parameters whose values share one choice. portable: a warning for functions that TileLang
    would refuse to tune. log: a file of JSON lines, which a search that was stopped goes on from (or TILEWRIGHT_TUNING_LOG).
    """
    _refuse_unknown_options("autotune", options)
    if function is None:
        return functools.partial(autotune, configs=configs, do_not_specialize=do_not_specialize, portable=portable, **options)
    if not isinstance(function, Jit):
        fail("OperandKind", f"autotune wraps a function under @jit, not {type(function).__name__}", "write @autotune(...) above @jit")
    return Tuned(function, configs, _without_effect_left_out(options), do_not_specialize, portable)


# What a Search is told, and what TileLang's tuner is told besides: names of parameters, which the configurations say, how
# long a candidate may take, whether tensors are kept.
_SEARCHING = frozenset(list(inspect.signature(Search.__init__).parameters)[2:]) | {"compiles", "machine"}
_WITHOUT_EFFECT = frozenset({"keys", "timeout", "cache_input_tensors"})


def _refuse_unknown_options(what, options):
    known = sorted(_SEARCHING | _WITHOUT_EFFECT)
    for name in sorted(set(options) - set(known)):
        near = nearest(name, known)
        fail("BadOption", f"{what} has no option '{name}'", f"the nearest it has: {near}" if near else f"it has {', '.join(known)}")


def _without_effect_left_out(options):
    return {name: value for name, value in options.items() if name not in _WITHOUT_EFFECT}


_MEASURING = ("supply_type", "supply_prog", "ref_prog", "rtol", "atol", "max_mismatched_ratio", "skip_check", "warmup", "rep")


def jit(function=None, **options):
    """@jit below @autotune as programs for TileLang up to 0.1.4 write it: it says how to measure, too."""
    if function is None:
        return functools.partial(jit, **options)
    measuring = {n: options.pop(n) for n in _MEASURING if n in options}
    for name in ("profiler", "cache_input_tensors"):
        options.pop(name, None)
    made = plain_jit(function, **options)
    made.measuring = measuring
    return made


class AutoTuner:
    """AutoTuner.from_kernel(factory, configs).run(): the factory returns a program."""

    kernel: Any
    configs: Any
    compiling: dict[str, Any]
    measuring: dict[str, Any]

    def __init__(self, kernel: Any, configs: Any) -> None:
        self.kernel, self.configs, self.compiling, self.measuring = kernel, configs, {}, {}

    @classmethod
    def from_kernel(cls, kernel: Any, configs: Any) -> AutoTuner:
        return cls(kernel, configs)

    def set_compile_args(self, out_idx: Any = None, target: Any = None, **ignored: Any) -> AutoTuner:
        self.compiling = {"out_idx": out_idx, "target": target}
        return self

    def set_profile_args(self, **options: Any) -> AutoTuner:
        _refuse_unknown_options("set_profile_args", options)
        self.measuring = _without_effect_left_out(options)
        return self

    def run(self, warmup: Any = 25, rep: Any = 100, **ignored: Any) -> Kernel:
        if isinstance(self.kernel, Jit):
            make, ask, target, engine = self.kernel.compile, _asked(self.kernel).compile, self.kernel.target, self.kernel.engine
        else:
            make, ask, target, engine = lambda **c: compile_program(self.kernel(**c), **self.compiling), self.kernel, self.compiling.get("target"), None
        options = {"machine": _machine_of(target, engine), **self.measuring, "warmup": warmup, "rep": rep}
        candidates = configurations(self.configs, (), {})
        name = getattr(self.kernel, "__name__", "kernel")
        makers = [(functools.partial(make, **parameters_of(c)), functools.partial(ask, **parameters_of(c))) for c in candidates]
        best = _fastest(name, candidates, makers, None, options)
        best.libcode, best.kernel = best.get_kernel_source(), best
        return best
