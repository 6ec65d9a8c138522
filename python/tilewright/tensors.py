"""Tensors of NumPy, PyTorch and others: views of them for a call, and new ones for its outputs."""
import functools
import sys

from . import _native
from .dtypes import AS_BYTES, dtype


def _is(object, module, name):
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(object, getattr(loaded, name))


def range_of_profiler(name):
    """A range of PyTorch's profiler, which is on, and of NVTX where that emits them. Its __exit__ ends it."""
    return sys.modules["torch.autograd.profiler"].record_function(name).__enter__()


def with_bools(kernel, arguments):
    """The call with int8 and uint8 tensors for parameters of bool, as TileLang takes them: an element is whether it is not 0, and
    those that the program writes become 0 and 1. NotImplemented: none are given."""
    parameters = getattr(getattr(kernel, "prim_func", None), "params", ())
    left_out = set(kernel.outputs) if len(arguments) < len(parameters) else ()
    given, written = list(arguments), []
    for at, index in enumerate(i for i in range(len(parameters)) if i not in left_out):
        of_bytes = at < len(given) and str(getattr(given[at], "dtype", "")).rpartition(".")[2] in ("int8", "uint8")
        if not of_bytes or str(getattr(parameters[index], "dtype", "")) != "bool":
            continue
        bools = given[at] != 0
        if kernel.writes(index):
            written.append((given[at], bools))
        given[at] = bools
    if all(new is old for new, old in zip(given, arguments)):
        return NotImplemented
    result = kernel(*given)
    for tensor, bools in written:
        tensor[...] = bools
    return result


def to_dlpack(tensor):
    """A DLPack capsule of what has no C exchange. Or NumPy's array of its bytes, with the dtype. Or a number of Python for a
    scalar."""
    if _is(tensor, "torch", "Tensor"):
        torch = sys.modules["torch"]
        if tensor.is_neg():
            raise ValueError("its memory holds the numbers of the other sign, as that of z.conj().imag does: pass x.resolve_neg()")
        if tensor.is_cuda:
            _native.set_stream(torch.cuda.current_stream(tensor.device).cuda_stream)
        return torch.utils.dlpack.to_dlpack(tensor.detach())
    if _is(tensor, "cupy", "ndarray"):
        _native.set_stream(sys.modules["cupy"].cuda.get_current_stream().ptr)
    try:
        if not hasattr(tensor, "mask"):
            return tensor.__dlpack__()
    except AttributeError:
        if hasattr(tensor, "item"):  # a number of NumPy
            return tensor.item()
        raise TypeError(
            f"an argument is of type {type(tensor).__name__}; a call takes numbers and tensors (DLPack)"
        ) from None
    except (BufferError, TypeError):
        if not _is(tensor, "numpy", "ndarray"):
            raise
    if hasattr(tensor, "mask"):
        raise ValueError("a masked array, whose mask a kernel would not see: pass x.filled(0), and the mask as a tensor of its own")
    if not tensor.dtype.isnative:
        raise ValueError("a NumPy array whose bytes of its elements are in the other order: pass x.astype(x.dtype.newbyteorder('='))")
    # Types of ml_dtypes, and what is read-only: bytes with a name.
    full = str(dtype(tensor.dtype.name))
    return tensor.view(f"uint{tensor.dtype.itemsize * 8}"), full


_NUMPY = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split())


def pytorch(what):
    """The module torch, which `what` needs."""
    try:
        import torch
    except ImportError:
        from .trace import fail

        fail("OperandKind", f"{what} needs PyTorch, which is not installed", 'pip install "tilewright[torch]"', also=ImportError)
    return torch


def is_numpy(name):
    """Whether NumPy has this dtype by itself."""
    return name in _NUMPY


def empty(example, shape, name, engine):
    """A new tensor beside `example`, the first tensor of the call; without one on the engine's device."""
    torch = sys.modules.get("torch")
    if torch is None and example is None and engine == "cuda":
        torch = pytorch("a GPU's memory for outputs of a call without tensors")
    if torch is not None and (example is None or isinstance(example, torch.Tensor)):
        if example is not None:
            device = example.device
        else:
            device = "cuda" if engine == "cuda" else "cpu"
        return torch.empty(_packed(shape, name), dtype=_torch_dtype(name), device=device)
    import numpy

    if example is not None and not isinstance(example, numpy.ndarray):
        library = sys.modules[type(example).__module__.partition(".")[0]]
        if not hasattr(library, "empty"):
            raise TypeError(f"no output can be made like a {type(example).__name__}: pass the outputs too")
        return library.empty(shape, dtype=name)
    return numpy.empty(_packed(shape, name), dtype=_numpy_dtype(name))


def options(name):
    """What PyTorch's new_empty() is told of a dtype."""
    return {"dtype": _torch_dtype(name)}


@functools.cache
def _torch_dtype(name):
    return dtype(name).as_torch()


def _packed(shape, name):
    """Two elements of 4 bits share a byte."""
    if name not in ("int4", "uint4", "float4_e2m1fn") or not shape:
        return shape
    return (*shape[:-1], (shape[-1] + 1) // 2)


def _numpy_dtype(name):
    if name in _NUMPY:
        return name
    try:
        import ml_dtypes
    except ImportError:
        if name in AS_BYTES:
            return "uint8"
        from .trace import fail

        fail("ArgumentDtype", f"an output is {name}, which NumPy has not: no array can be made for it",
             "pip install ml_dtypes, which NumPy's types are extended by; or call it with PyTorch's tensors")  # fmt: skip
    return getattr(ml_dtypes, name)
