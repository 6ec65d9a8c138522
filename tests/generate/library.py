"""Runs programs on Tilewright's engines through its C interface (include/tilewright/c_api.h)."""
import ctypes
import functools
import json
import os
import pathlib
import tempfile

# One processor for each worker: teams that wait for work would take it from the others. What is said to an engine counts more.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import compile_many  # noqa: E402
import numpy as np  # noqa: E402
from scalars import GIVEN_AS_BYTES  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


class _Value(ctypes.Union):
    _fields_ = [("integer", ctypes.c_int64), ("number", ctypes.c_double), ("tensor", ctypes.c_void_p)]


class _Argument(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("value", _Value)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_index", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]  # fmt: skip


class _Info(ctypes.Structure):
    _fields_ = [(n, ctypes.c_char_p) for n in ("kind", "code", "area", "message", "help", "text", "file")] + \
               [("line", ctypes.c_int), ("column", ctypes.c_int)]  # fmt: skip


_INT, _UINT, _FLOAT, _TENSOR = 2, 3, 4, 64
_CODES = {"bool": 6, "float8_e4m3fn": 10, "float8_e5m2": 12, "float8_e8m0fnu": 14, "float4_e2m1fn": 17, "bfloat16": 4}


class Refused(Exception):
    """A coded error of Tilewright's."""

    def __init__(self, code, message, text):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.text = code, message, text


class DeviceLost(Exception):
    """A kernel ended the device's context: nothing more runs there in this process."""


_DRIVER_FAILED = "TW8104"  # a call of the driver's, which after a kernel that failed is every call


# A driver and an NVRTC whose kernels run on the host, and tell what is undefined in C++ (tests/fake_cuda/device.h).
_HOST_DEVICE = {"TILEWRIGHT_LIBCUDA": "libfake_cuda.so", "TILEWRIGHT_NVRTC": "libhost_nvrtc.so"}


def stand_in():
    """From now on this process has no other device than the host."""
    for variable, name in _HOST_DEVICE.items():
        os.environ[variable] = str(ROOT / "build/release/tests" / name)


class Device:
    """Memory of device 0, by CUDA's driver."""

    def __init__(self):
        self.driver = ctypes.CDLL(os.environ.get("TILEWRIGHT_LIBCUDA", "libcuda.so.1"))
        context = ctypes.c_void_p()
        self._check(self.driver.cuInit(0), "cuInit")
        self._check(self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
        self._check(self.driver.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent")

    def _check(self, result, what):
        if result:
            name = ctypes.c_char_p()
            self.driver.cuGetErrorName(result, ctypes.byref(name))
            raise DeviceLost(f"{what} gives {(name.value or str(result).encode()).decode()}")

    def take(self, memory):
        """A copy of an array of bytes."""
        address = ctypes.c_uint64()
        self._check(self.driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(memory.nbytes, 1))), "cuMemAlloc")
        self._check(self.driver.cuMemcpyHtoD_v2(address, ctypes.c_void_p(memory.ctypes.data), ctypes.c_size_t(memory.nbytes)), "cuMemcpyHtoD")
        return address

    def give_back(self, address, memory):
        self._check(self.driver.cuMemcpyDtoH_v2(ctypes.c_void_p(memory.ctypes.data), address, ctypes.c_size_t(memory.nbytes)), "cuMemcpyDtoH")
        self._check(self.driver.cuMemFree_v2(address), "cuMemFree")


class Library:
    def __init__(self, path):
        self.device = None  # until a program runs there
        self.lib = ctypes.CDLL(str(path))
        for name in ("tw_program_parse", "tw_compile", "tw_kernel_call", "tw_machine"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.tw_program_text.restype = ctypes.c_char_p
        self.lib.tw_error_get.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        for name in ("tw_error_release", "tw_program_release", "tw_kernel_release", "tw_text_get", "tw_text_release"):
            getattr(self.lib, name).argtypes = [ctypes.c_void_p]
        self.lib.tw_program_text.argtypes = [ctypes.c_void_p]
        self.lib.tw_text_get.restype = ctypes.c_char_p

    def _check(self, error):
        if not error:
            return
        info = _Info()
        self.lib.tw_error_get(error, ctypes.byref(info))
        refused = Refused(info.code.decode(), info.message.decode(errors="replace"), info.text.decode(errors="replace"))
        self.lib.tw_error_release(error)
        if refused.code == _DRIVER_FAILED:
            raise DeviceLost(refused.text)
        raise refused

    def parse(self, text):
        program = ctypes.c_void_p()
        self._check(self.lib.tw_program_parse(text.encode(), b"generated.tile", ctypes.byref(program)))
        return program

    def print_again(self, text):
        """The text of the program that a text gives."""
        program = self.parse(text)
        again = self.lib.tw_program_text(program).decode()
        self.lib.tw_program_release(program)
        return again

    def compile_by_nvrtc(self, text, arch):
        """Compiles the program for a GPU that need not be there. Without NVRTC there would be a text that nobody compiles."""
        if not self._has_nvrtc():
            raise Refused("TW8001", "there is no NVRTC", "TW8001: there is no NVRTC")
        program, kernel = self.parse(text), ctypes.c_void_p()
        try:
            self._check(self.lib.tw_compile(program, b"cuda", arch.encode(), ctypes.byref(kernel)))
        finally:
            if kernel:
                self.lib.tw_kernel_release(kernel)
            self.lib.tw_program_release(program)

    @functools.cache
    def _has_nvrtc(self):
        found = ctypes.c_void_p()
        self._check(self.lib.tw_machine(0, ctypes.byref(found)))
        try:
            return json.loads(self.lib.tw_text_get(found))["nvrtc"]["works"]
        finally:
            self.lib.tw_text_release(found)

    def run(self, text, engine, arch, arguments):
        """Calls the program; `arch` is the GPU of a simulator, or a level of the CPU engine's compiler. Arguments: (dtype name, bits, shape, bytes[, strides]) of tensors, which are written, or numbers."""
        if engine == "cpu":
            choose_compiler(arch)
            arch = ""
        if engine == "host":
            stand_in()
            engine = "cuda"
        program, kernel = self.parse(text), ctypes.c_void_p()
        try:
            self._check(self.lib.tw_compile(program, engine.encode(), arch.encode(), ctypes.byref(kernel)))
            if engine == "cuda":
                self.device = self.device or Device()
            self._call(kernel, arguments, self.device if engine == "cuda" else None)
        finally:
            if kernel:
                self.lib.tw_kernel_release(kernel)
            self.lib.tw_program_release(program)

    def _call(self, kernel, arguments, device):
        array, kept, copies = (_Argument * len(arguments))(), [], []
        for slot, argument in zip(array, arguments):
            if isinstance(argument, float):
                slot.kind, slot.value.number = _FLOAT, argument
            elif isinstance(argument, int):
                slot.kind = _UINT if argument >= 1 << 63 else _INT
                slot.value.integer = argument - (1 << 64) if argument >= 1 << 63 else argument
            else:
                tensor = _tensor(kept, *argument)
                if device:
                    copies.append((device.take(argument[3]), argument[3]))
                    tensor.data, tensor.device_type = copies[-1][0].value, 2
                slot.kind, slot.value.tensor = _TENSOR, ctypes.addressof(tensor)
        self._check(self.lib.tw_kernel_call(kernel, array, ctypes.c_size_t(len(arguments))))
        for address, memory in copies:
            device.give_back(address, memory)


def _tensor(kept, name, bits, shape, memory, strides=None):
    name = "uint8" if name in GIVEN_AS_BYTES else name
    code = _CODES.get(name, 0 if name.startswith("int") else 1 if name.startswith("uint") else 2)
    extents = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    steps = (ctypes.c_int64 * len(strides))(*strides) if strides else None
    tensor = _Tensor(memory.ctypes.data, 1, 0, len(shape), code, 8 if name == "bool" else bits, 1, extents, steps and ctypes.addressof(steps), 0)
    kept += [extents, steps, tensor]
    return tensor


def pack(t, stored):
    """Elements as a host's memory has them: those of 4 bits stand two in a byte."""
    if not t.is_packed:
        return np.ascontiguousarray(stored).view(np.uint8).reshape(-1).copy()
    nibbles = np.ascontiguousarray(stored).view(np.uint8).reshape(-1) & 15
    if len(nibbles) % 2:
        nibbles = np.append(nibbles, np.uint8(0))
    return nibbles[::2] | nibbles[1::2] << 4


def unpack(t, memory, count):
    if not t.is_packed:
        return memory.view(t.storage)[:count]
    nibbles = np.stack([memory & 15, memory >> 4], axis=1).reshape(-1)[:count]
    return ((nibbles << 4).view(np.int8) >> 4) if t.is_signed else nibbles


def find_library():
    """The library of the build tree, or of the installed package."""
    built = ROOT / "build/release/libtilewright.so"
    if built.exists():
        return built
    import tilewright

    return next(pathlib.Path(tilewright.__file__).parent.glob("libtilewright*.so*"))


def leave():
    """Ends a worker as C ends a process: then a build that counts lines writes its counts. multiprocessing leaves that out."""
    ctypes.CDLL(None).exit(0)


compilers = {}  # by level, once prepare() has started them


def choose_compiler(level):
    """Which compiler the CPU engine asks from now on. What is optimized runs on several threads, as users have it."""
    if compilers:
        os.environ["TILEWRIGHT_CXX"] = compilers[level or "quick"]
        os.environ["TILEWRIGHT_THREADS"] = "1" if level in ("", "quick") else "3"


def prepare(scratch=None):
    """The environment in which programs run: a compiler that takes many texts at once, and no cache, since none comes again."""
    scratch = scratch or tempfile.mkdtemp(prefix="tilewright-generate-")
    pathlib.Path(scratch).mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["TILEWRIGHT_CACHE_DIR"], os.environ["TILEWRIGHT_CACHE_SIZE"] = scratch, "0"
    compilers.update(compile_many.start(scratch))
    choose_compiler("quick")
    return scratch
