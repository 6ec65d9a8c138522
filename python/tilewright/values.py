"""Values of a program: expressions, buffers, elements and tiles of buffers, scalar variables."""
import sys

from . import _native
from .dtypes import dtype
from .elsewhere import METHODS, instead_of, nearest
from .errors import TilewrightError
from .tracebacks import is_ours
from .trace import OPERATIONS, apply, fail, operation, place, state

_ADD, _SUB, _MUL, _DIV = (OPERATIONS[n] for n in ("add", "sub", "mul", "div"))
_FLOORDIV, _FLOORMOD = OPERATIONS["floordiv"], OPERATIONS["floormod"]
_AND, _OR, _XOR = (OPERATIONS[n] for n in ("bitwise_and", "bitwise_or", "bitwise_xor"))
_SHL, _SHR = OPERATIONS["shift_left"], OPERATIONS["shift_right"]
_EQ, _NE, _LT, _LE, _GT, _GE = (
    OPERATIONS[n] for n in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
)
_NEG, _INVERT, _POW, _ABS = (OPERATIONS[n] for n in ("negative", "bitwise_not", "pow", "abs"))
_LOAD, _STORE, _CAST, _IF_THEN_ELSE = (OPERATIONS[n] for n in ("load", "store", "cast", "if_then_else"))


# Operators that NumPy calls by a function of its own, where its scalar is the left side.
_OF_UFUNC = {
    "add": _ADD, "subtract": _SUB, "multiply": _MUL, "divide": _DIV, "true_divide": _DIV, "floor_divide": _FLOORDIV, "remainder": _FLOORMOD,
    "bitwise_and": _AND, "bitwise_or": _OR, "bitwise_xor": _XOR, "left_shift": _SHL, "right_shift": _SHR, "less": _LT, "less_equal": _LE,
    "greater": _GT, "greater_equal": _GE, "power": _POW,
}  # fmt: skip


def _refuse_function(library, name, operands):
    """A function of NumPy's or PyTorch's that is given values of a program."""
    given = next((o for o in operands if isinstance(o, (Operators, Buffer))), None)
    what = described(given) if given is not None else "a value of the program"
    fail("OperandKind", f"{library}.{name} takes arrays, but is given {what}", instead_of(name) or "functions of T take values of programs: dir(T) has them",
         place(beyond=library))  # fmt: skip


class _Foreign:
    """Values that functions of NumPy and PyTorch are given by mistake."""

    __slots__ = ()

    def __array_function__(self, function, types, arguments, named):
        _refuse_function("numpy", function.__name__, (*arguments, *named.values()))

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), named=None):
        _refuse_function("torch", getattr(function, "__name__", str(function)), (*arguments, *(named or {}).values()))

    def __dir__(self):
        return [name for name in super().__dir__() if name not in METHODS]


def described(value):
    """A value of a program in a sentence."""
    if isinstance(value, Var):
        return f"the variable '{value.name}'"
    if isinstance(value, Buffer):
        return f"the whole buffer '{value.name}'"
    if isinstance(value, Tile):
        return f"{'an element' if value.is_element else 'a tile'} of '{value.buffer.name}'"
    return f"an expression of {value.dtype}" if isinstance(value, Operators) else repr(value)


