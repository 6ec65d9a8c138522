"""CUDA's own device functions, by the names under which T.call_extern calls them: what the language has for each, on every engine."""
from .dtypes import dtype as _dtype
from .trace import OPERATIONS, apply, operation
from .values import Expr

_CAST, _REINTERPRET = OPERATIONS["cast"], OPERATIONS["reinterpret"]
_ALL_LANES = 0xFFFFFFFF


def _of(op, *types, options=()):
    """An operation whose operands are converted as a call of C++ does."""
    made = operation(op)

    def call(*given):
        return made(*(apply(_CAST, g, t) for g, t in zip(given, types, strict=True)), *options)

    return call


def _converted(source, target, rounding=""):
    return lambda x: apply(_CAST, apply(_CAST, x, source), target, rounding)


def _same_bits(source, target):
    return lambda x: apply(_REINTERPRET, apply(_CAST, x, source), target)


def _whole(op, source, target):
    """To a whole number by `op`, which an integer then holds."""
    made = operation(op)
    return lambda x: apply(_CAST, made(apply(_CAST, x, source)), target)


def _of_warp(op):
    """Of a whole warp; what takes part of one stays CUDA's."""
    made = operation(op)

    def call(mask, *given):
        mask = mask.constant if isinstance(mask, Expr) else mask
        if not isinstance(mask, int) or mask & _ALL_LANES != _ALL_LANES:
            return None
        return made(*given)

    return call


def _by_operands(op, kinds):
    """An operation that CUDA overloads: of the dtype that its operands have, if it is one of these."""
    made = operation(op)

    def call(*given):
        found = {str(g.dtype) for g in given if not isinstance(g, (int, float))}
        kind = found.pop() if len(found) == 1 else ""
        if not kind.startswith(kinds) or (not kind.startswith(("float", "bfloat")) and any(isinstance(g, float) for g in given)):
            return None
        return made(*(apply(_CAST, g, kind) for g in given))

    return call


_LESS, _AT_LEAST, _CHOOSE = operation("less_equal"), operation("greater_equal"), operation("if_then_else")
_ADD, _SUB, _MUL = operation("add"), operation("sub"), operation("mul")


def _round(kind):
    """To the nearest whole number, halves away from zero."""
    truncated, magnitude, signed = operation("trunc"), operation("fabs"), operation("copysign")

    def call(x):
        x = apply(_CAST, x, kind)
        whole = truncated(x)
        more = _CHOOSE(_AT_LEAST(magnitude(_SUB(x, whole)), apply(_CAST, 0.5, kind)), apply(_CAST, 1, kind), apply(_CAST, 0, kind))
        return _ADD(whole, signed(more, x))

    return call


def _dim(kind):
    def call(x, y):
        x, y = apply(_CAST, x, kind), apply(_CAST, y, kind)
        return _CHOOSE(_LESS(x, y), apply(_CAST, 0, kind), _SUB(x, y))

    return call


def _saturated(x):
    at_least, at_most = operation("max"), operation("min")
    return at_most(at_least(apply(_CAST, x, "float32"), apply(_CAST, 0, "float32")), apply(_CAST, 1, "float32"))


def _power_fast(x, y):
    return operation("exp2")(_MUL(apply(_CAST, y, "float32"), operation("__log2")(apply(_CAST, x, "float32"))))


