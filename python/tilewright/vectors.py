"""Values of a few lanes: what is done to them is done to each lane. Memory holds their lanes side by side."""
from . import _native
from .dtypes import dtype
from .trace import OPERATIONS, apply, fail, operation
from .values import Buffer, Expr, Tile, Var, Vector, check_step, plain

_GROUPS = {number: row[1] for number, row in enumerate(_native.operations())}
_NAMES = {number: row[0] for number, row in enumerate(_native.operations())}
_LANEWISE = frozenset(OPERATIONS[n] for n in ("load", "let", "store", "shfl_sync", "shfl_up", "shfl_down", "shfl_xor"))
_OF_MEMORY = frozenset(OPERATIONS[n] for n in ("view", "reshape"))  # of vectors: of their lanes, in order
_LET, _STORE, _CAST, _REINTERPRET = (OPERATIONS[n] for n in ("let", "store", "cast", "reinterpret"))
_alloc_scalar = operation("alloc_scalar")
_OR, _SHL, _SHR, _CONSTANT = (OPERATIONS[n] for n in ("bitwise_or", "shift_left", "shift_right", "constant"))


def _row_of(buffer, index):
    """The dimension along which elements that a slice names lie, the first of them and how many they are."""
    along = [d for d, i in enumerate(index) if isinstance(i, slice)]
    at = index[along[0]]
    begin, end = 0 if at.start is None else at.start, buffer.shape[along[0]] if at.stop is None else at.stop
    count = plain(end - begin)
    if len(along) > 1 or not isinstance(count, int):
        fail("BadOption", f"a box of '{buffer.name}' is no vector", "a vector is a slice of one dimension, of a length that is known")
    return along[0], begin, count


def vector_of(value):
    """A vector as it is; a slice of a buffer as the elements that it names now."""
    if isinstance(value, Vector) or not isinstance(value, Tile) or value.is_element:
        return value
    d, begin, count = _row_of(value.buffer, value.indices)
    head, rest = value.indices[:d], value.indices[d + 1 :]
    return Vector([apply(_LET, "lane", value.buffer[(*head, begin + k, *rest)]) for k in range(count)], value.buffer.dtype)


def spans_lanes(index):
    """Whether an index stands for elements in a row, or for those of a vector of indices."""
    return any(isinstance(i, (slice, Vector)) for i in index) if type(index) is tuple else isinstance(index, (slice, Vector))


def store_lanes(value, buffer, index):
    """Stores lanes, or one value for all of them, to the elements that a slice or a vector of indices names."""
    index = index if isinstance(index, tuple) else (index,)
    for i in index:
        if isinstance(i, slice):
            check_step(buffer, i)
    if any(isinstance(i, Vector) for i in index):
        apply(_STORE, buffer[index], value)
        return
    if not isinstance(value, Vector):
        value = Vector([value] * _row_of(buffer, index)[2], buffer.dtype)
    value.store(buffer, index)


def lanes_of(value):
    """How many lanes an operand has; 0 where it has none of its own."""
    if isinstance(value, Vector):
        return len(value.lanes)
    return value.lanes if isinstance(value, dtype) and value.lanes > 1 else 0


def _lane(value, k):
    if isinstance(value, Vector):
        return value.lanes[k]
    return value.element if isinstance(value, dtype) else value


def lanewise(operation, operands):
    """The operation on each lane, if an operand is a vector; None where there is none, or where the operation is no
    lane's."""
    if operation in _OF_MEMORY and operands and isinstance(operands[0], Vectors):
        return apply(operation, operands[0].buffer, *operands[1:])
    if _GROUPS[operation] != "scalar" and operation not in _LANEWISE:
        for operand in operands:
            if lanes_of(operand) and not isinstance(operand, dtype):
                fail("BadOption", f"{_NAMES[operation]} takes no vector of {lanes_of(operand)} lanes or indices",
                     "name elements that follow each other by a slice: A[i : i + 4]")  # fmt: skip
        return None
    operands = [o if operation == _STORE and number == 0 else vector_of(o) for number, o in enumerate(operands)]
    counts = {n for n in map(lanes_of, operands) if n}
    if not counts or not any(lanes_of(o) for o in operands if not isinstance(o, dtype)):
        return None
    if operation == _REINTERPRET:
        return reinterpret(*operands)
    if len(counts) > 1:
        fail("BadOption", f"vectors of {' and '.join(str(n) for n in sorted(counts))} lanes meet", "vectors that are computed with have as many lanes")
    made = [apply(operation, *(_lane(o, k) for o in operands)) for k in range(counts.pop())]
    return Vector(made, made[0].dtype) if isinstance(made[0], Expr) else made


