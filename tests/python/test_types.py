"""What editors and checkers of types know of the package: no false errors, and what calls give."""
import os
import pathlib
import re
import subprocess
import sys

import pytest
import tilewright as tw

pytest.importorskip("mypy")

PROGRAM = """import numpy as np
import tilewright as tw
import tilewright.language as T

@tw.jit
def add(A: T.Tensor, B: T.Tensor, block: int = 128):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(block):
            A[bx * block + i] = T.exp(B[i])

@tw.autotune(configs=[{"block": 32}], warmup=1)
@tw.jit(out_idx=-1)
def doubled(N: int, block: int = 32):
    return N

@T.prim_func
def program(A: T.Tensor):
    pass

reveal_type(add)
reveal_type(add.compile(N=4))
reveal_type(doubled)
reveal_type(tw.jit(program, out_idx=-1))
reveal_type(tw.compile(program).explain("sm_90a"))
reveal_type(tw.compile(program).explain(as_json=True))
reveal_type(tw.plot(add.compile(N=4), "a"))
tw.custom_op("mine::f", add)(1, 2)
tw.custom_op("mine::g", mutates=("A",))(add)
tw.do_bench(lambda: None)
with tw.set_autotune_inputs(1, 2):
    add(np.zeros(4), np.zeros(4))
tw.jit(out_index=-1)
"""
KNOWN = ["tilewright.jitted.Jit", "tilewright.kernel.Kernel", "tilewright.tuner.Tuned", "tilewright.kernel.Kernel", "tilewright.shown.Explanation", "dict[str, Any]",
         "tilewright.shown.Picture"]  # fmt: skip


def test_programs_are_checked_without_false_errors(tmp_path):
    (tmp_path / "mine.py").write_text(PROGRAM)
    package = str(pathlib.Path(tw.__file__).parents[1])
    environment = {**os.environ, "MYPYPATH": package, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    ran = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "--follow-imports", "silent", "mine.py"], cwd=tmp_path,
                         env=environment, capture_output=True, text=True)  # fmt: skip
    assert re.findall(r'Revealed type is "(.*)"', ran.stdout) == KNOWN, ran.stdout + ran.stderr
    errors = [line.partition(": error: ")[2] for line in ran.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 1 and "jit" in errors[0] and "overload" in errors[0].lower(), ran.stdout  # the keyword that there is not


def test_names_that_are_found_later_are_known_to_checkers():
    text = pathlib.Path(tw.__file__).read_text()
    known = re.search(r"if TYPE_CHECKING:\n((?:    .*\n)+)", text)[1]
    assert set(re.findall(r"\w+", " ".join(re.findall(r"import (.*)", known)))) == set(tw._LATER)
