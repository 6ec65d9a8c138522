"""Functions of elements of tilewright.ops beside NumPy or PyTorch in float64, on every engine: shapes, broadcasting, dtypes, gradients,
what is refused, and how a GPU reaches memory."""
import concurrent.futures
import math
import re

import numpy as np
import pytest
import tilewright as tw
import tilewright.ops as ops
from tilewright import _native

RANDOM = np.random.default_rng(5)
UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}
engines = pytest.mark.parametrize("engine", ["cpu", "interpreter", "simulator"])


@pytest.fixture
def engine_of_calls(monkeypatch):
    return lambda engine: monkeypatch.setenv("TILEWRIGHT_ENGINE", engine)


def normal(*shape, dtype="float32"):
    return RANDOM.standard_normal(shape).astype(dtype)


def expect_near(got, expected, dtype="float32", ulps=8, magnitude=None):
    """ulps: of float32, of the result or of what it is made of."""
    got = np.asarray(got, np.float64)
    assert got.shape == expected.shape
    size = np.abs(expected) if magnitude is None else np.maximum(np.abs(expected), magnitude)
    allowed = size * ulps * UNIT["float32"] + np.abs(expected) * UNIT[dtype] * 1.01 + 1e-7 * (dtype == "float16") + 1e-37
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(got - expected) <= allowed) & ~(got == expected) & ~(np.isnan(got) & np.isnan(expected))
    assert not wrong.any(), (got[wrong][:3], expected[wrong][:3])


erf = np.vectorize(math.erf, otypes=[np.float64])
UNARY = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "softplus": lambda x: np.logaddexp(x, 0),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "square": np.square,
    "abs": np.abs,
    "neg": np.negative,
    "sin": np.sin,
    "cos": np.cos,
    "erf": erf,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.round,
}
POSITIVE = ("log", "log2", "log1p", "sqrt", "rsqrt")


@engines
@pytest.mark.parametrize("function", UNARY)
def test_functions_of_one_tensor(engine, function, engine_of_calls):
    engine_of_calls(engine)
    for shape, dtype in [((3, 37), "float32"), ((129,), "float16")] if engine == "cpu" else [((131,), "float32")]:
        x = normal(*shape, dtype=dtype) * np.dtype(dtype).type(3)
        x = np.abs(x) + np.dtype(dtype).type(0.01) if function in POSITIVE else x
        got = getattr(ops, function)(x)
        assert got.dtype == dtype and got.shape == shape
        with np.errstate(over="ignore"):
            expect_near(got, UNARY[function](x.astype("float64")), dtype, magnitude=np.abs(x) if "gelu" in function else None)


@engines
def test_shapes_of_one_tensor(engine, engine_of_calls):
    engine_of_calls(engine)
    for shape in [(), (1,), (0,), (3, 0, 2), (2, 3, 5, 7), (5000,)]:
        x = normal(*shape) if shape else np.asarray(normal(1)[0])
        assert np.array_equal(ops.neg(x), -x) and ops.neg(x).shape == shape
    x = normal(6, 8)
    for view in (x.T, x[::2, 1::3], x[:, ::-1]):
        assert np.array_equal(ops.neg(view), -view)


@engines
def test_special_numbers(engine, engine_of_calls):
    engine_of_calls(engine)
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], "float32")
    assert np.array_equal(ops.relu(x), [np.nan, np.inf, 0, 0, 0], equal_nan=True)
    assert np.array_equal(ops.sigmoid(x), [np.nan, 1, 0, 0.5, 0.5], equal_nan=True)
    assert np.array_equal(ops.softplus(x)[:3], [np.nan, np.inf, 0], equal_nan=True)
    assert np.array_equal(ops.abs(x), np.abs(x), equal_nan=True) and not np.signbit(ops.abs(x)[1:]).any()
    y = np.array([1.0, np.nan, 2.0, np.inf, 1.0], "float32")
    for function in ("maximum", "minimum"):
        assert np.array_equal(getattr(ops, function)(x, y), getattr(np, function)(x, y), equal_nan=True)
    ints = np.array([-(2**31), -5, 0, 7], "int32")
    assert np.array_equal(ops.abs(ints), np.abs(ints)) and np.array_equal(ops.relu(ints), np.maximum(ints, 0))
    assert np.array_equal(ops.mul(ints.astype("int64"), 3), ints.astype("int64") * 3)


BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum, "minimum": np.minimum, "pow": np.power}
SHAPES = [((7, 33), (33,)), ((7, 33), (7, 1)), ((5, 1, 9), (4, 1)), ((3, 1, 5, 1), (1, 4, 1, 6)), ((2, 3), ()), ((2, 3, 4), (2, 1, 4)), ((0, 3), (3,)),
          ((2, 3, 1, 5), (3, 4, 1)), ((1, 2, 1, 3, 1, 2), (2, 1, 2, 1, 2, 1))]  # fmt: skip


@engines
@pytest.mark.parametrize("function", BINARY)
def test_functions_of_two(engine, function, engine_of_calls):
    engine_of_calls(engine)
    shapes = SHAPES if function in ("add", "sub") else SHAPES[:1]
    for one, two in shapes:
        a, b = np.asarray(normal(*one)), np.asarray(normal(*two), "float32")
        a = np.abs(a) if function == "pow" else a
        for x, y in ((a, b), (np.abs(b) if function == "pow" else b, a)):
            expected = BINARY[function](x.astype("float64"), y.astype("float64"))
            expect_near(getattr(ops, function)(x, y), np.asarray(expected), magnitude=8 if function in ("add", "sub") else None)
    a = np.abs(normal(2, 5)) + np.float32(0.5)
    for x, y in ((a, 2.5), (0.75, a), (a, 3)):
        expect_near(getattr(ops, function)(x, y), BINARY[function](np.asarray(x, "float64"), np.asarray(y, "float64")), magnitude=8)


@engines
def test_choices_and_means(engine, engine_of_calls):
    engine_of_calls(engine)
    for dtype in ("float32", "float16", "int8", "int64", "bool", "float64"):
        c, a, b = RANDOM.random((5, 1)) < 0.5, (normal(5, 9) * 50).astype(dtype), (normal(9) * 50).astype(dtype)
        assert np.array_equal(ops.where(c, a, b), np.where(c, a, b))
    assert np.array_equal(ops.where(c, normal(1) * 0 + 2, -3.5), np.where(c, np.float32(2), np.float32(-3.5)))
    a, b, w = normal(4, 6), normal(4, 6), RANDOM.random(6).astype("float32")
    expect_near(ops.lerp(a, b, w), a + w.astype("float64") * (b.astype("float64") - a), magnitude=8)
    assert np.array_equal(ops.lerp(a, b, 1.0), b) and np.array_equal(ops.lerp(a, b, 0), a)


GATED = {"silu_and_mul": "silu", "gelu_and_mul": "gelu", "gelu_tanh_and_mul": "gelu_tanh", "relu_and_mul": "relu", "sigmoid_and_mul": "sigmoid"}


@engines
@pytest.mark.parametrize("function", GATED)
def test_gated(engine, function, engine_of_calls):
    engine_of_calls(engine)
    for shape in [(2, 3, 74), (5, 2), (0, 8)]:
        x = normal(*shape)
        a, b = np.split(x.astype("float64"), 2, -1)
        expect_near(getattr(ops, function)(x), UNARY[GATED[function]](a) * b, magnitude=np.abs(a * b))


NUMBERS = np.array([0, 1, -1, 0.4, -1.6, 2.5, 3.5, 100.5, 300, -300, 470, 1e5, -1e9, 1e20, np.inf, -np.inf, np.nan], "float32")


@engines
def test_conversions(engine, engine_of_calls):
    engine_of_calls(engine)
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(NUMBERS)
    for name, most in (("float8_e4m3fn", 448), ("float8_e5m2", 57344)):
        dtype = getattr(torch, name)
        got = ops.cast(x, name)
        assert got.dtype is dtype  # PyTorch's, but for what is too large
        assert torch.equal(got.float().nan_to_num(-1), x.clamp(-most, most).to(dtype).float().nan_to_num(-1))
        assert torch.equal(ops.cast(got, torch.float32).nan_to_num(-1), got.float().nan_to_num(-1))
        assert torch.equal(ops.cast(got, dtype).view(torch.uint8), got.view(torch.uint8))
    for name in ("int8", "int32", "uint8", "int64"):
        least, most = np.iinfo(name).min, np.iinfo(name).max
        none = least if name == "int64" else 0  # as a GPU
        expected = [none if np.isnan(v) else int(min(max(np.trunc(float(v)), least), most)) if np.isfinite(v) else (most if v > 0 else least) for v in NUMBERS]
        got = ops.cast(NUMBERS, name)
        assert got.dtype == name and got.tolist() == expected
    assert ops.cast(NUMBERS, "bool").tolist() == NUMBERS.astype(bool).tolist()
    whole = RANDOM.integers(-(2**40), 2**40, 77)
    for name in ("int8", "uint16", "int32", "float16", "float64", "float32", "bool"):
        with np.errstate(over="ignore"):
            assert np.array_equal(ops.cast(whole, name), whole.astype(name))
    half = normal(5, 7, dtype="float16")
    assert np.array_equal(ops.cast(half, np.float32), half.astype("float32"))
    assert torch.equal(ops.cast(x[:-3], "bfloat16"), x[:-3].bfloat16())


