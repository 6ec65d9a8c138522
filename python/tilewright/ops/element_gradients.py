"""Functions of elements as operators of PyTorch."""
from __future__ import annotations

import functools
import sys

from .gradients import at_first_call, operator, wanted  # noqa: F401
from .operators import Core


@at_first_call
def _registered():
    """Defines the operators torch.ops.tilewright.*, at the first call that wants one."""
    import torch

    module = sys.modules[f"{__package__}.elementwise"]

    def define(name, schema):
        return functools.partial(operator, name, schema)

    @define("elements", "(Tensor x, str function, float[] numbers=[]) -> Tensor")
    def elements(x, function, numbers=()):
        return module.run(function, module.TABLE[function].names, (x, *numbers))

    elements.register_fake(lambda x, function, numbers=(): x.new_empty(x.shape))

    @define("elements_backward", "(Tensor grad, Tensor x, str function, float[] numbers=[]) -> Tensor")
    def elements_backward(grad, x, function, numbers=()):
        return module.slope(function, x, grad, numbers)

    elements_backward.register_fake(lambda grad, x, function, numbers=(): x.new_empty(x.shape))

    def keep_one(ctx, inputs, output):
        x, ctx.function, ctx.numbers = inputs
        ctx.save_for_backward(x)

    elements.register_autograd(lambda ctx, grad: (elements_backward.direct(grad, *ctx.saved_tensors, ctx.function, ctx.numbers), None, None), setup_context=keep_one)

    @define("gated", "(Tensor x, str function) -> Tensor")
    def gated(x, function):
        return module.run_gated(function, x)

    gated.register_fake(lambda x, function: x.new_empty((*x.shape[:-1], x.shape[-1] // 2)))

    @define("gated_backward", "(Tensor grad, Tensor x, str function) -> Tensor")
    def gated_backward(grad, x, function):
        return module.run_gated(function, x, grad)

    gated_backward.register_fake(lambda grad, x, function: x.new_empty(x.shape))

    def keep_gated(ctx, inputs, output):
        x, ctx.function = inputs
        ctx.save_for_backward(x)

    gated.register_autograd(lambda ctx, grad: (gated_backward.direct(grad, *ctx.saved_tensors, ctx.function), None), setup_context=keep_gated)

    @define("cast", "(Tensor x, str dtype) -> Tensor")
    def cast_operator(x, dtype):
        made = module.run("cast", ("x",), (x,), dtype)
        return made if made.dtype == getattr(torch, dtype) else made.view(getattr(torch, dtype))

    cast_operator.register_fake(lambda x, dtype: x.new_empty(x.shape, dtype=getattr(torch, dtype)))

    def keep_type(ctx, inputs, output):
        ctx.dtype = str(inputs[0].dtype).removeprefix("torch.")

    cast_operator.register_autograd(lambda ctx, grad: (cast_operator.direct(grad, ctx.dtype), None), setup_context=keep_type)


def _operator(name):
    import torch

    _registered()
    return getattr(torch.ops.tilewright, name)


# ---- of several tensors


def reference(function):
    """The function in PyTorch's own ones."""
    import torch

    f = torch.nn.functional
    own = {
        "add_scaled": lambda a, b, alpha=1: torch.add(a, b, alpha=alpha), "clamp_to": torch.clamp, "gelu_tanh": lambda x: f.gelu(x, approximate="tanh"),
        "log_sigmoid": f.logsigmoid, "prelu": lambda a, b: torch.where(a > 0, a, a * b), "trunc_divide": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        "addcmul": lambda x, a, b, value=1.0: torch.addcmul(x, a, b, value=value), "addcdiv": lambda x, a, b, value=1.0: torch.addcdiv(x, a, b, value=value),
        "threshold": lambda x, above=0.0, value=0.0: f.threshold(x, above, value), "softsign": f.softsign, "tanhshrink": f.tanhshrink,
        "sign": lambda x: torch.where(x == x, torch.sign(x), x),  # NaN of NaN
    }  # fmt: skip
    return own.get(function) or getattr(torch, function, None) or getattr(f, function)


def _of_several(a, b, c, function, numbers):
    return reference(function)(*(x for x in (a, b, c) if x is not None), *numbers)


def _run_several(a, b, c, function, numbers):
    module = sys.modules[f"{__package__}.elementwise"]
    return module.run(function, module.TABLE[function].names, (*(x for x in (a, b, c) if x is not None), *numbers))


_several = Core("elements_of_several", "(Tensor a, Tensor b, Tensor? c, str function, float[] numbers) -> Tensor", _run_several, _of_several)


def gated(function, x):
    return _operator("gated")(x, function)


def cast(x, dtype):
    return _operator("cast")(x, dtype)


def of(row, *operands):
    """The call as an operator: of several tensors, where numbers are tensors of one element, of the others' dtype."""
    import torch

    tensors, numbers = operands[: len(row.tensors)], [float(n) for n in operands[len(row.tensors) :]]
    if len(tensors) == 1:
        return _operator("elements")(tensors[0], row.name, numbers)
    like = next(x for x in tensors[1 if row.name == "where" else 0 :] if isinstance(x, torch.Tensor))
    tensors = [x if isinstance(x, torch.Tensor) else torch.full((), x, dtype=like.dtype, device=like.device) for x in tensors]
    return _several(*tensors, *[None] * (3 - len(tensors)), row.name, numbers)
