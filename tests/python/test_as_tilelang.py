"""Programs that say `import tilelang` run untouched, in processes of their own."""
import importlib.util
import os
import subprocess
import sys
import textwrap
import warnings

import pytest
import numpy as np
import tilewright
import tilewright as tw
import tilewright.language as T
from tilewright import settings

# Where TileLang itself is installed, it is what such programs get.
alone = pytest.mark.skipif(importlib.util.find_spec("tilelang") is not None, reason="TileLang itself is installed")

PROGRAM = """
import sys
import tilelang
import tilelang.language as T
from tilelang.jit import JITKernel
from tilelang.profiler import do_bench
import tilelang.testing
import numpy as np

@tilelang.jit(out_idx=[1], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: False, tilelang.PassConfigKey.TL_A.value: 1}, target="cuda")
def double(N):
    @T.prim_func
    def main(A: T.Tensor((N,), T.float32), B: T.Tensor((N,), T.float32)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] * 2
    return main

kernel = double(8)
assert isinstance(kernel, JITKernel) and kernel(np.ones(8, "float32")).tolist() == [2] * 8
print("right", sys.argv[1:], tilelang.__version__)
"""


def python(*arguments, **environment):
    folder = os.path.dirname(os.path.dirname(tilewright.__file__))
    path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "TILEWRIGHT_ENGINE": "interpreter", **environment}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


@alone
def test_scripts_run_by_the_package(script):
    run = python("-m", "tilewright", "run", str(script), "--size", "4")
    assert run.stdout.startswith("right ['--size', '4'] 0.1."), run.stderr


def test_numbers_of_64_bits_are_no_numbers_of_6(tmp_path):
    file = tmp_path / "program.py"
    file.write_text("""import tilelang
import tilelang.language as T
import numpy as np

@T.prim_func
def main(s: T.float64, O: T.Tensor((1,), T.float64)):
    with T.Kernel(1, threads=32):
        O[0] = s * 2

o = np.zeros(1)
tilelang.compile(main)(1.25, o)
print(o[0])
""")
    run = python("-m", "tilewright", "run", str(file))
    assert run.stdout == "2.5\n", run.stderr


@alone
def test_pytest_plugin(tmp_path):
    file = tmp_path / "test_program.py"
    file.write_text("def test():\n" + textwrap.indent(PROGRAM, "    "))
    run = python("-m", "pytest", "-q", "-p", "tilewright.as_tilelang", str(file))
    assert "1 passed" in run.stdout, run.stdout


def test_an_installed_tilelang_is_not_hidden(tmp_path):
    (tmp_path / "tilelang.py").write_text("original = True\n")
    install = "import sys; sys.path.insert(0, sys.argv[1])\nimport tilewright\ntilewright.install_as_tilelang({})\nimport tilelang\nprint(hasattr(tilelang, 'jit'))"
    refused = python("-c", install.format(""), str(tmp_path))
    assert refused.returncode and "TileLang itself is installed" in refused.stderr
    assert python("-c", install.format("force=True"), str(tmp_path)).stdout == "True\n"


def test_importing_takes_the_standard_library_and_our_own_modules():
    """What makes an import slow is who comes with it (0.08 s on a quiet machine); how long it takes is the machine's."""
    code = "import sys; before = set(sys.modules); import tilewright; print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    found = set(python("-c", code).stdout.split())
    assert found - set(sys.stdlib_module_names) == {"tilewright"}


def test_unknown_options_are_named_once():
    code = "import tilewright as tw, warnings\nfrom tilewright.kernel import options_of\nwarnings.simplefilter('always')\noptions_of({'no.such': 1}); options_of({'no.such': 1}); options_of({'tl.disable_tma_lower': True})"
    assert python("-c", code).stderr.count("'no.such' is not known") == 1


@alone
def test_some_mistakes_are_reported_when_a_program_is_compiled(tmp_path):
    """Under TileLang's name, as it does."""
    (tmp_path / "late.py").write_text(
        "import tilelang, tilelang.language as T\n"
        "@T.prim_func\n"
        "def main(A: T.Tensor((8,), 'float32')):\n"
        "    with T.Kernel(1, threads=32):\n"
        "        for i in T.Parallel(8):\n"
        "            for j in T.Pipelined(2):\n"
        "                A[i] = j\n"
        "try:\n    tilelang.compile(main)\nexcept ValueError as error:\n    print(str(error).splitlines()[1].strip())\n"
    )
    column = ":13" if sys.version_info >= (3, 11) else ""  # which tells where expressions are
    assert python("-m", "tilewright", "run", str(tmp_path / "late.py")).stdout.endswith(f"late.py:6{column}\n")


