"""What stands around a traced function: helpers that are edited, modules, cells of notebooks, names that repeat; and
where nothing can be written."""
import ast
import collections
import dataclasses
import decimal
import enum
import fractions
import functools
import importlib
import itertools
import linecache
import operator
import os
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from engines import array_for, every_engine
from tilewright import jitted, surroundings, tvm_nodes
from tilewright.targets import Target
from tilewright.tilelang_parts import Missing, Open

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


# ---- values of every kind: a change is seen, and nothing is compiled anew for what stayed equal


class Base:
    inherited = 2.0


class Holder(Base):
    def __init__(self, x=2.0):
        self.x = x

    def method(self):
        return self.x

    @property
    def attribute(self):
        return self.x

    __call__ = method


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


@dataclasses.dataclass
class Record:
    x: float = 2.0


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: float = 2.0


class Color(enum.Enum):
    TWO, THREE = 2.0, 3.0


class Count(enum.IntEnum):
    TWO, THREE = 2, 3


Pair = collections.namedtuple("Pair", "x")


def of_keyword(*, a=2.0):
    return a


def of_list(a=[2.0]):
    return a[0]


def of_function(x=2.0):
    """A function with an attribute."""

    def made(k=1.0):
        return k

    made.x = x
    return made


def module_of(**content):
    module = types.ModuleType("of_a_user")
    vars(module).update(content)
    return module


def attribute_is_set(name, value):
    return lambda s: setattr(s, name, value)


def item_is_set(key, value):
    return lambda s: s.__setitem__(key, value)


# (expression over S, S, another S or a function that changes S)
VALUES = {
    "int": ("S", 2, 3),
    "NumPy's int32": ("S", np.int32(2), np.int32(3)),
    "NumPy's float64": ("S", np.float64(2), np.float64(3)),
    "array": ("float(S[0])", np.array([2.0]), np.array([3.0])),
    "array in place": ("float(S[0])", np.array([2.0]), item_is_set(0, 3.0)),
    "large array in place": ("float(S[7])", np.full(1000, 2.0), item_is_set(7, 3.0)),
    "list in place": ("S[0]", [2.0], item_is_set(0, 3.0)),
    "dict with keys of two types": ("S['a']", {"a": 2.0, 1: 5}, item_is_set("a", 3.0)),
    "dict that holds an array": ("S['a']", {"a": 2.0, "t": np.zeros(3)}, item_is_set("a", 3.0)),
    "namespace": ("S.x", types.SimpleNamespace(x=2.0), attribute_is_set("x", 3.0)),
    "namespace in a namespace": ("S.y.x", types.SimpleNamespace(y=types.SimpleNamespace(x=2.0)), lambda s: setattr(s.y, "x", 3.0)),
    "array in a namespace": ("float(S.x[0])", types.SimpleNamespace(x=np.array([2.0])), attribute_is_set("x", np.array([3.0]))),
    "attribute by its name": ("getattr(S, 'x')", types.SimpleNamespace(x=2.0), attribute_is_set("x", 3.0)),
    "method": ("S.method()", Holder(), attribute_is_set("x", 3.0)),
    "bound method": ("S()", Holder().method, lambda s: setattr(s.__self__, "x", 3.0)),
    "property": ("S.attribute", Holder(), attribute_is_set("x", 3.0)),
    "callable object": ("S()", Holder(), attribute_is_set("x", 3.0)),
    "inherited attribute": ("S.inherited", Holder(), lambda s: setattr(Base, "inherited", 3.0)),
    "slots": ("S.x", Slotted(2.0), attribute_is_set("x", 3.0)),
    "dataclass": ("S.x", Record(), attribute_is_set("x", 3.0)),
    "frozen dataclass": ("S.x", Frozen(), Frozen(3.0)),
    "fraction": ("float(S)", fractions.Fraction(2), fractions.Fraction(3)),
    "decimal": ("float(S)", decimal.Decimal(2), decimal.Decimal(3)),
    "enum": ("S.value", Color.TWO, Color.THREE),
    "enum of integers": ("int(S)", Count.TWO, Count.THREE),
    "named tuple": ("S.x", Pair(2.0), Pair(3.0)),
    "keyword default": ("S()", of_keyword, lambda s: s.__kwdefaults__.__setitem__("a", 3.0)),
    "list as a default": ("S()", of_list, lambda s: s.__defaults__[0].__setitem__(0, 3.0)),
    "partial": ("S()", functools.partial(lambda k: k, 2.0), functools.partial(lambda k: k, 3.0)),
    "partial of a list": ("S()", functools.partial(lambda k: k[0], [2.0]), lambda s: s.args[0].__setitem__(0, 3.0)),
    "mapping proxy": ("S['x']", types.MappingProxyType({"x": 2.0}), types.MappingProxyType({"x": 3.0})),
    "deque": ("S[-1]", collections.deque([2.0]), lambda s: s.append(3.0)),
    "object in a list": ("S[0].x", [Holder()], lambda s: setattr(s[0], "x", 3.0)),
    "function of C that is bound": ("S('x')", {"x": 2.0}.get, lambda s: s.__self__.__setitem__("x", 3.0)),
    "set": ("max(S)", {1.0, 2.0}, lambda s: s.add(3.0)),
    "range": ("S[-1]", range(3), range(4)),
    "class": ("S.x", type("K", (), {"x": 2.0}), attribute_is_set("x", 3.0)),
    "function of C of a class": ("S.x(1, 1) + 1.0", type("K", (), {"x": operator.mul}), attribute_is_set("x", operator.add)),
    "attribute of a metaclass": ("S.x", type("Meta", (type,), {"x": 2.0})("K", (), {}), lambda s: setattr(type(s), "x", 3.0)),
    "function's attribute": ("S.x", of_function(), attribute_is_set("x", 3.0)),
    "function's attribute in a list": ("S[0].x", [of_function()], lambda s: setattr(s[0], "x", 3.0)),
    "function's attribute that comes later": ("getattr(S, 'y', 2.0)", of_function(), attribute_is_set("y", 3.0)),
    "module in a list": ("S[0].x", [module_of(x=2.0)], lambda s: setattr(s[0], "x", 3.0)),
    "module in a tuple": ("S[0].x", (module_of(x=2.0),), lambda s: setattr(s[0], "x", 3.0)),
    "module in a dict": ("S['a'].x()", {"a": module_of(x=lambda: 2.0)}, lambda s: setattr(s["a"], "x", lambda: 3.0)),
    "module in a module in an object": ("S.y.m.x", types.SimpleNamespace(y=module_of(m=module_of(x=2.0))), lambda s: setattr(s.y.m, "x", 3.0)),
    "macro's attribute": ("S.x", T.macro(of_function()), attribute_is_set("x", 3.0)),
}
TEXT = """
@tw.jit(engine="interpreter")
def scaled(A):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            B[i] = A[i] * {expression}
    return B
"""


