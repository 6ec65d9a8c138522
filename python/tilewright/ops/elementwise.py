"""Functions of elements: of one tensor, of several with broadcasting, gated ones, conversions."""
from __future__ import annotations

import inspect
from typing import NamedTuple

from ..tensors import _torch_dtype
from ..trace import fail
from ..tracebacks import entry
from . import element_gradients
from .calls import (FlatOperator, Operator, Resolved, Spec, calling, check_tensor, chosen, compact, is_long, is_torch, name_of, place_of, product, refuse_dtype,
                    refuse_shape, remember, remembered, reshaped, specialization)  # fmt: skip

_FLOATS = ("float16", "bfloat16", "float32")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
_NUMBERS = (*_FLOATS, *_INTEGERS)
_MOVED = (*_FLOATS, "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
_CAST = (*_MOVED, "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
_MOST_DIMENSIONS = 4
_LONG, _SHORT = 1 << 20, 512  # elements that the kernel of a vector is made for


class Function(NamedTuple):
    """A row of the tables: what it is computed of, and by what the program calls it."""

    name: str
    means: str
    tensors: tuple = ("x",)  # operands that may be tensors
    numbers: tuple = ()  # (name, default) of those that are numbers
    taken: tuple = _FLOATS
    result: str | None = None  # the dtype, where it is not the operands'
    gradients: bool = True
    program: str | None = None  # its name there, where it is another

    @property
    def names(self):
        return (*self.tensors, *(n for n, _ in self.numbers))


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
    taken = TABLE[function].taken
    if dtype not in taken:
        refuse_dtype(function, typed[0][0], dtype, taken)
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
    row = TABLE[function]
    result = result or row.result
    shapes = [None if _is_number(x) else tuple(x.shape) for x in operands]
    layout = _laid_out(function, names, shapes)
    tensors = [x for x in operands if not _is_number(x)]
    if len(layout.extents) > _MOST_DIMENSIONS:
        tensors = [_expanded(x, layout.shape) for x in tensors]
        extents, one = (product(layout.shape),), iter(["1"] * len(tensors))
        words = tuple("-" if s is None else next(one) for s in shapes)
        layout = _Layout(layout.shape, extents, tuple(None if w == "-" else extents for w in words), words)
    given = [reshaped(compact(x), s) for x, s in zip(tensors, [s for s in layout.shapes if s is not None])]
    options = {"function": row.program or function, "operands": ",".join(layout.words), "x": dtype, "result": result or dtype, **dict(more)}
    place = place_of(tensors[0])
    extents = layout.extents
    # Vectors have one of two kernels.
    columns = (_LONG if is_long(extents[0]) else _SHORT) if len(extents) == 1 else extents[-1] or 1
    options.update(chosen("elementwise", options, place, {"M": extents[-2] if len(extents) > 1 else 1, "N": columns})["options"])
    wanted = specialization("elementwise", options, place, (len(given) + options.get("backward", 0),))
    return Resolved(calling(wanted), [wanted]), given, layout


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
    lying = [None if tuple(t.shape) == s else s for t, s in zip(tensors, shapes)]  # None: as it is given

    def call(*given):
        given = (*(t if s is None else t.reshape(s) for t, s in zip(given, lying)), *given[count:])
        return run_kernel(*given).reshape(layout.shape) if layout.extents != layout.shape else run_kernel(*given)

    flat = FLAT.get(function)
    if flat is not None and result is None:
        if all(w in ("1", "-") for w in layout.words) and all(len(t.shape) == len(tensors[0].shape) for t in tensors):
            flat.remember_flat(operands, resolved.specializations[0])
    # Where a tensor was repeated by a copy, its shape is not the operand's.
    if key is not None and all(product(t.shape) == product(s) for t, s in zip(tensors, shapes)):
        remember(_calls, key, tensors[0], call)
    return call(*given, *numbers)


def slope(function, x, grad, numbers=()):
    """grad times the derivative of a function of one tensor, at x."""
    (resolved, given, _) = _resolve(function, TABLE[function].names, (x, *numbers), None, {"backward": True}.items())
    return resolved.run(*given, compact(grad).reshape(given[0].shape), *numbers).reshape(tuple(x.shape))


FLAT = {}  # by function of the program
_OTHERWISE = ("prelu", "cast")  # what is called with other operands than the program


def _made(function, plain, along, doc, reference=None, defaults=()):
    plain.__name__, plain.__doc__ = function, doc
    if function not in TABLE or function in _OTHERWISE:
        made = Operator(entry(plain), along)
    else:
        made = FLAT.setdefault(function, FlatOperator(entry(plain), along, defaults))
    made.reference = reference or (lambda *operands, **named: element_gradients.reference(function)(*operands, **named))
    return made


def _docs(row):
    numbers = "Tensors of one dtype, or numbers; dimensions of 1 are repeated as in NumPy. " if len(row.tensors) > 1 else ""
    dtypes = "float16, bfloat16 or float32, computed in float32 and rounded once."
    if row.taken[0] not in _FLOATS:
        dtypes = f"{', '.join(row.taken)}."
    elif row.result:
        dtypes = f"{', '.join(row.taken)}."
    elif len(row.taken) > len(_FLOATS):
        dtypes += f" {', '.join(row.taken[len(_FLOATS) :])} wrap."
    result = f" Of dtype {row.result}." if row.result else ""
    return f"{row.means}, element by element. {numbers}{dtypes}{result}{' Has gradients in PyTorch.' if row.gradients else ''}"


def _bound(row, signature, operands, named):
    """The operands in order, with the defaults of those that are left out."""
    names, given = row.names, list(operands)
    defaults = dict(row.numbers)
    rest = names[len(given) :]
    if len(given) > len(names) or set(named) - set(rest) or set(rest) - set(named) - set(defaults):
        try:
            signature.bind(*operands, **named)
        except TypeError as error:
            raise TypeError(f"{row.name}() {error}") from None
    given += [named.get(name, defaults.get(name)) for name in rest]
    for (name, _), value in zip(row.numbers, given[len(row.tensors) :]):
        if not _is_number(value):
            fail("BadOption", f"{row.name}: {name} is of type {type(value).__name__}", "it is a number", also=TypeError)
    return given


def _function(row):
    count = len(row.names)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(n, kind) for n in row.tensors] + [inspect.Parameter(n, kind, default=d) for n, d in row.numbers]
    signature = inspect.Signature(parameters)

    def plain(*operands, **named):
        if len(operands) != count or named or row.numbers:
            operands = _bound(row, signature, operands, named)
        if row.gradients and is_torch(*operands) and element_gradients.wanted(*operands):
            return element_gradients.of(row, *operands)
        return run(row.name, row.names, operands)

    plain.__signature__ = signature
    made = _made(row.name, plain, lambda *operands, **named: _resolve(row.name, row.names, _bound(row, signature, operands, named))[0], _docs(row), None,
                 tuple(default for _, default in row.numbers) if len(row.tensors) == 1 else ())  # fmt: skip
    made.signature = made.__signature__ = signature
    return made


# ---- the tables


def _of_one(name, means, *numbers, **more):
    return Function(name, means, ("x",), numbers, **more)


def _of_two(name, means, *numbers, **more):
    return Function(name, means, ("a", "b"), numbers, **more)


def _asks(name, means, tensors=("x",), taken=(*_NUMBERS, "bool")):
    return Function(name, means, tensors, (), taken, "bool", gradients=False)


ACTIVATIONS = [
    _of_one("relu", "max(x, 0), NaN of NaN", taken=_NUMBERS),
    _of_one("relu6", "x, but 0 and 6 where it is beyond"),
    _of_one("gelu", "x times the normal distribution at x, by erf"),
    _of_one("gelu_tanh", "gelu's approximation by tanh"),
    _of_one("silu", "x / (1 + exp(-x))"),
    _of_one("sigmoid", "1 / (1 + exp(-x))"),
    _of_one("log_sigmoid", "log(1 / (1 + exp(-x)))"),
    _of_one("tanh", "tanh(x)"),
    _of_one("tanhshrink", "x - tanh(x)"),
    _of_one("softsign", "x / (1 + abs(x))"),
    _of_one("mish", "x * tanh(log(1 + exp(x)))"),
    _of_one("hardsigmoid", "(x + 3) / 6, but 0 and 1 where it is beyond"),
    _of_one("hardswish", "x times its hardsigmoid"),
    _of_one("selu", "1.0507 times (x where it is positive, else 1.6733 * (exp(x) - 1))"),
    _of_one("softplus", "log(1 + exp(beta * x)) / beta, and x where beta * x is above the threshold", ("beta", 1.0), ("threshold", 20.0)),
    _of_one("leaky_relu", "x where it is positive, else negative_slope * x", ("negative_slope", 0.01)),
    _of_one("elu", "x where it is positive, else alpha * (exp(x) - 1)", ("alpha", 1.0)),
    _of_one("celu", "x where it is positive, else alpha * (exp(x / alpha) - 1)", ("alpha", 1.0)),
    _of_one("hardtanh", "x, but min_val and max_val where it is beyond", ("min_val", -1.0), ("max_val", 1.0)),
    _of_one("hardshrink", "0 where abs(x) is at most lambd, else x", ("lambd", 0.5)),
    _of_one("softshrink", "x brought nearer to 0 by lambd, and 0 where it is as near", ("lambd", 0.5)),
    _of_one("threshold", "x where it is above `above`, else value", ("above", 0.0), ("value", 0.0)),
]
MATHEMATICS = [
    _of_one("exp", "exp(x)"),
    _of_one("exp2", "2 to the power of x"),
    _of_one("expm1", "exp(x) - 1"),
    _of_one("log", "log(x)"),
    _of_one("log2", "the logarithm to base 2"),
    _of_one("log10", "the logarithm to base 10"),
    _of_one("log1p", "log(1 + x)"),
    _of_one("sqrt", "sqrt(x)"),
    _of_one("rsqrt", "1 / sqrt(x)"),
    _of_one("reciprocal", "1 / x"),
    _of_one("square", "x * x", taken=_NUMBERS),
    _of_one("abs", "abs(x)", taken=_NUMBERS),
    _of_one("neg", "-x", taken=_NUMBERS),
    _of_one("sign", "-1, 0 or 1 as x is; NaN of NaN", taken=_NUMBERS),
    _of_one("sin", "sin(x)"),
    _of_one("cos", "cos(x)"),
    _of_one("tan", "tan(x)"),
    _of_one("asin", "The angle whose sine is x"),
    _of_one("acos", "The angle whose cosine is x"),
    _of_one("atan", "The angle whose tangent is x"),
    _of_one("sinh", "The hyperbolic sine"),
    _of_one("cosh", "The hyperbolic cosine"),
    _of_one("asinh", "The inverse hyperbolic sine"),
    _of_one("acosh", "The inverse hyperbolic cosine"),
    _of_one("atanh", "The inverse hyperbolic tangent"),
    _of_one("erf", "the error function"),
    _of_one("floor", "The largest whole number that is not larger"),
    _of_one("ceil", "The least whole number that is not less"),
    _of_one("trunc", "Without what stands behind the point"),
    _of_one("round", "The nearest whole number, halves to the even one"),
    _of_one("frac", "What stands behind the point"),
]
QUESTIONS = [
    _asks("isnan", "Whether x is NaN", taken=_FLOATS),
    _asks("isinf", "Whether x is infinite", taken=_FLOATS),
    _asks("isfinite", "Whether x is a number", taken=_FLOATS),
    _asks("logical_not", "Whether x is 0"),
    _asks("logical_and", "Whether neither is 0", ("a", "b")),
    _asks("logical_or", "Whether one is not 0", ("a", "b")),
    _asks("logical_xor", "Whether just one is 0", ("a", "b")),
    _asks("eq", "a == b", ("a", "b")),
    _asks("ne", "a != b", ("a", "b")),
    _asks("gt", "a > b", ("a", "b"), _NUMBERS),
    _asks("lt", "a < b", ("a", "b"), _NUMBERS),
    _asks("ge", "a >= b", ("a", "b"), _NUMBERS),
    _asks("le", "a <= b", ("a", "b"), _NUMBERS),
]
BITS = [
    _of_one("bitwise_not", "~x", taken=(*_INTEGERS, "bool"), gradients=False),
    _of_two("bitwise_and", "a & b", taken=(*_INTEGERS, "bool"), gradients=False),
    _of_two("bitwise_or", "a | b", taken=(*_INTEGERS, "bool"), gradients=False),
    _of_two("bitwise_xor", "a ^ b", taken=(*_INTEGERS, "bool"), gradients=False),
]
SEVERAL = [
    _of_two("mul", "a * b", taken=_NUMBERS),
    _of_two("pow", "a to the power of b"),
    _of_two("remainder", "What is left of a divided by b, with the sign of b; exact"),
    _of_two("fmod", "What is left of a divided by b, with the sign of a; exact"),
    _of_two("floor_divide", "The whole number of times that b goes into a, rounded down", gradients=False),
    _of_two("atan2", "The angle of the point (b, a)"),
    _of_two("hypot", "sqrt(a * a + b * b), without overflow between"),
    _of_two("copysign", "a with the sign of b"),
    _of_two("logaddexp", "log(exp(a) + exp(b))"),
    _of_two("maximum", "The larger one, NaN where one is", taken=_NUMBERS),
    _of_two("minimum", "The smaller one, NaN where one is", taken=_NUMBERS),
    _of_two("fmax", "The larger one, the other one where one is NaN"),
    _of_two("fmin", "The smaller one, the other one where one is NaN"),
    Function("lerp", "a + weight * (b - a)", ("a", "b", "weight")),
    Function("addcmul", "x + value * a * b", ("x", "a", "b"), (("value", 1.0),)),
    Function("addcdiv", "x + value * a / b", ("x", "a", "b"), (("value", 1.0),)),
]
_PARTS = [  # what functions of their own signature are made of
    _of_two("add", "a + b", taken=_NUMBERS),
    _of_two("sub", "a - b", taken=_NUMBERS),
    _of_two("add_scaled", "a + alpha * b", ("alpha", 1), taken=_NUMBERS),
    _of_two("div", "a / b"),
    _of_two("trunc_divide", "a / b without what stands behind the point", gradients=False),
    Function("clamp", "x, but low and high where it is beyond", ("x", "low", "high"), taken=_NUMBERS),
    _of_one("clamp_to", "x, but low and high where it is beyond", ("low", 0.0), ("high", 0.0), taken=_NUMBERS, program="clamp"),
    _of_one("nan_to_num", "Numbers in the place of NaN and infinities", ("nan", 0.0), ("posinf", 0.0), ("neginf", 0.0)),
    _of_two("prelu", "a where it is positive, else a * b"),
    Function("where", "a where the condition holds, else b", ("condition", "a", "b"), taken=_MOVED),
    _of_one("cast", "x in another dtype", taken=_CAST),
]
TABLE = {row.name: row for row in (*ACTIVATIONS, *MATHEMATICS, *QUESTIONS, *BITS, *SEVERAL, *_PARTS)}
globals().update({row.name: _function(row) for row in (*ACTIVATIONS, *MATHEMATICS, *QUESTIONS, *BITS, *SEVERAL)})


# ---- functions with signatures of their own


def _run(function, *operands):
    row = TABLE[function]
    if row.gradients and is_torch(*operands) and element_gradients.wanted(*operands):
        return element_gradients.of(row, *operands)
    return run(function, row.names, operands)


def _along(function, *operands):
    return _resolve(function, TABLE[function].names, operands)[0]


def _sum(function, sign):
    def chosen_for(a, b, alpha):
        if not _is_number(alpha):
            fail("BadOption", f"{function}: alpha is of type {type(alpha).__name__}", "it is a number", also=TypeError)
        return (function, a, b) if alpha == 1 else ("add_scaled", a, b, sign * alpha)

    def of(a, b, *, alpha=1):
        return _run(*chosen_for(a, b, alpha))

    row = TABLE[function]._replace(means=f"a {'+' if sign > 0 else '-'} alpha * b")
    return _made(function, of, lambda a, b, *, alpha=1: _along(*chosen_for(a, b, alpha)), _docs(row))


add, sub = _sum("add", 1), _sum("sub", -1)

_ROUNDED = {None: "div", "trunc": "trunc_divide", "floor": "floor_divide"}


def _rounded(rounding_mode):
    if rounding_mode not in _ROUNDED:
        fail("BadOption", f"div: rounding_mode is {rounding_mode!r}", "it is one of: None, 'trunc', 'floor'", also=ValueError)
    return _ROUNDED[rounding_mode]


div = _made("div", lambda a, b, *, rounding_mode=None: _run(_rounded(rounding_mode), a, b),
            lambda a, b, *, rounding_mode=None: _along(_rounded(rounding_mode), a, b),
            _docs(TABLE["div"]) + ' rounding_mode: "trunc" or "floor", the whole quotient, of which there is no gradient.')  # fmt: skip


def _limits(x, low, high):
    """(the function, its operands) of what is bounded by tensors or numbers on one side or both."""
    if low is None and high is None:
        fail("BadOption", "clamp: neither low nor high is given", "give one at least", also=ValueError)
    if low is None or high is None:
        return ("maximum", x, low) if high is None else ("minimum", x, high)
    return ("clamp_to" if _is_number(low) and _is_number(high) else "clamp", x, low, high)


clamp = _made("clamp", lambda x, low=None, high=None: _run(*_limits(x, low, high)), lambda x, low=None, high=None: _along(*_limits(x, low, high)),
              _docs(TABLE["clamp"]) + " One of them may be None; where low is above high it is high; NaN of NaN.")  # fmt: skip
FLAT["clamp_to"] = clamp


def _in_place_of(x, nan, posinf, neginf):
    check_tensor("nan_to_num", "x", x)
    dtype = name_of(x.dtype)
    most = LARGEST.get(dtype, 0.0)
    return "nan_to_num", x, nan, most if posinf is None else posinf, -most if neginf is None else neginf


LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}
nan_to_num = _made("nan_to_num", lambda x, nan=0.0, posinf=None, neginf=None: _run(*_in_place_of(x, nan, posinf, neginf)),
                   lambda x, nan=0.0, posinf=None, neginf=None: _along(*_in_place_of(x, nan, posinf, neginf)),
                   _docs(TABLE["nan_to_num"]) + " None: the largest and the least number of x's dtype.")  # fmt: skip


