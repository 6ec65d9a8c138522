"""Programs that say "cuda" on a machine without a GPU: kernels are the CPU's, PyTorch's tensors too, and a device is described."""
import importlib.util
import os

from . import _native

NOTE = "no GPU: programs for cuda run on the CPU"
FOR_CHILDREN = "TILEWRIGHT_CHILDREN_WITHOUT_GPU"  # the architecture, for processes of programs for TileLang
_installed = []  # the architecture that the device has


def is_pretended() -> bool:
    """Whether "cuda" means the CPU in this process."""
    return bool(_installed)


def described_arch() -> str:
    """The architecture of the device that is described; empty where none is pretended."""
    return _installed[0] if _installed else ""


def without_gpu(arch: str = "sm_90a") -> None:
    """From here on "cuda" means the CPU in this process: kernels run there (or where TILEWRIGHT_ENGINE says), torch's tensors of
    a device are in its memory, and torch.cuda describes a device of `arch`. Call it first: it cannot be taken back."""
    if _installed:
        return
    _installed.append(arch)
    os.environ[FOR_CHILDREN] = arch
    # The CPU though there be a device; where there is none, `auto` is the interpreter on machines without a compiler.
    os.environ.setdefault("TILEWRIGHT_ENGINE", "cpu" if _native.device_count() else "auto")
    _native.device_count = lambda: 1
    if importlib.util.find_spec("torch") is not None:
        from .pretended_torch import install

        install()