@alone
def test_float32_is_multiplied_as_tfloat32(tmp_path):
    """Under TileLang's name, as the tensor cores do: what tfloat32 does not hold is left out."""
    (tmp_path / "product.py").write_text(
        "import numpy as np\nimport tilelang, tilelang.language as T\n"
        "@T.prim_func\n"
        "def main(A: T.Tensor((16, 16), 'float32'), B: T.Tensor((16, 16), 'float32'), C: T.Tensor((16, 16), 'float32')):\n"
        "    with T.Kernel(1, threads=32):\n"
        "        a, b, c = T.alloc_shared((16, 16), 'float32'), T.alloc_shared((16, 16), 'float32'), T.alloc_fragment((16, 16), 'float32')\n"
        "        T.copy(A, a), T.copy(B, b), T.clear(c)\n"
        "        T.gemm(a, b, c)\n"
        "        T.copy(c, C)\n"
        "x = np.eye(16, dtype='float32') * (1 + 1.5 * 2**-11)\n"
        "for options in (None, {'tilewright.tf32': False}):\n"
        "    print((tilelang.compile(main, out_idx=[2], pass_configs=options)(x, np.eye(16, dtype='float32')) == np.eye(16)).all())\n"
    )
    run = python("-m", "tilewright", "run", str(tmp_path / "product.py"))
    assert run.stdout.split() == ["True", "False"], run.stdout + run.stderr
    native = (tmp_path / "product.py").read_text().replace("import tilelang, tilelang.language as T", "import tilewright as tilelang, tilewright.language as T")
    (tmp_path / "native.py").write_text(native)
    assert python(str(tmp_path / "native.py")).stdout.split() == ["False", "False"]
    # Both in one process: each program by the name that it knows.
    (tmp_path / "beside.py").write_text("import tilewright\ntilewright.install_as_tilelang(force=True)\nimport product, native\n")
    run = python(str(tmp_path / "beside.py"))
    assert run.stdout.split() == ["True", "False", "False", "False"], run.stdout + run.stderr


@alone
def test_numbers_in_operators_of_bits_are_of_the_elements_type(tmp_path):
    """Under TileLang's name, as in TVM: (x << 4) >> 4 of an int8 is its low half with a sign. Where the type cannot hold the
    number, and by Tilewright's own name, numbers are int32."""
    body = (
        "import numpy as np\nimport tilelang, tilelang.language as T\n"
        "@T.prim_func\n"
        "def main(A: T.Tensor((16,), 'int8'), B: T.Tensor((16,), 'uint8'), C: T.Tensor((8, 16), 'int32')):\n"
        "    with T.Kernel(1, threads=32):\n"
        "        for i in T.Parallel(16):\n"
        "            C[0, i] = (A[i] << 4) >> 4\n"
        "            C[1, i] = (B[i] >> 4) - (B[i] & 15)\n"
        "            C[2, i] = T.shift_left(B[i], 3)\n"
        "            C[3, i] = 3 << (B[i] & 7)\n"
        "            C[4, i] = (B[i] ^ 255) * (B[i] | 2)\n"
        "            C[5, i] = B[i] << 8\n"
        "            C[6, i] = A[i] & 255\n"
        "            C[7, i] = (A[i] << T.int32(4)) + (B[i] & 15) - 8\n"
        "a, b = np.arange(-120, 136, 16).astype('int8'), (np.arange(16) * 37 + 3).astype('uint8')\n"
        "x, y = a.astype('int32'), b.astype('int32')\n"
        "halves = lambda n: ((n & 15) ^ 8) - 8\n"
        "theirs = [halves(x), ((y >> 4) - (y & 15)) & 255, (y << 3) & 255, (3 << (y & 7)) & 255, ((y ^ 255) * (y | 2)) & 255]\n"
        "ours = [x, (y >> 4) - (y & 15), y << 3, 3 << (y & 7), (y ^ 255) * (y | 2)]\n"
        "both = [y << 8, x & 255, (x << 4) + (y & 15) - 8]\n"
        "for engine in ('interpreter', 'cpu', 'simulator'):\n"
        "    c = np.zeros((8, 16), 'int32')\n"
        "    tilelang.compile(main, engine=engine)(a, b, c)\n"
        "    print((c == theirs + both).all(), (c == ours + both).all())\n"
    )
    (tmp_path / "bits.py").write_text(body)
    run = python("-m", "tilewright", "run", str(tmp_path / "bits.py"))
    assert run.stdout.split() == ["True", "False"] * 3, run.stdout + run.stderr
    (tmp_path / "native.py").write_text(body.replace("import tilelang, tilelang.language as T", "import tilewright as tilelang, tilewright.language as T"))
    run = python(str(tmp_path / "native.py"))
    assert run.stdout.split() == ["False", "True"] * 3, run.stdout + run.stderr