class Operators(_Foreign):
    """What computes: expressions, and what is read where a value is wanted."""

    __slots__ = ()

    def __array_ufunc__(self, function, method, *operands, **named):
        name = function.__name__
        if method == "__call__" and not named:
            if name in ("equal", "not_equal"):
                a, b = operands if isinstance(operands[0], Operators) else operands[::-1]
                return a == b if name == "equal" else a != b
            if name in _OF_UFUNC:
                return apply(_OF_UFUNC[name], *operands)
            if name == "divmod":
                return apply(_FLOORDIV, *operands), apply(_FLOORMOD, *operands)
        _refuse_function("numpy", name, operands)

    def __add__(self, other): return apply(_ADD, self, other)  # noqa: E704
    def __radd__(self, other): return apply(_ADD, other, self)  # noqa: E704
    def __sub__(self, other): return apply(_SUB, self, other)  # noqa: E704
    def __rsub__(self, other): return apply(_SUB, other, self)  # noqa: E704
    def __mul__(self, other): return apply(_MUL, self, other)  # noqa: E704
    def __rmul__(self, other): return apply(_MUL, other, self)  # noqa: E704
    def __truediv__(self, other): return apply(_DIV, self, other)  # noqa: E704
    def __rtruediv__(self, other): return apply(_DIV, other, self)  # noqa: E704
    def __floordiv__(self, other): return apply(_FLOORDIV, self, other)  # noqa: E704
    def __rfloordiv__(self, other): return apply(_FLOORDIV, other, self)  # noqa: E704
    def __mod__(self, other): return apply(_FLOORMOD, self, other)  # noqa: E704
    def __rmod__(self, other): return apply(_FLOORMOD, other, self)  # noqa: E704
    def __and__(self, other): return apply(_AND, self, other)  # noqa: E704
    def __rand__(self, other): return apply(_AND, other, self)  # noqa: E704
    def __or__(self, other): return apply(_OR, self, other)  # noqa: E704
    def __ror__(self, other): return apply(_OR, other, self)  # noqa: E704
    def __xor__(self, other): return apply(_XOR, self, other)  # noqa: E704
    def __rxor__(self, other): return apply(_XOR, other, self)  # noqa: E704
    def __lshift__(self, other): return apply(_SHL, self, other)  # noqa: E704
    def __rlshift__(self, other): return apply(_SHL, other, self)  # noqa: E704
    def __rshift__(self, other): return apply(_SHR, self, other)  # noqa: E704
    def __rrshift__(self, other): return apply(_SHR, other, self)  # noqa: E704
    def __lt__(self, other): return apply(_LT, self, other)  # noqa: E704
    def __le__(self, other): return apply(_LE, self, other)  # noqa: E704
    def __gt__(self, other): return apply(_GT, self, other)  # noqa: E704
    def __ge__(self, other): return apply(_GE, self, other)  # noqa: E704
    def __neg__(self): return apply(_NEG, self)  # noqa: E704
    def __pos__(self): return self  # noqa: E704
    def __invert__(self): return apply(_INVERT, self)  # noqa: E704
    def __pow__(self, other): return apply(_POW, self, other)  # noqa: E704
    def __abs__(self): return apply(_ABS, self)  # noqa: E704

    # Comparisons of equality are values of run time, but Python asks for their truth where it searches lists and
    # dictionaries: outside of traced functions they say whether both sides are the same expression.
    def __eq__(self, other):
        return _equality(_EQ, self, other, True)

    def __ne__(self, other):
        return _equality(_NE, self, other, False)

    def __hash__(self):
        return id(self)

    # What Python asks of numbers besides.
    def __rpow__(self, other): return apply(_POW, other, self)  # noqa: E704
    def __divmod__(self, other): return self // other, self % other  # noqa: E704
    def __rdivmod__(self, other): return other // self, other % self  # noqa: E704

    def __matmul__(self, other):
        fail("UnsupportedSyntax", "@ of values of a program", "write T.gemm(a, b, c)")

    __rmatmul__ = __matmul__

    def __round__(self, digits=None):
        _is_asked(self, "round()", "write T.nearbyint(x), which rounds half to even, or T.round")

    def __trunc__(self):
        _is_asked(self, "math.trunc()", "write T.trunc(x)")

    def __floor__(self):
        _is_asked(self, "math.floor()", "write T.floor(x)")

    def __ceil__(self):
        _is_asked(self, "math.ceil()", "write T.ceil(x)")

    def __index__(self):
        _is_asked(self, "an integer", "a loop over it is T.serial, or range() in a function under @T.prim_func or @T.macro; a tile has elements at it, a list has none")

    def __int__(self):
        _is_asked(self, "an integer", "convert it with T.int32(x) or T.cast")

    def __float__(self):
        _is_asked(self, "a float", "functions of T take it, T.sqrt(x) for math.sqrt(x); T.float32(x) or T.cast converts it")

    def __complex__(self):
        _is_asked(self, "a complex number", "keep both parts as floats")

    def astype(self, to):
        return apply(_CAST, self, dtype(to))

    def __format__(self, form):
        if form or (state.tracer is not None and not is_ours(sys._getframe(1).f_code)):
            fail("ValueNotKnown", f"text is made of {described(self)}, whose value is known only at run time", "T.print(x, msg=...) prints values")
        return str(self)


