"""What stands around a traced function: helpers that are edited, modules, cells of notebooks, names that repeat; and
where nothing can be written."""
import functools
import importlib
import linecache
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from engines import array_for, every_engine

ONES = np.ones(4, "float32")
HEAD = """
import tilewright as tw
import tilewright.language as T
"""
FUNCTION = """
@tw.jit(engine="interpreter")
def scaled(A):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            B[i] = helper(A[i]) * FACTORS[0]
    return B
"""


def cell(number, text, space):
    """Runs a cell as notebooks do: its source is in linecache alone."""
    name = f"<ipython-input-{number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), space)


@every_engine
def test_cells_of_a_notebook(engine):
    space, ones = {}, array_for(engine, ONES)
    cell(1, HEAD + "FACTORS = [1]\ndef helper(x):\n    return x + 1\n", space)
    cell(2, FUNCTION.replace("interpreter", engine), space)
    assert (space["scaled"](ones) == 2).all()
    cell(3, "def helper(x):\n    return x + 2\n", space)  # its cell, edited and run again
    assert (space["scaled"](ones) == 3).all()
    cell(4, "FACTORS[0] = 10\n", space)
    assert (space["scaled"](ones) == 30).all()
    cell(5, "@T.macro\ndef helper(x):\n    return x * 5\n", space)
    assert (space["scaled"](ones) == 50).all() and len(space["scaled"].kernels) == 4


class Touchy:
    """An object that does not like questions."""

    def __getattr__(self, name):
        raise RuntimeError(name)


def test_other_objects_are_left_alone():
    space = {"touchy": Touchy(), "partial": functools.partial}
    cell(11, HEAD + "FACTORS = (1,)\ndef shift(x, by):\n    return x + by\nhelper = partial(shift, by=1)\n", space)
    cell(12, FUNCTION.replace("helper(A[i])", "helper(A[i]) + (0 if touchy else 1)"), space)
    assert (space["scaled"](ONES) == 2).all()
    cell(13, "def shift(x, by):\n    return x - by\nhelper = partial(shift, by=1)\n", space)
    assert (space["scaled"](ONES) == 0).all()
    cell(14, "helper = partial(shift, by=-4)\n", space)
    assert (space["scaled"](ONES) == 5).all()


def test_attributes_of_what_is_around():
    """Constants of a class, of an object and of a module of the user's, and dtypes that are no text."""
    space = {}
    cell(21, HEAD + """
import numpy as np
class Sizes:
    FACTOR = 2
class Options:
    pass
options = Options()
options.shift = 1
kind = np.dtype("float32")
""", space)  # fmt: skip
    cell(22, """
@tw.jit(engine="interpreter")
def scaled(A):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), kind)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            B[i] = A[i] * Sizes.FACTOR + options.shift
    return B
""", space)
    assert (space["scaled"](ONES) == 3).all() and (space["scaled"](ONES) == 3).all()
    space["Sizes"].FACTOR = 5
    assert (space["scaled"](ONES) == 6).all()
    space["options"].shift = 10
    assert (space["scaled"](ONES) == 15).all() and (space["scaled"](ONES) == 15).all()
    space["kind"] = np.dtype("float16")
    assert space["scaled"](ONES).dtype == "float16"


