"""The converters of tilelang.quantize, on every number that fits a word, against NumPy."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from on_engines import every_engine, run
from tilewright.packed_numbers import (
    _tir_packed_int_to_int_convert,
    _tir_packed_to_fp4_to_f16,
    _tir_packed_to_signed_convert,
    _tir_packed_to_unsigned_convert,
    _tir_packed_to_unsigned_convert_with_zeros,
    _tir_u8_to_f4_to_bf16,
    _tir_u8_to_f8_e4m3_to_f16,
)

WORDS = {"uint8": np.arange(256, dtype="uint8"), "int8": np.arange(256).astype("uint8").view("int8")}
WORDS["uint32"] = np.random.default_rng(0).integers(0, 2**32, 64, dtype="uint32")


def fields(words, bits):
    """The fields of all words, in their order, as int64."""
    width = words.dtype.itemsize * 8
    unsigned = words.view(f"uint{width}").astype("int64")
    return np.stack([unsigned >> at & ((1 << bits) - 1) for at in range(0, width, bits)], -1).reshape(-1)


def each(words, bits, convert, out_dtype):
    """convert(word, place) of every field, as a program."""
    per = words.dtype.itemsize * 8 // bits
    count = words.size * per

    @T.prim_func
    def main(A: T.Tensor(words.shape, words.dtype.name), B: T.Tensor((count,), out_dtype)):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(count):
                B[i] = convert(A[i // per], i % per)

    return main


def found(engine, words, bits, convert, out_dtype):
    count = words.size * (words.dtype.itemsize * 8 // bits)
    out = np.zeros(count, out_dtype)
    run(each(words, bits, convert, out_dtype), engine, words, out)
    return out


@every_engine
@pytest.mark.parametrize("storage, bits", [("uint8", 4), ("int8", 4), ("uint8", 2), ("uint8", 8), ("int8", 1), ("uint32", 4), ("uint32", 16), ("uint32", 32)])
def test_integers(engine, storage, bits):
    words, of = WORDS[storage], (storage.rstrip("0123456789"), int(storage.lstrip("uint")))
    wanted = fields(words, bits)
    other = ("int" if of[0] == "uint" else "uint", of[1])  # a sign changes nothing of the bits
    out = found(engine, words, bits, lambda v, p: _tir_packed_to_unsigned_convert(*other)(bits, v, p, "float64"), "float64")
    assert (out == wanted).all()
    out = found(engine, words, bits, lambda v, p: _tir_packed_to_unsigned_convert(*of)(bits, v, pos=p, dtype="float64"), "float64")
    assert (out == wanted).all()
    out = found(engine, words, bits, lambda v, p: _tir_packed_int_to_int_convert(*of)(bits, v, p, "int32"), "int32")
    assert (out == np.where(wanted >= 1 << (bits - 1), wanted - (1 << bits), wanted)).all()
    if bits < 32:
        out = found(engine, words, bits, lambda v, p: _tir_packed_to_signed_convert(*of)(bits, v, p, "float32"), "float32")
        assert (out == wanted - (1 << (bits - 1))).all()
        of_zero = _tir_packed_to_unsigned_convert_with_zeros(*of)
        assert (found(engine, words, bits, lambda v, p: of_zero(bits, v, p, T.uint8(9), "float32"), "float32") == wanted - 9).all()
        assert (found(engine, words, bits, lambda v, p: of_zero(bits, v, p, T.float32(0.5), "float32"), "float32") == wanted - 0.5).all()


@every_engine
def test_floats(engine):
    words = WORDS["uint8"]
    field = fields(words, 4)
    exponent = field & 7
    powers = np.where(exponent == 0, 0, 2.0 ** (exponent - 7)) * np.where(field > 7, -1, 1)
    assert (found(engine, words, 4, lambda v, p: _tir_packed_to_fp4_to_f16()(4, v, p, "float16"), "float16") == powers).all()
    scaled = np.where(field > 7, -1, 1) * 2.0 ** ((field >> 1 & 3) + 2) * (1 + (field & 1) / 2)
    to_float = lambda v, p: T.cast(_tir_u8_to_f4_to_bf16(4, v, p, T.uint8(3), "bfloat16"), "float32")
    assert (found(engine, words, 4, to_float, "float32") == scaled).all()
    torch = pytest.importorskip("torch")
    wanted = torch.from_numpy(words).view(torch.float8_e4m3fn).to(torch.float16).numpy()
    out = found(engine, words, 8, lambda v, p: _tir_u8_to_f8_e4m3_to_f16(8, v, "float16"), "float16")
    assert np.array_equal(out, wanted, equal_nan=True)


def test_words_of_another_type_are_refused():
    with pytest.raises(tw.CompileError, match="TW.* a word of uint32 holds the packed numbers, which were to be in uint8"):
        each(WORDS["uint32"], 4, lambda v, p: _tir_packed_to_unsigned_convert()(4, v, p, "float16"), "float16")
    with pytest.raises(tw.CompileError, match="numbers of 9 bits in a word of uint8"):
        each(WORDS["uint8"], 4, lambda v, p: _tir_packed_to_unsigned_convert()(9, v, p, "float16"), "float16")
