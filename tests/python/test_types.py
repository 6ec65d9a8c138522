"""What editors and checkers of types know of the package: no false errors in examples and documents, what calls give, and mistakes
that they find."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import tilewright as tw
from pages import ROOT, blocks

pytest.importorskip("mypy", reason="mypy is not installed: pip install -r tests/requirements.txt")
needs_pyright = pytest.mark.skipif(importlib.util.find_spec("basedpyright") is None,
                                   reason="basedpyright is not installed: pip install -r tests/requirements.txt")  # fmt: skip
PACKAGE = str(pathlib.Path(tw.__file__).parents[1])
OTHERS = {"docs/migration.md", "skills/tilewright/references/from_tilelang.md"}  # programs that import TileLang
ARE_GIVEN = {"README.md": "import numpy as np; a = b = np.zeros((2, 2))"}  # what a document's first line leaves to its reader

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


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """What mypy keeps of NumPy and of the package."""
    return str(tmp_path_factory.mktemp("mypy"))


def test_programs_are_checked_without_false_errors(tmp_path, cache):
    (tmp_path / "mine.py").write_text(PROGRAM)
    ran = mypy(tmp_path, cache)
    assert re.findall(r'Revealed type is "(.*)"', ran.stdout) == KNOWN, ran.stdout + ran.stderr
    errors = [line.partition(": error: ")[2] for line in ran.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 1 and "jit" in errors[0] and "overload" in errors[0].lower(), ran.stdout  # the keyword that there is not


def test_names_that_are_found_later_are_known_to_checkers():
    text = pathlib.Path(tw.__file__).read_text()
    known = re.search(r"if TYPE_CHECKING:\n((?:    .*\n)+)", text)[1]
    assert set(re.findall(r"\w+", " ".join(re.findall(r"import (.*)", known)))) == {*tw._LATER, *tw._PARTS}


# ---- examples and documents

STRICT = '''
# pyright: strict
import numpy as np
import tilewright as tw
import tilewright.language as T

N = T.dynamic("N")


@tw.jit
def add(A: T.Tensor[[N], T.float32], B: T.Tensor[[N], T.float32], scale: T.float32):
    C = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
        tile = T.alloc_fragment((128,), T.float32)
        total = T.alloc_var("float32", init=0)
        T.copy(A[bx * 128], tile)
        for i in T.Parallel(128):
            if tile[i] > 0 and i < 7:
                total = total + tile[i]
            C[bx * 128 + i] = T.exp(tile[i]) * scale + B[bx * 128 + i] + total
        for k in T.serial(4):
            T.print(k)
    return C


@T.macro
def twice(x: T.Tensor, y: T.Ref):
    x[0] = y * 2 if y.dtype == T.float16 else T.cast(y, T.float16)


@tw.jit(out_idx=[-1])
def product(M: int, K: int, dtype: str = "float16"):
    @T.prim_func
    def product2(A: T.Tensor[(M, K), dtype], P: T.ptr, B: T.StridedTensor[[M, K], [K * 2, 1], dtype], h: T.handle, C: T.Tensor[[M * 2], T.int32]):
        with T.Kernel(M, threads=128) as bx:
            shared = T.alloc_shared([M, K], dtype)
            T.copy(A[bx, 0:K], shared)
            T.gemm(shared, shared, shared, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.annotate_layout({shared: T.make_swizzled_layout(shared)})
            C[0] = A.shape[0] + P.dtype.bits
            for i, j in T.grid(4, 4):
                twice(shared, shared[i, j])
    return product2


@tw.autotune(configs=[{"dtype": "float16"}])
@tw.jit(out_idx=-1)
def tuned(M: int, dtype: str = "float16"):
    return product(M, M, dtype).prim_func


kernel = product.compile(4, 8)
c = kernel(np.zeros(4), np.zeros(4))
print(kernel.get_kernel_source(), kernel.explain("sm_90a").summary(), kernel.name, kernel.engine, kernel.prim_func.script(), c.shape)
result, counts = kernel.simulate(c)
print(counts.keys(), kernel.get_profiler().do_bench(), kernel.explain(as_json=True)["flops"], result, kernel.params, kernel.out_idx)
added = add(c, c, 2.0)
print(tw.cdiv(4, 2), tw.next_power_of_2(7), tw.__version__, tw.do_bench(lambda: None), added, N, tuned(4))
print(tw.compile(tw.jit(kernel.prim_func).prim_func, out_idx=-1, engine="cpu"), tw.parse("text").text)
tw.without_gpu()
tw.install_as_tilelang()
tw.plot(kernel, "a").save("x.svg")
op = tw.custom_op("mine::f", add)
print(op(1), tw.par_compile([product], [(1, 2)]) if False else None)
with tw.set_autotune_inputs(c):
    tuned(5)
try:
    print(kernel.get_profiler(tw.TensorSupplyType.Auto).run_once())
except tw.LaunchError as error:
    print(error.code, error.help, error.line)
'''
IN_BODY = """import tilewright as tw
import tilewright.language as T


@tw.jit
def doubled(A: T.Tensor, scale: float = 2.0):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
        for i in T.Parallel(128):
            B[bx * 128 + i] = A[bx * 128 + i] * scale
    return B
"""
WRONG = """import tilewright as tw
import tilewright.language as T

