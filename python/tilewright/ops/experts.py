"""Mixtures of experts, whole: the gate, the way of rows to experts, products by expert, and what is added up again."""

from __future__ import annotations

from .calls import product, refuse_shape
from .operators import Core, check, check_choice, check_number, launch, on_gpu, public, refuse_option

_SCORES = ("softmax", "sigmoid")
_GATES = {"silu_and_mul": "silu", "gelu_and_mul": "gelu", "gelu_tanh_and_mul": "gelu_tanh", "relu_and_mul": "relu"}


def _kind(x):
    return str(x.dtype).removeprefix("torch.")


def programs():
    from .programs import experts

    return experts


# ---- the gate


def moe_topk(gating_output, top_k, scoring_func="softmax", renormalize=False, correction_bias=None, routed_scaling_factor=1.0):
    """(weights float32, experts int32), both (tokens, top_k): the largest scores of each token, the largest first, of equals
    the first.

    gating_output: (tokens, experts) of float16, bfloat16 or float32; scores are its softmax or sigmoid in float32.
    correction_bias: float32 (experts,), added to scores where they are compared, and not to weights. renormalize: weights
    sum to 1; then they are multiplied by routed_scaling_factor. The weights have gradients in PyTorch."""
    name = "moe_topk"
    gating_output = check(name, "gating_output", gating_output, rank=2)
    check_choice(name, "scoring_func", scoring_func, _SCORES), check_number(name, "top_k", top_k, 1, whole=True)
    experts = gating_output.shape[1]
    if top_k > experts:
        refuse_option(name, f"top_k is {top_k} of {experts} experts")
    from . import elementwise, rows, sorting

    wide = gating_output.float()
    scores = rows.softmax(wide) if scoring_func == "softmax" else elementwise.sigmoid(wide)
    if correction_bias is None:
        weights, places = sorting.topk(scores, top_k)
    else:
        check(name, "correction_bias", correction_bias, ("float32",), shape=(experts,))
        places = sorting.topk(elementwise.add(scores.detach(), correction_bias), top_k)[1]
        weights = scores.gather(1, places)
    if renormalize:
        weights = weights / weights.sum(-1, keepdim=True)
    return weights * routed_scaling_factor if routed_scaling_factor != 1 else weights, places.int()


# ---- the way of rows


def _run_mapping(topk_ids, experts, alignment):
    from ..kernels.moe.routing import get_fused_mapping

    of_row, _, pair_of_row, to_row, begins, ends, sizes, _ = get_fused_mapping(
        topk_ids.long(), experts, 0, alignment, force_no_sync=True
    )
    return of_row, pair_of_row, to_row, begins, ends, sizes


def _reference_mapping(topk_ids, experts, alignment):
    import torch

    pairs, flat = topk_ids.numel(), topk_ids.reshape(-1).long()
    rows = (pairs + (alignment - 1) * experts) // alignment * alignment
    chosen = flat[:, None] == torch.arange(experts, device=flat.device)
    sizes = (chosen.sum(0) + alignment - 1) // alignment * alignment
    ends = sizes.cumsum(0)
    places = torch.where(chosen, (ends - sizes) + chosen.cumsum(0) - 1, 0).sum(1)
    places = torch.where(chosen.any(1), places, rows)

    def by_row(values):
        return flat.new_full((rows + 1,), -1).scatter(0, places, values)[:rows].int()

    to_row = torch.where(places < rows, places, -1).reshape(topk_ids.shape)
    numbers = torch.arange(pairs, device=flat.device)
    return by_row(flat), by_row(numbers), to_row.int(), (ends - sizes).int(), ends.int(), sizes.int()


_mapping = Core(
    "moe_mapping",
    "(Tensor topk_ids, int experts, int alignment) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _run_mapping,
    _reference_mapping,
)


def _ids(name, topk_ids, tokens=None):
    return check(name, "topk_ids", topk_ids, ("int32", "int64"), shape=(tokens, None))


