"""tilewright reduce and python -m tilelang.autodd: programs that go wrong, made small."""
import ast
import os
import stat
import subprocess
import sys

import pytest
import tilewright
from tilewright import autodd

PROGRAM = '''
"""A program of forty lines, of which one is wrong."""
import json
import math
from collections import Counter, OrderedDict


class Table:
    """Rows by name."""

    def __init__(self, rows):
        self.rows = dict(rows)

    def row(self, name):
        return self.rows[name]


def area(width, height=3):
    if width < 0:
        raise ValueError("a negative width")
    return width * height


def ratio(a, b, digits=2):
    scaled = [a * 100, 7, 12]
    for factor in range(3):
        if factor >= 0:
            total = sum(scaled) / (b - 5)
    return round(total, digits)


def show(value):
    print(json.dumps({"value": value}))


table = Table([("a", 1), ("b", 2)])
counts = Counter("abracadabra")
show(area(4) + table.row("a"))
try:
    show(math.sqrt(16))
finally:
    show(len(counts))
with open("/dev/null") as file:
    nothing = file.read()
    show(ratio(12, 5, digits=3))
'''


def run(*arguments, module=("tilewright", "reduce"), cwd=None):
    package = os.path.dirname(os.path.dirname(tilewright.__file__))
    path = os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, "-m", *module, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, env={**os.environ, "PYTHONPATH": path})


