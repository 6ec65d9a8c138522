"""Numbers of a few bits that lie side by side in wider integers, as numbers of another type: what tilelang.quantize gives
programs that dequantize their weights. Each takes the bits of a number, the word, the number's place in it and the result's type."""
from .dtypes import dtype as _dtype
from .trace import OPERATIONS, apply, fail, operation

_cast, _select = operation("cast"), operation("if_then_else")


def _field(nbit, val, pos, storage):
    """The bits of one number, as an int32 or, from words of 32 bits on, as they lie in the word."""
    found = _dtype(val.dtype)
    if found.bits != storage.bits or "int" not in found:  # a sign changes nothing of the bits in it
        fail("BadOption", f"a word of {found} holds the packed numbers, which were to be in {storage}",
             "name the type that the tensor has")  # fmt: skip
    if not 0 < nbit <= storage.bits:
        fail("BadOption", f"numbers of {nbit} bits in a word of {storage}", f"they have 1 to {storage.bits} bits")
    word = val if storage.bits >= 32 else _cast(val, "int32")
    if nbit == word.dtype.bits:
        return word
    return (word >> _cast(pos * nbit, word.dtype)) & ((1 << nbit) - 1)


def _bits_as(value, to):
    return apply(OPERATIONS["reinterpret"], value, _dtype(to))


def _in_words(read):
    """A converter of words whose type is said first."""

    def of(storage_type="uint", storage_nbit=8):
        storage = _dtype(f"{storage_type}{storage_nbit}")
        return lambda *arguments, **named: read(storage, *arguments, **named)

    return of


def _unsigned(storage, nbit, val, pos, dtype):
    return _cast(_field(nbit, val, pos, storage), dtype)


def _with_offset(storage, nbit, val, pos, dtype):
    return _cast(_cast(_field(nbit, val, pos, storage), "int32") - (1 << (nbit - 1)), dtype)


def _with_zeros(storage, nbit, val, pos, zero, dtype):
    field = _cast(_field(nbit, val, pos, storage), "int32")
    kind = _dtype(getattr(zero, "dtype", "int32"))
    exact = kind if "float" in kind else "int32"
    return _cast(_cast(field, exact) - _cast(zero, exact), dtype)


def _twos_complement(storage, nbit, val, pos, dtype):
    field = _cast(_field(nbit, val, pos, storage), "int32")
    return _cast((field << (32 - nbit)) >> (32 - nbit), dtype)


def _sign_and_exponent(storage, nbit, val, pos, dtype):
    """A sign and three bits of exponent: 0, or a power of two from 2^-6 on."""
    field = _cast(_field(nbit, val, pos, storage), "int32")
    exponent = field & 7
    bits = ((exponent | 8) | ((field >> 3) << 5)) << 10
    return _cast(_select(exponent == 0, _cast(0, "float16"), _bits_as(_cast(bits, "uint16"), "float16")), dtype)


_tir_packed_to_unsigned_convert = _in_words(_unsigned)
_tir_packed_to_signed_convert = _in_words(_with_offset)
_tir_packed_to_unsigned_convert_with_zeros = _in_words(_with_zeros)
_tir_packed_int_to_int_convert = _in_words(_twos_complement)
_tir_packed_to_fp4_to_f16 = _in_words(_sign_and_exponent)


def _tir_u8_to_f4_to_bf16(nbit, val, pos, scale, dtype):
    """A sign, two bits of exponent and one of mantissa, times 2^scale; the exponent stops where bfloat16's ends. 0 is read as
    2^-1, as programs and their references count on."""
    if nbit != 4 or _dtype(dtype) != _dtype("bfloat16"):
        fail("BadOption", f"_tir_u8_to_f4_to_bf16 of {nbit} bits to {dtype}", "it takes 4 bits to bfloat16")
    field = _field(nbit, val, pos, _dtype("uint8"))
    exponent = ((field >> 1) & 3) + 126 + _cast(scale, "int32")
    exponent = _select(exponent < 255, exponent, 255)
    return _bits_as(_cast(((field >> 3) << 15) | (exponent << 7) | ((field & 1) << 6), "uint16"), "bfloat16")


def _tir_u8_to_f8_e4m3_to_f16(nbit, val, dtype):
    if nbit != 8:
        fail("BadOption", f"_tir_u8_to_f8_e4m3_to_f16 of {nbit} bits", "it takes 8")
    return _cast(_bits_as(_cast(val, "uint8"), "float8_e4m3fn"), dtype)


def names():
    return {name: value for name, value in globals().items() if name.startswith("_tir_")}