@alone
def test_tiles_that_nothing_writes_hold_zeros_under_tilelangs_name(tmp_path):
    """Which says so; by Tilewright's own name, and where it is asked for, reading one is a mistake."""
    head = "import numpy as np\nimport tilelang, tilelang.language as T\n"
    body = (
        "@T.prim_func\n"
        "def main(A: T.Tensor((2, 16), 'float32'), B: T.Tensor((2, 16), 'float32')):\n"
        "    with T.Kernel(1, threads=32):\n"
        "        s, f = T.alloc_shared((16,), 'float32'), T.alloc_fragment((16,), 'float32')\n"
        "        v = T.alloc_local((1,), 'float32')\n"
        "        T.copy(s, B[0, :])\n"
        "        for i in T.Parallel(16):\n"
        "            B[1, i] = f[i] + v[0] + A[1, i]\n"
        "for engine in ('interpreter', 'cpu', 'simulator'):\n"
        "    for options in (None, {'tilewright.zero_unwritten': False}):\n"
        "        try:\n"
        "            b = np.full((2, 16), 7, 'float32')\n"
        "            tilelang.compile(main, pass_configs=options, engine=engine)(np.ones((2, 16), 'float32'), b)\n"
        "            print((b[0] == 0).all() and (b[1] == 1).all())\n"
        "        except tilelang.TilewrightError as error:\n"
        "            print(error.code)\n"
    )
    (tmp_path / "unwritten.py").write_text(head + body.replace("tilelang.TilewrightError", "__import__('tilewright').TilewrightError"))
    run = python("-m", "tilewright", "run", str(tmp_path / "unwritten.py"))
    assert run.stdout.split() == ["True", "TW1090"] * 3, run.stdout + run.stderr
    assert "TW1090" in run.stderr and "nothing writes 's', which is read: it holds zeros" in run.stderr and "unwritten.py:6" in run.stderr
    (tmp_path / "native.py").write_text(head.replace("import tilelang, tilelang.language", "import tilewright as tilelang, tilewright.language") + body)
    assert python(str(tmp_path / "native.py")).stdout.split() == ["TW1090"] * 6
    # What is written too late, or by what adds to it, is a mistake by any name.
    late = "        T.copy(s, B[0, :])\n        T.copy(A[0, :], s)\n"
    (tmp_path / "late.py").write_text((tmp_path / "unwritten.py").read_text().replace("        T.copy(s, B[0, :])\n", late))
    run = python("-m", "tilewright", "run", str(tmp_path / "late.py"))
    assert run.stdout.split() == ["TW1090"] * 6, run.stdout + run.stderr


def test_frames_of_loops():
    run = python("-c", "import tilewright.as_tilelang as a; a.install(force=True)\n"
                 "import tilelang.language as T\nfrom tvm.script.ir_builder.base import IRBuilderFrame as F\nfrom tvm.tirx.expr import Var\n"
                 "print([isinstance(x, F) for x in (T.serial(4), T.serial(1, 10, 1), T.serial(10, -1, -1), T.serial(1, 10, Var('n', 'int32')), 3)])")  # fmt: skip
    assert run.stdout.strip() == "[True, True, False, False, False]", run.stderr


@alone
def test_numbers_of_a_program_are_shown(tmp_path):
    (tmp_path / "numbers.py").write_text(
        "import tilelang.language as T\nfrom tilelang import tvm\n"
        "@T.prim_func\ndef main(A: T.Tensor((1,), T.float64)):\n    with T.Kernel(1):\n"
        "        x = T.alloc_var(T.float64, init=1e300)\n        A[0] = x + T.float64(2.5) + T.int32(3)\n"
        "seen = []\ntvm.tirx.stmt_functor.post_order_visit(main.body, lambda n: seen.append((n.value, n.dtype, isinstance(n, tvm.tirx.FloatImm))))\n"
        "print(seen)\n"
    )
    run = python("-m", "tilewright", "run", str(tmp_path / "numbers.py"))
    assert run.stdout.strip() == "[(1e+300, 'float64', True), (2.5, 'float64', True)]", run.stderr


CACHED = """
import tilelang
import tilelang.language as T
made = []

def factory(n, options):
    made.append(n)

    @T.prim_func
    def main(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                A[i] = 0

    return main

first = tilelang.cached(factory, None, 8, [1, 2.0])
assert tilelang.cached(factory, None, 8, [1, 2.0]) is first and tilelang.cached(factory, None, 8, [1, 2]) is not first
print(len(made))
"""


@alone
def test_cached_kernels_are_made_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(CACHED)
    ran = python("-m", "tilewright", "run", str(script))
    assert ran.stdout == "2\n", ran.stderr


