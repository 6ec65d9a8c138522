"""What functions of this package ask of their tensors, and what they say where it does not hold."""

from __future__ import annotations

import torch

from ..ops.calls import name_of, refuse_dtype, refuse_shape
from ..trace import fail

QuantTensor = tuple[torch.Tensor, torch.Tensor]  # (values, scales)


def ceil_div(x: int, y: int) -> int:
    """x / y, rounded up."""
    return -(-x // y)


def align(x: int, y: int) -> int:
    """The least multiple of y that is at least x."""
    return -(-x // y) * y


def is_power_of_two(x: int) -> bool:
    """Whether x is 1, 2, 4, ..."""
    return x > 0 and x & (x - 1) == 0


def check(function, argument, tensor, dtypes=None, rank=None, shape=None, compact=True):
    """That it is a tensor of one of these dtypes, of that rank or shape (None: any extent), row after row in memory."""
    if (
        isinstance(tensor, torch.Tensor)
        and (dtypes is None or tensor.dtype in dtypes)
        and tensor.shape == shape
        and tensor.is_contiguous()
    ):
        return  # what nearly every call comes to, which costs little
    if not isinstance(tensor, torch.Tensor):
        fail(
            "ArgumentKind",
            f"{function}: '{argument}' must be a tensor of PyTorch, but is of type {type(tensor).__name__}",
            also=TypeError,
        )
    if dtypes is not None and tensor.dtype not in dtypes:
        refuse_dtype(function, argument, name_of(tensor.dtype), [name_of(d) for d in dtypes])
    if shape is not None:
        rank = len(shape)
    if rank is not None and tensor.ndim != rank:
        refuse_shape(function, f"'{argument}' has {tensor.ndim} dimensions (shape {tuple(tensor.shape)}), but must have {rank}")
    if shape is not None and any(e is not None and e != had for e, had in zip(shape, tensor.shape)):
        words = ", ".join("*" if e is None else str(e) for e in shape)
        refuse_shape(function, f"'{argument}' has shape {tuple(tensor.shape)}, but must have ({words})")
    if compact and not tensor.is_contiguous():
        fail(
            "ArgumentShape",
            f"{function}: '{argument}' has strides {tuple(tensor.stride())}, but must lie row after row without gaps",
            f"pass {argument}.contiguous()",
            also=ValueError,
        )


def check_pair(function, argument, pair):
    """That it is a pair of tensors: values and their scales."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        fail(
            "ArgumentKind",
            f"{function}: '{argument}' must be a pair of tensors, values and their scales, but is of type {type(pair).__name__}",
            also=TypeError,
        )
    return pair


def check_multiple(function, what, extent, divisor):
    if extent % divisor:
        refuse_shape(function, f"{what} is {extent}, but must be a multiple of {divisor}")


def check_option(function, name, value, taken):
    """That an argument is one of the values that the function takes."""
    if value not in taken:
        fail("BadOption", f"{function}: {name} is {value!r}", "it is one of: " + ", ".join(map(repr, taken)), also=ValueError)


def refuse_option(function, message, help=""):
    fail("BadOption", f"{function}: {message}", help, also=ValueError)