@pytest.mark.parametrize("name", VALUES)
def test_a_change_of_a_value_is_seen(name, monkeypatch):
    expression, before, after = VALUES[name]
    monkeypatch.setattr(Base, "inherited", 2.0)
    traces, trace = [], jitted.trace_eager
    monkeypatch.setattr(jitted, "trace_eager", lambda *a: traces.append(1) or trace(*a))
    space = {"S": before}
    cell(100 + list(VALUES).index(name), HEAD + TEXT.format(expression=expression), space)
    assert (space["scaled"](ONES) == 2).all() and (space["scaled"](ONES) == 2).all()
    assert len(traces) == 1
    if isinstance(after, types.FunctionType):
        after(before)
    else:
        space["S"] = after
    assert (space["scaled"](ONES) == 3).all() and len(traces) == 2


def test_what_annotations_name_is_read_anew():
    """No code of the function names it: Python evaluates annotations of locals never, and those that are texts elsewhere."""
    body = '''
@tw.jit(engine="interpreter")
def scaled(A, B):
    A: T.Tensor((N,), "float32")
    B: T.Tensor((N,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(2):
            B[i] = A[i] * 2
'''
    lazy = '''
@tw.jit(engine="interpreter")
def made():
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(2):
                B[i] = A[i] * 2
    return main
def scaled(A, B):
    made()(A, B)
'''
    for number, text in enumerate((HEAD + body, "from __future__ import annotations" + HEAD + lazy)):
        space = {}
        cell(203 + number, text, space)
        for n in (4, 3, 4):
            space["N"], b = n, np.zeros(n, "float32")
            space["scaled"](ONES[:n], b)
            assert b[:2].tolist() == [2, 2]


