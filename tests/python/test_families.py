"""Every function of tilewright.ops beside PyTorch in float64, at three shapes of its own: on the interpreter always; on the
CPU and in the simulator one shape of each function, or all with TILEWRIGHT_FAMILIES=all; gradients, operators of PyTorch,
plans, what is refused."""

import os
import subprocess
import sys

import pytest
import tilewright as tw

torch = pytest.importorskip("torch")

import tilewright.ops as ops  # noqa: E402
from family_cases import CASES, ELSEWHERE, Draw  # noqa: E402

ALL = os.environ.get("TILEWRIGHT_FAMILIES") == "all"
UNIT = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def wide(x):
    if isinstance(x, torch.Tensor) and x.is_floating_point() and x.element_size() > 1:
        return x.double()
    return x.to(torch.complex128) if isinstance(x, torch.Tensor) and x.is_complex() else x


def several(x):
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def expect_near(got, expected, tolerance, name=""):
    got, expected = several(got), several(expected)
    assert len(got) == len(expected), name
    for y, wanted in zip(got, expected):
        assert y.shape == wanted.shape, (name, y.shape, wanted.shape)
        if not (wanted.is_floating_point() or wanted.is_complex()):
            assert torch.equal(y.to(wanted.dtype), wanted), (name, y, wanted)
            continue
        if y.element_size() == 1:  # float8: a step of it
            y, wanted = y.float(), wanted.float()
        y, wanted = (torch.view_as_real(t) if t.is_complex() else t for t in (y, wanted))
        allowed = tolerance + 2 * UNIT.get(y.dtype, 0)
        scale = 1 + wanted.double().nan_to_num(0, 0, 0).abs()
        wrong = ((y.double() - wanted.double()).abs() > allowed * scale) & (y.double() != wanted.double()) | (
            y.isnan() != wanted.isnan()
        )
        assert not wrong.any(), (name, y[wrong][:3], wanted[wrong][:3])


def run(name, size, dtype="float32", widened=True):
    case = CASES[name]
    arguments, named = case.make(Draw(f"{name} {size}", getattr(torch, dtype), "cpu"), size)
    got = getattr(ops, name)(*arguments, **named)
    expected = case.reference(*map(wide, arguments), **{n: wide(x) for n, x in named.items()})
    # Sums of narrow operands differ by their rounding, too.
    expect_near(
        got,
        expected,
        case.tolerance if dtype == "float32" else max(case.tolerance, 8 * UNIT[getattr(torch, dtype)]),
        f"{name} {size} {dtype}",
    )
    return arguments, named


def test_every_function_has_a_case():
    assert set(ops.__all__) == set(CASES) | ELSEWHERE
    assert len(CASES) >= 150
    assert all(callable(getattr(ops, name).reference) and getattr(ops, name).__doc__ for name in CASES)


