"""Inputs for a kernel, comparing its outputs with a reference, and measuring it."""
import copy
import enum
import importlib.util
import numbers
import re
import statistics
import sys
import time
from collections.abc import Mapping
from typing import Any

from .dtypes import dtype
from .elsewhere import nearest
from .settings import warn_once
from .shown import Measured
from .tensors import is_numpy
from .trace import fail


class TensorSupplyType(enum.Enum):
    """How inputs are made; Auto: floats in [-1, 1], unsigned integers in [0, 3), other integers in [-2, 3)."""

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


def cached(factory, out_idx=None, *arguments, **named):
    """tilelang.cached, where earlier releases had it."""
    from .as_tilelang import cached as kernel_of

    return kernel_of(factory, out_idx, *arguments, **named)


def make_tensor(parameter, supply=TensorSupplyType.Auto, device=None):
    """A tensor for a parameter whose shape is known: PyTorch's, or NumPy's where that is not installed."""
    if any(not isinstance(e, int) for e in parameter.shape):
        raise ValueError(f"the shape ({', '.join(map(str, parameter.shape))}) of '{parameter.name}' is known only at the call: "
                         "pass input_tensors, or dynamic_symbolic_constraints={name: value}")  # fmt: skip
    if importlib.util.find_spec("torch") is None:
        return _numpy_array(parameter, supply, device)
    import torch

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    name, shape, kind = parameter.dtype, list(parameter.shape), dtype(parameter.dtype).as_torch()
    if supply is TensorSupplyType.Zero:
        return torch.zeros(shape, dtype=kind, device=device)
    if supply is TensorSupplyType.One:
        return torch.ones(shape, dtype=kind, device=device)
    if name == "bool":
        return torch.randint(0, 2, shape, device=device, dtype=kind)
    if name.startswith("uint"):
        return torch.randint(0, 3, shape, device=device, dtype=torch.int32).to(kind)
    if name.startswith("float8") and supply in (TensorSupplyType.Auto, TensorSupplyType.Integer):
        return torch.randint(-128, 128, shape, device=device, dtype=torch.int8).to(kind)
    if supply is TensorSupplyType.Integer or name.startswith("int"):
        if name == "int8" and supply in (TensorSupplyType.Uniform, TensorSupplyType.Normal):
            return torch.ones(shape, device=device, dtype=kind)
        return torch.randint(-2, 3, shape, device=device, dtype=torch.int32).to(kind)
    made = torch.empty(shape, device=device, dtype=torch.float32)
    if supply is TensorSupplyType.Normal:
        made.normal_(-1.0, 1.0)
    elif supply is TensorSupplyType.Randn:
        made.normal_()
    else:
        made.uniform_(-1.0, 1.0)
    return made.to(kind)


def _numpy_array(parameter, supply, device):
    name, shape = parameter.dtype, tuple(parameter.shape)
    if device == "cuda" or not is_numpy(name):
        what = "on a GPU" if device == "cuda" else f"of {name}"
        fail("OperandKind", f"no tensor {what} can be made for '{parameter.name}': NumPy has none, and PyTorch is not installed",
             'pip install "tilewright[torch]", or pass tensors of your own')  # fmt: skip
    import numpy

    if supply in (TensorSupplyType.Zero, TensorSupplyType.One):
        return numpy.full(shape, supply is TensorSupplyType.One, name)
    random = numpy.random.default_rng()
    if name == "bool" or name.startswith("uint"):
        return random.integers(0, 2 if name == "bool" else 3, shape).astype(name)
    if supply is TensorSupplyType.Integer or name.startswith("int"):
        return random.integers(-2, 3, shape).astype(name)
    if supply in (TensorSupplyType.Normal, TensorSupplyType.Randn):
        return random.normal(-1.0 if supply is TensorSupplyType.Normal else 0.0, 1.0, shape).astype(name)
    return random.uniform(-1.0, 1.0, shape).astype(name)


def assert_close(found, wanted, name, rtol, atol, max_mismatched_ratio, other="what is wanted"):
    """AssertionError if more than that share of the elements differ by more."""
    if "torch" in sys.modules and hasattr(found, "clone"):
        from .testing import torch_assert_close

        torch_assert_close(found, wanted, rtol=rtol, atol=atol, max_mismatched_ratio=max_mismatched_ratio, base_name=name, ref_name=other)
        return
    import numpy

    if found.shape != wanted.shape:
        raise AssertionError(f"{name} has shape {found.shape}, not {wanted.shape}")
    same = numpy.isclose(found.astype("float64"), wanted.astype("float64"), rtol=rtol, atol=atol, equal_nan=True)
    if (~same).mean() > max_mismatched_ratio:
        raise AssertionError(f"{name} differs in {(~same).sum()} of {same.size} elements")