def moe_permute_align(topk_ids, num_experts, block_size=64):
    """(sorted pairs, experts of blocks, their number): pairs token * top_k + slot sorted by expert, the rows of each expert
    padded to whole blocks with the number of pairs; which expert each block of block_size has; how many places are taken.
    All int32; (rows,), (blocks,) and (1,), as many rows as there could be: those behind the last expert are padding too,
    of blocks without an expert, -1.

    topk_ids: int32 or int64 (tokens, top_k); negative ones go nowhere."""
    import torch

    name = "moe_permute_align"
    topk_ids = _ids(name, topk_ids)
    check_number(name, "num_experts", num_experts, 1, whole=True), check_number(name, "block_size", block_size, 1, whole=True)
    pairs = topk_ids.numel()
    of_row, pair_of_row, _, _, ends, _ = _mapping(topk_ids, num_experts, block_size)
    taken = ends[-1:].clone()
    blocks = of_row.shape[0] // block_size
    at = torch.arange(of_row.shape[0], device=of_row.device, dtype=torch.int32)
    there = (at < taken) & (pair_of_row >= 0)
    firsts = at[: blocks * block_size : block_size].contiguous()
    found = torch.searchsorted(ends.contiguous(), firsts, right=True).int()
    return torch.where(there, pair_of_row, pairs), torch.where(firsts < taken, found, -1), taken


def moe_permute(hidden_states, topk_ids, num_experts, expert_map=None):
    """Rows of tokens expert after expert, each expert's in their order: (rows (tokens * top_k, hidden); begins and sizes of
    experts, int32; begins and the end, int64 (experts + 1,); where each pair token * top_k + slot went, int32 (tokens *
    top_k,), -1: nowhere).

    hidden_states: (tokens, hidden) of float16, bfloat16 or float32; topk_ids: int32 or int64 (tokens, top_k). expert_map:
    int32 (num_experts,), the local number of each expert, -1 of those of other ranks, whose pairs go nowhere; rows that no
    pair has are zeros. The rows have gradients in PyTorch."""
    import torch

    name = "moe_permute"
    hidden_states = check(name, "hidden_states", hidden_states, rank=2)
    topk_ids = _ids(name, topk_ids, hidden_states.shape[0])
    check_number(name, "num_experts", num_experts, 1, whole=True)
    local = num_experts
    if expert_map is not None:
        check(name, "expert_map", expert_map, ("int32",), shape=(num_experts,))
        topk_ids = torch.where(topk_ids < 0, -1, expert_map[topk_ids.long().clamp(0)])
        local = max(int(expert_map.max()) + 1, 1) if expert_map.device.type != "meta" else num_experts
    of_row, _, to_row, begins, ends, sizes = _mapping(topk_ids, local, 1)
    rows = _expand(hidden_states, to_row, of_row)
    return rows, begins, sizes, torch.cat((begins, ends[-1:])).long(), to_row.reshape(-1)


def _run_expand(x, to_row, of_row):
    from ..kernels.moe.routing import expand_to_fused

    return expand_to_fused(x, to_row, of_row)


def _reference_expand(x, to_row, of_row):
    import torch

    tokens, topk = to_row.shape
    flat, rows = to_row.reshape(-1).long(), of_row.shape[0]
    at = torch.where(flat >= 0, flat, rows)
    made = x.new_zeros((rows + 1, x.shape[1])).index_put((at,), x.repeat_interleave(topk, 0))
    return made[:rows]


_expand = Core("moe_expand", "(Tensor x, Tensor to_row, Tensor of_row) -> Tensor", _run_expand, _reference_expand)


def _run_combine(rows, weights, to_row):
    from ..kernels.moe.routing import reduce_fused

    return reduce_fused(rows, weights, to_row)


def _reference_combine(rows, weights, to_row):
    import torch

    flat = to_row.long()
    kind = torch.promote_types(rows.dtype, torch.float32)
    found = torch.where((flat >= 0)[..., None], rows[flat.clamp(0)].to(kind), 0)
    return (found * weights.to(kind)[..., None]).sum(1).to(rows.dtype)


_combine = Core("moe_combine", "(Tensor rows, Tensor weights, Tensor to_row) -> Tensor", _run_combine, _reference_combine)


def moe_unpermute(rows, fwd_idx, topk_weights):
    """The sum of the rows of each token, times their weights: (tokens, hidden), in float32 and rounded once to the dtype of
    rows.

    rows: (pairs, hidden) of float16, bfloat16 or float32; fwd_idx: int32 (tokens * top_k,), as moe_permute() gives it, -1:
    nowhere; topk_weights: float32 (tokens, top_k). Has gradients in PyTorch."""
    name = "moe_unpermute"
    rows = check(name, "rows", rows, rank=2)
    topk_weights = check(name, "topk_weights", topk_weights, ("float32",), rank=2)
    fwd_idx = check(name, "fwd_idx", fwd_idx, ("int32",), shape=(product(topk_weights.shape),))
    return _combine(rows, topk_weights, fwd_idx.view(topk_weights.shape))


# ---- products by expert


