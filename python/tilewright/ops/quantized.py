"""Quantized numbers: rows as float8 with scales, and products of float8 and of four bits."""

from __future__ import annotations

from .calls import compiled, name_of, place_of, product, refuse_shape
from .operators import FLOATS, Core, check, check_choice, check_number, launch, on_gpu, public, refuse_option
from .products import kernel_for

_EIGHTS = ("float8_e4m3fn", "float8_e5m2")
_MANY_ROWS = 1024


def programs():
    from .programs import quantized

    return quantized


def _run_rows(x):
    import torch

    made, scales = x.new_empty(x.shape, dtype=torch.float8_e4m3fn), x.new_empty(x.shape[:-1], dtype=torch.float32)
    if made.numel():
        m, n = product(x.shape[:-1]), x.shape[-1]
        threads = min(512, max(128, -(-n // 64) // 32 * 32)) if on_gpu(x) else 128
        options = {"x": name_of(x.dtype), "columns": n, "rows": max(1, min(64, 4096 // n)), "threads": threads}
        launch(programs().rows, options, x.view(m, n), made.view(m, n), scales.view(m))
    return scales, made


def _reference_rows(x):
    import torch

    scale = x.float().abs().amax(-1, keepdim=True).clamp(1e-4) / 448
    return scale.squeeze(-1), (x.float() / scale).to(torch.float8_e4m3fn)


_rows = Core("fp8_quant", "(Tensor x) -> (Tensor, Tensor)", _run_rows, _reference_rows)


def fp8_quant(x):
    """(scales, float32 without the last dimension; x divided by them, float8_e4m3fn): the scale of a row is its largest
    magnitude, 1e-4 at least, divided by 448. x: (..., N) of float16, bfloat16 or float32, N from 1 to 32768. Rounded
    once, to nearest even."""
    x = check("fp8_quant", "x", x)
    if not len(x.shape) or not 0 < x.shape[-1] <= 32768:
        refuse_shape("fp8_quant", f"'x' has shape {tuple(x.shape)}", "its last dimension has 1 to 32768 elements")
    return _rows(x)


def _result(name, out_dtype):
    kind = name_of(out_dtype)
    check_choice(name, "out_dtype", kind, FLOATS)
    return kind


def _scales_are(scale_a, scale_b, n):
    """How a product has its scales: one of each operand, of rows of both, or of rows of the first and blocks of the second."""
    return "one" if scale_a.numel() == scale_b.numel() == 1 else "rows" if scale_b.shape[0] == n else "blocks"


def _as_it_comes_best(scale_a):
    """(scale_a as a kernel reads it, whether transposed). TMA brings scales that lie side by side for neighbouring rows; one of
    many rows whose do not is transposed first: 3 us where it saves 9 and more (1024 rows of 7168, an H200)."""
    rows, steps = scale_a.shape
    lies_so = scale_a.T.is_contiguous()
    across = steps > 1 and rows % 4 == 0 and on_gpu(scale_a) and (lies_so or rows >= _MANY_ROWS)
    return (scale_a.T if across else scale_a).contiguous(), across


def _run_scaled(a, b, scale_a, scale_b, bias, out_dtype, fast):
    import torch

    made = a.new_empty((a.shape[0], b.shape[0]), dtype=getattr(torch, out_dtype))
    if made.numel():
        scales = _scales_are(scale_a, scale_b, b.shape[0])
        if scales == "rows":
            scale_b = scale_b.T.contiguous()
        scale_a, across = _as_it_comes_best(scale_a)
        options = {"a": name_of(a.dtype), "b": name_of(b.dtype), "result": out_dtype, "transpose_b": True, "scales": scales,
                   "transpose_scale_a": across, "fast_sum": fast, "bias": bias is not None}  # fmt: skip
        extents = {"M": a.shape[0], "N": b.shape[0], "K": a.shape[1]}
        wanted, _ = kernel_for(options, place_of(a), extents, ())
        compiled(wanted)(a, b, scale_a, scale_b, *(() if bias is None else (bias,)), made)
    return made


def _reference_scaled(a, b, scale_a, scale_b, bias, out_dtype, fast):
    import torch

    def wide(x, scale):
        if scale_a.numel() == scale_b.numel() == 1:
            return x.float() * scale
        if scale.shape[0] != x.shape[0]:
            scale = scale.repeat_interleave(128, 0)[: x.shape[0]]
        return x.float() * scale.repeat_interleave(128, 1)[:, : x.shape[1]]

    made = wide(a, scale_a) @ wide(b, scale_b).T
    return (made if bias is None else made + bias.float()).to(getattr(torch, out_dtype))


_scaled = Core(
    "scaled_product",
    "(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, Tensor? bias, str out_dtype, bool fast) -> Tensor",
    _run_scaled,
    _reference_scaled,
)


def gemm_fp8(a, b, scale_a, scale_b, bias=None, *, out_dtype="bfloat16", fast_sum=False):
    """(a * scale_a) @ (b * scale_b)^T + bias, (M, N).

    a: (M, K), b: (N, K) of one float8 dtype; scales: float32 (1, 1) both, or (M, ceil(K / 128)) and (N, ceil(K / 128)), one
    for each 128 elements, or scale_b (ceil(N / 128), ceil(K / 128)), one for each block of 128 x 128; bias: (N,) of out_dtype:
    float16, bfloat16 or float32. Summed in float32, block of 128 by block, and rounded once. fast_sum, of scales (1, 1): blocks
    are summed by the matrix unit, which keeps about 14 bits of what it adds (as torch._scaled_mm with
    use_fast_accum)."""
    name = "gemm_fp8"
    a = check(name, "a", a, _EIGHTS, rank=2)
    b = check(name, "b", b, shape=(None, a.shape[1]), like=a)
    kind, blocks = _result(name, out_dtype), -(-a.shape[1] // 128)
    for argument, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        check(name, argument, scale, ("float32",), rank=2)
    given = tuple(scale_a.shape), tuple(scale_b.shape)
    of_b = [(b.shape[0], blocks), (-(-b.shape[0] // 128), blocks)]
    if given not in (((1, 1), (1, 1)), *(((a.shape[0], blocks), shape) for shape in of_b)):
        refuse_shape(
            name,
            f"scales have shapes {given[0]} and {given[1]}",
            f"both are (1, 1), or ({a.shape[0]}, {blocks}) and {of_b[0]} or {of_b[1]}",
        )
    if fast_sum and given != ((1, 1), (1, 1)):
        refuse_option(name, f"fast_sum with scales of shapes {given[0]} and {given[1]}", "blocks of their own scales are summed one by one: fast_sum takes scales (1, 1)")
    bias = None if bias is None else check(name, "bias", bias, (kind,), shape=(b.shape[0],))
    return _scaled(a, b, scale_a, scale_b.contiguous(), bias, kind, bool(fast_sum))


def _run_four_bits(a, packed, scale, zero, group):
    made = a.new_empty((a.shape[0], packed.shape[0]))
    if made.numel():
        rows = 16 if a.shape[0] <= 16 else 32 if a.shape[0] <= 32 else 64
        options = {"x": name_of(a.dtype), "group": group, "rows": rows, "columns": 64, "depth": 64, "threads": 128}
        launch(programs().four_bits, options, a, packed, scale, zero, made)
    return made


def _reference_four_bits(a, packed, scale, zero, group):
    import torch

    numbers = torch.stack((packed & 15, packed >> 4), -1).flatten(1).float()
    weight = (numbers - zero.float().repeat_interleave(group, 1)) * scale.repeat_interleave(group, 1)
    return (
        a.to(torch.promote_types(a.dtype, torch.float32)) @ weight.to(a.dtype).to(torch.promote_types(a.dtype, torch.float32)).T
    ).to(a.dtype)


_four_bits = Core(
    "four_bit_product",
    "(Tensor a, Tensor packed, Tensor scale, Tensor zero, int group) -> Tensor",
    _run_four_bits,
    _reference_four_bits,
)


def gemm_w4a16(activation, packed_weight, weight_scale, weight_zero, *, group_size=128):
    """activation @ W^T, (M, N), of weights of four bits: W = (bits - zero) * scale, for groups of group_size along K,
    rounded to the activation's dtype before the product.

    activation: (M, K) of float16 or bfloat16; packed_weight: uint8 (N, K / 2), the even k in the lower bits; weight_scale:
    float32 and weight_zero: uint8, both (N, K / group_size). group_size is even and divides K. Summed in float32 and rounded
    once. The activation has a gradient in PyTorch."""
    name = "gemm_w4a16"
    activation = check(name, "activation", activation, ("float16", "bfloat16"), rank=2)
    check_number(name, "group_size", group_size, 2, whole=True)
    k = activation.shape[1]
    if k % group_size or group_size % 2:
        refuse_option(name, f"group_size is {group_size}, K is {k}", "it is even and divides K")
    packed = check(name, "packed_weight", packed_weight, ("uint8",), shape=(None, k // 2))
    scale = check(name, "weight_scale", weight_scale, ("float32",), shape=(packed.shape[0], k // group_size))
    zero = check(name, "weight_zero", weight_zero, ("uint8",), shape=tuple(scale.shape))
    return _four_bits(activation, packed, scale, zero, group_size)


fp8_quant, gemm_fp8, gemm_w4a16 = map(public, (fp8_quant, gemm_fp8, gemm_w4a16))
