"""Linear attention: gated (GLA), by delta rules, and the state space of Mamba 2, of sequences and of one position after the
other."""

from __future__ import annotations

import math

from .calls import name_of, product, refuse_shape
from .operators import FLOATS, Core, check, check_choice, check_number, launch, on_gpu, public, up_to_power_of_two

_LAYOUTS = {"bthd": False, "bhtd": True}  # whether heads come before positions


def _kind(x):
    return str(x.dtype).removeprefix("torch.")


def _run(q, k, v, decay, beta, initial, corrects, scale, state_dtype):
    """q, k: (batch, positions, key heads, keys); v: (batch, positions, heads, values); strides are any but along the last."""
    import torch

    from .programs import recurrences

    batch, length, heads, values = v.shape
    keys = q.shape[-1]
    made = v.new_empty(v.shape)
    state = v.new_empty((batch, heads, keys, values), dtype=getattr(torch, state_dtype))
    if not state.numel():
        return made, state
    gpu = on_gpu(v)
    padded = max(16, up_to_power_of_two(keys))
    columns = min(up_to_power_of_two(values), max(4, 2048 // padded) if gpu else max(16, 4096 // padded))
    decays = "" if decay is None else "key" if decay.dim() == 4 else "head"
    options = {
        "x": _kind(v),
        "decays": decays,
        "gates": beta is not None,
        "corrects": corrects,
        "begins": initial is not None,
        "keys": padded,
        "columns": columns,
        "positions": 0,
        "state": state_dtype,
        "threads": 128,
    }
    nothing = v.new_empty((1,), dtype=torch.float32)
    q, k, v = (t if t.stride(-1) == 1 or t.shape[-1] == 1 else t.contiguous() for t in (q, k, v))
    decay = nothing.expand(batch, length, heads, keys if decays == "key" else 1) if decay is None else decay.float()
    decay = decay.unsqueeze(-1) if decays == "head" else decay
    if decays and decay.shape[-1] > 1 and decay.stride(-1) != 1:
        decay = decay.contiguous()
    decay = decay if decays else nothing.new_empty((batch, length, heads, 1))
    beta = nothing.new_empty((batch, length, heads)) if beta is None else beta.float()
    initial = state if initial is None else initial.to(state.dtype).contiguous()
    launch(recurrences.walk, options, q, k, v, decay, beta, initial, made, state, float(scale))
    return made, state


def _reference(q, k, v, decay, beta, initial, corrects, scale, state_dtype):
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
    return made.to(v.dtype), state.to(ends)


_walk = Core(
    "linear_attention",
    "(Tensor q, Tensor k, Tensor v, Tensor? decay, Tensor? beta, Tensor? initial, bool corrects, float scale, str state_dtype)"
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
    values), zeros if None; the final one is float32. scale: 1 / sqrt(keys) if None. Computed in float32, position after
    position. Has gradients in PyTorch."""
    q, k, v, (g,) = _checked("gla", q, k, v, layout, initial_state, g=(g, 4))
    return _laid(
        _walk(q, k, v, g, None, initial_state, False, q.shape[-1] ** -0.5 if scale is None else float(scale), "float32"), layout
    )


def delta_net(q, k, v, beta, initial_state=None, *, scale=1.0, layout="bthd"):
    """The delta rule: (output, final state). At each position k (beta (v - S^T k))^T is added to the state of a head, keys
    by values, and the output is scale * S^T q.

    q, k: (batch, positions, heads, keys); v: (batch, positions, heads, values); beta: (batch, positions, heads), or with
    layout "bhtd" heads first; float16, bfloat16 or float32. initial_state: (batch, heads, keys, values), zeros if None; the
    final one is float32. Computed in float32, position after position. Has gradients in PyTorch."""
    q, k, v, (beta,) = _checked("delta_net", q, k, v, layout, initial_state, beta=(beta, 3))
    return _laid(_walk(q, k, v, None, beta, initial_state, True, float(scale), "float32"), layout)


def gated_delta_net(q, k, v, g, beta, initial_state=None, *, scale=1.0, layout="bthd"):
    """The gated delta rule: (output, final state). delta_net() whose state is multiplied by exp(g) at each position first.

    g, beta: (batch, positions, heads), g the logarithm of the decay, at most 0; all else as for delta_net()."""
    q, k, v, (g, beta) = _checked("gated_delta_net", q, k, v, layout, initial_state, g=(g, 3), beta=(beta, 3))
    return _laid(_walk(q, k, v, g, beta, initial_state, True, float(scale), "float32"), layout)


def retention(q, k, v, g, initial_state=None, *, scale=None, layout="bthd"):
    """Linear attention whose state is multiplied by exp(g), one number a head and position: (output, final state).

    g: (batch, positions, heads); all else as for gla()."""
    q, k, v, (g,) = _checked("retention", q, k, v, layout, initial_state, g=(g, 3))
    return _laid(
        _walk(q, k, v, g, None, initial_state, False, q.shape[-1] ** -0.5 if scale is None else float(scale), "float32"), layout
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
    made, ends = _walk(*given, state, corrects, scale, name_of(state.dtype))
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


# ---- the state space of Mamba 2


def _steps(dt, dt_bias, dt_softplus, dt_min=0.0, dt_max=float("inf")):
    """Step sizes from what a projection gives, float32."""
    import torch

    dt = dt.float()
    dt = dt if dt_bias is None else dt + dt_bias
    return (torch.nn.functional.softplus(dt) if dt_softplus else dt).clamp(dt_min, dt_max)


def _chunks(name, positions, chunk_len):
    check_number(name, "chunk_len", chunk_len, 1, whole=True)
    if positions % chunk_len:
        refuse_shape(name, f"{positions} positions are no whole chunks of {chunk_len}")
    return positions // chunk_len


def _run_step_sizes(dt, A, chunk_len, dt_bias, dt_softplus, dt_min, dt_max):
    import torch

    batch, positions, heads = dt.shape
    if not on_gpu(dt) or not product(dt.shape):
        from .scans import cumsum

        steps = _laid_out(_steps(dt, dt_bias, dt_softplus, dt_min, dt_max), chunk_len)
        return steps.contiguous(), cumsum(steps * A[:, None, None])
    from .programs import recurrences

    made = [dt.new_empty((batch, heads, positions // chunk_len, chunk_len)) for _ in range(2)]
    options = {
        "softplus": dt_softplus,
        "bias": dt_bias is not None,
        "bounded": (dt_min, dt_max) != (-math.inf, math.inf),
        "heads": min(32, up_to_power_of_two(heads)),
        "rows": min(64, max(8, up_to_power_of_two(chunk_len))),
        "threads": 256,
    }
    launch(
        recurrences.steps,
        options,
        dt.contiguous(),
        A.contiguous(),
        dt.new_empty((1,)) if dt_bias is None else dt_bias.float().contiguous(),
        *(t.view(batch, heads, positions) for t in made),
        torch.empty((chunk_len,), dtype=torch.int8, device=dt.device),
        float(dt_min),
        float(dt_max),
    )
    return tuple(made)


def _laid_out(steps, chunk_len):
    batch, positions, heads = steps.shape
    return steps.transpose(1, 2).reshape(batch, heads, positions // chunk_len, chunk_len)


def _reference_step_sizes(dt, A, chunk_len, dt_bias, dt_softplus, dt_min, dt_max):
    steps = _laid_out(_steps(dt, dt_bias, dt_softplus, dt_min, dt_max), chunk_len)
    return steps.contiguous(), (steps * A[:, None, None]).cumsum(-1)


_step_sizes = Core(
    "ssd_da_cumsum",
    "(Tensor dt, Tensor A, int chunk_len, Tensor? dt_bias, bool dt_softplus, float dt_min, float dt_max) -> (Tensor, Tensor)",
    _run_step_sizes,
    _reference_step_sizes,
)


def ssd_da_cumsum(dt, A, chunk_len, dt_bias=None, *, dt_softplus=False, dt_min=0.0, dt_max=float("inf")):
    """(step sizes, running sums of step size * A within chunks), both float32 (batch, heads, chunks, chunk_len).

    dt: float32 (batch, positions, heads); A, dt_bias: float32 (heads,). Step sizes are dt + dt_bias, their softplus if
    dt_softplus, brought between dt_min and dt_max. chunk_len divides the positions. Has gradients in PyTorch."""
    name = "ssd_da_cumsum"
    dt = check(name, "dt", dt, ("float32",), rank=3)
    A = check(name, "A", A, ("float32",), shape=(dt.shape[2],))
    _chunks(name, dt.shape[1], chunk_len)
    dt_bias = None if dt_bias is None else check(name, "dt_bias", dt_bias, ("float32",), shape=(dt.shape[2],))
    return _step_sizes(dt, A, chunk_len, dt_bias, bool(dt_softplus), float(dt_min), float(dt_max))


def _heads(name, x, B, groups_of="B"):
    if not B.shape[2] or x.shape[2] % B.shape[2]:
        refuse_shape(name, f"{x.shape[2]} heads do not divide among {B.shape[2]} groups of '{groups_of}'")
    return x.shape[2] // B.shape[2]


def ssd_chunk_products(C, B, chunk_len):
    """C @ B^T within each chunk: (batch, chunks, groups, chunk_len, chunk_len) of (batch, positions, groups, states).
    float16, bfloat16 or float32, summed in float32. Has gradients in PyTorch."""
    name = "ssd_chunk_products"
    C = check(name, "C", C, rank=4)
    B = check(name, "B", B, shape=tuple(C.shape), like=C)
    chunks = _chunks(name, C.shape[1], chunk_len)
    from .products import matmul

    def lying(t):
        return t.reshape(t.shape[0], chunks, chunk_len, *t.shape[2:]).transpose(2, 3).reshape(-1, chunk_len, t.shape[-1])

    return matmul(lying(C), lying(B), transpose_b=True).reshape(C.shape[0], chunks, C.shape[2], chunk_len, chunk_len)


def ssd_chunk_state(x, B, dt, dA_cumsum, seq_idx=None):
    """What each chunk adds to the state: float32 (batch, chunks, heads, values, states), the sum over its positions of
    exp(the decay that is left of the chunk) * dt * x B^T. seq_idx, int32 (batch, positions): positions of another
    sequence than the chunk's last count nothing.

    x: (batch, positions, heads, values); B: (batch, positions, groups, states); dt, dA_cumsum: (batch, heads, chunks,
    chunk_len), as ssd_da_cumsum() makes them. Products take x's dtype and sum in float32. Has gradients in PyTorch."""
    name = "ssd_chunk_state"
    x = check(name, "x", x, rank=4)
    batch, positions, heads, values = x.shape
    B = check(name, "B", B, shape=(batch, positions, None, None), like=x)
    group, (_, _, chunks, length) = _heads(name, x, B), dt.shape
    (
        check(name, "dt", dt, FLOATS, shape=(batch, heads, chunks, length)),
        check(name, "dA_cumsum", dA_cumsum, ("float32",), shape=tuple(dt.shape)),
    )
    if chunks * length != positions:
        refuse_shape(name, f"{chunks} chunks of {length} are not the {positions} positions of 'x'")
    from .products import matmul

    weights = (dA_cumsum[..., -1:] - dA_cumsum).exp() * dt.float()
    if seq_idx is not None:
        ids = seq_idx.reshape(batch, 1, chunks, length)
        weights = weights * (ids == ids[..., -1:])
    lying = x.reshape(batch, chunks, length, heads, values).permute(0, 1, 3, 2, 4) * weights.permute(0, 2, 1, 3)[..., None].to(
        x.dtype
    )
    states = B.reshape(batch, chunks, length, -1, B.shape[-1]).transpose(2, 3).repeat_interleave(group, 2)
    made = matmul(
        lying.reshape(-1, length, values), states.reshape(-1, length, B.shape[-1]), transpose_a=True, out_dtype="float32"
    )
    return made.reshape(batch, chunks, heads, values, -1)


def ssd_state_passing(states, dA_chunk_cumsum, initial_states=None):
    """(the state before each chunk, float32 as states; the state behind the last): each is exp(dA_chunk_cumsum) times the
    one before, plus what the chunk adds.

    states: (batch, chunks, heads, N); dA_chunk_cumsum: float32 (batch, heads, chunks); initial_states: (batch, heads, N),
    zeros if None. Has gradients in PyTorch."""
    import torch

    name = "ssd_state_passing"
    states = check(name, "states", states, rank=4)
    batch, chunks, heads, n = states.shape
    check(name, "dA_chunk_cumsum", dA_chunk_cumsum, ("float32",), shape=(batch, heads, chunks))
    if initial_states is not None:
        check(name, "initial_states", initial_states, ("float32",), shape=(batch, heads, n))
    # A recurrence of one key: what comes out of a position is the state behind it.
    one = states.new_ones((batch, chunks, heads, 1), dtype=torch.float32)
    made, ends = _walk(
        one,
        one,
        states.float(),
        dA_chunk_cumsum.transpose(1, 2),
        None,
        None if initial_states is None else initial_states[:, :, None],
        False,
        1.0,
        "float32",
    )
    first = torch.zeros_like(made[:, :1]) if initial_states is None else initial_states[:, None].float()
    return torch.cat((first, made[:, :-1]), 1), ends.squeeze(2)


def ssd_chunk_scan(x, cb, dA_cumsum, C, prev_states, dt):
    """The outputs, float32 (batch, positions, heads, values): what the state before a chunk gives, decayed, and the
    positions of the chunk up to each one, by products cb, decays and step sizes.

    Tensors as ssd_chunk_products(), ssd_da_cumsum() and ssd_state_passing() make them; prev_states: (batch, chunks, heads,
    values, states). Has gradients in PyTorch."""
    import torch

    name = "ssd_chunk_scan"
    x = check(name, "x", x, rank=4)
    batch, positions, heads, values = x.shape
    C = check(name, "C", C, shape=(batch, positions, None, None), like=x)
    group, (_, _, chunks, length) = _heads(name, x, C, "C"), dt.shape
    check(name, "cb", cb, FLOATS, shape=(batch, chunks, C.shape[2], length, length))
    check(name, "prev_states", prev_states, FLOATS, shape=(batch, chunks, heads, values, C.shape[-1]))
    from .products import matmul

    decay = dA_cumsum.permute(0, 2, 1, 3)  # (batch, chunks, heads, length)
    mask = torch.ones((length, length), dtype=torch.bool, device=x.device).tril()
    weights = (
        torch.where(mask, decay[..., :, None] - decay[..., None, :], -torch.inf).exp()
        * dt.float().permute(0, 2, 1, 3)[..., None, :]
    )
    weights = (weights * cb.float().repeat_interleave(group, 2)).to(x.dtype).reshape(-1, length, length)
    lying = x.reshape(batch, chunks, length, heads, values).transpose(2, 3).reshape(-1, length, values)
    rows = C.reshape(batch, chunks, length, -1, C.shape[-1]).transpose(2, 3).repeat_interleave(group, 2)
    rows = (rows.float() * decay.exp()[..., None]).to(x.dtype).reshape(-1, length, C.shape[-1])
    before = prev_states.to(x.dtype).reshape(-1, values, C.shape[-1])
    made = matmul(weights, lying, out_dtype="float32") + matmul(rows, before, transpose_b=True, out_dtype="float32")
    return made.reshape(batch, chunks, heads, length, values).transpose(2, 3).reshape(x.shape)


def mamba2(x, dt, A, B, C, dt_bias=None, initial_states=None, *, dt_softplus=True):
    """The state space of Mamba 2: (outputs, float32 as x; final states, float32 (batch, heads, values, states)). At each
    position the state is multiplied by exp(dt A), dt x B^T is added, and the output is the state times C.

    x: (batch, positions, heads, values); dt: float32 (batch, positions, heads); A, dt_bias: float32 (heads,); B, C: (batch,
    positions, groups, states), groups divide heads; initial_states: float32 (batch, heads, values, states). dt is dt +
    dt_bias, its softplus if dt_softplus. Any number of positions; float16, bfloat16, float32, computed in float32, position
    after position. Has gradients in PyTorch."""
    name = "mamba2"
    x = check(name, "x", x, rank=4)
    batch, positions, heads, values = x.shape
    dt = check(name, "dt", dt, ("float32",), shape=(batch, positions, heads))
    A = check(name, "A", A, ("float32",), shape=(heads,))
    B = check(name, "B", B, shape=(batch, positions, None, None), like=x)
    C = check(name, "C", C, shape=tuple(B.shape), like=x)
    _heads(name, x, B)
    steps = _steps(dt, dt_bias, dt_softplus)
    begins = None
    if initial_states is not None:
        check(name, "initial_states", initial_states, ("float32",), shape=(batch, heads, values, B.shape[-1]))
        begins = initial_states.transpose(2, 3)
    made, ends = _walk(C.float(), B.float(), x.float(), steps * A, steps, begins, False, 1.0, "float32")
    return made, ends.transpose(2, 3).contiguous()


def _run_step(A, dt, x, B, C, state):
    import torch

    from .programs import recurrences

    made, ends = x.new_empty(x.shape, dtype=torch.float32), state.new_empty(state.shape)
    if product(state.shape):
        launch(recurrences.step, {"x": _kind(x), "rows": 8, "threads": 128}, A, dt, x, B, C, state, made, ends)
    return made, ends


def _reference_step(A, dt, x, B, C, state):
    import torch

    kind = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    group = x.shape[1] // max(B.shape[1], 1)
    b, c = (t.to(kind).repeat_interleave(group, 1)[:, :, None] for t in (B, C))
    ends = (dt[..., None] * A).exp() * state + dt[..., None] * b * x.to(kind)[..., None]
    return (ends * c).sum(-1), ends


_step = Core(
    "state_step",
    "(Tensor A, Tensor dt, Tensor x, Tensor B, Tensor C, Tensor state) -> (Tensor, Tensor)",
    _run_step,
    _reference_step,
)


def ssd_decode(A, dt, x, B, C, state):
    """One position of a state space: (output, float32 (batch, heads, values); the state behind it). The state is multiplied
    by exp(dt A), dt x B^T is added, and the output is the state times C.

    A: float32 (heads, values, states); dt: float32 (batch, heads, values); x: (batch, heads, values); B, C: (batch, groups,
    states) of x's dtype, float16, bfloat16 or float32; state: float32 (batch, heads, values, states). Has gradients in
    PyTorch."""
    name = "ssd_decode"
    x = check(name, "x", x, rank=3)
    batch, heads, values = x.shape
    B = check(name, "B", B, shape=(batch, None, None), like=x)
    C = check(name, "C", C, shape=tuple(B.shape), like=x)
    groups, n = B.shape[1:]
    if not groups or heads % groups:
        refuse_shape(name, f"{heads} heads do not divide among {groups} groups")
    A, dt = (
        check(name, "A", A, ("float32",), shape=(heads, values, n)),
        check(name, "dt", dt, ("float32",), shape=(batch, heads, values)),
    )
    return _step(A, dt, x, B, C, check(name, "state", state, ("float32",), shape=(batch, heads, values, n)))


_FUNCTIONS = (
    gla,
    delta_net,
    gated_delta_net,
    retention,
    gla_decode,
    delta_net_decode,
    gated_delta_net_decode,
    ssd_da_cumsum,
    ssd_chunk_products,
    ssd_chunk_state,
    ssd_state_passing,
    ssd_chunk_scan,
    mamba2,
    ssd_decode,
)
globals().update({function.__name__: public(function) for function in _FUNCTIONS})