MARKED = """
import tilelang
import tilelang.language as T
import tvm.tirx as tx
from tvm.ir import PrimExpr
from tvm.tirx.stmt_functor import ir_transform, post_order_visit

@T.prim_func
def main(A: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=32):
        for k in T.serial(2):
            T.evaluate(T.call_extern("handle", "mark", 5, k))
            for i in T.Parallel(8):
                A[i] = A[i] + 1
            T.evaluate(T.call_extern("handle", "keep", 1))

def is_mark(node):
    return isinstance(node, tx.Call) and isinstance(node.args[0], tx.StringImm) and node.args[0].value == "mark"

def strip(node):
    if isinstance(node, tx.Evaluate) and is_mark(node.value):
        assert int(node.value.args[1]) == 5 and isinstance(node.value.args[1], tx.IntImm) and not isinstance(node.value.args[2], tx.IntImm)
        return tx.Evaluate(tx.IntImm("int32", 0))
    return node

seen = []
post_order_visit(main.body, lambda n: seen.append(n.args[0].value) if isinstance(n, tx.Call) and hasattr(n, "args") else None)
print(seen)
body = ir_transform(main.body, None, strip)
made = tx.PrimFunc(params=list(main.params), body=body, ret_type=main.ret_type, buffer_map=dict(main.buffer_map), attrs=main.attrs)
print(main.script().count("mark"), made.script().count("mark"), made.script().count("keep"), made.with_attr("a", 1).attrs["a"], "a" in main.attrs)
for use in (lambda: isinstance(body, tx.BufferStore), lambda: tx.For(1), lambda: ir_transform(main.body, None, lambda n: tx.Evaluate(tx.StringImm("x"))),
            lambda: tx.PrimFunc([], main.body)):
    try:
        use()
    except tilelang.tvm.TVMError as error:
        print(error.code, error.message)
"""


@alone
def test_calls_are_left_out_by_tvm_words(tmp_path):
    (tmp_path / "marked.py").write_text(MARKED)
    run = python("-m", "tilewright", "run", str(tmp_path / "marked.py"))
    assert run.stdout.splitlines() == [
        "['mark', 'keep']",
        "1 0 1 1 False",
        "TW1102 TVM's 'BufferStore' is used, but programs have no such nodes here",
        "TW1102 TVM's 'For' is used, but programs have no such nodes here",
        "TW1101 a call of 'mark' becomes Evaluate, but it can only be left out here",
        "TW1101 'main' is given other parameters, but a program has those that it was recorded with",
    ], run.stdout + run.stderr


@alone
def test_plugins_and_conftests_that_import_tilelang(tmp_path):
    (tmp_path / "conftest.py").write_text("import tilelang.language as T\nimport plugin_of_the_project\npytest_plugins = ['plugin_of_the_project']\n")
    (tmp_path / "plugin_of_the_project.py").write_text("import tilelang\n")
    (tmp_path / "test_program.py").write_text("import tilelang\ndef test_it():\n    assert tilelang.__tilewright__\n")
    run = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "tilewright.as_tilelang", "-p", "plugin_of_the_project", "test_program.py"],
                         cwd=tmp_path, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])})  # fmt: skip
    assert "1 passed" in run.stdout, run.stdout + run.stderr


