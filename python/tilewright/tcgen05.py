"""Descriptors of tcgen05.mma, the products of sm_100's tensor cores: 32 bits that say the types and shape of one, as tables of
the PTX ISA have them ("Instruction descriptor"). They are numbers alone: products of that kind are not there yet."""
from .dtypes import UNPACKED, dtype
from .trace import fail

_F8F6F4 = {"float8_e4m3fn": 0, "float8_e5m2": 1, "float6_e2m3fn": 3, "float6_e3m2fn": 4, "float4_e2m1fn": 5, UNPACKED: 5}
# Of each kind the numbers of its operands' types and of the sums' types.
_KINDS = (
    ({"float16": 0, "bfloat16": 1}, {"float16": 0, "float32": 1}),  # f16
    ({"tfloat32": 2, "float32": 2}, {"float32": 1}),  # tf32
    (_F8F6F4, {"float16": 0, "float32": 1}),  # f8f6f4
    ({"uint8": 0, "int8": 1}, {"int32": 2}),  # i8
)


def _kind_of(a, b, c):
    """The numbers of the types of A, B and C in the kind of product that takes them."""
    for operands, sums in _KINDS:
        if a in operands and b in operands and c in sums:
            return operands[a], operands[b], sums[c]
    fail("UnknownOperation", f"tcgen05.mma has no product of {a} and {b} with sums of {c}",
         "it multiplies float16 and bfloat16, tfloat32, floats of 8, 6 and 4 bits, int8 and uint8, with sums of float32, float16 or int32")  # fmt: skip


def _sign(name, scale):
    if scale not in (1, -1):
        fail("BadOption", f"{name} of a tcgen05 descriptor is {scale!r}", "it is 1, or -1 for an operand that is negated")
    return int(scale < 0)


def _operands(a_format, b_format, a_is_k_major, b_is_k_major, scale_in_a, scale_in_b):
    """Bits 7 to 16: types, signs, and which operands are transposed, which those that are not K-major are."""
    signs = _sign("scale_in_a", scale_in_a) << 13 | _sign("scale_in_b", scale_in_b) << 14
    return a_format << 7 | b_format << 10 | signs | (not a_is_k_major) << 15 | (not b_is_k_major) << 16


def _check_shape(m, n, shapes):
    if m not in shapes or n % 8 or not 8 <= n <= 256:
        fail("BadOption", f"tcgen05.mma of {m}x{n}", f"M is {', '.join(map(str, shapes))}, N a multiple of 8 up to 256")


def instruction_descriptor(m, n, k, a, b, c, a_is_k_major, b_is_k_major, scale_in_a=1, scale_in_b=1):
    """Of .kind::f16, tf32, f8f6f4 or i8, whichever the types ask for. k is what the kind has."""
    a_format, b_format, sums = _kind_of(*map(dtype, (a, b, c)))
    _check_shape(m, n, (32, 64, 128, 256))
    return sums << 4 | _operands(a_format, b_format, a_is_k_major, b_is_k_major, scale_in_a, scale_in_b) | n >> 3 << 17 | m >> 4 << 24


def block_scaled_descriptor(m, n, a, b, a_is_k_major, b_is_k_major, scale_in_a=1, scale_in_b=1, scales_a=0, scales_b=0):
    """Of .kind::mxf8f6f4, whose scales are powers of two, of type ue8m0; scales_a and scales_b are the bytes that hold them."""
    a, b = dtype(a), dtype(b)
    if a not in _F8F6F4 or b not in _F8F6F4:
        fail("UnknownOperation", f"tcgen05.mma has no product of {a} and {b} with scales of blocks", "it multiplies floats of 8, 6 and 4 bits so")
    _check_shape(m, n, (128, 256))
    for name, byte in (("sf_a_id", scales_a), ("sf_b_id", scales_b)):
        if not 0 <= byte <= 3:
            fail("BadOption", f"{name} of a tcgen05 descriptor is {byte!r}", "it is the byte of a word, 0 to 3")
    ue8m0 = 1 << 23
    types = _operands(_F8F6F4[a], _F8F6F4[b], a_is_k_major, b_is_k_major, scale_in_a, scale_in_b)
    return scales_b << 4 | types | n >> 3 << 17 | ue8m0 | m >> 7 << 27 | scales_a << 29
