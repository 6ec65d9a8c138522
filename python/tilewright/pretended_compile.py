"""torch.compile without a GPU: a function runs as it is, but that a product which is added to something is rounded once,
with the sum, as in the code that is made of it for a GPU. Tests that compare bits with such a function need that."""
import functools
import inspect

import torch
from torch.overrides import TorchFunctionMode

from .pretended_graphs import as_one

# a * b + c, c + a * b, a * b - c, c - a * b: by which sign the product, and by which the other, goes into the sum.
_SUMS = {"add": (1, 1), "sub": (1, -1), "subtract": (1, -1), "__rsub__": (-1, 1)}
_PRODUCTS = ("mul", "multiply")


class _Contracting(TorchFunctionMode):
    def __init__(self):
        self.products = {}  # by the number of a tensor: itself, its version, its factors

    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name in _SUMS and len(args) == 2 and not kwargs:
            of_first, of_second = _SUMS[name]
            for one, other, sign, other_sign in ((*args, of_first, of_second), (*reversed(args), of_second, of_first)):
                factors = self._factors(one)
                if factors and _is_float32(other):
                    return _rounded_once(*factors, other, sign, other_sign)
        result = function(*args, **(kwargs or {}))
        if name in _PRODUCTS and len(args) == 2 and not kwargs and _is_float32(result) and all(map(_is_float32, args)):
            self.products[id(result)] = result, result._version, args, [getattr(a, "_version", 0) for a in args]
        return result

    def _factors(self, value):
        """What it is the product of, all three as they were."""
        product, version, factors, versions = self.products.get(id(value), (None, 0, (), ()))
        unchanged = product is value and value._version == version and [getattr(a, "_version", 0) for a in factors] == versions
        return factors if value is not None and unchanged else None


def _is_float32(value):
    """A number takes the type of the tensors beside it. What gradients are asked of stays as it is, and what does not say
    whether it has changed since."""
    if isinstance(value, torch.Tensor):
        return value.dtype is torch.float32 and not (value.requires_grad and torch.is_grad_enabled()) and not value.is_inference()
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _wide(value):
    return value.double() if isinstance(value, torch.Tensor) else float(torch.tensor(value, dtype=torch.float32))


@as_one
def _rounded_once(a, b, c, sign, sign_of_c):
    """sign * a * b + sign_of_c * c, of float32 values: products are exact in float64, sums almost."""
    product, c = _wide(a) * _wide(b) * sign, _wide(c) * sign_of_c
    total = product + c
    result = total.float()
    # Where the float64 that is rounded again may be halfway between two float32: its last bit has to say that there was more.
    halfway = (total.view(torch.int64) & 0x1FFFFFFF) == 0x10000000
    again = (halfway | (total.abs() < 2.0**-125)) & total.isfinite() & (total != 0)
    if again.any():
        total = total[again]
        product = product.expand_as(result)[again]
        c = c.expand_as(result)[again] if isinstance(c, torch.Tensor) else torch.full_like(total, c)
        part = total - product
        left = (product - (total - part)) + (c - part)
        even = (total.view(torch.int64) & 1) == 0
        toward = torch.where(left > 0, torch.inf, -torch.inf).to(total.dtype)
        result[again] = torch.where((left != 0) & even, torch.nextafter(total, toward), total).float()
    return result


def compile(model=None, **named):
    """In place of torch.compile."""
    if model is None:
        return functools.partial(compile, **named)
    if not inspect.isroutine(model):
        return model  # modules, and classes such as those of torch.autograd.Function

    @functools.wraps(model)
    def called(*arguments, **keywords):
        with _Contracting():
            return model(*arguments, **keywords)

    return called
