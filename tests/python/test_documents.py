"""The Python of README.md and of the pages about the package runs."""
import importlib.util
import linecache
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from tilewright import _native

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?:<!-- needs: (\w+) -->\n)?```python\n(.*?)```", re.DOTALL)


def run(document, space):
    text = (ROOT / document).read_text()
    for match in BLOCK.finditer(text):
        if match[1] and importlib.util.find_spec(match[1]) is None:
            continue
        lines = text.count("\n", 0, match.start(2))
        source = "\n" * lines + match[2]
        name = f"<{document}:{lines}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        exec(compile(source, name, "exec"), space)
    return space


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")


def test_python_page():
    assert "softmax" in run("docs/python.md", {})


def test_quick_start(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "cpu")
    assert "checked" in run("docs/quickstart.md", {})


def test_ops_page(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "cpu")
    assert "kernels" in run("docs/ops.md", {})


def test_kernels_page(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "cpu")
    try:
        assert "block" in run("docs/kernels.md", {})
    finally:
        for name in [n for n in sys.modules if n.partition(".")[0] == "tile_kernels"]:
            del sys.modules[name]


def test_puzzles_page(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert "result" in run("docs/puzzles.md", {})


def test_migration_page():
    before = set(sys.modules)
    try:
        assert "kernel" in run("docs/migration.md", {})
    finally:
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in ("tilelang", "tvm"):
                del sys.modules[name]


def test_readme():
    a, b = (np.random.default_rng(n).standard_normal((1024, 1024)).astype("float16") for n in (0, 1))
    space = {"a": a, "b": b}
    text = (ROOT / "README.md").read_text()
    assert len(BLOCK.findall(text)) == 1
    os.environ["TILEWRIGHT_ENGINE"] = "cpu"
    c = run("README.md", space)["c"]
    wanted = np.maximum(a.astype("float32") @ b.astype("float32"), 0)
    assert np.abs(c - wanted).max() < 0.1


def test_the_demos_python():
    printer = pathlib.Path(_native.__file__).parents[2] / "tests/print_examples"
    original = ["--original", printer] if printer.exists() else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    ran = subprocess.run([sys.executable, ROOT / "examples/gemm.py", "--size", "256", *original], env=environment,
                         capture_output=True, text=True, timeout=120)  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "256 x 256 x 256 float16" in ran.stdout
    assert not original or "the program that examples/gemm.cpp records" in ran.stdout
