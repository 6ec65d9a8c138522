"""PyTorch without a GPU, for programs that say "cuda": tensors are the CPU's, and a device is described."""
import contextlib
import time
import types

import torch
from torch.overrides import TorchFunctionMode

from . import pretended_compile, pretended_graphs, pretended_operators, pretended_tf32, profiler
from .device import get_compute_capability


def _on_cpu(value):
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        return "cpu"
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else value


def _numbered(value):
    """A device may be a number too, as torch.cuda.current_device() gives it."""
    return "cpu" if type(value) is int else _on_cpu(value)


_is_cuda = torch.Tensor.is_cuda.__get__
_MOVES = {torch.Tensor.to: 1, torch._C._nn._parse_to: 0}  # which argument is a device, or a dtype, or a tensor


class _Devices(TorchFunctionMode):
    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        if function == _is_cuda:
            return True  # programs ask it of what they are given, and of what they made for the device
        kwargs = {k: _numbered(v) if k == "device" else v for k, v in (kwargs or {}).items() if k != "pin_memory"}
        args = [_on_cpu(a) for a in args]
        at = _MOVES.get(function, len(args))
        args[at : at + 1] = [_numbered(a) for a in args[at : at + 1]]
        return function(*args, **kwargs)


class _Event:
    def __init__(self, *ignored, **also_ignored):
        self.at = 0.0

    def record(self, stream=None):
        self.at = time.perf_counter()

    def elapsed_time(self, end):
        return (end.at - self.at) * 1e3

    def synchronize(self):
        pass

    wait = query = synchronize


class _Stream(contextlib.AbstractContextManager):
    cuda_stream = 0

    def __init__(self, *ignored, **also_ignored):
        pass

    def __exit__(self, *error):
        return None

    def synchronize(self, *ignored):
        pass

    wait_stream = wait_event = record_event = synchronize


class _Properties(types.SimpleNamespace):
    """What the device would say of itself."""


_MakeGenerator = torch.Generator


class _Generator(torch.Generator):
    def __new__(cls, device="cpu"):
        return _MakeGenerator(_on_cpu(device))


def install():
    """From here on "cuda" is the CPU to PyTorch, and the device is the one that is described (pretended_gpu.py)."""
    major, minor = get_compute_capability()
    properties = _Properties(
        name="no device", major=major, minor=minor, multi_processor_count=132, total_memory=2**36,
        warp_size=32, L2_cache_size=50 << 20, shared_memory_per_block=48 << 10, shared_memory_per_multiprocessor=228 << 10, shared_memory_per_block_optin=227 << 10,
        max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536, gcnArchName="",
    )  # fmt: skip
    answers = {
        "is_available": True, "device_count": 1, "current_device": 0, "get_device_capability": (major, minor),
        "get_device_name": properties.name, "get_device_properties": properties, "memory_allocated": 0,
        "max_memory_allocated": 0, "memory_reserved": 0, "mem_get_info": (2**31, 2**36), "is_initialized": True,
    }  # fmt: skip
    for name, value in answers.items():
        setattr(torch.cuda, name, lambda *arguments, value=value, **named: value)
    for name in "synchronize empty_cache set_device manual_seed manual_seed_all reset_peak_memory_stats init".split():
        setattr(torch.cuda, name, lambda *arguments, **named: None)
    torch.cuda._CudaDeviceProperties = _Properties
    for device in (torch.cuda, torch.cpu):  # torch.random asks the module of the device
        device.get_rng_state = lambda device=None: torch.random.get_rng_state()
        device.set_rng_state = lambda state, device=None: torch.random.set_rng_state(state)
    profiler._BACKENDS = dict.fromkeys(profiler._BACKENDS, profiler._by_clock)
    torch.cuda.Event, torch.cuda.Stream = _Event, _Stream
    torch.cuda.current_stream = torch.cuda.default_stream = torch.cuda.stream = torch.cuda.device = _Stream
    torch.Tensor.cuda = lambda self, *arguments, **named: self
    torch.nn.Module.cuda = lambda self, *arguments, **named: self
    default = torch.set_default_device
    torch.set_default_device = lambda device: default(_on_cpu(device))
    torch.Generator = _Generator
    pretended_graphs.install()
    torch.compile = pretended_compile.compile
    pretended_operators.install()
    pretended_tf32.install()
    _Devices().__enter__()
