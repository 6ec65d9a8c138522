"""Linear attention: gated (GLA), with one decay a head, by delta rules; of sequences and of one position after the other.

Of float16 and bfloat16 on a GPU a sequence is computed in chunks of 64 positions, by products on tensor cores: sums, states and
decays are float32; as operands the state before a chunk, the weights of pairs of positions and what is written to the state
are rounded to the dtype of q. All else is float32, position after position."""

from __future__ import annotations

from .calls import name_of, place_of
from .operators import FLOATS, Core, check, check_choice, launch, on_gpu, public, up_to_power_of_two

_LAYOUTS = {"bthd": False, "bhtd": True}  # whether heads come before positions


def _kind(x):
    return str(x.dtype).removeprefix("torch.")


_CHUNK = 64  # positions, as in the programs
_SHORT = 32  # positions: fewer are walked in less time than the launches of chunks take, and one of decoding always is
_BLOCKS = 100  # that have most of a GPU at work
_MOST_KEYS = 256  # of a state that a block has in registers, with what it multiplies on chip
_FEWER_KEYS = {"sm_80": 128, "sm_87": 128, "sm_86": 64, "sm_89": 64, "sm_120a": 64, "sm_121a": 64}  # where there is less room


def _run(q, k, v, decay, beta, initial, corrects, scale, state_dtype, out_dtype):
    """q, k: (batch, positions, key heads, keys); v: (batch, positions, heads, values); strides are any but along the last."""
    import torch

    batch, length, heads, values = v.shape
    keys = q.shape[-1]
    made = v.new_empty(v.shape, dtype=getattr(torch, out_dtype) if out_dtype else v.dtype)
    state = v.new_empty((batch, heads, keys, values), dtype=getattr(torch, state_dtype))
    if not state.numel():
        return made.zero_(), state
    q, k, v = (t if t.stride(-1) == 1 or t.shape[-1] == 1 else t.contiguous() for t in (q, k, v))
    initial = None if initial is None else initial.to(state.dtype).contiguous()
    beta = None if beta is None else beta.float()
    narrow = _kind(v) in ("float16", "bfloat16") and q.dtype == v.dtype
    # Products of float32 lose 13 bits of it on tensor cores, and a processor walks as fast as it multiplies.
    most = _FEWER_KEYS.get(place_of(v).arch, _MOST_KEYS)
    by = chunked if on_gpu(v) and narrow and length > _SHORT and keys <= most else walked
    by(q, k, v, decay, beta, initial, corrects, scale, made, state)
    return made, state


