"""The stub of tilewright.language is what the table says; TILEWRIGHT_UPDATE=1 writes it again."""
import ast
import os
import pathlib
import subprocess
import sys

FILE = pathlib.Path(__file__).resolve().parents[2] / "python/tilewright/language/__init__.pyi"
# In a process of its own: names that are used once become part of the module.
WRITE = "import sys, tilewright.stubs as s; sys.stdout.write(s.text())"


def test_stub_is_up_to_date():
    import tilewright

    folder = str(pathlib.Path(tilewright.__file__).parents[1])
    path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    run = subprocess.run([sys.executable, "-c", WRITE], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert run.returncode == 0, run.stderr
    if os.environ.get("TILEWRIGHT_UPDATE"):
        FILE.write_text(run.stdout)
    names = {n.name for n in ast.parse(run.stdout).body if isinstance(n, ast.FunctionDef)}
    assert {"gemm", "copy", "Parallel", "alloc_var"} <= names
    assert FILE.read_text() == run.stdout, "run TILEWRIGHT_UPDATE=1 pytest tests/python/test_stubs.py"
