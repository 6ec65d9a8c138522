"""Properties of the CUDA device, by the names of tilelang.carver.arch.driver."""
import ctypes
import functools
import os
import sys

from . import _native

_MAX_SHARED_PER_BLOCK, _MAX_REGISTERS_PER_BLOCK, _MULTIPROCESSORS = 8, 12, 16  # numbers of the driver's attributes
_COMPUTE_MAJOR, _COMPUTE_MINOR, _MAX_SHARED_PER_MULTIPROCESSOR, _MAX_PERSISTING_L2 = 75, 76, 81, 108


@functools.cache
def _driver():
    library = ctypes.CDLL("libcuda.so.1")
    if library.cuInit(0):
        raise RuntimeError("the CUDA driver does not start")
    return library


def get_device_attribute(attribute, device_id=0):
    """One attribute by its number in the CUDA driver."""
    value, handle = ctypes.c_int(), ctypes.c_int()
    driver = _driver()
    if driver.cuDeviceGet(ctypes.byref(handle), device_id) or driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle):
        raise RuntimeError(f"device {device_id} has no attribute {attribute}")
    return value.value


def get_cuda_device_properties(device_id=0):
    import torch

    return torch.cuda.get_device_properties(device_id)


def get_device_name(device_id=0):
    return get_cuda_device_properties(device_id).name


def described():
    """The architecture of a device that is only described; empty where none is pretended."""
    pretended = sys.modules.get("tilewright.pretended_gpu")  # which is imported to pretend
    return pretended.described_arch() if pretended else ""


def get_compute_capability(device_id=0):
    """(major, minor) of the device, whether or not PyTorch has been imported; of the one that is described where a GPU is
    pretended; (0, 0) without a device."""
    if described():
        version = int("".join(c for c in described() if c.isdigit()) or 90)
        return version // 10, version % 10
    if not _native.device_count():
        return 0, 0
    return get_device_attribute(_COMPUTE_MAJOR, device_id), get_device_attribute(_COMPUTE_MINOR, device_id)


def get_architecture(device_id=0):
    """What kernels for the device are compiled for, "sm_90a"; empty without a device."""
    major, minor = get_compute_capability(device_id)
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "") if major else ""


def get_num_sms(device_id=None):
    """Multiprocessors of the device; without one the CPU's cores."""
    if described():
        torch = sys.modules.get("torch")
        return torch.cuda.get_device_properties(0).multi_processor_count if torch else os.cpu_count() or 1
    if _native.device_count():
        return get_device_attribute(_MULTIPROCESSORS, device_id or 0)
    return os.cpu_count() or 1


def get_shared_memory_per_block(device_id=0, format="bytes"):
    return get_device_attribute(_MAX_SHARED_PER_BLOCK, device_id) // {"bytes": 1, "kb": 1 << 10, "mb": 1 << 20}[format]


def get_persisting_l2_cache_max_size(device_id=0):
    return get_device_attribute(_MAX_PERSISTING_L2, device_id)


def get_registers_per_block(device_id=0):
    return get_device_attribute(_MAX_REGISTERS_PER_BLOCK, device_id)


def get_max_dynamic_shared_size_bytes(device_id=0, format="bytes"):
    return get_device_attribute(_MAX_SHARED_PER_MULTIPROCESSOR, device_id) // {"bytes": 1, "kb": 1 << 10, "mb": 1 << 20}[format]
