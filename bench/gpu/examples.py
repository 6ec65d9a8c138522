"""Programs of others as they are, by Tilewright and by TileLang: what they compile and call is recorded, then timed.

    python bench/gpu/examples.py FOLDER [--json FILE] [--only TEXT]... [--side 16] [--limit 100] [--seconds 500]

Needs a GPU, torch, Tilewright and TileLang. FOLDER has programs that `import tilelang` and run under `__main__`, TileLang's examples
say. Each is a process of its own: it runs under one compiler and then under the other, with the same random numbers, and every
kernel's first call is kept. `--side` of them run at a time; when all have ended, or are over their limit, one after the other
measures, in turns, as in docs/measuring.md. A kernel's results are compared with the other compiler's on the same arguments."""

import argparse
import contextlib
import datetime
import glob
import io
import json
import math
import os
import runpy
import select
import subprocess
import sys
import time

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, _HERE)

from peers import frontends  # noqa: E402
from turns import FLUSH_BYTES, medians  # noqa: E402

# What is no program for this machine, or none that is run without arguments.
_OTHERS = ("sm100", "sm120", "tcgen05", "amd", "aws", "bitnet", "test_", "regression_", "autotune", "autodd", "iket", "conftest", "/analyze/", "plot_layout",
           "visual_layout", "distributed", "benchmark")  # fmt: skip
_READY = "ready"
_MOST_DIFFERENCE = 5e-3  # of the largest value: bfloat16 rounds by 4e-3


class Recorder:
    """First calls of kernels, in order: (the kernel, arguments)."""

    def __init__(self, front):
        self.front, self.calls = front, {}
        if front.name == "tilewright":
            from tilewright.kernel import Kernel
        else:
            Kernel = sys.modules["tilelang.jit.kernel"].JITKernel
        called, recorder, profiled = Kernel.__call__, self, Kernel.get_profiler

        def call(kernel, *arguments, **named):
            if not named:
                recorder.calls.setdefault(id(kernel), (kernel, arguments))
            return called(kernel, *arguments, **named)

        def get_profiler(kernel, *arguments, **named):
            profiler = profiled(kernel, *arguments, **named)
            if front.name != "tilewright":
                profiler.adapter = lambda *given: call(kernel, *given)  # it would go around the kernel
            return profiler

        self.once, Kernel.__call__, Kernel.get_profiler = called, call, get_profiler
        module = sys.modules["tilelang.profiler"]
        module.do_bench = _bench
        module.Profiler.do_bench = _bench_profiler
        for name in ("tilelang.profiler.bench", "tilewright.profiler", "triton.testing"):
            if name in sys.modules:
                sys.modules[name].do_bench = _bench


def _bench(fn, *_, **named):
    fn()
    quantiles = named.get("quantiles")
    return [1.0] * len(quantiles) if quantiles is not None and len(quantiles) > 1 else 1.0


def _bench_profiler(profiler, func=None, *_, input_tensors=None, dynamic_symbolic_constraints=None, **named):
    made = profiler._inputs(input_tensors, dynamic_symbolic_constraints) if hasattr(profiler, "_inputs") else input_tensors
    if made is None:
        made = profiler._get_inputs(dynamic_symbolic_constraints=dynamic_symbolic_constraints)
    return _bench(lambda: (func or profiler.func)(*made), **named)


def run(front, path):
    """{id: (kernel, arguments)} of the program's calls, what it said at its end, and the recorder."""
    import random

    import numpy
    import torch

    with front.imported():
        recorder = Recorder(front)
        random.seed(0), numpy.random.seed(0), torch.manual_seed(0)
        said, folder = io.StringIO(), os.path.dirname(path)
        sys.argv, here, modules = [path], os.getcwd(), set(sys.modules)
        os.chdir(folder)
        sys.path.insert(0, folder)
        error = None
        try:
            with contextlib.redirect_stdout(said):
                runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            error = f"exit {end.code}" if end.code else None
        except BaseException as failed:  # what was called before is timed all the same
            error = f"{type(failed).__name__}: {failed}"[:400]
        finally:
            sys.path.remove(folder)
            os.chdir(here)
            for name in set(sys.modules) - modules:  # the program's own modules have this compiler's kernels
                if os.path.dirname(getattr(sys.modules[name], "__file__", None) or "") == folder:
                    del sys.modules[name]
        torch.cuda.synchronize()
    return recorder, error


def _shapes(arguments):
    return [tuple(a.shape) if hasattr(a, "shape") else a for a in arguments]


def _values(tensor):
    """A tensor as float64. PyTorch converts no pairs of float4: its kernel ends in a device-side assert."""
    import torch

    if tensor.dtype != getattr(torch, "float4_e2m1fn_x2", None):
        return tensor.double()
    magnitudes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    table = torch.tensor(magnitudes + [-m for m in magnitudes], dtype=torch.float64, device=tensor.device)
    pairs = tensor.view(torch.uint8)
    return torch.stack([table[(pairs & 15).long()], table[(pairs >> 4).long()]], dim=-1)


def _differ(one, other):
    """The largest difference of results by the largest value."""
    import torch

    one, other = (list(x) if isinstance(x, (tuple, list)) else [x] for x in (one, other))
    worst = None
    for a, b in zip(one, other):
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.shape == b.shape and a.numel():
            worst = worst or 0.0
            if torch.equal(a.contiguous().view(-1).view(torch.uint8), b.contiguous().view(-1).view(torch.uint8)):
                continue
            a, b = _values(a), _values(b)
            finite = b.isfinite() & a.isfinite()
            off = torch.where(finite, (a - b).abs(), 0.0).max().item() / max(1e-6, torch.where(finite, b, 0.0).abs().max().item())
            worst = max(worst, off, 0.0 if (a.isfinite() == b.isfinite()).all() else 9.0)
    return worst