def _run_grouped(a, b, begins, sizes, transposed, gate):
    rows, experts = a.shape[0], b.shape[0]
    n = b.shape[1 if transposed else 2] // (2 if gate else 1)
    made = a.new_zeros((rows, n))
    if made.numel() and experts:
        gpu = on_gpu(a)
        tall = 128 if gpu and rows >= 64 * experts else 64 if gpu else 32
        options = {
            "x": _kind(a),
            "result": _kind(a),
            "transposed": transposed,
            "gate": gate,
            "rows": tall,
            "columns": 128 if gpu and not gate else 64,
            "depth": 64 if gpu and a.element_size() == 2 else 32,
            "stages": 3,
            "threads": 128,
            "tf32": False,
        }
        tiles = begins.new_empty((2, rows // tall + experts))
        launch(programs().grouped, options, a, b, begins, sizes, tiles[0], tiles[1], made)
    return made


def _reference_grouped(a, b, begins, sizes, transposed, gate):
    import torch

    f = torch.nn.functional
    at = torch.arange(a.shape[0], device=a.device)
    inside = (at >= begins[:, None]) & (at < begins[:, None] + sizes[:, None])  # (experts, rows)
    made = torch.where(inside[..., None], a @ (b.mT if transposed else b), 0).sum(0)
    if not gate:
        return made
    first, second = made.chunk(2, -1)
    act = {"silu": f.silu, "gelu": f.gelu, "gelu_tanh": lambda x: f.gelu(x, approximate="tanh"), "relu": f.relu}[gate]
    return act(first) * second


_grouped = Core(
    "grouped_product",
    "(Tensor a, Tensor b, Tensor begins, Tensor sizes, bool transposed, str gate) -> Tensor",
    _run_grouped,
    _reference_grouped,
)


def _run_outer(a, b, begins, sizes):
    made = a.new_empty((sizes.shape[0], a.shape[1], b.shape[1]))
    if made.numel():
        options = {"x": _kind(a), "rows": 64, "columns": 64, "depth": 32, "threads": 128, "tf32": False}
        launch(programs().outer, options, a, b, begins, sizes, made)
    return made


def _reference_outer(a, b, begins, sizes):
    import torch

    at = torch.arange(a.shape[0], device=a.device)
    inside = (at >= begins[:, None]) & (at < begins[:, None] + sizes[:, None])
    return torch.where(inside[..., None], a, 0).mT @ b


_outer = Core("grouped_outer", "(Tensor a, Tensor b, Tensor begins, Tensor sizes) -> Tensor", _run_outer, _reference_outer)


def _by_expert(name, a, b, sizes, offsets, rank=3):
    a = check(name, "a", a, rank=2)
    b = check(name, "b", b, rank=rank, like=a)
    sizes = check(name, "sizes", sizes, ("int32",), rank=1)
    return a, b, sizes, check(name, "offsets", offsets, ("int32",), shape=tuple(sizes.shape))


def grouped_matmul(a, b, sizes, offsets, *, transpose_a=False, transpose_b=True):
    """Products of groups of rows: rows offsets[g] up to offsets[g] + sizes[g] of a, times b[g]; rows of no group are zeros.
    With transpose_a the groups are what is summed over: (groups, M, N) of a (rows, M) and b (rows, N).

    a: (rows, K) of float16, bfloat16 or float32; b: (groups, N, K), or (groups, K, N) without transpose_b; sizes, offsets:
    int32 (groups,). Groups do not overlap, and lie in a. Summed in float32 and rounded once. Has gradients in PyTorch, of
    its own functions."""
    name = "grouped_matmul"
    a, b, sizes, offsets = _by_expert(name, a, b, sizes, offsets, 2 if transpose_a else 3)
    if transpose_a:
        b = b.t().contiguous() if transpose_b and b.shape[0] != a.shape[0] else b
        if b.shape[0] != a.shape[0]:
            refuse_shape(name, f"'a' has {a.shape[0]} rows, but 'b' has {b.shape[0]}")
        return _outer(a, b, offsets, sizes)
    if b.shape[0] != sizes.shape[0] or b.shape[2 if transpose_b else 1] != a.shape[1]:
        refuse_shape(name, f"'b' has shape {tuple(b.shape)}", f"for {sizes.shape[0]} groups and rows of {a.shape[1]} elements")
    return _grouped(a, b, offsets, sizes, bool(transpose_b), "")


def moe_grouped_matmul(a, b, sizes, offsets):
    """grouped_matmul() of rows that lie expert after expert: a (rows, K), b (experts, N, K)."""
    return grouped_matmul(a, b, sizes, offsets)


def _gate_of(name, activation):
    check_choice(name, "activation", activation, tuple(_GATES))
    return _GATES[activation]


def moe_gate_up(a, b, sizes, offsets, activation="silu_and_mul"):
    """grouped_matmul() with b (experts, 2 N, K), whose first N columns go through the activation and multiply the others:
    (rows, N).

    activation: "silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul", "relu_and_mul". Computed in float32 and rounded once.
    Has gradients in PyTorch, of its own functions."""
    name = "moe_gate_up"
    a, b, sizes, offsets = _by_expert(name, a, b, sizes, offsets)
    if b.shape[0] != sizes.shape[0] or b.shape[2] != a.shape[1] or b.shape[1] % 2:
        refuse_shape(
            name,
            f"'b' has shape {tuple(b.shape)}",
            f"for {sizes.shape[0]} experts and rows of {a.shape[1]} elements it is (experts, 2 N, K)",
        )
    return _grouped(a, b, offsets, sizes, True, _gate_of(name, activation))


def moe_experts(
    hidden_states,
    w_gate_up,
    w_down,
    topk_weights,
    topk_ids,
    *,
    expert_map=None,
    routed_scaling_factor=1.0,
    activation="silu_and_mul",
):
    """What the experts of each token make of it, times their weights: (tokens, hidden), of the dtype of hidden_states.

    hidden_states: (tokens, hidden) of float16, bfloat16 or float32; w_gate_up: (experts, 2 ffn, hidden); w_down: (experts,
    hidden, ffn); topk_weights: float32 and topk_ids: int32 or int64, both (tokens, top_k); expert_map as for moe_permute():
    experts of other ranks add nothing. Has gradients in PyTorch."""
    name = "moe_experts"
    hidden_states = check(name, "hidden_states", hidden_states, rank=2)
    experts, ffn = w_gate_up.shape[0], w_gate_up.shape[1] // 2
    check(name, "w_gate_up", w_gate_up, shape=(None, 2 * ffn, hidden_states.shape[1]), like=hidden_states)
    check(name, "w_down", w_down, shape=(experts, hidden_states.shape[1], ffn), like=hidden_states)
    total = experts if expert_map is None else expert_map.shape[0]
    rows, begins, sizes, _, to_row = moe_permute(hidden_states, topk_ids, total, expert_map)
    if begins.shape[0] != experts:  # the last experts of this rank have no number in the map
        from torch.nn.functional import pad

        begins, sizes = (pad(t, (0, experts - begins.shape[0])) for t in (begins, sizes))
    inner = moe_gate_up(rows, w_gate_up, sizes, begins, activation)
    made = moe_unpermute(grouped_matmul(inner, w_down, sizes, begins), to_row, topk_weights)
    return made * routed_scaling_factor if routed_scaling_factor != 1 else made


def fused_moe(
    hidden_states,
    gating_output,
    w_gate_up,
    w_down,
    top_k,
    *,
    correction_bias=None,
    scoring_func="softmax",
    renormalize=False,
    routed_scaling_factor=1.0,
    activation="silu_and_mul",
    shared_gate_up=None,
    shared_down=None,
):
    """moe_topk() and moe_experts() in one, and experts that every token has: (tokens, hidden).

    gating_output: (tokens, experts). shared_gate_up: (2 shared ffn, hidden), shared_down: (hidden, shared ffn): added with
    weight 1. All else as for both. Has gradients in PyTorch."""
    name = "fused_moe"
    weights, ids = moe_topk(gating_output, top_k, scoring_func, renormalize, correction_bias)
    made = moe_experts(
        hidden_states, w_gate_up, w_down, weights, ids, routed_scaling_factor=routed_scaling_factor, activation=activation
    )
    if (shared_gate_up is None) != (shared_down is None):
        refuse_option(name, "one matrix of the shared experts of two", "pass shared_gate_up and shared_down, or neither")
    if shared_gate_up is None:
        return made
    from . import elementwise
    from .products import matmul

    inner = getattr(elementwise, activation)(matmul(hidden_states, shared_gate_up, transpose_b=True))
    return elementwise.add(made, matmul(inner, shared_down, transpose_b=True))


(
    moe_topk,
    moe_permute_align,
    moe_permute,
    moe_unpermute,
    grouped_matmul,
    moe_grouped_matmul,
    moe_gate_up,
    moe_experts,
    fused_moe,
) = map(
    public,
    (
        moe_topk,
        moe_permute_align,
        moe_permute,
        moe_unpermute,
        grouped_matmul,
        moe_grouped_matmul,
        moe_gate_up,
        moe_experts,
        fused_moe,
    ),
)
