"""Calls of the functions of tilewright.ops, a row each: three shapes of their own, of which none suits a tile, and a large
one for a GPU; and what PyTorch makes of the same. tests/python/test_families.py and bench/gpu/families.py go through
them."""

import functools
import math

import torch
from family_case import CASES, LARGE, Draw, add  # noqa: F401
from tilewright.ops import element_gradients, elementwise, reductions

F = torch.nn.functional


SHAPES = [(3, 37), (2, 3, 5), (1, 130), (4096, 8192)]


# ---- elements

_DOMAINS = {
    **dict.fromkeys(
        (
            "log",
            "log2",
            "log10",
            "log1p",
            "sqrt",
            "rsqrt",
            "pow",
            "reciprocal",
            "div",
            "floor_divide",
            "remainder",
            "fmod",
            "addcdiv",
        ),
        (0.2, 3),
    ),
    **dict.fromkeys(("asin", "acos", "atanh"), (-0.9, 0.9)),
    "acosh": (1.1, 4),
    "lerp": (0, 1),
}
_MORE = {
    "leaky_relu": (0.2,),
    "elu": (0.7,),
    "celu": (0.7,),
    "softplus": (2.0, 1.0),
    "hardtanh": (-0.5, 0.8),
    "hardshrink": (0.4,),
    "softshrink": (0.4,),
    "threshold": (0.1, -0.3),
    "addcmul": (0.5,),
    "addcdiv": (0.5,),
}


def _elements(row):
    whole = row.taken[0] not in ("float16",)

    def make(draw, size):
        low, high = _DOMAINS.get(row.name, (None, None))
        shape = SHAPES[size]
        if whole:
            return [draw(*shape, dtype=torch.int32, low=-50, high=50) for _ in row.tensors], {}
        tensors = [draw(*(shape[-1:] if i == 1 and size == 0 else shape), low=low, high=high) for i in range(len(row.tensors))]
        if row.result == "bool":
            tensors = [t.round() for t in tensors]
        return [*tensors, *_MORE.get(row.name, ())], {}

    dtypes = ("int32",) if whole else ("float32", "float16", "bfloat16")
    # A whole number of times, and what is left, change where a narrow operand is rounded: not where the call's own operands are compared.
    add(row.name, make, element_gradients.reference(row.name), gradients=row.gradients, dtypes=dtypes)


for _row in (*elementwise.ACTIVATIONS, *elementwise.MATHEMATICS, *elementwise.QUESTIONS, *elementwise.BITS, *elementwise.SEVERAL):
    _elements(_row)


def _two(draw, size, low=None, high=None):
    return [draw(*SHAPES[size], low=low, high=high), draw(*SHAPES[size], low=low, high=high)]


add("add", lambda d, s: (_two(d, s), {"alpha": 0.5} if s == 1 else {}), torch.add)
add("sub", lambda d, s: (_two(d, s), {"alpha": 2} if s == 1 else {}), torch.sub)
add("div", lambda d, s: (_two(d, s, 0.2, 3), {"rounding_mode": (None, "floor", "trunc", None)[s]}), torch.div, gradients=False)
add("clamp", lambda d, s: ([d(*SHAPES[s]), *((-0.5, 0.5) if s != 1 else (d(*SHAPES[s]), None))], {}), torch.clamp)
add("nan_to_num", lambda d, s: ([1 / d(*SHAPES[s]).relu()], {"posinf": 2.0}), torch.nan_to_num, gradients=False)
add("prelu", lambda d, s: ([d(*((4, 3, 5), (2, 7), (6, 5, 2, 3), (64, 256, 1024))[s]), d((3, 7, 5, 256)[s])], {}), F.prelu)
add("where", lambda d, s: ([d(*SHAPES[s], dtype=torch.bool), *_two(d, s)], {}), torch.where)
add("masked_fill", lambda d, s: ([d(*SHAPES[s]), d(*SHAPES[s], dtype=torch.bool), 0.5], {}), torch.Tensor.masked_fill)
for _f in ("silu", "gelu", "gelu_tanh", "relu", "sigmoid"):
    add(
        f"{_f}_and_mul",
        lambda d, s: ([d(*((3, 34), (2, 3, 10), (1, 130), (4096, 8192))[s])], {}),
        functools.partial(lambda f, x: f(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], element_gradients.reference(_f)),
    )