def test_functions_without_a_source():
    space = {"tw": tw, "T": T}
    exec(FUNCTION, space)
    with pytest.raises(tw.CompileError, match="TW1108.*the source of 'scaled' cannot be read: there is no file <string>"):
        space["scaled"](ONES)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A function that writes a module and imports it, or imports it again."""
    monkeypatch.syspath_prepend(tmp_path)
    names = []

    def load(name, text, edited=False):
        file = tmp_path / f"{name}.py"
        file.write_text(text)
        os.utime(file, (len(names), len(names)))  # another time, however fast this goes
        names.append(name)
        importlib.invalidate_caches()
        if name in sys.modules and not edited:
            return importlib.reload(sys.modules[name])
        return importlib.import_module(name)

    yield load
    for name in names:
        sys.modules.pop(name, None)


@every_engine
def test_an_edited_helper_of_a_module(engine, module):
    ones = array_for(engine, ONES)
    module("tw_helpers", "OFFSET = 1\ndef deeper(x):\n    return x + OFFSET\ndef shift(x):\n    return deeper(x)\n")
    function = FUNCTION.replace("helper(", "tw_helpers.shift(").replace("interpreter", engine)
    user = module("tw_user", HEAD + "import tw_helpers\nFACTORS = (1,)\n" + function)
    assert (user.scaled(ones) == 2).all() and (user.scaled(ones) == 2).all()
    helpers = module("tw_helpers", "OFFSET = 1\ndef deeper(x):\n    return x + 7\ndef shift(x):\n    return deeper(x)\n")
    assert (user.scaled(ones) == 8).all()
    module("tw_helpers", "OFFSET = 1\ndef deeper(x):\n    return x + OFFSET\ndef shift(x):\n    return deeper(x)\n")
    helpers.OFFSET = 20
    assert (user.scaled(ones) == 21).all()
    helpers.shift.__code__ = (lambda x: x * 4).__code__  # as autoreload edits functions
    assert (user.scaled(ones) == 4).all()


def test_a_file_that_is_edited_after_its_import(module):
    text = HEAD + "FACTORS = (1,)\ndef helper(x):\n    return x + 1\n" + FUNCTION
    user = module("tw_edited", text)
    module("tw_edited", text.replace("FACTORS[0]", "(FACTORS[0] + 1)"), edited=True)
    with pytest.raises(tw.CompileError, match="TW1108.*'scaled' is not what line .* of .*tw_edited.py says: the file has changed"):
        user.scaled(ONES)
    assert (module("tw_edited", text.replace("FACTORS[0]", "3")).scaled(ONES) == 6).all()
    user = module("tw_edited", text)
    assert (user.scaled(ONES) == 2).all()
    user = module("tw_edited", text.replace("x + 1", "x + 5"))
    assert (user.scaled(ONES) == 6).all()


def of_one_name(add):
    def make():
        @T.prim_func
        def main(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(4):
                    B[i] = A[i] + add

        return main

    return make


@every_engine
def test_kernels_of_one_name(engine):
    kernels = [tw.jit(of_one_name(add), out_idx=-1, engine=engine)() for add in (1, 2, 3, 2)]
    assert [k.name for k in kernels] == ["main"] * 4
    assert [k(array_for(engine, ONES)).tolist() for k in kernels] == [[add + 1] * 4 for add in (1, 2, 3, 2)]


def test_equal_values_of_other_types_are_other_programs():
    @tw.jit(engine="interpreter")
    def filled(A, value):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        B = T.empty((N,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = 1 / T.cast(value, "float32")
        return B

    assert [filled(ONES, v)[0] for v in (0.0, -0.0, 0.0, 1, True)] == [np.inf, -np.inf, np.inf, 1, 1]
    assert len(filled.kernels) == 4


SCRIPT = HEAD + textwrap.dedent("""
    import sys
    import numpy as np
    from engines import array_for
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = A[i] + 41
    print(tw.compile(main, out_idx=-1, engine=sys.argv[1])(array_for(sys.argv[1], np.ones(8, "float32"))).tolist())
""")


@every_engine
@pytest.mark.parametrize("home", ["/proc/nobody", "/dev/null"])
def test_a_home_where_nothing_can_be_written(home, engine, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    kept = {k: v for k, v in os.environ.items() if k not in ("TILEWRIGHT_CACHE_DIR", "XDG_CACHE_HOME")}
    kept["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    for more in ({}, {"TILEWRIGHT_CACHE_DIR": home + "/cache"}):
        ran = subprocess.run([sys.executable, "script.py", engine], cwd=tmp_path, env={**kept, "HOME": home, **more},
                             capture_output=True, text=True, timeout=120)  # fmt: skip
        assert ran.stdout.strip() == str([42.0] * 8), ran.stderr
        assert "Traceback" not in ran.stderr
