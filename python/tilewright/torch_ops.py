"""Kernels as operators of PyTorch: torch.compile takes them whole, and gradients go through them.

from tilewright.torch_ops import custom_op
softmax = custom_op("mine::softmax", softmax_kernel)
"""
from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from typing import Any, overload

from .jitted import Jit
from .kernel import Kernel
from .rewrite import source_tree
from .tensors import pytorch
from .trace import fail
from .tracebacks import entry
from .values import Expr


@overload
def custom_op(name: str, function: Kernel | Jit, *, mutates: Any = (), backward: Any = None, setup_context: Any = None) -> Callable[..., Any]: ...
@overload
def custom_op(name: str, function: None = None, *, mutates: Any = (), backward: Any = None, setup_context: Any = None
              ) -> Callable[[Kernel | Jit], Callable[..., Any]]: ...  # fmt: skip
@entry
def custom_op(name, function=None, *, mutates=(), backward=None, setup_context=None):
    """The operator `name` ("namespace::name") of a kernel or of an eager function under @jit; also a decorator.

    It takes their arguments but for the outputs, and returns the outputs. mutates: names of tensors that a kernel
    without outputs writes to. backward(ctx, *grads) gives a gradient for each argument, None for numbers;
    ctx.saved_tensors are the tensors of the call and its outputs unless setup_context(ctx, inputs, output) says otherwise.
    """
    if function is None:
        return functools.partial(custom_op, name, mutates=mutates, backward=backward, setup_context=setup_context)
    if not isinstance(function, (Kernel, Jit)):
        fail("OperandKind", f"custom_op() takes a kernel or a function under @jit, not {type(function).__name__}",
             'tilewright.custom_op("mine::f", kernel), or the decorator above @tilewright.jit')  # fmt: skip
    torch = pytorch("custom_op()")
    form = _of_kernel(function) if isinstance(function, Kernel) else _of_eager(function)
    schema = form.schema(tuple(mutates))
    if isinstance(function, Kernel):
        _refuse_hidden_writes(function, tuple(mutates))
    made = torch.library.custom_op(name, form.run, mutates_args=tuple(mutates), schema=schema, device_types=None)
    made.register_fake(form.fake)
    if backward is not None:
        made.register_autograd(backward, setup_context=setup_context or _save_tensors)
    return made


def _refuse_hidden_writes(kernel, mutates):
    """PyTorch leaves out calls of operators that change nothing."""
    hidden = [p.name for i, p in enumerate(kernel.params) if p.shape is not None and i not in kernel.outputs and kernel.writes(i) and p.name not in mutates]
    if hidden:
        fail("BadOption", f"'{kernel.name}' writes to {', '.join(hidden)}, which custom_op() is not told",
             f"write mutates={(*mutates, *hidden)!r}, or make the outputs the call's own: compile(..., out_idx=-1)")  # fmt: skip


def _save_tensors(ctx, inputs, output):
    import torch

    outputs = output if isinstance(output, (tuple, list)) else (output,)
    ctx.save_for_backward(*(t for t in (*inputs, *outputs) if isinstance(t, torch.Tensor)))


_WORDS = {int: "SymInt", float: "float", bool: "bool", str: "str"}


class _Form:
    """What an operator is made of: the names and types of its arguments, how it runs and what it returns."""

    def __init__(self, arguments, run, kernel_of):
        self.arguments, self.run, self.kernel_of = arguments, run, kernel_of  # arguments: [(name, word, default)]

    def schema(self, mutates):
        written = [name for name, word, _ in self.arguments if word == "Tensor" and name in mutates]
        if set(mutates) - set(written):
            raise ValueError(f"there is no tensor {sorted(set(mutates) - set(written))} among the arguments of the operator")
        texts = []
        for name, word, default in self.arguments:
            if name in written:
                word = f"Tensor(a{written.index(name)}!)"
            texts.append(f"{word} {name}" + ("" if default is inspect.Parameter.empty else f"={default!r}"))
        return f"({', '.join(texts)}) -> {self.result}"

    def fake(self, *args, **kwargs):
        """Empty tensors of the shapes that a call returns."""
        kernel, inputs = self.kernel_of(*args, **kwargs)
        example = next(t for t in inputs if hasattr(t, "shape"))
        outputs = [
            example.new_empty(shape, dtype=kernel.params[i].dtype.as_torch())
            for i, shape in zip(kernel.outputs, _shapes_of_outputs(kernel, inputs))
        ]
        return None if not outputs else outputs[0] if len(outputs) == 1 else tuple(outputs)


