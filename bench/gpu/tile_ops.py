"""The benchmark cases of TileOPs, at its own workloads: Tilewright's function, TileOPs on TileLang and what TileOPs compares with of
PyTorch's, in one process and in turns.

    python bench/gpu/tile_ops.py TILEOPS [--json FILE] [--seconds 200] [--side 8] [--each 2] [--only TEXT]...

TILEOPS is a checkout of it. Needs a GPU, torch, pytest and Tilewright; without TileLang its operators do not take part. Its own files
choose shapes and make tensors: pytest runs them, with their comparison replaced by this one's. First `--side` processes go through the
cases, compile and compare results, then one takes times, as in docs/measuring.md; a case that ends its process is named, and another
goes on with the rest. Cases are taken an operator after the other, up to
`--each` of each; what the limit leaves no time for is named. The status is 1 if a result is wrong, and 2 if there
are no cases."""

import argparse
import contextlib
import datetime
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from families import bytes_of, error_of, geometric, several  # noqa: E402
from processes import Rows, cases_in, in_processes  # noqa: E402
from tile_ops_calls import FIRST, RANDOM, TIES, call_of, stem  # noqa: E402
from turns import FLUSH_BYTES, medians  # noqa: E402

# What its files import without asking whether it is there; none of it is measured here.
_ABSENT = ("fla", "flash_attn_interface", "flashinfer", "mamba_ssm", "flag_gems", "vllm")
TOLERANCE, NARROW_TOLERANCE = 1e-3, 2e-2  # beside another order of sums; where tensors have less than the bits of float32