def walked(q, k, v, decay, beta, initial, corrects, scale, made, state):
    """Position after position, into `made` and `state`."""
    from .programs import recurrences

    batch, length, heads, values = v.shape
    keys = q.shape[-1]
    padded = max(16, up_to_power_of_two(keys))
    columns = min(up_to_power_of_two(values), max(4, 2048 // padded) if on_gpu(v) else max(16, 4096 // padded))
    decays = "" if decay is None else "key" if decay.dim() == 4 else "head"
    options = {
        "x": _kind(v),
        "result": _kind(made),
        "decays": decays,
        "gates": beta is not None,
        "corrects": corrects,
        "begins": initial is not None,
        "keys": padded,
        "columns": columns,
        "positions": 0,
        "state": _kind(state),
        "threads": 128,
    }
    nothing = v.new_empty((1,), dtype=made.dtype).float()
    decay = nothing.new_empty((batch, length, heads)) if decay is None else decay.float()
    decay = decay if decays == "key" else decay.unsqueeze(-1)
    if decay.shape[-1] > 1 and decay.stride(-1) != 1:
        decay = decay.contiguous()
    beta = nothing.new_empty((batch, length, heads)) if beta is None else beta
    launch(
        recurrences.walk, options, q, k, v, decay, beta, state if initial is None else initial, made, state, float(scale)
    )


def chunked(q, k, v, decay, beta, initial, corrects, scale, made, state):
    """By chunks of 64 positions, into `made` and `state`: what of a chunk is known without the state, of all chunks at once; then
    outputs and states, one chunk after the other."""
    import torch

    from .programs import linear_chunks as programs

    batch, length, heads, values = v.shape
    keys, x, chunks = q.shape[-1], _kind(v), -(-length // _CHUNK)
    padded = max(16, up_to_power_of_two(keys))
    decays = "" if decay is None else "key" if decay.dim() == 4 else "head"
    gates = beta is not None and not corrects
    none = v.new_empty((1, 1, 1), dtype=torch.float32)
    left, pairs, w = none, v.new_empty((1, 1, 1, 1)), v.new_empty((1, 1, 1, 1))

    def of_chunks(*extents, dtype=None):
        return v.new_empty((batch * heads, chunks, *extents), dtype=dtype or v.dtype)

    def of_positions(t, extent):
        """What was made of chunks, as (batch, positions, heads, extent)."""
        return t.view(batch, heads, chunks * _CHUNK, -1).transpose(1, 2)[:, :length, :, :extent]

    if decays == "key":
        decay = decay if decay.stride(-1) == 1 or keys == 1 else decay.contiguous()
        by_queries, by_keys = of_chunks(_CHUNK, padded), of_chunks(_CHUNK, padded)
        left, pairs = of_chunks(padded, dtype=torch.float32), of_chunks(_CHUNK, _CHUNK)
        options = {"x": x, "decay": _kind(decay), "keys": padded, "threads": 512 if padded > 128 else 256}
        launch(programs.weights, options, q, k, decay, by_queries, by_keys, left, pairs)
        q, k = of_positions(by_queries, keys), of_positions(by_keys, keys)
    decay = decay.float() if decays == "head" else none
    if corrects:
        w, u = of_chunks(_CHUNK, padded), of_chunks(_CHUNK, values)
        columns = min(128, max(16, up_to_power_of_two(values)))
        options = {"x": x, "decays": decays, "keys": padded, "columns": columns, "threads": 128}
        launch(programs.corrections, options, k, v, decay, beta, w, u)
        v = of_positions(u, values)
    # A block has columns of a state in registers, and walks alone: fewer columns where there would be few blocks.
    few = padded > 128 or values <= 32 or batch * heads * values < 64 * _BLOCKS
    options = {
        "x": x,
        "result": _kind(made),
        "decays": decays,
        "gates": gates,
        "corrects": corrects,
        "begins": initial is not None,
        "keys": padded,
        "columns": 32 if few else 64,
        "state": _kind(state),
        "stages": 2,
        "threads": 128 if padded < 128 else 256,
    }
    given = q, k, v, decay, beta if gates else none, left, pairs, w, state if initial is None else initial
    launch(programs.attend, options, *given, made, state, float(scale))


def _reference(q, k, v, decay, beta, initial, corrects, scale, state_dtype, out_dtype):
    import torch

    kind = torch.float32 if v.dtype in (torch.float16, torch.bfloat16) else v.dtype
    group = v.shape[2] // max(q.shape[2], 1)
    wide_q, wide_k = (t.to(kind).repeat_interleave(group, 2) for t in (q, k))
    batch, length, heads, values = v.shape
    state = torch.zeros((batch, heads, q.shape[-1], values), dtype=kind, device=v.device) if initial is None else initial.to(kind)
    rows = []
    for t in range(length):
        if decay is not None:
            g = decay[:, t].to(kind).exp()
            state = state * (g[..., None] if g.dim() == 3 else g[..., None, None])
        new = v[:, t].to(kind)
        if corrects:
            new = new - torch.einsum("bhkv,bhk->bhv", state, wide_k[:, t])
        if beta is not None:
            new = new * beta[:, t].to(kind)[..., None]
        state = state + wide_k[:, t, :, :, None] * new[:, :, None]
        rows.append(scale * torch.einsum("bhkv,bhk->bhv", state, wide_q[:, t]))
    made = torch.stack(rows, 1) if rows else v.new_zeros(v.shape)
    ends = getattr(torch, state_dtype) if kind is not torch.float64 else kind
    result = getattr(torch, out_dtype) if out_dtype and kind is not torch.float64 else v.dtype
    return made.to(result), state.to(ends)


walk = Core(
    "linear_attention",
    "(Tensor q, Tensor k, Tensor v, Tensor? decay, Tensor? beta, Tensor? initial, bool corrects, float scale, str state_dtype, str out_dtype)"
    " -> (Tensor, Tensor)",
    _run,
    _reference,
)


def _checked(name, q, k, v, layout, initial=None, **beside):
    """Tensors as (batch, positions, heads, ...): views of what is given."""
    check_choice(name, "layout", layout, tuple(_LAYOUTS))
    q = check(name, "q", q, rank=4)
    k = check(name, "k", k, shape=tuple(q.shape), like=q)
    v = check(name, "v", v, shape=(*q.shape[:3], None), like=q)
    made = []
    for argument, (t, rank) in beside.items():
        if t is not None:
            check(name, argument, t, (*FLOATS,), shape=tuple(q.shape[:3]) if rank == 3 else tuple(q.shape))
        made.append(t)
    if initial is not None:
        heads = q.shape[1 if _LAYOUTS[layout] else 2]
        check(name, "initial_state", initial, FLOATS, shape=(q.shape[0], heads, q.shape[-1], v.shape[-1]))
    if _LAYOUTS[layout]:
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        made = [None if t is None else t.transpose(1, 2) for t in made]
    return q, k, v, made


def _laid(made, layout):
    return (made[0].transpose(1, 2).contiguous() if _LAYOUTS[layout] else made[0]), made[1]


def gla(q, k, v, g, initial_state=None, *, scale=None, layout="bthd"):
    """Gated linear attention: (output, final state). At each position the state of a head, keys by values, is multiplied by
    exp(g) row by row, k v^T is added, and the output is scale * S^T q.

    q, k, g: (batch, positions, heads, keys); v: (batch, positions, heads, values), or with layout "bhtd" heads first;
    float16, bfloat16 or float32 (g any of them, the logarithm of the decay, at most 0). initial_state: (batch, heads, keys,
    values), zeros if None; the final one is float32. scale: 1 / sqrt(keys) if None. Of narrow floats on a GPU operands
    of products are rounded to their dtype, all else is float32. Has gradients in PyTorch."""
    q, k, v, (g,) = _checked("gla", q, k, v, layout, initial_state, g=(g, 4))
    return _laid(
        walk(q, k, v, g, None, initial_state, False, q.shape[-1] ** -0.5 if scale is None else float(scale), "float32", ""), layout
    )


def delta_net(q, k, v, beta, initial_state=None, *, scale=1.0, layout="bthd"):
    """The delta rule: (output, final state). At each position k (beta (v - S^T k))^T is added to the state of a head, keys
    by values, and the output is scale * S^T q.

    q, k: (batch, positions, heads, keys); v: (batch, positions, heads, values); beta: (batch, positions, heads), or with
    layout "bhtd" heads first; float16, bfloat16 or float32. initial_state: (batch, heads, keys, values), zeros if None; the
    final one is float32. Of narrow floats on a GPU operands of products are rounded to their dtype, all else is float32. Has
    gradients in PyTorch."""
    q, k, v, (beta,) = _checked("delta_net", q, k, v, layout, initial_state, beta=(beta, 3))
    return _laid(walk(q, k, v, None, beta, initial_state, True, float(scale), "float32", ""), layout)


def gated_delta_net(q, k, v, g, beta, initial_state=None, *, scale=1.0, layout="bthd"):
    """The gated delta rule: (output, final state). delta_net() whose state is multiplied by exp(g) at each position first.

    g, beta: (batch, positions, heads), g the logarithm of the decay, at most 0; all else as for delta_net()."""
    q, k, v, (g, beta) = _checked("gated_delta_net", q, k, v, layout, initial_state, g=(g, 3), beta=(beta, 3))
    return _laid(walk(q, k, v, g, beta, initial_state, True, float(scale), "float32", ""), layout)


def retention(q, k, v, g, initial_state=None, *, scale=None, layout="bthd"):
    """Linear attention whose state is multiplied by exp(g), one number a head and position: (output, final state).

    g: (batch, positions, heads); all else as for gla()."""
    q, k, v, (g,) = _checked("retention", q, k, v, layout, initial_state, g=(g, 3))
    return _laid(
        walk(q, k, v, g, None, initial_state, False, q.shape[-1] ** -0.5 if scale is None else float(scale), "float32", ""), layout
    )


def _decode(name, q, k, v, state, corrects, scale, g=None, beta=None):
    q = check(name, "q", q, rank=3)
    k = check(name, "k", k, shape=tuple(q.shape), like=q)
    v = check(name, "v", v, shape=(*q.shape[:2], None), like=q)
    check(name, "state", state, FLOATS, shape=(*q.shape, v.shape[-1]))
    for argument, t in (("g", g), ("beta", beta)):
        if t is not None:
            check(name, argument, t, FLOATS, shape=tuple(q.shape) if argument == "g" and not corrects else tuple(q.shape[:2]))
    given = [None if t is None else t.unsqueeze(1) for t in (q, k, v, g, beta)]
    made, ends = walk(*given, state, corrects, scale, name_of(state.dtype), "")
    return made.squeeze(1), ends


def gla_decode(q, k, v, g, state, *, scale=None):
    """One position of gla(): (output (batch, heads, values), the state behind it, of its dtype).

    q, k, g: (batch, heads, keys); v: (batch, heads, values); state: (batch, heads, keys, values), float16, bfloat16 or
    float32."""
    return _decode("gla_decode", q, k, v, state, False, q.shape[-1] ** -0.5 if scale is None else float(scale), g)


def delta_net_decode(q, k, v, beta, state, *, scale=1.0):
    """One position of delta_net(): (output (batch, heads, values), the state behind it, of its dtype).

    q, k: (batch, heads, keys); v: (batch, heads, values); beta: (batch, heads); state: (batch, heads, keys, values)."""
    return _decode("delta_net_decode", q, k, v, state, True, float(scale), None, beta)


def gated_delta_net_decode(q, k, v, g, beta, state, *, scale=1.0):
    """One position of gated_delta_net(): as delta_net_decode(), and g: (batch, heads)."""
    return _decode("gated_delta_net_decode", q, k, v, state, True, float(scale), g, beta)


_FUNCTIONS = (
    gla,
    delta_net,
    gated_delta_net,
    retention,
    gla_decode,
    delta_net_decode,
    gated_delta_net_decode,
)
globals().update({function.__name__: public(function) for function in _FUNCTIONS})
