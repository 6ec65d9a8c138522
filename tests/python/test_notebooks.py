"""Cells of notebooks, as IPython runs them: it compiles each statement of a cell by itself, and their source is in no file."""
import json
import os
import pathlib
import subprocess
import sys

import pytest
from pages import ROOT

pytest.importorskip("IPython")

DRIVER = pathlib.Path(__file__).parent / "notebook.py"
HEAD = "import numpy as np\nimport tilewright as tw\nimport tilewright.language as T\n"
ADD = """@tw.jit(engine="interpreter")
def add(A, B):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B: T.Tensor((N,), "float32")
    C = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
        for i in T.Parallel(128):
            C[bx * 128 + i] = A[bx * 128 + i] + B[bx * 128 + i]
    return C
"""
DOWN = """@T.macro
def down(A, n):
    A[n] = n
    if n > 0:
        down(A, n - 1)

@T.prim_func
def main(A: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=1):
        down(A, 3)

a = np.zeros(4, "int32")
tw.compile(main, engine="interpreter")(a)
assert a.tolist() == [0, 1, 2, 3]
"""
CALL = 'a = np.ones(300, "float32")\nassert (add(a, a) == 2).all()\n'


def ran(*notebooks):
    """What IPython says of each cell of each notebook: {"error", "shown": by kind, "written"}."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TILEWRIGHT_ENGINE": "cpu"}
    done = subprocess.run([sys.executable, DRIVER], input=json.dumps(notebooks), env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def indented(text):
    return "".join(f"    {line}\n" for line in text.splitlines())


def cells_of(path):
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


# Pages are run as cells in test_pages_every_way.py.
NOTEBOOKS = {
    **{str(path.relative_to(ROOT)): cells_of(path) for path in sorted((ROOT / "examples/notebooks").glob("*.ipynb"))},
    "one cell": [HEAD + ADD + CALL],
    "three cells": [HEAD, ADD, CALL],
    "a call alone": [HEAD + ADD, CALL],
    "imports alone": [HEAD, ADD + CALL],
    "imports of all": ["from tilewright import *\n" + HEAD + ADD + CALL],
    "a cell that is edited": [HEAD + ADD + CALL, ADD.replace("+ B[", "+ 1 + B["), CALL.replace("== 2", "== 3")],
    "under an if": [HEAD, "if True:\n" + indented(ADD + CALL)],
    "in a function": [HEAD, "def made():\n" + indented(ADD) + "    return add\nadd = made()\n" + CALL],
    "a magic": [HEAD, "%%time\n" + ADD, CALL, "%%time\n\n" + ADD.replace("+ B[", "+ 1 + B["), CALL.replace("== 2", "== 3")],
    "other statements": [HEAD, "import numpy as np\nx = 3\n" + ADD + "y = x\n" + CALL],
    "a macro that calls itself": [HEAD, DOWN],
    "a function that names itself": [HEAD, ADD.replace("return C", "add.__name__\n    return C") + CALL],
}


def test_cells():
    """Notebooks, and cells of every shape."""
    for (name, cells), found in zip(NOTEBOOKS.items(), ran(*NOTEBOOKS.values())):
        assert len(found) == len(cells) > 0
        for cell, said in zip(cells, found):
            assert said["error"] is None, f"{name}\n{cell}\n{said['error']}"


def test_mistakes_in_cells_show_their_line():
    ((_, _, found),) = ran([HEAD, ADD.replace("T.ceildiv(N, 128)", "T.program_id(0)"), CALL])
    lines = found["error"].splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  --> "))
    assert lines[at - 1] == "CompileError: error TW1102 build: Tilewright has no T.program_id"
    assert lines[at + 1] == "      7 |     with T.Kernel(T.program_id(0), threads=128) as bx:"
    assert sys.version_info < (3, 11) or lines[at + 2] == "        |                   ^"
    assert lines[-1].startswith("help: the names of the launch")
    assert not any("tilewright/" in line for line in lines)  # frames of ours


def test_what_a_cell_shows():
    cells = ['kernel = add.compile(N=128)\nkernel.explain("sm_90a")', "kernel.simulate(a[:128], a[:128])[1]", "add", "kernel",
             "tw.plot(T.Fragment([8, 8], lambda i, j: (i * 4 + j // 2, j % 2)))"]  # fmt: skip
    explained, counted, function, kernel, picture = (found["shown"] for found in ran([HEAD + ADD + CALL, *cells])[0][1:])
    assert len(explained["text/plain"].splitlines()) > 10 and "<details>" in explained["text/html"]
    assert len(counted["text/plain"].splitlines()) > 2 and "global sectors" in counted["text/html"]
    assert function["text/plain"].startswith("<jit add(A, B): ") and kernel["text/plain"].startswith("<kernel add on ")
    assert picture["image/svg+xml"].startswith("<svg")
