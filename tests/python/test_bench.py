"""The benchmarks of the package run, and say what they measured."""
import json
import os
import pathlib
import subprocess
import sys

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
