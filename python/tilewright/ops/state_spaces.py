"""The state space of Mamba 2: of sequences, by its parts, and of one position after the other."""

from __future__ import annotations

import math

from .calls import name_of, product, refuse_shape
from .operators import FLOATS, Core, check, check_number, launch, on_gpu, public, up_to_power_of_two
from .recurrences import walk


def _kind(x):
    return str(x.dtype).removeprefix("torch.")


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
    from .programs import state_spaces as programs

    made = [dt.new_empty((batch, heads, positions // chunk_len, chunk_len)) for _ in range(2)]
    options = {
        "softplus": dt_softplus,
        "bias": dt_bias is not None,
        "bounded": (dt_min, dt_max) != (-math.inf, math.inf),
        "heads": min(8, up_to_power_of_two(heads)),  # a sector of memory; few blocks have all of a sequence's heads
        "rows": min(256, max(8, up_to_power_of_two(chunk_len))),
        "threads": 256,
    }
    launch(
        programs.steps,
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


def _in_chunks(x, chunks):
    """(batch, positions, ...) as (batch, chunks, length, ...)"""
    return x.reshape(x.shape[0], chunks, x.shape[1] // chunks, *x.shape[2:])


def _wide(x):
    """Whether sums of it are float64."""
    return name_of(x.dtype) == "float64"


def _fused(x):
    """Whether fused programs compute results of such operands. Their products are those of narrow floats; float32 keeps all of its
    bits, in products of its own."""
    return on_gpu(x) and _kind(x) in ("float16", "bfloat16")


def _chunk_state(x, B, dt, dA_cumsum, seq_idx, matmul):
    (_, _, heads, values), (chunks, length) = x.shape, dt.shape[2:]
    weights = (dA_cumsum[..., -1:] - dA_cumsum).exp() * (dt if _wide(x) else dt.float())
    if seq_idx is not None:
        ids = seq_idx.reshape(x.shape[0], 1, chunks, length)
        weights = weights * (ids == ids[..., -1:])
    lying = _in_chunks(x, chunks).permute(0, 1, 3, 2, 4) * weights.permute(0, 2, 1, 3)[..., None].to(x.dtype)
    states = _in_chunks(B, chunks).transpose(2, 3).repeat_interleave(heads // B.shape[2], 2)
    made = matmul(lying.reshape(-1, length, values), states.reshape(-1, length, B.shape[-1]))
    return made.reshape(x.shape[0], chunks, heads, values, -1)


def _run_chunk_state(x, B, dt, dA_cumsum, seq_idx):
    from .products import matmul

    (batch, _, heads, values), (chunks, length), n = x.shape, dt.shape[2:], B.shape[-1]
    made = x.new_empty((batch, chunks, heads, values, n), dtype=dA_cumsum.dtype)
    if not product(made.shape) or not length:
        return made.zero_()
    if not _fused(x):
        return _chunk_state(x, B, dt, dA_cumsum, seq_idx, lambda a, b: matmul(a, b, transpose_a=True, out_dtype="float32"))
    chunk_state(x, B, dt, dA_cumsum, seq_idx, made)
    return made


def chunk_state(x, B, dt, dA_cumsum, seq_idx, made):
    """By the fused program, into `made`."""
    import torch

    from .programs import state_spaces as programs

    chunks, length = dt.shape[2:]
    options = {
        "x": _kind(x),
        "step": _kind(dt),
        "marked": seq_idx is not None,
        "whole": length % 64 == 0,
        "rows": 64,
        "columns": min(128, max(16, up_to_power_of_two(B.shape[-1]))),
        "depth": 64,
        "stages": 2,
        "threads": 128,
    }
    ids = dA_cumsum.new_empty((1, 1, 1), dtype=torch.int32) if seq_idx is None else _in_chunks(seq_idx, chunks)
    launch(programs.chunk_state, options, _in_chunks(x, chunks), _in_chunks(B, chunks), dt, dA_cumsum, ids, made)


def _reference_chunk_state(x, B, dt, dA_cumsum, seq_idx):
    made = _chunk_state(x, B, dt, dA_cumsum, seq_idx, lambda a, b: a.mT @ b)
    return made if _wide(x) else made.float()


_state_of_chunks = Core(
    "ssd_chunk_state",
    "(Tensor x, Tensor B, Tensor dt, Tensor dA_cumsum, Tensor? seq_idx) -> Tensor",
    _run_chunk_state,
    _reference_chunk_state,
)


def ssd_chunk_state(x, B, dt, dA_cumsum, seq_idx=None):
    """What each chunk adds to the state: float32 (batch, chunks, heads, values, states), the sum over its positions of
    exp(the decay that is left of the chunk) * dt * x B^T. seq_idx, int32 (batch, positions): positions of another
    sequence than the chunk's last count nothing.

    x: (batch, positions, heads, values); B: (batch, positions, groups, states); dt, dA_cumsum: (batch, heads, chunks,
    chunk_len), as ssd_da_cumsum() makes them. x times its weight is rounded to x's dtype, products are summed in float32. Has
    gradients in PyTorch."""
    name = "ssd_chunk_state"
    x = check(name, "x", x, rank=4)
    batch, positions, heads, _ = x.shape
    B = check(name, "B", B, shape=(batch, positions, None, None), like=x)
    dt = check(name, "dt", dt, FLOATS, rank=4)
    (_heads(name, x, B), check(name, "dt", dt, FLOATS, shape=(batch, heads, *dt.shape[2:])))
    dA_cumsum = check(name, "dA_cumsum", dA_cumsum, ("float32",), shape=tuple(dt.shape))
    if dt.shape[2] * dt.shape[3] != positions:
        refuse_shape(name, f"{dt.shape[2]} chunks of {dt.shape[3]} are not the {positions} positions of 'x'")
    seq_idx = None if seq_idx is None else check(name, "seq_idx", seq_idx, ("int32",), shape=(batch, positions))
    return _state_of_chunks(x, B, dt, dA_cumsum, seq_idx)


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
    made, ends = walk(
        one,
        one,
        states.float(),
        dA_chunk_cumsum.transpose(1, 2),
        None,
        None if initial_states is None else initial_states[:, :, None],
        False,
        1.0,
        "float32",
        "",
    )
    first = torch.zeros_like(made[:, :1]) if initial_states is None else initial_states[:, None].float()
    return torch.cat((first, made[:, :-1]), 1), ends.squeeze(2)


def _chunk_scan(x, cb, dA_cumsum, C, prev_states, dt, within, before):
    import torch

    (batch, _, heads, values), (chunks, length), group = x.shape, dt.shape[2:], x.shape[2] // C.shape[2]
    decay, widely = dA_cumsum.permute(0, 2, 1, 3), (lambda t: t) if _wide(x) else (lambda t: t.float())
    mask = torch.ones((length, length), dtype=torch.bool, device=x.device).tril()
    weights = torch.where(mask, decay[..., :, None] - decay[..., None, :], -torch.inf).exp()
    weights = weights * widely(dt).permute(0, 2, 1, 3)[..., None, :]
    weights = (weights * widely(cb).repeat_interleave(group, 2)).to(x.dtype).reshape(-1, length, length)
    lying = _in_chunks(x, chunks).transpose(2, 3).reshape(-1, length, values)
    rows = _in_chunks(C, chunks).transpose(2, 3).repeat_interleave(group, 2)
    rows = (widely(rows) * decay.exp()[..., None]).to(x.dtype).reshape(-1, length, C.shape[-1])
    made = within(weights, lying) + before(rows, prev_states.to(x.dtype).reshape(-1, values, C.shape[-1]))
    return made.reshape(batch, chunks, heads, length, values).transpose(2, 3).reshape(x.shape)


def _run_chunk_scan(x, cb, dA_cumsum, C, prev_states, dt):
    from .products import matmul

    made = x.new_empty(x.shape, dtype=dA_cumsum.dtype)
    if not product(made.shape):
        return made
    if not _fused(x):
        return _chunk_scan(
            *(x, cb, dA_cumsum, C, prev_states, dt),
            lambda a, b: matmul(a, b, out_dtype="float32"),
            lambda a, b: matmul(a, b, transpose_b=True, out_dtype="float32"),
        )
    chunk_scan(x, cb, dA_cumsum, C, prev_states, dt, made)
    return made


def chunk_scan(x, cb, dA_cumsum, C, prev_states, dt, made):
    """By the fused program, into `made`."""
    from .programs import state_spaces as programs

    chunks, length = dt.shape[2:]
    options = {
        "x": _kind(x),
        "product": _kind(cb),
        "state": _kind(prev_states),
        "step": _kind(dt),
        "whole": length % 64 == 0,
        "columns": min(128, max(16, up_to_power_of_two(x.shape[3]))),
        "depth": min(128, max(16, up_to_power_of_two(C.shape[-1]))),
        "stages": 2,
        "threads": 128,
    }
    given, queries, results = (_in_chunks(t, chunks) for t in (x, C, made))
    launch(programs.chunk_scan, options, given, cb, dA_cumsum, queries, prev_states, dt, results)


def _reference_chunk_scan(x, cb, dA_cumsum, C, prev_states, dt):
    made = _chunk_scan(x, cb, dA_cumsum, C, prev_states, dt, lambda a, b: a @ b, lambda a, b: a @ b.mT)
    return made if _wide(x) else made.float()


_outputs_of_chunks = Core(
    "ssd_chunk_scan",
    "(Tensor x, Tensor cb, Tensor dA_cumsum, Tensor C, Tensor prev_states, Tensor dt) -> Tensor",
    _run_chunk_scan,
    _reference_chunk_scan,
)


def ssd_chunk_scan(x, cb, dA_cumsum, C, prev_states, dt):
    """The outputs, float32 (batch, positions, heads, values): what the state before a chunk gives, decayed, and the
    positions of the chunk up to each one, by products cb, decays and step sizes.

    Tensors as ssd_chunk_products(), ssd_da_cumsum() and ssd_state_passing() make them; prev_states: (batch, chunks, heads,
    values, states). The states and the weights of pairs of positions are rounded to x's dtype, products are summed in
    float32. Has gradients in PyTorch."""
    name = "ssd_chunk_scan"
    x = check(name, "x", x, rank=4)
    batch, positions, heads, values = x.shape
    C = check(name, "C", C, shape=(batch, positions, None, None), like=x)
    dt = check(name, "dt", dt, FLOATS, rank=4)
    (_heads(name, x, C, "C"), check(name, "dt", dt, FLOATS, shape=(batch, heads, *dt.shape[2:])))
    chunks, length = dt.shape[2:]
    dA_cumsum = check(name, "dA_cumsum", dA_cumsum, ("float32",), shape=tuple(dt.shape))
    if chunks * length != positions:
        refuse_shape(name, f"{chunks} chunks of {length} are not the {positions} positions of 'x'")
    cb = check(name, "cb", cb, FLOATS, shape=(batch, chunks, C.shape[2], length, length))
    prev_states = check(name, "prev_states", prev_states, FLOATS, shape=(batch, chunks, heads, values, C.shape[-1]))
    return _outputs_of_chunks(x, cb, dA_cumsum, C, prev_states, dt)


def mamba2(x, dt, A, B, C, dt_bias=None, initial_states=None, *, dt_softplus=True):
    """The state space of Mamba 2: (outputs, float32 as x; final states, float32 (batch, heads, values, states)). At each
    position the state is multiplied by exp(dt A), dt x B^T is added, and the output is the state times C.

    x: (batch, positions, heads, values); dt: float32 (batch, positions, heads); A, dt_bias: float32 (heads,); B, C: (batch,
    positions, groups, states), groups divide heads; initial_states: float32 (batch, heads, values, states). dt is dt +
    dt_bias, its softplus if dt_softplus. Any number of positions; float16, bfloat16, float32. Of narrow floats
    on a GPU operands of products are rounded to their dtype, all else is float32. Has gradients in PyTorch."""
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
    made, ends = walk(C, B, x, steps * A, steps, begins, False, 1.0, "float32", "float32")
    return made, ends.transpose(2, 3).contiguous()


def _run_step(A, dt, x, B, C, state):
    import torch

    from .programs import state_spaces as programs

    made, ends = x.new_empty(x.shape, dtype=torch.float32), state.new_empty(state.shape)
    if product(state.shape):
        launch(programs.step, {"x": _kind(x), "rows": 8, "threads": 128}, A, dt, x, B, C, state, made, ends)
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
    ssd_da_cumsum,
    ssd_chunk_products,
    ssd_chunk_state,
    ssd_state_passing,
    ssd_chunk_scan,
    mamba2,
    ssd_decode,
)
globals().update({function.__name__: public(function) for function in _FUNCTIONS})
