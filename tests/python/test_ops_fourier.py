"""Fourier transforms of tilewright.ops beside PyTorch's in float64: powers of two and other lengths of small primes, in one launch and
in halves, lengths of large primes, odd and even real transforms, cut and filled rows, other dimensions, gradients."""

import pytest

torch = pytest.importorskip("torch")

import tilewright.ops as ops  # noqa: E402

WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


@pytest.fixture(params=["interpreter", "simulator"])
def engine(request, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", request.param)
    return request.param


def expect(of, x, *arguments, **named):
    got = getattr(ops, of)(x, *arguments, **named)
    wanted = getattr(torch.fft, of)(x.to(WIDE.get(x.dtype, x.dtype)), *arguments, **named)
    assert got.shape == wanted.shape and got.dtype == (torch.float32 if not wanted.is_complex() else torch.complex64)
    assert (got.to(wanted.dtype) - wanted).abs().max() <= 2e-5 * max(1e-3, wanted.abs().max())


LENGTHS = [1, 2, 3, 4, 5, 7, 8, 11, 13, 15, 16, 17, 30, 34, 64, 91, 100, 256, 390]


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n, engine):
    x = torch.randn(3, n, dtype=torch.complex64)
    for norm in (None, "ortho", "forward"):
        expect("fft", x, norm=norm), expect("ifft", x, norm=norm)
        expect("rfft", x.real.contiguous(), norm=norm)
        expect("irfft", torch.randn(3, n // 2 + 1, dtype=torch.complex64), n, norm=norm)


def test_rows_that_a_block_has_no_room_for(engine):
    x = torch.randn(1, 13000, dtype=torch.complex64)
    expect("fft", x), expect("rfft", x.real.contiguous())


def test_on_the_cpu(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "cpu")
    for n in (15, 64, 390):
        x = torch.randn(5, n, dtype=torch.complex64)
        expect("ifft", x), expect("rfft", x.real.contiguous()), expect("irfft", x)


def test_other_dimensions_and_views(engine):
    x = torch.randn(4, 6, 5, dtype=torch.complex64)
    expect("fft", x, 7, 1), expect("irfft", x, 5, 0), expect("rfft", x.real, 3, 1), expect("fft2", x), expect("ifft2", x)
    odd = torch.randn(65)[1:].view(2, 32)  # whose pairs begin at no multiple of eight bytes
    expect("rfft", odd), expect("rfft", odd.t(), None, 0)


def test_double_precision(engine):
    x = torch.randn(2, 60, dtype=torch.complex128)
    for got, wanted in ((ops.fft(x), torch.fft.fft(x)), (ops.irfft(x, 118), torch.fft.irfft(x, 118))):
        assert got.dtype == wanted.dtype and (got - wanted).abs().max() < 1e-12
    assert (ops.rfft(x.real) - torch.fft.rfft(x.real)).abs().max() < 1e-12


def test_gradients(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")
    x = torch.randn(2, 12, dtype=torch.float64, requires_grad=True)
    h = torch.randn(2, 7, dtype=torch.complex128, requires_grad=True)
    for ours, theirs, of in ((ops.rfft, torch.fft.rfft, x), (ops.irfft, torch.fft.irfft, h), (ops.fft, torch.fft.fft, h)):
        got, wanted = (torch.autograd.grad(f(of).abs().square().sum(), of)[0] for f in (ours, theirs))
        assert torch.allclose(got, wanted)