def _bits_of(lane):
    return apply(_CAST, apply(_REINTERPRET, lane, f"uint{lane.dtype.bits}"), "uint64")


def reinterpret(value, to):
    """The bits of the lanes, in order, as lanes of another width."""
    vector, to = value if isinstance(value, Vector) else Vector([value], value.dtype), dtype(to)
    have = vector.element.bits
    if have * len(vector) != to.element.bits * to.lanes or min(have, to.element.bits) < 8:
        fail("BadBitcast", f"reinterpret of {vector.dtype} as {to}: they have {have * len(vector)} and {to.element.bits * to.lanes} bits",
             "reinterpret between types of one width, or cast")  # fmt: skip
    lanes = []
    for k in range(to.lanes):
        first, width = k * to.element.bits, to.element.bits
        if width <= have:
            part = apply(_SHR, _bits_of(vector[first // have]), apply(_CONSTANT, first % have, "uint64"))
        else:
            part = _bits_of(vector[first // have])
            for j in range(1, width // have):
                more = apply(_SHL, _bits_of(vector[first // have + j]), apply(_CONSTANT, j * have, "uint64"))
                part = apply(_OR, part, more)
        lanes.append(apply(_REINTERPRET, apply(_CAST, part, f"uint{width}"), to.element))
    return Vector(lanes, to.element) if to.lanes > 1 else lanes[0]


class VectorVariable(Vector):
    """A variable of each thread that holds a vector: assigning to its name stores."""

    __slots__ = ("named",)

    def __init__(self, of, init=None):
        given = [None] * of.lanes if init is None else of(init).lanes
        super().__init__([Var(_alloc_scalar(of.element, lane).id) for lane in given], of.element)
        self.named = False
        for lane in self.lanes:
            lane.named = True


def bound(value, current):
    """What `name = value` leaves in the name, where the value is a vector or the name holds a variable of one."""
    if type(current) is VectorVariable and value is not current and not (type(value) is VectorVariable and not value.named):
        value = vector_of(value)
        lanes = value.lanes if isinstance(value, Vector) else [value] * len(current.lanes)
        if len(lanes) != len(current.lanes):
            fail("BadOption", f"a vector of {len(lanes)} is assigned to a variable of {current.dtype}", "give as many lanes")
        for variable, lane in zip(current.lanes, [apply(_LET, "lane", e) for e in lanes]):
            apply(_STORE, variable, lane)
        return current
    if type(value) is VectorVariable and (value is current or not value.named):
        value.named = True
        return value
    return Vector([apply(_LET, "lane", lane) for lane in value.lanes], value.element) if isinstance(value, Vector) else value


class Vectors:
    """Memory of vectors: an element of it is one, and lies in a row of a buffer of their lanes."""

    def __init__(self, buffer, of):
        self.buffer, self.dtype, self.shape = buffer, of, tuple(buffer.shape[:-1])

    ndim = property(lambda self: len(self.shape))
    name = property(lambda self: self.buffer.name)
    data = property(lambda self: self)

    def scope(self):
        return self.buffer.scope()

    def _elements(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != len(self.shape):
            fail("IndexCount", f"'{self.name}' has {len(self.shape)} dimensions, but {len(index)} indices are given", "give an index in every dimension")
        return [self.buffer[(*index, k)] for k in range(self.dtype.lanes)]

    def __getitem__(self, index):
        return Vector([apply(_LET, "lane", e) for e in self._elements(index)], self.dtype.element)

    def __setitem__(self, index, value):
        value = vector_of(value)
        lanes = value.lanes if isinstance(value, Vector) else [value] * self.dtype.lanes
        if len(lanes) != self.dtype.lanes:
            fail("BadOption", f"a vector of {len(lanes)} is stored to '{self.name}', which holds {self.dtype}", "give as many lanes")
        for element, lane in zip(self._elements(index), lanes):
            apply(_STORE, element, lane)

    def __len__(self):
        return Buffer.__len__(self)

    def __repr__(self):
        return f"<buffer of {self.dtype}>"


def buffer_of_vectors(allocate, shape, of):
    """An allocation of a vector type, by the function that allocates its lanes."""
    extents = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    return Vectors(allocate([*extents, of.lanes], of.element), of)


# ---- the words of the language


def Broadcast(value, lanes, span=None):
    """The same value in each lane of a vector."""
    if not hasattr(value, "dtype"):
        value = apply(_CONSTANT, value, "float32" if isinstance(value, float) else "int32")
    return Vector([value] * lanes, value.dtype)


def Ramp(base, stride, lanes, span=None):
    """The vector of base, base + stride, base + 2 stride, ... As an index it names as many elements: A[T.Ramp(i, 2, 4)]."""
    values = [base + k * stride for k in range(lanes)]
    values = [v if isinstance(v, Expr) else apply(_CONSTANT, v, "int32") for v in values]
    return Vector(values, values[0].dtype, is_ramp=True)


def ramp(base, stride, lanes, span=None):
    """The vector of base, base + stride, base + 2 stride, ..."""
    return Ramp(base, stride, lanes)


def broadcast(value, lanes, span=None):
    """The same value in each lane of a vector."""
    return Broadcast(value, lanes)


def Shuffle(vectors, indices, span=None):
    """The lanes of these numbers of the vectors, counted through all of them: a vector, or a value where it is one."""
    lanes = [lane for v in vectors for lane in (vector_of(v).lanes if lanes_of(vector_of(v)) else [v])]
    chosen = [lanes[int(i)] for i in indices]
    return chosen[0] if len(chosen) == 1 else Vector(chosen, chosen[0].dtype)


def _as(of, lanes):
    of = dtype(of)
    if of.lanes != len(lanes):
        fail("BadOption", f"a vector of {len(lanes)} lanes is asked for as {of}", f"that has {of.lanes}")
    return Vector([apply(_CAST, lane, of.element) for lane in lanes], of.element)


def vectorlow(dtype, vec):
    """The lower half of a vector's lanes."""
    lanes = vector_of(vec).lanes
    return _as(dtype, lanes[: len(lanes) // 2])


def vectorhigh(dtype, vec):
    """The upper half of a vector's lanes."""
    lanes = vector_of(vec).lanes
    return _as(dtype, lanes[len(lanes) // 2 :])


def vectorcombine(dtype, vec1, vec2):
    """The lanes of both vectors, one behind the other."""
    return _as(dtype, [*vector_of(vec1).lanes, *vector_of(vec2).lanes])


def extract_lane(vector, lane, span=None):
    """One value of a vector."""
    value = vector_of(vector)
    if isinstance(value, (int, float)):
        fail("OperandKind", f"extract_lane expects a PrimExpr, not {value!r}", "give a vector: T.float32x2(a, b), T.Broadcast(x, 2)")
    if not isinstance(value, Vector):
        fail("BadOption", f"extract_lane expects a vector expression, not {vector!r}", "make one: T.float32x2(a, b), T.Broadcast(x, 2)")
    number = plain(lane)
    if not isinstance(number, int) or isinstance(number, bool):
        fail("OperandKind", f"extract_lane: the lane is a compile-time integer, not {lane!r}", "give its number")
    if not 0 <= number < len(value):
        fail("IndexCount", f"extract_lane: lane {number} of a vector of {len(value)} is out of bounds", f"lanes are 0 to {len(value) - 1}")
    return value[number]


def _on_lanes(name):
    number = OPERATIONS[name]

    def on_lanes(*vectors):
        vectors = [vector_of(v) for v in vectors]
        count = max(lanes_of(v) for v in vectors)
        if count == 0:
            fail("BadOption", f"T.{name}2 expects a vector expression", "make one: T.float32x2(a, b), T.Broadcast(x, 2)")
        kinds = {v.element for v in vectors if isinstance(v, Vector)}
        if len(kinds) > 1:
            fail("NoCommonType", f"T.{name}2 takes vectors of the same dtype, but they are {' and '.join(sorted(kinds))}", "cast one of them")
        return lanewise(number, vectors)

    return on_lanes


_add, _sub, _mul, _fma = _on_lanes("add"), _on_lanes("sub"), _on_lanes("mul"), _on_lanes("fma")
_max, _min, _abs = _on_lanes("max"), _on_lanes("min"), _on_lanes("abs")


def add2(x, y):
    """The sum of each lane of vectors."""
    return _add(x, y)


def sub2(x, y):
    """The difference of each lane of vectors."""
    return _sub(x, y)


def mul2(x, y):
    """The product of each lane of vectors."""
    return _mul(x, y)


def fma2(x, y, z):
    """x * y + z of each lane of vectors, rounded once."""
    return _fma(x, y, z)


def max2(x, y):
    """The larger of each lane of vectors."""
    return _max(x, y)


def min2(x, y):
    """The smaller of each lane of vectors."""
    return _min(x, y)


def abs2(x):
    """The magnitude of each lane of a vector."""
    return _abs(x)


__all__ = ["Broadcast", "Ramp", "Shuffle", "abs2", "add2", "broadcast", "extract_lane", "fma2", "max2", "min2", "mul2",
           "ramp", "sub2", "vectorcombine", "vectorhigh", "vectorlow"]  # fmt: skip
