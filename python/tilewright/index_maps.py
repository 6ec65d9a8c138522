"""Layouts of tiles: by their kind, by a function of the index, by the thread that holds an element. Hints, which change no
result."""
import inspect
import itertools
import math
from collections.abc import Mapping

from .errors import TilewrightError
from .settings import warn_once
from .trace import OPERATIONS, apply, fail, operation, recording
from .values import Buffer, Expr, plain

_set_layout = operation("set_layout")


class AnyLayout:
    """A layout by its kind, or by a function of the index."""

    kind, forward, replicate, takes_copy = "swizzled", None, 1, False
    shape = None  # of the tile that it was made for, where that is known

    def annotate(self, buffer):
        index, image = [], []
        if self.forward is not None:
            index = [apply(OPERATIONS["layout_index"], "i") for _ in buffer.shape]
            image = self.image_of(index)  # a function of copies besides the index places the first of them
        _set_layout(buffer, self.kind, index, image, self.replicate)

    def image_of(self, index, copy=0):
        """What the function gives for an index, a list."""
        arguments = [*index, *([copy] if self.takes_copy else [])]
        try:
            image = self.forward(*arguments)
        except TypeError:
            _need_parameters(self.forward, len(arguments), self.takes_copy)
            raise
        return list(image) if isinstance(image, (tuple, list)) else [image]

    def repeat(self, *times, repeat_on_thread=False, lower_dim_first=True):
        """A layout that is left to the compiler, of a larger tile."""
        return self


def _positional(function):
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds for p in inspect.signature(function).parameters.values())


def _need_parameters(function, count, takes_copy):
    """Refuses a function of a layout that does not take as many arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        last = ", the last of which is the number of a copy" if takes_copy else ""
        fail("OperandKind", f"the function of a layout is called with {count} arguments{last}, and does not take them",
             "it has a parameter for each dimension of the tile: lambda i, j: ...")  # fmt: skip


def _points(shape):
    return itertools.product(*(range(int(e)) for e in shape))


_MOST_POINTS = 4096  # that are looked at, so that annotating takes milliseconds; of a larger tile the ends of each dimension


def _some_points(shape):
    """All points of a tile, or where these are many those near the ends of its dimensions."""
    if math.prod(shape) <= _MOST_POINTS:
        return _points(shape)
    near = max(1, int(_MOST_POINTS ** (1 / len(shape))) // 2)
    return itertools.product(*(sorted({*range(min(e, near)), *range(max(0, e - near), e)}) for e in shape))


def _known(shape):
    """Extents as integers; None where some are known only at run time, or are none."""
    listed = [plain(e) for e in shape] if isinstance(shape, (tuple, list)) else [plain(shape)]
    listed = [e.constant if isinstance(e, Expr) else e for e in listed]
    return [int(e) for e in listed] if all(hasattr(e, "__index__") for e in listed) else None


def need_shape(layout, shape, word, of):
    """Refuses a layout of a tile of another shape."""
    if layout.shape is None:
        return
    given, wanted = _known(layout.shape), _known(shape)
    if given is not None and wanted is not None and given != wanted:
        fail("LayoutFunction", f"{word}: the layout is of a tile ({', '.join(map(str, given))}), but {of} has the shape ({', '.join(map(str, wanted))})",
             "make the layout for what it is given to")  # fmt: skip


def _need_layout(layout, buffer, threads):
    """Refuses what cannot be where a tile's elements lie: places below zero, threads that there are not, two elements in one place."""
    shape, fragment = _known(buffer.shape), isinstance(layout, Fragment)
    if shape is None or not isinstance(layout, _Mapped) or layout.replicate != 1:
        return
    seen = {}
    for point in _some_points(shape):
        try:
            place = layout.at(point)
        except (TypeError, ValueError, TilewrightError):
            return  # it is of run time, or no integer, which is said when it is recorded
        what, at = "", f"element ({', '.join(map(str, point))}) of '{buffer.name}'"
        if min(place) < 0:
            what = f"puts {at} at {min(place)}"
        elif fragment and threads and place[0] >= threads:
            what = f"gives {at} to thread {place[0]}, but a block has {threads}"
        elif place in seen and layout.is_whole:
            what = f"puts {at} where it puts element ({', '.join(map(str, seen[place]))})"
        if what:
            fail("LayoutFunction", f"annotate_layout: the layout {what}", "each element has a place of its own: a thread of the block and a register, or a position")
        seen[place] = point


