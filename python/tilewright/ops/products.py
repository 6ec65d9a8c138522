"""Matrix products."""
from __future__ import annotations

import sys
from typing import NamedTuple

from ..tensors import empty
from ..trace import fail
from ..tracebacks import entry
from . import gradients
from .calls import (Operator, Resolved, best_of, calling, check_tensor, chosen, compact, compiled, is_compact, is_torch, name_of, place_of, product,
                    refuse_dtype, refuse_shape, remember, remembered, reshaped, specialization, swapped)  # fmt: skip

_RESULTS = {"float16": "float16", "bfloat16": "bfloat16", "float32": "float32", "int8": "int32", "float8_e4m3fn": "bfloat16", "float8_e5m2": "bfloat16"}
_FLOATS = ("float16", "bfloat16", "float32")
_ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")


def _matmul(a, b, *, transpose_a=False, transpose_b=False, bias=None, activation=None, residual=None, out_dtype=None, tf32=False):
    if is_torch(a, b) and gradients.wanted(a, b, bias, residual):
        return gradients.matmul(a, b, transpose_a, transpose_b, bias, activation, residual, out_dtype, tf32)
    return run(a, b, transpose_a, transpose_b, bias, activation, residual, out_dtype, tf32)


def run(a, b, transpose_a, transpose_b, bias, activation, residual, out_dtype, tf32):
    """The product, without a gradient."""
    plain = bias is None and residual is None
    key = None
    if plain and hasattr(a, "dtype") and hasattr(b, "dtype"):
        key = (a.dtype, b.dtype, a.shape, b.shape, transpose_a, transpose_b, activation, out_dtype, tf32)
        call = remembered(matmul.calls, key, a, b)
        if call is not None:
            return call(a, b)
    resolved, tensors, wide = _resolve(a, b, transpose_a, transpose_b, bias, activation, residual, out_dtype, tf32)
    result = resolved.run(*tensors)
    if key is not None and wide is None and tensors[0] is a and tensors[1] is b:
        remember(matmul.calls, key, a, resolved.run)
    return result if wide is None else result.reshape(wide)


class Product(NamedTuple):
    """What a call is to compute: op(a) is (*lead, M, K), op(b) is (K, N), or has a's lead too."""

    lead: tuple
    M: int
    N: int
    K: int
    shape: tuple  # of the result
    result: str


def check(name, a, b, transpose_a, transpose_b, bias, activation, residual, out_dtype):
    """The Product of these arguments, which are looked at and not touched; the errors of those that make none."""
    for argument, x in (("a", a), ("b", b)):
        check_tensor(name, argument, x)
        if name_of(x.dtype) not in _RESULTS:
            refuse_dtype(name, argument, name_of(x.dtype), list(_RESULTS))
        if len(x.shape) < 1:
            refuse_shape(name, f"'{argument}' has no dimension", "a product takes vectors, matrices, and batches of matrices")
    wide_a, wide_b = len(a.shape) == 1, len(b.shape) == 1
    M, K = (1, a.shape[0]) if wide_a else tuple(a.shape[-2:])[:: -1 if transpose_a else 1]
    K_b, N = (b.shape[0], 1) if wide_b else tuple(b.shape[-2:])[:: -1 if transpose_b else 1]
    if K != K_b:
        refuse_shape(name, f"'a' has {K} columns to sum over, but 'b' has {K_b} rows (shapes {tuple(a.shape)} and {tuple(b.shape)}"
                     + (f", transpose_a={bool(transpose_a)}, transpose_b={bool(transpose_b)})" if transpose_a or transpose_b else ")"),
                     "pass transpose_b=True where b is stored as (N, K)")  # fmt: skip
    lead = tuple(a.shape[:-2])
    if len(b.shape) > 2 and tuple(b.shape[:-2]) != lead:
        refuse_shape(name, f"'a' and 'b' have batches {lead} and {tuple(b.shape[:-2])}", "make them agree: b.expand(...).contiguous()")
    of_a, of_b = name_of(a.dtype), name_of(b.dtype)
    if of_a != of_b and not (of_a.startswith("float8") and of_b.startswith("float8")):
        fail("ArgumentDtype", f"matmul: 'a' has dtype {of_a}, but 'b' has {of_b}", "convert one of them", also=TypeError)
    result = _RESULTS[of_a] if out_dtype is None else name_of(out_dtype)
    if result not in (*_FLOATS, "int32") or (of_a == "int8") != (result == "int32"):
        fail("BadOption", f"matmul: out_dtype {result} of products of {of_a}", "int32 of int8; else float16, bfloat16 or float32")
    if activation is not None and (activation not in _ACTIVATIONS or of_a == "int8"):
        fail("BadOption", f"matmul: there is no activation {activation!r} of {of_a}", f"it is None or, of floats, one of: {', '.join(_ACTIVATIONS)}")
    shape = (*lead, *(() if wide_a else (M,)), *(() if wide_b else (N,)))
    for what, x, expected in (("bias", bias, (N,)), ("residual", residual, shape)):
        if x is None:
            continue
        check_tensor(name, what, x)
        if tuple(x.shape) != expected:
            refuse_shape(name, f"'{what}' has shape {tuple(x.shape)}, but must have {expected}")
        if name_of(x.dtype) != result:
            fail("ArgumentDtype", f"matmul: '{what}' has dtype {name_of(x.dtype)}, but the result has {result}", "convert it", also=TypeError)
    return Product(lead, M, N, K, shape, result)


