"""The parts of state spaces of tilewright.ops, beside PyTorch in float64: step sizes with biases and bounds, chunks that suit no
tile."""

import pytest

torch = pytest.importorskip("torch")

import tilewright.ops as ops  # noqa: E402
from tilewright.ops import state_spaces as states  # noqa: E402

F = torch.nn.functional


@pytest.mark.parametrize("engine", ["interpreter", "simulator"])
@pytest.mark.parametrize("extents", [(2, 8, 4, 4), (1, 6, 2, 3), (1, 140, 5, 70), (1, 256, 33, 128), (1, 5, 3, 1)], ids=str)
def test_step_sizes(extents, engine, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", engine)
    batch, positions, heads, chunk = extents
    make = torch.Generator().manual_seed(positions)
    dt, A = torch.randn(batch, positions, heads, generator=make) * 10, -torch.rand(heads, generator=make)
    for named in (
        {},
        {"dt_softplus": True},
        {"dt_bias": torch.randn(heads, generator=make), "dt_softplus": True, "dt_min": 0.1, "dt_max": 3.0},
        {"dt_min": -float("inf")},
    ):
        steps, sums = ops.ssd_da_cumsum(dt, A, chunk, **named)
        wide = dt.double() + named.get("dt_bias", 0)
        wide = (F.softplus(wide) if "dt_softplus" in named else wide).clamp(named.get("dt_min", 0.0), named.get("dt_max", float("inf")))
        wide = wide.transpose(1, 2).reshape(batch, heads, -1, chunk)
        assert torch.allclose(steps.double(), wide, rtol=1e-5, atol=1e-5)
        assert torch.allclose(sums.double(), (wide * A[:, None, None]).cumsum(-1), rtol=1e-4, atol=1e-4)


def chunks_of(extents, kinds=("float16",) * 3):
    """(x, B, C, dt, sums of dt * A, products C B^T, the states before the chunks) of chunks."""
    batch, chunks, length, heads, values, groups, keys = extents
    make = torch.Generator().manual_seed(length + keys)
    x, B, C = (
        torch.randn(batch, chunks * length, *e, generator=make).to(getattr(torch, kinds[0]))
        for e in ((heads, values), (groups, keys), (groups, keys))
    )
    dt = torch.rand(batch, heads, chunks, length, generator=make).to(getattr(torch, kinds[1]))
    sums = (dt.float() * -torch.rand(heads, generator=make)[:, None, None] * 4).cumsum(-1)
    cb = torch.einsum("bcign,bcjgn->bcgij", *(t.float().unflatten(1, (chunks, length)) for t in (C, B)))
    before = torch.randn(batch, chunks, heads, values, keys, generator=make).to(getattr(torch, kinds[2]))
    return x, B, C, dt, sums, cb.to(getattr(torch, kinds[0])).contiguous(), before


CHUNKS = [(2, 2, 5, 4, 6, 2, 9), (1, 2, 70, 2, 20, 1, 16), (1, 1, 128, 3, 130, 3, 72)]
KINDS = [("float16",) * 3, ("bfloat16", "float32", "float32"), ("float16", "float32", "float32")]


@pytest.mark.parametrize("engine", ["interpreter", "simulator"])
@pytest.mark.parametrize("extents, kinds", list(zip(CHUNKS, KINDS)), ids=str)
def test_parts_of_chunks_by_products(extents, kinds, engine, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", engine)
    x, B, C, dt, sums, cb, before = chunks_of(extents, kinds)
    allowed = 2.0**-5 if kinds[0] == "bfloat16" else 2.0**-8
    wide = [t.double() for t in (x, B, C, dt, sums, cb, before)]
    ids = torch.arange(x.shape[1], dtype=torch.int32).div(3, rounding_mode="floor").expand(x.shape[0], -1)
    for marks in (None, ids.contiguous()):
        made = before.new_empty(before.shape, dtype=torch.float32)
        states.chunk_state(x, B, dt, sums, marks, made)
        expected = ops.ssd_chunk_state.reference(wide[0], wide[1], wide[3], wide[4], marks)
        assert torch.allclose(made.double(), expected, rtol=allowed, atol=allowed * 4)
    made = x.new_empty(x.shape, dtype=torch.float32)
    states.chunk_scan(x, cb, sums, C, before, dt, made)
    expected = ops.ssd_chunk_scan.reference(wide[0], wide[5], wide[4], wide[2], wide[6], wide[3])
    assert torch.allclose(made.double(), expected, rtol=allowed, atol=allowed * 8)


def test_what_is_beyond_a_chunk_does_not_reach_into_it(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "simulator")
    x, B, C, dt, sums, cb, before = chunks_of((1, 2, 5, 1, 8, 1, 8))
    x[:, 5:], C[:, 5:] = float("nan"), float("inf")
    got = ops.ssd_chunk_scan(x, cb, sums, C, before, dt)
    assert got[:, :5].isfinite().all() and not got[:, 5:].isfinite().any()
    assert ops.ssd_chunk_state(x, B, dt, sums)[:, 0].isfinite().all()