# ---- reductions, scans, orders

_REDUCED = [((3, 37), -1), ((4, 5, 6), 1), ((130,), 0), ((8192, 8192), -1)]
for _name, _row in reductions.TABLE.items():

    def _reduced(d, s, name=_name):
        shape, dim = _REDUCED[s]
        x = (
            d(*shape, low=0.8, high=1.2)
            if name == "prod"
            else d(*shape).round()
            if name in ("any", "all", "count_nonzero")
            else d(*shape)
        )
        return [x, dim], {}

    def _expected(x, dim, name=_name):
        return reductions.reference(name, x, [dim], False)

    add(_name, _reduced, _expected, gradients=_row.gradients and _row.result is None, tolerance=1e-4)
add(
    "var_mean",
    lambda d, s: ([d(*_REDUCED[s][0]), _REDUCED[s][1]], {"correction": 1}),
    lambda x, dim, correction: torch.var_mean(x, dim, correction=correction),
)
_SCANNED = [((3, 37), -1), ((4, 5, 6), 1), ((2, 300), -1), ((8192, 4096), -1)]
for _name in ("cumsum", "logcumsumexp", "cummax", "cummin"):
    add(_name, lambda d, s: ([d(*_SCANNED[s][0]), _SCANNED[s][1]], {}), getattr(torch, _name), tolerance=1e-4)
add("cumprod", lambda d, s: ([d(*_SCANNED[s][0], low=0.9, high=1.1), _SCANNED[s][1]], {}), torch.cumprod, tolerance=1e-4)
for _name in ("argmax", "argmin"):
    add(_name, lambda d, s: ([d(*_REDUCED[s][0]), _REDUCED[s][1]], {}), getattr(torch, _name), gradients=False)
_ORDERED = [((3, 37), -1), ((4, 20, 3), 1), ((2, 70), -1), ((2048, 4096), -1)]
add("topk", lambda d, s: ([d(*_ORDERED[s][0]), (5, 20, 9, 64)[s], _ORDERED[s][1]], {"largest": s != 1}))
for _name in ("sort", "argsort"):
    add(_name, lambda d, s: ([d(*_ORDERED[s][0]), _ORDERED[s][1]], {"descending": s == 1}), gradients=_name == "sort")
add("kthvalue", lambda d, s: ([d(*_ORDERED[s][0]), (5, 20, 9, 64)[s], _ORDERED[s][1]], {}))
add("median", lambda d, s: ([d(*_ORDERED[s][0]), _ORDERED[s][1]], {}))


