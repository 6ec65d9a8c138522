"""Programs that nobody wrote, with fresh seeds: from the generator beside its NumPy model, and the examples, changed."""
import pathlib
import random
import subprocess
import sys
import warnings

import pytest

GENERATE = pathlib.Path(__file__).parents[1] / "generate"
LIBRARY = GENERATE.parents[1] / "build/release/libtilewright.so"
PRINTER = GENERATE.parents[1] / "build/release/tests/print_examples"
pytestmark = pytest.mark.skipif(not LIBRARY.exists() or not PRINTER.exists(), reason="the build tree has what this runs")
sys.path.insert(0, str(GENERATE))


def run(script, engines, *options):
    jobs = "12" if "cpu" in engines else "2"  # which wait for compilers
    command = [sys.executable, GENERATE / script, "--engines", engines, "--jobs", jobs, *options]
    return subprocess.run(command, capture_output=True, text=True)


GPUS = "simulator:sm_80,simulator:sm_90a"


@pytest.mark.parametrize("script, engines, last", [("run.py", f"interpreter,{GPUS}", 150), ("run.py", "interpreter,cpu", 24), ("mutate.py", GPUS, 12)])
def test_programs_that_are_known(script, engines, last):
    done = run(script, engines, "--seeds", f"1..{last}")
    assert done.returncode == 0, done.stdout + done.stderr


def fresh(script, engines, seconds):
    first = random.SystemRandom().randrange(10**9)
    done = run(script, engines, "--seeds", f"{first}..{first + 5000}", "--seconds", str(seconds))
    assert done.returncode in (0, 1) and " programs in " in done.stdout, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("seed ")]


@pytest.mark.parametrize("script, engines, seconds", [("run.py", f"interpreter,{GPUS}", 40), ("run.py", "interpreter,cpu", 20), ("mutate.py", GPUS, 60)])
def test_programs_that_are_fresh(script, engines, seconds):
    """What fresh seeds find was there before the change under test: it is shown as a warning, and is somebody's next
    work. Seeds that were found and mended have tests of their own."""
    if found := fresh(script, engines, seconds):
        warnings.warn("\n".join(found))


def test_the_model_leaves_the_sign_of_a_chosen_zero_open():
    """min and max of zeros of both signs give either, and a view of their memory as integers tells them apart."""
    from scalars import FLOAT32, binary

    import numpy as np

    plus, minus = np.zeros(1, np.float32), -np.zeros(1, np.float32)
    for op in ("min", "max", "min_nan", "max_nan"):
        for a, b in ((plus, minus), (minus, plus), (minus, minus)):
            assert np.signbit(binary(op, a, b, FLOAT32))  # what memory.put takes for unsaid
        assert not np.signbit(binary(op, plus, plus, FLOAT32))
    assert not np.signbit(binary("max", plus, minus - 5, FLOAT32))


def test_the_model_finds_what_is_planted():
    """A model that says otherwise than the engine is a finding, and the smallest program that shows it is small."""
    from library import Library
    from check import Finding, check
    from draw_expr import int32, var
    from minimize import Minimizer
    from model import Model
    from nodes import Buffer, Launch, Program, Stmt
    from scalars import INT32

    import numpy as np

    out = Buffer("O1", "param", INT32, (4, 8))
    lines = [Stmt("let", {"name": f"x{k}", "dtype": INT32, "value": int32(k)}) for k in range(5)]
    store = Stmt("store", {"buffer": out, "indices": [var("i1"), var("i2")], "value": ("bin", INT32, "+", var("i1"), var("i2"))})
    points = Stmt("map", {"vars": ["i1", "i2"], "extents": [int32(4), int32(8)]}, [lines + [store]])
    program = Program(1, [out], [], [], [Launch("l0", [("bx0", "1", 1)], 32, [], [points])])
    program.inputs[out] = np.zeros(32, np.int32)
    library = Library(LIBRARY)

    def spoiled(p):
        expected = {b: (stored + 1, states) for b, (stored, states) in Model(p).run().items()}
        try:
            check(library, p, p.text(), expected, "interpreter")
        except Finding as found:
            return found.kind == "wrong"
        return False

    assert check(library, program, program.text(), Model(program).run(), "interpreter") is None
    assert spoiled(program)
    small = Minimizer(program, spoiled).run()
    assert small.text().count("\n") < 8


def test_kernels_that_are_compiled_together(tmp_path, monkeypatch):
    """Each finds its own code in the common file; one that is none does not keep the others from theirs."""
    import ctypes

    import compile_many

    monkeypatch.setattr(compile_many, "started", [])
    ask = compile_many.start(tmp_path, quick=True)
    waiting = []
    for n in range(9):
        folder = tmp_path / str(n)
        folder.mkdir()
        body = f"return helper<{n}>();" if n != 5 else "return missing();"
        (folder / "kernel.cpp").write_text(f"struct tw_call;\ntemplate <int n> static int helper() {{ return n * 11; }}\n"
                                           'extern "C" __attribute__((visibility("default"))) int tw_entry(const struct tw_call*) '
                                           f"{{ {body} }}\n")  # fmt: skip
        words = [ask, "-x", "c++", "-std=c++17", "-O3", "-fPIC", "-w", "kernel.cpp", "-o", "kernel.so", "-shared"]
        waiting.append(subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE))
    said = [p.communicate()[0].decode() for p in waiting]
    assert [p.returncode for p in waiting] == [0] * 5 + [1] + [0] * 3 and "missing" in said[5]
    found = [ctypes.CDLL(str(tmp_path / str(n) / "kernel.so")).tw_entry(None) for n in range(9) if n != 5]
    assert found == [n * 11 for n in range(9) if n != 5]
    compile_many.started[0].kill()


def test_calls_that_leave_a_type_are_drawn():
    from draw import Generator

    refused = [bool(Generator(seed).program().refused) for seed in range(400)]
    assert 3 < sum(refused) < 60
