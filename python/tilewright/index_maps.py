"""Layouts of tiles: by their kind, by a function of the index, by the thread that holds an element. Hints, which change no
result."""
import inspect
import itertools

from .settings import warn_once
from .trace import OPERATIONS, apply, fail, operation, recording
from .values import Buffer

_set_layout = operation("set_layout")


class AnyLayout:
    """A layout by its kind, or by a function of the index."""

    kind, forward, replicate, takes_copy = "swizzled", None, 1, False

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


class _Mapped(AnyLayout):
    """A layout by a function of the index."""

    kind = "function"

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
        self.shape, self.forward = shape, forward_fn

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
    return AnyLayout()


make_swizzle_layout = make_swizzled_layout


def make_linear_layout(buffer):
    """Row-major."""
    layout = AnyLayout()
    layout.kind = "linear"
    return layout


def annotate_layout(layout_map):
    """Where elements of tiles lie. Never changes a result; tensors in global memory stay as their shape and strides say."""
    for buffer, layout in layout_map.items():
        if isinstance(buffer, Buffer) and buffer.scope() == "global":
            warn_once(f"annotate_layout: '{buffer.name}' is in global memory, and stays row-major")
            continue
        if isinstance(buffer, Buffer) and buffer.scope() == "local":
            continue  # each thread's own memory has no other arrangement that anyone could tell
        if callable(layout) and not isinstance(layout, AnyLayout):
            layout = Layout(buffer.shape, layout)
        layout.annotate(buffer)
        if layout.kind == "swizzled" and layout.forward is None:
            recording("annotate_layout").swizzled.add(buffer.id)