@alone
def test_a_folder_of_that_name_is_no_package(tmp_path, script):
    (tmp_path / "tilelang" / "docs").mkdir(parents=True)
    run = subprocess.run([sys.executable, "-m", "tilewright", "run", str(script)], cwd=tmp_path, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TILEWRIGHT_ENGINE": "interpreter"})  # fmt: skip
    assert run.stdout.startswith("right"), run.stderr


PROGRAMS_UNDER_JIT = """
import numpy as np
import tilelang, tilelang.language as T

@tilelang.jit(out_idx=-1)
@T.prim_func
def add_one(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            B[i] = A[i] + 1

@tilelang.jit(out_idx=-1)
@T.prim_func
def count(B: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            B[i] = i

a = np.arange(8, dtype="int32")
kernel = add_one()
assert (kernel(a) == a + 1).all() and (add_one(a) == a + 1).all() and kernel() is kernel
made = count()
assert isinstance(made, tilelang.JITKernel) and (made() == a).all() and (count.compile()() == a).all() and "main" in count.get_tir().script()
print("right")
"""


@alone
def test_a_program_under_jit_is_a_factory_as_well(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAMS_UNDER_JIT.replace("def count", "def main").replace("count", "main"))
    run = python("-m", "tilewright", "run", str(file))
    assert run.stdout == "right\n", run.stderr


def test_a_program_of_ours_under_jit_is_its_kernel():
    @tw.jit(out_idx=-1, engine="interpreter")
    @T.prim_func
    def count(B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = i

    assert (count() == np.arange(8)).all() and count.get_tir() is count.prim_func


OLDER = """
import numpy as np
import tilelang, tilelang.language as T
from tilelang import PassConfigKey
@tilelang.jit(out_idx=-1)
@T.prim_func
def double(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            B[i] = A[i] * 2
assert (double(np.ones(8, "float32")) == 2).all()
try:
    PassConfigKey.TL_ENABLE_FAST_MAHT
except AttributeError as error:
    assert "TL_ENABLE_FAST_MATH" in str(error)
from tilelang.engine.callback import register_cuda_postproc_callback
@register_cuda_postproc_callback
def edited(code, target):
    return code
@register_cuda_postproc_callback(override=True)
def edited_too(code, target):
    return code
assert edited("x", None) == "x" and edited_too("y", None) == "y"
tilelang.clear_cache()
space = {}
exec("from tilelang.autotuner import *", space)
assert space["tilelang"] is tilelang and {"autotune", "AutoTuner", "partial", "List", "tvm"} <= set(space)
from tilelang.autotuner import autotune, jit
@autotune(configs=[{"block": 4}, {"block": 8}], keys=["block"], warmup=1, rep=1)
@jit(out_idx=[1], supply_prog=lambda params: [np.ones(8, "float32")], ref_prog=lambda a: a * 2, skip_check=True, profiler="auto", target="auto")
def tuned(block=None):
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(8 // block, threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2
    return main
best = tuned()
assert best.config["block"] in (4, 8) and best.latency > 0
import warnings
def closing_over(factor, function):
    @tilelang.autotune(configs=[{"block": 4}, {"block": 8}], warmup=1, rep=1)
    @tilelang.jit(out_idx=[1])
    def tuned_too(block=None):
        @T.prim_func
        def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
            with T.Kernel(8 // block, threads=32) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = function(A[bx * block + i]) * factor if function else A[bx * block + i] * factor
        return main
    return tuned_too
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    assert closing_over(2, None)().config and not [w for w in heard if "serializable" in str(w.message)]
    assert closing_over(2, lambda x: x + 1)().config
assert ["'function', which 'tuned_too' closes over, is function: not serializable" in str(w.message) for w in heard].count(True) == 1
print("right")
"""


@alone
def test_older_forms(tmp_path):
    (tmp_path / "older.py").write_text(OLDER)
    run = python("-m", "tilewright", "run", str(tmp_path / "older.py"), TILELANG_CACHE_DIR=str(tmp_path / "cache"))
    assert run.stdout == "right\n", run.stderr
    assert run.stderr.count("is not called: CUDA text is not edited here") == 2


MODULES = """
import importlib
import numpy as np
import tilelang, tvm, tilelang.language as T
# Parts of the language, of earlier releases' machinery and of TVM, none of which is in a table.
for name in ("language.v2.builder language.reduce language.experimental.gemm_sp cuda.pipeline intrinsics.mma_sp_macro_generator primitives.utils "
             "common.transform_kind jit.core jit.adapter.wrapper carver.arch.rdna layout.swizzle engine.lower").split():
    importlib.import_module("tilelang." + name)
import tvm.tirx.transform
from tilelang.language.v2.dtypes import float16
from tilelang.carver.template import FlashAttentionTemplate, MatmulTemplate
from tilelang.transform import apply_simplify, LowerTileOp
from tilelang.utils.target import check_cuda_availability
from tilelang.backend import get_backend
from tilelang.primitives.gemm import gemm
from tilelang.engine import lower
assert float16 is T.float16 and callable(lower) and tilelang.engine.lower is lower and isinstance(check_cuda_availability(), bool)
for name in ("tilelang.langage", "tilelang.jit.adaptor", "tilelang.testing.other"):  # what TileLang has not, by far
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    raise AssertionError(name)
for use in (lambda: LowerTileOp(), lambda: get_backend("cuda"), lambda: tvm.IRModule({}), lambda: tvm.tirx.transform.Simplify()):
    try:
        use()
    except tilelang.tvm.TVMError as error:
        assert "TW1102" in str(error), error
    else:
        raise AssertionError(use)

@tilelang.jit(out_idx=[2])
def product(transposed):
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16"), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=32):
            a, b, c = T.alloc_shared((16, 16), "float16"), T.alloc_shared((16, 16), "float16"), T.alloc_fragment((16, 16), "float32")
            T.annotate_padding({a: 8, b: 8})
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            gemm(a, b, c, transpose_B=transposed, block_row_warps=1, block_col_warps=1, warp_row_tiles=16, warp_col_tiles=16, chunk=16)
            T.copy(c, C)
    return apply_simplify(main)
a, b = (np.arange(256).reshape(16, 16) * k % 7 for k in (1, 3))
for transposed in (False, True):
    assert (product(transposed)(a.astype("float16"), b.astype("float16")) == a @ (b.T if transposed else b)).all()
print("right")
"""


@alone
def test_modules_that_no_table_names(tmp_path):
    (tmp_path / "modules.py").write_text(MODULES)
    run = python("-m", "tilewright", "run", str(tmp_path / "modules.py"))
    assert run.stdout == "right\n", run.stderr


SIMPLIFIED = """
import numpy as np
import tilelang, tilelang.language as T
from tilelang.transform import simplify_prim_func
from tilelang.transform.simplify import apply_simplify

def scaled(with_bias, named):
    n, m = T.symbolic("n"), T.symbolic("m")
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), Bias: T.Tensor((m if named else n,), "float32"), s: T.float32, t: T.float32, C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
            for i in T.Parallel(128):
                C[bx * 128 + i] = A[bx * 128 + i] * s + (Bias[i] if with_bias else 0) + (m if named else 0)
    return main

a, bias = np.arange(100, dtype="float32"), np.ones(100, "float32")
def called(kernel, *arguments):
    c = np.zeros(100, "float32")
    kernel(*arguments, c)
    return c
# A tensor that nothing uses is no parameter; numbers stay, and so does a tensor that alone says what m is.
assert (called(tilelang.compile(apply_simplify(scaled(False, False))), a, 2.0, 0.0) == 2 * a).all()
assert (called(tilelang.compile(apply_simplify(scaled(True, False))), a, bias, 2.0, 0.0) == 2 * a + 1).all()
assert (called(tilelang.compile(apply_simplify(scaled(False, True))), a, bias[:7], 2.0, 0.0) == 2 * a + 7).all()
assert (called(tilelang.compile(scaled(False, False)), a, bias, 2.0, 0.0) == 2 * a).all()
made = tilelang.jit(out_idx=[-1])(simplify_prim_func(scaled))
assert (made(False, False)(a, 3.0, 0.0) == 3 * a).all() and made(False, False) is made(False, named=False)

@tilelang.jit(out_idx=[2])
@simplify_prim_func
def doubled(n, k=2.0):
    @T.prim_func
    def main(Unused: T.Tensor((n, n), "int8"), A: T.Tensor((n,), "float32"), Other: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(n):
                C[i] = A[i] * k + (Other[i] if k > 4 else 0)
    return main
assert [p.name for p in doubled(100, 5.0).params] == ["A", "Other", "C"] and (doubled(100, 5.0)(a, bias) == 5 * a + 1).all()
print("right")
"""


@alone
def test_simplified_programs_do_not_take_what_they_do_not_use(tmp_path):
    (tmp_path / "simplified.py").write_text(SIMPLIFIED)
    run = python("-m", "tilewright", "run", str(tmp_path / "simplified.py"))
    assert run.stdout == "right\n", run.stderr


EARLIER = """
import tilelang, tilelang.language as T
from tilelang.intrinsics.mma_macro_generator import INT4TensorCoreIntrinEmitter
from tilelang.intrinsics.mma_sp_macro_generator import SparseTensorCoreIntrinEmitter as Sparse
from tilelang.jit.core import Something

for a_dtype, factor in (("float16", 16), ("float8_e4m3", 16), (T.int8, 16), ("float32", 8)):
    assert Sparse.E_FACTOR_MAP[a_dtype]["int16"] == factor
assert (Sparse.E_REPLICATE_FACTOR["bfloat16"], Sparse.E_REPLICATE_FACTOR["int8"]) == (2, 1)

def annotated(x: Something[int] | None = None): pass
for use in (lambda: INT4TensorCoreIntrinEmitter(chunk=32), lambda: Something(), lambda: Something["a"]["b"] + 1, lambda: 64 // Something.size,
            lambda: len(Something), lambda: [*Something], lambda: range(Something.n), lambda: Something.n < 3, lambda: 1 in Something):
    try:
        use()
    except tilelang.tvm.TVMError as error:
        assert "TW1102" in str(error), error
        assert "int8" in str(error) or "Something" in str(error), error
    else:
        raise AssertionError("nothing is refused")
print("right")
"""


@alone
def test_tables_of_earlier_releases_and_what_is_not_there(tmp_path):
    (tmp_path / "earlier.py").write_text(EARLIER)
    run = python("-m", "tilewright", "run", str(tmp_path / "earlier.py"))
    assert run.stdout == "right\n", run.stderr


def test_options_that_are_misspelt_or_do_nothing(tmp_path):
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = T.exp(A[i])

    def made(**options):
        return tw.compile(main, out_idx=-1, engine="interpreter", **options)

    with pytest.raises(tw.CompileError, match="TW.*there is no option 'tl.enable_fast_maht' of pass_configs\n(.|\n)*the nearest is 'tl.enable_fast_math'"):
        made(pass_configs={"tl.enable_fast_maht": True})
    with pytest.warns(UserWarning, match="the option 'tl.of_next_year' is not known"):
        made(pass_configs={"tl.of_next_year": True})
    with pytest.warns(UserWarning, match="the compiler flag '-ftz=true' is left out"):
        made(compile_flags=["-ftz=true"])
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'pass_config'[\s\S]*the nearest it has: pass_configs"):
        tw.jit(pass_config={})
    assert settings.options_of({"tl.disable_fast_math": True}) == {"fast_math": False}
    assert settings.options_of(None, "--use_fast_math") == {"fast_math": True}
    made(pass_configs={"tl.enable_dump_ir": True, "tl.dump_ir_path": str(tmp_path / "ir")})
    assert (tmp_path / "ir" / "main.interpreter.tile").read_text() == main.script()


def said_of(flags):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = settings.options_of(None, flags)
    return options, [str(warning.message) for warning in caught]


def test_flags_that_change_nothing_are_not_talked_of():
    usual = ["-O3", "-Wno-deprecated-declarations", "-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_BFLOAT16_CONVERSIONS__", "--expt-relaxed-constexpr",
             "--expt-extended-lambda", "--ptxas-options=-v,--register-usage-level=10", "-DNDEBUG", "-std=c++17", "-lineinfo", "-v", "-w"]  # fmt: skip
    assert said_of(usual) == said_of("-O 3 -Xptxas -v -std c++20 -Xptxas -O3") == ({}, [])
    assert said_of([*usual, "--use_fast_math"]) == ({"fast_math": True}, [])


@pytest.mark.parametrize("flags", [["--fmad=false"], "-fmad=false -O3", ["--fmad", "false"], {"tl.device_compile_flags": "--fmad=false"}])
@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
def test_products_and_sums_are_two_operations_where_flags_say_so(flags, engine):
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = A[i] * A[i] - 1

    a, b = np.full(8, 1 + 2**-12, "float32"), np.empty(8, "float32")
    tw.compile(main, engine=engine, **({"pass_configs": flags} if isinstance(flags, dict) else {"compile_flags": flags}))(a, b)
    assert (b == a * a - np.float32(1)).all()
    tw.compile(main, engine=engine, compile_flags="--fmad=true")(a, b)
    assert (b == np.float32(a[0].astype("float64") ** 2 - 1)).all() and b[0] != a[0] * a[0] - np.float32(1)


def test_flags_that_are_left_out_are_one_warning():
    flags = ["-O3", "-prec-div=false", "-DBLOCK=3", "-prec-div=false", "--ptxas-options=-v,--def-load-cache=cg", "-Xptxas -dlcm=ca"]
    _, said = said_of(flags)
    assert said == ["the compiler flags '-prec-div=false', '-DBLOCK=3', '--ptxas-options=--def-load-cache=cg', '-Xptxas=-dlcm=ca' are left out: "
                    "kernels are compiled with flags of their own"]  # fmt: skip
    assert said_of(flags)[1] == []  # it is said once


def test_cuda_text_without_a_gpu():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = A[i] + 1

    kernel = tw.compile(main, out_idx=-1, target="cuda -arch=sm_90a")
    assert "__global__" in kernel.get_kernel_source()
    if not tw._native.device_count():
        assert kernel.engine == os.environ.get("TILEWRIGHT_ENGINE", "cpu") and (kernel(np.ones(8, "float32")) == 2).all()


def test_advice_is_in_pythons_words():
    with pytest.raises(tw.CompileError) as caught:

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            x = T.alloc_shared((8,), "float32")
            with T.Kernel(1, threads=32):
                T.copy(A, x)

    assert "with T.Kernel(...) as bx:" in caught.value.help and "auto" not in str(caught.value)


@alone
def test_whether_a_module_is_there_can_be_asked():
    program = """
import importlib.util, sys, tilewright
tilewright.install_as_tilelang()
names = [n for n in sys.modules if n.partition(".")[0] == "tilelang"]
print(len(names) > 50, [n for n in names if importlib.util.find_spec(n) is None], importlib.util.find_spec("tilelang.no_such_part"))
"""
    ran = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}, capture_output=True, text=True)
    assert ran.stdout == "True [] None\n", ran.stderr


