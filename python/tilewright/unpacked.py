"""float4_e2m1_unpacked: fp4 with a byte for each element, which TMA of sm_100 makes of packed fp4 in shared memory, for the tensor
cores there. Tiles of it can be declared and be asked about. Operations on tiles of it are noted, and refused when the program
ends, at their lines: first what no GPU does, then what only sm_100 does."""
from . import _native
from .dtypes import UNPACKED, dtype
from .errors import TilewrightError
from .trace import fail, place, state
from .values import Buffer, Operators, Range, Tile

_OPERATIONS = [row[0] for row in _native.operations()]
_OF_TILES = frozenset(row[0] for row in _native.operations() if row[1] == "tile")
_NAME, _PACKED = "float4_e2m1_unpacked", "float4_e2m1fn"
_INSTEAD = f"a tile of {_PACKED} holds fp4 here, two to a byte"


class UnpackedTile:
    """A shared tile of it."""

    def __init__(self, shape):
        self.shape, self.dtype, self.name, self.named = tuple(shape), dtype(UNPACKED), "a tile", False

    ndim = property(lambda self: len(self.shape))
    data = property(lambda self: self)

    def scope(self):
        return "shared.dyn"

    def __getitem__(self, index):
        return UnpackedPart(self, index if isinstance(index, tuple) else (index,))

    def __setitem__(self, index, value):
        _refuse("a store", self)

    def __repr__(self):
        return f"<buffer {self.name} of {_NAME}>"


class UnpackedPart(Operators):
    """An element of such a tile, or a tile of it."""

    def __init__(self, buffer, indices):
        self.buffer, self.indices, self.dtype = buffer, indices, buffer.dtype

    __index__ = __float__ = None  # an operand of it is no number of Python's
    region = property(lambda self: [Range.of(index, extent) for index, extent in zip(self.indices, self.buffer.shape)])
    shape = property(lambda self: tuple(r.extent for r in self.region))


class UnpackedNumber(Operators):
    """A number of it, which has a dtype and no bits."""

    __index__ = __float__ = None

    def __init__(self, value):
        self.value, self.dtype = value, dtype(UNPACKED)


def named(name, tile):
    """The tile, by the name that it is assigned to."""
    if not tile.named:
        tile.name, tile.named = f"'{name}'", True
    return tile


def allocate(word, shape):
    """What T.alloc_shared gives for it; the other spaces have none."""
    if word != "alloc_shared":
        fail("UnknownOperation", f"T.{word} of {_NAME}: TMA unpacks fp4 into shared memory alone", _INSTEAD)
    return UnpackedTile(shape if isinstance(shape, (tuple, list)) else [shape])


def number_dtype(of):
    """A dtype that an operation makes values of."""
    of = dtype(of)
    if of == UNPACKED:
        fail("UnknownDtype", f"values of {_NAME}: sm_100: not there yet", _INSTEAD)
    return of


def _is_unpacked(value):
    return isinstance(value, (UnpackedTile, UnpackedPart, UnpackedNumber))


def _tile_of(value):
    return value.buffer if isinstance(value, (UnpackedPart, Tile)) else value


def _is_packed_in_global(value):
    value = _tile_of(value)
    return isinstance(value, Buffer) and value.dtype == _PACKED and value.scope() == "global"


def _described(value):
    value = _tile_of(value)
    return f"a number of {_NAME}" if isinstance(value, UnpackedNumber) else f"{value.name}, a tile of {_NAME}"


def refuses(number, operands):
    """Whether an operation uses such a tile or a number: then it is noted."""
    given = next((o for o in operands if _is_unpacked(o)), None)
    if given is None:
        return False
    name = _OPERATIONS[number]
    if name not in ("copy", "async_copy", "tma_copy"):
        what = f"a {name}" if name in ("load", "store") else f"T.{name}"
        if name not in _OF_TILES:  # what it gives may be used further down
            _fail(f"{what} of {_described(given)}: sm_100: not there yet", _INSTEAD)
        _refuse(what, given)
        return True
    source, to = operands[:2]
    into, by_tma = _tile_of(to), name == "tma_copy" or "tma" in operands[2:]
    unpacks = _is_packed_in_global(source) and isinstance(into, UnpackedTile)
    if by_tma and unpacks:
        _note(1, f"T.{name} unpacks {_PACKED} to {_described(to)}: sm_100: not there yet", _INSTEAD)
    elif by_tma:
        _note(0, f"T.{name} only supports {_NAME} as an FP4 unpack load, from packed {_PACKED} in global memory to a shared tile",
              f"store from a tile of {_PACKED}: TMA does not pack")  # fmt: skip
    elif unpacks:
        _note(0, f"SIMT copy from packed global {_PACKED} to {_NAME}, of which {into.name} is: threads do not unpack fp4 into bytes",
              f"T.tma_copy unpacks it on sm_100, which is not there yet; {_INSTEAD}")  # fmt: skip
    else:
        _refuse(f"T.{name}", given)
    return True


def _refuse(what, value):
    _note(1, f"{what} of {_described(value)}: sm_100: not there yet", _INSTEAD)


def _note(rank, message, help):
    tracer = state.tracer
    if tracer is None:
        _fail(message, help)
    tracer.unpacked.append((rank, message, help, place()))


def refuse(tracer):
    """The error of a program that has used such tiles."""
    if tracer.unpacked:
        _fail(*min(tracer.unpacked, key=lambda noted: noted[0])[1:])


def _fail(message, help, at=None):
    try:
        fail("UnknownOperation", message, help, at)
    except TilewrightError as error:
        error.is_late = True
        raise