class _Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Empty modules for libraries that are not installed: what is called of them fails there."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in _ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)

        def of(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return functools.partial(_fail, f"{spec.name}.{name} is not installed")

        module.__getattr__ = of
        return module

    def exec_module(self, module):
        pass


def _fail(reason, *arguments, **named):
    raise RuntimeError(reason)


def has_tilelang():
    with contextlib.suppress(ImportError):
        return importlib.util.find_spec("tilelang") is not None
    return False


def prepare(tileops, peer):
    """Makes TileOPs' packages importable, and notes what its operators are made with."""
    sys.path[:0] = [tileops, os.path.join(tileops, "src")]
    sys.meta_path.append(_Absent())
    if not peer:
        import tilewright

        tilewright.install_as_tilelang()
    import inspect

    import benchmarks.baselines as baselines
    from tileops.ops.op_base import Op

    def made(cls, *arguments, **named):
        self = object.__new__(cls)
        bound = inspect.signature(cls.__init__).bind(self, *arguments, **named)
        bound.apply_defaults()
        self.__dict__["made_with"] = {n: v for n, v in bound.arguments.items() if n != "self"}
        return self

    Op.__new__ = made
    baselines.compiled_reference = lambda function, **named: function
    baselines.assert_matches_reference = lambda *arguments, **named: None
    for name in ("flaggems_op", "flaggems_group_norm", "flashinfer_op", "vllm_op"):
        setattr(baselines, name, lambda *arguments, name=name: functools.partial(_fail, name))


class Cases:
    """A plugin of pytest: runs its cases up to a limit of time, each with `compare` in the place of TileOPs' own."""

    def __init__(self, wanted, seconds, rows, peer, timed):
        self.wanted, self.end, self.rows, self.peer, self.timed = wanted, time.perf_counter() + seconds, rows, peer, timed
        self.flush = None

    def pytest_collection_modifyitems(self, items):
        items[:] = [i for i in items if i.nodeid in self.wanted]

    def pytest_runtest_setup(self, item):
        import pytest

        if time.perf_counter() > self.end:
            pytest.skip("no time is left")
        self.rows.begin(item.nodeid)
        self.case, self.row = item.nodeid, None

    def pytest_runtest_makereport(self, item, call):
        if call.excinfo is not None and call.when == "call" and self.row is None and not call.excinfo.errisinstance(_skipped()):
            self.rows.found({"case": item.nodeid, "failed": f"{call.excinfo.typename}: {call.excinfo.value}"[:300]})

    def compare(self, benchmark, functors, *inputs, record_as=None, params=None):
        import tilewright.ops as ops

        name, plan = type(record_as).__name__, {tag: f if isinstance(f, tuple) else (f, inputs) for tag, f in functors.items()}
        self.row = row = {"case": self.case, "op": stem(name)}
        nothing = {tag: {"latency_ms": 1.0, "device_busy_ms": 1.0} for tag in functors}
        ours = call_of(name, ops)
        if ours is None:
            self.rows.found({**row, "failed": "no function of this kind"})
            return nothing
        theirs, given = plan["tileops"]
        contestants = {"ours": functools.partial(ours, ops, getattr(record_as, "made_with", {}), *given)}
        if self.peer:
            contestants["tileops"] = functools.partial(theirs, *given)
        reference = next((tag for tag in plan if tag.startswith("torch") and "compile" not in tag), None)
        if reference:
            contestants["torch"] = functools.partial(plan[reference][0], *plan[reference][1])
        self.measure(row, contestants, given)
        return nothing

    def measure(self, row, contestants, given):
        import torch

        made = {}
        with torch.no_grad():
            for tag, call in list(contestants.items()):
                try:
                    made[tag] = call()
                    torch.cuda.synchronize()
                except Exception as error:  # a contestant that fails does not take the others along
                    row[f"{tag}_failed"] = found = f"{type(error).__name__}: {error}"[:300]
                    del contestants[tag]
                    if "CUDA error" in found or "illegal" in found:
                        self.rows.found(row)
                        os._exit(3)  # the device's context is gone
            beside = next((tag for tag in ("torch", "tileops") if tag in made), None)
            if "ours" in made and beside and row["op"] not in RANDOM and not self.timed:
                row["error"] = error(row["op"], given, made["ours"], made[beside])
            if self.timed and "ours" in made:
                row["bytes"] = bytes_of(given) + bytes_of(several(made["ours"]))
                one = torch.empty(max(row["bytes"] // 2, 16), dtype=torch.uint8, device="cuda")
                contestants["copy"] = functools.partial(torch.empty_like(one).copy_, one)
                if self.flush is None:
                    self.flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
                made.clear()
                row.update({f"{tag}_us": us for tag, us in medians(contestants, self.flush).items()})
        self.rows.found(row)


def _kind(y):
    if y.is_floating_point() or y.is_complex():
        return "complex" if y.is_complex() else "floats"
    return "bool" if str(y.dtype) == "torch.bool" else "integers"


def error(op, given, got, expected):
    """As families.error_of has it. What TileOPs compares with may have fewer results: statistics beside the first are left out."""
    got, expected = several(got), several(expected)
    if op.startswith(FIRST):
        expected = expected[:1]
    got = got[: len(expected)]
    for y, wanted in zip(got, expected):
        if _kind(y) != _kind(wanted):  # the width is a library's own: int64 for places, float32 for a reference's sums
            return f"{_kind(y)}, not {_kind(wanted)}"
    narrow = any(hasattr(x, "dtype") and x.is_floating_point() and x.element_size() < 4 for x in (*given, *got, *expected))
    got, expected = ([y.float() if y.is_floating_point() else y for y in results] for results in (got, expected))
    return error_of(got, expected, NARROW_TOLERANCE if narrow else TOLERANCE, "float32", differ=1e-3 if op in TIES else 0.0)


def _skipped():
    import pytest

    return pytest.skip.Exception


def run(tileops, peer, wanted=None, seconds=600, rows=None, timed=False):
    """Goes through the cases in this process; without any returns the names of all."""
    import pytest

    prepare(tileops, peer)
    if not timed:
        import torch

        torch.backends.cudnn.allow_tf32 = False  # what is compared with has all bits of float32; it is timed as it comes
    from benchmarks.benchmark_base import BenchmarkBase

    cases = Cases(wanted, seconds, rows, peer, timed)
    BenchmarkBase.compare = lambda self, *arguments, **named: cases.compare(self, *arguments, **named)
    BenchmarkBase.profile = lambda self, *arguments, **named: {"latency_ms": 1.0, "device_busy_ms": 1.0}
    names, collect = [], wanted is None
    if collect:
        cases.pytest_collection_modifyitems = lambda items: names.extend(i.nodeid for i in items if not i.get_closest_marker("skip"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        open("pytest.ini", "w").write("[pytest]\npython_files = bench_*.py\n")
        options = ["-q", "-c", "pytest.ini", "--rootdir", tileops, "-p", "no:cacheprovider", "-W", "ignore", "--tb=no"]
        options += ["--continue-on-collection-errors", *(["--collect-only"] if collect else [])]
        with contextlib.redirect_stdout(sys.stderr):
            pytest.main([*options, os.path.join(tileops, "benchmarks", "ops")], plugins=[cases])
    return names


def in_order(names, each, only):
    """An operator's cases after the other's, up to `each` of a test."""
    of_test = {}
    for name in names:
        if not only or any(text in name for text in only):
            of_test.setdefault(name.partition("[")[0], []).append(name)
    return [cases[i] for i in range(each) for cases in of_test.values() if i < len(cases)]


def _child(options, *more):
    return [sys.executable, os.path.abspath(__file__), options.tileops, *more, *(["--without-tilelang"] if options.without_tilelang else [])]


def _in_processes(options, cases, side, seconds, *more):
    return in_processes(_child(options, *more), cases, side, seconds, spare=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tileops")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--side", type=int, default=8)
    parser.add_argument("--each", type=int, default=2)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--without-tilelang", action="store_true", help="only PyTorch is compared with")
    parser.add_argument("--list", action="store_true", help="the cases, and no more; needs no GPU")
    for name in ("--cases", "--rows"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--timed", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.tileops = os.path.abspath(options.tileops)
    peer = has_tilelang() and not options.without_tilelang
    if options.list:
        names = in_order(run(options.tileops, peer), options.each, options.only)
        print("\n".join(names))
        return 0 if names else 2
    if options.cases:
        run(options.tileops, peer, set(cases_in(options.cases)), options.seconds, Rows(options.rows), options.timed)
        return 0
    begin = time.perf_counter()
    listed = subprocess.run(_child(options, "--list", "--each", str(options.each), *(f"--only={o}" for o in options.only)),
                            capture_output=True, text=True, timeout=120)  # fmt: skip
    cases = [line for line in listed.stdout.splitlines() if "::" in line]
    if listed.returncode or not cases:
        print(f"no cases: the status of --list is {listed.returncode}\n{listed.stderr[-500:]}", file=sys.stderr)
        return 2
    checked = _in_processes(options, cases, options.side, 0.55 * options.seconds)
    ready = [c for c in cases if "op" in checked.get(c, {}) and "failed" not in checked[c] and "ours_failed" not in checked[c]]
    timed = _in_processes(options, ready, 1, options.seconds - (time.perf_counter() - begin) - 2, "--timed")
    return report(options, cases, {c: {**row, **timed.get(c, {})} for c, row in checked.items()}, peer)


def report(options, cases, rows, peer):
    import torch

    timed = [r for r in rows.values() if "ours_us" in r]
    wrong = [r for r in rows.values() if not isinstance(r.get("error", 0.0), (int, float)) or r.get("error", 0) > 1]
    failed = [r for r in rows.values() if "failed" in r or "ours_failed" in r]

    def times(of):
        return [r[f"{of}_us"] / r["ours_us"] for r in timed if f"{of}_us" in r]

    summary = {"cases": len(cases), "checked": len(rows), "wrong": len(wrong), "failed": len(failed), "timed": len(timed)}
    for of in ("tileops", "torch", "copy"):
        summary[f"of_{of}"], summary[f"slower_than_{of}"] = geometric(times(of)), sum(t < 0.97 for t in times(of))
    for r in sorted(timed, key=lambda r: min(r.get(f"{of}_us", float("inf")) for of in ("tileops", "torch")) / r["ours_us"]):
        ratios = "  ".join(f"{r[f'{of}_us'] / r['ours_us']:7.2f} of {of}" for of in ("tileops", "torch", "copy") if f"{of}_us" in r)
        print(f"{r['ours_us']:10.1f} us  {ratios}  {r['case'].rpartition('/')[2]}")
    for r in wrong:
        print("WRONG", r["case"], r["error"])
    for r in failed:
        print("failed", r["case"], r.get("failed") or r.get("ours_failed"))
    missed = [c for c in cases if c not in rows]
    if missed:
        print("no time for:", " ".join(missed))
    print(json.dumps(summary))
    if options.json:
        about = {"date": datetime.date.today().isoformat(), "device": torch.cuda.get_device_name(), "torch": torch.__version__, "tilelang": peer}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({**about, **summary, "rows": list(rows.values()), "missed": missed}, file, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
