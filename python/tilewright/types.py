"""Types of parameters: tensors, scalars, pointers; and the parameters that they become."""
import math
import sys

from .dtypes import UNPACKED, dtype
from .dtypes import dtype as _dtype
from .trace import fail, operation, state
from .values import Buffer, Elsewhere, Expr, in_launch, plain, rename
from .values import dynamic as make_symbol

_tensor, _scalar, _view = operation("tensor"), operation("scalar_parameter"), operation("view")


def extents(shape):
    if isinstance(shape, str) or (isinstance(shape, (tuple, list)) and any(type(e) is str for e in shape)):
        fail("OperandKind", f"a shape is {shape!r}", "it is a list of integers, (64, 64), or of what T.dynamic(...) and T.const(...) give")
    if isinstance(shape, (tuple, list)):
        return [plain(e) for e in shape]
    return [plain(shape)]


class Parameter:
    """One parameter of a program: tensor where `shape` is a list, else a scalar."""

    def __init__(self, name, of, shape=None, strides=None, output=False):
        self.name, self.dtype, self.shape, self.strides, self.output = name, of, shape, strides, output
        self.value = self.place = None

    def declare(self, tracer):
        if isinstance(self.value, Elsewhere):
            return  # a call then has one argument too many
        if self.shape is None:
            _scalar(self.value)
        else:
            made = _tensor(self.name, self.shape, self.dtype, self.strides)
            self.value._id, self.value.named = made._id, True

    def as_tensor(self):
        """It, as a tensor that a call gives: addresses are 64-bit integers there."""
        return Parameter(self.name, dtype("int64"), self.shape, self.strides, self.output) if self.dtype == "pointer" else self

    def __repr__(self):
        return f"KernelParam({self.name}: {self.dtype}{'' if self.shape is None else list(self.shape)})"


class Declaration:
    """What an annotation says of a parameter."""

    def parameter(self, tracer, name):
        raise NotImplementedError


class TensorType(Declaration):
    def __init__(self, shape, of="float32", strides=None):
        self.shape, self.dtype = extents(shape), dtype(of)
        self.strides = None if strides is None else extents(strides)

    def parameter(self, tracer, name, output=False):
        if self.dtype.lanes > 1:
            shape = ", ".join(str(plain(e)) for e in [*self.shape, self.dtype.lanes])
            fail("UnknownDtype", f"parameter '{name}' has elements of {self.dtype}, which no array of a call has",
                 f"write T.Tensor(({shape}), '{self.dtype.element}'); memory of the kernel's own may hold vectors")  # fmt: skip
        if self.dtype == UNPACKED:
            fail("UnknownDtype", f"parameter '{name}' is a tensor of float4_e2m1_unpacked, which only shared tiles are of",
                 "tensors hold float4_e2m1fn, two to a byte")  # fmt: skip
        parameter = Parameter(name, self.dtype, self.shape, self.strides, output)
        parameter.value = Buffer()
        parameter.value._shape, parameter.value._dtype = tuple(self.shape), self.dtype
        parameter.value.parameter, parameter.value.named = parameter, not output  # what is returned gets its name later
        tracer.pending.append(parameter)
        return parameter.value


class ScalarType(Declaration):
    def __init__(self, of):
        self.dtype = dtype(of)

    def parameter(self, tracer, name):
        late = "tilelang" in sys.modules and self.dtype.startswith(("float8_", "float6_", "float4_"))  # refused where it is used
        parameter = Parameter(name, self.dtype)
        parameter.value = Elsewhere((), self.dtype) if late else make_symbol(name, self.dtype)
        tracer.pending.append(parameter)
        return parameter.value


class HandleType(Declaration):
    """T.handle: the tensor is described by T.match_buffer in the body."""

    def parameter(self, tracer, name):
        return Handle(name)

    def __call__(self, *arguments):
        return self


class Handle:
    def __init__(self, name):
        self.name = name


class _TensorWord(type):
    """T.Tensor(shape, dtype), and T.Tensor[shape, dtype], T.Tensor[shape] for annotations. With the data of another
    tensor it is a view of that, with an address a tensor there."""

    def __call__(cls, shape, dtype="float32", data=None, strides=None, elem_offset=None, scope="global", align=0, offset_factor=0,
                 buffer_type="", axis_separators=None):  # fmt: skip
        if isinstance(strides, str):
            strides = None  # the fourth of T.Tensor is its scope
        begins_at_its_memory("T.Tensor", elem_offset)
        if data is None:
            return super().__call__(shape, dtype, strides)
        return view_of(data, shape, dtype, strides)

    def __getitem__(cls, item):
        if isinstance(item, tuple) and len(item) == 2 and (isinstance(item[0], (tuple, list)) or not _is_extent(item[1])):
            return cls(item[0], item[1])
        return cls(item)


def _is_extent(value):
    return isinstance(value, (int, Expr)) and not isinstance(value, type)


