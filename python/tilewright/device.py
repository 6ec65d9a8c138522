"""Properties of the CUDA device, by the names of tilelang.carver.arch.driver."""
import ctypes
import functools
import os
import sys

_MAX_SHARED_PER_BLOCK, _MAX_REGISTERS_PER_BLOCK, _MULTIPROCESSORS = 8, 12, 16  # numbers of the driver's attributes
_MAX_SHARED_PER_MULTIPROCESSOR, _MAX_PERSISTING_L2 = 81, 108


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


def get_num_sms(device_id=None):
    """Multiprocessors of the device; without one the CPU's cores."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.get_device_properties(device_id or 0).multi_processor_count
    return os.cpu_count() or 1


def get_shared_memory_per_block(device_id=0, format="bytes"):
    return get_device_attribute(_MAX_SHARED_PER_BLOCK, device_id) // {"bytes": 1, "kb": 1 << 10, "mb": 1 << 20}[format]


def get_persisting_l2_cache_max_size(device_id=0):
    return get_device_attribute(_MAX_PERSISTING_L2, device_id)


def get_registers_per_block(device_id=0):
    return get_device_attribute(_MAX_REGISTERS_PER_BLOCK, device_id)


def get_max_dynamic_shared_size_bytes(device_id=0, format="bytes"):
    return get_device_attribute(_MAX_SHARED_PER_MULTIPROCESSOR, device_id) // {"bytes": 1, "kb": 1 << 10, "mb": 1 << 20}[format]
