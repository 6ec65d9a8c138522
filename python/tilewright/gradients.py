"""Gradients of kernels that have none: what a call computes from tensors that want one says so when it is asked for."""
import functools
import sys

from .settings import warn_once
from .trace import fail, place


def refused(kernel, arguments, result):
    """Called by the extension module after a call that was given tensors of PyTorch's with requires_grad: the result, whose
    gradient is an error. Under torch.no_grad(), and in operators that have a gradient of their own, nothing is done."""
    torch = sys.modules["torch"]
    if not torch.is_grad_enabled():
        return result
    written = [a for a in _written(kernel, arguments) if isinstance(a, torch.Tensor)]
    made = [*(result if isinstance(result, list) else [] if result is None else [result]), *written]
    tensors = {id(t): t for t in made if isinstance(t, torch.Tensor) and t.is_floating_point() and not (t.requires_grad and t.is_leaf)}
    wanting = [a for a in arguments if isinstance(a, torch.Tensor) and a.requires_grad and id(a) not in tensors]
    # What is written over had a gradient of its own until now.
    if tensors and (wanting or any(t.requires_grad for t in tensors.values())):
        try:
            _node().apply(kernel.name, place(), len(tensors), *tensors.values(), *wanting)
        except RuntimeError as why:  # parts of a tensor that PyTorch keeps no history of: rows of a loop, leaves' slices
            warn_once(f"'{kernel.name}' wrote to a part of a tensor whose gradients PyTorch cannot follow ({str(why).split('.')[0]}): "
                      "none will come through it; call it under torch.no_grad() where none is wanted")  # fmt: skip
    for tensor in written:  # what PyTorch saved of it for a gradient is not what it was
        torch.autograd.graph.increment_version(tensor)
    return result


def _written(kernel, arguments):
    """The arguments that a call writes to."""
    outputs, count = set(kernel.outputs), len(kernel.params)
    given = range(count) if len(arguments) == count else [i for i in range(count) if i not in outputs]
    return [argument for i, argument in zip(given, arguments) if kernel.writes(i)]


@functools.cache
def _node():
    import torch

    class NoGradient(torch.autograd.Function):
        """Where the results of a kernel come from."""

        @staticmethod
        def forward(ctx, name, at, count, *tensors):
            ctx.name, ctx.at = name, at
            ctx.mark_dirty(*tensors[:count])
            return tensors[:count]

        @staticmethod
        def backward(ctx, *gradients):
            fail("GradientLost", f"a gradient of '{ctx.name}' is asked for, which has none",
                 f'tilewright.custom_op("mine::{ctx.name}", {ctx.name}, backward=...) gives it one; call it under torch.no_grad(), or with x.detach(), '
                 "where none is wanted", ctx.at, NotImplementedError)  # fmt: skip

    return NoGradient
