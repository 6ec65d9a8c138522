"""Programs that nobody wrote, with fresh seeds: from the generator beside its NumPy model, and the examples, changed."""
import json
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
HOST = "host:sm_90a,host:sm_80/3"


@pytest.mark.parametrize("script, engines, last", [("run.py", f"interpreter,{GPUS}", 150), ("run.py", "interpreter,cpu", 24), ("run.py", HOST, 30), ("mutate.py", GPUS, 12)])
def test_programs_that_are_known(script, engines, last):
    done = run(script, engines, "--seeds", f"1..{last}")
    assert done.returncode == 0, done.stdout + done.stderr


def fresh(script, engines, seconds):
    first = random.SystemRandom().randrange(10**9)
    done = run(script, engines, "--seeds", f"{first}..{first + 5000}", "--seconds", str(seconds), "--grace", "20", "--patience", "20")
    assert done.returncode in (0, 1) and " programs in " in done.stdout, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("seed ")]


@pytest.mark.parametrize("script, engines, seconds", [("run.py", f"interpreter,{GPUS}", 15), ("run.py", "interpreter,cpu", 8), ("run.py", HOST, 8), ("mutate.py", GPUS, 15)])
def test_programs_that_are_fresh(script, engines, seconds):
    """What fresh seeds find was there before the change under test: it is shown as a warning, and is somebody's next
    work. Seeds that were found and mended have tests of their own."""
    if found := fresh(script, engines, seconds):
        warnings.warn("\n".join(found))


def test_directed_sums_of_the_model():
    np = pytest.importorskip("numpy")
    from scalars import _directed

    def add(direction, a, b):
        return _directed(f"ieee_add_{direction}", np.float32([a]), np.float32([b]))[0]

    inf, tiny = np.float32(np.inf), np.float32(2.0**-40)
    assert add("rd", inf, 0) == inf and add("ru", -inf, 1) == -inf and np.isnan(add("rz", inf, -inf))
    assert [add(d, 1, tiny) for d in ("rd", "rz", "ru")] == [1, 1, np.nextafter(np.float32(1), inf)]
    assert add("rd", np.float32(3e38), np.float32(3e38)) == np.finfo(np.float32).max and add("ru", np.float32(3e38), np.float32(3e38)) == inf


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


@pytest.mark.parametrize("first, allowed", [("zero", True), ("one", False), ("old value", False)])
def test_the_model_takes_no_open_value_for_the_same(first, allowed):
    """Threads may store one value to one element; what an atomic found is such a value only in the order that the model took."""
    from draw_expr import int32, var
    from memory import Invalid
    from model import Model
    from nodes import Buffer, Launch, Program, Stmt
    from scalars import INT32

    import numpy as np

    out, counter = Buffer("O1", "param", INT32, (1,)), Buffer("O2", "param", INT32, (1,))
    value = {"zero": int32(0), "one": int32(1), "old value": ("var", INT32, "x")}[first]
    atomic = Stmt("atomic", {"op": "add", "buffer": counter, "indices": [int32(0)], "value": ("bin", INT32, "%", var("tx"), int32(7)), "compare": None, "result": "x"})
    stores = [[Stmt("store", {"buffer": out, "indices": [int32(0)], "value": v})] for v in (value, int32(0))]
    branch = Stmt("if", {"condition": ("cmp", "<", var("tx"), int32(1))}, stores)
    program = Program(1, [out, counter], [], [], [Launch("l0", [("bx0", "1", 1)], 32, [], [atomic, branch])])
    program.inputs.update({b: np.zeros(1, np.int32) for b in program.params})
    if allowed:
        Model(program).run()
        return
    with pytest.raises(Invalid, match="two values for one element"):
        Model(program).run()


