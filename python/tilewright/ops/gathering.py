"""Attention to chosen keys: of latent heads (MLA), of tokens that an index names (DSA), of blocks (NSA), and what chooses
them."""

from __future__ import annotations

from .calls import refuse_shape
from .operators import FLOATS, Core, check, check_number, launch, on_gpu, public, refuse_option


def _kind(x):
    return str(x.dtype).removeprefix("torch.")


def programs():
    from .programs import gathering

    return gathering


def _run(q, kv, v, indices, value_dim, block, scale, first, stride, window):
    """stride 0: every key is seen; window 0: as far back as there are keys."""
    import torch

    batch, length, heads, dim = q.shape
    made = q.new_empty((batch, length, heads, value_dim))
    logs = q.new_empty((batch, length, heads), dtype=torch.float32)
    if not logs.numel():
        return made, logs
    gpu, group = on_gpu(q), heads // kv.shape[2]
    options = {
        "x": _kind(q),
        "dim": dim,
        "value_dim": value_dim,
        "own_values": v is not None,
        "named": indices is not None,
        "block": block,
        "limited": stride > 0,
        "left": window > 0,
        "rows": 64 if group > 32 and gpu else 32 if group > 16 else 16,
        "keys": 64 if gpu and dim <= 256 else 32,
        "threads": 256 if gpu and value_dim > 256 else 128,  # sums in registers
        "tf32": False,
    }
    one = q.new_empty((1,))
    indices = torch.empty((batch, length, kv.shape[2], 1), dtype=torch.int32, device=q.device) if indices is None else indices
    launch(
        programs().attend,
        options,
        q,
        kv,
        one if v is None else v,
        indices,
        made,
        logs,
        float(scale),
        first,
        max(stride, 1),
        window,
    )
    return made, logs


def _seen(q, kv, indices, block, first, stride, window):
    """Which keys each query and head of keys sees: bool (batch, queries, heads of keys, keys); how often, if indices name
    some twice."""
    import torch

    batch, length, keys, heads = q.shape[0], q.shape[1], kv.shape[1], kv.shape[2]
    at = torch.arange(keys, device=q.device)
    s = torch.arange(length, device=q.device)
    limit = (first + s + 1 - stride) // stride if stride else torch.full_like(s, keys)
    times = q.new_ones((batch, length, heads, keys), dtype=torch.float32)
    if indices is not None:
        places = indices.long()[..., None] * block + torch.arange(block, device=q.device)
        there = (indices >= 0)[..., None] & (places < keys)
        times = torch.zeros_like(times).scatter_add(3, places.clamp(0, keys - 1).flatten(3), there.float().flatten(3))
    seen = at <= limit[:, None]
    if window:
        seen = seen & (at > (limit - window)[:, None])
    return times * seen[None, :, None]


def _reference(q, kv, v, indices, value_dim, block, scale, first, stride, window):
    import torch

    kind = torch.promote_types(q.dtype, torch.float32)
    times = _seen(q, kv, indices, block, first, stride, window).to(kind)[:, :, :, None]
    keys = kv.to(kind)
    values = keys[..., :value_dim] if v is None else v.to(kind)
    scores = torch.einsum("bskgd,bnkd->bskgn", q.to(kind).unflatten(2, (kv.shape[2], -1)), keys) * scale
    logs = torch.logsumexp(torch.where(times > 0, scores + times.clamp(1e-30).log(), -torch.inf), -1)
    weights = torch.where(times > 0, (scores - torch.where(logs == -torch.inf, 0, logs)[..., None]).exp() * times, 0)
    return torch.einsum("bskgn,bnkd->bskgd", weights, values).flatten(2, 3).to(q.dtype), logs.flatten(2).float()


_attend = Core(
    "attend_named",
    "(Tensor q, Tensor kv, Tensor? v, Tensor? indices, int value_dim, int block, float scale, int first, int stride, int window)"
    " -> (Tensor, Tensor)",
    _run,
    _reference,
)


def _heads(name, q, kv):
    if not kv.shape[2] or q.shape[2] % kv.shape[2]:
        refuse_shape(name, f"{q.shape[2]} heads of 'q' do not divide among {kv.shape[2]} of the keys")