def _is_asked(value, what, help):
    fail("ValueNotKnown", f"Python asks for {what}, but this {value.dtype} is known only at run time", help)


def _equality(operation, a, b, when_same):
    if b is None or isinstance(b, (str, tuple, list)):
        return not when_same
    if isinstance(b, Buffer) and not isinstance(b, Var):
        return not when_same
    result = apply(operation, a, b)
    if isinstance(result, Vector):
        return result
    if a is b or (isinstance(a, Expr) and isinstance(b, (Expr, int, float)) and a.same(b)):
        result._same = when_same
    elif state.tracer is None:
        result._same = not when_same
    return result


class Expr(Operators, _native.Expr):
    """A scalar expression. It has no name until it is assigned to one, which evaluates it there."""

    __slots__ = ("_same", "symbol", "_taint", "_size")

    @property
    def dtype(self):
        return dtype(self.dtype_name)

    @property
    def taint(self):
        """When it was made, where it reads memory that may have been written since; see reads.py."""
        return getattr(self, "_taint", None)

    @taint.setter
    def taint(self, made):
        self._taint = made

    @property
    def size(self):
        """How many operations it has, about."""
        return getattr(self, "_size", 1)

    @size.setter
    def size(self, count):
        self._size = count

    @property
    def value(self):
        return self.constant

    def __bool__(self):
        constant = self.constant
        if constant is not None:
            return bool(constant)
        same = getattr(self, "_same", None)
        if same is None:
            fail("ValueNotKnown", "the truth of an expression is known only at run time, but Python asks for it now",
                 "under @T.prim_func or @T.macro write if, and, or, not; elsewhere T.if_then_else, T.And, T.Or, T.max, T.min")  # fmt: skip
        return same

    def __index__(self):
        constant = self.constant
        if not isinstance(constant, int):
            fail("ValueNotKnown", f"Python asks for an integer, but this {self.dtype_name} is known only at run time",
                 "a loop over it is T.serial, or range() in a function under @T.prim_func or @T.macro; a tile has elements at it, a list has none")  # fmt: skip
        return constant

    __int__ = __index__

    def __float__(self):
        constant = self.constant
        if constant is None:
            fail("ValueNotKnown", f"Python asks for a float, but this {self.dtype_name} is known only at run time",
                 "functions of T take it, T.sqrt(x) for math.sqrt(x); T.float32(x) or T.cast converts it")  # fmt: skip
        return float(constant)

    def __repr__(self):
        constant = self.constant
        return f"<{self.dtype_name} {'expression' if constant is None else constant}>"


