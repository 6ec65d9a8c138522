"""CUDA texts that the host's compiler compiles, with checks of what C++ leaves undefined (tests/fake_cuda/device.h)."""
import ctypes
import pathlib
import shutil
import subprocess
import sys

import pytest

np = pytest.importorskip("numpy")

ROOT = pathlib.Path(__file__).parents[2]
FAKES = ROOT / "build/release/tests"
pytestmark = pytest.mark.skipif(not (FAKES / "libhost_nvrtc.so").exists() or not shutil.which("g++"), reason="the build tree has what this runs")

TEXT = r"""
extern "C" __global__ void __launch_bounds__(32) kernel(int* to, int n) {
  const int tx = threadIdx.x;
  to[tx] = %s;
}
"""

# In a process of its own: the driver's stand-in is loaded once.
RUN = r"""
import ctypes, sys
nvrtc, driver = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
program, size, context = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_void_p()
nvrtc.nvrtcCreateProgram(ctypes.byref(program), sys.stdin.read().encode(), None, 0, None, None)
assert nvrtc.nvrtcCompileProgram(program, 0, None) == 0
nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
image = ctypes.create_string_buffer(size.value)
nvrtc.nvrtcGetCUBIN(program, image)
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxPushCurrent_v2(context)
module, function = ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuModuleLoadData(ctypes.byref(module), image) == 0
assert driver.cuModuleGetFunction(ctypes.byref(function), module, b"kernel") == 0
class Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]
memory, n = (ctypes.c_int * 32)(), ctypes.c_int(int(sys.argv[3]))
pointer = ctypes.c_void_p(ctypes.addressof(memory))
parameters = (ctypes.c_void_p * 2)(ctypes.addressof(pointer), ctypes.addressof(n))
result = driver.cuLaunchKernelEx(ctypes.byref(Config((1, 1, 1), (32, 1, 1))), function, parameters, None)
text = ctypes.c_char_p()
driver.cuGetErrorString(result, ctypes.byref(text))
print(text.value.decode() if result else list(memory)[:4])
"""


def run(value, n):
    done = subprocess.run([sys.executable, "-c", RUN, FAKES / "libhost_nvrtc.so", FAKES / "libfake_cuda.so", str(n)], input=TEXT % value, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("value, n, result", [
    ("n + tx", 5, "[5, 6, 7, 8]"),
    ("__shfl_xor_sync(0xffffffffu, tx, 1) + n", 0, "[1, 0, 3, 2]"),
    ("n + tx", 2147483647, "2147483647 + 1 is no 'int' at kernel.cu:4:14:   to[tx] = n + tx;"),
    ("-(tx * 536870912) + n", 7, "4 * 536870912 is no 'int' at kernel.cu:4"),
    ("tx << n", 32, "0 is shifted by 32 at kernel.cu:4"),
    ("(int)((float)n * 2.0f)", 2147483647, "a 'float' that no 'int' holds at kernel.cu:4"),
])  # fmt: skip
def test_what_is_undefined_is_told(value, n, result):
    assert result in run(value, n)


def check(program, *values):
    """What `tilewright check` says, with the host for a device."""
    env = {"TILEWRIGHT_LIBCUDA": FAKES / "libfake_cuda.so", "TILEWRIGHT_NVRTC": FAKES / "libhost_nvrtc.so", "TILEWRIGHT_CACHE_SIZE": "0"}
    command = ["env", *(f"{k}={v}" for k, v in env.items()), ROOT / "build/release/tilewright", "check", "-", *values]
    return subprocess.run(command, input=program, capture_output=True, text=True)


def program_file(name):
    text = (ROOT / "tests/engines/programs" / f"{name}.tile").read_text()
    return text, next((line for line in text.splitlines() if line.startswith("#=")), "#=")[2:].split()


@pytest.mark.parametrize("name", ["loops/fewer_turns_from_below", "maps/names_of_the_largest", "maps/read_by_who_stored",
                                  "maps/stored_by_matrices", "plans/begins_beyond_32_bits"])
def test_programs_of_the_engines_agree(name):
    text, values = program_file(name)
    done = check(text, *values)
    assert done.returncode == 0 and "cuda" in done.stdout and "does not take" not in done.stdout, done.stdout + done.stderr


INDICES = """program p {{
  param n: int64
  param A: float32[8, 64]
  param B: float32[8, 64]
  launch l(bx: 1) threads(tx: 64) {{
    shared S: float32[4, 64]
    copy from=A[{0} : 4, 0 : 64] to=S
    copy from=S to=B[0 : 4, 0 : 64]
    B[5, tx] = A[{0}, tx]
    map i in 2, j in 64 {{
      B[6 + i, j] = A[{0} + int64(i * 2), j]
    }}
  }}
}}
"""


@pytest.mark.parametrize("index, n", [("n * 4194304", 2**40 + 1), ("n * 4611686018427387904 + 1", 3), ("n * n - 9", 3037000500), ("int64(int32(n) * 65536) + 1", 65536)])
def test_offsets_of_what_nobody_loads_may_leave_64_bits(index, n):
    done = check(INDICES.format(index), f"n={n}")
    assert done.returncode == 0 and "cuda" in done.stdout and "does not take" not in done.stdout, done.stdout + done.stderr