@pytest.mark.parametrize("place, turns, is_right", [("tx", 1, False), ("bx0", 1, True), ("tx", 0, None)])
def test_the_model_knows_that_a_fragment_is_one_tile_of_all_threads(place, turns, is_right):
    """Threads store to one element what each reads from a place of its own, be it equal; an engine may refuse it where none comes to it."""
    from draw_expr import int32, var
    from memory import Invalid
    from model import Model
    from nodes import Buffer, Launch, Program, Stmt
    from scalars import INT32

    import numpy as np

    ours, tile = Buffer("A1", "param", INT32, (32,)), Buffer("t2", "fragment", INT32, (1,))
    store = Stmt("store", {"buffer": tile, "indices": [int32(0)], "value": ("load", INT32, ours, [var(place)])})
    loop = Stmt("for", {"var": "k3", "dtype": INT32, "begin": int32(0), "extent": int32(turns), "loop": "serial", "options": {}}, [[store]])
    program = Program(1, [ours], [], [], [Launch("l0", [("bx0", "1", 1)], 32, [tile], [loop])])
    program.inputs[ours] = np.zeros(32, np.int32)
    if is_right is False:
        with pytest.raises(Invalid, match="a place of its own"):
            Model(program).run()
        return
    Model(program).run()
    assert program.unreached == (is_right is None)


class Device:
    """The interpreter in the place of a device that the program of one seed breaks, for as long as the process lives."""

    def __init__(self, breaks):
        from library import Library

        self.library, self.breaks, self.broken = Library(LIBRARY), breaks, False

    def run(self, text, engine, arch, arguments):
        from library import DeviceLost

        if engine == "cuda":
            self.broken |= self.breaks(text)
            if self.broken:
                raise DeviceLost("CUDA_ERROR_ILLEGAL_ADDRESS")
            engine = "interpreter"
        self.library.run(text, engine, arch, arguments)


def on_device(kind, breaks, options):
    """A run of all seeds on one worker after the other, each with a device of its own."""
    import run as runner

    class OnDevice(kind):
        def __init__(self, options, at):
            super().__init__(options, at)
            self.library = Device(breaks)

    return runner.Run(options, lambda options, at, connection: runner.work(options, at, connection, OnDevice)).run()


def test_a_device_that_a_program_breaks_is_a_finding_of_that_program():
    import run as runner
    from check import shows

    options = runner.options_of(["--seeds", "1..8", "--engines", "cuda", "--jobs", "1"])
    done = on_device(runner.Work, lambda text: "program p3 " in text, options)
    assert [f[:3] for f in done.findings] == [(3, "cuda", "lost")] and done.done == 8
    shown = {seed: shows(Device(lambda text: "program p3 " in text), "cuda", "lost")(runner.drawn(options, seed)) for seed in (3, 4)}
    assert shown == {3: True, 4: False}  # what --minimize asks, each in a process of its own
    assert "ILLEGAL_ADDRESS" in done.findings[0][3] and not any("ILLEGAL" in text for text in done.total.refusals)


def test_an_engine_may_take_a_share_of_the_seeds(tmp_path):
    """What is optimized by the host compiler, at last, is the same text at another price."""
    totals = tmp_path / "totals"
    done = run("run.py", "interpreter,cpu,cpu:optimized/3", "--seeds", "4..9", "--json", totals, "--out", tmp_path / "found")
    row = json.loads(totals.read_text())
    assert done.returncode == 0 and 1 <= row["ran"]["cpu:optimized"] <= 2 < 4 <= row["ran"]["cpu"] <= 6, done.stdout + done.stderr
    assert (row["programs"], row["findings"], row["dropped"]) == (6, 0, 0) and not list((tmp_path / "found").iterdir())
    assert "no compiler for cpu:fastest" in run("run.py", "cpu:fastest").stderr


def test_texts_for_a_gpu_are_compiled():
    """Where there is none, too: NVRTC needs no device, and what it refuses is a finding."""
    done = run("run.py", "nvrtc:sm_90a", "--seeds", "11..16")
    assert done.returncode == 0 and ("nvrtc:sm_90a 6" in done.stdout or "TW8001" in done.stdout), done.stdout + done.stderr


RACE = """program reads_early {
  param A: float32[32, 64]
  param B: float32[32, 64]
  launch main(bx: 1) threads(tx: 128) {
    shared A_s: float32[32, 64]
    barrier full: uint64[1] arrive=[1]
    expect barrier=full[0] bytes=8192 arrive=true
    copy from=A to=A_s completion=(barrier=full[0])
    WAIT
    copy from=A_s to=B
    OVER
  }
}
"""


