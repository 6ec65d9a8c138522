"""Kernels that are CUDA C++ text of the user's."""
import pathlib

import pytest
import tilewright as tw
import tilewright.language as T
from tilewright import _native
from tilewright.foreign import kernels_in

TEXT = """
__device__ float halved(float x) { return x / 2; }
extern "C" __global__ void __launch_bounds__(64, 2) scaled(float* from, short* to, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n * m) to[i] = (short)halved(from[i]);
}
"""


def program(text, entry="scaled"):
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(A: T.Tensor((n, m), "float32"), B: T.Tensor((n, m * 2), "float16")):
        T.CUDASourceCodeKernel(T.ceildiv(n * m, 64), threads=64, source_code_or_path=text, entry_name=entry)

    return main


def test_a_kernel_of_text(tmp_path):
    """Tensors in their order, then dimensions by their names; what the program calls half, the text calls short."""
    file = pathlib.Path(tmp_path) / "scaled.cu"
    file.write_text(TEXT)
    for text in (TEXT, file, str(file)):
        made = program(text)
        assert "args=[address(A[0, 0]), address(B[0, 0]), n, m]" in made.script() and "threads(tx: 64)" in made.script()
    source = _native.Kernel(made.program, "cuda", "sm_90a", []).source
    assert kernels_in(source) == ["main_kernel"] and "to[i] = (short)halved(from[i]);" in source


def test_a_kernel_that_the_text_has_not():
    with pytest.raises(tw.CompileError, match="no kernel 'other'. Available entries: scaled"):
        program(TEXT, "other")
    with pytest.raises(tw.CompileError, match="Available entries: none"):
        program("int x;\n", "other")
