"""Orders of tilewright.ops beside a stable sort of PyTorch's: each of their programs, at lengths that suit none, with equals, NaN,
zeros of both signs, the ends of integers."""

import pytest

torch = pytest.importorskip("torch")

import tilewright.ops as ops  # noqa: E402


@pytest.fixture(params=["cpu", "simulator"])
def engine(request, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", request.param)
    return request.param


def drawn(rows, n, dtype):
    make = torch.Generator().manual_seed(n)
    if dtype is torch.int32:
        x = torch.randint(-4, 5, (rows, n), generator=make, dtype=dtype)
        x[0, 0], x[0, -1] = 2**31 - 1, -(2**31)
        return x
    x = torch.randn(rows, n, generator=make)
    x[:, ::3] = x[:, ::3].round()
    x[0, : n // 5], x[-1, n // 2], x[-1, : n // 4], x[0, -1] = float("nan"), 0.0, -0.0, float("inf")
    return x.to(dtype)


def expect_order(got, x, k, largest):
    wanted = torch.sort(x, dim=-1, descending=largest, stable=True)
    assert torch.equal(got[1], wanted.indices[:, :k])
    values, expected = got[0], wanted.values[:, :k]
    if x.is_floating_point():
        assert torch.equal(values.signbit() & ~values.isnan(), expected.signbit() & ~expected.isnan())
        values, expected = values.nan_to_num(99), expected.nan_to_num(99)
    assert torch.equal(values, expected)


DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int32]


# By warps: 1 to 256 elements; by digits: up to 16384; a walk: of more, or of few of many (on a CPU of fewer than a quarter).
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n, k", [(1, 1), (2, 2), (37, 5), (64, 64), (250, 3), (257, 257), (700, 20)])
def test_orders(n, k, dtype, engine):
    x = drawn(5 if n < 100 else 2, n, dtype)
    for largest in (False, True):
        expect_order(ops.topk(x, k, -1, largest), x, k, largest)


@pytest.mark.parametrize("dtype, n", [(torch.float32, 16400), (torch.bfloat16, 8200)], ids=str)
def test_few_of_many(dtype, n, engine):
    x = drawn(2, n, dtype)
    for largest in (False, True):
        expect_order(ops.topk(x, 40, -1, largest), x, 40, largest)
    x = torch.arange(n, dtype=torch.float32).to(dtype)[None]  # all come before those that were kept
    expect_order(ops.topk(x, 7), x, 7, True)
    expect_order(ops.topk(torch.zeros_like(x), 7), torch.zeros_like(x), 7, True)


def test_many_of_many(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "cpu")
    for n, k in ((20000, 8192), (40000, 8192), (700, 175), (700, 174), (16384, 16384)):
        x = drawn(2, n, torch.float32)
        expect_order(ops.topk(x, k), x, k, True)


def test_limits_of_rows(engine):
    x = torch.randn(1, 4, 600, 1)
    starts = torch.tensor([[0, 590, 20, 300]], dtype=torch.int32)
    ends = torch.tensor([[3, 600, 600, 300]], dtype=torch.int32)
    for keys in (600, 200):
        got = ops.topk_selector(x[:, :, :keys].contiguous(), starts.clamp(max=keys - 10), ends.clamp(max=keys), 12)[0, :, 0]
        for row in range(4):
            begin, end = int(starts.clamp(max=keys - 10)[0, row]), int(ends.clamp(max=keys)[0, row])
            places = (torch.sort(x[0, row, begin:end, 0], descending=True, stable=True).indices + begin)[:12].tolist()
            assert got[row].tolist() == places + [-1] * (12 - len(places))


@pytest.mark.parametrize("n", [1, 2, 33, 300])
def test_middles(n, engine):
    x = drawn(3, n, torch.float32)
    value, place = ops.kthvalue(x, (n + 1) // 2)
    order = torch.sort(x, dim=-1, stable=True)
    assert torch.equal(value.nan_to_num(99), order.values[:, (n - 1) // 2].nan_to_num(99))
    assert torch.equal(place, order.indices[:, (n - 1) // 2])
    assert torch.equal(ops.median(x)[0].nan_to_num(99), torch.median(x, -1).values.nan_to_num(99))