def _bytes_of(tensor):
    return tensor.numel() * tensor.element_size() if hasattr(tensor, "element_size") else getattr(tensor, "nbytes", 0)


def _equal(a, b):
    return a.shape == b.shape and bool((a == b).all())


def _dimensions(text):
    """Of each tensor of a program's text, the texts of its dimensions."""
    found = re.findall(r"^ *param ([^:]+): [^\[\n]+\[([^\]\n]*)\]", text, re.MULTILINE)
    return {name: shape.split(", ") for name, shape in found}


def _sized(parameter, texts, sizes):
    """The parameter with numbers for the dimensions that are names among `sizes`."""
    sized = copy.copy(parameter)
    sized.shape = [e if isinstance(e, int) else sizes.get(t, t) for e, t in zip(parameter.shape, texts)]
    return sized


def _sizes(kernel, sizes):
    """Dimensions by name, checked."""
    what, example = "dynamic_symbolic_constraints", 'of dimensions that only a call knows: {"m": 128}'
    if not isinstance(sizes, Mapping):
        fail("OperandKind", f"{what} is {sizes!r}", f"it is a dict {example}", also=TypeError)
    names = re.findall(r"^ *symbol (\w+)", kernel.prim_func.script(), re.MULTILINE)
    for name, value in sizes.items():
        if name not in names:
            known = nearest(name, names) or ", ".join(names)
            fail("BadOption", f"{what}: '{kernel.name}' has no dimension {name!r} that only a call knows",
                 f"it has {known}" if known else "all of its dimensions are numbers")  # fmt: skip
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not 0 <= value < 2**63:
            fail("OperandKind", f"{what}: {name} is {value!r}", "it is a number of elements", also=TypeError)
    return {name: int(value) for name, value in sizes.items()}


def get_tensor_supply(supply_type=TensorSupplyType.Auto):
    return lambda parameter: make_tensor(parameter, supply_type)


def given_to(kernel):
    """The parameters that a call gives: those of out_idx, the kernel makes."""
    outputs = set(kernel.outputs)
    return [p for i, p in enumerate(kernel.params) if i not in outputs]


def supply_of(supply):
    """How inputs are made, checked."""
    if not isinstance(supply, TensorSupplyType):
        fail("BadOption", f"the supply of tensors is {supply!r}", f"it is one of TensorSupplyType: {', '.join(t.name for t in TensorSupplyType)}")
    return supply