def _left_by(call, kernel, arguments):
    """What a call returns, and its tensors as it leaves copies of them."""
    import torch

    own = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
    results = call(kernel, *own)
    results = results if isinstance(results, (tuple, list)) else [] if results is None else [results]
    return [*results, *own]


def case(path):
    """Runs in a process of its own: prints a line when it is ready, measures when it is told to, prints a row."""
    import torch

    recorded, row = {}, {"case": path}
    for front in frontends():
        begin = time.time()
        recorder, error = run(front, path)
        recorded[front.name] = recorder
        row[front.name + "_s"] = round(time.time() - begin, 1)
        if error:
            row[front.name + "_failed"] = error
    print(_READY, flush=True)
    sys.stdin.readline()
    ours, theirs = (list(r.calls.values()) for r in recorded.values()) if len(recorded) > 1 else ([], [])
    flush, kernels = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda"), []
    row["calls"] = [len(ours), len(theirs)]
    for (a, given), (b, same) in zip(ours, theirs):
        if _shapes(given) != _shapes(same):
            row["apart"] = f"{_shapes(given)} and {_shapes(same)}"
            break
        calls = {n: (lambda f=recorded[n].once, k=k: f(k, *same)) for n, k in (("tilewright", a), ("tilelang", b))}
        try:
            off = _differ(*(_left_by(recorded[n].once, k, same) for n, k in (("tilewright", a), ("tilelang", b))))
            found = {"name": a.name, **medians(calls, flush, 0.5)}
        except Exception as failed:
            row["not_timed"] = f"{a.name}: {type(failed).__name__}: {failed}"[:300]
            break
        if off is not None:
            found["differ"] = float(f"{off:.2e}")
        kernels.append(found)
    row["kernels"] = kernels
    print(json.dumps(row), flush=True)


class Process:
    def __init__(self, path):
        self.path, self.begun, self.log = path, time.time(), b""
        command = [sys.executable, os.path.abspath(__file__), "--case", path]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        os.set_blocking(self.process.stdout.fileno(), False)

    def lines(self):
        self.log += self.process.stdout.read() or b""
        return self.log.decode(errors="replace").splitlines()

    def is_ready(self):
        return _READY in self.lines()

    def measure(self, limit):
        self.process.stdin.write(b"\n")
        end = time.time() + limit
        while time.time() < end and self.process.poll() is None:
            select.select([self.process.stdout], [], [], 0.2)
            self.lines()
        return self.row("killed while measuring")

    def row(self, otherwise):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        rows = [json.loads(line) for line in self.lines() if line.startswith('{"case"')]
        return rows[0] if rows else {"case": self.path, "failed": f"{otherwise}, exit {self.process.returncode}"}


def all_rows(paths, side, limit, seconds, tell):
    end = time.time() + seconds
    for first in range(0, len(paths), side):
        if time.time() + limit / 2 > end:
            print(f"not run: {len(paths) - first}", flush=True)
            break
        until = min(end, time.time() + limit)
        running = [Process(p) for p in paths[first : first + side]]
        while time.time() < until and any(not p.is_ready() and p.process.poll() is None for p in running):
            time.sleep(0.2)
        ready = [p for p in running if p.is_ready()]
        for p in running:
            if p not in ready:
                tell(p.row(f"not ready behind {time.time() - p.begun:.0f} s"))
        for p in ready:
            tell(p.measure(30))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--json")
    parser.add_argument("--only", action="append")
    parser.add_argument("--side", type=int, default=16)
    parser.add_argument("--limit", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--case")
    options = parser.parse_args()
    if options.case:
        return case(options.case)
    paths = sorted(glob.glob(f"{options.folder}/**/*.py", recursive=True))
    paths = [p for p in paths if not any(o in p[len(options.folder) :] for o in _OTHERS) and "__main__" in open(p).read()]
    paths = [p for p in paths if not options.only or any(text in p for text in options.only)]
    rows, ratios = [], []

    def tell(row):
        row["case"] = os.path.relpath(row["case"], options.folder)
        rows.append(row)
        print(json.dumps(row), flush=True)
        ratios.extend((k["tilelang"] / k["tilewright"], row["case"], k["name"]) for k in row.get("kernels", ()))

    all_rows(paths, options.side, options.limit, options.seconds, tell)
    if ratios:
        mean = math.exp(sum(math.log(r) for r, *_ in ratios) / len(ratios))
        print(f"{len(ratios)} kernels of {len(rows)} programs: {mean:.3f} of TileLang in geometric mean; below 0.98:")
        for ratio, path, name in sorted(ratios):
            if ratio < 0.98:
                print(f"  {ratio:.3f} {path} {name}")
    apart = [(k["differ"], r["case"], k["name"]) for r in rows for k in r.get("kernels", ()) if k.get("differ", 0) > _MOST_DIFFERENCE]
    if apart:
        print(f"results that differ by more than {_MOST_DIFFERENCE} of the largest, or in what is finite (9): one of the two is wrong, or leaves elements unwritten:")
        for off, path, name in sorted(apart, reverse=True):
            print(f"  {off:.3g} {path} {name}")
    if options.json:
        import torch

        found = {"date": str(datetime.date.today()), "device": torch.cuda.get_device_name(0), "rows": rows}
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
