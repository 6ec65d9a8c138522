"""Data types: text that knows its bits, and makes constants, casts and variables when it is called."""
import re
import sys

from . import _native

_known = {}
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

    def as_torch(self):
        """The torch dtype of tensors that hold this."""
        from .tensors import pytorch

        torch = pytorch(f"as_torch() of {self}")
        if self in ("float4_e2m1fnx2", "int4x2", "uint4x2"):
            return self.element.as_torch()
        if self in ("int4", "uint4", "float4_e2m1fn"):
            return getattr(torch, "float4_e2m1fn_x2", torch.uint8) if self == "float4_e2m1fn" else torch.int8
        name = {"tfloat32": "float32", "pointer": "int64"}.get(self, str(self))
        return getattr(torch, name, torch.uint8) if self in AS_BYTES else getattr(torch, name)

    def __call__(self, value=None, *more, is_size_var=False):
        from . import values

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
    found, lanes, element = _native.dtype(text), 1, None
    vector = _VECTOR.fullmatch(text) if found is None else None
    if vector and _native.dtype(vector[1]):
        element, lanes = dtype(vector[1]), int(vector[2])
        found = f"{element}x{lanes}", element.bits
    if found is None:
        from .elsewhere import nearest
        from .trace import fail

        near = nearest(text, NAMES)
        fail("UnknownDtype", f"there is no dtype {name!r}", f"the nearest: {near}" if near else "for example float32, float16, bfloat16, int32, bool")
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
    if numpy is not None:
        try:
            return numpy.dtype(name).name
        except (TypeError, ValueError):  # the latter of what has a member `dtype` that is none of NumPy's
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


class TorchNames(dict):
    """The dtype of every torch dtype, looked up when it is asked for."""

    def __missing__(self, of):
        self[of] = str(_lookup(of))
        return self[of]
