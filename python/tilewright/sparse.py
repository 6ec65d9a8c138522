"""Matrices of 2:4 sparsity (1:2 of 32-bit elements), as T.gemm_sp takes them: each group of the dense matrix has four bits
of metadata, the positions of its elements that are kept, two bits each."""
from .dtypes import dtype
from .refused import REFUSED

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


class _ByType:
    """A function of a dtype, as a table."""

    def __init__(self, of):
        self.of = of

    def __getitem__(self, key):
        return self.of(key)


SparseTensorCoreIntrinEmitter = REFUSED["SparseTensorCoreIntrinEmitter"]
# Where earlier releases have the two numbers: E_FACTOR_MAP["float16"]["int16"].
SparseTensorCoreIntrinEmitter.E_FACTOR_MAP = _ByType(lambda a_dtype: _ByType(lambda meta_dtype: get_e_factor(a_dtype, meta_dtype)))
SparseTensorCoreIntrinEmitter.E_REPLICATE_FACTOR = _ByType(get_e_replicate_factor)


def _kept(of):
    return GROUP_CONFIG[dtype(str(of).removeprefix("torch."))]


def _without_half(dense, transposed):
    """A (M, K) tensor with the least elements of each group of a row left; transposed, it is given as (K, M)."""
    elements, group = _kept(dense.dtype)
    parts = dense.view(dense.shape[0], -1, group)
    parts = parts.scatter(-1, parts.topk(elements, dim=-1).indices, 0).view(dense.shape)
    return parts.t().contiguous() if transposed else parts


def randn_semi_sparse(M, K, dtype=None, device="cuda", transposed=False):
    """Random numbers of which one half of each group along K is zero: (M, K), or (K, M) transposed; float16 unless said."""
    import torch

    kind = torch.float16 if dtype is None else dtype
    wide = torch.randn(M, K, device=device).to(torch.float32 if kind == torch.float32 else torch.float16)
    return _without_half(wide, transposed).to(kind)


def randint_semi_sparse(M, K, low, high, dtype=None, device="cuda", transposed=False):
    """Integers from low to high - 1 of which one half of each group along K is zero: (M, K), or (K, M) transposed; int8
    unless said."""
    import torch

    kind = torch.int8 if dtype is None else dtype
    return _without_half(torch.randint(low, high, (M, K), device=device, dtype=torch.int32).to(kind), transposed)


def arange_semi_sparse(M, K, dtype=None, device="cuda", transposed=False):
    """The numbers from 0 of which one half of each group along K is zero: (M, K), or (K, M) transposed; float16 unless said."""
    import torch

    kind = torch.float16 if dtype is None else dtype
    return _without_half(torch.arange(M * K, device=device).view(M, K).to(kind), transposed)


def compress(A, transposed=False, arch=None, block_k=None, meta_dtype=None):
    """(the kept elements, the metadata) of a tensor (M, K), or (K, M) transposed, for T.gemm_sp: the metadata is (M, K / n),
    of uint8 for sm_90, of int16 for sm_80 and int32 there of elements of 8 bits, unless meta_dtype says. ValueError: a group
    has more elements than are kept."""
    import torch

    dense = A.t().contiguous() if transposed else A
    elements, group = _kept(dense.dtype)
    if dense.shape[1] % group:
        raise ValueError(f"rows of {dense.shape[1]} elements are no whole groups of {group}")
    parts = dense.view(dense.shape[0], -1, group)
    used = parts.to(torch.float32) != 0
    if int(used.sum(-1).max()) > elements:
        raise ValueError(f"a group of {group} has more than {elements} elements that are not zero")
    at = used.to(torch.int8).argsort(dim=-1, descending=True, stable=True)[..., :elements].sort(dim=-1).values
    bits = parts.view(torch.int8) if parts.element_size() == 1 else parts
    kept = bits.gather(-1, at).view(dense.dtype if parts.element_size() == 1 else bits.dtype).reshape(dense.shape[0], -1)
    codes = at[..., 0] | at[..., 1] << 2 if elements == 2 else at[..., 0] * 10 + 4
    older = str(arch or "9.0").removeprefix("sm_").startswith("8")
    words = dtype(meta_dtype or (("int32" if dense.element_size() == 1 else "int16") if older else "uint8"))
    many = words.bits // _BITS_OF_GROUP
    if codes.shape[1] % many:
        raise ValueError(f"a row of {codes.shape[1]} groups is no whole number of {words}: its metadata has {many} groups in one")
    packed = sum(codes.view(codes.shape[0], -1, many)[..., k].to(torch.int64) << 4 * k for k in range(many))
    half = 0 if str(words).startswith("u") else 1 << words.bits - 1
    wrapped = (packed + half) % (1 << words.bits) - half
    return kept.t().contiguous() if transposed else kept, wrapped.to(words.as_torch())


def compress_sm90(A, block_k=None, transposed=False):
    return compress(A, transposed, "9.0", block_k)


def compress_sm80(A, transposed=False):
    return compress(A, transposed, "8.0")