@alone
def test_modules_of_ours_stay_what_they_are_under_another_name():
    """Their relative imports are resolved by __package__, which says what their __spec__ says, or Python warns."""
    program = """
import sys, tilewright
tilewright.install_as_tilelang()
import tilelang.testing, tilelang.profiler, tilelang.layout, tilelang.utils.target
print([n for n, m in sys.modules.items() if n.startswith("tilewright.") and m.__spec__ and m.__package__ != m.__spec__.parent])
print([n for n, m in sys.modules.items() if n.startswith("tilewright.") and m.__name__ == n and m.__spec__.name != n])
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ran.stdout == "[]\n[]\n", ran.stderr


# How modules of one process come to the language, and whether their programs mean TileLang's defaults.
_WAYS_TO_THE_LANGUAGE = {
    "theirs_as_a_module": (True, "import tilelang.language as T", "T."),
    "theirs_beside_its_top": (True, "import tilelang, tilelang.language as T", "T."),
    "theirs_from_its_top": (True, "from tilelang import language as T, jit", "T."),
    "theirs_by_attribute": (True, "import tilelang as tl\nT = tl.language", "T."),
    "theirs_by_full_name": (True, "import tilelang.language", "tilelang.language."),
    "theirs_by_names": (True, "from tilelang.language import prim_func, Tensor, Kernel, alloc_shared, copy", ""),
    "theirs_by_star": (True, "from tilelang.language import *", ""),
    "theirs_from_another_module": (True, "from theirs_as_a_module import T", "T."),
    "theirs_through_another_module": (True, "import theirs_as_a_module as other", "other.T."),
    "theirs_beside_our_name": (True, "import tilewright as tw, sys, tilewright\nimport tilelang.language as T", "T."),
    "ours_as_a_module": (False, "import tilewright.language as T", "T."),
    "ours_beside_compile": (False, "from tilewright import compile\nimport tilewright.language as T", "T."),
    "ours_from_the_top": (False, "from tilewright import language as T", "T."),
    "ours_by_attribute": (False, "import tilewright as tw", "tw.language."),
    "ours_by_names": (False, "from tilewright.language import prim_func, Tensor, Kernel, alloc_shared, copy", ""),
    "ours_by_star": (False, "from tilewright.language import *", ""),
    "ours_from_another_module": (False, "from ours_as_a_module import T", "T."),
    "ours_beside_their_top": (False, "import tilelang\nimport tilewright.language as T", "T."),
    "ours_beside_their_macro": (False, "import tilewright.language as T\nfrom theirs_as_a_module import copied", "T."),
}
_PROGRAM_OF_A_WAY = """
{T}prim_func_
def main(B: {T}Tensor((16,), "float32")):
    with {T}Kernel(1, threads=32):
        s = {T}alloc_shared((16,), "float32")
        {copy}(s, B)