def mla_decode(q, q_pe, kv, k_pe, *, scale=None):
    """Attention of one query a sequence to a latent cache: (batch, heads, dim), softmax(scale * (q kv^T + q_pe k_pe^T)) kv.

    q: (batch, heads, dim); q_pe: (batch, heads, rotary dim); kv: (batch, keys, heads of keys, dim); k_pe: (batch, keys,
    heads of keys, rotary dim); of one dtype, float16, bfloat16 or float32. scale: 1 / sqrt(dim + rotary dim) if None.
    Weights take the dtype before they meet the values; sums are float32. Has gradients in PyTorch, of its own functions."""
    import torch

    name = "mla_decode"
    q = check(name, "q", q, rank=3)
    batch, heads, dim = q.shape
    q_pe = check(name, "q_pe", q_pe, shape=(batch, heads, None), like=q)
    kv = check(name, "kv", kv, shape=(batch, None, None, dim), like=q)
    k_pe = check(name, "k_pe", k_pe, shape=(*kv.shape[:3], q_pe.shape[-1]), like=q)
    whole = torch.cat((q, q_pe), -1)[:, None]
    _heads(name, whole, kv)
    scale = whole.shape[-1] ** -0.5 if scale is None else scale
    return _attend(whole, torch.cat((kv, k_pe), -1), None, None, dim, 1, float(scale), 0, 0, 0)[0].squeeze(1)


def dsa_attention(q, kv, indices, *, dim_tail=0, scale=None, is_causal=True, q_start=0, stride=1, return_lse=False):
    """Attention of each query to the keys that its indices name: (batch, queries, heads, dim), softmax(scale * q kv^T) of
    their first dim elements.

    q: (batch, queries, heads, dim + dim_tail); kv: (batch, keys, heads of keys, dim + dim_tail), float16, bfloat16 or
    float32; indices: int32 (batch, queries, heads of keys, topk), negative ones are none. is_causal: query s sees keys up to
    (q_start + s + 1 - stride) // stride alone. A query that sees nothing gets zeros. scale: 1 / sqrt(dim + dim_tail) if
    None. return_lse: also log(sum(exp(scores))), float32 (batch, queries, heads). Has gradients in PyTorch, of its own
    functions."""
    name = "dsa_attention"
    q = check(name, "q", q, rank=4)
    kv = check(name, "kv", kv, shape=(q.shape[0], None, None, q.shape[3]), like=q)
    indices = check(name, "indices", indices, ("int32",), shape=(*q.shape[:2], kv.shape[2], None))
    _heads(name, q, kv)
    check_number(name, "dim_tail", dim_tail, 0, whole=True), check_number(name, "stride", stride, 1, whole=True)
    if dim_tail >= q.shape[3]:
        refuse_option(name, f"dim_tail is {dim_tail} of {q.shape[3]} elements", "values have the others")
    scale = q.shape[3] ** -0.5 if scale is None else scale
    made, logs = _attend(q, kv, None, indices, q.shape[3] - dim_tail, 1, float(scale), q_start, stride if is_causal else 0, 0)
    return (made, logs) if return_lse else made


# ---- blocks


