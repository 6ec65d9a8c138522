"""Kernels of large language models: mixtures of experts, quantization, transposes, engrams, hyper-connections.

import tilewright.kernels as kernels
values, scales = kernels.quant.per_token_cast(x, "e4m3", 128)

Functions take tensors of PyTorch, in the processor's memory or a GPU's. docs/kernels.md lists them.
"""

import importlib
from typing import TYPE_CHECKING

from .config import get_device_num_sms, get_num_sms, set_num_sms

if TYPE_CHECKING:
    from . import config, engram, mhc, modeling, moe, quant, testing, torch, transpose

_PARTS = ("config", "engram", "mhc", "modeling", "moe", "quant", "testing", "torch", "transpose")


def __getattr__(name):
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [*_PARTS, "get_device_num_sms", "get_num_sms", "set_num_sms"]


def __dir__():
    return sorted(__all__)
