"""Convolutions of tilewright.ops beside PyTorch: each of their programs, on every engine, at extents that suit no tile."""

import pytest

torch = pytest.importorskip("torch")

import tilewright.ops as ops  # noqa: E402

F = torch.nn.functional


@pytest.fixture(params=["interpreter", "cpu", "simulator"])
def engine(request, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", request.param)


# (images, channels, results, groups, extents, window, the rest); of channels in runs of 16 bytes, of others, and of one element.
CONVOLVED = [
    (2, 8, 10, 1, (7, 9), (3, 3), {"padding": 1}),
    (1, 16, 24, 2, (9, 6), (3, 2), {"stride": 2, "padding": 1}),
    (2, 24, 6, 3, (19,), (3,), {"dilation": 2}),
    (2, 3, 10, 1, (7, 9), (3, 3), {"stride": 2, "padding": (0, 1)}),
    (1, 8, 70, 1, (3, 4, 5), (3, 2, 3), {"padding": 1, "dilation": (1, 2, 1)}),
    (3, 72, 20, 1, (5,), (2,), {}),
    (2, 24, 20, 1, (4, 4), (1, 1), {}),
    (2, 20, 10, 2, (5, 3), (1, 1), {}),
    (1, 128, 6, 2, (24,), (1,), {}),
    (1, 4, 4, 4, (9,), (3,), {"padding": "same"}),
    (1, 8, 1, 1, (1, 1), (1, 1), {"stride": 3}),
]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("number", range(len(CONVOLVED)))
def test_convolutions(number, dtype, engine):
    images, channels, results, groups, extents, window, named = CONVOLVED[number]
    of = f"conv{len(window)}d"
    make = torch.Generator().manual_seed(number)
    x = torch.randn(images, channels, *extents, generator=make).to(dtype)
    w = torch.randn(results, channels // groups, *window, generator=make).to(dtype)
    b = torch.randn(results, generator=make).to(dtype) if number % 2 == 0 else None
    got = getattr(ops, of)(x, w, b, groups=groups, **named)
    wanted = getattr(F, of)(x.double(), w.double(), None if b is None else b.double(), groups=groups, **named)
    assert got.shape == wanted.shape and got.dtype == dtype
    assert ((got.double() - wanted).abs() <= (1e-4 if dtype is torch.float32 else 0.01) * (1 + wanted.abs())).all()


def test_weights_beside_those_of_a_channel_are_not_its_own(engine):
    x, w = torch.ones(1, 16, 6).bfloat16(), torch.ones(16, 8, 3).bfloat16()
    w[8:], x[:, 8:] = float("inf"), float("nan")
    assert (ops.conv1d(x, w, padding=1, groups=2)[:, :8].float() == F.conv1d(torch.ones(1, 8, 6), torch.ones(8, 8, 3), padding=1)).all()