def _operand(x, transpose, vector):
    """(the matrix without gaps, whether it is transposed): a view that exchanges two dimensions is taken as it is. vector: the
    shape of one as a matrix that is not transposed."""
    if len(x.shape) == 1:
        return reshaped(compact(x), vector), False
    if not is_compact(x) and is_compact(swapped(x)):
        return swapped(x), not transpose
    return compact(x), transpose


def _resolve(a, b, transpose_a, transpose_b, bias, activation, residual, out_dtype, tf32):
    """(the call, its tensors, the shape of the result where it is not the kernel's)."""
    lead, M, N, K, wide, result = check("matmul", a, b, transpose_a, transpose_b, bias, activation, residual, out_dtype)
    a, transpose_a = _operand(a, bool(transpose_a), (1, K))
    b, transpose_b = _operand(b, bool(transpose_b), (K, 1))
    rows, batch = M, None
    if lead and len(b.shape) == 2:  # one b for all: the rows of all matrices are those of one
        a, transpose_a = (compact(swapped(a)), False) if transpose_a else (a, False)
        rows = product(lead) * M
        a = reshaped(a, (rows, K))
    elif lead:
        batch = product(lead)
        a, b = reshaped(a, (batch, *a.shape[-2:])), reshaped(b, (batch, *b.shape[-2:]))
    options = {"a": name_of(a.dtype), "b": name_of(b.dtype), "result": result, "transpose_a": transpose_a, "transpose_b": transpose_b,
               "batched": batch is not None, "tf32": bool(tf32), "activation": activation or "none"}  # fmt: skip
    tensors = [a, b]
    shape = (rows, N) if batch is None else (batch, rows, N)
    for what, x, extents in (("bias", bias, (N,)), ("residual", residual, shape)):
        if x is not None:
            options[what] = True
            tensors.append(reshaped(compact(x), extents))
    place = place_of(a)
    if place.arch and batch is None and rows * N * K >= _WORTH_PADDING and not _in_pieces(a, b, N, result):
        return _padded(options, tensors, (rows, N, K), place, None if wide == shape else wide)
    extents = {"M": rows, "N": N, "K": K, **({} if batch is None else {"batch": batch})}
    wanted, microseconds = kernel_for(options, place, extents, (len(tensors),))
    resolved = Resolved(calling(wanted), [wanted], microseconds)
    return resolved, tensors, None if wide == shape else wide


def kernel_for(options, place, extents, outputs):
    """(specialization, microseconds): the tile that suits the shape. outputs: which parameters a call makes."""
    choice = chosen("matmul", options, place, {n: max(e, 1) for n, e in extents.items()})
    return best_of(choice, lambda tile: specialization("matmul", {**options, "tile": tile}, place, outputs))


# ---- rows that are no whole pieces of 16 bytes, which a GPU's copies need, are brought into some that are

_WORTH_PADDING = 1 << 24  # multiplications


def _pieces(extent, dtype_name):
    """The extent up to whole pieces of 16 bytes."""
    size = {"float32": 4, "int32": 4, "float16": 2, "bfloat16": 2}.get(dtype_name, 1)
    return -(-extent * size // 16) * 16 // size


def _in_pieces(a, b, N, result):
    return all(t.shape[-1] == _pieces(t.shape[-1], name_of(t.dtype)) for t in (a, b)) and N == _pieces(N, result)


def _padded(options, tensors, extents, place, wide):
    M, N, K = extents
    of_a, result = options["a"], options["result"]
    m = _pieces(M, of_a) if options["transpose_a"] else M
    n, k = max(_pieces(N, of_a), _pieces(N, result)), _pieces(K, of_a)
    wanted, microseconds = kernel_for(options, place, {"M": m, "N": n, "K": k}, (len(tensors),))
    shapes = [((k, m) if options["transpose_a"] else (m, k), of_a), ((n, k) if options["transpose_b"] else (k, n), options["b"])]
    shapes += [((n,), result)] * bool(options.get("bias")) + [((m, n), result)] * bool(options.get("residual"))
    pads = {type_: specialization("pad", {"x": type_}, place, ()) for type_ in (of_a, options["b"], result)}

    def brought(tensor, shape, type_):
        """The tensor with zeros, or without its end, in another shape."""
        if tuple(tensor.shape) == shape:
            return tensor
        made = empty(tensor, shape, type_, place.engine)
        compiled(pads[type_])(*(t if len(t.shape) == 2 else t.reshape((1, -1)) for t in (tensor, made)))
        return made

    def run(*given):
        made = compiled(wanted)(*(brought(t, *to) for t, to in zip(given, shapes)))
        return brought(made, (M, N), result)

    return Resolved(run, list(dict.fromkeys([wanted, *pads.values()])), microseconds), tensors, wide


def _of_call(a, b, *, transpose_a=False, transpose_b=False, bias=None, activation=None, residual=None, out_dtype=None, tf32=False):
    return _resolve(a, b, transpose_a, transpose_b, bias, activation, residual, out_dtype, tf32)[0]


_matmul.__name__ = "matmul"
_matmul.__doc__ = """activation(a @ b + bias) + residual.

a: (..., M, K), or (..., K, M) with transpose_a; b: (..., K, N) or (..., N, K), or one matrix for all of a's; a vector stands
for a matrix of one row, or column. bias: (N,); residual: as the result. float16, bfloat16, float32 and float8 are summed in
float32 and rounded once to out_dtype (their own; bfloat16 of float8); int8 in int32. tf32: float32 on a GPU's tensor cores, of
10 bits of mantissa. activation: "relu", "gelu", "gelu_tanh", "silu". Views of two exchanged dimensions (w.T) cost nothing, others
are copied. Has gradients in PyTorch.
"""
matmul = Operator(entry(_matmul), _of_call)
