"""Device code that is text of the user's: what a program imports, calls of its functions, and whole kernels."""
import os
import re

from . import device_functions
from .copies_in_bulk import TensorMap
from .pointers import Pointer, head_of
from .scopes import Launch
from .trace import OPERATIONS, apply, fail, recording
from .values import Buffer, Expr, Var

_CALL, _POINTER = OPERATIONS["call_function"], OPERATIONS["pointer_for_call"]


def import_source(source=None):
    """CUDA C++ that defines what T.call_extern calls. Engines other than cuda refuse calls of it."""
    tracer = recording("import_source")
    if source and source not in tracer.sources:
        tracer.sources.append(source)


def call_extern(*arguments, dtype=None):
    """Calls a device function by its name: T.call_extern("float32", "f", x), or T.call_extern("f", x, dtype="float32").
    Buffers and T.access_ptr go as pointers, which the function may read and write by. Where it is one of CUDA's own that the
    language has too, the call is the language's, on every engine."""
    if dtype is None:
        dtype, *arguments = arguments
    name, *arguments = arguments
    sources = recording("call_extern").sources
    if not any(re.search(rf"\b{re.escape(name)}\b", text) for text in sources):
        value = device_functions.call(name, arguments, dtype)
        if value is not None:
            return value
    return apply(_CALL, str(dtype), name, [_argument(a) for a in arguments], "\n".join(sources))


def _argument(value):
    if isinstance(value, TensorMap):
        fail("OperandKind", "a call of foreign text with a tensor map", "T.tma_load takes it; give the function the tensor")
    if isinstance(value, Pointer) or (isinstance(value, Buffer) and not isinstance(value, Var)):
        return apply(_POINTER, head_of(value))
    return value


_ENTRY = re.compile(r"__global__\s+(?:void\s+)?(?:__launch_bounds__\s*\([^)]*\)\s*)?(?:void\s+)?(\w+)\s*\(")
_BOUNDS = re.compile(r"__launch_bounds__\s*\([^)]*\)")
# The text names types of its own for what tensors hold (half, __nv_bfloat16): a pointer becomes the one that is asked for.
_CALLER = """
#ifndef TW_GIVEN
#define TW_GIVEN
struct tw_pointer {
  void* at;
  template <class T> __device__ operator T*() const { return (T*)at; }
};
template <class T> __device__ tw_pointer tw_given(T* at) { return {(void*)at}; }
template <class T> __device__ T tw_given(T value) { return value; }
#endif
template <class... T> __device__ void tw_call_%s(T... given) { %s(tw_given(given)...); }
"""


def kernels_in(text):
    """Names of the kernels of a CUDA C++ text."""
    return _ENTRY.findall(text)


def CUDASourceCodeKernel(*blocks, threads=128, source_code_or_path, entry_name, cluster_dims=None):
    """A launch of a kernel that is CUDA C++, text or the path of a file: it gets the program's tensors and numbers in
    their order, and then the dimensions that are known at the call."""
    tracer = recording("CUDASourceCodeKernel")
    text = source_code_or_path
    if isinstance(text, os.PathLike) or (isinstance(text, str) and "\n" not in text and os.path.isfile(text)):
        with open(text, encoding="utf-8") as file:
            text = file.read()
    entries = kernels_in(text)
    if entry_name not in entries:
        fail("SourceMissing", f"the text has no kernel '{entry_name}'. Available entries: {', '.join(entries) or 'none'}",
             "entry_name is the name of a __global__ function of it")  # fmt: skip
    with Launch(*blocks, threads=threads, cluster_dims=cluster_dims):
        device = _BOUNDS.sub("", text).replace("__global__", "__device__") + _CALLER % (entry_name, entry_name)
        given = [p.value for p in tracer.parameters]
        for parameter in tracer.parameters:
            for extent in (*(parameter.shape or ()), *(parameter.strides or ())):
                if hasattr(extent, "symbol") and not any(isinstance(g, Expr) and g.same(extent) for g in given):
                    given.append(extent)
        apply(_CALL, "void", f"tw_call_{entry_name}", [_argument(v) for v in given], device)
