"""Pointers to elements, and what takes them: each is written with operations on the elements they point at."""
import math

from .scopes import vectorized
from .trace import OPERATIONS, apply, fail, operation
from .values import Buffer, Tile, Var

_STORE_LATER = OPERATIONS["store_later"]
_select, _reshape, _address = operation("if_then_else"), operation("reshape"), operation("address_of")


def head_of(place, offset=0):
    """The element a buffer, a tile or an element begins with, `offset` elements further on."""
    if isinstance(place, Pointer):
        place, offset = place.head, place.offset + offset
    if isinstance(place, Tile):
        indices = [(0 if i.start is None else i.start) if isinstance(i, slice) else i for i in place.indices]
        return Tile(place.buffer, (*indices[:-1], indices[-1] + offset))
    if isinstance(place, Var):
        return place
    if isinstance(place, Buffer):
        if place.ndim == 1 or not isinstance(offset, int) or offset:
            return (place if place.ndim == 1 else _reshape(place, [math.prod(place.shape)]))[offset]
        return place[(0,) * place.ndim]
    fail("OperandKind", f"{place!r} is no place in memory", "give a buffer, a region or an element of one")


class Pointer:
    """Where something begins: what T.access_ptr gives."""

    def __init__(self, head, access, offset=0):
        self.head, self.access, self.offset = head, access, offset

    @property
    def dtype(self):
        return self.head.dtype


def access_ptr(base, access_type="r", *extents, offset=0, extent=None, ignore_last_ndim=0):
    """A pointer to where a buffer, a region or an element begins; what it may be used for changes no result."""
    if not isinstance(base, (Buffer, Tile)):
        fail("OperandKind", f"T.access_ptr of {base!r}", "give a buffer, a region or an element of one")
    return Pointer(base, access_type, offset)


def address_of(obj):
    """The address of an element: a number where it is of a global tensor, else what foreign functions take as a pointer."""
    base = obj.buffer if isinstance(obj, Tile) else obj
    return Pointer(obj, "rw") if isinstance(base, Buffer) and base.scope() not in ("global", "local.fragment") else _address(obj)


def ptx_cp_async(dst_access_ptr, src_access_ptr, num_elems, predicate=None):
    """This thread copies neighbours from global to shared memory, zeros where `predicate` is false. They are there when
    T.ptx_wait_group, or the barrier of T.cp_async_barrier_noinc, says so."""
    for i in vectorized(num_elems):
        value = head_of(src_access_ptr, i)
        if predicate is not None:
            value = _select(predicate, value, value.dtype(0))
        apply(_STORE_LATER, head_of(dst_access_ptr, i), value)
