"""Descriptors of tcgen05.mma, by the fields that the tables of the PTX ISA have."""
import pytest
import tilewright as tw
from tilewright import as_tilelang, tcgen05
from tilewright.dtypes import UNPACKED as TEXT


def fields(number, **places):
    return {name: number >> begin & (1 << bits) - 1 for name, (begin, bits) in places.items()}


@pytest.mark.parametrize("a, b, c, formats", [
    ("float16", "float16", "float16", (0, 0, 0)), ("bfloat16", "bfloat16", "float32", (1, 1, 1)), ("tfloat32", "tfloat32", "float32", (2, 2, 1)),
    ("float8_e5m2", "float8_e4m3fn", "float16", (1, 0, 0)), ("float6_e2m3fn", "float6_e3m2fn", "float32", (3, 4, 1)),
    (TEXT, "float8_e4m3fn", "float32", (5, 0, 1)), ("int8", "uint8", "int32", (1, 0, 2)),
])  # fmt: skip
def test_descriptors_of_products(a, b, c, formats):
    number = tcgen05.instruction_descriptor(256, 72, 32, a, b, c, True, False, 1, -1)
    found = fields(number, low=(0, 4), c=(4, 2), a=(7, 3), b=(10, 3), signs=(13, 2), transposed=(15, 2), n=(17, 6), m=(24, 5), high=(29, 3))
    assert (found["a"], found["b"], found["c"]) == formats
    assert (found["n"], found["m"], found["signs"], found["transposed"], found["low"], found["high"]) == (9, 16, 2, 2, 0, 0)


def test_descriptors_of_products_with_scales():
    number = tcgen05.block_scaled_descriptor(128, 64, TEXT, "float6_e3m2fn", True, True, -1, 1, 2, 3)
    found = fields(number, b_byte=(4, 2), a=(7, 3), b=(10, 3), signs=(13, 2), n=(17, 6), ue8m0=(23, 1), m=(27, 2), a_byte=(29, 2), high=(31, 1))
    assert found == {"b_byte": 3, "a": 5, "b": 4, "signs": 1, "n": 8, "ue8m0": 1, "m": 1, "a_byte": 2, "high": 0}


def test_products_that_there_are_none_of():
    for refused, arguments in (
        ("no product of float16 and int8", (128, 64, 16, "float16", "int8", "float32")),
        ("tcgen05.mma of 100x64", (100, 64, 16, "float16", "float16", "float32")),
        ("scale_in_a", (128, 64, 16, "float16", "float16", "float32", True, True, 2)),
    ):
        with pytest.raises(tw.CompileError, match=refused):
            tcgen05.instruction_descriptor(*(*arguments, True, True)[: max(8, len(arguments))])
    with pytest.raises(tw.CompileError, match="no product of float16 and float16 with scales of blocks"):
        tcgen05.block_scaled_descriptor(128, 64, "float16", "float16", True, True)
    with pytest.raises(tw.CompileError, match="sf_b_id"):
        tcgen05.block_scaled_descriptor(128, 64, TEXT, TEXT, True, True, scales_b=4)


def test_names_that_tilelang_has_for_them():
    table = as_tilelang._modules()["tilelang._ffi_api"]
    assert table["get_tcgen5_instr_desc"](128, 128, 32, "float8_e4m3fn", "float8_e4m3fn", "float32", True, True, 1, 1) == 1 << 4 | 16 << 17 | 8 << 24
    assert table["get_tcgen5_blockscaled_instr_desc"](128, 128, TEXT, TEXT, True, True, 1, 1, 0, 0) == 5 << 7 | 5 << 10 | 16 << 17 | 1 << 23 | 1 << 27
