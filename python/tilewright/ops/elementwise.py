"""Functions of elements: of one tensor, of several with broadcasting, gated ones, conversions."""
from __future__ import annotations

from typing import NamedTuple

from ..trace import fail
from ..tracebacks import entry
from . import element_gradients
from .calls import (Operator, Resolved, Spec, check_tensor, chosen, compact, compiled, is_torch, name_of, place_of, product, refuse_dtype,
                    refuse_shape, remember, remembered, reshaped, specialization)  # fmt: skip

_FLOATS = ("float16", "bfloat16", "float32")
_INTEGERS = ("int32", "int64")
_MOVED = (*_FLOATS, "float64", "int8", "int16", *_INTEGERS, "uint8", "uint16", "uint32", "uint64", "bool")
_CAST = (*_MOVED, "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
_OF_INTEGERS = ("relu", "square", "abs", "neg", "add", "sub", "mul", "maximum", "minimum")
_MOST_DIMENSIONS = 4


def taken_by(function):
    return _MOVED if function == "where" else (*_FLOATS, *_INTEGERS) if function in _OF_INTEGERS else _FLOATS


class _Layout(NamedTuple):
    """How operands lie in the result: its shape, that of what the program computes, each operand's there and its word."""

    shape: tuple
    extents: tuple
    shapes: tuple
    words: tuple


def _broadcast(function, names, shapes):
    """The shape that all are repeated to; a number's is None."""
    known = [s for s in shapes if s is not None]
    rank, out = max(map(len, known)), []
    for d in range(-rank, 0):
        extents = {s[d] for s in known if len(s) >= -d and s[d] != 1}
        if len(extents) > 1:
            listed = ", ".join(f"'{n}' {s}" for n, s in zip(names, shapes) if s is not None)
            refuse_shape(function, f"shapes do not go together: {listed}", "dimensions count from the last; they agree, or are 1")
        out.append(extents.pop() if extents else 1)
    return tuple(out)


def _laid_out(function, names, shapes):
    """Neighbouring dimensions that the same operands have are one; those of one element are none."""
    whole = _broadcast(function, names, shapes)
    rank = len(whole)
    merged = []  # [extent, which operands have it]
    for d, extent in enumerate(whole):
        if extent == 1:
            continue
        having = tuple(s is not None and len(s) >= rank - d and s[d - rank] == extent for s in shapes)
        if merged and merged[-1][1] == having:
            merged[-1][0] *= extent
        else:
            merged.append([extent, having])
    merged = merged or [[1, tuple(s is not None for s in shapes)]]
    extents = tuple(e for e, _ in merged)
    words = tuple("-" if s is None else "".join("1" if having[i] else "0" for _, having in merged) for i, s in enumerate(shapes))
    own = tuple(None if w == "-" else tuple(e for e, c in zip(extents, w) if c == "1") or (1,) for w in words)
    return _Layout(whole, extents, own, words)


def _expanded(x, shape):
    """A copy that is repeated to the shape."""
    if isinstance(x, Spec):
        return Spec(shape, x.dtype, x.device)
    if is_torch(x):
        return x.expand(shape).contiguous()
    import numpy

    return compact(numpy.broadcast_to(x, shape)) if isinstance(x, numpy.ndarray) else compact(x * 0 + x)


def _is_number(x):
    return isinstance(x, (int, float)) and not hasattr(x, "dtype")


def _checked(function, names, operands):
    """The dtype that they share; the condition of `where` is a bool."""
    tensors = [(n, x) for n, x in zip(names, operands) if not _is_number(x)]
    for n, x in tensors:
        check_tensor(function, n, x)
    typed = tensors
    if function == "where":
        if _is_number(operands[0]) or name_of(operands[0].dtype) != "bool":
            refuse_dtype(function, "condition", "number" if _is_number(operands[0]) else name_of(operands[0].dtype), ["bool"])
        typed = tensors[1:]
    if not typed:
        fail("ArgumentKind", f"{function}: no operand is a tensor", "pass one at least: numbers take its dtype", also=TypeError)
    dtype = name_of(typed[0][1].dtype)
    if dtype not in taken_by(function):
        refuse_dtype(function, typed[0][0], dtype, taken_by(function))
    for n, x in typed[1:]:
        if name_of(x.dtype) != dtype:
            fail("ArgumentDtype", f"{function}: '{typed[0][0]}' has dtype {dtype}, but '{n}' has {name_of(x.dtype)}", "convert one: ops.cast", also=TypeError)
    for n, x in zip(names, operands):
        if isinstance(x, float) and "float" not in dtype:
            fail("ArgumentDtype", f"{function}: '{n}' is {x!r}, but the tensors have dtype {dtype}", "pass an integer, or convert them: ops.cast", also=TypeError)
    return dtype


def _resolve(function, names, operands, result=None, more=()):
    """(the call of tensors and numbers, its tensors, the layout)."""
    dtype = _checked(function, names, operands) if function != "cast" else name_of(operands[0].dtype)
    shapes = [None if _is_number(x) else tuple(x.shape) for x in operands]
    layout = _laid_out(function, names, shapes)
    tensors = [x for x in operands if not _is_number(x)]
    if len(layout.extents) > _MOST_DIMENSIONS:
        tensors = [_expanded(x, layout.shape) for x in tensors]
        extents, one = (product(layout.shape),), iter(["1"] * len(tensors))
        words = tuple("-" if s is None else next(one) for s in shapes)
        layout = _Layout(layout.shape, extents, tuple(None if w == "-" else extents for w in words), words)
    given = [reshaped(compact(x), s) for x, s in zip(tensors, [s for s in layout.shapes if s is not None])]
    options = {"function": function, "operands": ",".join(layout.words), "x": dtype, "result": result or dtype, **dict(more)}
    place = place_of(tensors[0])
    extents = layout.extents
    options.update(chosen("elementwise", options, place, {"M": extents[-2] if len(extents) > 1 else 1, "N": extents[-1] or 1})["options"])
    wanted = specialization("elementwise", options, place, (len(given) + options.get("backward", 0),))
    return Resolved(lambda *given: compiled(wanted)(*given), [wanted]), given, layout


_calls = {}


def run(function, names, operands, result=None):
    """The result, without a gradient."""
    tensors = [x for x in operands if not _is_number(x)]
    numbers = [x for x in operands if _is_number(x)]
    key = None
    if tensors and all(hasattr(x, "dtype") for x in tensors):
        key = (function, result, *(type(x) if _is_number(x) else (x.dtype, x.shape) for x in operands))
        call = remembered(_calls, key, *tensors)
        if call is not None:
            return call(*tensors, *numbers)
    resolved, given, layout = _resolve(function, names, operands, result)
    shapes, run_kernel, count = [s for s in layout.shapes if s is not None], resolved.run, len(given)

    def call(*given):
        return run_kernel(*(t.reshape(s) for t, s in zip(given[:count], shapes)), *given[count:]).reshape(layout.shape)

    # Where a tensor was repeated by a copy, its shape is not the operand's.
    if key is not None and all(product(t.shape) == product(s) for t, s in zip(tensors, shapes)):
        remember(_calls, key, tensors[0], call)
    return call(*given, *numbers)


def slope(function, x, grad):
    """grad times the derivative of a function of one tensor, at x."""
    (resolved, given, _) = _resolve(function, ("x",), (x,), None, {"backward": True}.items())
    return resolved.run(*given, compact(grad).reshape(given[0].shape)).reshape(tuple(x.shape))


def _made(function, plain, along, doc):
    plain.__name__, plain.__doc__ = function, doc
    return Operator(entry(plain), along)


def _unary(function, means):
    def plain(x):
        return element_gradients.unary(function, x) if is_torch(x) and element_gradients.wanted(x) else run(function, ("x",), (x,))

    return _made(function, plain, lambda x: _resolve(function, ("x",), (x,))[0], f"{means}, element by element. {_docs(function)}")


def _docs(function):
    integers = " int32 and int64 wrap." if function in _OF_INTEGERS else ""
    return f"float16, bfloat16 or float32, computed in float32 and rounded once.{integers} Has gradients in PyTorch."


def _several(function, names, means):
    def of(*operands):
        if is_torch(*operands) and element_gradients.wanted(*operands):
            return element_gradients.several(function, *operands)
        return run(function, names, operands)

    def along(*operands):
        return _resolve(function, names, operands)[0]

    doc = f"{means}, element by element. Tensors of one dtype, or numbers; dimensions of 1 are repeated as in NumPy. {_docs(function)}"
    if len(names) == 2:
        return _made(function, lambda a, b: of(a, b), lambda a, b: along(a, b), doc)
    return _made(function, lambda a, b, weight: of(a, b, weight), lambda a, b, weight: along(a, b, weight), doc)


relu = _unary("relu", "max(x, 0), NaN of NaN")
gelu = _unary("gelu", "x times the normal distribution at x, by erf")
gelu_tanh = _unary("gelu_tanh", "gelu's approximation by tanh")
silu = _unary("silu", "x / (1 + exp(-x))")
sigmoid = _unary("sigmoid", "1 / (1 + exp(-x))")
tanh = _unary("tanh", "tanh(x)")
softplus = _unary("softplus", "log(1 + exp(x))")
exp = _unary("exp", "exp(x)")
exp2 = _unary("exp2", "2 to the power of x")
expm1 = _unary("expm1", "exp(x) - 1")
log = _unary("log", "log(x)")
log2 = _unary("log2", "the logarithm to base 2")
log1p = _unary("log1p", "log(1 + x)")
sqrt = _unary("sqrt", "sqrt(x)")
rsqrt = _unary("rsqrt", "1 / sqrt(x)")
reciprocal = _unary("reciprocal", "1 / x")
square = _unary("square", "x * x")
abs = _unary("abs", "abs(x)")
neg = _unary("neg", "-x")
sin = _unary("sin", "sin(x)")
cos = _unary("cos", "cos(x)")
erf = _unary("erf", "the error function")
floor = _unary("floor", "The largest whole number that is not larger")
ceil = _unary("ceil", "The least whole number that is not less")
trunc = _unary("trunc", "Without what stands behind the point")
round = _unary("round", "The nearest whole number, halves to the even one")
add = _several("add", ("a", "b"), "a + b")
sub = _several("sub", ("a", "b"), "a - b")
mul = _several("mul", ("a", "b"), "a * b")
div = _several("div", ("a", "b"), "a / b")
pow = _several("pow", ("a", "b"), "a to the power of b")
maximum = _several("maximum", ("a", "b"), "The larger one, NaN where one is")
minimum = _several("minimum", ("a", "b"), "The smaller one, NaN where one is")
lerp = _several("lerp", ("a", "b", "weight"), "a + weight * (b - a)")


def _where(condition, a, b):
    if is_torch(condition) and element_gradients.wanted(condition, a, b):
        return element_gradients.several("where", condition, a, b)
    return run("where", ("condition", "a", "b"), (condition, a, b))


where = _made("where", _where, lambda condition, a, b: _resolve("where", ("condition", "a", "b"), (condition, a, b))[0],
              "a where the condition holds, else b. condition: bool; a and b: tensors of one dtype, any of 8 to 64 bits, or numbers; dimensions of 1 "
              "are repeated as in NumPy. Has gradients in PyTorch.")  # fmt: skip


# ---- conversions


def _cast_type(x, dtype):
    check_tensor("cast", "x", x)
    if name_of(x.dtype) not in _CAST:
        refuse_dtype("cast", "x", name_of(x.dtype), _CAST)
    result = name_of(dtype.__name__ if isinstance(dtype, type) else dtype)  # np.float32 is a class
    if result not in _CAST:
        fail("BadOption", f"cast: there is no tensor of dtype {result} here", f"it is one of: {', '.join(_CAST)}")
    return result


def _cast(x, dtype):
    if is_torch(x) and element_gradients.wanted(x):
        return element_gradients.cast(x, _cast_type(x, dtype))
    return run("cast", ("x",), (x,), _cast_type(x, dtype))


cast = _made("cast", _cast, lambda x, dtype: _resolve("cast", ("x",), (x,), _cast_type(x, dtype))[0],
             "x in another dtype, rounded once to nearest even. Of floats, integers get the whole part, or their nearest end, and NaN 0 (the least of int64). What is too "
             "large for a float8 becomes its largest finite value. Has gradients in PyTorch.")  # fmt: skip


# ---- gated


def _resolve_gated(function, x, grad=None):
    name = f"{function}_and_mul"
    check_tensor(name, "x", x)
    dtype, shape = name_of(x.dtype), tuple(x.shape)
    if dtype not in _FLOATS:
        refuse_dtype(name, "x", dtype, _FLOATS)
    if not shape or shape[-1] % 2:
        refuse_shape(name, f"'x' has shape {shape}", "its last dimension has two halves")
    m, n = product(shape[:-1]), shape[-1] // 2
    options = {"function": function, "operands": "11", "x": dtype, "result": dtype, "gated": True, "backward": grad is not None}
    place = place_of(x)
    options.update(chosen("elementwise", options, place, {"M": m, "N": n or 1})["options"])
    wanted = specialization("elementwise", options, place, (1 if grad is None else 2,))
    given = [reshaped(compact(x), (m, 2, n))] + ([] if grad is None else [reshaped(compact(grad), (m, n))])
    return Resolved(lambda *given: compiled(wanted)(*given), [wanted]), given


def run_gated(function, x, grad=None):
    key = (function, "gated", grad is not None, x.dtype, x.shape) if hasattr(x, "dtype") else None
    tensors = [x] if grad is None else [x, grad]
    call = key and remembered(_calls, key, *tensors)
    if call:
        return call(*tensors)
    resolved, given = _resolve_gated(function, x, grad)
    shapes, result = [tuple(g.shape) for g in given], tuple(x.shape) if grad is not None else (*x.shape[:-1], x.shape[-1] // 2)

    def call(*tensors):
        return resolved.run(*(t.reshape(s) for t, s in zip(tensors, shapes))).reshape(result)

    remember(_calls, key, x, call)
    return call(*given)


def _gated(function):
    def plain(x):
        return element_gradients.gated(function, x) if is_torch(x) and element_gradients.wanted(x) else run_gated(function, x)

    return _made(f"{function}_and_mul", plain, lambda x: _resolve_gated(function, x)[0],
                 f"{function} of the first half of the last dimension, times the second: (..., 2 N) becomes (..., N). float16, bfloat16 or float32, computed "
                 "in float32 and rounded once. Has gradients in PyTorch.")  # fmt: skip


silu_and_mul, gelu_and_mul, gelu_tanh_and_mul, relu_and_mul, sigmoid_and_mul = map(_gated, ("silu", "gelu", "gelu_tanh", "relu", "sigmoid"))

UNARY = ("relu gelu gelu_tanh silu sigmoid tanh softplus exp exp2 expm1 log log2 log1p sqrt rsqrt reciprocal square abs neg sin cos erf floor "
         "ceil trunc round").split()  # fmt: skip
