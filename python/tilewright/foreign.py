"""Device code that is text of the user's: what a program imports, and calls of its functions."""
from .pointers import Pointer, head_of
from .trace import OPERATIONS, apply, recording
from .values import Buffer, Var

_CALL, _POINTER = OPERATIONS["call_function"], OPERATIONS["pointer_for_call"]


def import_source(source=None):
    """CUDA C++ that defines what T.call_extern calls. Engines other than cuda refuse the calls."""
    tracer = recording("import_source")
    if source and source not in tracer.sources:
        tracer.sources.append(source)


def call_extern(*arguments, dtype=None):
    """Calls a device function by its name: T.call_extern("float32", "f", x), or T.call_extern("f", x, dtype="float32").
    Buffers and T.access_ptr go as pointers, which the function may read and write by."""
    if dtype is None:
        dtype, *arguments = arguments
    name, *arguments = arguments
    sources = recording("call_extern").sources
    return apply(_CALL, str(dtype), name, [_argument(a) for a in arguments], "\n".join(sources))


def _argument(value):
    if isinstance(value, Pointer) or (isinstance(value, Buffer) and not isinstance(value, Var)):
        return apply(_POINTER, head_of(value))
    return value
