"""Measuring configurations of a kernel: compiled together, checked against each other, noted in a log."""
import hashlib
import json
import sys
import warnings

from . import _native
from .errors import TilewrightError
from .profiler import Profiler, TensorSupplyType, assert_close, do_bench, given_to, need_budgets, supply_of
from .progress import Progress
from .settings import depth_of_user
from .trace import fail


class Search:
    """One search: options are what autotune() was given."""

    def __init__(self, name, warmup=25, rep=100, supply_type=TensorSupplyType.Auto, supply_prog=None, ref_prog=None,
                 skip_check=False, rtol=1e-2, atol=1e-2, max_mismatched_ratio=0.01, manual_check_prog=None,
                 early_stop=False, early_stop_factor=2.0, backend="event", log=None):  # fmt: skip
        for what, given in (("ref_prog", ref_prog), ("supply_prog", supply_prog), ("manual_check_prog", manual_check_prog)):
            if given is not None and not callable(given):
                fail("BadOption", f"{what} of '{name}' is {given!r}", "it is a function")
        for what, given in (("rtol", rtol), ("atol", atol), ("max_mismatched_ratio", max_mismatched_ratio), ("early_stop_factor", early_stop_factor)):
            if isinstance(given, bool) or not isinstance(given, (int, float)) or given < 0:
                fail("BadOption", f"{what} of '{name}' is {given!r}", "it is a number, 0 or more")
        need_budgets(None, warmup, rep, None, backend, "mean")
        self.name, self.warmup, self.rep, self.backend = name, warmup, rep, backend
        self.supply_type, self.supply_prog, self.ref_prog, self.skip_check = supply_of(supply_type), supply_prog, ref_prog, skip_check
        self.close = {"rtol": rtol, "atol": atol, "max_mismatched_ratio": max_mismatched_ratio}
        self.manual_check_prog, self.early_factor = manual_check_prog, early_stop_factor if early_stop else None
        self.log = _Log(log)
        self.inputs, self.wanted, self.groups = None, None, []
        self.outcomes = []  # of each configuration its kernel, or the error that it gave

    def best_of(self, configs, kernels, given=None):
        """The fastest of the kernels; in place of one there may be the error that compiling it gave."""
        best = None
        with Progress(f"tuning {self.name}", len(configs)) as bar:
            for config, kernel in zip(configs, kernels):
                try:
                    self._consider(config, kernel, given)
                    self.outcomes.append((config, kernel))
                except (TilewrightError, AssertionError) as error:
                    self.outcomes.append((config, error))
                best = self._best()
                bar.step(f"best {best.latency:.4g} ms, {best.config}" if best else "")
        if best is None:
            first = self.outcomes[0][1]
            if len(self.outcomes) > 1 and isinstance(first, TilewrightError) and len({str(error) for _, error in self.outcomes}) == 1:
                raise first  # of what they have in common
            fail("BadOption", f"no configuration works, of {len(configs)} of '{self.name}':\n"
                 + "\n".join(f"{config}: {error}" for config, error in self.outcomes), "try one alone: its error has its place")  # fmt: skip
        if len(self.groups) > 1:
            others = [k.config for _, kernels in self.groups if best not in kernels for k in kernels]
            sizes = sorted((len(kernels) for _, kernels in self.groups), reverse=True)
            verdict = f"most agree with {best.config}, and these do not: {others}" if sizes[0] > sizes[1] else (
                f"as many agree with {best.config}, which is taken, as with others: {others}; ref_prog=... says who is right")
            warnings.warn(f"configurations of '{self.name}' compute different results; {verdict}", stacklevel=depth_of_user())
        if self.ref_prog is not None and not self.skip_check:
            own = _copies(self.inputs)
            best.ref_latency = do_bench(lambda: self.ref_prog(*own), self.warmup, self.rep)
        return best

    def _best(self):
        """The fastest of the largest group of kernels that compute the same."""
        largest = max(self.groups, key=lambda group: len(group[1]), default=(None, []))[1]
        return min(largest, key=lambda kernel: kernel.latency, default=None)

    def _consider(self, config, kernel, given):
        if isinstance(kernel, Exception):
            raise kernel
        kernel.config = config
        if self.inputs is None:
            self.inputs = given or (self.supply_prog(given_to(kernel)) if self.supply_prog else self._made(kernel))
        key = self._key(kernel, config)
        known = self.log.records.get(key, {})
        if "error" in known:
            raise TilewrightError(known["error"])
        try:
            group = self._group_of(kernel)
            kernel.latency = known.get("latency") or self._measure(kernel)
        except (TilewrightError, AssertionError) as error:
            self.log.add(key, self.name, config, error=str(error))
            raise
        if not known:
            self.log.add(key, self.name, config, latency=kernel.latency)
        group.append(kernel)

    def _made(self, kernel):
        if any(p.shape is None or any(not isinstance(e, int) for e in p.shape) for p in kernel.params):
            raise ValueError(f"numbers or shapes of '{self.name}' are known only at the call: give what to measure on, by "
                             "supply_prog or `with set_autotune_inputs(...)`")  # fmt: skip
        return Profiler(kernel, self.supply_type)._inputs()

    # ---- right

    def _group_of(self, kernel):
        """The kernels that compute what this one does. AssertionError if that is not what ref_prog does."""
        if self.skip_check:
            self.groups = self.groups or [(None, [])]
            return self.groups[0][1]
        found = self._results(kernel)
        if self.ref_prog is not None:
            self._compare_with_reference(found)
        for results, kernels in self.groups:
            if self.ref_prog is not None or self._agree(found, results):
                return kernels
        self.groups.append((found, []))
        return self.groups[-1][1]

    def _results(self, kernel):
        """What a call writes, in tensors of its own that held zeros, or the inputs' values, before."""
        if not kernel.outputs:
            own = _copies(self.inputs)
            kernel(*own)
            return [t for t in own if hasattr(t, "shape")]
        returned = kernel(*self.inputs)
        made = [_zeros_like(t) for t in (returned if isinstance(returned, list) else [returned])]
        given, outputs = iter(self.inputs), iter(made)
        kernel(*(next(outputs) if i in kernel.outputs else next(given) for i in range(len(kernel.params))))
        return made

    def _compare_with_reference(self, found):
        if self.wanted is None:
            own = _copies(self.inputs)
            wanted = self.ref_prog(*own)
            self.wanted = own if wanted is None else list(wanted) if isinstance(wanted, (tuple, list)) else [wanted]
        if self.manual_check_prog is not None:
            return self.manual_check_prog(found, self.wanted)
        for i, (a, b) in enumerate(zip(found, self.wanted)):
            if b is not None:
                assert_close(a, b, f"output {i}", **self.close)

    def _agree(self, found, others):
        try:
            for a, b in zip(found, others):
                assert_close(a, b, "output", **self.close)
        except AssertionError:
            return False
        return len(found) == len(others)

    # ---- fast

    def _measure(self, kernel):
        own = self.inputs if kernel.outputs else _copies(self.inputs)
        best = self._best()
        if self.early_factor and best is not None:
            estimate = do_bench(lambda: kernel(*own), _n_warmup=1, _n_repeat=3, return_mode="min")
            if estimate > self.early_factor * best.latency:
                return estimate
        return do_bench(lambda: kernel(*own), self.warmup, self.rep, backend=self.backend)

    def _key(self, kernel, config):
        """What a measurement depends on: the program, the device, the tensors, how long it takes."""
        shapes = [(tuple(t.shape), str(t.dtype)) if hasattr(t, "shape") else repr(t) for t in self.inputs]
        parts = (_native.version(), kernel.prim_func.script(), kernel.engine, _device_name(kernel.engine), repr(shapes),
                 repr(config), repr((self.warmup, self.rep, self.backend)))  # fmt: skip
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