def test_a_function_has_kernels_of_each_target(monkeypatch):
    @tw.jit
    def factory():
        @T.prim_func
        def main(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(4):
                    A[i] = A[i] * 2

        return main

    made = []
    for arch in ("sm_80", "sm_90a", "sm_80"):
        with Target(f"cuda -arch={arch}"):
            made.append(factory())
            assert made[-1].arch == arch and factory() is made[-1]
    assert made[0] is made[2]
    for engine in ("interpreter", "cpu", "interpreter"):
        monkeypatch.setenv("TILEWRIGHT_ENGINE", engine)
        assert factory().engine == engine


def test_macros_read_what_is_around_them_when_they_are_called():
    """Their own function's names, and those of the traced function that they are written in."""
    factor = 2

    @T.macro
    def scaled(A, B, i):
        B[i] = A[i] * factor

    @tw.jit(engine="interpreter")
    def traced(A: T.Tensor((4,), "float32")):
        B = T.empty((4,), "float32")
        with T.Kernel(1, threads=1):
            scaled(A, B, 0)
            more = A[1] + 3

            @T.macro
            def added(i):
                B[i] = A[i] + more

            added(1)
            more = 5
            added(2)
            for k in T.serial(2):
                more = more + k
            added(3)
        return B

    assert traced(ONES).tolist() == [2, 5, 6, 7]
    factor = 3
    assert traced(ONES).tolist() == [3, 5, 6, 7]


def test_strides_of_numpy_are_counted_in_elements():
    @tw.jit(engine="interpreter")
    def scaled(A):
        N, S = T.const("N, S")
        A: T.StridedTensor((N,), (S,), "float32")
        B = T.empty((N,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] * S
        return B

    numbers = np.arange(16, dtype="float32")
    for part, step in ((numbers[::2], 2), (numbers[::4], 4), (numbers[8:0:-1], -1)):
        assert (scaled(part) == part * step).all()


def test_what_has_no_value_is_traced_at_every_call():
    """A generator of numbers holds what cannot be seen. Equal programs are one kernel."""
    space = {"S": itertools.count(2)}
    cell(200, HEAD + TEXT.format(expression="min(next(S), 4)"), space)
    assert [space["scaled"](ONES)[0] for _ in range(4)] == [2, 3, 4, 4]
    assert not space["scaled"].kernels and len(space["scaled"].of_texts) == 3


def test_the_environment_is_read_anew(monkeypatch):
    space = {"os": os}
    cell(201, HEAD + TEXT.format(expression="float(os.environ['TW_FACTOR'])"), space)
    for factor in ("2", "3", "2"):
        monkeypatch.setenv("TW_FACTOR", factor)
        assert space["scaled"](ONES)[0] == float(factor)


def test_a_builtin_that_gets_another_meaning():
    space = {}
    cell(202, HEAD + TEXT.format(expression="max(1, 2)"), space)
    assert space["scaled"](ONES)[0] == 2 and space["scaled"](ONES)[0] == 2
    space["max"] = lambda a, b: 7
    assert space["scaled"](ONES)[0] == 7


@pytest.mark.parametrize("made, changed", [(Holder(2.0), attribute_is_set("x", 3.0)), ([2.0], item_is_set(0, 3.0)), (np.array([2.0]), item_is_set(0, 3.0))],
                         ids=["object", "list", "array"])  # fmt: skip
def test_arguments_of_factories_that_change(made, changed):
    @tw.jit(out_idx=-1, engine="interpreter")
    def scaled(by):
        factor = by.x if isinstance(by, Holder) else float(by[0])

        @T.prim_func
        def main(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(4):
                    B[i] = A[i] * factor

        return main

    kernel = scaled(made)
    assert kernel(ONES)[0] == 2 and scaled(made) is kernel
    changed(made)
    assert scaled(made)(ONES)[0] == 3


def test_cells_whose_statements_are_compiled_alone():
    """As notebooks do: what a statement becomes depends on what its own text imports."""
    text = HEAD + "def helper(x):\n    return T.max(x, 1) + 1\nFACTORS = [1]\n" + FUNCTION
    name, space = "<ipython-input-300>", {}
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    for statement in ast.parse(text, name).body:
        exec(compile(ast.Module([statement], []), name, "exec"), space)
    assert (space["scaled"](ONES) == 2).all()


@T.macro
def says_its_name(A, depth=0):
    A[depth] = len(says_its_name.__name__)
    if depth < 2:
        says_its_name(A, depth + 1)


@tw.jit(engine="interpreter")
def says_its_own_name(A):
    N = T.const("N")
    A: T.Tensor((N,), "int32")
    B = T.empty((N,), "int32")
    with T.Kernel(1, threads=1):
        says_its_name(A)
        for i in range(N):
            B[i] = A[i] + len(says_its_own_name.__name__)
    return B


def test_functions_that_say_their_own_name():
    assert says_its_own_name(np.zeros(4, "int32")).tolist() == [30, 30, 30, 17]


def test_what_has_every_name_holds_no_function():
    missing = Missing("tilelang.quantize.decode")  # asked for the function that it holds, it had one for ever
    assert surroundings.inner_function(missing) is None

    @tw.jit
    def made(N):
        @T.prim_func
        def main(A: T.Tensor((N,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(N):
                    A[i] = missing(A[i])

        return main

    with pytest.raises(tw.CompileError, match="TW1102 .*tilelang.quantize.decode is part of TileLang's own machinery"):
        made(8)


def test_a_module_that_has_every_name_holds_no_function():
    """Around a function, in a dict of modules, it was asked for one, and what it answered whether it was any."""
    assert surroundings.inner_function(Open("tilelang._ffi_api")) is None
    assert surroundings.key_of({"tilelang._ffi_api": Open("tilelang._ffi_api")})[1]


def test_a_class_that_answers_with_classes_holds_no_function():
    """Asked for the function that it holds, a name of TVM's gave another name, and that one the next: no call came back."""
    name = tvm_nodes.absent("tir")
    assert surroundings.inner_function(name) is None
    assert surroundings.key_of(name)[1]


def test_what_is_read_again_and_again_has_an_end(monkeypatch):
    """Values that had been seen cost nothing: functions times the names of their module were read."""
    monkeypatch.setattr(surroundings, "_MOST", 100)
    module = types.ModuleType("of_many_names")
    names = [f"name_{i}" for i in range(40)]
    for name in names:
        body = f"def {name}():\n    return module, " + ", ".join(f"module.{other}" for other in names if other != name)
        exec(body, vars(module))
    module.module = module
    around = surroundings.Surroundings(module.name_0)
    assert not around.exact
    assert len(around.places) < 300


def test_what_pytest_puts_into_assertions_chooses_no_kernel():
    def checked(a):
        assert a == ONES.ndim, "pytest explains the two sides, by functions of its own"

    found = surroundings.Surroundings(checked)
    assert found.exact and len(found.places) < 10


def test_helpers_that_call_each_other_without_end():
    space = {"deep_0": lambda x: x}
    for i in range(1, 400):
        exec(f"def deep_{i}(x):\n    return deep_{i - 1}(x)", space)
    assert surroundings.Surroundings(space["deep_20"]).exact
    assert not surroundings.Surroundings(space["deep_399"]).exact  # traced at every call


def test_the_device_is_asked_whether_or_not_pytorch_has_been_imported():
    """A test that imports PyTorch in its body was skipped, as a program for a device that there was not."""
    asked = textwrap.dedent(
        """
        import sys
        import tilewright
        from tilewright import _native, as_tilelang, device
        answers = {75: 9, 76: 0, 16: 132}
        _native.device_count = lambda: 1
        device.get_device_attribute = lambda attribute, device_id=0: answers[attribute]
        as_tilelang.install()
        import tilelang, tilelang.testing
        from tilelang.carver.arch import driver
        from tilelang.contrib import nvcc
        from tilelang.utils.target import determine_target
        testing = tilelang.testing
        assert "torch" not in sys.modules
        assert testing.requires_cuda_compute_version_ge(9, 0).marks()[0].args == (False,)
        assert testing.requires_cuda_compute_version(9, 0).marks()[0].args == (False,)
        assert testing.requires_cuda_compute_version_ge(10, 0).marks()[0].args == (True,)
        assert testing.requires_cuda_compute_version_eq(8, 0).marks()[0].args == (True,)
        assert driver.get_num_sms() == 132
        assert nvcc.get_target_compute_version() == "9.0"
        assert determine_target("cuda", return_object=True).arch == "sm_90a"
        """
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    run = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
