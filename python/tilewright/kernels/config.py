"""On how many multiprocessors kernels that stay there are spread."""

from __future__ import annotations

import functools
import os

from ..trace import fail

_chosen = 0


@functools.cache
def _property(name, without):
    import torch

    if not torch.cuda.is_available():
        return without
    return getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), name)


def get_device_num_sms() -> int:
    """The multiprocessors of the device; the processors of the machine where there is none."""
    return _property("multi_processor_count", os.cpu_count() or 1)


def get_max_smem_per_sm() -> int:
    """Bytes of shared memory of a multiprocessor; those of an H200 where there is no device."""
    return _property("shared_memory_per_multiprocessor", 228 << 10)


def set_num_sms(num_sms: int) -> None:
    """Kernels that stay take so many multiprocessors from here on: 1 up to get_device_num_sms()."""
    global _chosen
    if not isinstance(num_sms, int) or not 0 < num_sms <= get_device_num_sms():
        fail("BadOption", f"set_num_sms: {num_sms!r} multiprocessors", f"the device has {get_device_num_sms()}", also=ValueError)
    _chosen = num_sms


def get_num_sms() -> int:
    """What set_num_sms() said; else all."""
    return _chosen or get_device_num_sms()
