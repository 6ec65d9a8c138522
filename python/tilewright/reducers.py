"""Reducers: tiles that points of Parallel contribute to, each once, and that are read when they are finalized."""
import weakref

from .dtypes import dtype as _dtype
from .hints import check, check_all
from .trace import OPERATIONS, apply, fail, operation
from .types import extents
from .values import Buffer, Tile

_alloc, _finalize, _fill = operation("alloc_reducer"), operation("finalize_reducer"), operation("fill")
_alloc_shared, _copy = operation("alloc_shared"), operation("copy")
_identity_of = {"max": operation("min_value"), "min": operation("max_value")}
_UPDATE = {"max": OPERATIONS["atomic_max"], "min": OPERATIONS["atomic_min"], "bitand": OPERATIONS["atomic_and"],
           "bitor": OPERATIONS["atomic_or"], "bitxor": OPERATIONS["atomic_xor"]}  # fmt: skip
_ADD, _CAST, _CONSTANT = OPERATIONS["update"], OPERATIONS["cast"], OPERATIONS["constant"]
_BITS = ("bitand", "bitor", "bitxor")
_of = weakref.WeakKeyDictionary()  # buffer -> the word of its operation
_open = weakref.WeakSet()  # those that T.reducer_init has begun
_set = weakref.WeakSet()  # those that T.fill or T.clear has set


def alloc_reducer(shape, dtype, op="sum", replication=None):
    """A tile that points of Parallel contribute to, by `op`: sum, max, min, or of integers bitand, bitor, bitxor.
    T.reducer_update contributes, or `+=`; T.finalize_reducer makes it readable."""
    of = _dtype(dtype)
    check("alloc_reducer", "replication", replication)
    if op not in _BITS:
        made = _alloc(extents(shape), of, op)
    elif of.startswith(("int", "uint")):
        made = _alloc_shared(extents(shape), of)
    else:
        fail("ReduceType", f"alloc_reducer: {op} of {of}", "bit operations take integers")
    _of[made] = op
    return made


def _kind(what, reducer):
    if not isinstance(reducer, Buffer) or reducer not in _of:
        fail("ReducerOp", f"{what} of {reducer!r}, which is no reducer", "reducers are allocated by T.alloc_reducer")
    return _of[reducer]


def reducer_init(reducer, init=None):
    """Begins a reduction: from `init`, which counts once in every element, or from what changes nothing."""
    op = _kind("reducer_init", reducer)
    if reducer in _open:
        fail("ReducerOp", f"reducer_init of '{reducer.name}', which has begun", "finalize it before it begins again")
    _open.add(reducer)
    if init is None:
        if op in _identity_of:
            init = _infinite(reducer.dtype, op) or _identity_of[op](reducer.dtype)
        else:
            init = apply(_CONSTANT, -1 if op == "bitand" else 0, reducer.dtype)
    _fill(reducer, apply(_CAST, init, reducer.dtype) if hasattr(init, "dtype") else init)


def _infinite(of, op):
    """The bound that no number is beyond, of types that have one."""
    if of not in ("float16", "float32", "float64", "bfloat16"):
        return None
    infinity = operation("infinity")(of)
    return infinity if op == "min" else -infinity


def noted_as_set(buffer):
    """The buffer, which is about to be filled: a reducer has begun with that."""
    if isinstance(buffer, Buffer) and buffer in _of:
        _set.add(buffer)
    return buffer


def reducer_update(target, value):
    """Contributes a value to an element of a reducer: T.reducer_update(acc[i], x)."""
    if not isinstance(target, Tile) or not target.is_element:
        fail("NeedsElement", "reducer_update expects `acc[indices]` as its first argument", "write T.reducer_update(acc[i], x)")
    op = _kind("reducer_update", target.buffer)
    if target.buffer not in _open and target.buffer not in _set:
        fail("ReducerOp", f"reducer_update of '{target.buffer.name}', which has not begun", "T.reducer_init(acc) or T.fill(acc, value) comes before")
    if op == "sum":
        apply(_ADD, "+", target, value)
    else:
        apply(_UPDATE[op], target, value)


def finalize_reducer(reducer, dst=None, batch=1, annotations=None):
    """Makes a reducer readable, or writes what it holds to `dst`; batch, how many elements are joined at once, changes no
    result."""
    check_all("finalize_reducer", annotations=annotations, **({} if isinstance(batch, int) else {"batch": batch}))
    _open.discard(reducer), _set.discard(reducer)
    if isinstance(reducer, Buffer) and _of.get(reducer) in _BITS:
        if dst is not None:
            _copy(reducer, dst)
        return
    _finalize(reducer, dst, batch)


__all__ = ["alloc_reducer", "finalize_reducer", "reducer_init", "reducer_update"]
