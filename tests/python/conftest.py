"""Tests of the package: the installed one, or else that of the build tree."""
import ctypes
import importlib.util
import pathlib
import sys
import zlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
if importlib.util.find_spec("tilewright") is None:
    sys.path.insert(0, str(ROOT / "build/release/python"))


def _without_nvrtc(outcome):
    """Where there is no NVRTC nobody has the text of a GPU's code: what asks for it is skipped (TW8001, of tests of texts as well)."""
    error = outcome.excinfo and outcome.excinfo[1]
    if error is not None and "TW8001 cuda: no NVRTC" in str(error):
        outcome.force_exception(pytest.skip.Exception("there is no NVRTC"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    _without_nvrtc((yield))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    _without_nvrtc((yield))


@pytest.fixture(autouse=True)
def numbers_of_a_test(request):
    """Random numbers depend on the test alone, not on those that ran before it in the same process."""
    seed = zlib.crc32(request.node.name.encode())
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
    if numpy is not None:
        numpy.random.seed(seed)
        for name, value in list(vars(request.module).items()):
            if isinstance(value, numpy.random.Generator):
                setattr(request.module, name, numpy.random.default_rng(seed))


@pytest.fixture
def tensor_of_device():
    """Makes an object with DLPack's capsule of a tensor of one dimension on a device that need not be there."""
    class Tensor(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_index", ctypes.c_int32),
                    ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                    ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64),
                    ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]  # fmt: skip

    ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
    ctypes.pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

    class Elsewhere:
        def __init__(self, device_type, device_index, length=4, bits=32):
            self.shape = (ctypes.c_int64 * 1)(length)
            self.tensor = Tensor(4096, device_type, device_index, 1, 2, bits, 1, self.shape, None, 0, None, None)

        def __dlpack__(self):
            return ctypes.pythonapi.PyCapsule_New(ctypes.addressof(self.tensor), b"dltensor", None)

    return Elsewhere
