"""Functions of tilewright.ops at numbers and shapes that few choose: NaN, infinities, zeros of both signs, the ends of integers, no
elements, one, no dimensions, views with gaps and repetitions; beside PyTorch."""

import pytest
import tilewright as tw

torch = pytest.importorskip("torch")

import tilewright.ops as ops  # noqa: E402
from tilewright.ops import element_gradients, elementwise, norms, reductions  # noqa: E402

F = torch.nn.functional
NAN, INF = float("nan"), float("inf")
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -3, 6, 20, -20, 60, -60, 1e-3, 2048, 60000, -60000]
FLOATS = [torch.float32, torch.float16, torch.bfloat16]
WHOLE = {torch.int8: [-128, -1, 0, 1, 3, 127], torch.uint8: [0, 1, 3, 255], torch.int32: [-(2**31), -1, 0, 1, 7, 2**31 - 1],
         torch.int64: [-(2**63), -1, 0, 1, 2**40, 2**63 - 1], torch.bool: [False, True]}  # fmt: skip


@pytest.fixture(autouse=True)
def engine(monkeypatch):
    """The interpreter; what is computed of an element is the same text on all engines, and the quick way to it is."""
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")


def expect(got, wanted, relative=1e-5, signs=True, absolute=0.0):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    if not got.is_floating_point():
        assert torch.equal(got, wanted), (got, wanted)
        return
    unit = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}.get(got.dtype, 0)
    a, b = got.double(), wanted.double()
    right = (a == b) | (a.isnan() & b.isnan()) | ((a - b).abs() <= (relative + unit) * b.abs() + absolute)
    if signs:
        right &= ~((a == 0) & (b == 0) & (a.signbit() != b.signbit()))
    assert right.all(), (got[~right], wanted[~right])


ONE = [r for r in (*elementwise.ACTIVATIONS, *elementwise.MATHEMATICS, *elementwise.QUESTIONS) if len(r.tensors) == 1]


@pytest.mark.parametrize("row", ONE, ids=lambda row: row.name)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_functions_of_one(row, dtype):
    x = torch.tensor(SPECIAL, dtype=dtype)
    if row.name == "sign":  # NaN of NaN, where PyTorch gives 0
        x = x[1:]
    if row.name in ("sin", "cos", "tan", "tanhshrink", "gelu_tanh", "mish"):  # what cancels, or needs all bits of a large angle
        x = x[((x.abs() < 7) & (x.abs() > 0.01)) | ~x.isfinite()]
    wanted = element_gradients.reference(row.name)(x.double())
    expect(getattr(ops, row.name)(x), wanted if row.result else wanted.to(dtype), 1e-4, signs=row.name not in ("tanhshrink", "log_sigmoid"))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_quotients(dtype):
    a = torch.tensor([*SPECIAL[:19]], dtype=dtype)
    expect(ops.floor_divide(a[:, None], a), torch.floor_divide(a[:, None], a))
    expect(ops.div(a[:, None], a, rounding_mode="trunc"), torch.div(a.float()[:, None], a.float(), rounding_mode="trunc").to(dtype))
    expect(ops.div(a[:, None], a, rounding_mode="floor"), torch.div(a[:, None], a, rounding_mode="floor"))
    assert ops.hardswish(torch.tensor([-INF], dtype=dtype)).isnan()
    assert not ops.softshrink(torch.tensor([-0.1, -0.0], dtype=dtype)).signbit().any()


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_integers_at_their_ends(dtype):
    v = torch.tensor(WHOLE[dtype], dtype=dtype)
    a, b = v[:, None], v[None]
    for row in elementwise.TABLE.values():
        if len(row.tensors) == 2 and str(dtype)[6:] in row.taken and row.name not in ("add_scaled", "div", "trunc_divide"):
            expect(getattr(ops, row.name)(a, b), element_gradients.reference(row.name)(a.expand(len(v), len(v)), b.expand(len(v), len(v))))


@pytest.mark.parametrize(
    "call",
    [lambda x: ops.clamp(x, -300, 300), lambda x: ops.gt(x, 300), lambda x: ops.eq(x, -129), lambda x: ops.add(x, 200), lambda x: ops.maximum(-1000, x),
     lambda x: ops.where(x > 0, x, 128), lambda x: ops.bitwise_and(x.bool(), 2)],
)  # fmt: skip
def test_numbers_that_a_dtype_does_not_have_are_refused(call):
    x = torch.tensor([44, -44, 0], dtype=torch.int8)
    for _ in range(2):  # the second call goes the way that the first has found
        with pytest.raises(tw.LaunchError, match="TW4010.*does not fit (int8|bool)"):
            call(x)
    assert ops.gt(x, 43).tolist() == [True, False, False] and ops.where(x > 0, x, 127).tolist() == [44, 127, 127]
    with pytest.raises(tw.LaunchError, match="TW4010"):
        ops.gt(x, 300)


# What float32 leaves of up to 60 numbers that add up to nearly nothing.
_CANCELLED = {"sum": 1e-5, "mean": 1e-6, "var": 1e-6, "std": 1e-6}