def expect_gradients(ours, theirs, *tensors):
    import torch

    wide = [t.detach().double().requires_grad_(t.requires_grad) for t in tensors]
    y, expected = ours(*tensors), theirs(*wide)
    assert torch.allclose(y.double(), expected, atol=1e-4, rtol=1e-4)
    grad = torch.randn(y.shape)
    of = [(a, b) for a, b in zip(tensors, wide) if a.requires_grad]
    for got, wanted in zip(torch.autograd.grad(y, [a for a, _ in of], grad), torch.autograd.grad(expected, [b for _, b in of], grad.double())):
        assert got.shape == wanted.shape and torch.allclose(got.double(), wanted, atol=1e-4, rtol=1e-4)


def test_gradients():
    torch = pytest.importorskip("torch")
    f = torch.nn.functional
    theirs = {"relu": f.relu, "gelu": f.gelu, "gelu_tanh": lambda x: f.gelu(x, approximate="tanh"), "silu": f.silu, "softplus": f.softplus}
    for function in UNARY:
        x = torch.randn(4, 9) * 2
        x = (x.abs() + 0.3 if function in (*POSITIVE, "reciprocal") else x).requires_grad_()
        expect_gradients(getattr(ops, function), theirs.get(function) or getattr(torch, function), x)
    for function, name in GATED.items():
        act = theirs.get(name) or getattr(torch, name)
        expect_gradients(getattr(ops, function), lambda x, act=act: act(x[..., :5]) * x[..., 5:], torch.randn(3, 10, requires_grad=True))


def test_gradients_of_several():
    torch = pytest.importorskip("torch")
    for function in BINARY:
        a, b = (torch.rand(3, 1, 5) + 0.5).requires_grad_(), (torch.rand(4, 5) + 0.5).requires_grad_()
        expect_gradients(getattr(ops, function), getattr(torch, function), a, b)
        expect_gradients(lambda a, f=function: getattr(ops, f)(a, 2.0), lambda a, f=function: getattr(torch, f)(a, torch.tensor(2.0)), a)
    a, b, w = torch.randn(3, 5, requires_grad=True), torch.randn(5, requires_grad=True), torch.rand(3, 1, requires_grad=True)
    expect_gradients(ops.lerp, torch.lerp, a, b.detach().expand(3, 5).clone().requires_grad_(), w)
    c = torch.rand(3, 5) < 0.5
    expect_gradients(lambda a, b: ops.where(c, a, b), lambda a, b: torch.where(c, a, b), a, b)
    expect_gradients(lambda a: ops.cast(ops.mul(a, 2.0), "float64"), lambda a: 2 * a, a)


def test_operators_of_torch():
    torch = pytest.importorskip("torch")

    @torch.compile(fullgraph=True, backend="aot_eager")
    def block(x, y):
        return ops.silu_and_mul(ops.add(ops.gelu(x), y))

    x, y = torch.randn(4, 10, requires_grad=True), torch.randn(10, requires_grad=True)
    block(x, y).sum().backward()
    assert x.grad.shape == x.shape and y.grad.shape == y.shape
    torch.library.opcheck(torch.ops.tilewright.elements.default, (x, "gelu"))
    torch.library.opcheck(torch.ops.tilewright.elements_of_several.default, (x, y, None, "mul", []))


@pytest.mark.parametrize("dtype, vector", [("float32", "float4"), ("bfloat16", "uint4"), ("float16", "uint4")])
def test_a_gpu_reaches_memory_by_16_bytes(dtype, vector):
    for options in ({"function": "silu"}, {"function": "add", "operands": "11,01"}, {"function": "gelu", "gated": "true", "operands": "11"},
                    {"function": "tanh", "backward": "true"}):  # fmt: skip
        program = _native.library_program("elementwise", {**options, "x": dtype, "result": dtype, "columns": "1024"})
        source = tw.Kernel(program, "cuda", "sm_90a", []).source
        assert re.search(rf"(= \*|, )\(const {vector}\*\)&", source) and f"({vector}*)&Y[" in source