@T.prim_func
def program(A: T.Tensor[[64], T.float16]):
    with T.Kernel(1, threads=32):
        s = T.alloc_sharde([64], "float16")
        T.copy(A[0])
        T.gemm(A, A, A, transpose_b=True)
        A.shap[0] = 1

tw.compile(program).explian()
"""


def pyright(folder, mode, **rules):
    """What Pyright says of the files of a folder: (file, line, message)."""
    settings = {"typeCheckingMode": mode, "extraPaths": [PACKAGE], **rules}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "-p", str(folder), "--pythonpath", sys.executable, "--outputjson"]
    ran = subprocess.run(command, capture_output=True, text=True)
    said = json.loads(ran.stdout)
    assert said["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py"))), ran.stdout + ran.stderr
    return [(pathlib.Path(d["file"]).name, d["range"]["start"]["line"] + 1, d["message"]) for d in said["generalDiagnostics"]]


def mypy(folder, cache):
    """What mypy prints of the files of a folder. It looks into no torch, which takes it longer than all the rest."""
    (folder / "mypy.ini").write_text("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\n")
    environment = {**os.environ, "MYPYPATH": PACKAGE, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-m", "mypy", "--cache-dir", cache, "--follow-imports", "silent", *(p.name for p in folder.glob("*.py"))]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def documents(folder):
    """The Python of each document as a file with the document's line numbers."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "skills").rglob("*.md"))):
        name, text, source = str(page.relative_to(ROOT)), page.read_text(), ""
        source = ARE_GIVEN.get(name, "")
        for mark, _, python, line in blocks(text):
            if mark == "fails":
                continue
            python = python.replace("from tile_kernels", "from tilewright.kernels")  # the same: install_as_tile_kernels
            source += "\n" * (line - source.count("\n")) + python
        if source and name not in OTHERS:
            (folder / f"page_{page.stem}.py").write_text(source)


def examples(folder):
    for example in (ROOT / "examples").glob("*.py"):
        (folder / example.name).write_text(example.read_text())
    (folder / "all_of_the_package.py").write_text(STRICT)


# A parameter that an annotation in the body describes has two declarations, which this rule forbids whatever their types are.
IN_THE_BODY = {"reportRedeclaration": False}


@needs_pyright
def test_examples_are_right_to_strict_pyright(tmp_path):
    """Every rule of that mode, in every example."""
    examples(tmp_path)
    assert pyright(tmp_path, "strict") == []


@needs_pyright
def test_documents_are_right_to_pyright(tmp_path):
    documents(tmp_path)
    assert pyright(tmp_path, "standard", **IN_THE_BODY) == []


@needs_pyright
def test_annotations_in_the_body_break_one_rule_of_the_strict_mode(tmp_path):
    """With T.Tensor in the signature the other rules hold."""
    (tmp_path / "in_the_body.py").write_text(IN_BODY)
    assert {line for _, line, _ in pyright(tmp_path, "strict")} == {IN_BODY[: IN_BODY.index("def doubled")].count("\n") + 1}
    assert pyright(tmp_path, "strict", **IN_THE_BODY) == []


@needs_pyright
def test_examples_are_held_to_it(tmp_path):
    examples(tmp_path)
    for path in tmp_path.glob("*.py"):
        path.write_text(path.read_text() + "\n\ndef f(x):\n    return x.of_no_type\n")
    assert {name for name, _, _ in pyright(tmp_path, "strict")} == {p.name for p in tmp_path.glob("*.py")}


@pytest.mark.parametrize("which", [examples, documents])
def test_examples_and_documents_are_right_to_mypy(which, tmp_path, cache):
    which(tmp_path)
    ran = mypy(tmp_path, cache)
    assert [line for line in ran.stdout.splitlines() if ": error: " in line] + ran.stderr.splitlines() == []


# The names of tilewright and of its language, and the classes of what they give. The rest is the package's own.
PUBLIC = re.compile(r"tilewright\.(\w+$|language\.|(testing|cost|layouts|puzzles)\.\w+$|puzzles\.(checking\.Checked|puzzle\.(Puzzle|Facts|Mistake))\b|cost\.(Machine|Prediction)\b|"
                    r"(kernel\.Kernel|jitted\.(Jit|Method)|program\.PrimFunc|shown|profiler\.(Profiler|TensorSupplyType)|"
                    r"tuner\.(Tuned|AutoTuner|set_autotune_inputs))\b)")  # fmt: skip


@needs_pyright
def test_the_types_of_the_interface_are_complete(tmp_path):
    command = [sys.executable, "-m", "basedpyright", "--verifytypes", "tilewright", "--ignoreexternal", "--outputjson"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([PACKAGE, *(p for p in sys.path if p)])}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    found = [s for s in json.loads(ran.stdout)["typeCompleteness"]["symbols"] if s["isExported"] and PUBLIC.match(s["name"])]
    assert {f"tilewright.{n}" for n in tw.__all__} <= {s["name"] for s in found}
    assert len(found) > 1000 and [s["name"] for s in found if not s["isTypeKnown"]] == []


@needs_pyright
def test_mistakes_that_pyright_finds(tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    found = {line for _, line, _ in pyright(tmp_path, "standard")}
    assert found == {7, 8, 9, 10, 12}
