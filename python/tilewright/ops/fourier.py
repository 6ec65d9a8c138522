"""Fourier transforms, of any length: by one launch where its primes are small and a block has room for a row, in two halves
where it is a long one, and as a convolution with a chirp (Bluestein) where a prime is large."""

from __future__ import annotations

import functools
import math

from .calls import product
from .operators import Core, check, check_choice, dimension_of, launch, on_gpu, public, refuse_option

_MOST = {"float32": 12288, "float64": 6144}  # pairs that a block has on chip, twice, in less than 227 KB
_PRIMES = (2, 3, 5, 7, 11, 13)
_NORMS = (None, "backward", "ortho", "forward")


@functools.lru_cache(64)
def _angles(length, kind, device):
    """Cosines and sines of -2 pi j / length."""
    import torch

    at = torch.arange(length, dtype=torch.float64) * (-2 * math.pi / length)
    return torch.stack((torch.cos(at), torch.sin(at)), -1).to(getattr(torch, kind)).to(device)


@functools.lru_cache(256)
def _radices(length, most):
    """The fewest factors of at most `most`, of those the least, the largest first; None: a prime is large."""
    if length <= most:
        return (length,) if all(length % p for p in range(14, length + 1) if all(p % q for q in _PRIMES)) else None
    found = None
    for radix in range(most, 1, -1):
        rest = _radices(length // radix, most) if length % radix == 0 else None
        if rest and _radices(radix, most):
            made = tuple(sorted((radix, *rest), reverse=True))
            found = min(found or made, made, key=lambda r: (len(r), r))
    return found


def _kind(x):
    return str(x.dtype).removeprefix("torch.")


def _passes(x, length):
    """The radices of transforms of `length` pairs that a block has on chip; None: it has not."""
    kind = _kind(x)
    return _radices(length, 8 if kind == "float64" and on_gpu(x) else 16) if length <= _MOST[kind] else None


def _words(x):
    """Pairs as integers of 64 bits; numbers as they are."""
    import torch

    x = x.clone() if x.storage_offset() % 2 else x
    return x.view(torch.int64)


def _launched(x, form, length, made, inverse, scale):
    """`made`, of shape (..., n) or (..., n, 2), by the program."""
    from .programs import fourier

    kind, radices, gpu = _kind(x), _passes(x, length), on_gpu(x)
    rows, words = max(1, (2048 if gpu else 512) // length), gpu and kind == "float32"
    threads = min(max(-(-rows * length // (32 * radices[0])) * 32, 64), 512)
    options = {"kind": kind, "form": form, "words": words, "radices": radices, "inverse": inverse, "rows": rows, "threads": threads}
    angles = _angles(2 * length if form in ("rfft", "irfft") else length, kind, "cpu" if x.device.type == "meta" else x.device)

    def rows_of(t, numbers):
        if numbers:
            return t.view(-1, t.shape[-1])
        t = t.view(-1, t.shape[-2], 2)
        return _words(t)[..., 0] if words else t

    given, result = rows_of(x.contiguous(), form == "odd rfft"), rows_of(made, form == "odd irfft")
    launch(fourier.transform, options, given, angles, result, float(scale))
    return made


def _times(x, angles):
    """Complex numbers turned by angles, both as pairs; angles in float64."""
    import torch

    turned = (
        torch.polar(torch.ones_like(angles), angles)
        .to(torch.complex64 if x.dtype is torch.float32 else torch.complex128)
        .to(x.device)
    )
    return torch.view_as_real(torch.view_as_complex(x) * turned)


def _transformed(x, inverse, scale):
    """The transforms of (..., n, 2), not divided but by what `scale` says."""
    import torch

    n, sign = x.shape[-2], 1 if inverse else -1
    if not product(x.shape):
        return x.new_empty(x.shape)
    if _passes(x, n):
        return _launched(x, "complex", n, x.new_empty(x.shape), inverse, scale)
    first = next((d for d in range(math.isqrt(n), 1, -1) if n % d == 0 and _passes(x, d) and _passes(x, n // d)), 0)
    if first:  # as a matrix: columns, angles, rows
        second, lead = n // first, x.shape[:-2]
        columns = _transformed(x.reshape(*lead, first, second, 2).transpose(-3, -2).contiguous(), inverse, 1)
        turns = torch.outer(torch.arange(second, dtype=torch.float64), torch.arange(first, dtype=torch.float64)) * (
            sign * 2 * math.pi / n
        )
        rows = _transformed(_times(columns, turns).transpose(-3, -2).contiguous(), inverse, scale)
        return rows.transpose(-3, -2).reshape(x.shape).contiguous()
    at = torch.arange(n, dtype=torch.int64)
    chirp = (at * at % (2 * n)).double() * (sign * math.pi / n)
    size = 1 << (2 * n - 2).bit_length()
    kernel = torch.zeros(size, dtype=torch.float64)
    kernel[:n], kernel[size - n + 1 :] = chirp, chirp[1:].flip(0)
    ones = torch.zeros(size, dtype=torch.float64)
    ones[:n], ones[size - n + 1 :] = 1, 1
    filter_ = torch.view_as_real(torch.polar(ones, -kernel)).to(x.dtype).to(x.device)
    padded = x.new_zeros((*x.shape[:-2], size, 2))
    padded[..., :n, :] = _times(x.contiguous(), chirp)
    product_ = torch.view_as_complex(_transformed(padded, False, 1)) * torch.view_as_complex(_transformed(filter_, False, 1))
    back = _transformed(torch.view_as_real(product_).contiguous(), True, 1 / size)
    return _times(back[..., :n, :].contiguous(), chirp) * scale


def _reference(x, inverse, scale):
    import torch

    made = torch.view_as_complex(x.contiguous())
    made = torch.fft.ifft(made, norm="forward") if inverse else torch.fft.fft(made)
    return torch.view_as_real(made * scale)


_fft = Core("fft", "(Tensor x, bool inverse, float scale) -> Tensor", _transformed, _reference)


def _half(x, scale):
    """The first n // 2 + 1 of the transform of real numbers (..., n), as pairs."""
    import torch

    n = x.shape[-1]
    made = x.new_empty((*x.shape[:-1], n // 2 + 1, 2))
    if not product(x.shape):
        return made
    if n % 2 == 0 and _passes(x, n // 2):
        return _launched(x.contiguous().view(*x.shape[:-1], n // 2, 2), "rfft", n // 2, made, False, scale)
    if n % 2 and _passes(x, n):
        return _launched(x, "odd rfft", n, made, False, scale)
    return _transformed(torch.stack((x, torch.zeros_like(x)), -1), False, scale)[..., : n // 2 + 1, :].contiguous()


def _reference_half(x, scale):
    import torch

    return torch.view_as_real(torch.fft.rfft(x) * scale)


_rfft = Core("rfft", "(Tensor x, float scale) -> Tensor", _half, _reference_half)


def _real(x, n, scale):
    """The n real numbers whose transform begins with x (..., n // 2 + 1, 2), not divided but by what `scale` says."""
    import torch

    made = x.new_empty((*x.shape[:-2], n))
    if not product(x.shape):
        return made
    if n % 2 == 0 and _passes(x, n // 2):
        _launched(x, "irfft", n // 2, made.view(*x.shape[:-2], n // 2, 2), True, scale)
        return made
    if n % 2 and _passes(x, n):
        return _launched(x, "odd irfft", n, made, True, scale)
    half = x.clone()
    half[..., 0, 1] = 0  # the first, and of an even number the middle one, are real
    if n % 2 == 0:
        half[..., -1, 1] = 0
    rest = half[..., 1 : n - n // 2, :].flip(-2) * x.new_tensor((1, -1))
    return _transformed(torch.cat((half, rest), -2), True, scale)[..., 0].contiguous()


def _reference_real(x, n, scale):
    import torch

    return torch.fft.irfft(torch.view_as_complex(x.contiguous()), n, norm="forward") * scale


_irfft = Core("irfft", "(Tensor x, int n, float scale) -> Tensor", _real, _reference_real)


def _scale(name, norm, n, inverse):
    check_choice(name, "norm", norm, _NORMS)
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if (norm or "backward") == ("backward" if inverse else "forward") else 1.0


def _sized(name, x, n, dim):
    """x with the dimension behind all others, cut or filled with zeros to n elements."""
    import torch

    d = dimension_of(name, x, dim)
    x = x.movedim(d, -1)
    n = x.shape[-1] if n is None else n
    if not isinstance(n, int) or n < 1:
        refuse_option(name, f"{n!r} points", "there is one at least")
    if n < x.shape[-1]:
        x = x[..., :n]
    return (torch.nn.functional.pad(x, (0, n - x.shape[-1])) if n > x.shape[-1] else x), n, d


def _complex(name, x):
    import torch

    taken = ("float32", "float64", "complex64", "complex128")
    if str(getattr(x, "dtype", "")).removeprefix("torch.") not in taken:
        check(name, "x", x, taken)
    return x if x.is_complex() else torch.complex(x, torch.zeros_like(x))


def _along(name, x, n, dim, norm, inverse):
    import torch

    x, n, d = _sized(name, _complex(name, x), n, dim)
    made = _fft(torch.view_as_real(x.contiguous()), inverse, _scale(name, norm, n, inverse))
    return torch.view_as_complex(made.contiguous()).movedim(-1, d)


def fft(x, n=None, dim=-1, norm=None):
    """The discrete Fourier transform along dimension dim, of n points: x is cut, or filled with zeros.

    x: complex64, complex128, float32 or float64; the result is complex. norm: "forward" (or of the inverse "backward", as
    None) divides by n, "ortho" by its root. Lengths whose primes are at most 13 cost n log n, others about six times as much.
    Has gradients in PyTorch."""
    return _along("fft", x, n, dim, norm, False)


def ifft(x, n=None, dim=-1, norm=None):
    """The inverse of fft(), with the same arguments."""
    return _along("ifft", x, n, dim, norm, True)


def rfft(x, n=None, dim=-1, norm=None):
    """The first half of the transform of real numbers, n // 2 + 1 complex ones: float32 or float64; as fft()."""
    import torch

    if str(getattr(x, "dtype", "")).removeprefix("torch.") not in ("float32", "float64"):
        check("rfft", "x", x, ("float32", "float64"))
    x, n, d = _sized("rfft", x, n, dim)
    made = _rfft(x.contiguous(), _scale("rfft", norm, n, False))
    return torch.view_as_complex(made).movedim(-1, d)


def irfft(x, n=None, dim=-1, norm=None):
    """The n real numbers whose transform begins with x: complex64 or complex128; n: 2 * (extent - 1) if None; as ifft()."""
    import torch

    x = _complex("irfft", x)
    n = 2 * (x.shape[dimension_of("irfft", x, dim)] - 1) if n is None else n
    if not isinstance(n, int) or n < 1:
        refuse_option("irfft", f"{n!r} points", "there is one at least")
    half, _, d = _sized("irfft", x, n // 2 + 1, dim)
    return _irfft(torch.view_as_real(half.contiguous()), n, _scale("irfft", norm, n, True)).movedim(-1, d)


def fft2(x, norm=None):
    """fft() along the last two dimensions."""
    return _along("fft2", _along("fft2", x, None, -1, norm, False), None, -2, norm, False)


def ifft2(x, norm=None):
    """ifft() along the last two dimensions."""
    return _along("ifft2", _along("ifft2", x, None, -1, norm, True), None, -2, norm, True)


fft, ifft, rfft, irfft, fft2, ifft2 = map(public, (fft, ifft, rfft, irfft, fft2, ifft2))
