"""The stub of tilewright.language and the page of the language are what the table says; TILEWRIGHT_UPDATE=1 writes them
again."""
import ast
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def written_by(module, function="text"):
    """Its text, of a process of its own: names that are used once become part of the language's module."""
    import tilewright

    folder = str(pathlib.Path(tilewright.__file__).parents[1])
    path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    run = subprocess.run([sys.executable, "-c", f"import sys, tilewright.{module} as m; sys.stdout.write(m.{function}())"],
                         capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


def need_same(file, text):
    if os.environ.get("TILEWRIGHT_UPDATE"):
        (ROOT / file).write_text(text)
    assert (ROOT / file).read_text() == text, "run TILEWRIGHT_UPDATE=1 pytest tests/python/test_stubs.py"


def test_stub_is_up_to_date():
    text = written_by("stubs")
    names = {n.name for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}
    assert {"gemm", "copy", "Parallel", "alloc_var"} <= names
    need_same("python/tilewright/language/__init__.pyi", text)


def test_page_of_the_language_is_up_to_date():
    text = written_by("reference")
    for call in ("T.gemm(A: tile, B: tile, C: tile, transpose_A: bool = False", "T.Pipelined(start, stop=None", "T.exp2(x: expr)"):
        assert f"`{call}" in text
    need_same("docs/python_language.md", text)