def _selected(d, s):
    b, q, n, g = ((1, 5, 33, 1), (2, 3, 20, 2), (1, 4, 90, 1), (1, 1024, 8192, 1))[s]
    ends = d(b, q, dtype=torch.int32, low=n // 2, high=n)
    return [d(b, q, n, g), torch.zeros_like(ends), ends, (4, 7, 33, 512)[s]], {}


add("topk_selector", _selected, gradients=False, dtypes=("float32",))

# ---- rows and norms

_ROWS = [(3, 37), (2, 3, 20), (1, 300), (8192, 8192)]
for _name in ("softmax", "log_softmax"):
    add(_name, lambda d, s: ([d(*_ROWS[s]), (-1, 1, 0, -1)[s]], {}), getattr(torch, _name))
add("rms_norm", lambda d, s: ([d(*_ROWS[s]), d(_ROWS[s][-1])], {}), lambda x, w: F.rms_norm(x, w.shape, w, 1e-6))
add(
    "layer_norm",
    lambda d, s: ([d(*_ROWS[s]), d(_ROWS[s][-1]), d(_ROWS[s][-1])], {}),
    lambda x, w, b: F.layer_norm(x, w.shape, w, b),
)
add("fused_add_rms_norm", lambda d, s: ([d(*_ROWS[s]), d(*_ROWS[s]), d(_ROWS[s][-1])], {}))
add("fused_add_layer_norm", lambda d, s: ([d(*_ROWS[s]), d(*_ROWS[s]), d(_ROWS[s][-1]), d(_ROWS[s][-1])], {}))
add("ada_layer_norm", lambda d, s: ([d(*_ROWS[s]) for _ in range(3)], {}), lambda x, a, b: F.layer_norm(x, x.shape[-1:]) * a + b)
add(
    "ada_layer_norm_zero",
    lambda d, s: ([d(*_ROWS[s]) for _ in range(4)], {}),
    lambda x, a, b, g: g * (F.layer_norm(x, x.shape[-1:]) * a + b),
)
_IMAGES = [(2, 6, 5, 7), (3, 4, 9), (1, 8, 3, 4, 5), (32, 256, 64, 64)]
add("group_norm", lambda d, s: ([d(*_IMAGES[s]), 2, *(d(_IMAGES[s][1]) for _ in "wb")], {}), F.group_norm)
add("instance_norm", lambda d, s: ([d(*_IMAGES[s]), None, None, *(d(_IMAGES[s][1]) for _ in "wb")], {}), F.instance_norm)
add(
    "batch_norm",
    lambda d, s: ([d(*_IMAGES[s]), None, None, *(d(_IMAGES[s][1], dtype=torch.float32) for _ in "wb")], {"training": True}),
    lambda x, m, v, w, b, training: F.batch_norm(x, m, v, w.to(x.dtype), b.to(x.dtype), training),
)


def _normal_gradients(d, s):
    x, g = d(*_IMAGES[s]), d(*_IMAGES[s])
    dims = [0, *range(2, x.dim())]
    return [
        g,
        x,
        d(x.shape[1], dtype=torch.float32),
        x.float().mean(dims),
        (x.float().var(dims, correction=0) + 1e-5).rsqrt(),
    ], {}


def _of_normal(g, x, w, mean, rstd):
    x, w, b = x.clone().requires_grad_(), w.to(x.dtype).requires_grad_(), w.new_zeros(w.shape).to(x.dtype).requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(F.batch_norm(x, None, None, w, b, True), [x, w, b], g)


add("batch_norm_backward", _normal_gradients, _of_normal, gradients=False, tolerance=2e-4)

# ---- places

_TURNED = [(7, 8), (9, 6), (5, 2), (8192, 128)]
for _name in ("rope_neox", "rope_non_neox", "rope_llama31", "rope_yarn", "rope_long_rope"):
    add(
        _name,
        lambda d, s: (
            [d(2, _TURNED[s][0], 3, _TURNED[s][1]), "2d"]
            if s == 1
            else [d(4, 4096, 32, 128), "2d"]
            if s == LARGE
            else [d(*_TURNED[s])],
            {},
        ),
    )
add(
    "rope_neox_position_ids",
    lambda d, s: (
        [
            d(*((5, 3, 8), (7, 1, 12), (3, 2, 6), (16384, 32, 128))[s]),
            d((5, 7, 3, 16384)[s], dtype=torch.int32, low=0, high=20),
            20,
        ],
        {"rotary_dim": 4} if s == 1 else {},
    ),
)
add("dropout", lambda d, s: ([d(*SHAPES[s]), (0.3, 0.5, 0.1, 0.2)[s], 77], {}))


def _alibi(n, heads, dtype="float32", device="cpu"):
    at, slopes = torch.arange(n, device=device), torch.exp2(torch.arange(1, heads + 1, device=device) * (-8 / heads))
    return -slopes[:, None, None] * (at[:, None] - at).abs()


def _sinusoidal(n, width, dtype="float32", device="cpu"):
    frequencies = torch.exp(torch.arange(0, width, 2, device=device, dtype=torch.float32) * (-math.log(10000.0) / width))
    angles = torch.arange(n, device=device, dtype=torch.float32)[:, None] * frequencies
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)