def reduced(folder, text, program=PROGRAM, *options):
    """The lines that are left of a program."""
    (folder / "program.py").write_text(program)
    ran = run("program.py", "--err-msg", text, "-o", "small.py", *options, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    small = (folder / "small.py").read_text()
    assert f"small.py: {len(small.splitlines())} of {len(program.splitlines())} lines" in ran.stdout
    assert sorted(os.listdir(folder)) == ["program.py", "small.py"]
    again = subprocess.run([sys.executable, "small.py"], cwd=folder, capture_output=True, text=True)
    assert text in again.stdout + again.stderr
    return small.split("\n")[:-1]


@pytest.mark.parametrize("options", [(), ("-j", "2"), ("--backend", "subproc", "--jobs", "2")], ids=["runner", "two runners", "interpreters"])
def test_one_line_is_left(tmp_path, options):
    lines = reduced(tmp_path, "division by zero", PROGRAM, *options)
    assert len(lines) <= 3 and any("/ 0" in line or "/ (" in line for line in lines)


def test_a_device_stays_a_device(tmp_path):
    (tmp_path / "program.py").write_text("a = 1\nraise ValueError('gone')\n")
    ours, device = os.openpty()
    name = os.ttyname(device)
    ran = run("program.py", "--err-msg", "gone", "-o", name, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert stat.S_ISCHR(os.stat(name).st_mode) and b"raise ValueError" in os.read(ours, 4096)
    os.close(ours), os.close(device)


def test_statements_that_belong_together_stay(tmp_path):
    program = "import collections\n" + "x = 1\n" * 9 + "table = {'a': 1}\nunused = table\nfor key in ('a', 'b', 'c'):\n    if key:\n        print(table[key])\n"
    lines = reduced(tmp_path, "KeyError: 'b'", program)
    assert len(lines) <= 3 and not any("collections" in line or "x = 1" in line for line in lines)


def test_what_is_marked_is_kept(tmp_path):
    program = (
        "from tilewright.autodd import __freeze__\nimport os\nkept = [1, 2, 3]  # autodd: freeze\nx = 3\n"
        "# autodd: freeze-start\nwide = dict(a=1,\n            b=2)\nif x:\n    x = x\n# autodd: end-freeze\n"
        "with __freeze__:\n    also = 12 + 30\nif x:\n    y = __freeze__(x + 4) + 9\n    z = 3\nprint(undefined_name)\n"
    )
    (tmp_path / "program.py").write_text(program)
    ran = run("program.py", "--err-msg", "undefined_name", "-o", "small.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    text = (tmp_path / "small.py").read_text()
    for kept in ("kept = [1, 2, 3]", "wide = dict(a=1, b=2)", "x = x", "also = 12 + 30", "__freeze__(x + 4)"):
        assert kept in text
    assert "import os" not in text and "z = 3" not in text
    with autodd.__freeze__:
        assert autodd.__freeze__(3) == 3


def test_modules_beside_a_program_and_what_exit_says(tmp_path):
    """What a module prints when it is imported is printed for each program."""
    (tmp_path / "beside.py").write_text("print('beside it')\n")
    (tmp_path / "program.py").write_text("import sys\nimport beside\nx = 3\nsys.exit('an end of ' + beside.__name__)\n")
    for text, left in (("beside it", "import beside\n"), ("an end of", None)):
        ran = run("program.py", "--err-msg", text, "-o", "small.py", cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
        small = (tmp_path / "small.py").read_text()
        assert small == left or (left is None and small in ("import sys\nsys.exit('an end of ')\n", "import sys\nsys.exit('an end of ' + '')\n"))


def test_lines_of_the_program_are_not_what_it_says():
    trace = 'Traceback (most recent call last):\n  File "/tmp/a.py", line 3, in <module>\n    raise boom("wide")\n    ~~~^^^\nTypeError: narrow\n'
    coded = "error TW1063 build: gemm\n  --> a.py:4:9\n     4 |         T.gemm(wide)\n        |         ^\nhelp: narrow\n"
    warned = "a.py:1: SyntaxWarning: 'int' object is not callable\n  0('wide')\nnarrow\n"
    for printed in (trace, coded, warned):
        assert autodd.asks_for("absent", printed) is None
        assert autodd.asks_for("narrow", printed)(printed) and not autodd.asks_for("wide", "wide")(printed)
        assert autodd.asks_for("wide", printed)(printed)


def test_what_only_a_new_interpreter_prints(tmp_path):
    lines = reduced(tmp_path, "at the end", "import atexit\nx = [1, 2]\natexit.register(lambda: print('at the end', x))\n")
    assert len(lines) <= 2


@pytest.mark.parametrize("backend", ["runner", "subproc"])
def test_programs_that_do_not_end(tmp_path, backend):
    program = "import time\nprint('begins', flush=True)\ntime.sleep(600)\n"
    assert reduced(tmp_path, "begins", program, "--timeout", "2", "--backend", backend) == ["print('begins')"]


def test_programs_that_take_their_runner_with_them(tmp_path):
    program = "import os, signal\nx = 4\nprint('gone', flush=True)\nos.kill(os.getppid(), signal.SIGKILL) if 'WITH' in os.environ else None\n"
    (tmp_path / "program.py").write_text(program.replace(" if 'WITH' in os.environ else None", " if 'tilewright.trials' in __import__('sys').modules else None"))
    ran = run("program.py", "--err-msg", "gone", "-o", "small.py", cwd=tmp_path)
    assert ran.returncode == 0 and (tmp_path / "small.py").read_text() == "print('gone')\n", ran.stderr


def test_what_is_no_program_that_goes_wrong(tmp_path):
    (tmp_path / "right.py").write_text("print('all is well')\n")
    (tmp_path / "wrong.py").write_text("print(\n")
    ran = run("right.py", "--err-msg", "boom", "-o", "small.py", cwd=tmp_path)
    assert ran.returncode == 1 and "TW" in ran.stderr and "'boom' is not in what right.py prints" in ran.stderr
    assert "it prints last: all is well" in ran.stderr and not (tmp_path / "small.py").exists()
    ran = run("wrong.py", "--err-msg", "boom", "-o", "small.py", cwd=tmp_path)
    assert ran.returncode == 1 and "wrong.py:1" in ran.stderr and "no program of Python" in ran.stderr
    for arguments, said in ((("nowhere.py",), "there is no file"), (("right.py", "--jobs", "0"), "more than 0"), (("right.py", "--backend", "x"), "invalid choice")):
        ran = run(*arguments, "--err-msg", "boom", "-o", "small.py", cwd=tmp_path)
        assert ran.returncode == 2 and said in ran.stderr


TILES = """
import tilelang
import tilelang.language as T
import numpy as np

@tilelang.jit(out_idx=[-1])
def product(M, N, K, block=64):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            a = T.alloc_shared((block, 32), "float16")
            b = T.alloc_shared((block, block), "float16")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * block, k * 32], a)
                T.copy(B[k * 32, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])
    return main

kernel = product(128, 128, 128)
a = np.ones((128, 128), "float16")
print(kernel(a, a))
"""


@pytest.mark.parametrize("module", [("tilewright", "reduce"), ("tilewright", "run", "-m", "tilelang.autodd")], ids=["reduce", "autodd"])
def test_programs_of_tiles(tmp_path, module):
    (tmp_path / "program.py").write_text(TILES)
    ran = run("program.py", "--err-msg", "the inner extents differ", "-o", "small.py", module=module, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    small = (tmp_path / "small.py").read_text()
    assert len(small.splitlines()) <= 11 and "T.gemm(a, b, c)" in small and "T.Pipelined" not in small and "numpy" not in small


@pytest.mark.parametrize("module", [("tilewright", "reduce"), ("tilewright", "run", "-m", "tilelang.autodd")], ids=["reduce", "autodd"])
def test_help_is_light(module):
    ran = subprocess.run([sys.executable, "-X", "importtime", "-m", *module, "--help"], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(tilewright.__file__))})  # fmt: skip
    assert ran.returncode == 0 and "Delta-debug the provided Python source" in " ".join(ran.stdout.split())
    assert not {"torch", "numpy"} & {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}


def test_edits_give_programs():
    """Each edit of a program is one, or is left out; what is smaller is told by nodes and constants."""
    tree = ast.parse(PROGRAM)
    autodd._freeze(tree, PROGRAM)
    made = []
    for edit in autodd._edits(tree):
        changed = autodd.copy.deepcopy(tree)
        edit(changed)
        text = autodd._text_of(changed)
        if text is not None:
            ast.parse(text)
            made.append(autodd._size(changed) < autodd._size(tree))
    assert made.count(True) > 100
