"""More of family_cases.py: mixtures of experts, linear attention, attention to chosen keys, quantized numbers, streams and memories."""

import math

import tilewright.ops as ops
import torch
from family_case import add

F = torch.nn.functional

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
    weighted = (rows * weights.permute(0, 2, 3, 1)[..., None].to(torch.promote_types(x.dtype, torch.float32))).to(x.dtype)
    return torch.einsum("bcthp,bcthn->bchpn", weighted.to(weights.dtype), keys.to(weights.dtype))


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
