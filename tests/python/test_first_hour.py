"""What newcomers meet: each mistake of first_hour/*.txt runs as a script of theirs, and all that they see is compared: what is
printed, warnings, the lines of their files in the traceback, and the message. TILEWRIGHT_UPDATE=1 writes what is said."""
import contextlib
import io
import itertools
import json
import linecache
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import traceback
import warnings

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from tilewright import elsewhere, settings, tracebacks

FOLDER = pathlib.Path(__file__).parent / "first_hour"
HEAD = re.compile(r"^=== (.*)$", re.MULTILINE)
SHOWN = 3  # of calls of one line by itself; Python says how often it is repeated, which depends on what called the test


# What bodies.txt has the bodies of: they are compiled for the interpreter, and for a GPU to a text.
FRAME = """@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        s, f = T.alloc_shared((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
        T.copy(A, s)
        T.copy(A, f)
{}
        T.copy(f, B)
tw.compile(main, engine="interpreter")
tw.compile(main, target="cuda -arch=sm_90a").get_kernel_source()
"""


def cases():
    for file in sorted(FOLDER.glob("*.txt")):
        parts = HEAD.split(file.read_text())
        for name, rest in zip(parts[1::2], parts[2::2]):
            program, _, said = rest.lstrip("\n").partition("--- says\n")
            yield pytest.param(file, name, program, said.rstrip(), id=name)


