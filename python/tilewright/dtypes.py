"""Data types: text that knows its bits, and makes constants, casts and variables when it is called."""
import re
import sys

from . import _native

_known = {}
UNPACKED = "custom[float4_e2m1_unpacked]8"  # fp4 with a byte for each element; see unpacked.py
_VECTOR = re.compile(r"(\w+?)x(\d+)")


class dtype(str):
    """"float16", with .bits, .bytes, .as_torch(); dtype(x) casts an expression or makes a constant of a number.
    "float16x2" is a vector of two: a value of a few lanes, which memory holds as elements."""

    __slots__ = ("bits", "lanes", "element")

    def __new__(cls, name="float32"):
        found = _known.get(name) if isinstance(name, str) else None
        return found if found is not None else _lookup(name)

    def __reduce__(self):
        return dtype, (str(self),)

    @property
    def bytes(self):
        return max(1, self.bits * self.lanes // 8)

    itemsize = bytes

    @property
    def type_code(self):
        """The number of its kind, as DLPack counts them; of fp4 that is unpacked TVM's own."""
        return _TYPE_CODES[self.element] if self.element in _TYPE_CODES else _TYPE_CODES[self.element.rstrip("0123456789")]

    def is_float4(self):
        """Whether it is a float of 4 bits, packed or not."""
        return self.is_float4_e2m1fn() or self.is_float4_e2m1_unpacked()

    def is_float4_e2m1fn(self):
        """Whether it is a float of 4 bits, two of which share a byte."""
        return self.element == "float4_e2m1fn"

    def is_float4_e2m1_unpacked(self):
        """Whether it is a float of 4 bits with a byte for each."""
        return self == UNPACKED

    def as_torch(self):
        """The torch dtype of tensors that hold this."""
        from .tensors import pytorch

        torch = pytorch(f"as_torch() of {self}")
        if self == UNPACKED:
            from .trace import fail

            fail("UnknownDtype", "as_torch() of float4_e2m1_unpacked: no tensor holds it", "tensors hold float4_e2m1fn, two to a byte")
        if self in ("float4_e2m1fnx2", "int4x2", "uint4x2"):
            return self.element.as_torch()
        if self in ("int4", "uint4", "float4_e2m1fn"):
            return getattr(torch, "float4_e2m1fn_x2", torch.uint8) if self == "float4_e2m1fn" else torch.int8
        name = {"tfloat32": "float32", "pointer": "int64"}.get(self, str(self))
        return getattr(torch, name, torch.uint8) if self in AS_BYTES else getattr(torch, name)

    def __call__(self, value=None, *more, is_size_var=False):
        from . import values

        if self == UNPACKED:
            from .unpacked import UnpackedNumber

            return UnpackedNumber(value)
        if self.lanes > 1:
            if isinstance(value, values.Vector) and not more:
                value, *more = value.lanes
            given = [value, *more] if more else [value] * self.lanes
            if len(given) != self.lanes:
                raise TypeError(f"{self} is made of one value or of {self.lanes}, not of {len(given)}")
            return values.Vector([self.element(v) for v in given], self.element)
        if value is None:
            return values.unset(self)
        return values.convert(value, self)


def _lookup(name):
    text = _text_of(name)
    found, lanes, element = (UNPACKED, 8) if text in (UNPACKED, "float4_e2m1_unpacked") else _native.dtype(text), 1, None
    vector = _VECTOR.fullmatch(text) if found is None else None
    if vector and _native.dtype(vector[1]):
        element, lanes = dtype(vector[1]), int(vector[2])
        found = f"{element}x{lanes}", element.bits
    if found is None:
        from .elsewhere import nearest
        from .trace import fail

        near = nearest(text, NAMES)
        help = f"the nearest: {near}" if near else "for example float32, float16, bfloat16, int32, bool"
        if re.fullmatch(r"[<>][a-z]\d+", text):
            help = "NumPy calls an array so whose bytes are in the other order: pass x.astype(x.dtype.newbyteorder('='))"
        fail("UnknownDtype", f"there is no dtype {name!r}", help)
    full, bits = found
    bits = 6 if full.startswith("float6_") else bits
    result = _known.get(full)
    if result is None:
        result = str.__new__(dtype, full)
        result.bits, result.lanes, result.element = bits, lanes, element or result
        _known[full] = result
    if isinstance(name, str):
        _known[str(name)] = result
    return result


def is_vector(name):
    """Whether a name is that of a vector of a known dtype."""
    found = _VECTOR.fullmatch(name)
    return bool(found and _native.dtype(found[1]))


def _text_of(name):
    if isinstance(name, str):
        return _of_torch(name[6:]) if name.startswith("torch.") else str(name)
    if name in (float, int, bool):
        return {float: "float32", int: "int32", bool: "bool"}[name]
    text = str(name)
    if text.startswith("torch."):
        return _of_torch(text[6:])
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(name, (type, numpy.dtype)):  # older versions take a tensor for its dtype
        try:
            return numpy.dtype(name).name
        except (TypeError, ValueError):
            pass
    return text


def _of_torch(name):
    """float4_e2m1fn_x2, two to a byte, is the vector float4_e2m1fnx2 here."""
    return name[:-3] + "x2" if name.endswith("_x2") else name


NAMES = [name for name, _ in _native.tensor_dtypes()]
# Narrow floats that few libraries know: bytes stand for their codes in tensors.
AS_BYTES = frozenset(name for name, as_bytes in _native.tensor_dtypes() if as_bytes)
# Other names of the language for them.
ALIASES = {
    "float": "float32", "int": "int32", "uint": "uint32", "half": "float16", "double": "float64", "short": "int16",
    "long": "int64", "boolean": "bool", "float8_e4m3": "float8_e4m3fn", "float8_e8m0": "float8_e8m0fnu",
    "tfloat32": "tfloat32", "float4_e2m1": "float4_e2m1fn",
}  # fmt: skip


_TYPE_CODES = {
    "int": 0, "uint": 1, "float": 2, "tfloat": 2, "pointer": 3, "bfloat": 4, "bool": 6, "float8_e3m4": 7, "float8_e4m3": 8, "float8_e4m3b11fnuz": 9,
    "float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13, "float8_e8m0fnu": 14, "float6_e2m3fn": 15,
    "float6_e3m2fn": 16, "float4_e2m1fn": 17, UNPACKED: 131,
}  # fmt: skip


class TorchNames(dict):
    """The dtype of every torch dtype, looked up when it is asked for."""

    def __missing__(self, of):
        self[of] = str(_lookup(of))
        return self[of]