def _tiles_of_heads(heads):
    """A tile of the scores of some queries, which have so many heads each."""
    queries = max(1, 64 // heads)
    while queries * heads % 16:
        queries += 1
    return {"queries": queries, "keys": 64}


def _run_importance(q, k, lse, block, count, scale):
    import torch

    batch, length, heads, dim = q.shape
    groups = k.shape[2]
    made = torch.empty((batch, groups, length, count), dtype=torch.float32, device=q.device)
    ends = torch.empty((2, batch, groups, length), dtype=torch.int32, device=q.device)
    if made.numel():
        options = {"x": _kind(q), "heads": heads // groups, "dim": dim, "threads": 128, "tf32": False, **_tiles_of_heads(heads // groups)}
        launch(programs().importance, options, q.contiguous(), k.contiguous(), lse.contiguous(), made, ends, scale, block)
    return made, ends


def _reference_importance(q, k, lse, block, count, scale):
    import torch

    groups, length = k.shape[2], q.shape[1]
    at, blocks = torch.arange(length, device=q.device)[:, None], torch.arange(count, device=q.device)
    kind = torch.promote_types(q.dtype, torch.float32)
    keys = torch.nn.functional.pad(k.to(kind), (0, 0, 0, 0, 0, count - k.shape[1]))
    scores = torch.einsum("bsgid,bngd->bgsin", q.to(kind).unflatten(2, (groups, -1)), keys) * scale
    weights = (scores - lse.to(kind).unflatten(2, (groups, -1)).movedim(2, 1)[..., None]).exp().sum(3)
    seen = (blocks < k.shape[1]) & ((blocks + 1) * block <= at + 1)
    made = torch.where(blocks == at // block, torch.inf, torch.where(seen, weights, 0)).float()
    ends = torch.stack((torch.zeros_like(at), at // block + 1)).squeeze(-1).int()
    return made, ends[:, None, None].expand(2, q.shape[0], groups, length).contiguous()


_importance = Core(
    "importance",
    "(Tensor q, Tensor k, Tensor lse, int block, int count, float scale) -> (Tensor, Tensor)",
    _run_importance,
    _reference_importance,
)


def _of_blocks(name, q, k, v):
    q = check(name, "q", q, rank=4)
    k = check(name, "k", k, shape=(q.shape[0], None, None, q.shape[3]), like=q)
    v = check(name, "v", v, shape=(*k.shape[:3], None), like=q)
    _heads(name, q, k)
    return q, k, v


def nsa_compress(x, block_size):
    """Means of whole blocks of positions: (batch, positions // block_size, heads, dim) of (batch, positions, heads, dim).
    float16, bfloat16 or float32, summed in float32. Has gradients in PyTorch."""
    name = "nsa_compress"
    x = check(name, "x", x, rank=4)
    check_number(name, "block_size", block_size, 1, whole=True)
    batch, length, heads, dim = x.shape
    blocks = length // block_size
    from .reductions import mean

    return mean(x[:, : blocks * block_size].reshape(batch, blocks, block_size, heads, dim), 2)


def nsa_compressed_attention(q, k, v, block_size, *, scale=None):
    """(attention of each query to the blocks that end before it or at it, log(sum(exp(scores)))): k and v are as
    nsa_compress() makes them.

    q: (batch, positions, heads, dim); k, v: (batch, blocks, heads of keys, ...), float16, bfloat16 or float32. A query that
    sees no block gets zeros and -inf. scale: 1 / sqrt(dim) if None. Has gradients in PyTorch, of its own functions."""
    name = "nsa_compressed_attention"
    q, k, v = _of_blocks(name, q, k, v)
    check_number(name, "block_size", block_size, 1, whole=True)
    return _attend(q, k, v, None, v.shape[-1], 1, float(q.shape[-1] ** -0.5 if scale is None else scale), 0, block_size, 0)


def nsa_topk(q, k, block_count, block_size, *, scale=None, lse=None):
    """The blocks that each query attends to: int32 (batch, positions, heads of keys, block_count), its own block first, then
    those of the largest sum over the heads of a group of compressed attention's weights; -1 where there are fewer.

    q: (batch, positions, heads, dim); k: (batch, blocks, heads of keys, dim), as nsa_compress() makes it; lse: as
    nsa_compressed_attention() gives it, computed if None. block_count: up to 8192."""
    import torch

    name = "nsa_topk"
    q, k, _ = _of_blocks(name, q, k, k)
    check_number(name, "block_count", block_count, 1, whole=True), check_number(name, "block_size", block_size, 1, whole=True)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    lse = nsa_compressed_attention(q, k, k, block_size, scale=scale)[1] if lse is None else lse
    lse = check(name, "lse", lse, ("float32",), shape=tuple(q.shape[:3]))
    from .sorting import check_count, order

    whole = max(-(-q.shape[1] // block_size), k.shape[1], block_count)
    check_count(name, block_count, whole)
    weights, ends = _importance(q.detach(), k.detach(), lse.detach(), block_size, whole, float(scale))
    return order(weights, block_count, True, 3, *ends)[1].permute(0, 2, 1, 3).int().contiguous()


def nsa_selected_attention(q, k, v, block_indices, block_size, *, scale=None, return_lse=False):
    """Attention of each query to the blocks that its indices name, as far as they are not behind it: (batch, positions,
    heads, value dim).

    q: (batch, positions, heads, dim); k, v: (batch, positions, heads of keys, ...); block_indices: int32 (batch, positions,
    heads of keys, blocks), negative ones are none. float16, bfloat16 or float32. scale: 1 / sqrt(dim) if None. return_lse as
    for dsa_attention(). Has gradients in PyTorch, of its own functions."""
    name = "nsa_selected_attention"
    q, k, v = _of_blocks(name, q, k, v)
    block_indices = check(name, "block_indices", block_indices, ("int32",), shape=(*q.shape[:2], k.shape[2], None))
    check_number(name, "block_size", block_size, 1, whole=True)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    made, logs = _attend(q, k, v, block_indices, v.shape[-1], block_size, float(scale), 0, 1, 0)
    return (made, logs) if return_lse else made


def nsa_attention(q, k, v, g_cmp, g_slc, g_swa, *, block_count=16, block_size=64, window_size=0, block_indices=None, scale=None):
    """Native sparse attention: the sum, times gates, of attention to compressed blocks, to chosen ones and, with
    window_size, to the last so many keys: (batch, positions, heads, value dim).

    q: (batch, positions, heads, dim); k, v: (batch, positions, heads of keys, ...), float16, bfloat16 or float32; gates:
    (batch, positions, heads), of the same dtype, g_swa None without window_size. block_indices: as nsa_topk() makes them,
    computed if None. Has gradients in PyTorch, of its own functions."""
    name = "nsa_attention"
    q, k, v = _of_blocks(name, q, k, v)
    gates = [
        None if g is None else check(name, n, g, shape=tuple(q.shape[:3]), like=q)
        for n, g in (("g_cmp", g_cmp), ("g_slc", g_slc), ("g_swa", g_swa))
    ]
    if (gates[2] is None) != (window_size == 0):
        refuse_option(name, f"window_size is {window_size}, g_swa is {'none' if g_swa is None else 'there'}", "both, or neither")
    scale = float(q.shape[-1] ** -0.5 if scale is None else scale)
    k_cmp, v_cmp = nsa_compress(k, block_size), nsa_compress(v, block_size)
    made, logs = nsa_compressed_attention(q, k_cmp, v_cmp, block_size, scale=scale)
    if block_indices is None:
        block_indices = nsa_topk(q, k_cmp, block_count, block_size, scale=scale, lse=logs)
    made = (
        made * gates[0][..., None] + nsa_selected_attention(q, k, v, block_indices, block_size, scale=scale) * gates[1][..., None]
    )
    if window_size:
        made = made + _attend(q, k, v, None, v.shape[-1], 1, scale, 0, 1, window_size)[0] * gates[2][..., None]
    return made


# ---- the index


def _run_index(q, k, weights, starts, ends, scales, cleaned):
    import torch

    batch, length, heads, dim = q.shape
    keys, groups = k.shape[1:3]
    made = torch.empty((batch, length, keys, groups), dtype=torch.float32, device=q.device)
    if made.numel():
        options = {
            "x": _kind(q),
            "heads": heads // groups,
            "dim": dim,
            "scaled": scales is not None,
            "cleaned": cleaned,
            **_tiles_of_heads(heads // groups),
            "threads": 128,
            "tf32": False,
        }
        launch(
            programs().index,
            options,
            q,
            k,
            weights,
            made.new_empty((batch, keys, groups)) if scales is None else scales,
            starts,
            ends,
            made,
        )
    return made


def _reference_index(q, k, weights, starts, ends, scales, cleaned):
    import torch

    kind = torch.float64 if q.dtype is torch.float64 else torch.float32
    group = q.shape[2] // k.shape[2]
    scores = torch.einsum("bshd,bnhd->bsnh", q.to(kind), k.to(kind).repeat_interleave(group, 2)).clamp(0) * weights[:, None]
    made = scores.unflatten(3, (-1, group)).sum(-1)
    made = made if scales is None else made * scales[:, None]
    at = torch.arange(k.shape[1], device=q.device)
    outside = (at < starts[:, None]) | (at >= ends[:, None])
    return (torch.where(outside[None, :, :, None], -torch.inf, made) if cleaned else made).to(
        torch.promote_types(kind, torch.float32)
    )


_index = Core(
    "lightning_indexer",
    "(Tensor q, Tensor k, Tensor weights, Tensor starts, Tensor ends, Tensor? scales, bool cleaned) -> Tensor",
    _run_index,
    _reference_index,
)


def lightning_indexer(index_q, index_k, weights, cu_seqlen_ks, cu_seqlen_ke, index_k_scale=None, *, clean_logits=True):
    """Scores by which keys are chosen: float32 (batch, queries, keys, groups), the sum over the heads of a group of max(q .
    k, 0) * weight, times the scale of the key; keys outside of cu_seqlen_ks up to cu_seqlen_ke - 1 are -inf, if
    clean_logits.

    index_q: (batch, queries, heads, dim); index_k: (batch, keys, groups, dim), both float8_e4m3fn, float16, bfloat16 or
    float32; weights: float32 (queries, heads); cu_seqlen_ks, cu_seqlen_ke: int32 (queries,); index_k_scale: float32 (batch,
    keys, groups). Products sum in float32. Has gradients in PyTorch, of its own functions, but of float8."""
    name = "lightning_indexer"
    index_q = check(name, "index_q", index_q, (*FLOATS, "float8_e4m3fn"), rank=4)
    batch, queries, heads, dim = index_q.shape
    index_k = check(name, "index_k", index_k, shape=(batch, None, None, dim), like=index_q)
    _heads(name, index_q, index_k)
    weights = check(name, "weights", weights, ("float32",), shape=(queries, heads))
    starts, ends = (
        check(name, n, t, ("int32",), shape=(queries,))
        for n, t in (("cu_seqlen_ks", cu_seqlen_ks), ("cu_seqlen_ke", cu_seqlen_ke))
    )
    if index_k_scale is not None:
        index_k_scale = check(name, "index_k_scale", index_k_scale, ("float32",), shape=tuple(index_k.shape[:3]))
    return _index(index_q, index_k, weights, starts, ends, index_k_scale, bool(clean_logits))


(
    mla_decode,
    dsa_attention,
    nsa_compress,
    nsa_compressed_attention,
    nsa_topk,
    nsa_selected_attention,
    nsa_attention,
    lightning_indexer,
) = map(
    public,
    (
        mla_decode,
        dsa_attention,
        nsa_compress,
        nsa_compressed_attention,
        nsa_topk,
        nsa_selected_attention,
        nsa_attention,
        lightning_indexer,
    ),
)