"""


@alone
def test_each_module_has_the_defaults_of_the_name_by_which_it_knows_the_language(tmp_path):
    for name, (_, imports, word) in _WAYS_TO_THE_LANGUAGE.items():
        program = _PROGRAM_OF_A_WAY.replace("{T}prim_func_", "@{T}prim_func").replace("{copy}", "copied" if "macro" in name else "{T}copy").replace("{T}", word)
        extra = "\n@T.macro\ndef copied(a, b):\n    T.copy(a, b)\n" if name == "theirs_as_a_module" else ""
        (tmp_path / f"{name}.py").write_text(imports + "\n" + program + extra)
    (tmp_path / "nested.py").write_text(textwrap.dedent("""
        def theirs():
            import tilelang.language as T
            @T.prim_func
            def main(B: T.Tensor((16,), "float32")):
                with T.Kernel(1, threads=32):
                    T.copy(T.alloc_shared((16,), "float32"), B)
            return main
        def ours():
            import tilewright.language as T
            @T.prim_func
            def main(B: T.Tensor((16,), "float32")):
                with T.Kernel(1, threads=32):
                    T.copy(T.alloc_shared((16,), "float32"), B)
            return main
        """))
    (tmp_path / "eager.py").write_text(textwrap.dedent("""
        import tilewright as tw
        import tilelang.language as T
        @tw.jit
        def theirs(B):
            B: T.Tensor((16,), "float32")
            with T.Kernel(1, threads=32):
                T.copy(T.alloc_shared((16,), "float32"), B)
        """))
    (tmp_path / "all.py").write_text(textwrap.dedent(f"""
        import importlib, linecache, numpy as np, tilewright
        tilewright.install_as_tilelang(force=True)
        for name in {list(_WAYS_TO_THE_LANGUAGE)}:
            program = importlib.import_module(name).main
            print(name, "zero_unwritten" in program.script(), "tf32" in program.script())
            if not name.endswith(("through_another_module", "their_macro")):  # the same text, by exec
                text = open(name + ".py").read()
                linecache.cache[f"<{{name}}>"] = len(text), None, text.splitlines(True), f"<{{name}}>"
                space = {{}}
                exec(compile(text, f"<{{name}}>", "exec"), space)
                assert space["main"].script() == program.script(), name
        import nested, eager
        print("nested", "tf32" in nested.theirs().script(), "tf32" in nested.ours().script())
        print("eager", "tf32" in eager.theirs.get_tir(np.zeros(16, "float32")).script())
        """))
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(tilewright.__file__)), "TILEWRIGHT_ENGINE": "interpreter"}
    run = subprocess.run([sys.executable, "all.py"], capture_output=True, text=True, cwd=tmp_path, env=environment)
    wanted = [f"{name} {theirs} {theirs}" for name, (theirs, *_) in _WAYS_TO_THE_LANGUAGE.items()] + ["nested True False", "eager True"]
    assert run.stdout.splitlines() == wanted, run.stdout + run.stderr


def test_a_star_takes_no_name_from_python():
    import builtins

    space = {}
    exec("from tilewright.language import *", space)
    space.pop("__builtins__")
    assert not [n for n in space if hasattr(builtins, n)]
    missing = [n for n in dir(T) if n not in space and not hasattr(builtins, n)]
    assert not missing and space["gemm"] is T.gemm and space["alloc_shared"] is T.alloc_shared and space["int32"] is T.int32