def _weights(x, weight):
    """The weight as it lies beside x: of each channel, the second dimension, or one for all."""
    check_tensor("prelu", "x", x)
    check_tensor("prelu", "weight", weight)
    count = product(weight.shape)
    if len(weight.shape) > 1 or (count != 1 and (len(x.shape) < 2 or x.shape[1] != count)):
        refuse_shape("prelu", f"'weight' has shape {tuple(weight.shape)}", "it has one number, or one for each of the second dimension of 'x'")
    return "prelu", x, reshaped(weight, (count, *[1] * (len(x.shape) - 2)) if count != 1 else ())


prelu = _made("prelu", lambda x, weight: _run(*_weights(x, weight)), lambda x, weight: _along(*_weights(x, weight)),
              "x where it is positive, else x * weight. weight: one number, or (channels,) for each of the second dimension. float16, bfloat16 or float32. "
              "Has gradients in PyTorch.",
              lambda x, weight: element_gradients.reference("prelu")(*_weights(x, weight)[1:]))  # fmt: skip


def _where(condition, a, b):
    return _run("where", condition, a, b)


where = _made("where", _where, lambda condition, a, b: _along("where", condition, a, b),
              "a where the condition holds, else b. condition: bool; a and b: tensors of one dtype, any of 8 to 64 bits, or numbers; dimensions of 1 "
              "are repeated as in NumPy. Has gradients in PyTorch.")  # fmt: skip
masked_fill = _made("masked_fill", lambda x, mask, value: _run("where", mask, value, x), lambda x, mask, value: _along("where", mask, value, x),
                    "value where the mask holds, else x. mask: bool; value: a number or a tensor of x's dtype; dimensions of 1 are repeated as in NumPy. "
                    "Has gradients in PyTorch.",
                    lambda x, mask, value: x.masked_fill(mask, value))  # fmt: skip


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
             "large for a float8 becomes its largest finite value. Has gradients in PyTorch.",
             lambda x, dtype: x.to(_torch_dtype(name_of(dtype))))  # fmt: skip


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
    return Resolved(calling(wanted), [wanted]), given


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
                 "in float32 and rounded once. Has gradients in PyTorch.",
                 lambda x: element_gradients.reference(function)(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1])  # fmt: skip


silu_and_mul, gelu_and_mul, gelu_tanh_and_mul, relu_and_mul, sigmoid_and_mul = map(_gated, ("silu", "gelu", "gelu_tanh", "relu", "sigmoid"))
