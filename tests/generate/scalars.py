"""The data types and the exact meaning of scalar operations, in NumPy. Written from docs/language.md alone.

A value is an array of its type's carrier: NumPy's own integers, int8/uint8 for 4 bits, float32 for floats of 32 bits and
fewer, float64. Integers wrap; floats of 16 bits and fewer are computed in float32 and rounded once for each operation."""
import math

import numpy as np

EXACT, CLOSE, UNSAID, UNDEFINED = 0, 1, 2, 3  # what is known of a value: its bits; about how much; nothing; it has none


class DType:
    """A data type: its name, bits, carrier (what values are computed in) and storage (what memory holds)."""

    def __init__(self, name, bits, carrier, storage, mantissa=0, lowest=0, largest=0.0, saturates=False, has_nan=True):
        self.name, self.bits, self.carrier, self.storage = name, bits, np.dtype(carrier), np.dtype(storage)
        self.mantissa, self.lowest, self.largest, self.saturates = mantissa, lowest, largest, saturates
        self.has_nan = has_nan  # of a float
        self.is_bool = name == "bool"
        self.is_float = self.carrier.kind == "f"
        self.is_int = not self.is_float and not self.is_bool
        self.is_signed = self.is_int and self.carrier.kind == "i"
        self.is_packed = bits < 8 and not self.is_bool
        self.bytes = max(1, bits // 8)
        if self.is_int:
            self.min = -(1 << (bits - 1)) if self.is_signed else 0
            self.max = (1 << (bits - 1)) - 1 if self.is_signed else (1 << bits) - 1

    def __repr__(self):
        return self.name


def _all():
    rows = [DType("bool", 1, np.bool_, np.uint8)]
    for bits in (4, 8, 16, 32, 64):
        stored = max(bits, 8)
        rows.append(DType(f"int{bits}", bits, f"i{stored // 8}", f"i{stored // 8}"))
        rows.append(DType(f"uint{bits}", bits, f"u{stored // 8}", f"u{stored // 8}"))
    f32 = np.float32
    rows += [DType("float32", 32, f32, f32, 23, -126, float(np.finfo(f32).max)),
             DType("float64", 64, np.float64, np.float64, 52, -1022, float(np.finfo(np.float64).max)),
             DType("float16", 16, f32, np.float16, 10, -14, 65504.0),
             DType("bfloat16", 16, f32, np.uint16, 7, -126, float.fromhex("0x1.fep127")),
             DType("float8_e4m3fn", 8, f32, np.uint8, 3, -6, 448.0, True),
             DType("float8_e5m2", 8, f32, np.uint8, 2, -14, 57344.0, True),
             DType("float8_e3m4", 8, f32, np.uint8, 4, -2, 15.5, True),
             DType("float8_e4m3b11fnuz", 8, f32, np.uint8, 3, -10, 30.0, True),
             DType("float8_e4m3fnuz", 8, f32, np.uint8, 3, -7, 240.0, True),
             DType("float8_e5m2fnuz", 8, f32, np.uint8, 2, -15, 57344.0, True),
             DType("float6_e2m3fn", 8, f32, np.uint8, 3, 0, 7.5, True, False),  # six bits of a byte
             DType("float6_e3m2fn", 8, f32, np.uint8, 2, -2, 28.0, True, False),
             DType("float4_e2m1fn", 4, f32, np.uint8, 1, 0, 6.0, True, False)]  # fmt: skip
    return {t.name: t for t in rows}


TYPES = _all()
BOOL, INT32, INT64, FLOAT32, FLOAT64 = (TYPES[n] for n in ("bool", "int32", "int64", "float32", "float64"))


# Floats of memory and conversions, with the bits of a byte that they have. Tensors of most of them are given as bytes.
SMALL_FLOATS = {t.name: 6 if t.name.startswith("float6") else t.bits for t in TYPES.values() if t.carrier.kind == "f" and t.bits <= 8}
GIVEN_AS_BYTES = ("float8_e3m4", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e2m3fn", "float6_e3m2fn")


def _decoded(t, bits_of_type):
    """The value of every pattern of a float of 8 bits or fewer."""
    exponent_bits = bits_of_type - 1 - t.mantissa
    bias, table, last = 1 - t.lowest, [], (1 << exponent_bits) - 1
    for bits in range(1 << bits_of_type):
        fraction, exponent = bits & ((1 << t.mantissa) - 1), bits >> t.mantissa & last
        if t.name in ("float8_e5m2", "float8_e3m4") and exponent == last:
            value = np.nan if fraction else np.inf
        elif t.name == "float8_e4m3fn" and bits & 127 == 127 or t.name.endswith("fnuz") and bits == 128:
            value = np.nan
        elif exponent == 0:
            value = fraction * 2.0 ** (1 - bias - t.mantissa)
        else:
            value = (1 + fraction * 2.0**-t.mantissa) * 2.0 ** (exponent - bias)
        table.append(-value if bits >> (bits_of_type - 1) else value)
    return np.array(table, np.float32)


_DECODE = {n: _decoded(TYPES[n], bits) for n, bits in SMALL_FLOATS.items()}
_ENCODE = {}
for _name, _table in _DECODE.items():  # the pattern of a value that is representable, by its float32's upper half
    _codes = np.zeros(65536, np.uint8)
    _codes[_table.view(np.uint32) >> 16] = np.arange(len(_table), dtype=np.uint8)
    _codes[[0x7FC0, 0xFFC0]] = np.argmax(np.isnan(_table))
    _ENCODE[_name] = _codes


def decode(t, stored):
    """Values of elements as memory holds them."""
    if t.name == "bfloat16":
        return (stored.astype(np.uint32) << 16).view(np.float32)
    if t.name in _DECODE:
        return _DECODE[t.name][stored]
    return stored.astype(t.carrier, copy=False)


def encode(t, values):
    """How memory holds values of the type."""
    if t.name == "bfloat16":
        return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if t.name in _ENCODE:
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        return _ENCODE[t.name][np.where(np.isnan(values), 0x7FC0, bits >> 16)]
    return values.astype(t.storage, copy=False)


def wrap(t, x):
    """Four bits of an integer, kept in eight."""
    if t.bits == 4:
        return (x << 4).astype(t.carrier) >> 4 if t.is_signed else x & np.uint8(15)
    return x


def round_to(t, x, rounded=np.rint):
    """Floats to the nearest value of the type, ties to even (np.trunc: toward zero); what is too large becomes infinite, or the largest."""
    if t.bits == 64:
        return x.astype(np.float64)
    if t.bits == 32:
        return x.astype(np.float32)
    if t.name == "float16" and x.dtype == np.float32 and rounded is np.rint:
        with np.errstate(over="ignore"):
            return x.astype(np.float16).astype(np.float32)
    x = x.astype(np.float64)
    _, exponent = np.frexp(x)
    step = np.ldexp(1.0, np.maximum(exponent - 1, t.lowest) - t.mantissa)
    with np.errstate(invalid="ignore", over="ignore"):
        y = rounded(x / step) * step
    y = np.where(np.isfinite(x), y, x)
    if rounded is np.trunc:  # a finite number becomes none that is larger
        y = np.where(np.isfinite(x) & (np.abs(y) > t.largest), np.copysign(t.largest, x), y)
    if t.saturates:
        stays = np.isinf(x) if t.name == "float8_e3m4" else False
        y = np.where((np.abs(y) > t.largest) & ~np.asarray(stays), np.copysign(t.largest, y), y)
        y = np.where(np.isnan(x), np.nan, y)
    else:
        y = np.where(np.abs(y) > t.largest, np.copysign(np.inf, y), y)
    return y.astype(np.float32)


def _to_odd(x, narrow):
    """Integers of 64 bits, or float64, in a narrower float, rounded to odd, so that another rounding is right."""
    y = x.astype(narrow)
    with np.errstate(invalid="ignore", over="ignore"):
        if x.dtype.kind == "f":
            away = np.abs(y.astype(np.float64)) > np.abs(x)
            exact = (y.astype(np.float64) == x) | ~np.isfinite(x)
        else:
            wide = np.array([int(v) for v in np.where(np.isfinite(y), y, 0).ravel()], dtype=object).reshape(y.shape)
            xs = x.astype(object)
            away, exact = np.abs(wide) > np.abs(xs), wide == xs
            away, exact = away.astype(bool), exact.astype(bool)
    bits = y.view(np.uint32 if narrow == np.float32 else np.uint64)
    down = np.where(away, bits - np.array(1, bits.dtype), bits)  # toward zero
    return np.where(exact, bits, down | np.array(1, bits.dtype)).view(narrow)


def cast(x, source, to, toward_zero=False):
    """(the value in another type, where it is not said what comes out or None)."""
    if toward_zero:
        return round_to(to, x, np.trunc), None
    if source is to:
        return x, None
    if to.is_bool:
        return x != 0, None if not source.is_float else _some(np.isnan(x))
    if source.is_bool:
        return x.astype(to.carrier), None
    if source.is_int and to.is_int:
        return wrap(to, x.astype(to.carrier)), None
    if source.is_int:
        if to.bits >= 32:
            return x.astype(to.carrier), None
        return round_to(to, x.astype(np.float32) if source.bits <= 16 else _to_odd(x, np.float32)), None
    if to.is_float:
        if to.bits == 64:
            return x.astype(np.float64), None
        if source.bits == 64 and to.bits < 32:
            x = _to_odd(x, np.float32)
        with np.errstate(over="ignore"):
            y = round_to(to, x)
        return y, None if to.has_nan else _some(np.isnan(x))
    unsaid = np.isnan(x)
    wide = np.trunc(np.where(unsaid, 0, x).astype(np.float64))
    top = float(to.max)
    y = np.where(wide >= top, 0, np.clip(wide, float(to.min), None))  # what is at the top is set below
    if to.bits == 64 and not to.is_signed:
        y = np.where(y >= 2.0**63, (y - 2.0**63).astype(np.int64).astype(np.uint64) + np.uint64(1 << 63),
                     np.where(y >= 2.0**63, 0, y).astype(np.int64).astype(np.uint64))  # fmt: skip
    else:
        y = y.astype(np.int64)
    y = y.astype(to.carrier)
    return np.where(wide >= top, np.array(to.max, to.carrier), y), _some(unsaid)


def _some(mask):
    return mask if mask.any() else None


def _finish(t, y):
    """A result of float32 arithmetic as a value of the type."""
    return round_to(t, y) if t.is_float and t.bits < 32 else y


def _truncated(a, b, t):
    with np.errstate(all="ignore"):
        q, r = a // b, a % b
    off = (r != 0) & ((a < 0) != (b < 0))
    q = q + off.astype(t.carrier)
    return q, (a - q * b).astype(t.carrier)


BITS = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}


def either_zero(y, plus, minus):
    """Minima and maxima `y` of zeros of both signs (there are some `plus`, some `minus`): either. The negative one is
    none whose bits memory takes for said."""
    return np.where((y == 0) & plus & minus, np.array(-0.0, y.dtype), y)


def zeros_open(op, a, b, y):
    """y = a op b; where the sign of a zero is as open as that of an operand, it is a negative one."""
    open_a, open_b = (a == 0) & np.signbit(a), (b == 0) & np.signbit(b)
    return np.where((y == 0) & (open_a | open_b if op == "*" else open_a), np.array(-0.0, y.dtype), y)


def product_error(a, b):
    """What a * b of float64 lacks of the exact product (Dekker); not zero where it cannot be told."""
    def halves(x):
        c = 134217729.0 * x  # 2^27 + 1
        high = c - (c - x)
        return high, x - high

    with np.errstate(all="ignore"):
        p, (ah, al), (bh, bl) = a * b, halves(a), halves(b)
        error = ((ah * bh - p) + ah * bl + al * bh) + al * bl
        certain = (a == 0) | (b == 0) | (np.abs(p) > 1e-200) & (np.abs(p) < 1e200) & (np.maximum(np.abs(a), np.abs(b)) < 1e200)
    return np.where(np.isfinite(a) & np.isfinite(b) & certain, error, 1.0)


def _extreme(op, a, b):
    y = {"min": np.fmin, "max": np.fmax, "min_nan": np.minimum, "max_nan": np.maximum}[op](a, b)
    zeros = (a == 0) & (b == 0)
    return either_zero(y, zeros & ~(np.signbit(a) & np.signbit(b)), zeros & (np.signbit(a) | np.signbit(b)))


def _directed(op, a, b):
    """ieee_add_rz and its like, of float32: the nearest result, moved where it lies on the wrong side of the exact one. A zero is
    negative, which memory takes for unsaid: its sign depends on the direction."""
    name, _, direction = op.rpartition("_")
    x, y = a.astype(np.float64), b.astype(np.float64)
    if name == "ieee_add":
        total = x + y
        part = total - x
        lost, exact = np.where(np.isfinite(total), (x - (total - part)) + (y - part), 0), total
    else:
        exact = x * y if name == "ieee_mul" else x / y
        lost = 0.0
    near = exact.astype(np.float32)
    if name == "ieee_add":  # where the sum itself was rounded, twice is once too often
        near = np.where(lost == 0, near, _to_odd_sum(total, lost).astype(np.float32))
    off = (exact - near) + lost if name != "ieee_fdiv" else np.sign(x - near.astype(np.float64) * y) * np.sign(y)
    off = np.where(np.isfinite(exact), np.where(np.isinf(near), -np.sign(near), off), 0)  # whether the exact one is above
    zero, up, down = np.float32(0), np.float32(np.inf), np.float32(-np.inf)
    if direction == "rz":
        moved = np.where((off < 0) & (near > 0) | (off > 0) & (near < 0), np.nextafter(near, zero), near)
    elif direction == "ru":
        moved = np.where(off > 0, np.nextafter(near, up), near)
    else:
        moved = np.where(off < 0, np.nextafter(near, down), near)
    return np.where(moved == 0, np.float32(-0.0), moved).astype(np.float32)


def _to_odd_sum(total, lost):
    """A sum in float64 whose rest was `lost`, rounded to odd."""
    bits = total.view(np.int64)
    toward_zero = np.where((lost < 0) == (total > 0), bits - 1, bits)
    return (toward_zero | 1).view(np.float64)


def binary(op, a, b, t):
    """a op b of one type; divisors are not zero and shifts within the type: the model has looked."""
    with np.errstate(all="ignore"):
        if op in BITS:
            return BITS[op](a, b)
        if op in ("min", "max", "min_nan", "max_nan"):
            return _extreme(op, a, b) if t.is_float else (np.minimum if op[:3] == "min" else np.maximum)(a, b)
        if op == "//":
            return a // b
        if op == "%":
            return a % b
        if op in ("truncdiv", "truncmod"):
            return _truncated(a, b, t)[op == "truncmod"]
        if op == "<<":
            return wrap(t, a << b)
        if op == ">>":
            return a >> b
        if op == "copysign":
            return np.copysign(a, b)
        if op.startswith("ieee_"):
            return _directed(op, *np.broadcast_arrays(a, b))
        if op == "ldexp":
            return _finish(t, np.ldexp(a.astype(np.float64), b.astype(np.int64)).astype(t.carrier))
        if op == "nextafter":
            return np.nextafter(a, b)
        if op in CLOSE_BINARY:
            return _finish(t, CLOSE_BINARY[op](a.astype(np.float64), b.astype(np.float64)).astype(t.carrier))
        if op == "fmod":
            return _finish(t, np.fmod(a, b))
        if op == "mulhi":
            wide = a.astype(object) * b.astype(object)
            return (wide >> t.bits).astype(t.carrier)
        y = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[op](a, b)
        if t.is_float and op in "-*/":
            y = zeros_open(op, a, b, y)
    return _finish(t, y) if t.is_float else wrap(t, y)


COMPARE = {"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def _round_away(x):
    y = np.floor(np.abs(x))
    return np.copysign(y + (np.abs(x) - y >= 0.5), x)


def _count_leading(x, t):
    n = np.full(x.shape, t.bits, t.carrier)
    u = x.astype(f"u{t.bytes}").astype(np.uint64)
    for k in range(t.bits):
        n = np.where(u >> np.uint64(k) != 0, np.array(t.bits - 1 - k, t.carrier), n)
    return n


def _reversed(x, t):
    u, y = x.astype(f"u{t.bytes}"), np.zeros(x.shape, f"u{t.bytes}")
    for k in range(t.bits):
        y |= (u >> np.array(k, u.dtype) & np.array(1, u.dtype)) << np.array(t.bits - 1 - k, u.dtype)
    return y.astype(t.carrier)


def _first_set(x, t):
    u, y = x.astype(f"u{t.bytes}"), np.zeros(x.shape, t.carrier)
    for k in reversed(range(t.bits)):
        y = np.where(u >> np.array(k, u.dtype) & np.array(1, u.dtype), np.array(k + 1, t.carrier), y)
    return y


EXACT_FUNCTIONS = {  # of a float: rounded once, or nothing to round
    "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "nearbyint": np.rint, "round": _round_away, "sqrt": np.sqrt,
}  # fmt: skip
PREDICATES = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
BIT_FUNCTIONS = {"popcount": lambda x, t: np.bitwise_count(x.astype(f"u{t.bytes}")).astype(t.carrier),
                 "clz": _count_leading, "brev": _reversed, "ffs": _first_set}  # fmt: skip
CLOSE_FUNCTIONS = {  # the last bits are an engine's own
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "rsqrt": lambda x: 1 / np.sqrt(x), "log1p": np.log1p, "expm1": np.expm1,
    "atan": np.arctan, "exp10": lambda x: np.power(10.0, x), "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "log10": np.log10,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
}  # fmt: skip
CLOSE_BINARY = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot}


def dot_of_bytes(a, b, c):
    """dp4a: the products of four signed bytes each, and a number, added up."""
    total = c
    for k in range(0, 32, 8):
        x, y = ((v << np.int32(24 - k)) >> np.int32(24) for v in (a, b))
        total = total + x * y
    return total


def unary(name, x, t):
    """A function of one operand, as (value, state)."""
    with np.errstate(all="ignore"):
        if name in PREDICATES:
            return PREDICATES[name](x), EXACT
        if name == "neg":
            return (np.where(x == 0, np.array(-0.0, x.dtype), -x) if t.is_float else wrap(t, np.zeros_like(x) - x)), EXACT
        if name == "not":
            return ~x, EXACT
        if name == "~":
            return wrap(t, ~x), EXACT
        if name in BIT_FUNCTIONS:
            return BIT_FUNCTIONS[name](x, t), EXACT
        if t.is_int:  # abs
            return wrap(t, np.where(x < 0, np.zeros_like(x) - x, x)), EXACT
        if name in EXACT_FUNCTIONS:
            return _finish(t, EXACT_FUNCTIONS[name](x).astype(t.carrier)), EXACT
        return _finish(t, CLOSE_FUNCTIONS[name](x.astype(np.float64)).astype(t.carrier)), CLOSE


def bitcast(x, source, to):
    """The same bits as a value of another type of that width, and where they are nobody's to say: a NaN's, the sign of a
    zero that min or max chose."""
    y = decode(to, encode(source, np.ascontiguousarray(x)).view(to.storage))
    return y, _some(np.isnan(x) | (x == 0) & np.signbit(x)) if source.is_float else None
