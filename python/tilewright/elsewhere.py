"""Words that Triton, NumPy, PyTorch and CUDA have for what the language has: as T.word, as methods of values, and as functions
of theirs that are given values of a program."""
import difflib

_GEMM = "T.gemm(a_shared, b_shared, c_fragment), which adds to c"
_TRANSPOSED = "T.gemm(a, b, c, transpose_B=True) reads a tile the other way round (transpose_A likewise); a loop writes B[j, i] = A[i, j]"
_NEW = "T.alloc_fragment(shape, dtype) or T.alloc_shared(shape, dtype), then T.clear(tile) or T.fill(tile, value)"
_CAST = 'T.cast(x, "float16"); T.copy between tiles of two dtypes converts'
_TILE = "T.copy(A[i * 64, j * 64], tile) for a tile, A[i, j] for an element"
_TO_TILE = "T.copy(tile, A[i * 64, j * 64]) for a tile, A[i, j] = x for an element"
_BLOCK = "the names of the launch: with T.Kernel(M, N, threads=128) as (bx, by)"
_LOOP = "range(n) or T.serial(n); T.Parallel(n) for points without order, T.unroll(n), T.Pipelined(n, num_stages=3)"
_PARTS = "T.copy of each part to its place in a larger tile: T.copy(a, c[0:64, :])"
_INDEX = "indices: for i, j in T.Parallel(M, N): c[i, j] = a[i, j] * b[i]"
_AT_RUN_TIME = "its value is known only at run time: T.print(x) prints it, A[i] = x stores it"
_OWN = "it is tilewright.{}: import tilewright as tw"
_HOST = "PyTorch or NumPy does it, before or after the kernel"
_DEVICES = "a program runs on one device: torch.distributed sends between kernels; blocks of a cluster share by T.Kernel(..., cluster_dims=2)"


def _words(names, instead):
    return dict.fromkeys(names.split(), instead)


