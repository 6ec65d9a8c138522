"""Matrices of 2:4 sparsity (1:2 of 32-bit elements), as T.gemm_sp takes them: each group of the dense matrix has four bits
of metadata, the positions of its elements that are kept, two bits each."""
from .dtypes import dtype

_BITS_OF_GROUP = 4
# Elements that are kept of each group of so many.
GROUP_CONFIG = {dtype("float32"): (1, 2)}
for _name in ("float16", "bfloat16", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"):
    GROUP_CONFIG[dtype(_name)] = (2, 4)


def get_e_factor(a_dtype, meta_dtype):
    """Elements of the dense matrix that one element of the metadata describes."""
    _, group = GROUP_CONFIG[dtype(a_dtype)]
    return dtype(meta_dtype).bits // _BITS_OF_GROUP * group


def get_e_replicate_factor(a_dtype):
    """How many threads that follow each other share an element of the metadata."""
    return 1 if dtype(a_dtype).bits <= 8 else 2
