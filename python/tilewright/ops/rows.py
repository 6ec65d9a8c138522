"""Functions of rows: softmax and norms along the last dimension."""
from __future__ import annotations

import functools

from ..tracebacks import entry
from . import gradients
from .calls import (Operator, Resolved, as_number, calling, check_tensor, chosen, compact, is_torch, name_of, permuted, place_of, product,
                    refuse_dtype, refuse_shape, remember, remembered, reshaped, specialization)  # fmt: skip

_FLOATS = ("float16", "bfloat16", "float32")


def resolve(function, x, others=(), epsilon=None):
    """(the call, its tensors) of a function of rows; others: [(option or "", argument, tensor, shape)]."""
    check_tensor(function, "x", x)
    dtype = name_of(x.dtype)
    if dtype not in _FLOATS:
        refuse_dtype(function, "x", dtype, _FLOATS)
    if not len(x.shape):
        refuse_shape(function, "'x' has no dimension", "its last dimension is what the function goes along")
    n = x.shape[-1]
    m = product(x.shape[:-1])
    options, tensors = {"function": function, "x": dtype, "result": dtype}, [reshaped(compact(x), (m, n))]
    for option, argument, tensor, shape in others:
        if tensor is None:
            continue
        check_tensor(function, argument, tensor)
        if tuple(tensor.shape) != shape:
            refuse_shape(function, f"'{argument}' has shape {tuple(tensor.shape)}, but must have {shape}")
        if name_of(tensor.dtype) != dtype:
            refuse_dtype(function, argument, name_of(tensor.dtype), [dtype])
        if option:
            options[option] = True
        tensors.append(compact(tensor) if option else reshaped(compact(tensor), (m, n)))
    place = place_of(x)
    options.update(chosen("rows", {}, place, {"N": n})["options"])
    wanted = specialization("rows", options, place, (len(tensors),))
    numbers = () if epsilon is None else (epsilon,)
    return Resolved(calling(wanted, *numbers), [wanted]), tensors


def run(function, x, others=(), epsilon=None):
    """The result, without a gradient."""
    given = [x, *(t for _, _, t, _ in others if t is not None)]
    key = None
    if all(hasattr(t, "dtype") for t in given):
        key = (function, epsilon, tuple(t is not None for _, _, t, _ in others), *((t.dtype, t.shape) for t in given))
        call = remembered(_calls, key, *given)
        if call is not None:
            return call(*given)
    resolved, tensors = resolve(function, x, others, epsilon)
    shape, shapes = tuple(x.shape), [tuple(t.shape) for t in tensors]
    call = resolved.run
    if len(shape) != 2:

        def call(*given):
            return resolved.run(*(t.reshape(s) for t, s in zip(given, shapes))).reshape(shape)

    if key is not None:
        remember(_calls, key, x, call)
    return call(*map(compact, given))


_calls = {}  # by what they are told apart by


def _weights(x, weight, bias=None):
    columns = tuple(x.shape[-1:]) if hasattr(x, "shape") else ()
    return [("weight", "weight", weight, columns), ("bias", "bias", bias, columns)]


def _made(function, plain, along, doc):
    plain.__name__, plain.__doc__ = function, doc
    made = Operator(entry(plain), along)
    made.reference = functools.partial(_reference, function)
    return made


def _of_rows(function, x, dim=-1):
    """The call of softmax or its logarithm, of whose dimensions that one lies last."""
    return resolve(function, x if _is_last(function, x, dim) else _with_last(x, dim)[0])[0]


def _reference(function, x, *weights, epsilon=1e-6, dim=-1):
    """The function in PyTorch's own ones."""
    import torch

    of = getattr(torch.nn.functional, function)
    return of(x, dim) if "softmax" in function else of(x, x.shape[-1:], *weights, eps=epsilon)


def _is_last(function, x, dim):
    """Whether a dimension is the last, or there is but one."""
    rank = len(x.shape) if hasattr(x, "shape") else 0
    if not isinstance(dim, int) or not -max(rank, 1) <= dim < max(rank, 1):
        refuse_shape(function, f"dim is {dim!r}, but 'x' has {rank} dimensions", "dimensions count from 0, and from -1 backwards")
    return dim in (-1, rank - 1) or rank == 0


def _with_last(x, dim):
    """x with the dimension behind all others, and the order that brings it back."""
    rank = len(x.shape)
    order = [d for d in range(rank) if d != dim % rank] + [dim % rank]
    return permuted(x, order), [order.index(d) for d in range(rank)]


def _softmax(x, dim=-1):
    if not _is_last("softmax", x, dim):
        lying, back = _with_last(x, dim)
        return compact(permuted(_softmax(lying), back))
    return gradients.softmax(x) if is_torch(x) and gradients.wanted(x) else run("softmax", x)


def _log_softmax(x, dim=-1):
    if not _is_last("log_softmax", x, dim):
        lying, back = _with_last(x, dim)
        return compact(permuted(_log_softmax(lying), back))
    return gradients.log_softmax(x) if is_torch(x) and gradients.wanted(x) else run("log_softmax", x)


def _rms_norm(x, weight=None, *, epsilon=1e-6):
    if is_torch(x) and gradients.wanted(x, weight):
        return gradients.rms_norm(x, weight, as_number("rms_norm", "epsilon", epsilon))
    return run("rms_norm", x, _weights(x, weight), as_number("rms_norm", "epsilon", epsilon))


def _layer_norm(x, weight=None, bias=None, *, epsilon=1e-5):
    if bias is not None and weight is None:
        refuse_shape("layer_norm", "'bias' is given, but no 'weight'", "pass a weight of ones")
    if is_torch(x) and gradients.wanted(x, weight, bias):
        return gradients.layer_norm(x, weight, bias, as_number("layer_norm", "epsilon", epsilon))
    return run("layer_norm", x, _weights(x, weight, bias), as_number("layer_norm", "epsilon", epsilon))


_DTYPES = "float16, bfloat16 or float32, computed in float32 and rounded once. Has gradients in PyTorch."
softmax = _made("softmax", _softmax, lambda x, dim=-1: _of_rows("softmax", x, dim),
                f"exp(x - max) / sum, along dimension dim; another than the last is brought there by a copy. {_DTYPES} Rows of -inf alone give NaN.")  # fmt: skip
log_softmax = _made("log_softmax", _log_softmax, lambda x, dim=-1: _of_rows("log_softmax", x, dim), f"x - log(sum(exp(x))), along dimension dim; another than the last is brought there by a copy. {_DTYPES}")
rms_norm = _made("rms_norm", _rms_norm, lambda x, weight=None, *, epsilon=1e-6: resolve("rms_norm", x, _weights(x, weight), epsilon)[0],
                 f"x / sqrt(mean(x^2) + epsilon) * weight, along the last dimension; weight: (N,), of x's dtype, or None. {_DTYPES}")  # fmt: skip
layer_norm = _made("layer_norm", _layer_norm,
                   lambda x, weight=None, bias=None, *, epsilon=1e-5: resolve("layer_norm", x, _weights(x, weight, bias), epsilon)[0],
                   f"(x - mean) / sqrt(variance + epsilon) * weight + bias, along the last dimension; weight, bias: (N,), of x's dtype, or None. {_DTYPES}")  # fmt: skip
