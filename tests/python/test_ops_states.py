"""What state spaces of tilewright.ops begin with, beside PyTorch in float64: step sizes with biases and bounds, chunks that suit no
tile."""

import pytest

torch = pytest.importorskip("torch")

import tilewright.ops as ops  # noqa: E402

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
