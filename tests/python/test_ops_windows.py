"""Convolutions, pools and batch norms of tilewright.ops beside PyTorch: each of their programs, on every engine, at extents that suit
no tile."""

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
    # By lines on a CPU.
    (2, 6, 6, 6, (19, 37), (3, 3), {"padding": 1}),
    (2, 6, 15, 3, (8, 50), (3, 4), {"stride": (2, 3), "padding": (1, 2), "dilation": (1, 2)}),
    (1, 3, 40, 1, (5, 70), (3, 3), {"stride": (1, 4), "padding": (0, 1)}),
    (1, 4, 8, 2, (3, 4, 21), (2, 3, 5), {"padding": (1, 1, 2)}),
    (2, 4, 4, 4, (100,), (4,), {"padding": 3}),
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


def test_wide_tiles_of_places(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "simulator")
    monkeypatch.setattr("tilewright.ops.convolutions._MANY", 0)
    x, w = torch.randn(2, 8, 13, 11).bfloat16(), torch.randn(40, 8, 3, 3).bfloat16()
    wanted = F.conv2d(x.double(), w.double(), padding=1)
    assert ((ops.conv2d(x, w, padding=1).double() - wanted).abs() <= 0.01 * (1 + wanted.abs())).all()


def test_weights_beside_those_of_a_channel_are_not_its_own(engine):
    x, w = torch.ones(1, 16, 6).bfloat16(), torch.ones(16, 8, 3).bfloat16()
    w[8:], x[:, 8:] = float("inf"), float("nan")
    assert (ops.conv1d(x, w, padding=1, groups=2)[:, :8].float() == F.conv1d(torch.ones(1, 8, 6), torch.ones(8, 8, 3), padding=1)).all()


def expect_same(got, wanted):
    got, wanted = (x if isinstance(x, tuple) else (x,) for x in (got, wanted))
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape and torch.allclose(a.double(), b.double(), rtol=1e-5, atol=1e-5, equal_nan=True)


# Windows that are written out, wide ones, of which lanes have a part each, with equals and several NaN.
@pytest.mark.parametrize("n", [1, 2, 3])
def test_pools(n, engine):
    space = {1: (2, 3, 37), 2: (2, 2, 19, 21), 3: (1, 2, 9, 10, 11)}[n]
    x = torch.randn(space, generator=torch.Generator().manual_seed(n)).round()
    numbers = x.clone()
    x[0, 0].view(-1)[5] = x[0, 0].view(-1)[7] = float("nan")
    wide, half = {1: 30, 2: 9, 3: 5}[n], {1: 10, 2: 4, 3: 2}[n]
    for named in ({"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}, {"kernel_size": wide, "stride": 3, "padding": half}):
        expect_same(getattr(ops, f"max_pool{n}d")(x, **named), getattr(F, f"max_pool{n}d")(x, **named))
        expect_same(getattr(ops, f"max_pool{n}d_indices")(x, **named), getattr(F, f"max_pool{n}d")(x, return_indices=True, **named))
        for counted in (True, False):
            expect_same(
                getattr(ops, f"avg_pool{n}d")(numbers, count_include_pad=counted, **named),
                getattr(F, f"avg_pool{n}d")(numbers, count_include_pad=counted, **named),
            )
    for size in (1, 3, 7):
        expect_same(getattr(ops, f"adaptive_avg_pool{n}d")(numbers, size), getattr(F, f"adaptive_avg_pool{n}d")(numbers, size))
        expect_same(
            getattr(ops, f"adaptive_max_pool{n}d_indices")(x, size), getattr(F, f"adaptive_max_pool{n}d")(x, size, return_indices=True)
        )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_largest_by_lines(dtype, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "cpu")
    monkeypatch.setattr("tilewright.ops.programs.pooling.windows", None)  # none goes window by window
    for shape, named in (
        ((2, 2, 21, 40), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
        ((2, 2, 9, 70), {"kernel_size": (2, 5), "stride": (1, 3), "padding": (1, 2), "dilation": (2, 1)}),
        ((1, 2, 4, 5, 33), {"kernel_size": 3, "stride": 1, "dilation": (1, 1, 2)}),
        ((2, 2, 200), {"kernel_size": 2, "stride": 5, "ceil_mode": True}),
        ((2, 2, 100), {"kernel_size": 50, "stride": 1, "padding": 25}),
    ):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).to(dtype)
        x[0, 0, ..., 1:4], x[0, 1].view(-1)[7], x[-1, -1] = -float("inf"), float("nan"), x[-1, -1].relu()
        of = f"max_pool{len(shape) - 2}d"
        expect_same(getattr(ops, of)(x, **named), getattr(F, of)(x, **named))


# By parts of the images, whose moments are joined: few images, many, one channel, no dimension behind the channels.
@pytest.mark.parametrize("shape", [(2, 6, 5, 7), (1, 8, 3, 4), (9, 5), (5, 3, 130), (33, 2, 3), (2, 1, 3000)], ids=str)
def test_batches_as_normal_channels(shape, engine):
    make = torch.Generator().manual_seed(len(shape))
    x, g = torch.randn(shape, generator=make) * 3 + 100, torch.randn(shape, generator=make)
    w, b = torch.randn(shape[1], generator=make), torch.randn(shape[1], generator=make)
    wide = [t.double().requires_grad_() for t in (x, w, b)]
    wanted = F.batch_norm(wide[0], None, None, *wide[1:], True)
    assert torch.allclose(ops.batch_norm(x, None, None, w, b, training=True).double(), wanted, atol=2e-4, rtol=2e-4)
    dims = [0, *range(2, x.dim())]
    rstd = (x.double().var(dims, correction=0) + 1e-5).rsqrt().float()
    got = ops.batch_norm_backward(g, x, w, x.double().mean(dims).float(), rstd)
    for made, expected in zip(got, torch.autograd.grad(wanted, wide, g.double()), strict=True):
        assert torch.allclose(made.double(), expected, atol=2e-3, rtol=2e-3)