def _result_of(count):
    return "()" if count == 0 else "Tensor" if count == 1 else "(" + ", ".join(["Tensor"] * count) + ")"


def _returned(result):
    """Operators return tuples where a call gives a list."""
    return tuple(result) if isinstance(result, list) else result


def _of_kernel(kernel):
    inputs = [p for i, p in enumerate(kernel.params) if i not in kernel.outputs]
    words = [(p.name, "Tensor" if p.shape is not None else _word_of(p.dtype), inspect.Parameter.empty) for p in inputs]
    form = _Form(words, lambda *args: _returned(kernel(*args)), lambda *args: (kernel, args))
    form.result = _result_of(len(kernel.outputs))
    return form


def _word_of(of):
    return "bool" if of == "bool" else "float" if "float" in of else "SymInt"


def _of_eager(function):
    tensors, arguments = function.tensor_names, []
    for name, parameter in function.signature.parameters.items():
        if name in tensors:
            arguments.append((name, "Tensor", parameter.default))
            continue
        kind = parameter.annotation if parameter.annotation in _WORDS else type(parameter.default)
        if kind not in _WORDS:
            raise TypeError(f"'{name}' of '{function.__name__}' must be an int, float, bool or str, by annotation or default")
        arguments.append((name, "int" if kind is int else _WORDS[kind], parameter.default))

    def kernel_of(*args, **kwargs):
        bound = function.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        kernel = function.compile(*args, **kwargs)
        return kernel, [bound.arguments[name] for name in tensors]

    form = _Form(arguments, lambda *args, **kwargs: _returned(function(*args, **kwargs)), kernel_of)
    form.result = _result_of(_returned_by(function))
    return form


def _returned_by(function):
    """How many tensors the function's text returns."""
    found = [n.value for n in source_tree(function.func).body if isinstance(n, ast.Return) and n.value is not None]
    if not found:
        return 0
    return len(found[-1].elts) if isinstance(found[-1], ast.Tuple) else 1


def _shapes_of_outputs(kernel, inputs):
    """Dimensions that are a symbol by itself stay symbols of PyTorch's; others are computed, and fix what they use."""
    known, given = [], iter(inputs)
    inputs_of = [None if i in kernel.outputs else next(given) for i in range(len(kernel.params))]
    for parameter, tensor in zip(kernel.params, inputs_of):
        if parameter.shape is not None and tensor is not None:
            known += [(e, tensor.shape[d]) for d, e in enumerate(parameter.shape) if isinstance(e, Expr)]
    computed = None
    for position, i in enumerate(kernel.outputs):
        shape = [_dimension(e, known) for e in kernel.params[i].shape]
        if None in shape:
            computed = computed or kernel.output_shapes(*map(_described, inputs))
            shape = [c if e is None else e for e, c in zip(shape, computed[position])]
        yield shape


def _dimension(extent, known):
    if not isinstance(extent, Expr):
        return int(extent)
    return next((value for symbol, value in known if extent.same(symbol)), None)


def _described(argument):
    """A tensor's shape and strides as integers; a number as it is."""
    if not hasattr(argument, "shape"):
        return argument
    return tuple(int(e) for e in argument.shape), tuple(int(s) for s in argument.stride())