class _Log:
    """A file with a line of JSON for each configuration that was measured or failed. A search that was stopped goes on
    where it was; several processes may write to it."""

    def __init__(self, file):
        self.file, self.records = file, {}
        try:
            with open(file or "/dev/null") as lines:
                for line in lines:
                    try:
                        record = json.loads(line)
                        self.records[record["key"]] = record
                    except (ValueError, TypeError, KeyError):
                        continue  # the last line of a process that was killed
        except FileNotFoundError:
            pass

    def add(self, key, name, config, **found):
        record = {"key": key, "kernel": name, "config": {k: _plain(v) for k, v in config.items()}, **found}
        self.records[key] = record
        if self.file:
            with open(self.file, "a") as lines:
                lines.write(json.dumps(record) + "\n")


def _plain(value):
    return value if isinstance(value, (int, float, bool, str, type(None))) else repr(value)


def _device_name(engine):
    if engine != "cuda":
        return engine
    import torch

    return torch.cuda.get_device_name()


def _copies(tensors):
    return [t.clone() if hasattr(t, "clone") else t.copy() if hasattr(t, "dtype") and hasattr(t, "copy") else t for t in tensors]


def _zeros_like(tensor):
    return sys.modules["torch" if hasattr(tensor, "clone") else "numpy"].zeros_like(tensor)