class Buffer(_Foreign):
    """A tensor, or memory on chip. buffer[i, j] is an element or the head of a tile; buffer[i, a:b] a box."""

    __slots__ = ("_id", "_shape", "_dtype", "named", "parameter", "__weakref__")

    def __array_ufunc__(self, function, method, *operands, **named):
        _refuse_function("numpy", function.__name__, operands)

    def __init__(self, number=None):
        self._id, self._shape, self._dtype, self.named, self.parameter = number, None, None, False, None

    @property
    def id(self):
        if self._id is None:
            if state.tracer is not None:
                state.tracer.declare()
            if self._id is None:
                fail("OutsideProgram", "a tensor is used outside of the function that takes it", "")
        return self._id

    @property
    def shape(self):
        if self._shape is None:
            self._shape = tuple(plain(e) for e in shape_of(self))
        return self._shape

    @property
    def dtype(self):
        if self._dtype is None:
            self._dtype = dtype(dtype_of(self))
        return self._dtype

    @property
    def data(self):
        """Stands for its memory where another tensor is made of that: T.Tensor(shape, dtype, buffer.data)."""
        return self

    @property
    def strides(self):
        """In elements."""
        given = [plain(e) for e in operation("strides_of")(self)]
        if given or not self.shape:
            return given
        steps = [1]
        for extent in self.shape[:0:-1]:
            steps.insert(0, steps[0] * extent)
        return steps

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def name(self):
        return self.parameter.name if self._id is None else name_of(self)

    def scope(self):
        """Where it lives, in the words of the language: global, shared.dyn, local.fragment, local, shared.barrier."""
        return {"shared": "shared.dyn", "fragment": "local.fragment", "barrier": "shared.barrier"}.get(
            space := space_of(self), space
        )

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        for i in index:
            if type(i) is slice and i.step is not None:
                check_step(self, i)
            if isinstance(i, Vector):
                return Vector([self[at] for at in points_of(index, self.shape)], self.dtype)
        tile = Tile(self, index)
        tracer = state.tracer
        if tracer is not None:
            if tile.is_element:
                tracer.reads.note(tile, tracer)
            tracer.reads.indices(tile, tracer)
        return tile

    def __setitem__(self, index, value):
        apply(_STORE, self[index], value)

    def __len__(self):
        if not self.shape or not isinstance(self.shape[0], int):
            fail("ValueNotKnown", f"the length of '{self.name}' is known only at run time", f"write {self.name}.shape[0], and T.serial for loops over it")
        return self.shape[0]

    def __getattr__(self, name):
        return _unknown_attribute(self, name)

    def __array__(self, *ignored, **also_ignored):
        fail("ValueNotKnown", f"NumPy asks for the values of buffer '{self.name}', which are known only at run time", "T.copy moves tiles")

    def __call__(self, *indices):
        fail("OperandKind", f"buffer '{self.name}' is called", f"its elements are {self.name}[{', '.join('ijklmnop'[: self.ndim])}]")

    def __iter__(self):
        fail("ValueNotKnown", f"Python cannot iterate over buffer '{self.name}'", "loop over its indices: T.serial(n)")

    def __bool__(self):
        fail("ValueNotKnown", f"buffer '{self.name}' has no truth value", "compare an element of it")

    def name_if_known(self):
        """Its name, while its program is being recorded."""
        try:
            return self.name
        except TilewrightError:
            return "?"

    def __repr__(self):
        return f"<buffer {self.name_if_known()}>"


class Elsewhere(Buffer):
    """A number of a dtype that programs cannot take as one: it can be declared and not be used."""

    __slots__ = ()

    def __init__(self, shape, of):
        super().__init__()
        self._shape, self._dtype = tuple(shape), of

    @property
    def id(self):
        fail("UnknownDtype", f"{self._dtype}: no program here takes a number of it, but it is used",
             "numbers have 16 bits or more; tensors may be of it")  # fmt: skip


class Var(Operators, Buffer):
    """A mutable scalar of each thread: assigning to its name stores."""

    __slots__ = ()

    def __getitem__(self, index):
        return self

    def __setitem__(self, index, value):
        apply(_STORE, self, value)

    def __bool__(self):
        fail("ValueNotKnown", f"the value of '{self.name}' is known only at run time", "in a traced function write if")


class Reading(Var):
    """A variable among other values, in a list or among arguments: its value there, or the variable where one is wanted."""

    __slots__ = ("of", "made", "early")

    def __init__(self, of):
        super().__init__(of.id)
        self.named, self.of, self.made, self.early = True, of, None, None


class Range:
    """So many indices from `min` on."""

    __slots__ = ("min", "extent")

    def __init__(self, min, extent):
        self.min, self.extent = min, extent

    @classmethod
    def of(cls, index, full):
        if not isinstance(index, slice):
            return cls(index, 1)
        begin = 0 if index.start is None else index.start
        return cls(begin, plain((full if index.stop is None else index.stop) - begin))