class Tensor(TensorType, metaclass=_TensorWord):
    """A tensor parameter: row-major and compact, unless strides are given."""

    def __init__(self, shape, dtype="float32", strides=None):
        super().__init__(shape, dtype, strides or None)


class _StridedWord(type):
    def __getitem__(cls, item):
        return cls(*item)


class StridedTensor(TensorType, metaclass=_StridedWord):
    """A tensor parameter with strides of its own, in elements."""

    def __init__(self, shape, strides, dtype="float32"):
        super().__init__(shape, dtype, strides)


def declaration_of(name, annotation):
    """What an annotation says; an error if it says nothing about a parameter of a program."""
    if isinstance(annotation, Declaration):
        return annotation
    if isinstance(annotation, (dtype, Expr)):  # T.int32, and T.int32() as older programs have it
        return ScalarType(annotation if isinstance(annotation, dtype) else annotation.dtype)
    if isinstance(annotation, type) and annotation in (int, float, bool):
        return ScalarType(annotation)
    fail("ParameterType", f"parameter '{name}' has no type of a program: {annotation!r}",
         f"annotate it: {name}: T.Tensor((M, N), 'float16'), or {name}: T.int32 for a scalar")  # fmt: skip


class Pointed(Buffer):
    """A tensor at an address that was described before a launch: one for each launch that uses it."""

    __slots__ = ("_what", "_launch")

    def __init__(self, address, shape, of, strides):
        super().__init__()
        self._what, self._launch = (address, shape, of, strides), 0
        self._shape, self._dtype, self.named = tuple(shape), of, "tensor"

    @property
    def id(self):
        tracer = state.tracer
        if tracer is None or tracer.launches == 0:
            return super().id
        if self._launch != tracer.launches:
            made = operation("make_tensor")(*self._what)
            self._id, self._launch = made._id, tracer.launches
            rename(made, self.named)
        return self._id

    @property
    def strides(self):
        return self._what[3] or super().strides

    @property
    def name(self):
        return self.named


def make_tensor(ptr, shape, dtype="float32", strides=None):
    """A global tensor at an address; before the launch, or in it."""
    of = _dtype(dtype)
    if state.tracer is not None and not in_launch():
        return Pointed(ptr, extents(shape), of, extents(strides) if strides else None)
    return operation("make_tensor")(ptr, extents(shape), of, extents(strides) if strides else None)


def begins_at_its_memory(word, elem_offset):
    """A view begins where its memory does."""
    if elem_offset is not None and plain(elem_offset) != 0:
        fail("BadOption", f"{word}: a view that begins inside of its memory", "index the buffer from there on, or view the whole")


def is_compact(word, shape, strides, elem_offset):
    """An allocation lies by rows, without gaps, and begins at its memory."""
    begins_at_its_memory(word, elem_offset)
    sizes, given = extents(shape), extents(strides or ())
    known = all(isinstance(e, int) for e in (*sizes, *given))
    if given and not (known and given == [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]):
        fail("BadOption", f"{word}: strides of an allocation", "leave them out: it lies by rows; T.annotate_layout lays out a shared tile")


def view_of(data, shape, dtype, strides=None):
    """The memory of a buffer, or what is at an address, as a buffer of this shape."""
    if isinstance(data, Buffer):
        return _view(data, extents(shape), _dtype(dtype), extents(strides) if strides else None)
    return make_tensor(data, shape, dtype, strides)


def match_buffer(param, shape=None, dtype="float32", data=None, strides=None, elem_offset=None, scope="global", align=-1, offset_factor=0,
                 buffer_type="default", axis_separators=None):  # fmt: skip
    """The tensor behind a parameter of type T.handle, or a view of a tensor or an address."""
    begins_at_its_memory("match_buffer", elem_offset)
    if shape is None:
        if isinstance(param, Buffer):
            return param
        fail("BadOption", "match_buffer: no shape", "say the extents: T.match_buffer(a, (M, N), 'float16')")
    if isinstance(param, Handle):
        return TensorType(shape, dtype, strides or None).parameter(state.tracer, param.name)
    address = _unused_address(state.tracer, param)
    if address is not None:
        state.tracer.pending.remove(address)
        return TensorType(shape, dtype, strides or None).parameter(state.tracer, address.name)
    if isinstance(param, Buffer) and not strides and _dtype(dtype) == param.dtype and _same_extents(param.shape, extents(shape)):
        return param
    return view_of(param, shape, dtype, strides)


def _unused_address(tracer, param):
    """The parameter of type T.ptr of an eager function that is that value: its tensor is given, from which T.const takes extents."""
    if not getattr(tracer, "order", None) or not isinstance(param, Expr):
        return None
    return next((p for p in tracer.pending if p.value is param and p.dtype == "pointer"), None)


def _same_extents(a, b):
    return len(a) == len(b) and all(x is y or plain(x) is plain(y) or (is_known([x, y]) and x == y) for x, y in zip(a, b))


def is_known(shape):
    return all(not isinstance(e, Expr) for e in shape)
