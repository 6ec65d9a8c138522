"""What programs written against TileLang ask its objects: kernels, profilers, eager functions, modules of its machinery."""
import numpy as np
import pytest
from test_as_tilelang import alone, python


def run(tmp_path, text):
    file = tmp_path / "program.py"
    file.write_text(text + '\nprint("right")\n')
    run = python("-m", "tilewright", "run", str(file))
    assert run.stdout.endswith("right\n"), run.stderr


_ADD = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1], target="cpu", pass_configs={"tl.disable_tma_lower": True}, compile_flags="-O2")
def add(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = A[i] + 1
    return main

kernel = add(64)
"""


@alone
def test_kernels_say_how_they_were_compiled(tmp_path):
    run(tmp_path, _ADD + """
assert kernel.pass_configs == {"tl.disable_tma_lower": True} and kernel.compile_flags == ["-O2"]
assert kernel.execution_backend == "tvm_ffi" and kernel.verbose is None and kernel.target_host is None
assert kernel.host_source == kernel.get_host_source() and kernel.adapter.get_kernel_source() == kernel.kernel_source
assert kernel.n_regs is None and kernel.n_spills is None and kernel.resource_usage == {}
import numpy as np
assert (kernel.torch_function(np.ones(64, "float32")) == 2).all() and (kernel.adapter.func(np.ones(64, "float32")) == 2).all()
assert add.parse_cache_key(64, b=2, a=1) == ((64,), (("a", 1), ("b", 2)), ())
main = kernel.prim_func
assert tilelang.compile(main, -1, "ctypes").execution_backend == "cython"
assert tilelang.compile(main, -1, "dlpack").execution_backend == "tvm_ffi"
""")  # fmt: skip


@alone
def test_profilers_give_their_inputs(tmp_path):
    pytest.importorskip("torch")
    run(tmp_path, _ADD + """
profiler = kernel.get_profiler()
inputs = profiler._get_inputs()
assert [x.shape for x in inputs] == [(64,)] and len(profiler._get_inputs(with_output=True)) == 2
assert [p.name for p in profiler._get_params()] == ["A"] and [p.name for p in profiler._get_params(with_output=True)] == ["A", "B"]
assert profiler.result_idx == [1] and len(profiler.params) == 2
assert profiler.with_default_adapter(profiler.adapter) is profiler
assert (kernel(*inputs) == inputs[0] + 1).all()
""")  # fmt: skip


def test_addresses_of_eager_functions_become_tensors():
    import tilewright as tw
    import tilewright.language as T

    @tw.jit(target="cpu")
    def add(A: T.ptr, n: int, B: T.ptr, flat: bool = False):
        if flat:
            L = T.const("L")
            A = T.match_buffer(A, [L], "float32")
            B = T.match_buffer(B, [L], "float32")
            with T.Kernel(1, threads=32):
                for i in T.Parallel(L):
                    B[i] = A[i] + n
        else:
            M, N = T.const("M, N")
            A = T.match_buffer(A, [M, N], "float32")
            B = T.match_buffer(B, [M, N], "float32")
            with T.Kernel(1, threads=32):
                for i, j in T.Parallel(M, N):
                    B[i, j] = A[i, j] + n

    a = np.arange(96, dtype="float32").reshape(6, 16)
    b = np.zeros_like(a)
    add(a, 2, b)
    assert (b == a + 2).all()
    b = np.zeros(96, "float32")
    add(a.reshape(-1), 3, b, flat=True)
    assert (b == a.reshape(-1) + 3).all()


@alone
def test_names_of_machinery_are_refused_by_a_code(tmp_path):
    run(tmp_path, """
import tilelang
from tilelang import tvm
from tvm import tirx
from tilewright import CompileError

for use in (lambda: tirx.functor.visitor(object), lambda: tvm.tirx.transform.BindTarget("cuda"), lambda: tirx.functor.some.name()):
    try:
        use()
    except CompileError as error:
        assert error.code == "TW1102" and "functor." in str(error) or "transform.BindTarget" in str(error), error
    else:
        raise AssertionError("it is to be refused")
try:
    tilelang.tileop.gemm(1)
except CompileError as error:
    assert error.code == "TW1102" and "tilelang.tileop.gemm" in str(error), error
""")  # fmt: skip


@alone
def test_products_of_primitives_by_the_module(tmp_path):
    run(tmp_path, """
import tilelang
import tilelang.language as T
import tilelang.primitives as P
from tilelang.layout import make_metadata_layout
import numpy as np

@T.prim_func
def main(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, threads=32):
        As, Bs, c = T.alloc_shared((32, 32), "float16"), T.alloc_shared((32, 32), "float16"), T.alloc_fragment((32, 32), "float32")
        T.annotate_layout({As: make_metadata_layout(As, mma_dtype="float16", arch="9.0")})
        T.clear(c)
        T.copy(A, As)
        T.copy(B, Bs)
        P.gemm(As, Bs, c, transpose_B=True)
        T.copy(c, C)

a = np.eye(32, dtype="float16")
b = np.arange(1024, dtype="float16").reshape(32, 32)
assert (tilelang.compile(main, -1, target="cpu")(a, b) == b.T).all()
""")  # fmt: skip