@pytest.mark.parametrize("name", CASES)
def test_on_the_interpreter(name, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")
    for size in range(3):
        run(name, size, CASES[name].dtypes[0] if CASES[name].dtypes[0] != "int32" else "float32")
    for dtype in CASES[name].dtypes[1:] if ALL else ():
        run(name, 1, dtype)


@pytest.mark.skipif(not ALL, reason="TILEWRIGHT_FAMILIES=all")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("engine", ["cpu", "simulator"])
def test_on_all_engines(name, engine, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", engine)
    dtype = CASES[name].dtypes[0] if CASES[name].dtypes[0] != "int32" else "float32"
    for size in range(3) if engine == "cpu" else (1,):
        run(name, size, dtype)


# A function of each program, compiled and simulated.
OF_EACH_PROGRAM = (
    "prod var logsumexp cumprod cummax argmax topk group_norm batch_norm rope_yarn dropout avg_pool2d max_pool1d_indices conv2d fft "
    "moe_gate_up gated_delta_net ssd_decode nsa_selected_attention lightning_indexer gemm_w4a16 mhc_pre engram_gate_conv"
).split()


@pytest.mark.parametrize("name", OF_EACH_PROGRAM)
def test_on_the_cpu(name, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "cpu")
    run(name, 1, CASES[name].dtypes[0])


@pytest.mark.parametrize("name", [*OF_EACH_PROGRAM, "cumsum", "fp8_quant", "gemm_fp8", "alibi", "sinusoidal", "mhc_post", "gla"])
def test_in_the_simulator(name, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "simulator")
    run(name, 2, CASES[name].dtypes[0])


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.gradients])
def test_gradients(name, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")
    case = CASES[name]
    dtype = getattr(torch, case.dtypes[0])
    arguments, named = case.make(Draw(f"{name} 0", dtype, "cpu"), 0)

    def gradients(function, arguments, kind):
        given = [x.to(kind).requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in arguments]
        made = [y for y in several(function(*given, **named)) if y.is_floating_point() and y.requires_grad]
        weights = [torch.arange(y.numel()).reshape(y.shape).double().cos().to(y.dtype) for y in made]
        return torch.autograd.grad(
            made, [x for x in given if isinstance(x, torch.Tensor) and x.requires_grad], weights, allow_unused=True
        )

    def double(x):
        return gradients(lambda *a, **n: case.reference(*a, **{k: wide(v) for k, v in n.items()}), x, torch.float64)

    kinds = dtype if dtype is not torch.float32 else torch.float32
    mixed = any(isinstance(x, torch.Tensor) and x.is_floating_point() and x.dtype is not kinds for x in arguments)
    given = gradients(getattr(ops, name), arguments, torch.float32) if not mixed else None
    if given is None:  # of several dtypes, each stays its own
        leaves = [x.clone().requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in arguments]
        made = [y for y in several(getattr(ops, name)(*leaves, **named)) if y.is_floating_point() and y.requires_grad]
        weights = [torch.arange(y.numel()).reshape(y.shape).double().cos().to(y.dtype) for y in made]
        given = torch.autograd.grad(
            made, [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad], weights, allow_unused=True
        )
    for got, wanted in zip(given, double(arguments), strict=True):
        if got is None or wanted is None:
            assert (got is None or not got.any()) and (wanted is None or not wanted.any()), name
            continue
        expect_near(got, wanted.double(), 3e-4 if dtype is torch.float32 else 0.03, name)


def test_operators_of_torch(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")
    x, w = torch.randn(2, 4, 6, requires_grad=True), torch.randn(4, requires_grad=True)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def block(x, w):
        y = ops.cumsum(ops.group_norm(ops.leaky_relu(x, 0.1), 2, w), 1)
        return ops.logsumexp(ops.conv1d(ops.max_pool1d(y, 2), torch.ones(3, 4, 2)), 2) + ops.topk(x, 2)[0].sum()

    made = block(x, w)
    expected = (
        torch.logsumexp(
            torch.conv1d(
                torch.max_pool1d(torch.cumsum(torch.group_norm(torch.nn.functional.leaky_relu(x, 0.1), 2, w), 1), 2),
                torch.ones(3, 4, 2),
            ),
            2,
        )
        + x.topk(2)[0].sum()
    )
    assert torch.allclose(made, expected, atol=1e-4)
    for got, wanted in zip(torch.autograd.grad(made.sum(), (x, w)), torch.autograd.grad(expected.sum(), (x, w))):
        assert torch.allclose(got, wanted, atol=1e-4)
    operators, q = torch.ops.tilewright, torch.randn(1, 3, 2, 4)
    for operator, given in (
        (operators.scan, (x, "sum", 1)),
        (operators.reduction, (x, "var", [1], True, 1.0)),
        (operators.convolution, (x, x[:, :, :2], None, [1], [0], [1], 1)),
        (operators.pool, (x, True, True, [2], [2], [0], [1], False, True, 0, [])),
        (operators.dropout, (x, 0.5, 3)),
        (operators.linear_attention, (q, q, q, None, None, None, False, 1.0, "float32", "")),
        (operators.order, (x, 2, True, 1, None, None)),
    ):
        torch.library.opcheck(
            operator.default, given, test_utils=("test_schema", "test_autograd_registration", "test_faketensor")
        )
    torch.library.opcheck(operators.scan.default, (x, "sum", 1))  # in graphs of torch.compile too


def test_numpy_goes_in_and_comes_out(monkeypatch):
    import numpy as np

    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")
    x = np.random.default_rng(0).standard_normal((4, 7)).astype("float32")
    values, places = ops.topk(x[:, ::-1], 3)
    assert isinstance(values, np.ndarray) and np.array_equal(places, np.argsort(-x[:, ::-1], 1)[:, :3])
    assert np.allclose(ops.cumsum(x), np.cumsum(x, -1), atol=1e-5) and ops.fft(x).dtype == np.complex64


def test_empty_tensors(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")
    none = torch.zeros(0, 4)
    assert ops.cumsum(none).shape == (0, 4) and ops.group_norm(none, 2).shape == (0, 4) and ops.topk(none, 2)[0].shape == (0, 2)
    assert (
        ops.sum(none, 0).tolist() == [0] * 4
        and ops.all(none, 0).all()
        and not ops.any(none, 0).any()
        and ops.prod(none, 0).tolist() == [1] * 4
    )
    assert ops.dropout(none).shape == (0, 4) and ops.rope_neox(none).shape == (0, 4) and ops.sort(none)[1].shape == (0, 4)
    assert ops.conv1d(torch.zeros(0, 2, 5), torch.ones(3, 2, 2)).shape == (0, 3, 4) and ops.fft(torch.zeros(0, 8)).shape == (0, 8)


def test_special_numbers(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[1.0, nan, 3.0, nan], [-inf, -inf, -inf, -inf], [0.0, -0.0, inf, -inf]])
    for ours, theirs in (
        (ops.argmax, torch.argmax),
        (ops.cummax, torch.cummax),
        (ops.amax, torch.amax),
        (ops.logsumexp, torch.logsumexp),
    ):
        for got, wanted in zip(several(ours(x, 1)), several(theirs(x, 1))):
            assert torch.equal(got.nan_to_num(7), wanted.nan_to_num(7)), ours
    assert torch.equal(ops.sort(x, 1)[1], torch.sort(x, dim=1, stable=True)[1])
    assert torch.equal(ops.inf_norm(x[2:, :2], 1), torch.zeros(1)) and ops.max_pool1d(x[:1, None], 2).isnan().all()
    assert ops.remainder(torch.tensor([-7.0, 7.0, -0.0]), torch.tensor([3.0, -3.0, 3.0])).tolist() == [2.0, -2.0, 0.0]
    assert (
        ops.floor_divide(torch.tensor([1.0, -1.0, 6.0]), torch.tensor([0.1, 0.1, 3.0])).tolist()
        == torch.floor_divide(torch.tensor([1.0, -1.0, 6.0]), torch.tensor([0.1, 0.1, 3.0])).tolist()
    )


def test_plans(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")
    monkeypatch.setattr("tilewright.ops.calls._kernels", {})
    wanted = ops.plan(
        [
            ops.cumsum.plan(ops.Spec((3, 40))),
            ops.group_norm.plan(ops.Spec((2, 4, 6)), 2),
            ops.conv1d.plan(ops.Spec((1, 2, 9)), ops.Spec((4, 2, 3))),
            ops.gla.plan(*[ops.Spec((1, 3, 2, 8))] * 4),
        ]
    )
    assert len(wanted) == 4
    ops.seal()
    try:
        assert ops.cumsum(torch.randn(2, 40)).shape == (2, 40) and ops.conv1d(
            torch.randn(2, 2, 9), torch.randn(4, 2, 3)
        ).shape == (2, 4, 7)
        with pytest.raises(tw.CompileError, match="TW1080.*not compiled before ops.seal"):
            ops.cumprod(torch.randn(2, 41))
    finally:
        ops.unseal()


def test_importing_the_package_imports_no_family():
    code = "import sys, tilewright.ops; print([m for m in sys.modules if m.startswith('tilewright.ops.') or m == 'torch'])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout.strip()
        == "[]"
    )


X = torch.zeros(2, 3, 8)
REFUSED = [
    (lambda: ops.cumsum(X.double()), "TW4004.*cumsum: 'x' has dtype float64", TypeError),
    (lambda: ops.cumsum(X, 3), "TW4007.*dim is 3, but 'x' has 3 dimensions", ValueError),
    (lambda: ops.topk(X, 9), "TW1080.*9 of 8 elements", ValueError),
    (lambda: ops.argmax(X[:, :, :0], 2), "TW4007.*no elements", ValueError),
    (lambda: ops.group_norm(X, 2), "TW4007.*3 channels do not divide among 2 groups", ValueError),
    (lambda: ops.batch_norm(X), "TW1080.*no running statistics", ValueError),
    (lambda: ops.fused_add_rms_norm(X, X[0]), "TW4007.*'residual' has shape \\(3, 8\\), but must have \\(2, 3, 8\\)", ValueError),
    (lambda: ops.max_pool1d(X, 2, padding=2), "TW1080.*padding", ValueError),
    (lambda: ops.avg_pool1d(X, 9), "TW4007.*do not fit", ValueError),
    (lambda: ops.conv1d(X, torch.zeros(4, 2, 3)), "TW4007.*'x' has 3 channels", ValueError),
    (lambda: ops.conv1d(X, torch.zeros(4, 3, 3).half()), "TW4004.*'weight' has dtype float16", TypeError),
    (lambda: ops.fft(X.half()), "TW4004.*fft: 'x' has dtype float16", TypeError),
    (lambda: ops.dropout(X, 1.5), "TW1080.*p is 1.5", ValueError),
    (lambda: ops.rope_neox(X), "TW4007.*'x' has 3 dimensions", ValueError),
    (lambda: ops.leaky_relu(X, "much"), "TW1080.*negative_slope is of type str", TypeError),
    (lambda: ops.div(X, X, rounding_mode="up"), "TW1080.*rounding_mode is 'up'", ValueError),
    (lambda: ops.clamp(X), "TW1080.*neither low nor high", ValueError),
    (lambda: ops.bitwise_and(X, X), "TW4004.*bitwise_and: 'a' has dtype float32", TypeError),
    (lambda: ops.moe_topk(X[0], 9), "TW1080.*top_k is 9 of 8 experts", ValueError),
    (lambda: ops.gla(X[None], X[None], X[None], X[None, :1]), "TW4007.*'g' has shape", ValueError),
    (
        lambda: ops.mamba2(*[X[None]] * 2, X[0, 0], X[None], X[None]),
        "TW4007.*'dt' has 4 dimensions|TW4007.*'dt' has shape",
        ValueError,
    ),
    (lambda: ops.gemm_w4a16(X[0].half(), X, X, X, group_size=3), "TW1080.*group_size is 3", ValueError),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(number):
    call, words, also = REFUSED[number]
    with pytest.raises(tw.TilewrightError, match=words) as error:
        call()
    assert error.value.file == __file__ and isinstance(error.value, also)
