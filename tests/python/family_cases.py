"""Calls of the functions of tilewright.ops, a row each: three shapes of their own, of which none suits a tile, and a large
one for a GPU; and what PyTorch makes of the same. tests/python/test_families.py and bench/gpu/families.py go through
them."""

import functools
import math
import zlib

import torch
import tilewright.ops as ops
from tilewright.ops import element_gradients, elementwise, reductions

F = torch.nn.functional
LARGE = 3  # behind the three small sizes


class Draw:
    """Random tensors of one case, the same for each run."""

    def __init__(self, seed, dtype, device):
        self.random, self.dtype, self.device = torch.Generator().manual_seed(zlib.crc32(seed.encode())), dtype, device

    def __call__(self, *shape, dtype=None, low=None, high=None):
        """Normal ones, or uniform ones from low to high; of an integer dtype whole ones."""
        dtype = dtype or self.dtype
        if not dtype.is_floating_point and dtype is not torch.bool:
            return torch.randint(low, high, shape, generator=self.random, dtype=torch.int64).to(dtype).to(self.device)
        made = (
            torch.randn(shape, generator=self.random)
            if low is None
            else torch.rand(shape, generator=self.random) * (high - low) + low
        )
        return (made > 0).to(self.device) if dtype is torch.bool else made.to(dtype).to(self.device)


class Case:
    """make(draw, size) gives (arguments, named arguments); reference(*arguments, **named) what is expected."""

    def __init__(
        self, make, reference=None, tolerance=2e-5, gradients=True, dtypes=("float32", "float16", "bfloat16"), bytes_of=None
    ):
        self.make, self.reference, self.tolerance, self.gradients, self.dtypes = make, reference, tolerance, gradients, dtypes


CASES = {}
SHAPES = [(3, 37), (2, 3, 5), (1, 130), (4096, 8192)]


