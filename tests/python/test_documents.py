"""The Python of README.md and of the pages about the package runs."""
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import tilewright
from pages import BLOCK, ROOT, run
from tilewright import _native

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


def test_editor_page():
    assert {"transposed", "doubled"} <= set(run("docs/lsp.md", {}))


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


def test_studio_page(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run("docs/studio.md", {})["page"] == "product.html"
    page = (tmp_path / "product.html").read_text()
    assert '"name":"source"' in page and "T.gemm(A_shared, B_shared, C_local)" in page
    assert '"simulated"' in (tmp_path / "product_small.html").read_text() and (tmp_path / "product.json").stat().st_size > 1000


def test_migration_page():
    before = set(sys.modules)
    try:
        assert "kernel" in run("docs/migration.md", {})
    finally:
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in ("tilelang", "tvm"):
                del sys.modules[name]


def test_readme():
    text = (ROOT / "README.md").read_text()
    assert len(BLOCK.findall(text)) == 1
    os.environ["TILEWRIGHT_ENGINE"] = "cpu"
    space = run("README.md", {})
    a, b, c = (space[name] for name in "abc")
    wanted = np.maximum(a.astype("float32") @ b.astype("float32"), 0)
    assert np.abs(c - wanted).max() < 0.1


def test_the_page_of_the_wheel(monkeypatch):
    """It is shown where the wheel is offered: links within the tree lead nowhere there."""
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "cpu")
    assert "add" in run("python/README.md", {})
    assert not re.search(r"\]\((?!https://)", (ROOT / "python/README.md").read_text())


def test_the_demos_python():
    printer = pathlib.Path(_native.__file__).parents[2] / "tests/print_examples"
    original = ["--original", printer] if printer.exists() else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    ran = subprocess.run([sys.executable, ROOT / "examples/gemm.py", "--size", "256", *original], env=environment,
                         capture_output=True, text=True, timeout=120)  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "256 x 256 x 256 float16" in ran.stdout
    assert not original or "the program that examples/gemm.cpp records" in ran.stdout


def test_the_table_of_gpus_is_of_those_that_kernels_are_written_for():
    server = pytest.importorskip("tilewright.lsp.server")
    program = _native.parse("program p {\n  launch p(bx: 1) threads(tx: 32) {\n  }\n}\n", "p.tile")
    with pytest.raises(tilewright.TilewrightError) as refused:
        program.explain("sm_75", False, {})
    written = re.findall(r"^\| (sm_\w+) \|", (ROOT / "docs/support.md").read_text(), re.MULTILINE)
    assert refused.value.code == "TW8201" and refused.value.help == f"it is one of {', '.join(written)}"
    assert sorted(server._SETTINGS["arch"]) == sorted([*written, "cpu"])