def _function(given, word):
    if not callable(given):
        fail("OperandKind", f"{word}: the layout is {given!r}, which is no function", "write lambda i, j: ..., one parameter for each dimension")
    return given


class _Mapped(AnyLayout):
    """A layout by a function of the index."""

    kind, is_whole = "function", True  # it says all of where an element lies

    def at(self, index, copy=0):
        """Where an element lies, as integers."""
        return tuple(int(e) for e in self.image_of(index, copy))

    def map_forward_index(self, index):
        """Where the element lies, a number for each dimension; what the index leaves open is an expression."""
        return self.image_of(index)

    def is_equal(self, other):
        """Whether both map every index to the same place."""
        if type(self) is not type(other) or [*self.shape] != [*other.shape] or self.replicate != other.replicate:
            return False
        copies = range(self.replicate)
        return all(self.at(p, c) == other.at(p, c) for p in _points(self.shape) for c in copies)

    def get_input_shape(self):
        return list(self.shape)

    def get_output_shape(self):
        """One more than the largest place, in each dimension."""
        return [1 + max(axis) for axis in zip(*(self.at(p) for p in _points(self.shape)))]


class Layout(_Mapped):
    """An index map of a tile: T.Layout(shape, lambda i, j: ...)."""

    def __init__(self, shape, forward_fn):
        self.shape, self.forward = shape, _function(forward_fn, "T.Layout")

    def expand(self, leading_shape):
        """The layout of a tile with more dimensions before its own: their indices stay as they are."""
        leading = list(leading_shape) if isinstance(leading_shape, (tuple, list)) else [leading_shape]
        if not leading:
            return self
        count = len(leading)

        def forward(*index):
            image = self.forward(*index[count:])
            return [*index[:count], *(image if isinstance(image, (tuple, list)) else [image])]

        return Layout([*leading, *self.shape], forward)

    def repeat(self, dim, factor):
        """The layout `factor` times along a dimension: the number of the copy is the first dimension of the result."""
        rank = len(self.shape)
        if factor < 1 or not -rank <= dim < rank:
            raise ValueError(f"repeat: factor {factor} along dimension {dim} of {rank}; factors are positive")
        if factor == 1:
            return self
        dim %= rank
        extent, shape = self.shape[dim], [*self.shape]
        shape[dim] *= factor

        def forward(*index):
            inner = [i % extent if d == dim else i for d, i in enumerate(index)]
            image = self.forward(*inner)
            return [index[dim] // extent, *(image if isinstance(image, (tuple, list)) else [image])]

        return Layout(shape, forward)


class Fragment(_Mapped):
    """Which thread holds an element, in which register: forward_fn gives (thread, index)."""

    def __init__(self, shape, forward_fn=None, forward_thread_fn=None, replicate=1, forward_index_fn=None):
        if isinstance(replicate, bool) or not isinstance(replicate, int) or replicate < 1:
            fail("BadOption", f"T.Fragment: replicate is {replicate!r}", "it is how many threads hold each element, 1 or more")
        _function(forward_fn or forward_thread_fn, "T.Fragment")
        self.is_whole = forward_fn is not None or forward_index_fn is not None
        self.takes_copy = replicate > 1 and _positional(forward_fn or forward_thread_fn) > len(shape)
        if forward_fn is None:

            def forward_fn(*index):
                plain = index[: len(shape)]
                return forward_thread_fn(*index), forward_index_fn(*plain) if forward_index_fn else 0

        self.shape, self.forward, self.replicate = shape, forward_fn, replicate

    def map_forward_thread(self, index):
        """The thread that holds the element; of several the first."""
        return super().map_forward_index(index)[0]

    def map_forward_index(self, index):
        """In which of its thread's registers the element lies."""
        return super().map_forward_index(index)[1:]


class PartialFragment(Fragment):
    """A fragment whose elements several threads hold parts of, which `combine` joins; where they lie is as in T.Fragment."""

    def __init__(self, shape, forward_fn=None, forward_thread_fn=None, replicate=1, forward_index_fn=None, combine=None):
        super().__init__(shape, forward_fn, forward_thread_fn, replicate, forward_index_fn)
        self.combine = combine


def make_swizzled_layout(buffer=None, k_major=True, allow_pad=True):
    """Spreads the rows of a shared tile over the memory banks."""
    return _of_buffer(buffer, "make_swizzled_layout")


def _of_buffer(buffer, word):
    layout = AnyLayout()
    if isinstance(buffer, Buffer):
        layout.shape = buffer.shape
    elif buffer is not None and not hasattr(buffer, "shape"):
        fail("OperandKind", f"{word} of {buffer!r}", "give it the tile that it is for")
    return layout


make_swizzle_layout = make_swizzled_layout


def make_linear_layout(buffer):
    """Row-major."""
    layout = _of_buffer(buffer, "make_linear_layout")
    layout.kind = "linear"
    return layout


def annotate_layout(layout_map):
    """Where elements of tiles lie. Never changes a result; tensors in global memory stay as their shape and strides say."""
    if not isinstance(layout_map, Mapping):
        fail("OperandKind", f"annotate_layout is given {layout_map!r}", "it takes a dictionary: T.annotate_layout({tile: T.make_swizzled_layout(tile)})", also=AttributeError)
    for buffer, layout in layout_map.items():
        if not isinstance(buffer, Buffer):
            fail("OperandKind", f"annotate_layout of {buffer!r}", "layouts are of tiles: T.annotate_layout({tile: layout})")
        if not callable(layout) and not isinstance(layout, AnyLayout):
            fail("OperandKind", f"annotate_layout: the layout of '{buffer.name}' is {layout!r}",
                 "it is T.make_swizzled_layout(tile), T.Layout(shape, lambda i, j: ...) or T.Fragment(shape, lambda i, j: (thread, index))")  # fmt: skip
        if buffer.scope() == "global":
            warn_once(f"annotate_layout: '{buffer.name}' is in global memory, and stays row-major")
            continue
        if buffer.scope() == "local":
            continue  # each thread's own memory has no other arrangement that anyone could tell
        if callable(layout) and not isinstance(layout, AnyLayout):
            layout = Layout(buffer.shape, layout)
        tracer = recording("annotate_layout")
        _need_fit(layout, buffer)
        if tracer.layouts.setdefault(buffer.id, layout) is not layout:
            warn_once(f"annotate_layout: '{buffer.name}' has a layout already; the last one holds")
        need_shape(layout, buffer.shape, "annotate_layout", f"'{buffer.name}'")
        layout.annotate(buffer)
        _need_layout(layout, buffer, tracer.thread_count)
        if layout.kind == "swizzled" and layout.forward is None:
            tracer.swizzled.add(buffer.id)


def _need_fit(layout, buffer):
    """Fragments lie in threads, and shared tiles in memory."""
    if isinstance(layout, Fragment) and buffer.scope().startswith("shared"):
        fail("LayoutFunction", f"annotate_layout: '{buffer.name}' is a shared tile, and a T.Fragment says which threads hold elements",
             "write T.Layout(shape, lambda i, j: ...), or T.make_swizzled_layout(tile)")  # fmt: skip
    if type(layout) is AnyLayout and buffer.scope() == "local.fragment":
        fail("LayoutFunction", f"annotate_layout: '{buffer.name}' is a fragment, which lies in registers, and the layout is of memory",
             "leave it out, or write T.Fragment(shape, lambda i, j: (thread, index))")  # fmt: skip
