"""Machines that tiles are chosen for."""
import os
import re

from .. import _native
from ..cost import Machine, machines
from ..trace import fail

# Devices that the cost model has no numbers of: the nearest of those that it has.
_NEAREST = {"rtx-40": "L40S", "rtx40": "L40S", "l40": "L40S", "l4": "L40S", "rtx-30": "A100", "rtx30": "A100", "a10": "A100", "h20": "H100",
            "gh200": "H200", "gb200": "B200"}  # fmt: skip
_SHARED = {80: 166912, 89: 101376, 90: 232448}  # bytes that a block may use, by compute capability
_TENSOR = {80: ("float16", "bfloat16", "int8", "float64", "tfloat32"), 89: ("float16", "bfloat16", "int8", "float8_e4m3", "float8_e5m2"),
           90: ("float16", "bfloat16", "int8", "float8_e4m3", "float8_e5m2", "float64", "tfloat32")}  # fmt: skip


class TileDevice:
    """A machine that tiles are chosen for: how much of it a block may use. A class of one's own may change any of it."""

    platform = "unknown"
    compute_capability = "unknown"
    reg_cap = 0  # registers of a block
    smem_cap = 0  # bytes of shared memory that a block may use
    max_smem_usage = 0  # of a multiprocessor
    compute_max_core = 0  # multiprocessors, or cores
    warp_size = 1
    sm_partition = 1
    l2_cache_size_bytes = 0
    transaction_size = (32, 128)  # bytes
    bandwidth = (0, 0)  # MB a second: of the memory, of shared memory on all multiprocessors
    target = None
    machine = None  # of the cost model

    def get_avaliable_tensorintrin_shapes(self):
        return []

    def __repr__(self):
        return f"{type(self).__name__}({self.target})"


class TensorInstruction:
    """An instruction on matrices: rows and columns of what it makes."""

    def __init__(self, name, shape):
        self.name, self.shape = name, shape


class CUDA(TileDevice):
    """A GPU by its target: "cuda" is the one that is here, or an H200; "H100", "cuda -arch=sm_80", "nvidia/nvidia-a100" name
    one. What the cost model has no numbers of is taken as the nearest that it has: `machine` says which."""

    platform = "CUDA"
    warp_size, sm_partition, reg_cap = 32, 4, 65536

    def __init__(self, target="cuda"):
        self.target = target
        self.machine = target if isinstance(target, Machine) else machines()[_named(str(target))]
        m = self.machine
        self.sm_version = int(re.search(r"\d+", m.arch)[0])
        self.name, self.compute_capability = m.name, str(self.sm_version)
        self.smem_cap = _SHARED[self.sm_version]
        self.max_smem_usage = self.smem_cap
        self.compute_max_core = int(m.multiprocessors)
        self.bandwidth = (int(m.memory_bytes), int(m.shared_bytes * m.clock * m.multiprocessors))

    def get_avaliable_tensorintrin_shapes(self):
        self.available_tensor_instructions = [TensorInstruction("mma", [16, 8])]
        if is_hopper_arch(self):
            self.available_tensor_instructions.insert(0, TensorInstruction("wgmma", [64, 256]))
        return [instruction.shape for instruction in self.available_tensor_instructions]


class CPU(TileDevice):
    """The processor: tiles are chosen by what its caches hold."""

    platform = "CPU"
    # Of a core: bytes of its second cache, of a vector, and what it does in a clock, as a server of today has them (assumed).
    smem_cap = max_smem_usage = 1 << 20
    vector_bytes, multiply_adds, gigahertz, core_gigabytes = 64, 32, 3.0, 10.0

    def __init__(self, target="llvm"):
        self.target = target
        self.compute_max_core = os.cpu_count() or 1
        self.bandwidth = (int(1000 * self.core_gigabytes * self.compute_max_core), 0)


class CDNA(TileDevice):
    """Another maker's machine: known by name, and chosen for by nobody here."""

    platform = "CDNA"

    def __init__(self, target="hip"):
        self.target = target


def _named(target):
    """The name of the machine that a target means."""
    lowered, known = target.lower(), machines()
    words = re.split(r"[^a-z0-9]+", lowered)
    for name in known:
        if name.lower() in words:
            return name
    arch = re.search(r"sm_?(\d+)", lowered)
    if arch:
        for name, machine in known.items():
            if re.search(r"\d+", machine.arch)[0] == arch[1]:
                return name
    for part, name in _NEAREST.items():
        if part in lowered:
            return name
    if words[0] == "cuda" and not arch:
        return _device_here() or "H200"
    fail("BadOption", f"the cost model knows no machine '{target}'",
         f"it is one of {', '.join(known)}, an architecture (\"cuda -arch=sm_80\"), or one of tilewright.cost.Machine", also=ValueError)  # fmt: skip


def _device_here():
    """The name of the machine of the model that the device is, if there is one."""
    if not _native.device_count():
        return None
    from ..device import get_device_name

    name = get_device_name()
    return next((known for known in machines() if known in name), None)


def get_arch(target="cuda"):
    """The machine of a target's kind."""
    kind = str(getattr(getattr(target, "kind", None), "name", target))
    if kind.startswith(("llvm", "cpu", "c ")) or kind == "c":
        return CPU(target)
    return CDNA(target) if kind.startswith(("hip", "rocm")) else CUDA(target)


def auto_infer_current_arch():
    return get_arch("cuda")


def is_cuda_arch(arch):
    return isinstance(arch, CUDA)


def is_cpu_arch(arch):
    return isinstance(arch, CPU)


def is_cdna_arch(arch):
    return isinstance(arch, CDNA)


def is_volta_arch(arch):
    return is_cuda_arch(arch) and 70 <= arch.sm_version < 80


def is_ampere_arch(arch):
    return is_cuda_arch(arch) and 80 <= arch.sm_version < 89


def is_ada_arch(arch):
    return is_cuda_arch(arch) and arch.sm_version == 89


def is_hopper_arch(arch):
    return is_cuda_arch(arch) and arch.sm_version == 90


def has_mma_support(arch):
    return is_cuda_arch(arch) and arch.sm_version >= 80


def is_tensorcore_supported_precision(in_dtype, accum_dtype, arch):
    """Whether an instruction on matrices takes operands of this type."""
    return is_cuda_arch(arch) and str(in_dtype).removesuffix("fn") in _TENSOR[arch.sm_version]
