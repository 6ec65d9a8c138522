"""Products with a matrix of 2:4 sparsity (1:2 of 32-bit elements), written with the language's own operations: the matrix
is unpacked to a dense tile, which is multiplied. Each group of the dense matrix has four bits of metadata: the positions
of its elements that are kept, two bits each."""
from . import language as T
from .dtypes import dtype
from .program import macro
from .trace import fail

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



@macro
def _unpacked(A, E, dense, rows, columns, kept, group, factor, transpose_A, transpose_E):
    for i, k in T.Parallel(rows, columns):
        word = E[k // factor, i] if transpose_E else E[i, k // factor]
        bits = T.cast(word, "int32") >> (k % factor // group * _BITS_OF_GROUP)
        first = k // group * kept
        if kept == 2:
            at = T.if_then_else((bits >> 2 & 3) == k % 4, first + 1, first)
            held = T.Or((bits & 3) == k % 4, (bits >> 2 & 3) == k % 4)
        else:
            at = first
            held = (bits >> 1 & 1) == k % 2
        value = A[at, i] if transpose_A else A[i, at]
        dense[i, k] = T.if_then_else(held, value, T.cast(0, dense.dtype))


def gemm_sp(A_sparse, E, B, C, transpose_E=False, transpose_A=False, transpose_B=False, policy=None, clear_accum=False, wg_wait=0):
    """C += A B, where A_sparse holds the kept elements of A, and E which they are. The tiles are whole buffers."""
    config = GROUP_CONFIG.get(A_sparse.dtype)
    if config is None:
        fail("GemmType", f"gemm_sp of {A_sparse.dtype}", "it takes " + ", ".join(GROUP_CONFIG))
    kept, group = config
    rows, columns = reversed(A_sparse.shape) if transpose_A else A_sparse.shape
    columns = columns // kept * group
    factor = get_e_factor(A_sparse.dtype, E.dtype)
    want = (rows, columns // factor)
    if tuple(reversed(E.shape) if transpose_E else E.shape) != want:
        fail("GemmInner", f"gemm_sp: the metadata '{E.name}' is {tuple(E.shape)}, but the matrix has {want[0]} rows of {want[1]} words",
             "one element of the metadata describes that many elements of a row: get_e_factor")  # fmt: skip
    dense = T.alloc_shared((rows, columns), A_sparse.dtype)
    _unpacked(A_sparse, E, dense, rows, columns, kept, group, factor, transpose_A, transpose_E)
    options = {} if policy is None else {"policy": policy}
    T.gemm(dense, B, C, transpose_B=transpose_B, clear_accum=clear_accum, **options)
