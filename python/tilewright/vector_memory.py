"""Loads and stores of 32 to 256 bits by their own names: T.ldg128(A[i]) gives the bits of as many elements as uint32, one
value or a vector of them, and T.stg128(B[i], bits) stores them. Which instruction moves them is the compiler's."""
from . import language as T
from .trace import OPERATIONS, apply, fail
from .values import Tile, Vector

_SPACES = {"g": ("global",), "s": ("shared", "shared.dyn")}


def _elements(name, tile, bits):
    """The elements that follow each other from the first of a tile on."""
    if not isinstance(tile, Tile):
        fail("OperandKind", f"T.{name} of {tile!r}", "give an element, or a slice that begins with it")
    buffer, index = tile.buffer, list(tile.indices)
    if buffer.scope() not in _SPACES[name[2]]:
        fail("OperandKind", f"T.{name} of '{buffer.name}', a {buffer.scope()} buffer", "ldg and stg are for global tensors, lds and sts for shared tiles")
    width = buffer.dtype.bits
    if width not in (8, 16, 32, 64) or (width > bits and name.startswith("st")):
        fail("OperandKind", f"T.{name} of elements of {buffer.dtype}", "elements have 8, 16, 32 or 64 bits, and no more than it moves")
    along = next((d for d, i in enumerate(index) if isinstance(i, slice)), len(index) - 1)
    at = index[along]
    first = at if not isinstance(at, slice) else 0 if at.start is None else at.start
    count = max(1, bits // width)
    return [buffer[(*index[:along], first + k, *index[along + 1 :])] for k in range(count)], width


def _unsigned(width):
    return f"uint{width}"


def _load(name, bits):
    def load(src, pred=None):
        elements, width = _elements(name, src, bits)
        values = [T.reinterpret(e, _unsigned(width)) for e in elements]
        if pred is not None:
            values = [T.if_then_else(pred, v, T.cast(0, _unsigned(width))) for v in values]
        words = []
        for k in range(bits // 32):
            if width == 64:
                words.append(T.cast(values[k // 2] >> (32 * (k % 2)), "uint32"))
                continue
            parts = values[k * (32 // width) : (k + 1) * (32 // width)]
            word = T.cast(parts[0], "uint32")
            for position, part in enumerate(parts[1:], 1):
                word = word | T.cast(part, "uint32") << T.uint32(position * width)
            words.append(word)
        words = [apply(OPERATIONS["let"], "word", w) for w in words]  # read here, whatever is stored later
        return words[0] if bits == 32 else Vector(words, T.uint32)

    load.__doc__ = f"{bits} bits from an element on, as uint32; zeros where `pred` does not hold."
    return load


def _store(name, bits):
    def store(dst, value, pred=None):
        elements, width = _elements(name, dst, bits)
        words = value.lanes if isinstance(value, Vector) else [value]
        if len(words) != bits // 32:
            fail("BadOption", f"T.{name} of {len(words)} words of 32 bits", f"it stores {bits // 32}")
        of, parts = elements[0].buffer.dtype, []
        for k in range(len(elements)):
            if width == 64:
                low, high = (T.cast(w, "uint64") for w in words[2 * k : 2 * k + 2])
                bits_of = low | high << T.uint64(32)
            else:
                word = T.cast(words[k * width // 32], "uint32")
                bits_of = T.cast(word >> T.uint32(k * width % 32), _unsigned(width))
            parts.append(T.reinterpret(bits_of, of))
        if pred is not None:
            apply(OPERATIONS["open_if"], pred)
        for element, part in zip(elements, parts):
            apply(OPERATIONS["store"], element, part)
        if pred is not None:
            apply(OPERATIONS["close"])

    store.__doc__ = f"Stores {bits} bits, words of uint32, from an element on; only where `pred` holds."
    return store


def function(name):
    """The function of a name such as ldg128."""
    return (_load if name.startswith("ld") else _store)(name, int(name[3:]))