# What is written instead. Of a function that T has by the same name, T's is: T.exp for np.exp.
WORDS = {
    **_words("program_id blockIdx pid", _BLOCK),
    **_words("num_programs gridDim", "the extents that T.Kernel is given, or T.get_block_extent(0)"),
    **_words("threadIdx tid", "T.get_thread_binding(0); T.Parallel(n) deals points to threads by itself"),
    **_words("blockDim num_threads", "threads= of T.Kernel, or T.get_thread_extent(0)"),
    **_words("warpSize num_warps", "threads=32 * warps of T.Kernel"),
    **_words("load", _TILE),
    **_words("store", _TO_TILE),
    **_words("make_block_ptr make_tensor_descriptor advance", "the tensor itself: " + _TILE),
    **_words("dot matmul mm bmm einsum inner linear dot_scaled", _GEMM),
    **_words("where", "T.if_then_else(condition, a, b)"),
    **_words("arange", "for i in T.Parallel(n): its i is what arange holds"),
    **_words("sum", "T.reduce_sum(tile, result, dim=1)"),
    **_words("amax nanmax", "T.reduce_max(tile, result, dim=1)"),
    **_words("amin nanmin", "T.reduce_min(tile, result, dim=1)"),
    **_words("prod", "a loop: v = T.alloc_var(dtype, init=1), then v *= tile[i]"),
    **_words("mean average var std norm", "T.reduce_sum(tile, result, dim=1), and divide by the extent"),
    **_words("argmax argmin", "T.reduce_max(tile, result, dim=1), and a loop that compares with it"),
    **_words("cumprod", "T.cumsum of logarithms, or a loop"),
    **_words("any", "T.any_of(tile), or T.reduce_bitor"),
    **_words("all", "T.all_of(tile), or T.reduce_bitand"),
    **_words("softmax log_softmax", "T.reduce_max, T.exp and T.reduce_sum: docs/python.md has it whole"),
    **_words("relu", "T.max(x, 0)"),
    **_words("gelu silu layer_norm rms_norm", "its formula, with T.exp, T.erf, T.sigmoid and T.reduce_sum"),
    **_words("zeros zeros_like ones ones_like full full_like empty_like tensor array", _NEW),
    **_words("constexpr", "a plain argument: its value chooses the kernel"),
    **_words("to astype type type_as half double", _CAST),
    **_words("T mT H t trans permute swapaxes moveaxis", _TRANSPOSED),
    **_words("expand_dims unsqueeze squeeze broadcast_to expand repeat tile meshgrid", _INDEX),
    **_words("flatten ravel", "T.reshape(A, [M * N])"),
    **_words("concatenate cat concat stack hstack vstack join split chunk", _PARTS),
    **_words("maximum fmax", "T.max(a, b)"),
    **_words("minimum fmin", "T.min(a, b)"),
    **_words("absolute", "T.abs(x)"),
    **_words("clip", "T.clamp(x, low, high)"),
    **_words("square", "x * x"),
    **_words("reciprocal", "1.0 / x"),
    **_words("add subtract multiply divide true_divide mod remainder negative", "an operator: a + b, a - b, a * b, a / b, a % b, -a"),
    **_words("sort argsort topk unique nonzero", _HOST),
    **_words("rand randn randint", "T.rng_init(seed) and T.rng_rand_float()"),
    **_words("prange static_range range", _LOOP),
    **_words("device_print printf", 'T.print(x, msg="x")'),
    **_words("static_assert", "assert, which is Python's where it knows the condition"),
    **_words("atomic_sum atomicAdd index_add scatter_add", "T.atomic_add(A[i], x)"),
    **_words("warp_sum warp_reduce", "T.warp_reduce_sum(x)"),
    **_words("debug_barrier barrier __syncthreads", "T.sync_threads(), which T.copy and T.gemm need none of"),
    **_words("item tolist numpy cpu cuda detach backward requires_grad grad", _AT_RUN_TIME),
    **_words("copy_ clone contiguous", "T.copy(source, target)"),
    **_words("fill_ zero_", "T.fill(tile, value), T.clear(tile)"),
    **_words("numel size dim", "A.shape, which has the extents, and A.ndim"),
    **_words("append extend insert", "a tile: T.alloc_local((n,), dtype)"),
    **_words("Scale allreduce barrier_blocks get_block put_block get_warp put_warp get_rank get_num_ranks signal_op FullCol FullRow Replica", _DEVICES),
    **_words("jit", _OWN.format("jit")),
    **_words("autotune Config", _OWN.format("autotune") + '; its configs are dictionaries, {"block": 64}'),
    **_words("compile", _OWN.format("compile")),
    **_words("custom_op", _OWN.format("custom_op")),
}
# Those that are asked of tensors: A.T, x.to("float16").
METHODS = tuple(
    "to astype type_as half double T mT t permute swapaxes sum prod mean var std norm amax amin argmax argmin max min any all cumsum cumprod softmax "
    "relu exp log sqrt rsqrt abs sin cos tanh sigmoid pow square reciprocal clip clamp dot matmul mm bmm clone contiguous copy_ fill_ zero_ item "
    "tolist numpy cpu cuda detach backward requires_grad flatten ravel reshape view transpose unsqueeze squeeze expand repeat split chunk sort argsort "
    "topk unique nonzero numel size dim append extend where masked_fill_".split()
)
# Methods that are other words than the functions of T of their name.
METHOD_WORDS = {
    "max": "T.reduce_max(tile, result, dim=1) of a tile, T.max(a, b) of two values",
    "min": "T.reduce_min(tile, result, dim=1) of a tile, T.min(a, b) of two values",
    "view": "T.view(A, shape, dtype), the same memory",
    "reshape": "T.reshape(A, shape), the same memory",
    "cumsum": "T.cumsum(tile, dim=1)",
    "transpose": _TRANSPOSED,
    "masked_fill_": "T.if_then_else(condition, a, b)",
    "where": WORDS["where"],
}


def instead_of(name):
    """What is written in place of a function or method of another library; "" where nobody knows."""
    if name in METHOD_WORDS:
        return METHOD_WORDS[name]
    if name in WORDS:
        return WORDS[name]
    from . import language

    known = name in language._known_names() and callable(getattr(language, name))
    return f"T.{name}(x)" if known else ""


def nearest(name, known, cutoff=0.75, count=3):
    """What a misspelt name may have meant, in a sentence's words; "" where nothing is near."""
    near = difflib.get_close_matches(str(name), sorted(map(str, known)), count, cutoff)
    return ", ".join(near)