def _functions():
    found = {"__activemask": operation("activemask"), "__ballot_sync": _of_warp("ballot_sync"), "__any_sync": _of_warp("any_sync"),
             "__all_sync": _of_warp("all_sync"), "__match_any_sync": _of_warp("match_any_sync"), "__shfl_sync": _of_warp("shfl_sync"),
             "__shfl_up_sync": _of_warp("shfl_up"), "__shfl_down_sync": _of_warp("shfl_down"), "__shfl_xor_sync": _of_warp("shfl_xor")}  # fmt: skip
    for name, op in (("__popc", "popcount"), ("__clz", "clz"), ("__ffs", "ffs"), ("__brev", "brev")):
        found[name], found[name + "ll"] = _of(op, "uint32"), _of(op, "uint64")
    for name, kind in (("__mulhi", "int32"), ("__umulhi", "uint32"), ("__mul64hi", "int64"), ("__umul64hi", "uint64")):
        found[name] = _of("mulhi", kind, kind)
    for name, kind in (("half", "float16"), ("bfloat16", "bfloat16")):
        found[f"__float2{name}"] = found[f"__float2{name}_rn"] = _converted("float32", kind)
        found[f"__float2{name}_rz"] = _converted("float32", kind, "rz")
        found[f"__{name}2float"] = _converted(kind, "float32")
        for bits, other in (("ushort", "uint16"), ("short", "int16")):
            found[f"__{name}_as_{bits}"], found[f"__{bits}_as_{name}"] = _same_bits(kind, other), _same_bits(other, kind)
    for name, kind, bits, other in (("float", "float32", "int", "int32"), ("float", "float32", "uint", "uint32"),
                                    ("double", "float64", "longlong", "int64")):  # fmt: skip
        found[f"__{name}_as_{bits}"], found[f"__{bits}_as_{name}"] = _same_bits(kind, other), _same_bits(other, kind)
    for name, kind in (("int", "int32"), ("uint", "uint32"), ("ll", "int64"), ("ull", "uint64")):
        for mode, op in (("rn", "nearbyint"), ("rz", "trunc"), ("ru", "ceil"), ("rd", "floor")):
            found[f"__float2{name}_{mode}"] = _whole(op, "float32", kind)
        found[f"__{name}2float_rn"] = _converted(kind, "float32")
    for mode in ("rn", "rz", "ru", "rd"):
        for op, name, operands in (("ieee_add", "add", 2), ("ieee_sub", "sub", 2), ("ieee_mul", "mul", 2), ("ieee_fdiv", "div", 2),
                                   ("ieee_frcp", "rcp", 1), ("ieee_fsqrt", "sqrt", 1)):  # fmt: skip
            for letter, kind in (("f", "float32"), ("d", "float64")):
                found[f"__{letter}{name}_{mode}"] = _of(op, *[kind] * operands, options=(mode,))
        for name, kind in (("__fmaf", "float32"), ("__fma", "float64")):
            found[f"{name}_{mode}"] = _of("ieee_fmaf", kind, kind, kind, options=(mode,))
    found["__frsqrt_rn"] = _of("ieee_frsqrt", "float32")
    for name in ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan"):
        found[f"__{name}f"] = _of(f"__{name}", "float32")
    one = """acos acosh asin asinh atan atanh ceil cos cosh erf exp exp10 exp2 expm1 fabs floor log log10 log1p log2 nearbyint rsqrt
             sin sinh sqrt tan tanh trunc""".split()  # fmt: skip
    two = {"atan2": "atan2", "copysign": "copysign", "fmod": "fmod", "hypot": "hypot", "pow": "pow", "fmin": "min", "fmax": "max"}
    for kind, suffix in (("float32", "f"), ("float64", "")):
        found.update({name + suffix: _of(name, kind) for name in one}, **{"rint" + suffix: _of("nearbyint", kind)})
        found.update({name + suffix: _of(op, kind, kind) for name, op in two.items()})
        found["round" + suffix], found["fdim" + suffix] = _round(kind), _dim(kind)
    found.update({"__saturatef": _saturated, "__powf": _power_fast})
    found.update({name: _by_operands(name, ("int", "uint", "float32", "float64")) for name in ("min", "max", "abs")})
    halves = ("float16", "bfloat16")
    found.update({f"__h{name}": _by_operands(name, halves) for name in ("add", "sub", "mul", "max", "min", "abs")})
    found.update({f"h{name}": _by_operands(name, halves) for name in ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "sqrt", "rsqrt", "floor", "ceil", "trunc")},
                 hrint=_by_operands("nearbyint", halves), __hdiv=_by_operands("div", halves))  # fmt: skip
    return found


_FUNCTIONS = {}


def call(name, arguments, result):
    """The value of that function as `result`; None if the language does not have it."""
    if not _FUNCTIONS:
        _FUNCTIONS.update(_functions())
    function = _FUNCTIONS.get(name)
    value = function(*arguments) if function else None
    return None if value is None else apply(_CAST, value, str(_dtype(result)))
