"""The benchmarks of the package run, and say what they measured."""
import inspect
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_launch_cost(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    written = tmp_path / "found.json"
    ran = subprocess.run([sys.executable, ROOT / "bench/python_launch.py", "--engine", "cpu", "--rounds", "1", "--json", written],
                         env=environment, capture_output=True, text=True, timeout=120)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = json.loads(written.read_text())
    assert found["engine"] == "cpu" and "tilewright, three arrays of NumPy" in found["rows"]
    assert all(0 < row["least_us"] <= row["median_us"] for row in found["rows"].values())
    assert len(ran.stdout.splitlines()) == 1 + len(found["rows"])


def test_compile_time(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    written = tmp_path / "found.json"
    ran = subprocess.run([sys.executable, ROOT / "bench/python_compile.py", "--engine", "cpu", "--json", written],
                         env=environment, capture_output=True, text=True, timeout=300)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = json.loads(written.read_text())["milliseconds"]
    assert found["later GEMMs with the compiler"] > found["later GEMMs, trace and compile beyond the compiler"] > 0


def test_peers_of_the_cpu(tmp_path):
    """A case of products beside PyTorch: every contestant is timed and right."""
    pytest.importorskip("torch")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    written = tmp_path / "found.json"
    ran = subprocess.run([sys.executable, ROOT / "bench/cpu_peers.py", "--only", "int8 NT 512", "--turns", "1", "--rest", "0", "--json", written],
                         env=environment, capture_output=True, text=True, timeout=120)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(written.read_text())["rows"]
    assert {"ops.matmul", "128x128x64"} <= {row["ours"] for row in rows}
    assert all(row["error"] == 0 and 0 < row["best_seconds"] <= row["median_seconds"] for row in rows)


def test_every_function_of_the_library_is_measured(monkeypatch):
    """bench/gpu/kernel_library.py: a call for each public function that is none of another's words; some are made."""
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "bench/gpu"))
    import kernel_cases
    import kernel_library
    from test_tile_kernels_layers import public_functions
    from tilewright.kernels.modeling.mhc import ops

    measured = {c.function for c in kernel_cases.CASES}
    public = {name for _, name, value in public_functions() if value.__doc__ and value.__module__.count(".") > 2}
    public |= {name for name, value in vars(ops).items() if inspect.isfunction(value)}
    helpers = {"check", "refuse_option", "check_option"}
    assert len(public) > 45 and not public - helpers - measured, public - helpers - measured
    assert len({c.name for c in kernel_cases.CASES}) == len(kernel_cases.CASES)
    size = kernel_cases.small()
    for case in kernel_cases.CASES:
        if case.name in ("group_count", "grad_w_reduce", "transpose bfloat16", "mhc_head_compute_mix"):
            arguments, named = case.make(size)
            found = kernel_library.function_of("tilewright.kernels", case)(*arguments, **named)
            moved = kernel_library.bytes_moved(case, arguments, named, found)
            wanted = {"group_count": 128 * 2 * 8 + 16 * 4, "transpose bfloat16": 2 * 128 * 512 * 2}.get(case.name, moved)
            assert moved == wanted > 0 and kernel_library.same_bits(found, found)
    assert not kernel_library.same_bits(torch.zeros(2), -torch.zeros(2))


def test_the_page_of_the_library(tmp_path):
    rows = [{"case": "f", "name": n, "burst": {"us": us}, "moved": 2e6} for n, us in (("tilewright", 2.0), ("copy", 1.0), ("tile_kernels", 3.0))]
    rows[2]["equal"] = True
    path = tmp_path / "found.json"
    path.write_text(json.dumps({"date": "a day", "device": "a GPU", "rows": [*rows, {"case": "g", "name": "tilewright", "failed": "why"}]}))
    ran = subprocess.run([sys.executable, ROOT / "bench/gpu/kernel_library.py", "--page", path], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}, timeout=120)  # fmt: skip
    assert "| f | 2.0 | 2.0 | 0.50 | 3.0 | 1.50 | yes |" in ran.stdout and "g: tilewright: why" in ran.stdout, ran.stderr


def test_results_of_float4_are_compared(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "bench/gpu"))
    import examples

    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("PyTorch has no pairs of float4")
    one, other = (torch.tensor([[first, 0x91]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2) for first in (0x72, 0x52))
    assert examples._values(one).tolist() == [[[1.0, 6.0], [0.5, -0.5]]]
    assert examples._differ(one, one) == 0 and examples._differ(one, other) == 1.0  # 6 and 3, by 3
