"""What a call of a function of tilewright.ops is to a table of them."""

import zlib

import tilewright.ops as ops
import torch

LARGE = 3  # the size behind the three small ones


class Draw:
    """Random tensors of one case, the same for each run."""

    def __init__(self, seed, dtype, device):
        self.random, self.dtype, self.device = torch.Generator().manual_seed(zlib.crc32(seed.encode())), dtype, device

    def __call__(self, *shape, dtype=None, low=None, high=None):
        """Normal ones, or uniform ones from low to high; of an integer dtype whole ones."""
        dtype = dtype or self.dtype
        if not dtype.is_floating_point and dtype is not torch.bool:
            return torch.randint(low, high, shape, generator=self.random, dtype=torch.int64).to(dtype).to(self.device)
        made = (
            torch.randn(shape, generator=self.random)
            if low is None
            else torch.rand(shape, generator=self.random) * (high - low) + low
        )
        return (made > 0).to(self.device) if dtype is torch.bool else made.to(dtype).to(self.device)


class Case:
    """make(draw, size) gives (arguments, named arguments); reference(*arguments, **named) what is expected."""

    def __init__(
        self, make, reference=None, tolerance=2e-5, gradients=True, dtypes=("float32", "float16", "bfloat16"), bytes_of=None
    ):
        self.make, self.reference, self.tolerance, self.gradients, self.dtypes = make, reference, tolerance, gradients, dtypes


CASES = {}


def add(name, make, reference=None, **more):
    CASES[name] = Case(make, reference or getattr(getattr(ops, name), "reference", None), **more)
