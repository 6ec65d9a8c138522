"""Reductions over the threads of a block and exchanges within a warp, in the words that TVM has for them."""
from . import hints
from .dtypes import dtype
from .scopes import Frame, If, Then
from .trace import OPERATIONS, apply, fail, operation, recording
from .values import Tile, Var, load, space_of

_alloc_shared, _alloc_scalar = operation("alloc_shared"), operation("alloc_scalar")
_thread, _extent, _select = operation("get_thread_binding"), operation("get_thread_extent"), operation("if_then_else")
_sync, _shuffle, _shuffle_xor = operation("sync_threads"), operation("shfl_sync"), operation("shfl_xor")
_up, _down, _both = operation("shfl_up"), operation("shfl_down"), operation("logical_and")
_STORE, _STORE_LATER = OPERATIONS["store"], OPERATIONS["store_later"]
_WARP = 32


class Reducer:
    """How two values become one, and the value that changes none: T.comm_reducer(lambda x, y: x + y, [zero])."""

    def __init__(self, combiner, identity):
        self.combine = combiner
        self.identity = identity[0] if isinstance(identity, (list, tuple)) else identity


comm_reducer = Reducer


class Attribute(Frame):
    """T.attr(reducer, "reduce_scope", _): the reducer of T.tvm_thread_allreduce, until the next one is named.
    T.attr(_, "async_scope", 1): elements that go from global to shared memory in the body are there when
    T.ptx_wait_group, or the barrier of T.cp_async_barrier_noinc, says so."""

    kind = "attribute"

    def __init__(self, node, attr_key, value=None):
        self.later = attr_key == "async_scope"
        if self.later:
            return
        if attr_key != "reduce_scope" or not isinstance(node, Reducer):
            fail("BadOption", f"T.attr of '{attr_key}' means nothing here",
                 "the keys it may have are 'reduce_scope', with a T.comm_reducer, and 'async_scope'")  # fmt: skip
        recording("attr").reducer = node

    def open(self, tracer):
        self.builder = tracer.builder
        if self.later:
            tracer.builder = Later(tracer.builder)

    def close(self):
        recording("attr").builder = self.builder


class Later:
    """A builder whose stores from global to shared memory are copies that are waited for."""

    def __init__(self, builder):
        self.builder = builder

    def __getattr__(self, name):
        return getattr(self.builder, name)

    def apply(self, operation, at, *operands):
        copies = operation == _STORE and all(isinstance(o, Tile) for o in operands)
        if copies and [space_of(o.buffer) for o in operands] == ["shared", "global"]:
            operation = _STORE_LATER
        return self.builder.apply(operation, at, *operands)


attr = Attribute


def tvm_thread_allreduce(size, value, predicate, result, *threads, dtype=None):
    """Combines `value` over all threads that differ in these thread indices alone; each of them gets `result`."""
    reducer = recording("tvm_thread_allreduce").reducer
    if reducer is None:
        fail("OutsideProgram", "T.tvm_thread_allreduce without a reducer",
             'write it in: with T.attr(T.comm_reducer(lambda x, y: x + y, [zero]), "reduce_scope", ...)')  # fmt: skip
    extents = [int(_extent(d)) for d in range(3)]
    indices = [_thread(d) for d in range(3)]
    over = [d for d in range(3) if extents[d] > 1 and any(indices[d].same(t) for t in threads if not isinstance(t, int))]
    value = _value(value)
    if predicate is not True:
        value = _select(predicate, value, reducer.identity)
    combined = Var(_alloc_scalar(value.dtype, value).id)
    combined.named = True
    if _within_warps(extents, over):
        _by_shuffles(reducer, combined, extents, over)
    elif over:
        _through_memory(reducer, combined, extents, indices, over)
    apply(_STORE, result, combined)


def _value(of):
    return of if hasattr(of, "same") else load(of)


def _within_warps(extents, over):
    """Whether those that combine are lanes of one warp, at powers of two from each other."""
    below = 1
    for d in range(3):
        if d in over and (extents[d] & (extents[d] - 1) or below & (below - 1) or below * extents[d] > _WARP):
            return False
        below *= extents[d]
    return bool(over) and below % _WARP == 0


def _by_shuffles(reducer, combined, extents, over):
    below = 1
    for d in range(3):
        step = 1
        while d in over and step < extents[d]:
            other = _shuffle_xor(combined, step * below)
            apply(_STORE, combined, reducer.combine(load(combined), other))
            step *= 2
        below *= extents[d]


def _through_memory(reducer, combined, extents, indices, over):
    """Halves that meet: as many roundings of narrow types as the shuffles of a warp make, not one for each thread."""
    shared = _alloc_shared([extents[2], extents[1], extents[0]], combined.dtype)
    at = list(indices)
    apply(_STORE, shared[at[2], at[1], at[0]], combined)
    _sync()
    for d in over:
        step = 1 << (extents[d] - 1).bit_length() - 1
        while step:
            with If(_both(indices[d] < step, indices[d] < extents[d] - step)), Then():
                other = list(at)
                other[d] = indices[d] + step
                mine = shared[at[2], at[1], at[0]]
                apply(_STORE, mine, reducer.combine(load(mine), load(shared[other[2], other[1], other[0]])))
            _sync()
            step //= 2
    for d in over:
        at[d] = 0
    apply(_STORE, combined, load(shared[at[2], at[1], at[0]]))
    _sync()  # before the memory is written again


def tvm_warp_shuffle(mask, value, warp_id, width=_WARP, warp_size=_WARP):
    """The value of lane `warp_id` of the group of `width` lanes."""
    return _shuffle(value, warp_id, width)


def tvm_warp_shuffle_up(mask, value, offset, width=_WARP, warp_size=_WARP):
    """The value of the lane `offset` below."""
    return _up(value, offset, width)


def tvm_warp_shuffle_down(mask, value, offset, width=_WARP, warp_size=_WARP):
    """The value of the lane `offset` above."""
    return _down(value, offset, width)


def shfl_sync(value, srcLane, width=None, mask=None):
    """The value of another lane of the warp. TileLang 0.1.8 has T.shfl_sync(mask, value, srcLane, width): of three arguments a first
    one that is a plain number is a mask, for no lane needs to ask another for it."""
    if isinstance(value, int) and not isinstance(srcLane, int) and width is not None:
        value, srcLane, width, mask = srcLane, width, mask, value
    hints.check("shfl_sync", "mask", mask)
    return _shuffle(value, srcLane, _WARP if width is None else width)