def test_a_variant_with_a_race_of_its_own_may_break_a_device(monkeypatch):
    """What only one GPU has instructions for is looked at there."""
    import mutate
    import run as runner

    wait = "wait barrier=full[0] parity=0"
    texts = [RACE.replace("WAIT", "").replace("OVER", wait), RACE.replace("WAIT", wait).replace("OVER", "")]
    options = runner.finish(runner.parser_of("", "cuda").parse_args(["--seeds", "0..1", "--engines", "cuda", "--jobs", "1"]))
    options.texts = texts
    monkeypatch.setattr(mutate.Mutation, "make", lambda self, seed: (texts[seed], [], mutate.arguments_of(mutate.random.Random(1), texts[seed]), None))
    done = on_device(mutate.Mutation, lambda text: True, options)
    assert [f[:3] for f in done.findings] == [(1, "cuda", "lost")] and done.done == 2
    assert done.total.refusals["not run: a race of its own"] == 1


def test_what_a_device_may_refuse():
    from check import may_refuse

    assert [code for code in ("TW2007", "TW3093", "TW8101", "TW8104", "TW8105", "TW8108", "TW8203", "TW6001", "TW0001", "TW8003", "TW5501", "TW5001") if may_refuse(code)] == [
        "TW2007", "TW3093", "TW8101", "TW8105", "TW8203", "TW5001"]  # fmt: skip


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
    ask = compile_many.start(tmp_path)["quick"]
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


def test_constructs_are_drawn():
    """What the language has and programs do not is a list, which says who looks at it."""
    from census import NOT_DRAWN, PATTERNS
    from draw import Generator

    left = set(PATTERNS)
    for seed in range(1, 2000):
        text = Generator(seed).program().text()
        left -= {name for name in left if PATTERNS[name].search(text)}
        if left == set(NOT_DRAWN):
            break
    assert left == set(NOT_DRAWN), sorted(left ^ set(NOT_DRAWN))


def test_kinds_are_drawn():
    """What no word shows is still there when what the language does not allow has been taken out."""
    from census import KINDS, OF_PYTHON, kinds_of
    from draw import Generator
    from prune import prune
    from python_source import source_and_kinds

    left = {*KINDS, *OF_PYTHON}
    for seed in range(1, 1500):
        program = Generator(seed).program()
        if prune(program) is not None:
            left -= kinds_of(program) | source_and_kinds(program)[1]
        if not left:
            break
    assert not left, sorted(left)


def test_names_that_are_bound_again():
    """A name serves another binding where nothing reads the first any more, not in the next turn either."""
    from draw_expr import int32, var
    from nodes import Buffer, Launch, Program, Stmt
    from python_names import PythonNames
    from scalars import INT32

    out, v = Buffer("O", "param", INT32, (8,)), Buffer("v", "local", INT32, ())
    load = ("load", INT32, v, [])

    def let(name, value):
        return Stmt("let", {"name": name, "dtype": INT32, "value": value})

    def store(at, value):
        return Stmt("store", {"buffer": out, "indices": [int32(at)], "value": value})

    def change(value):
        return Stmt("store", {"buffer": v, "indices": [], "value": value})

    turn = [let("b", ("bin", INT32, "+", load, var("a"))), store(0, var("b")), change(("bin", INT32, "+", load, var("k")))]
    loop = Stmt("for", {"var": "k", "dtype": INT32, "begin": int32(0), "extent": int32(3), "loop": "serial", "options": ""}, [turn])
    body = [let("x", int32(7)), store(1, var("x")), let("a", int32(2)), change(int32(1)), loop, let("c", load), store(2, var("c"))]
    program = Program(1, [out], [], [], [Launch("l", [("bx", "1", 1)], 32, [v], body)])
    seen = set()
    for seed in range(200):
        names = PythonNames(program.launches[0], random.Random(seed)).of
        of = {name: names.get(name, name) for name in "xabckv"}
        together = {p + q for p in of for q in of if p < q and of[p] == of[q]}
        seen |= together
        assert not together & {"ab", "ak", "av", "bk", "bv", "kv"}, of
    assert {"ax", "bx", "kx", "vx", "ac", "bc", "ck", "cv"} <= seen