def _placed(d, *numbers):
    return [*numbers], {"dtype": str(d.dtype).removeprefix("torch."), "device": d.device}


add("alibi", lambda d, s: _placed(d, *((7, 3), (20, 2), (33, 1), (4096, 16))[s]), _alibi, gradients=False)
add("sinusoidal", lambda d, s: _placed(d, *((7, 6), (20, 10), (33, 2), (32768, 2048))[s]), _sinusoidal, gradients=False)

# ---- windows

_SPACES = {
    1: [(2, 3, 11), (1, 4, 9), (3, 7), (32, 256, 4096)],
    2: [(2, 3, 9, 7), (1, 2, 6, 11), (3, 5, 7), (32, 64, 112, 112)],
    3: [(2, 3, 5, 6, 7), (1, 2, 4, 9, 5), (2, 4, 5, 6), (2, 32, 32, 56, 56)],
}
_POOLED = [
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 2, "ceil_mode": True},
    {"kernel_size": 3, "stride": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1},
]
for _n in (1, 2, 3):
    for _kind in ("avg", "max"):
        add(f"{_kind}_pool{_n}d", lambda d, s, n=_n: ([d(*_SPACES[n][s])], _POOLED[s]), getattr(F, f"{_kind}_pool{_n}d"))
        add(
            f"adaptive_{_kind}_pool{_n}d",
            lambda d, s, n=_n: ([d(*_SPACES[n][s]), (4, 3, 5, 7)[s]], {}),
            getattr(F, f"adaptive_{_kind}_pool{_n}d"),
        )
    add(
        f"max_pool{_n}d_indices",
        lambda d, s, n=_n: ([d(*_SPACES[n][s])], _POOLED[s]),
        functools.partial(getattr(F, f"max_pool{_n}d"), return_indices=True),
    )
    add(
        f"adaptive_max_pool{_n}d_indices",
        lambda d, s, n=_n: ([d(*_SPACES[n][s]), (4, 3, 5, 7)[s]], {}),
        functools.partial(getattr(F, f"adaptive_max_pool{_n}d"), return_indices=True),
    )

    def _weighed(d, s, n=_n):
        batch, channels, groups, named = (
            (2, 4, 1, {}),
            (1, 6, 2, {"stride": 2, "padding": 1}),
            (2, 3, 3, {"dilation": 2, "padding": 2}),
            (8, 64, 1, {"padding": 1}),
        )[s]
        space = ((9, 7, 6), (11, 6, 5), (8, 9, 7), {1: (4096,), 2: (56, 56), 3: (16, 28, 28)}[n])[s][:n]
        window = ((3, 2, 3), (2, 3, 2), (3, 3, 2), (3, 3, 3))[s][:n]
        outputs = channels * 2 if s < LARGE else 64
        return [d(batch, channels, *space), d(outputs, channels // groups, *window), d(outputs)], {"groups": groups, **named}

    add(f"conv{_n}d", _weighed, getattr(F, f"conv{_n}d"), tolerance=1e-4)

# ---- Fourier


def _points(d, s, real=False):
    shape = ((3, 8), (2, 30), (2, 12), (4096, 4096))[s]
    return [d(*shape, dtype=torch.float32) if real else torch.complex(*(d(*shape, dtype=torch.float32) for _ in "ri"))], {
        "norm": (None, "ortho", "forward", None)[s]
    }


for _name in ("fft", "ifft", "rfft", "irfft", "fft2", "ifft2"):
    add(
        _name,
        functools.partial(lambda real, d, s: _points(d, s, real), _name == "rfft"),
        getattr(torch.fft, _name),
        tolerance=2e-4,
        dtypes=("float32",),
        gradients=False,
    )

# What other tests go through: products, attention, transposes, conversions; what is tilewright.kernels' own.
ELSEWHERE = set(
    "Spec plan seal unseal matmul attention attention_varlen decode_attention transpose cast engram_hash engram_gate sinkhorn_normalize".split()
)

import family_cases_of_models  # noqa: E402, F401