def add(name, make, reference=None, **more):
    CASES[name] = Case(make, reference or getattr(getattr(ops, name), "reference", None), **more)


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
for _name, _reference in {"softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(-1)}.items():
    add(_name, lambda d, s: ([d(*_ROWS[s])], {}), _reference)
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

# ---- mixtures of experts

_MIXED = [(11, 6, 3, 20, 10), (5, 4, 2, 16, 8), (1, 8, 8, 12, 6), (4096, 64, 8, 2048, 768)]


def _gates(d, s):
    tokens, experts, k, _, _ = _MIXED[s]
    return d(tokens, experts, dtype=torch.float32), k


def _chosen(d, s):
    gate, k = _gates(d, s)
    weights, ids = gate.softmax(-1).topk(k)
    return weights.contiguous(), ids.int().contiguous()


def _of_gate(gate, k, scoring_func="softmax", renormalize=False):
    weights, ids = (gate.softmax(-1) if scoring_func == "softmax" else gate.sigmoid()).topk(k)
    return (weights / weights.sum(-1, keepdim=True) if renormalize else weights), ids.int()


add(
    "moe_topk",
    lambda d, s: ([*_gates(d, s)], {"scoring_func": "sigmoid" if s == 1 else "softmax", "renormalize": s == 2}),
    _of_gate,
    dtypes=("float32",),
)


def _permuted(hidden, ids, experts):
    flat, k = ids.reshape(-1).long(), ids.shape[1]
    order = torch.argsort(flat, stable=True)
    to = torch.empty_like(order)
    to[order] = torch.arange(len(order), device=order.device)
    sizes = torch.bincount(flat, minlength=experts)
    ends = sizes.cumsum(0)
    first = torch.cat((ends.new_zeros(1), ends))
    return hidden[order // k], (ends - sizes).int(), sizes.int(), first, to.int()


add("moe_permute", lambda d, s: ([d(_MIXED[s][0], _MIXED[s][3]), _chosen(d, s)[1], _MIXED[s][1]], {}), _permuted)


def _aligned(ids, experts, block):
    """In plain Python."""
    pairs = ids.numel()
    flat = ids.reshape(-1).tolist()
    rows, blocks = [], []
    for e in range(experts):
        own = [p for p in range(pairs) if flat[p] == e]
        own += [pairs] * (-len(own) % block)
        rows += own
        blocks += [e] * (len(own) // block)
    most = (pairs + (block - 1) * experts) // block * block
    taken = len(rows)
    rows += [pairs] * (most - taken)
    blocks += [-1] * (most // block - len(blocks))
    return tuple(torch.tensor(v, dtype=torch.int32, device=ids.device) for v in (rows, blocks, [taken]))


add(
    "moe_permute_align",
    lambda d, s: ([_chosen(d, s)[1], _MIXED[s][1], (4, 2, 3, 64)[s]], {}),
    _aligned,
    gradients=False,
    dtypes=("float32",),
)


def _unpermuted(d, s):
    weights, ids = _chosen(d, s)
    return [d(ids.numel(), _MIXED[s][3]), _permuted(ids[:, :1], ids, _MIXED[s][1])[4], weights], {}


add("moe_unpermute", _unpermuted)


def _grouped(d, s, columns, transposed=True):
    tokens, experts, k, hidden, ffn = _MIXED[s]
    _, begins, sizes, _, _ = _permuted(torch.zeros(tokens, 1), _chosen(d, s)[1].cpu(), experts)
    b = d(experts, *((columns * ffn, hidden) if transposed else (hidden, columns * ffn)), low=-0.3, high=0.3)
    return [d(tokens * k, hidden), b, sizes.to(d.device), begins.to(d.device)]


for _name in ("grouped_matmul", "moe_grouped_matmul"):
    add(_name, lambda d, s: (_grouped(d, s, 1), {}), tolerance=1e-4)
add(
    "moe_gate_up",
    lambda d, s: (_grouped(d, s, 2), {"activation": ("silu_and_mul", "gelu_and_mul", "relu_and_mul", "silu_and_mul")[s]}),
    tolerance=1e-4,
)


def _expert_weights(d, s):
    _, experts, _, hidden, ffn = _MIXED[s]
    return d(experts, 2 * ffn, hidden, low=-0.3, high=0.3), d(experts, hidden, ffn, low=-0.3, high=0.3)


def _experts(hidden, w_gate_up, w_down, weights, ids):
    made = torch.zeros_like(hidden)
    for e in range(w_gate_up.shape[0]):
        tokens, slots = (ids == e).nonzero(as_tuple=True)
        first, second = (hidden[tokens] @ w_gate_up[e].mT).chunk(2, -1)
        made = made.index_add(
            0, tokens, ((F.silu(first) * second) @ w_down[e].mT) * weights[tokens, slots, None].to(hidden.dtype)
        )
    return made


def _fused(hidden, gate, w_gate_up, w_down, k, shared_gate_up=None, shared_down=None):
    weights, ids = gate.softmax(-1).topk(k)
    made = _experts(hidden, w_gate_up, w_down, weights, ids)
    if shared_gate_up is None:
        return made
    first, second = (hidden @ shared_gate_up.mT).chunk(2, -1)
    return made + (F.silu(first) * second) @ shared_down.mT


add(
    "moe_experts",
    lambda d, s: ([d(_MIXED[s][0], _MIXED[s][3]), *_expert_weights(d, s), *_chosen(d, s)], {}),
    _experts,
    tolerance=3e-4,
)
add(
    "fused_moe",
    lambda d, s: (
        [d(_MIXED[s][0], _MIXED[s][3]), _gates(d, s)[0], *_expert_weights(d, s), _MIXED[s][2]],
        {}
        if s == 0
        else {"shared_gate_up": d(14, _MIXED[s][3], low=-0.3, high=0.3), "shared_down": d(_MIXED[s][3], 7, low=-0.3, high=0.3)},
    ),
    _fused,
    tolerance=3e-4,
)

# ---- linear attention

_WALKED = [(2, 5, 3, 7, 9), (1, 9, 2, 16, 8), (1, 1, 1, 4, 20), (4, 1024, 16, 128, 128)]


def _walked(names):
    def make(d, s):
        b, n, h, k, v = _WALKED[s]
        made = {
            "q": (b, n, h, k),
            "k": (b, n, h, k),
            "v": (b, n, h, v),
            "decays": (b, n, h, k),
            "decay": (b, n, h),
            "beta": (b, n, h),
            "state": (b, h, k, v),
        }
        one = {n: (e[0], *e[2:]) for n, e in made.items() if n != "state"}
        shapes = made if "state" not in names else {**one, "state": made["state"]}
        ranges = {"decays": (-1, 0), "decay": (-1, 0), "beta": (0, 1), "k": (-1 / math.sqrt(k), 1 / math.sqrt(k))}
        return [d(*shapes[n], low=ranges.get(n, (None,))[0], high=ranges.get(n, (None, None))[1]) for n in names.split()], {}

    return make


for _name, _given in {
    "gla": "q k v decays",
    "delta_net": "q k v beta",
    "gated_delta_net": "q k v decay beta",
    "retention": "q k v decay",
    "gla_decode": "q k v decays state",
    "delta_net_decode": "q k v beta state",
    "gated_delta_net_decode": "q k v decay beta state",
}.items():
    add(_name, _walked(_given), tolerance=1e-4)
_SPACE = [
    (2, 8, 4, 6, 2, 5, 4),
    (1, 6, 2, 3, 1, 8, 3),
    (1, 4, 3, 5, 3, 4, 4),
    (2, 2048, 32, 64, 1, 128, 256),
]  # batch, positions, heads, values, groups, states, chunk


def _space(d, s):
    b, n, h, p, g, k, c = _SPACE[s]
    dt, a = d(b, n, h, dtype=torch.float32), d(h, dtype=torch.float32, low=-1, high=-0.1)
    return d(b, n, h, p), dt, a, d(b, n, g, k), d(b, n, g, k), c


def _mamba2(x, dt, a, b, c, bias=None):
    group, dt = x.shape[2] // b.shape[2], F.softplus(dt if bias is None else dt + bias).to(x.dtype)
    state, rows = x.new_zeros((x.shape[0], *x.shape[2:], b.shape[-1])), []
    for t in range(x.shape[1]):
        keys, queries = (m[:, t].repeat_interleave(group, 1)[:, :, None] for m in (b, c))
        state = state * (dt[:, t] * a.to(x.dtype)).exp()[..., None, None] + (dt[:, t, :, None] * x[:, t])[..., None] * keys
        rows.append((state * queries).sum(-1))
    return torch.stack(rows, 1), state


add(
    "mamba2",
    lambda d, s: (
        [*_space(d, s)[:5]],
        {"bias": d(_SPACE[s][2], dtype=torch.float32)} and {"dt_bias": d(_SPACE[s][2], dtype=torch.float32)},
    ),
    lambda x, dt, a, b, c, dt_bias: _mamba2(x, dt, a, b, c, dt_bias),
    tolerance=2e-4,
)


def _steps_of(dt, a, chunk, dt_softplus):
    b, n, h = dt.shape
    steps = F.softplus(dt).transpose(1, 2).reshape(b, h, n // chunk, chunk)
    return steps, (steps * a[:, None, None]).cumsum(-1)


add(
    "ssd_da_cumsum",
    lambda d, s: ([*_space(d, s)[1:3], _SPACE[s][6]], {"dt_softplus": True}),
    _steps_of,
    dtypes=("float32",),
    tolerance=1e-4,
)


def _products_of(c, b, chunk):
    c, b = (t.unflatten(1, (-1, chunk)).transpose(2, 3) for t in (c, b))
    return c @ b.mT


add("ssd_chunk_products", lambda d, s: ([*_space(d, s)[3:5][::-1], _SPACE[s][6]], {}), _products_of, tolerance=1e-4)


def _chunked(d, s):
    x, dt, a, b, c, chunk = _space(d, s)
    steps, sums = _steps_of(dt, a, chunk, True)
    return x, b, c, steps.contiguous(), sums.contiguous(), chunk


def _states_of(x, b, dt, sums):
    chunks, n = dt.shape[2:]
    weights = (sums[..., -1:] - sums).exp() * dt
    rows, keys = x.unflatten(1, (chunks, n)), b.unflatten(1, (chunks, n)).repeat_interleave(x.shape[2] // b.shape[2], 3)
    return torch.einsum("bcthp,bcthn,bhct->bchpn", rows, keys, weights.to(x.dtype))


add(
    "ssd_chunk_state",
    lambda d, s: ([*(lambda x, b, c, dt, sums, n: (x, b, dt, sums))(*_chunked(d, s))], {}),
    _states_of,
    tolerance=2e-4,
)


def _passed(states, decays):
    state, made = torch.zeros_like(states[:, 0]), []
    for c in range(states.shape[1]):
        made.append(state)
        state = state * decays[:, :, c].exp()[..., None].to(states.dtype) + states[:, c]
    return torch.stack(made, 1), state


add(
    "ssd_state_passing",
    lambda d, s: (
        [
            d(*((2, 3, 4, 10), (1, 5, 2, 7), (1, 1, 3, 4), (2, 8, 32, 8192))[s], dtype=torch.float32),
            d(*((2, 4, 3), (1, 2, 5), (1, 3, 1), (2, 32, 8))[s], dtype=torch.float32, low=-1, high=0),
        ],
        {},
    ),
    _passed,
    dtypes=("float32",),
)


def _scanned(d, s):
    x, b, c, dt, sums, chunk = _chunked(d, s)
    states = d(x.shape[0], dt.shape[2], x.shape[2], x.shape[3], b.shape[3], dtype=torch.float32)
    return [x, _products_of(c, b, chunk).contiguous(), sums, c, states, dt], {}


def _scan_of(x, cb, sums, c, states, dt):
    chunks, n = dt.shape[2:]
    group = x.shape[2] // c.shape[2]
    decay = sums.permute(0, 2, 1, 3)
    mask = torch.ones((n, n), dtype=torch.bool, device=x.device).tril()
    weights = (
        torch.where(mask, (decay[..., :, None] - decay[..., None, :]), -math.inf).exp() * dt.permute(0, 2, 1, 3)[..., None, :]
    )
    rows = x.unflatten(1, (chunks, n)).transpose(2, 3)
    within = (weights.to(x.dtype) * cb.to(x.dtype).repeat_interleave(group, 2)) @ rows
    queries = c.unflatten(1, (chunks, n)).transpose(2, 3).repeat_interleave(group, 2) * decay.exp()[..., None].to(x.dtype)
    return (within + queries @ states.to(x.dtype).mT).transpose(2, 3).reshape(x.shape)


add("ssd_chunk_scan", _scanned, _scan_of, tolerance=2e-4)
add(
    "ssd_decode",
    lambda d, s: (
        lambda b, n, h, p, g, k, c: (
            [
                d(h, p, k, dtype=torch.float32, low=-1, high=0),
                d(b, h, p, dtype=torch.float32, low=0, high=1),
                d(b, h, p),
                d(b, g, k),
                d(b, g, k),
                d(b, h, p, k, dtype=torch.float32),
            ],
            {},
        )
    )(*_SPACE[s]),
    tolerance=1e-4,
)

# ---- attention to chosen keys

_CHOSEN = [
    (2, 5, 4, 2, 12, 20, 4),
    (1, 3, 2, 1, 40, 16, 0),
    (1, 1, 6, 6, 7, 9, 1),
    (1, 1024, 64, 1, 4096, 576, 64),
]  # b, queries, heads, of keys, keys, dim, tail


def _named(d, s):
    b, q, h, hk, n, dim, tail = _CHOSEN[s]
    k = min(n, (5, 9, 7, 512)[s])
    places = d(b, q, hk, n, dtype=torch.float32).argsort(-1)[..., :k].int()
    return [d(b, q, h, dim), d(b, n, hk, dim), places.contiguous()], {"dim_tail": tail, "is_causal": s == 1}


add("dsa_attention", _named, tolerance=2e-4)
add(
    "mla_decode",
    lambda d, s: (lambda b, h, dim, pe, n: ([d(b, h, dim), d(b, h, pe), d(b, n, 1, dim), d(b, n, 1, pe)], {}))(
        *((2, 4, 16, 8, 50), (1, 3, 20, 4, 9), (3, 16, 32, 16, 33), (64, 128, 512, 64, 2048))[s]
    ),
    tolerance=2e-4,
)
_BLOCKED = [
    (2, 21, 4, 2, 20, 24, 4, 3),
    (1, 9, 2, 1, 16, 16, 2, 2),
    (1, 5, 3, 3, 8, 6, 8, 1),
    (1, 2048, 64, 4, 128, 128, 64, 16),
]  # ..., dim, value dim, block, blocks


def _qkv(d, s):
    b, n, h, hk, dim, value_dim, _, _ = _BLOCKED[s]
    return d(b, n, h, dim), d(b, n, hk, dim), d(b, n, hk, value_dim)


def _compressed(x, block):
    n = x.shape[1] // block
    return x[:, : n * block].unflatten(1, (n, block)).mean(2)


add("nsa_compress", lambda d, s: ([_qkv(d, s)[1], _BLOCKED[s][6]], {}), _compressed)
add(
    "nsa_compressed_attention",
    lambda d, s: (lambda q, k, v: ([q, _compressed(k, _BLOCKED[s][6]), _compressed(v, _BLOCKED[s][6]), _BLOCKED[s][6]], {}))(
        *_qkv(d, s)
    ),
    tolerance=2e-4,
)


def _blocks(d, s):
    b, n, _, hk, _, _, block, count = _BLOCKED[s]
    own = torch.arange(n) // block
    others = d(b, n, hk, count, dtype=torch.int32, low=0, high=max(n // block, 1)).cpu()
    others[..., 0] = own[:, None]
    twice = torch.stack([(others[..., i : i + 1] == others[..., :i]).any(-1) for i in range(count)], -1)
    return torch.where(twice, -1, others).to(d.device)


add("nsa_selected_attention", lambda d, s: ([*_qkv(d, s), _blocks(d, s), _BLOCKED[s][6]], {}), tolerance=2e-4)


def _best_blocks(q, k, count, block):
    b, n, h, dim = q.shape
    blocks, hk = k.shape[1:3]
    at = torch.arange(n, device=q.device)
    seen = torch.arange(blocks, device=q.device) <= ((at + 1 - block) // block)[:, None]
    scores = torch.einsum("bshd,bnhd->bshn", q, k.repeat_interleave(h // hk, 2)) * dim**-0.5
    weights = torch.where(seen[:, None], scores, -1e30).softmax(-1) * seen[:, None]
    weights = F.pad(weights.unflatten(2, (hk, -1)).sum(3), (0, max(-(-n // block), count) - blocks))
    own = at // block
    weights.scatter_(3, own[:, None, None].expand(b, n, hk, 1), math.inf)
    places = weights.sort(dim=-1, descending=True, stable=True).indices[..., :count]
    return torch.where(places <= own[:, None, None], places, -1).int()


add(
    "nsa_topk",
    lambda d, s: (lambda q, k, v: ([q, _compressed(k, _BLOCKED[s][6]), _BLOCKED[s][7], _BLOCKED[s][6]], {}))(*_qkv(d, s)),
    _best_blocks,
    gradients=False,
    dtypes=("float32",),
)


def _whole_nsa(d, s):
    q, k, v = _qkv(d, s)
    gates = [d(*q.shape[:3], low=0, high=1) for _ in range(3)]
    return [q, k, v, *gates], {
        "block_count": _BLOCKED[s][7],
        "block_size": _BLOCKED[s][6],
        "window_size": (6, 3, 2, 512)[s],
        "block_indices": _blocks(d, s),
    }


def _nsa(q, k, v, a, b, c, block_count, block_size, window_size, block_indices):
    compressed = ops.nsa_compressed_attention.reference(q, _compressed(k, block_size), _compressed(v, block_size), block_size)[0]
    chosen = ops.nsa_selected_attention.reference(q, k, v, block_indices, block_size)
    at, group = torch.arange(q.shape[1], device=q.device), q.shape[2] // k.shape[2]
    seen = (at <= at[:, None]) & (at > at[:, None] - window_size)
    scores = torch.einsum("bshd,bnhd->bhsn", q, k.repeat_interleave(group, 2)) * q.shape[3] ** -0.5
    near = torch.einsum("bhsn,bnhd->bshd", torch.where(seen, scores, -math.inf).softmax(-1), v.repeat_interleave(group, 2))
    return compressed * a[..., None] + chosen * b[..., None] + near * c[..., None]


add("nsa_attention", _whole_nsa, _nsa, tolerance=3e-4)


def _indexed(d, s):
    b, q, h, g, n, dim, _ = (
        (2, 5, 4, 2, 12, 20, 0),
        (1, 9, 8, 1, 40, 16, 0),
        (1, 1, 6, 1, 7, 9, 0),
        (1, 2048, 32, 1, 4096, 128, 0),
    )[s]
    ends = d(q, dtype=torch.int32, low=1, high=n + 1)
    return [
        d(b, q, h, dim),
        d(b, n, g, dim),
        d(q, h, dtype=torch.float32),
        torch.zeros_like(ends),
        ends,
        d(b, n, g, dtype=torch.float32, low=0, high=1),
    ], {}


add("lightning_indexer", _indexed, tolerance=2e-4)

# ---- quantized

add("fp8_quant", lambda d, s: ([d(*((2, 5, 3, 40), (7, 64), (3, 1), (65536, 128))[s])], {}), gradients=False, tolerance=0.07)


def _eights(d, s):
    m, n, k = ((30, 20, 200), (5, 7, 128), (1, 33, 50), (4096, 4096, 4096))[s]
    a, b = (d(e, k, dtype=torch.float32).to(torch.float8_e4m3fn) for e in (m, n))
    blocks = 1 if s == 0 else -(-k // 128)
    return [a, b, *(d(1 if s == 0 else e, blocks, dtype=torch.float32, low=0.5, high=1) for e in (m, n))], {
        "out_dtype": "float32"
    }


add("gemm_fp8", _eights, gradients=False, tolerance=2e-3, dtypes=("float32",))


def _fours(d, s):
    m, n, k, group = ((5, 20, 64, 16), (1, 33, 32, 32), (17, 7, 128, 64), (64, 4096, 4096, 128))[s]
    kind = d.dtype if d.dtype is not torch.float32 else torch.float16
    return [
        d(m, k, dtype=kind),
        d(n, k // 2, dtype=torch.uint8, low=0, high=256),
        d(n, k // group, dtype=torch.float32, low=0.1, high=0.2),
        d(n, k // group, dtype=torch.uint8, low=0, high=16),
    ], {"group_size": group}


add("gemm_w4a16", _fours, gradients=False, dtypes=("float16", "bfloat16"), tolerance=2e-3)

# ---- streams and memories

_STREAMS = [(3, 4, 40), (1, 2, 7), (5, 3, 16), (8192, 4, 2560)]


def _mixing(d, s):
    b, n, c = _STREAMS[s]
    return [
        d(n * c, n * n + 2 * n, dtype=torch.float32, low=-0.1, high=0.1),
        d(b, n * c),
        d(n * n + 2 * n, dtype=torch.float32),
        0.3,
        0.2,
        0.5,
        20,
    ], {}


add("mhc_pre", _mixing, dtypes=("bfloat16",), tolerance=1e-3)
add(
    "mhc_post",
    lambda d, s: (lambda b, n, c: ([d(b, c), d(b, n, dtype=torch.float32), d(b, n * c)], {}))(*_STREAMS[s]),
    dtypes=("bfloat16",),
    tolerance=1e-3,
)
_MEMORIES = [(2, 9, 32), (1, 5, 20), (3, 1, 64), (8, 2048, 2048)]
add(
    "engram_gate_conv",
    lambda d, s: (lambda b, n, h: ([d(b, n, h), d(b, n, h), d(b, n, h), d(h), d(h), d(4, h)], {"dilation": (1, 2, 1, 3)[s]}))(
        *_MEMORIES[s]
    ),
    tolerance=2e-4,
)


def _one_memory(d, s):
    b, n, h = _MEMORIES[s]
    return [d(b, 12), d(b, h), d(b, n, h), d(12, h), d(12, h), d(h), d(h), d(4, h)], {"dilation": 2}


def _next_memory(e, h, state, w_k, w_v, weight_h, weight_v, conv, dilation):
    def norm(x, w):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w

    gate = torch.sigmoid((norm(h, weight_h) * norm(e @ w_k, weight_h)).sum(-1, keepdim=True) / h.shape[-1] ** 0.5)
    value = gate * (e @ w_v)
    whole = torch.cat((state, norm(value, weight_v)[:, None]), 1)
    total = sum(conv[p] * whole[:, -1 - (3 - p) * dilation] for p in range(4) if (3 - p) * dilation < whole.shape[1])
    return F.silu(total) + value, whole[:, -state.shape[1] :]


add("engram_decode", _one_memory, _next_memory, gradients=False, tolerance=3e-4, dtypes=("float32",))

# What other tests go through: products, attention, transposes, conversions; what is tilewright.kernels' own.
ELSEWHERE = set(
    "Spec plan seal unseal matmul attention attention_varlen decode_attention transpose cast engram_hash engram_gate sinkhorn_normalize".split()
)