def what_is_said(program, folder):
    """All that a user sees, without colors; of a traceback the lines of the user's files and how many are others'."""
    file = folder / "mine.py"
    file.write_text(program)
    linecache.checkcache(str(file))
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(compile(program, str(file), "exec"), {"np": np, "tw": tw, "T": T, "__name__": "mine", "__file__": str(file)})
        except Exception as error:
            if isinstance(error, tw.TilewrightError):
                tracebacks.cut(error)  # as Python does it for one that nobody catches
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
            for place, same in itertools.groupby(frames, lambda f: (f.filename, f.lineno, f.name)):
                shown = list(itertools.islice(same, SHOWN))
                file_name, line, function = place
                library = file_name.rpartition("/site-packages/")[2]  # whose lines are not ours to know
                where = library if library != file_name else f"{file_name}:{line}"
                print(f"at {where} in {function}\n" * len(shown), end="", file=out)
                if next(same, None):
                    print("at the same line again", file=out)
            print(f"{type(error).__name__}: {error}", file=out)
    text = out.getvalue() + "".join(f"warning at {w.filename}:{w.lineno}: {w.message}\n" for w in warned)
    text = text.replace(str(folder) + os.sep, "").replace(str(pathlib.Path(__file__).parent) + os.sep, "tests/")
    text = re.sub(r"/\S*/tilewright/", "tilewright/", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "0x", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip()


@pytest.fixture(autouse=True)
def as_a_user(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "cpu")
    monkeypatch.syspath_prepend(FOLDER)
    settings._warned.clear()


@pytest.mark.parametrize("file, name, program, said", list(cases()))
def test_what_is_said(file, name, program, said, tmp_path):
    if "import torch" in program:
        pytest.importorskip("torch")
    framed = FRAME.format(textwrap.indent(program.rstrip(), "        ")) if file.stem == "bodies" else program
    found = what_is_said(framed, tmp_path)
    if os.environ.get("TILEWRIGHT_UPDATE"):
        before, mark, rest = file.read_text().partition(f"=== {name}\n")
        after = HEAD.search(rest)
        rest = rest[after.start() :] if after else ""
        file.write_text(f"{before}{mark}{program}--- says\n{found}\n" + ("\n" + rest if rest else ""))
        return
    if sys.version_info < (3, 11):  # which says no columns, and a decorator's line is that of its function
        found, said = (re.sub(r"(-->.*:\d+):\d+$|\n {8}\|\s*\^$|(^at mine.py):\d+", r"\1\2", t, flags=re.MULTILINE) for t in (found, said))
        found, said = (re.sub(r"(--> mine.py):\d+\n +\d+ \| *(@|def |class ).*", r"\1", t) for t in (found, said))
    if sys.version_info >= (3, 13):  # which suggests keywords itself, enters a block at its expression and has the lines of -c
        found, said = (re.sub(r"\. Did you mean '\w+'\?$", "", t, flags=re.MULTILINE) for t in (found, said))
        found, said = (re.sub(r":\d+(\n +\d+ \| +with .*)\n +\| +\^", r"\1", t) for t in (found, said))
        found, said = (re.sub(r"(--> mine.py:\d+):\d+$(?!\n +\d+ \|)", r"\1", t, flags=re.MULTILINE) for t in (found, said))
        found = re.sub(r"(--> <string>:.*)\n +\d+ \| .*\n +\| +\^", r"\1", found)
    assert found == said


def test_mistakes_of_the_first_hour_have_their_cases():
    """Mistakes that newcomers made when they first tried the package, and where all that they are told is compared."""
    rows = [line.split("\t") for line in (FOLDER / "mistakes.tsv").read_text().splitlines()[1:]]
    assert len(rows) == 69 and len({(who, mistake) for who, mistake, _ in rows}) == len(rows)
    known = {f"{p.values[0].stem}: {p.values[1]}" for p in cases()}
    for file in ("errors/first_hour_test", "errors/does_not_compile_test", "tool/tool_test"):
        text = (FOLDER.parents[1] / f"{file}.cpp").read_text()
        known |= {f"{file.partition('/')[2]}: {name}" for name in re.findall(r"^TEST(?:_F)?\(\w+, (\w+)\)", text, re.MULTILINE)}
    for _, _, where in rows:
        file, _, names = where.partition(": ")
        for name in names.split("; "):
            assert f"{file}: {name}" in known, where


def test_foreign_words_lead_to_words_that_there_are():
    """Each word of elsewhere.WORDS is none of the language's, and what is written instead is."""
    for word, instead in {**elsewhere.WORDS, **elsewhere.METHOD_WORDS}.items():
        for name in re.findall(r"\bT\.(\w+)", instead):
            assert name == "word" or name in dir(T), (word, name)
        for name in re.findall(r"\btilewright\.(\w+)", instead):
            assert name in tw.__all__, (word, name)
    for method in elsewhere.METHODS:
        assert elsewhere.instead_of(method), method


CRASH = """import tilewright as tw
import tilewright.language as T
@T.prim_func
def main(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=32):
        A[0] = T.program_id(0)
"""


def crashed(text, tmp_path, **environment):
    (tmp_path / "mine.py").write_text(text)
    paths = os.pathsep.join(p for p in sys.path if p)
    ran = subprocess.run([sys.executable, tmp_path / "mine.py"], env={**os.environ, "PYTHONPATH": paths, **environment}, capture_output=True, text=True)
    assert ran.returncode == 1
    return ran.stderr


def test_tracebacks_of_coded_errors_are_the_users(tmp_path):
    assert len(re.findall("  File ", crashed(CRASH, tmp_path))) == 2
    full = crashed(CRASH, tmp_path, TILEWRIGHT_TRACEBACK="full")
    assert len(re.findall("  File ", full)) > 4 and "tilewright/trace.py" in full
    assert len(re.findall("  File ", crashed('import tilewright.language as T\nT.Tensor((64,), "flaot32")\n', tmp_path))) == 1
    plain = crashed(CRASH.replace("T.program_id(0)", "[][3]"), tmp_path)  # no code: every frame stays
    assert "IndexError" in plain and "tilewright/program.py" in plain


def test_what_an_error_is_caused_by_stays(tmp_path):
    text = crashed(CRASH.replace("        A[0] = T.program_id(0)\n", "        try_it(A)\n").replace("@T.prim_func\n", """def try_it(A):
    try:
        A[0] = {}["key"]
    except KeyError as error:
        raise RuntimeError("mine") from error
@T.prim_func
"""), tmp_path)
    assert "KeyError: 'key'" in text and "RuntimeError: mine" in text


LINKED = """import numpy as np
import tilewright as tw
import tilewright.language as T

@T.prim_func
def copied(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=32):
        T.copy(A, B)

k, a = tw.compile(copied, engine="interpreter"), np.ones(8, "float32")
"""


def test_what_the_package_itself_caught_is_left_out(tmp_path):
    text = crashed(LINKED + 'k(a, "text")\n', tmp_path)
    assert text.count("Traceback") == text.count("  File ") == 1 and "TW4002" in text
    text = crashed(LINKED + 'try:\n    k(a, "text")\nexcept tw.LaunchError as error:\n    raise ValueError("mine") from error\n', tmp_path)
    assert text.count("Traceback") == text.count("  File ") == 2 and "TW4002" in text and text.endswith("ValueError: mine\n")


def test_cells_of_a_notebook_show_no_line_of_the_package(tmp_path):
    pytest.importorskip("IPython")
    cells = [LINKED + "from tilewright import ops", 'k(a, "text")', "k(a)", "ops.matmul(a, a[:3])", "T.reduce_summ", "k.report('/nowhere/k.html')",
             "def mine(x):\n    return ops.softmax(x, axis=5)\nmine(a)", "1 / 0"]  # fmt: skip
    paths = os.pathsep.join(p for p in sys.path if p)

    def said(**environment):
        ran = subprocess.run([sys.executable, pathlib.Path(__file__).parent / "notebook.py"], input=json.dumps([cells]), capture_output=True, text=True,
                             env={**os.environ, "PYTHONPATH": paths, "IPYTHONDIR": str(tmp_path), **environment})  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        first, *rest = [cell["error"] for cell in json.loads(ran.stdout.strip().splitlines()[-1])[0]]
        assert first is None
        return rest

    short = said()
    for text, lines in zip(short, [1, 1, 1, 1, 1, 2, 1]):
        assert len(re.findall(r"^(Cell In|File )", text, re.MULTILINE)) == lines and "tilewright/" not in text, text
    assert "in mine(x)" in short[5] and "ZeroDivisionError" in short[-1]
    assert "tilewright/ops/" in said(TILEWRIGHT_TRACEBACK="full")[2]


def test_colors_are_for_terminals():
    said = "error TW1102 build: Tilewright has no T.load\n  --> mine.py:6:16\n      6 |         A[0] = T.load(0)\n        |                ^\nhelp: T.copy"
    made = tracebacks.colored(said)
    assert re.sub(r"\033\[[\d;]*m", "", made) == said and "\033[1;31merror TW1102 build:\033[0m" in made and "\033[1;31m^\033[0m" in made
    assert not tracebacks.has_colors(io.StringIO())


SIGNS = ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!=", "**", "/", "divmod"]


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("left", [True, False])
def test_numbers_of_numpy_are_operands(sign, left):
    """On either side of every operator: NumPy hands its own to the value of the program, as Python does."""
    import operator

    apply = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod, "&": operator.and_,
             "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, "<=": operator.le,
             ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "**": operator.pow, "/": operator.truediv,
             "divmod": divmod}[sign]  # fmt: skip
    of, number = ("float32", 3.0) if sign in ("/", "**") else ("int32", 3)

    def program(given):
        @T.prim_func
        def main(A: T.Tensor((8,), of), B: T.Tensor((8,), of)):
            with T.Kernel(1, threads=1):
                found = apply(given, A[1]) if left else apply(A[1], given)
                B[0] = T.cast(found[0] if sign == "divmod" else found, of)
                B[1] = T.cast(found[1] if sign == "divmod" else found, of)

        return main.script()

    assert program(np.dtype(of).type(number)) == program(number)
