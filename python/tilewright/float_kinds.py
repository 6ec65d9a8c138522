"""Questions about dtypes: which are floats of 4, 6 and 8 bits, which a product may be made of."""
from .dtypes import UNPACKED, dtype

float4_e2m1_unpacked = dtype(UNPACKED)
_F8F6F4 = ("float8_e4m3fn", "float8_e5m2", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", UNPACKED)


def get_tvm_dtype(value):
    """A dtype by any of its names, or of PyTorch or NumPy."""
    return dtype(value)


def is_float4(value):
    """Whether it is a float of 4 bits, packed or not."""
    return dtype(value).is_float4()


def is_float4_e2m1fn(value):
    """Whether it is float4_e2m1fn, two of which share a byte."""
    return dtype(value).is_float4_e2m1fn()


def is_float4_e2m1_unpacked(value):
    """Whether it is fp4 with a byte for each element, as TMA of sm_100 unpacks it."""
    return dtype(value).is_float4_e2m1_unpacked()


def is_f8f6f4_family(value):
    """Whether it is a float of 4, 6 or 8 bits that products of mixed types take."""
    return dtype(value).element in _F8F6F4


def validate_gemm_ab_dtypes(a_dtype, b_dtype, *, a_in_tmem=False, allow_f8f6f4_mixed=False):
    """An error unless both are the same dtype, or where that is allowed floats of 4, 6 and 8 bits."""
    a, b = dtype(a_dtype), dtype(b_dtype)
    if a != b and not (allow_f8f6f4_mixed and is_f8f6f4_family(a) and is_f8f6f4_family(b)):
        raise ValueError(f"the operands of a gemm are {a} and {b}: they are of the same dtype")


__all__ = ["float4_e2m1_unpacked", "get_tvm_dtype", "is_f8f6f4_family", "is_float4", "is_float4_e2m1_unpacked", "is_float4_e2m1fn",
           "validate_gemm_ab_dtypes"]  # fmt: skip
