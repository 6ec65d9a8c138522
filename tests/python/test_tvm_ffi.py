"""Kernels that are exported as libraries of TVM-FFI."""
import ctypes
import os
import subprocess
import sys

import pytest
import tilewright as tw
import tilewright.language as T

N, M = T.dynamic("N, M")


@T.prim_func
def scaled_sum(A: T.Tensor((N, M), "float32"), factor: T.float32, B: T.Tensor((N,), "float32")):
    with T.Kernel(N, threads=32) as bx:
        total = T.alloc_var("float32", 0)
        if T.get_thread_binding() == 0:
            for j in T.serial(M):
                total += A[bx, j]
            B[bx] = total * factor


ENGINES = ["cpu", "interpreter"] + ["cuda"] * (tw._native.device_count() > 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_library_is_a_module_of_tvm_ffi(engine, tmp_path):
    tvm_ffi = pytest.importorskip("tvm_ffi")
    torch = pytest.importorskip("torch")
    library = tmp_path / "kernel.so"
    tw.compile(scaled_sum, engine=engine).export_library(library)
    module = tvm_ffi.load_module(str(library))
    a = torch.randn(5, 40, device="cuda" if engine == "cuda" else "cpu")
    b = torch.empty(5, device=a.device)
    assert module.scaled_sum(a, 2.0, b) is None
    torch.testing.assert_close(b, a.sum(1) * 2)
    module["scaled_sum"](tvm_ffi.from_dlpack(a), 3, tvm_ffi.from_dlpack(b))
    torch.testing.assert_close(b, a.sum(1) * 3)
    with pytest.raises(ValueError, match=r"TW4005 launch: scaled_sum: argument 2 'B' has shape \(5, 40\), but must have 1 dimension"):
        module.scaled_sum(a, 2.0, a)
    with pytest.raises(TypeError, match="argument 1 is no tensor, number or None"):
        module.scaled_sum(a, "two", b)


USER = """
import ctypes, sys
class Any(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("padding", ctypes.c_uint32), ("value", ctypes.c_int64)]
library = ctypes.CDLL(sys.argv[1])
result = Any(-1, 0, 0)
print(library.__tvm_ffi_fill(None, (Any * 1)(Any(1, 0, 7)), 1, ctypes.byref(result)), result.type)
"""


def test_a_library_holds_its_compiled_kernel(tmp_path):
    """Where there is no compiler and no cache it runs all the same; for CPUs it needs nothing but libtilewright.so."""

    @T.prim_func
    def fill(n: T.int32):
        with T.Kernel(1, threads=32):
            if T.get_thread_binding() == 0:
                T.print(n)

    library = tmp_path / "fill.so"
    tw.compile(fill, engine="cpu").export_library(library)
    script = tmp_path / "user.py"
    script.write_text(USER)
    bare = {**os.environ, "TILEWRIGHT_CXX": "/nowhere", "TILEWRIGHT_CACHE_DIR": str(tmp_path / "empty")}
    ran = subprocess.run([sys.executable, script, library], env=bare, capture_output=True, text=True, timeout=60)
    assert ran.stdout.splitlines()[-1] == "0 0" and "7" in ran.stdout + ran.stderr, ran.stderr
    # A library of another place is asked for by name; one that is not there is said.
    bare["TILEWRIGHT_LIBRARY"] = "/nowhere/libtilewright.so"
    ran = subprocess.run([sys.executable, script, library], env=bare, capture_output=True, text=True, timeout=60)
    assert ran.stdout.splitlines()[-1].startswith("-1") and "is not found: set TILEWRIGHT_LIBRARY" in ran.stderr


def test_where_it_cannot_be_written():
    kernel = tw.compile(scaled_sum, engine="cpu")
    with pytest.raises(tw.TilewrightError, match="TW7004.*/nowhere/kernel.so: No such file or directory"):
        kernel.export_library("/nowhere/kernel.so")


def test_names_that_are_none_of_c(tmp_path):
    @T.prim_func
    def größe(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            A[0] = 1

    library = tmp_path / "named.so"
    tw.compile(größe, engine="cpu").export_library(library)
    assert ctypes.CDLL(str(library)).__tvm_ffi_gr____e is not None
