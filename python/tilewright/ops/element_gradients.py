"""Functions of elements as operators of PyTorch."""
from __future__ import annotations

import functools
import sys

from .gradients import wanted  # noqa: F401


@functools.cache
def _registered():
    """Defines the operators torch.ops.tilewright.*, at the first call that wants one."""
    import torch

    module = sys.modules[f"{__package__}.elementwise"]

    def define(name, schema):
        return torch.library.custom_op(f"tilewright::{name}", mutates_args=(), schema=schema)

    def twice(name, forward, backward_of):
        """An operator of (x, function), and its gradient as another."""
        made = define(name, "(Tensor x, str function) -> Tensor")(lambda x, function: forward(function, x))
        made.register_fake(lambda x, function: x.new_empty(x.shape if name == "elements" else (*x.shape[:-1], x.shape[-1] // 2)))
        slope = define(f"{name}_backward", "(Tensor grad, Tensor x, str function) -> Tensor")(lambda grad, x, function: backward_of(function, x, grad))
        slope.register_fake(lambda grad, x, function: x.new_empty(x.shape))

        def keep(ctx, inputs, output):
            x, ctx.function = inputs
            ctx.save_for_backward(x)

        made.register_autograd(lambda ctx, grad: (slope(grad, *ctx.saved_tensors, ctx.function), None), setup_context=keep)

    twice("elements", lambda function, x: module.run(function, ("x",), (x,)), module.slope)
    twice("gated", module.run_gated, module.run_gated)

    def at_most(grad, shape, dtype):  # what was repeated is summed
        return grad.sum_to_size(shape).to(dtype)

    @define("elements_of_two", "(Tensor a, Tensor b, str function) -> Tensor")
    def of_two(a, b, function):
        return module.run(function, ("a", "b"), (a, b))

    @of_two.register_fake
    def _(a, b, function):
        return a.new_empty(torch.broadcast_shapes(a.shape, b.shape))

    def keep_two(ctx, inputs, output):
        a, b, ctx.function = inputs
        ctx.save_for_backward(a, b, output)

    def backward_of_two(ctx, grad):
        a, b, y = ctx.saved_tensors
        f, dtype = ctx.function, a.dtype
        a, b, g, y = a.float(), b.float(), grad.float(), y.float()
        if f in ("maximum", "minimum"):  # halves where they are equal, as PyTorch
            share = torch.where(a == b, 0.5, ((a > b) if f == "maximum" else (a < b)).float())
            of_a, of_b = g * share, g * (1 - share)
        elif f == "pow":
            # Of what was not rounded; a power of 0 has no slope along its base, nor one of 0 along its exponent.
            of_a = torch.where(b == 0, 0, g * b * torch.pow(a, b - 1))
            of_b = g * torch.where((a == 0) & (b >= 0), 0, torch.pow(a, b) * torch.log(a))
        else:
            of_a = {"add": lambda: g, "sub": lambda: g, "mul": lambda: g * b, "div": lambda: g / b}[f]()
            of_b = {"add": lambda: g, "sub": lambda: -g, "mul": lambda: g * a, "div": lambda: -g * a / (b * b)}[f]()
        return at_most(of_a, a.shape, dtype), at_most(of_b, b.shape, dtype), None

    of_two.register_autograd(backward_of_two, setup_context=keep_two)

    @define("elements_of_three", "(Tensor a, Tensor b, Tensor c, str function) -> Tensor")
    def of_three(a, b, c, function):
        return module.run(function, ("condition", "a", "b") if function == "where" else ("a", "b", "weight"), (a, b, c))

    @of_three.register_fake
    def _(a, b, c, function):
        return b.new_empty(torch.broadcast_shapes(a.shape, b.shape, c.shape))

    def keep_three(ctx, inputs, output):
        *tensors, ctx.function = inputs
        ctx.save_for_backward(*tensors)

    def backward_of_three(ctx, grad):
        a, b, c = ctx.saved_tensors
        if ctx.function == "where":
            zero = torch.zeros((), dtype=grad.dtype, device=grad.device)
            return None, at_most(torch.where(a, grad, zero), b.shape, b.dtype), at_most(torch.where(a, zero, grad), c.shape, c.dtype), None
        g = grad.float()
        of_weight = g * (b.float() - a.float())
        return at_most(g * (1 - c.float()), a.shape, a.dtype), at_most(g * c.float(), b.shape, b.dtype), at_most(of_weight, c.shape, c.dtype), None

    of_three.register_autograd(backward_of_three, setup_context=keep_three)

    @define("cast", "(Tensor x, str dtype) -> Tensor")
    def cast_operator(x, dtype):
        made = module.run("cast", ("x",), (x,), dtype)
        return made if made.dtype == getattr(torch, dtype) else made.view(getattr(torch, dtype))

    cast_operator.register_fake(lambda x, dtype: x.new_empty(x.shape, dtype=getattr(torch, dtype)))

    def keep_type(ctx, inputs, output):
        ctx.dtype = str(inputs[0].dtype).removeprefix("torch.")

    cast_operator.register_autograd(lambda ctx, grad: (cast_operator(grad, ctx.dtype), None), setup_context=keep_type)
    return True


def _operator(name):
    import torch

    _defined()
    return getattr(torch.ops.tilewright, name)


def _defined():
    return _registered()


_defined._dynamo_marked_constant = True  # torch.compile calls it while it traces


def unary(function, x):
    return _operator("elements")(x, function)


def gated(function, x):
    return _operator("gated")(x, function)


def cast(x, dtype):
    return _operator("cast")(x, dtype)


def several(function, *operands):
    """Numbers as tensors of one element, of the others' dtype."""
    import torch

    like = next(x for x in operands[1 if function == "where" else 0 :] if isinstance(x, torch.Tensor))
    tensors = [x if isinstance(x, torch.Tensor) else torch.full((), x, dtype=like.dtype, device=like.device) for x in operands]
    return _operator("elements_of_two" if len(tensors) == 2 else "elements_of_three")(*tensors, function)