class Profiler:
    """kernel.get_profiler(): checks and measures on inputs of its own, or on given ones."""

    kernel: Any
    supply: TensorSupplyType

    def __init__(self, kernel: Any, supply: Any) -> None:
        self.kernel, self.supply = kernel, supply_of(supply)

    def _inputs(self, given=None, sizes=None, with_output=False):
        """Those of a call; `sizes` are the values of dimensions that are known only there."""
        sizes = {} if sizes is None else _sizes(self.kernel, sizes)
        if given is not None:
            return list(given)
        parameters = self._get_params(with_output)
        scalars = [p.name for p in parameters if p.shape is None]
        if scalars:
            raise ValueError(f"nothing says what the numbers {scalars} of '{self.kernel.name}' are: pass input_tensors")
        texts = _dimensions(self.kernel.prim_func.script())
        device = "cuda" if self.kernel.engine == "cuda" else "cpu"
        return [make_tensor(_sized(p, texts[p.name], sizes), self.supply, device) for p in parameters]

    def _get_inputs(self, with_output: bool = False, dynamic_symbolic_constraints: Any = None) -> list[Any]:
        """TileLang's name of it, which programs call; with_output: also what a call would make."""
        return self._inputs(None, dynamic_symbolic_constraints, with_output)

    def _get_params(self, with_output: bool = False) -> list[Any]:
        return list(self.kernel.params) if with_output else given_to(self.kernel)

    @property
    def params(self) -> list[Any]:
        return list(self.kernel.params)

    @property
    def result_idx(self) -> list[int]:
        return self.kernel.out_idx

    @property
    def adapter(self) -> Any:
        return self.kernel.adapter

    def with_default_adapter(self, adapter: Any) -> Any:
        """What calls the kernel is the kernel: it stays."""
        return self

    def __call__(self, *arguments: Any) -> Any:
        return self.kernel(*arguments)

    def __repr__(self) -> str:
        return f"<profiler of {self.kernel.name} on {self.kernel.engine}: report() measures a call>"

    def report(self, warmup: Any = 25, rep: Any = 100, input_tensors: Any = None, **named: Any) -> Measured:
        """Of many calls the least, median and 95th percentile of milliseconds, the bytes of its tensors a second at the median and,
        on a GPU, how near that comes to the floor of explain(). Shown as a table."""
        inputs = self._inputs(input_tensors, named.pop("dynamic_symbolic_constraints", None))
        least, median, late = self.do_bench(warmup=warmup, rep=rep, input_tensors=inputs, quantiles=[0, 0.5, 0.95], **named)
        size = sum(map(_bytes_of, inputs))
        made = self.kernel(*inputs)
        for t in made if isinstance(made, list) else [] if made is None else [made]:
            size += _bytes_of(t)
        found = Measured({"min ms": least, "median ms": median, "p95 ms": late, "GB/s": size / median / 1e6})
        if self.kernel.engine == "cuda":
            facts = self.kernel.explain(as_json=True)
            floor = max(facts.get("compute_floor_us", 0), facts.get("memory_floor_us", 0)) / 1e3
            found["% of floor"] = 100 * floor / median
        return found

    @property
    def func(self) -> Any:
        return self.kernel

    def run_once(self, func: Any = None) -> Any:
        return (func or self.kernel)(*self._inputs())

    def assert_allclose(self, reference_program: Any, input_tensors: Any = None, atol: float = 1e-2, rtol: float = 1e-2,
                        max_mismatched_ratio: float = 0.01) -> None:  # fmt: skip
        """The kernel's outputs against those of a function of the same inputs."""
        inputs = self._inputs(input_tensors)
        wanted = reference_program(*inputs)
        found = self.kernel(*inputs)
        wanted, found = ([x] if not isinstance(x, (list, tuple)) else list(x) for x in (wanted, found))
        if len(found) != len(wanted):
            raise AssertionError(f"'{self.kernel.name}' has {len(found)} outputs, but the reference gives {len(wanted)}")
        if all(b is None for b in wanted):
            raise AssertionError(f"the reference of '{self.kernel.name}' gives nothing to compare with")
        for i, (a, b) in enumerate(zip(found, wanted)):
            if b is not None:
                assert_close(a, b, f"output {i}", rtol, atol, max_mismatched_ratio, f"reference {i}")

    def manual_assert_close(self, reference_program: Any, input_tensors: Any = None, manual_check_prog: Any = None) -> None:
        inputs = self._inputs(input_tensors)
        manual_check_prog(self.kernel(*inputs), reference_program(*inputs))

    def assert_consistent(self, repeat: int = 10) -> None:
        inputs = self._inputs()
        first = self.kernel(*inputs)
        for _ in range(repeat):
            again = self.kernel(*inputs)
            for a, b in zip(*([x] if not isinstance(x, list) else x for x in (first, again))):
                assert _equal(a, b), "two calls on the same inputs differ"

    def do_bench(self, func: Any = None, warmup: Any = 25, rep: Any = 100, n_warmup: int = 0, n_repeat: int = 0, input_tensors: Any = None,
                 dynamic_symbolic_constraints: Any = None, **named: Any) -> Any:  # fmt: skip
        """Milliseconds of one call. dynamic_symbolic_constraints: {"m": 128}, dimensions that are known at the call."""
        inputs = self._inputs(input_tensors, dynamic_symbolic_constraints)
        func = func or self.kernel
        ignored = sorted(set(named) - {"backend", "quantiles", "return_mode"})
        if ignored:
            warn_once(f"do_bench() knows no {', '.join(ignored)}: nothing changes by it")
        named = {"backend": "event", **{k: v for k, v in named.items() if k not in ignored}}
        if self.kernel.engine != "cuda" and named["backend"] in _BACKENDS:
            named["backend"] = "wall"  # what a device was busy with says nothing of it
        return do_bench(lambda: func(*inputs), warmup, rep, n_warmup, n_repeat, **named)