REFUSED = [
    (lambda: ops.add(normal(3, 4), normal(3)), "TW4007.*do not go together: 'a' \\(3, 4\\), 'b' \\(3,\\)", ValueError),
    (lambda: ops.add(normal(3), normal(3, dtype="float16")), "TW4004.*'a' has dtype float32, but 'b' has float16", TypeError),
    (lambda: ops.add(1, 2), "TW4002.*no operand is a tensor", TypeError),
    (lambda: ops.add(np.ones(3, "int32"), 0.5), "TW4004.*'b' is 0.5", TypeError),
    (lambda: ops.exp(np.ones(3, "int32")), "TW4004.*exp: 'x' has dtype int32", TypeError),
    (lambda: ops.exp([1.0]), "TW4002", TypeError),
    (lambda: ops.where(normal(3), normal(3), normal(3)), "TW4004.*'condition' has dtype float32", TypeError),
    (lambda: ops.silu_and_mul(normal(3, 5)), "TW4007.*two halves", ValueError),
    (lambda: ops.cast(normal(3), "int4"), "TW1080.*dtype int4", None),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(number):
    call, words, also = REFUSED[number]
    with pytest.raises(tw.TilewrightError, match=words) as error:
        call()
    assert error.value.file == __file__ and (also is None or isinstance(error.value, also))


def test_options_of_the_library_are_checked():
    for options, words in (({"function": "sine"}, "no function 'sine'"), ({"function": "add"}, "operands of 'add' are '1'"),
                           ({"function": "add", "operands": "11,1"}, "'11,1'"), ({"function": "add", "operands": "01,01"}, "'01,01'"),
                           ({"function": "exp", "x": "int32"}, "not computed on int32"), ({"function": "cast", "backward": "true"}, "no gradient"),
                           ({"function": "silu", "gated": "true"}, "gated 'silu'")):  # fmt: skip
        with pytest.raises(tw.CompileError, match=f"TW1080.*{words}"):
            _native.library_program("elementwise", options)


def test_what_was_planned_runs_sealed():
    ops.plan([ops.gelu.plan(ops.Spec((5, 16))), ops.add.plan(ops.Spec((5, 16)), ops.Spec((16,)))])
    ops.seal()
    try:
        assert ops.add(ops.gelu(normal(5, 16)), normal(16)).shape == (5, 16)
        with pytest.raises(tw.CompileError, match="TW1080.*elementwise"):
            ops.erf(normal(5, 16, dtype="float16"))
    finally:
        ops.unseal()


@pytest.mark.parametrize("engine", ["simulator", "interpreter"])
def test_quotients_of_zeros_are_zeros_with_their_sign(engine_of_calls, engine):
    """Among other quotients, among such as are none, and by divisors that are extreme."""
    engine_of_calls(engine)
    a = normal(8192)
    a[::3], a[1::7], a[2::96] = 0.0, -0.0, np.float32(1e-41)
    b = normal(8192)
    b[4000:] = np.abs(b[4000:]) + 0.5
    b[100::512], b[101::512], b[102::512] = np.inf, 0.0, 1e38
    a[7000:], b[7000:] = 0.0, 2.0
    got = np.asarray(ops.div(a, b))
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = a / b
    same = (got == expected) & (np.signbit(got) == np.signbit(expected))
    assert (same | (np.isnan(got) & np.isnan(expected))).all()
    got = np.asarray(ops.floor_divide(a, b))
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = np.floor_divide(a.astype(np.float64), b)
    moderate = np.abs(whole) < 2**24
    assert (got == whole)[moderate].all()


@pytest.mark.parametrize("engine", ["simulator", "interpreter", "cpu"])
@pytest.mark.parametrize("count", [40, 5001, 8192])
def test_truths_are_stored_whole(engine_of_calls, engine, count):
    engine_of_calls(engine)
    a, b = normal(count), normal(count)
    a[::5], b[::5] = 0.0, 0.0
    truth = np.asarray(ops.gt(a, b))
    assert truth.dtype == bool and (truth == (a > b)).all()
    assert (np.asarray(ops.logical_xor(truth, a == b)) == (truth ^ (a == b))).all()
    assert (np.asarray(ops.where(truth, a, b)) == np.where(a > b, a, b)).all()


def test_calls_like_earlier_ones_take_no_python(engine_of_calls):
    """Tensors of one shape in any place beside numbers, defaults left out, conditions of another dtype: once called, the extension module
    finds the kernel."""
    torch = pytest.importorskip("torch")
    engine_of_calls("interpreter")
    a, b, i = torch.randn(3, 5), torch.randn(3, 5), torch.arange(15, dtype=torch.int32).reshape(3, 5)
    mask = a > 0
    calls = [
        (ops.add, (a, b), a + b), (ops.mul, (a, 2.0), a * 2), (ops.mul, (2.0, a), a * 2), (ops.sub, (3, i), 3 - i), (ops.gt, (a, 0.5), a > 0.5),
        (ops.leaky_relu, (a,), torch.nn.functional.leaky_relu(a)), (ops.leaky_relu, (a, 0.5), torch.nn.functional.leaky_relu(a, 0.5)),
        (ops.where, (mask, a, b), torch.where(mask, a, b)), (ops.where, (mask, 0.0, b), torch.where(mask, 0.0, b)),
        (ops.where, (mask, i, i + 1), torch.where(mask, i, i + 1)), (ops.clamp, (a, -0.5, 0.5), a.clamp(-0.5, 0.5)),
        (ops.addcmul, (a, b, a, 2.0), a + 2 * b * a), (ops.eq, (mask, ~mask), torch.zeros_like(mask)),
    ]  # fmt: skip
    for function, operands, expected in calls:
        for again in (False, True):
            through_python = []
            taken = function._function
            function._function = lambda *o, taken=taken, **n: through_python.append(o) or taken(*o, **n)
            try:
                made = function(*operands)
            finally:
                function._function = taken
            assert made.dtype == expected.dtype and torch.allclose(made.float(), expected.float(), atol=1e-6)
        assert not through_python, (function, operands)
    # Other shapes, gaps, dtypes and a gradient do not go that way, and are right.
    assert torch.equal(ops.mul(a.T, 2.0), a.T * 2) and torch.equal(ops.where(mask.T, a.T, b.T), torch.where(mask.T, a.T, b.T))
    assert torch.equal(ops.where(mask, a.double(), b.double()), torch.where(mask, a, b).double())
    assert torch.equal(ops.where(mask[:1], a, b), torch.where(mask[:1], a, b)) and torch.equal(ops.mul(i, 2), i * 2)
    with pytest.raises(tw.TilewrightError, match="'b' is 0.5, but the tensors have dtype int32"):
        ops.mul(i, 0.5)
    t = a.clone().requires_grad_()
    ops.mul(t, 2.0).sum().backward()
    assert torch.equal(t.grad, torch.full_like(a, 2))


def test_other_calls_after_one_that_is_remembered(engine_of_calls):
    """Whatever tells a call from those before it, once the kernel of such operands is known: in the tensor, its type or what is under way."""
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    engine_of_calls("cpu")
    a, b = torch.randn(3, 5), torch.randn(3, 5)
    for _ in range(2):
        assert torch.equal(ops.add(a, b), a + b)
    for x, y in [(a, a), (a[0, 0], b[0, 0]), (a[:0], b[:0]), (a.T, b.T), (a[:, 1:], b[:, 1:]), (a.flatten()[1:], b.flatten()[:-1]), (a, b[:1]),
                 (a[:1].expand(3, 5), b), (torch.randn(2, 3, 5), torch.randn(2, 3, 5)), (torch.randn(10000), torch.randn(10000)), (a.half(), b.half()),
                 (a.int(), b.int()), (a, b)]:  # fmt: skip
        got = ops.add(x, y)
        assert torch.equal(got, x + y) and got.dtype == x.dtype and got.is_contiguous() and got.shape == torch.broadcast_shapes(x.shape, y.shape)
        assert got.data_ptr() not in (x.data_ptr(), y.data_ptr()) or not got.numel()
    # The same tensors, of another size, with other memory, of another dtype and with a gradient.
    x, y = a.clone(), b.clone()
    ops.add(x, y)
    x.resize_(2, 2), y.resize_(2, 2)
    assert torch.equal(ops.add(x, y), x + y) and ops.add(x, y).shape == (2, 2)
    x.set_(torch.randn(4, 4).T), y.set_(torch.randn(4, 4))
    assert torch.equal(ops.add(x, y), x + y)
    x.data, y.data = torch.randn(7).double().long(), torch.randn(7).double().long()
    assert ops.add(x, y).dtype == torch.int64 and torch.equal(ops.add(x, y), x + y)
    x.data, y.data = torch.randn(7), torch.randn(7)
    assert not ops.add(x, y).requires_grad
    x.requires_grad_()
    ops.add(x, y).sum().backward()
    assert torch.equal(x.grad, torch.ones(7)) and not ops.add(x.detach(), y).requires_grad
    with torch.no_grad():
        assert not ops.add(x, y).requires_grad
    with torch.inference_mode():
        assert torch.equal(ops.add(x, y), x + y)
    assert torch.equal(ops.add(torch.nn.Parameter(a), b), a + b) and ops.add(torch.nn.Parameter(a), b).grad_fn is not None

    class Own(torch.Tensor):
        pass

    for _ in range(2):
        assert type(ops.add(a.as_subclass(Own), b)) is Own and torch.equal(ops.add(a.as_subclass(Own), b).as_subclass(torch.Tensor), a + b)
    z = torch.randn(15, dtype=torch.complex64).conj().imag
    refused = [
        (lambda: ops.add(z, torch.zeros(15)), "TW4002", "the numbers of the other sign"), (lambda: ops.add(a, torch._neg_view(b)), "TW4002", "the other sign"),
        (lambda: torch.vmap(lambda v: ops.add(v, v))(a), "TW4002", "cannot be handed to a kernel"),
        (lambda: torch.func.grad(lambda v: ops.add(v, b).sum())(a), "TW4002", "cannot be handed to a kernel"),
        (lambda: ops.add(a.to("meta"), b.to("meta")), "TW4002", "cannot be handed to a kernel"), (lambda: ops.add(a, b.to("meta")), "TW4002", "argument 1"),
        (lambda: ops.add(a.to_sparse(), b), "TW4002", "cannot be handed to a kernel"), (lambda: ops.add(a, b.int()), "TW4004", "'b' has int32"),
        (lambda: ops.add(a, b[:, :4]), "TW4007", "shapes do not go together"),
    ]  # fmt: skip
    for call, code, words in refused:
        with pytest.raises(tw.TilewrightError, match=words) as error:
            call()
        assert error.value.code == code
    with FakeTensorMode() as mode, pytest.raises(tw.TilewrightError, match="its data pointer is null"):
        ops.add(mode.from_tensor(a), mode.from_tensor(b))
    engine_of_calls("interpreter")
    assert torch.equal(ops.add(a, b), a + b)
    engine_of_calls("of nobody's")
    with pytest.raises(tw.TilewrightError, match="there is no engine"):
        ops.add(a, b)
    engine_of_calls("cpu")
    compiled = torch.compile(lambda x, y: ops.leaky_relu(ops.add(x, y)), fullgraph=True, backend="aot_eager")
    for _ in range(2):
        assert torch.allclose(compiled(a, b), torch.nn.functional.leaky_relu(a + b)) and torch.equal(ops.add(a, b), a + b)


def test_remembered_calls_of_several_threads(engine_of_calls):
    """Each has its own shapes, and numbers that no other has."""
    torch = pytest.importorskip("torch")
    engine_of_calls("cpu")
    ops.addcmul(torch.ones(4), torch.ones(4), torch.ones(4), 2.0)

    def work(number):
        x, y = torch.full((number + 1, 3), float(number)), torch.full((number + 1, 3), 2.0)
        return all(torch.equal(ops.addcmul(x, y, y, float(number)), x + 4.0 * number) and ops.add(x, y).shape == x.shape for _ in range(300))

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))


def test_dtypes_and_numbers_of_no_use_are_refused_by_their_names():
    torch = pytest.importorskip("torch")
    z = torch.ones(4, dtype=torch.complex64)
    for call in (lambda: ops.add(z, z), lambda: ops.cast(z, "float32"), lambda: ops.silu_and_mul(z), lambda: ops.softmax(z), lambda: ops.cumsum(z, 0)):
        with pytest.raises(tw.TilewrightError, match="has dtype complex64, which it does not take") as error:
            call()
        assert error.value.code == "TW4004"
    with pytest.raises(tw.TilewrightError, match="rms_norm: epsilon is 'small'") as error:
        ops.rms_norm(torch.ones(4), epsilon="small")
    assert error.value.code == "TW1080"