class Tile(Operators):
    """A buffer with indices: an element, the head of a tile, or a box where an index is a slice."""

    __slots__ = ("buffer", "indices", "made", "early", "slices")

    def __init__(self, buffer, indices):
        self.buffer, self.indices, self.made, self.early, self.slices = buffer, indices, None, None, None

    def __hash__(self):
        if state.tracer is not None:
            fail("ValueNotKnown", f"Python looks up an element of '{self.buffer.name}' in a set or a dictionary, but its value is known only at run time",
                 "compare it: x == a or x == b; tables are tensors")  # fmt: skip
        return id(self)

    @property
    def dtype(self):
        return self.buffer.dtype

    __eq__, __ne__ = Operators.__eq__, Operators.__ne__

    @property
    def is_element(self):
        for index in self.indices:
            if type(index) is slice:
                return False
        return True

    @property
    def region(self):
        """What it spans along each dimension of its buffer: objects with min and extent."""
        return [Range.of(index, extent) for index, extent in zip(self.indices, self.buffer.shape)]

    @property
    def shape(self):
        """How many elements it spans along each dimension of its buffer, which an index makes one."""
        return tuple(r.extent for r in self.region)

    def __getitem__(self, index):
        fail("UnsupportedSyntax", f"{described(self)} is indexed once more", f"all indices stand together: {self.buffer.name}[i, j]")

    def __iter__(self):
        fail("ValueNotKnown", f"Python cannot iterate over a tile of '{self.buffer.name}'",
             "loop over its indices: T.serial(n), T.Parallel(n); T.reduce_sum(tile, result, dim=0) adds, T.reduce_max finds the largest")  # fmt: skip

    def __getattr__(self, name):
        return _unknown_attribute(self, name)

    def __len__(self):
        fail("ValueNotKnown", f"Python asks for the length of {described(self)}", "x.shape has its extents")

    def __bool__(self):
        fail("ValueNotKnown", f"an element of '{self.buffer.name}' is known only at run time",
             "in a traced function write if, and, or, not")  # fmt: skip

    def __repr__(self):
        return f"<tile of {self.buffer.name_if_known()}>"


class Place(Tile):
    """An element that a name stands for, as a parameter T.Ref of a macro does: assigning to the name stores."""

    __slots__ = ()


def points_of(index, shape):
    """The indices that an index with vectors in it stands for, one for each lane. Those of a ramp that run time knows count
    from the end where they are negative, as numbers do: one of another vector, or by itself, is beyond the tensor there."""
    counts = {len(i) for i in index if isinstance(i, Vector)}
    if len(counts) > 1:
        fail("BadOption", f"vectors of {' and '.join(str(n) for n in sorted(counts))} lanes are indices of one element", "they have as many lanes")
    return [
        tuple((_from_the_end(i[k], n) if i.is_ramp else i[k]) if isinstance(i, Vector) else i for i, n in zip(index, shape, strict=True))
        for k in range(counts.pop())
    ]


def _from_the_end(lane, extent):
    return lane if isinstance(plain(lane), int) else apply(_IF_THEN_ELSE, lane < 0, lane + extent, lane)


class Vector(Operators):
    """A few values of one dtype: what a packed operation gives, and what is stored to as many elements."""

    __slots__ = ("is_ramp", "lanes", "element")

    def __init__(self, lanes, element, is_ramp=False):
        self.lanes, self.element, self.is_ramp = list(lanes), element, is_ramp

    @property
    def dtype(self):
        return dtype(f"{self.element}x{len(self.lanes)}")

    def __getitem__(self, lane):
        return self.lanes[lane]

    def __iter__(self):
        return iter(self.lanes)

    __index__ = __float__ = None  # an operand that is a vector is no number: its lanes are

    def __bool__(self):
        fail("ValueNotKnown", f"a vector of {self.element} has no truth value", "compare one of its lanes: v[0]")

    def __len__(self):
        return len(self.lanes)

    def store(self, buffer, index):
        """Stores the lanes to the elements that a slice names."""
        index = index if isinstance(index, tuple) else (index,)
        along = [d for d, i in enumerate(index) if isinstance(i, slice)]
        if len(along) > 1:
            fail("BadOption", f"a vector is stored to a tile of '{buffer.name}' of {len(along)} dimensions", "slice one of them")
        d = along[0] if along else len(index) - 1
        begin = index[d] if not along else 0 if index[d].start is None else index[d].start
        stop = index[d].stop if along else None
        extent = plain(stop - begin) if stop is not None else len(self.lanes)
        if not isinstance(extent, int) or extent != len(self.lanes):
            fail("BadOption", f"a vector of {len(self.lanes)} is stored to {extent} elements of '{buffer.name}'",
                 "the slice has an element for each lane")  # fmt: skip
        for k, lane in enumerate(self.lanes):
            apply(_STORE, buffer[(*index[:d], begin + k, *index[d + 1 :])], lane)

    def __repr__(self):
        return f"<{self.dtype} vector>"