def do_bench(fn: Any, warmup: Any = 25, rep: Any = 100, _n_warmup: int = 0, _n_repeat: int = 0, quantiles: Any = None, fast_flush: bool = True,
             backend: str = "event", return_mode: str = "mean", device: Any = None, cache_size: Any = 256, early_stop_baseline: Any = None) -> Any:  # fmt: skip
    """Milliseconds of a call: warmup and rep are budgets in milliseconds, _n_warmup and _n_repeat counts.

    backend: "event" measures between two events of the stream; "cupti" adds up the kernels alone, and "cudagraph" replays
    calls that were captured, so that the host's share is left out; "wall", and any of them without a GPU, is the clock.
    """
    need_budgets(fn, warmup, rep, quantiles, backend, return_mode)
    torch = sys.modules.get("torch")
    on_gpu = torch is not None and torch.cuda.is_available()
    measure = _BACKENDS[backend] if on_gpu else _by_clock
    fn()
    estimate = max(statistics.median(measure(fn, 3)) if measure is _by_clock else _turn(fn, cache_size), 1e-4)
    for _ in range(_n_warmup or max(1, int(warmup / estimate))):
        fn()
    times = sorted(measure(fn, _n_repeat or max(1, int(rep / estimate)), cache_size))
    if quantiles is not None:
        found = [times[min(len(times) - 1, int(q * len(times)))] for q in quantiles]
        return found[0] if len(found) == 1 else found
    if return_mode == "min":
        return times[0]
    if return_mode == "max":
        return times[-1]
    return times[len(times) // 2] if return_mode == "median" else sum(times) / len(times)


def need_budgets(fn, warmup, rep, quantiles, backend, return_mode):
    if fn is not None and not callable(fn):
        fail("OperandKind", f"do_bench measures a function, not {fn!r}", "do_bench(lambda: kernel(a, b))")
    if backend not in _BACKENDS:
        fail("BadOption", f"there is no backend '{backend}'", f"it is one of {', '.join(_BACKENDS)}")
    if return_mode not in _MODES:
        fail("BadOption", f"return_mode is {return_mode!r}", f"it is one of {', '.join(_MODES)}")
    for name, value in (("warmup", warmup), ("rep", rep)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            fail("BadOption", f"{name} is {value!r}", "it is a number of milliseconds", also=TypeError)
    if quantiles is not None and not all(isinstance(q, (int, float)) and 0 <= q <= 1 for q in quantiles):
        fail("BadOption", f"quantiles are {quantiles!r}", "they are numbers from 0 to 1")


_MODES = ("mean", "median", "min", "max")


def _turn(fn, cache_size):
    """Milliseconds of a call and all that goes with it: budgets are of those, or a kernel of 2 us would run 50,000 times."""
    import torch

    cache = _cache(cache_size)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(5):
        if cache is not None:
            cache.zero_()
        fn()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / 5 * 1e3


def _by_clock(fn, repeat, cache_size=0):
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        fn()
        times.append((time.perf_counter() - begin) * 1e3)
    return sorted(times) if len(times) <= 3 else times


def _by_events(fn, repeat, cache_size=0):
    import torch

    cache = torch.empty(max(1, cache_size) * 2**18, dtype=torch.int32, device="cuda")
    pairs = []
    for _ in range(repeat):
        cache.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        fn()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) for begin, end in pairs]


def _by_cupti(fn, repeat, cache_size=0):
    return [by_profiler(fn, _cache(cache_size), repeat)]


def _by_graph(fn, repeat, cache_size=0):
    """Of calls that follow each other in a graph: what the caches hold after one, the next finds."""
    import torch

    calls = max(1, min(repeat, 20))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # what a first call allocates cannot be captured
        fn()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(calls):
            fn()
    return [t / calls for t in _by_events(graph.replay, max(1, repeat // calls), cache_size)]


def _cache(megabytes):
    import torch

    return torch.empty(megabytes * 2**18, dtype=torch.int32, device="cuda") if megabytes else None


def by_profiler(fn, cache=None, n_repeat=1):
    """Milliseconds of the kernels that a call launches, as CUPTI counts them: what the host does is left out, and so is
    the write to `cache` that puts the tensors of the call before out of the device's caches."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    flush = set()
    if cache is not None:
        with profile(activities=[ProfilerActivity.CUDA]) as alone:
            cache.zero_()
            torch.cuda.synchronize()
        flush = {event.key for event in alone.key_averages()}
    with profile(activities=[ProfilerActivity.CUDA]) as measured:
        for _ in range(n_repeat):
            if cache is not None:
                cache.zero_()
            fn()
        torch.cuda.synchronize()
    total = 0.0
    for event in measured.key_averages():
        spent = event.self_device_time_total
        if event.key in flush:  # fn may launch the same kernel: only its own share counts
            spent *= 1 - min(1.0, n_repeat / max(1, event.count))
        total += spent
    return total / n_repeat / 1e3


_BACKENDS = {"event": _by_events, "cupti": _by_cupti, "cudagraph": _by_graph, "wall": _by_clock}
bench = do_bench