@pytest.mark.parametrize("name", reductions.TABLE)
def test_reductions_of_few(name):
    of, row = getattr(ops, name), reductions.TABLE[name]
    x = torch.randn(3, 4, 5)
    for given in (x, x.transpose(0, 2), x[::2, :, 1::2], x[:1].expand(3, 4, 5), x[:1, :1, :1], x[:, :0], x[:0], x[0, 0]):
        for dim in (None, 0, -1, *((((0, -1), (-2, 0))) if given.dim() == 3 else ())):
            axes = list(range(given.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
            none = not all(given.shape[d] for d in axes)
            if none and (not row.of_none or name == "inf_norm"):
                continue
            for keep in (False, True):
                wanted = reductions.reference(name, given.double(), axes, keep)
                got = of(given, dim, keepdim=keep)
                expect(got, wanted.to(got.dtype), 1e-4, signs=False, absolute=_CANCELLED.get(name, 0.0))
    one = torch.tensor(2.5, requires_grad=row.gradients and row.result is None)
    for dim in (None, 0, -1):  # of no dimensions, as PyTorch's
        got = of(one, dim)
        expect(got, reductions.reference(name, one.detach().double(), [], False).to(got.dtype))
    if one.requires_grad and name not in ("var", "std"):
        assert torch.equal(torch.autograd.grad(of(one), one)[0], torch.tensor(1.0))


def test_variances_that_few_elements_have():
    for n, correction in ((0, 1), (1, 1), (1, 2), (2, 3)):
        x = torch.tensor([[1.0, 4.0]][:1])[:, :n]
        expect(ops.var(x, 1, correction=correction), torch.var(x.double(), 1, correction=correction).float())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rows_of_large_numbers(dtype):
    large = torch.finfo(dtype).max / 4
    x = torch.tensor([[large] * 6, [-large] * 6, [large, large, 0, 0, 0, 0], [1000.0] * 6, [-INF] * 5 + [0], [0.0] * 6], dtype=dtype)
    for dim in (1, 0):
        given = x if dim else x.t().contiguous()
        expect(ops.log_softmax(given, dim), torch.log_softmax(given.double(), dim).to(dtype), signs=False)
        expect(ops.softmax(given, dim), torch.softmax(given.double(), dim).to(dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_orders_with_nan_and_equals(dtype):
    x = torch.tensor([[1.0, NAN, 3.0, NAN, -INF, INF, 0.0], [2, 2, 1, 1, 2, 2, 1], [NAN] * 7, [INF] * 7, [-INF] * 7], dtype=dtype)
    for dim in (1, 0):
        given = x if dim else x.t().contiguous()
        for largest in (False, True):
            wanted = torch.sort(given, dim=dim, descending=largest, stable=True)
            for got in (ops.sort(given, dim, descending=largest), ops.topk(given, given.shape[dim], dim, largest)):
                assert all(torch.equal(a.nan_to_num(99), b.nan_to_num(99)) for a, b in zip(got, wanted))
        for keep in (False, True):
            value, place = ops.median(given, dim, keepdim=keep)
            expect(value, torch.median(given, dim, keepdim=keep)[0])
            at = place if keep else place.unsqueeze(dim)
            expect(given.gather(dim, at), value if keep else value.unsqueeze(dim))
            for of, theirs in ((ops.argmax, torch.argmax), (ops.argmin, torch.argmin)):
                expect(of(given, dim, keepdim=keep), theirs(given, dim, keepdim=keep))


def test_norms_of_one_row():
    x, r, w = torch.randn(6), torch.randn(6), torch.randn(6)
    expect(ops.fused_add_rms_norm(x, r, w)[0], F.rms_norm(x + r, (6,), w, 1e-6), 1e-4)
    expect(ops.fused_add_layer_norm(x, r, w, w)[0], F.layer_norm(x + r, (6,), w, w), 1e-4)
    expect(ops.ada_layer_norm(x, r, w), F.layer_norm(x, (6,)) * r + w, 1e-3)
    expect(ops.ada_layer_norm_zero(x, r, w, r), r * (F.layer_norm(x, (6,)) * r + w), 1e-3)


def test_few_long_rows_are_shared(monkeypatch):
    """Blocks join what each knows of its part of a row; the last part is short."""
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "simulator")
    monkeypatch.setattr(norms, "_ROW_ELEMENTS", 1)
    x, r, w = torch.randn(2, 17000) + 3, torch.randn(2, 17000), torch.randn(17000)
    assert norms._parts(2, 17000, 8192) == 3 and norms._parts(1024, 17000, 8192) == 1
    expect(ops.fused_add_rms_norm(x, r, w)[0], F.rms_norm(x + r, (17000,), w, 1e-6), 1e-4)
    made, total = ops.fused_add_layer_norm(x, r, w, w)
    expect(made, F.layer_norm(x + r, (17000,), w, w), 1e-4, absolute=1e-5)
    expect(total, x + r)
    expect(ops.ada_layer_norm_zero(x, r, w.expand_as(r), r), r * (F.layer_norm(x, (17000,)) * r + w), 1e-3, absolute=1e-5)
    w = torch.randn(6)
    for width in (50, 51):  # channels of eights of elements, and of others
        image = torch.randn(1, 6, 60, width) - 2
        expect(ops.group_norm(image, 1, w, w), F.group_norm(image, 1, w, w), 1e-3, absolute=1e-5)


def test_views_and_few_dimensions():
    x = torch.randn(6, 10, 4)
    views = [x.transpose(0, 2), x[::2, 1::3, 3:], x[:1].expand(5, 10, 4), x[0, 0, 0], x[:, :0], x[:1, :1, :1], x.reshape(2, 3, 5, 2, 4),
             x.reshape(2, 3, 5, 2, 2, 2).transpose(1, 4), x.diagonal(0, 0, 1), x.reshape(-1).unfold(0, 7, 3)]  # fmt: skip
    for a in views:
        expect(ops.exp(a), torch.exp(a))
        for b in views:
            try:
                wanted = a + b
            except RuntimeError:
                continue
            expect(ops.add(a, b), wanted)
            expect(ops.where(a > 0, a, b), torch.where(a > 0, a, b))
    negated = torch.randn(4, dtype=torch.complex64).conj().imag
    with pytest.raises(tw.LaunchError, match="other sign"):
        ops.add(negated, negated)