def check_step(buffer, index):
    step = plain(index.step)
    if not (step is None or (isinstance(step, int) and step == 1)):
        fail("UnsupportedSyntax", f"a slice of '{buffer.name}' with a step other than 1: tiles are boxes of neighbours",
             f"for i in T.Parallel(n): ... {buffer.name}[i * step]")  # fmt: skip


def _unknown_attribute(value, name):
    if name.startswith("_"):
        raise AttributeError(name)
    if hasattr(type(value), name):  # it is there, and failed itself: with its own words
        return object.__getattribute__(value, name)
    near = nearest(name, [n for n in dir(value) if not n.startswith("_")])
    fail("UnknownOperation", f"{described(value)} has no '{name}'", f"the nearest it has: {near}" if near else "T.name(x) for operations, x.shape, x.dtype",
         also=AttributeError)  # fmt: skip


def _word(name):
    """What answers to a tensor's method of PyTorch or NumPy."""

    def refuse(self):
        fail("UnknownOperation", f"{described(self)} has no '{name}'", instead_of(name), also=AttributeError)

    return property(refuse)


def _operator_of_buffers(sign):
    def refuse(self, *other):
        if sign == "@":
            fail("UnsupportedSyntax", f"@ of {described(self)}", "write T.gemm(a_shared, b_shared, c_fragment), which adds to c")
        fail("OperandKind", f"{sign} of {described(self)}", "loop over its elements: for i, j in T.Parallel(M, N): c[i, j] = a[i, j] + b[i, j]")

    return refuse


for _cls in (Operators, Buffer):
    for _name in METHODS:
        if not hasattr(_cls, _name):
            setattr(_cls, _name, _word(_name))
for _sign, _names in {
    "+": "add radd", "-": "sub rsub neg", "*": "mul rmul", "/": "truediv rtruediv", "//": "floordiv rfloordiv", "%": "mod rmod", "**": "pow rpow",
    "@": "matmul rmatmul", "&": "and rand", "|": "or ror", "^": "xor rxor", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "abs()": "abs",
}.items():  # fmt: skip
    for _name in _names.split():
        setattr(Buffer, f"__{_name}__", _operator_of_buffers(_sign))

READABLE = (Expr, Var, Tile)

shape_of, dtype_of, space_of, name_of = (operation(n) for n in ("shape_of", "dtype_of", "space_of", "name_of"))
let, load, rename = operation("let"), operation("load"), operation("rename")
_constant, _symbol = operation("constant"), operation("dynamic_symbol")


def plain(value):
    """int32 constants are integers of Python."""
    if isinstance(value, Expr) and value.dtype_name == "int32":
        constant = value.constant
        return value if constant is None else constant
    return value


def note_number(of, value):
    if state.tracer is not None:
        state.tracer.numbers.append((of, value))


def convert(value, to):
    """dtype(value): a constant of a number, a cast of an expression."""
    if isinstance(value, (int, float)):
        note_number(to, value)
        return _constant(value, to)
    return apply(_CAST, value, to)


def names_in(text, word):
    """The names of "M, N", a text that T.dynamic or T.const is given."""
    if not isinstance(text, str):
        fail("OperandKind", f"{word} of {type(text).__name__}", f'it takes names in a text: M, N = {word}("M, N")')
    return [name for name in text.replace(",", " ").split() if name]


def dynamic(name, of="int32"):
    if dtype(of).lanes > 1:
        element = dtype(of).element
        return Vector([dynamic(f"{name}_{k}", element) for k in range(dtype(of).lanes)], element)
    made = _symbol(name, dtype(of))
    made.symbol = name
    return made


in_launch, _alloc_scalar = operation("in_launch"), operation("alloc_scalar")


def unset(of):
    """dtype(): in a launch a variable that T.let sets, elsewhere a dimension or scalar without a name."""
    if state.tracer is not None and in_launch():
        return Var(_alloc_scalar(of, None).id)
    return dynamic("v", of)
