"""Every public name of TileLang's language, from language_names.tsv: it works, with the names of its parameters, or it is refused
by its own words where it is used. Programs that use the names are compared with NumPy."""
import csv
import enum
import inspect
import math
import pathlib
import re
import types
from fractions import Fraction

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from tilewright.refused import REFUSED

HERE = pathlib.Path(__file__).parent
with open(HERE / "language_names.tsv", encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
CLASSES = {row["name"]: row["class"] for row in ROWS}
ENGINES = ["interpreter", "cpu", "simulator"]
every_engine = pytest.mark.parametrize("engine", ENGINES)
# Operations whose parts are not there: they count as missing.
NOT_THERE = frozenset(
    "SparseTensorCoreIntrinEmitter TensorCoreIntrinEmitterWithLadderTransform WGMMADescriptorParams alloc_descriptor alloc_wgmma_desc "
    "call_kernel compute_gmma_descriptor increase_descriptor_offset initialize_wgmma_descriptor make_blockscaled_gemm_layout "
    "ptx_mma_block_scale ptx_mma_sp ptx_wgmma_rs ptx_wgmma_sp_rs ptx_wgmma_sp_ss ptx_wgmma_ss".split()
)


def run(program, engine, *arrays):
    tw.compile(program, engine=engine)(*arrays)


# ---- the list


@pytest.mark.parametrize("name", CLASSES)
def test_the_name_is_there(name):
    space = {}
    exec(f"from tilewright.language import {name} as found", space)
    assert space["found"] is getattr(T, name)
    assert name in dir(T)


def test_the_stub_shows_every_name():
    stub = pathlib.Path(T.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    shown = set(re.findall(r"^ *(?:def |class )?(\w+)[:(]", stub, re.MULTILINE)) | set(re.findall(r" as (\w+)$", stub, re.MULTILINE))
    shown |= {name for line in re.findall(r"^ *((?:\w+ = )+)", stub, re.MULTILINE) for name in line.split(" = ")}
    assert set(CLASSES) - shown == set()


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused_says_so_when_it_is_used(name):
    assert CLASSES[name] in ("tvm", "sm100") or name in NOT_THERE
    with pytest.raises(tw.CompileError, match=f"TW1102.*{name}: ") as error:
        getattr(T, name)(1, 2)
    assert error.value.help
    if CLASSES[name] == "sm100":
        assert "needs sm_100, which is not there yet" in str(error.value)
    assert not isinstance(1, getattr(T, name))


def _parameters(row):
    names = [p.partition("=")[0].strip() for p in (row["parameters"] or "").split(", ")]
    return [n for n in names if n.isidentifier() and n != "span"]


@pytest.mark.parametrize("row", [r for r in ROWS if r["class"] in ("op", "tvm") and r["name"] not in REFUSED], ids=lambda r: r["name"])
def test_parameters_have_the_names_of_the_original(row):
    value = getattr(T, row["name"])
    if isinstance(value, T.dtype) or (isinstance(value, type) and issubclass(value, enum.Enum)) or row["name"] in _OBJECTS:
        return
    if value is T.disable_warp_group_reg_alloc or isinstance(value, types.ModuleType):  # a hint takes whatever it is given
        return
    value = getattr(value, "made", value)  # of a node, what it makes
    parameters = inspect.signature(value).parameters
    assert [n for n in _parameters(row) if n not in parameters] == [], inspect.signature(value)
    assert inspect.Parameter.VAR_KEYWORD not in {p.kind for p in parameters.values()} or row["name"] in _TAKE_MORE


# What is an object, or is made by the package alone: nobody calls it with the original's arguments.
_OBJECTS = frozenset(
    "PrimFunc JITFunc KernelLaunchFrame WarpSpecializeFrame Ref handle comm_reducer attr call_extern dynamic symbolic abs2 add2 const "
    "dtype dtypes WSSyncKind AnyDType StridedTensor kernel WSID Any PrimExpr".split()
)


# Classes that take what their heirs do, or what says how the original's text is made.
_TAKE_MORE = frozenset("BaseTileScheduler PersistentTileScheduler TensorCoreIntrinEmitter WGSparseTensorCoreIntrinEmitter".split())


def test_each_operation_is_used_in_a_program():
    text = "".join(f.read_text(encoding="utf-8") for f in HERE.glob("t*.py"))
    used = {*re.findall(r"\bT\.(\w+)", text), *FLOATS, *INTEGERS, *KINDS}
    used |= {f"{element}x{lanes}" for element in ELEMENTS for lanes in LANES}
    rows = {name for name, kind in CLASSES.items() if kind in ("op", "vector type")}
    assert rows - used - NOT_THERE == set()


# ---- scalar functions: one program for all of a kind, every engine the same bits

_POSITIVE = frozenset("log __log log2 __log2 log10 __log10 log1p sqrt ieee_fsqrt rsqrt ieee_frsqrt acosh".split())
_erf = np.vectorize(math.erf)
FLOATS = {
    "abs": np.abs, "fabs": np.abs, "acos": np.arccos, "acosh": lambda x: np.arccosh(x), "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "ceil": np.ceil, "cos": np.cos, "__cos": np.cos, "cosh": np.cosh, "erf": _erf, "exp": np.exp,
    "__exp": np.exp, "exp10": lambda x: 10.0**x, "__exp10": lambda x: 10.0**x, "exp2": np.exp2, "floor": np.floor, "fast_rcp": lambda x: 1 / x,
    "ieee_frcp": lambda x: 1 / x, "ieee_frsqrt": lambda x: 1 / np.sqrt(x), "ieee_fsqrt": np.sqrt, "log": np.log, "__log": np.log,
    "log10": np.log10, "__log10": np.log10, "log1p": np.log1p, "log2": np.log2, "__log2": np.log2, "nearbyint": np.rint, "round": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sin": np.sin, "__sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "tan": np.tan, "__tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
    "atan2": np.arctan2, "copysign": np.copysign, "fmod": np.fmod, "hypot": np.hypot, "nextafter": None, "pow": None, "ldexp": None,
    "fmul": np.multiply, "ieee_add": np.add, "ieee_sub": np.subtract, "ieee_mul": np.multiply, "ieee_fdiv": np.divide, "max": np.maximum,
    "min": np.minimum, "fma": None, "ieee_fmaf": None, "clamp": None, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "if_then_else": None,
}  # fmt: skip
_UNARY = [n for n, f in FLOATS.items() if f is not None and n not in
          "atan2 copysign fmod hypot fmul ieee_add ieee_sub ieee_mul ieee_fdiv max min".split()]  # fmt: skip
_BINARY = "atan2 copysign fmod hypot fmul ieee_add ieee_sub ieee_mul ieee_fdiv max min".split()


@every_engine
def test_functions_of_floats(engine):
    n = 64
    names = [*_UNARY, *_BINARY]

    @T.prim_func
    def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32"), Z: T.Tensor((len(names), n), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                for k, name in enumerate(names):
                    f = getattr(T, name)
                    x = X[i]
                    if name == "acosh":
                        x = X[i] * X[i] + 1.0
                    elif name in ("acos", "asin", "atanh"):
                        x = X[i] * 0.125
                    elif name in _POSITIVE:
                        x = T.abs(X[i]) + 0.125
                    Z[k, i] = f(x, Y[i]) if name in _BINARY else T.cast(f(x), "float32")

    rng = np.random.default_rng(1)
    x, y = rng.uniform(-4, 4, n).astype("float32"), rng.uniform(0.5, 4, n).astype("float32")
    z = np.empty((len(names), n), "float32")
    run(main, engine, x, y, z)
    for k, name in enumerate(names):
        at = x.astype("float64")
        if name == "acosh":
            at = (x * x + np.float32(1)).astype("float64")
        elif name in ("acos", "asin", "atanh"):
            at = at / 8
        elif name in _POSITIVE:
            at = (np.abs(x) + np.float32(0.125)).astype("float64")
        want = FLOATS[name](at, y.astype("float64")) if name in _BINARY else FLOATS[name](at)
        assert np.allclose(z[k], want, rtol=2e-6, atol=1e-6), name
    if engine != "interpreter":
        same = np.empty_like(z)
        run(main, "interpreter", x, y, same)
        assert (same.view("uint32") == z.view("uint32")).all()


SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 0.5, 3.0, 1e-45, -1e-45, 1.17549435e-38, 3.4028235e38, -3.4028235e38, math.inf, -math.inf, math.nan]


def _pairs(dtype):
    a = np.array(SPECIAL, dtype)
    return np.repeat(a, len(a)), np.tile(a, len(a))


@every_engine
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_of_functions_of_two(engine, dtype):
    x, y = _pairs(dtype)
    n = len(x)

    @T.prim_func
    def main(X: T.Tensor((n,), dtype), Y: T.Tensor((n,), dtype), Z: T.Tensor((4, n), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                Z[0, i] = T.nextafter(X[i], Y[i])
                Z[1, i] = T.hypot(X[i], Y[i])
                Z[2, i] = T.ldexp(X[i], T.if_then_else(T.isfinite(Y[i]), T.trunc(Y[i]), T.cast(0, dtype)))
                Z[3, i] = T.call_intrin(dtype, "tir.pow", T.abs(X[i]), T.cast(0.5, dtype))

    z = np.empty((4, n), dtype)
    run(main, engine, x, y, z)
    with np.errstate(all="ignore"):
        powers = np.where(np.isfinite(y), np.trunc(y), 0)
        assert np.array_equal(z[0], np.nextafter(x, y), equal_nan=True)
        zeros = (z[0] == 0) & ~np.isnan(z[0])
        assert (np.signbit(z[0])[zeros] == np.signbit(np.nextafter(x, y))[zeros]).all()
        assert np.allclose(z[1], np.hypot(x, y), rtol=1e-7, equal_nan=True)
        held = np.clip(powers, -3000, 3000).astype("int32")
        assert np.array_equal(z[2], np.ldexp(x, held), equal_nan=True)
        assert np.allclose(z[3], np.sqrt(np.abs(x)), rtol=1e-7, equal_nan=True)


# ---- directed rounding, against exact fractions


def _rounded(exact, dtype, mode, zero):
    """An exact rational in a direction; `zero` where it is none."""
    if exact == 0:
        return zero
    try:
        near = np.array(float(exact)).astype(dtype)[()] if dtype == "float64" else np.float32(float(exact))
    except OverflowError:
        near = dtype_type(dtype)(math.copysign(math.inf, exact))
    top = dtype_type(dtype)
    down, up = top(-math.inf), top(math.inf)
    low = near
    while not math.isinf(low) and Fraction(float(low)) > exact:
        low = np.nextafter(low, down)
    if math.isinf(low) and low > 0:
        low = np.finfo(dtype).max
    high = low if not math.isinf(low) and Fraction(float(low)) == exact else np.nextafter(low, up)
    while not math.isinf(high) and Fraction(float(high)) < exact:
        low, high = high, np.nextafter(high, up)
    if not math.isinf(high) and Fraction(float(high)) == exact:
        return high
    return {"ru": high, "rd": low, "rz": low if exact > 0 else high}[mode]


def dtype_type(name):
    return np.dtype(name).type


@every_engine
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_modes(engine, dtype):
    rng = np.random.default_rng(2)
    finite = [v for v in SPECIAL if math.isfinite(v)] + [1 / 3, 5e-42, 2.0**-126 * 1.5, 1e30, 7e-39]
    count = 240
    x = np.concatenate([rng.choice(finite, count), rng.normal(size=count) * 10.0 ** rng.integers(-30, 30, count)]).astype(dtype)
    y = np.concatenate([rng.choice(finite, count), rng.normal(size=count)]).astype(dtype)
    c = np.concatenate([rng.choice(finite, count), -(x[count:].astype("float64") * y[count:]).astype(dtype)]).astype(dtype)
    n, modes = len(x), ["rz", "ru", "rd", "rn"]

    @T.prim_func
    def main(X: T.Tensor((n,), dtype), Y: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype), Z: T.Tensor((4, 7, n), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                for m, mode in enumerate(modes):
                    Z[m, 0, i] = T.ieee_add(X[i], Y[i], mode)
                    Z[m, 1, i] = T.ieee_sub(X[i], Y[i], rounding_mode=mode)
                    Z[m, 2, i] = T.ieee_mul(X[i], Y[i], mode)
                    Z[m, 3, i] = T.ieee_fdiv(X[i], Y[i], mode)
                    Z[m, 4, i] = T.ieee_fmaf(X[i], Y[i], C[i], mode)
                    Z[m, 5, i] = T.ieee_frcp(X[i], mode)
                    Z[m, 6, i] = T.ieee_fsqrt(T.abs(X[i]), mode)

    z = np.empty((4, 7, n), dtype)
    run(main, engine, x, y, c, z)
    with np.errstate(over="ignore"):
        _check_directions(x, y, c, z, dtype, modes)


def _check_directions(x, y, c, z, dtype, modes):
    for i in range(len(x)):
        a, b, d = (Fraction(float(v[i])) for v in (x, y, c))
        for m, mode in enumerate(modes[:3]):
            for k, exact in enumerate((a + b, a - b, a * b, a / b if b else None, a * b + d, 1 / a if a else None)):
                if exact:
                    got, want = z[m, k, i], _rounded(exact, dtype, mode, 0.0)
                    assert got == want, (mode, k, x[i], y[i], c[i])
            root, square = z[m, 6, i], abs(a)
            if square:
                assert (Fraction(float(root)) ** 2 - square <= 0) if mode != "ru" else (Fraction(float(root)) ** 2 - square >= 0)
                beside = np.nextafter(root, dtype_type(dtype)(math.inf if mode != "ru" else 0))
                assert (Fraction(float(beside)) ** 2 > square) if mode != "ru" else (Fraction(float(beside)) ** 2 < square)
    cancelled = (x == y) & (x != 0)  # in their difference: -0 downward, else +0
    assert np.signbit(z[2, 1][cancelled]).all() and not np.signbit(z[1, 1][cancelled]).any()


def test_rounding_modes_that_are_refused():
    def program(mode, dtype):
        @T.prim_func
        def main(X: T.Tensor((8,), dtype)):
            with T.Kernel(1, threads=1):
                X[0] = T.ieee_add(X[1], X[2], mode)

        return main

    with pytest.raises(ValueError, match="Invalid rounding mode 'up' of ieee_add"):
        program("up", "float32")
    with pytest.raises(TypeError, match="ieee_add_ru takes float32 or float64, but an operand is float16"):
        program("ru", "float16")


# ---- integers

INTEGERS = {
    "bitwise_and": lambda a, b: a & b, "bitwise_or": lambda a, b: a | b, "bitwise_xor": lambda a, b: a ^ b,
    "shift_left": lambda a, b: a << (b & 7), "shift_right": lambda a, b: a >> (b & 7), "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b, "truncdiv": lambda a, b: np.trunc(a / b).astype(a.dtype), "truncmod": lambda a, b: np.fmod(a, b),
    "cdiv": lambda a, b: -(-a // b), "ceildiv": lambda a, b: -(-a // b), "align_up": lambda a, b: -(-a // b) * b,
    "bitwise_not": lambda a, b: ~a, "popcount": lambda a, b: np.array([bin(int(v) & 0xFFFFFFFF).count("1") for v in a]),
    "clz": lambda a, b: np.array([32 - (int(v) & 0xFFFFFFFF).bit_length() for v in a]), "max_value": None, "min_value": None,
}  # fmt: skip


@every_engine
def test_functions_of_integers(engine):
    n, names = 64, [k for k, f in INTEGERS.items() if f is not None]

    @T.prim_func
    def main(X: T.Tensor((n,), "int32"), Y: T.Tensor((n,), "int32"), Z: T.Tensor((len(names) + 1, n), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                for k, name in enumerate(names):
                    if name in ("bitwise_not", "popcount", "clz"):
                        Z[k, i] = getattr(T, name)(X[i])
                    elif name.startswith("shift"):
                        Z[k, i] = getattr(T, name)(X[i], Y[i] & 7)
                    else:
                        Z[k, i] = getattr(T, name)(X[i], Y[i])
                Z[len(names), i] = T.truncmod(T.max_value("int32"), 1000) + T.min_value("int32")

    rng = np.random.default_rng(3)
    x, y = rng.integers(-(10**6), 10**6, n).astype("int32"), rng.integers(1, 1000, n).astype("int32")
    z = np.empty((len(names) + 1, n), "int32")
    run(main, engine, x, y, z)
    for k, name in enumerate(names):
        assert (z[k] == INTEGERS[name](x, y)).all(), name
    assert (z[-1] == (2**31 - 1) % 1000 - 2**31).all()


# ---- dtypes: stored, loaded, converted

KINDS = (
    "int4 int8 int16 int32 int64 uint8 uint16 uint32 uint64 short long int uint bool boolean half double float tfloat32 float16 float32 "
    "float64 bfloat16 float8_e4m3fn float8_e4m3 float8_e5m2 float8_e3m4 float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu "
    "float6_e2m3fn float6_e3m2fn float4_e2m1fn"
).split()
# Bits of the exponent and the mantissa, bias, and which codes are no numbers: "ieee" infinity and NaN, "nan" the last code of
# either sign, "one zero" the code of -0 alone, "none".
FORMATS = {
    "float8_e4m3fn": (4, 3, 7, "nan"), "float8_e3m4": (3, 4, 3, "ieee"), "float8_e4m3b11fnuz": (4, 3, 11, "one zero"),
    "float8_e4m3fnuz": (4, 3, 8, "one zero"), "float8_e5m2": (5, 2, 15, "ieee"), "float8_e5m2fnuz": (5, 2, 16, "one zero"),
    "float6_e2m3fn": (2, 3, 1, "none"), "float6_e3m2fn": (3, 2, 3, "none"),
}  # fmt: skip


def decoded(kind):
    """The value of every code of a format."""
    exponents, mantissas, bias, special = FORMATS[kind]
    half = 1 << (exponents + mantissas)
    values = []
    for code in range(2 * half):
        exponent, fraction = code % half >> mantissas, code % (1 << mantissas)
        value = math.ldexp(fraction + (1 << mantissas if exponent else 0), max(exponent, 1) - bias - mantissas)
        if special == "ieee" and exponent == (1 << exponents) - 1:
            value = math.nan if fraction else math.inf
        if (special == "nan" and code % half == half - 1) or (special == "one zero" and code == half):
            value = math.nan
        values.append(-value if code >= half else value)
    return np.array(values)


def encoded(kind, x):
    """The code of the nearest value, the even one of two, for numbers; beyond the largest the largest."""
    values, special = decoded(kind), FORMATS[kind][3]
    half = len(values) // 2
    magnitudes = values[:half][np.isfinite(values[:half])]
    codes = []
    for v in x.astype("float64"):
        distance = abs(magnitudes - abs(v))
        code = max(np.flatnonzero(distance == distance.min()), key=lambda c: c % 2 == 0)
        codes.append(code + half if np.signbit(v) and not (special == "one zero" and code == 0) else code)
    return np.array(codes, "uint8")


def test_formats_are_those_of_the_standards():
    largest = {k: np.nanmax(np.where(np.isinf(decoded(k)), np.nan, decoded(k))) for k in FORMATS}
    assert largest == {"float8_e4m3fn": 448, "float8_e3m4": 15.5, "float8_e4m3b11fnuz": 30, "float8_e4m3fnuz": 240, "float8_e5m2": 57344,
                       "float8_e5m2fnuz": 57344, "float6_e2m3fn": 7.5, "float6_e3m2fn": 28}  # fmt: skip


@every_engine
@pytest.mark.parametrize("kind", KINDS)
def test_dtypes_are_stored_and_converted(engine, kind):
    n, of = 32, getattr(T, kind)

    @T.prim_func
    def main(X: T.Tensor((n,), "float32"), Z: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            held, other = T.alloc_shared((n,), of), T.alloc_shared((n,), of)
            T.copy(X, held)
            T.copy(held, other)
            for i in T.Parallel(n):
                Z[i] = T.cast(other[i], "float32")

    bits = np.arange(n, dtype="float32") % 2
    x = 2.0 ** np.arange(-4, 4).repeat(4).astype("float32") if kind == "float8_e8m0fnu" else bits if "bool" in kind else bits * 2 + bits[::-1]
    z = np.empty(n, "float32")
    run(main, engine, x, z)
    assert (z == x).all()


@every_engine
@pytest.mark.parametrize("kind", FORMATS)
def test_every_value_of_a_narrow_float(engine, kind):
    """All of its codes as floats; and as codes all its values, floats between each two of them, and some of all magnitudes."""
    values = decoded(kind).astype("float32")
    finite = np.unique(values[np.isfinite(values)])
    between = np.concatenate([finite[:-1] + (finite[1:] - finite[:-1]) * np.float32(p) for p in (0.25, 0.5, 0.75)])
    middles = (finite[:-1] + finite[1:]) / 2
    rng = np.random.default_rng(4)
    some = (rng.normal(size=256) * 10.0 ** rng.integers(-8, 8, 256)).astype("float32")
    beside = [np.nextafter(middles, np.float32(d)) for d in (0, math.inf)]
    x = np.concatenate([finite, between, *beside, some, np.array([0.0, -0.0, 1e-40, -1e-40], "float32")]).astype("float32")
    n, m = len(x), len(values)

    @T.prim_func
    def main(C: T.Tensor((m,), "uint8"), V: T.Tensor((m,), "float32"), X: T.Tensor((n,), "float32"), Y: T.Tensor((2, n), "uint8")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((n,), kind)
            for i in T.Parallel(m):
                V[i] = T.cast(T.reinterpret(C[i], kind), "float32")
            T.copy(X, S)
            for i in T.Parallel(n):
                Y[0, i] = T.reinterpret(T.cast(X[i], kind), "uint8")
                Y[1, i] = T.reinterpret(S[i], "uint8")

    v, y = np.empty(m, "float32"), np.zeros((2, n), "uint8")
    run(main, engine, np.arange(m, dtype="uint8"), v, x, y)
    assert np.array_equal(v, values, equal_nan=True)
    want = encoded(kind, x)
    assert (y[0] == want).all() and (y[1] == want).all()


# ---- vectors

ELEMENTS = (
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 tfloat32 float8_e4m3 float8_e4m3fn float8_e5m2 "
    "float8_e3m4 float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn"
).split()
LANES = (2, 4, 8, 16, 32, 64)


@pytest.mark.parametrize("engine", ["interpreter", "cpu"])
@pytest.mark.parametrize("element", ELEMENTS)
def test_types_of_vectors(engine, element):
    """Each type is made of values, kept in memory of vectors, computed with by lanes and stored to elements."""
    total = sum(LANES)

    @T.prim_func
    def main(X: T.Tensor((total,), "float32"), Z: T.Tensor((total,), "float32")):
        with T.Kernel(1, threads=1):
            begin = 0
            for lanes in LANES:
                of = getattr(T, f"{element}x{lanes}")
                held = T.alloc_local((2,), of)
                held[1] = of(*[X[begin + k] for k in range(lanes)])
                wide = getattr(T, f"float32x{lanes}")(held[1])
                Z[begin : begin + lanes] = wide * 2.0 + T.Broadcast(1.0, lanes)
                begin = begin + lanes

    x = 2.0 ** (np.arange(total) % 3).astype("float32")
    z = np.empty_like(x)
    run(main, engine, x, z)
    assert (z == 2 * x + 1).all()
