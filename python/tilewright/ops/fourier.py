"""Fourier transforms, of any length: by the program where it is a power of two, in two halves where it is a long one, and as a
convolution with a chirp (Bluestein) where it is none."""

from __future__ import annotations

import functools
import math

from .calls import product
from .operators import Core, check, check_choice, dimension_of, launch, public, refuse_option

_MOST = {"float32": 4096, "float64": 2048}  # points that a block has on chip, in 64 KiB
_NORMS = (None, "backward", "ortho", "forward")


@functools.lru_cache(64)
def _angles(length, kind, device):
    """Cosines and sines of -2 pi j / length, for half of them."""
    import torch

    at = torch.arange(max(length // 2, 1), dtype=torch.float64) * (-2 * math.pi / length)
    return torch.stack((torch.cos(at), torch.sin(at)), -1).to(getattr(torch, kind)).to(device)


def _short(x, inverse, scale):
    from .programs import fourier

    made, n, kind = x.new_empty(x.shape), x.shape[-2], str(x.dtype).removeprefix("torch.")
    m = product(x.shape[:-2])
    options = {"kind": kind, "length": n, "inverse": inverse, "rows": max(1, 512 // n), "threads": 128 if n <= 1024 else 256}
    device = "cpu" if x.device.type == "meta" else x.device
    launch(fourier.transform, options, x.contiguous().view(m, n, 2), _angles(n, kind, device), made.view(m, n, 2), float(scale))
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
    if n & (n - 1) == 0 and n <= _MOST[str(x.dtype).removeprefix("torch.")]:
        return _short(x, inverse, scale)
    if n & (n - 1) == 0:  # as a matrix: columns, angles, rows
        first = 1 << ((n.bit_length() - 1) // 2)
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
    None) divides by n, "ortho" by its root. Lengths that are powers of two cost n log n, others about six times as much. Has
    gradients in PyTorch."""
    return _along("fft", x, n, dim, norm, False)


def ifft(x, n=None, dim=-1, norm=None):
    """The inverse of fft(), with the same arguments."""
    return _along("ifft", x, n, dim, norm, True)


def rfft(x, n=None, dim=-1, norm=None):
    """The first half of the transform of real numbers, n / 2 + 1 complex ones: float32 or float64; as fft()."""
    if getattr(x, "is_complex", bool)():
        check("rfft", "x", x, ("float32", "float64"))
    made = _along("rfft", x, n, dim, norm, False)
    d = dimension_of("rfft", made, dim)
    return made.narrow(d, 0, made.shape[d] // 2 + 1).contiguous()


def irfft(x, n=None, dim=-1, norm=None):
    """The n real numbers whose transform begins with x: complex64 or complex128; n: 2 * (extent - 1) if None; as ifft()."""
    import torch

    x = _complex("irfft", x)
    d = dimension_of("irfft", x, dim)
    n = 2 * (x.shape[d] - 1) if n is None else n
    half, _, _ = _sized("irfft", x, n // 2 + 1, dim)
    # The first, and of an even number the middle one, are real.
    real = torch.zeros(half.shape[-1], dtype=torch.bool, device=half.device)
    real[0] = True
    if n % 2 == 0:
        real[-1] = True
    half = torch.where(real, torch.complex(half.real, torch.zeros_like(half.real)), half)
    rest = half[..., 1 : n - n // 2].flip(-1).conj()
    return _along("irfft", torch.cat((half, rest), -1).movedim(-1, d), n, d, norm, True).real.contiguous()


def fft2(x, norm=None):
    """fft() along the last two dimensions."""
    return _along("fft2", _along("fft2", x, None, -1, norm, False), None, -2, norm, False)


def ifft2(x, norm=None):
    """ifft() along the last two dimensions."""
    return _along("ifft2", _along("ifft2", x, None, -1, norm, True), None, -2, norm, True)


fft, ifft, rfft, irfft, fft2, ifft2 = map(public, (fft, ifft, rfft, irfft, fft2, ifft2))
