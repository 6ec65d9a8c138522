"""autotune: the fastest of several configurations of a jitted function."""
import functools
import itertools
import threading

from .errors import TilewrightError
from .jitted import Jit
from .kernel import compile as compile_program
from .profiler import Profiler, TensorSupplyType, do_bench


class _Inputs(threading.local):
    given = None


_inputs = _Inputs()


class set_autotune_inputs:
    """with set_autotune_inputs(a, b): candidates are measured on these tensors."""

    def __init__(self, *tensors):
        self.tensors = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)

    def __enter__(self):
        self.outer, _inputs.given = _inputs.given, self.tensors

    def __exit__(self, *error):
        _inputs.given = self.outer


def _configurations(configs, args, kwargs):
    listed = configs(*args, **kwargs) if callable(configs) else configs
    if isinstance(listed, dict):
        keys = list(listed)
        return [dict(zip(keys, values)) for values in itertools.product(*(listed[k] for k in keys))]
    return [dict(c) for c in listed]


class Tuned:
    """A jitted function under @autotune. Given a tunable argument, it is the function itself."""

    def __init__(self, function, configs, options):
        self.function, self.configs, self.options = function, configs, options
        self.best = {}
        functools.update_wrapper(self, function)

    def __getattr__(self, name):
        return getattr(self.function, name)

    def _tune(self, args, kwargs):
        candidates = _configurations(self.configs, args, kwargs)
        names = {n for c in candidates for n in c} - {"pass_configs"}
        unknown = names - set(self.function.order)
        if unknown:
            raise ValueError(f"'{self.function.func.__name__}' has no parameter {sorted(unknown)}, which a configuration names")
        if names & set(kwargs) or any(n in names for n in self.function.order[: len(args)]):
            return None
        key = tuple(map(id, args)), tuple(sorted((k, str(v)) for k, v in kwargs.items()))
        if key not in self.best:
            self.best[key] = best_of(candidates, lambda c: self.function.compile(*args, **{**kwargs, **c}), **self.options)
        return self.best[key]

    def compile(self, *args, **kwargs):
        """The best kernel for these arguments; given a tunable one, the kernel with it."""
        best = self._tune(args, kwargs)
        return self.function.compile(*args, **kwargs) if best is None else best

    def __call__(self, *args, **kwargs):
        kernel_only = kwargs.pop("__return_kernel", False)
        best = self._tune(args, kwargs)
        if best is None:
            return (self.function.compile if kernel_only else self.function)(*args, **kwargs)
        if self.function.mode_ == "lazy" or kernel_only:
            return best
        return self.function(*args, **{**kwargs, **best.config})


def best_of(candidates, make, warmup=25, rep=100, supply_type=TensorSupplyType.Auto, supply_prog=None, ref_prog=None,
            skip_check=False, rtol=1e-2, atol=1e-2, max_mismatched_ratio=0.01, **ignored):  # fmt: skip
    """The fastest kernel; candidates that cannot be compiled or are wrong are left out."""
    best, failures = None, []
    for config in candidates:
        try:
            kernel = make({k: v for k, v in config.items() if k != "pass_configs"})
            profiler = Profiler(kernel, supply_type)
            inputs = _inputs.given or (supply_prog(kernel.params) if supply_prog else profiler._inputs())
            if ref_prog is not None and not skip_check:
                profiler.assert_allclose(ref_prog, inputs, atol=atol, rtol=rtol, max_mismatched_ratio=max_mismatched_ratio)
            latency = do_bench(lambda: kernel(*inputs), warmup, rep)
        except (TilewrightError, AssertionError) as error:
            failures.append(f"{config}: {error}")
            continue
        if best is None or latency < best.latency:
            best, kernel.latency, kernel.config = kernel, latency, config
    if best is None:
        raise TilewrightError("no configuration works:\n" + "\n".join(failures))
    return best


def autotune(function=None, *, configs=None, **options):
    """Chooses among configs, dictionaries of parameters, by measuring; wraps a function under @jit."""
    if function is None:
        return functools.partial(autotune, configs=configs, **options)
    if not isinstance(function, Jit):
        raise TypeError("autotune wraps a function under @jit: write @autotune(...) above @jit")
    return Tuned(function, configs, options)


class AutoTuner:
    """AutoTuner.from_kernel(factory, configs).run(): the factory returns a program."""

    def __init__(self, kernel, configs):
        self.kernel, self.configs, self.compiling, self.measuring = kernel, configs, {}, {}

    @classmethod
    def from_kernel(cls, kernel, configs):
        return cls(kernel, configs)

    def set_compile_args(self, out_idx=None, target=None, **ignored):
        self.compiling = {"out_idx": out_idx, "target": target}
        return self

    def set_profile_args(self, **options):
        self.measuring = options
        return self

    def run(self, warmup=25, rep=100, **ignored):
        make = self.kernel.compile if isinstance(self.kernel, Jit) else lambda **c: compile_program(self.kernel(**c), **self.compiling)
        options = {**self.measuring, "warmup": warmup, "rep": rep}
        best = best_of(_configurations(self.configs, (), {}), lambda c: make(**c), **options)
        best.libcode, best.func, best.kernel = best.get_kernel_source(), best.prim_func, best
        return best
