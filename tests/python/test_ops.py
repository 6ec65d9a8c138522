"""tilewright.ops beside NumPy in float64, on every engine: shapes that suit no tile, dtypes, gradients, what is refused."""
import itertools
import json
import math
import os
import pathlib
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import tilewright as tw
import tilewright.ops as ops

RANDOM = np.random.default_rng(11)
UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}
engines = pytest.mark.parametrize("engine", ["cpu", "interpreter", "simulator"])


@pytest.fixture
def engine_of_calls(monkeypatch):
    return lambda engine: monkeypatch.setenv("TILEWRIGHT_ENGINE", engine)


@pytest.fixture(autouse=True)
def unsealed():
    yield
    ops.unseal()


def normal(*shape, dtype="float32"):
    return RANDOM.standard_normal(shape).astype(dtype)


def wide(x):
    return x.double().numpy() if hasattr(x, "double") else np.asarray(x, np.float64)


def expect_near(got, expected, bound, dtype="float32"):
    got = wide(got)
    assert got.shape == expected.shape
    allowed = bound + UNIT[dtype] * np.abs(expected) * 1.01 + 1e-37
    assert (np.abs(got - expected) <= allowed).all(), float((np.abs(got - expected) - allowed).max())


def expect_product(got, a, b, dtype="float32"):
    a, b = wide(a), wide(b)
    expect_near(got, a @ b, a.shape[-1] * 2.0**-24 * (np.abs(a) @ np.abs(b)), dtype)


SHAPES = [(37, 45, 70), (1, 1, 1), (130, 5, 129)]


@engines
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_products(engine, dtype, engine_of_calls):
    engine_of_calls(engine)
    for m, n, k in SHAPES if engine == "cpu" and dtype == "float32" else SHAPES[:1]:
        a, b = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
        for given in [(a, b, {}), (a, b.T.copy(), {"transpose_b": True}), (a.T.copy(), b, {"transpose_a": True}),
                      (a.T.copy(), b.T.copy(), {"transpose_a": True, "transpose_b": True})]:  # fmt: skip
            got = ops.matmul(*given[:2], **given[2])
            assert got.dtype == dtype and type(got) is np.ndarray
            expect_product(got, a, b, dtype)


def test_products_of_views():
    a, b = normal(9, 20), normal(20, 30)
    expect_product(ops.matmul(a, b.T.copy().T), a, b)
    expect_product(ops.matmul(a.T.copy().T, b), a, b)
    expect_product(ops.matmul(a[:, ::2], b[::2]), a[:, ::2], b[::2])
    assert "transpose_b=true" in str(ops.matmul.choice(a, b.T.copy().T)["kernels"])


def test_products_of_vectors_and_batches():
    x, w, s = normal(2, 3, 20), normal(20, 7), normal(2, 20, 7)
    expect_product(ops.matmul(x, w), x, w)
    got = ops.matmul(x, s)
    assert got.shape == (2, 3, 7)
    for i in range(2):
        expect_product(got[i], x[i], s[i])
    expect_product(ops.matmul(x.swapaxes(1, 2), s, transpose_a=True)[1], x[1], s[1])
    for given, transpose in ((x, False), (x.swapaxes(1, 2).copy(), True), (x.swapaxes(1, 2).copy().swapaxes(1, 2), False)):
        expect_product(ops.matmul(given, w, transpose_a=transpose)[1], x[1], w)
    for got, expected in ((ops.matmul(x[0, 0], w), x[0, 0] @ w), (ops.matmul(x[0], w[:, 0].copy()), x[0] @ w[:, 0]),
                          (ops.matmul(x[0, 0], w[:, 0].copy()), x[0, 0] @ w[:, 0])):  # fmt: skip
        assert got.shape == expected.shape and np.allclose(got, expected, atol=1e-5)


def test_products_of_rows_in_no_whole_pieces(engine_of_calls):
    """A GPU's copies need pieces of 16 bytes: operands and result are brought into some."""
    engine_of_calls("simulator")
    a, b, bias, residual = (normal(*s, dtype="float16") for s in ((258, 257), (257, 255), (255,), (258, 255)))
    assert len(ops.matmul.plan(a, b)) == 2
    for given, transposes in [((a, b), {}), ((a.T.copy(), b.T.copy()), {"transpose_a": True, "transpose_b": True})]:
        got = ops.matmul(*given, bias=bias, residual=residual, **transposes)
        expect_near(got, wide(a) @ wide(b) + bias + residual, 1e-3, "float16")


@pytest.mark.parametrize("m, n, k", [(0, 4, 4), (4, 0, 4), (4, 4, 0)])
def test_products_of_nothing(m, n, k):
    assert np.array_equal(ops.matmul(normal(m, k), normal(k, n)), np.zeros((m, n)))
    assert np.array_equal(ops.matmul(normal(m, k), normal(k, n), bias=np.ones(n, "float32")), np.ones((m, n)))


ACTIVATIONS = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@engines
def test_what_comes_behind_a_product(engine, activation, engine_of_calls):
    engine_of_calls(engine)
    a, b, bias, residual = normal(2, 11, 40), normal(2, 40, 21), normal(21), normal(2, 11, 21)
    expected = ACTIVATIONS[activation](wide(a) @ wide(b) + bias) + residual
    expect_near(ops.matmul(a, b, bias=bias, activation=activation, residual=residual), expected, 4e-5)
    expect_near(ops.matmul(a[0], b[0], activation=activation), ACTIVATIONS[activation](wide(a[0]) @ wide(b[0])), 4e-5)


def test_products_of_other_dtypes():
    torch = pytest.importorskip("torch")
    a, b = torch.randn(20, 33), torch.randn(33, 40)
    low = a.bfloat16(), b.bfloat16()
    got = ops.matmul(*low)
    assert got.dtype is torch.bfloat16
    expect_product(got, *low, "bfloat16")
    expect_product(ops.matmul(*low, out_dtype=torch.float32), *low)
    whole = torch.randint(-128, 128, (20, 33), dtype=torch.int8), torch.randint(-128, 128, (33, 40), dtype=torch.int8)
    got = ops.matmul(*whole)
    assert got.dtype is torch.int32 and torch.equal(got, whole[0].int() @ whole[1].int())
    tiny = a.to(torch.float8_e4m3fn), b.to(torch.float8_e5m2)
    expect_product(ops.matmul(*tiny, out_dtype="float32"), tiny[0].float(), tiny[1].float())
    assert ops.matmul(*tiny).dtype is torch.bfloat16


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


ROWS = {
    "softmax": (lambda x, w, b: ops.softmax(x), lambda x, w, b: softmax(x)),
    "log_softmax": (lambda x, w, b: ops.log_softmax(x), lambda x, w, b: np.log(softmax(x))),
    "rms_norm": (lambda x, w, b: ops.rms_norm(x, w, epsilon=1e-5), lambda x, w, b: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w),
    "rms_norm alone": (lambda x, w, b: ops.rms_norm(x), lambda x, w, b: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)),
    "layer_norm": (lambda x, w, b: ops.layer_norm(x, w, b),
                   lambda x, w, b: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b),
}  # fmt: skip


@engines
@pytest.mark.parametrize("function", ROWS)
def test_rows(engine, function, engine_of_calls):
    engine_of_calls(engine)
    run, reference = ROWS[function]
    for shape in [(1, 1), (7, 3, 65), (5, 1000), (2, 70001)] if engine == "cpu" else [(3, 65)]:
        x, w, b = normal(*shape), normal(shape[-1]), normal(shape[-1])
        got = run(x, w, b)
        assert got.shape == shape and got.dtype == x.dtype
        expect_near(got, reference(wide(x), wide(w), wide(b)), 2e-5)
    if engine == "cpu":
        x, w, b = (normal(*s, dtype="float16") for s in ((4, 100), (100,), (100,)))
        expect_near(run(x, w, b), reference(wide(x), wide(w), wide(b)), 2e-5, "float16")


@pytest.mark.parametrize("function", ROWS)
def test_rows_that_blocks_of_a_cluster_share(function, engine_of_calls):
    engine_of_calls("simulator")
    run, reference = ROWS[function]
    x, w, b = normal(1, 33000), normal(33000), normal(33000)
    expect_near(run(x, w, b), reference(wide(x), wide(w), wide(b)), 2e-5)


def test_softmax_backward_by_a_cluster(engine_of_calls):
    torch = pytest.importorskip("torch")
    engine_of_calls("simulator")
    expect_gradients(ops.softmax, lambda x: torch.nn.functional.softmax(x, -1), torch_tensors((1, 33000)))


# On a simulated GPU: rows that several share a block, of pieces of warps, of four blocks, and of eight whose pieces are joined first.
@pytest.mark.parametrize("dtype, columns, engine", [("float32", 40, "cpu"), ("float32", 70000, "cpu"), ("float32", 40, "simulator"), ("float16", 16384, "simulator"),
                                                    ("float16", 20490, "simulator"), ("float32", 33000, "simulator")])  # fmt: skip
def test_rows_with_infinities(dtype, columns, engine, engine_of_calls):
    engine_of_calls(engine)
    x = normal(4, columns, dtype=dtype)
    x[1, : columns // 2] = -np.inf
    x[2] = -np.inf
    x[3, 5] = np.nan
    got, logs = ops.softmax(x), ops.log_softmax(x)
    for row in (0, 1):
        assert np.allclose(got[row], softmax(wide(x[row])), rtol=1e-3, atol=1e-7) and np.isclose(wide(got[row]).sum(), 1, atol=1e-5 if dtype == "float32" else 1e-3)
        assert np.allclose(logs[row], wide(x[row]) - np.log(np.exp(wide(x[row])).sum()), rtol=1e-3, atol=1e-4)
    assert np.isnan(got[2:]).all()


@pytest.mark.parametrize("columns, parts, threads, barriers", [(16384, 1, 256, 1), (20480, 1, 512, 1), (32768, 4, 128, 1), (65536, 8, 128, 2), (131072, 8, 256, 2)])
def test_powers_of_a_row_wait_for_no_other_warp(columns, parts, threads, barriers):
    """A warp's powers are of its piece's own largest number: what the block, or the cluster, has is joined once."""
    from tilewright import _native

    options = {"function": "softmax", "x": "bfloat16", "result": "bfloat16"}
    options |= json.loads(_native.library_choose("rows", options, "sm_90a", {"M": 16384, "N": columns}))["options"]
    assert (options["parts"], options["threads"], options["rows"]) == (str(parts), str(threads), "1")
    text = _native.Kernel(_native.library_program("rows", options), "cuda", "sm_90a", []).source
    assert text.count("__syncthreads()") == barriers and text.count("__shfl_xor_sync") == 10


@engines
@pytest.mark.parametrize("function", [*ROWS])
def test_rows_of_no_columns(engine, function, engine_of_calls):
    engine_of_calls(engine)
    for shape in ((8, 0), (0, 0), (0,), (2, 3, 0)):
        got = ROWS[function][0](np.empty(shape, "float32"), np.empty(0, "float32"), np.empty(0, "float32"))
        assert got.shape == shape and got.dtype == np.float32


REDUCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


@engines
@pytest.mark.parametrize("function", REDUCTIONS)
def test_reductions(engine, function, engine_of_calls):
    engine_of_calls(engine)
    x = normal(3, 37, 5, 9)
    for dim in [None, 0, 1, -1, (1, 2), (0, 3), (0, 2), (0, 1, 2, 3)] if engine == "cpu" else [1, -1]:
        for keep in (False, True):
            expected = REDUCTIONS[function](wide(x), axis=dim, keepdims=keep)
            expect_near(getattr(ops, function)(x, dim, keepdim=keep), np.asarray(expected), 3e-4 if function == "sum" else 1e-5)


@pytest.mark.parametrize("shape, dim", [((2, 300000), 1), ((300000, 2), 0), ((200001,), None)])
def test_few_results_are_reduced_in_parts(shape, dim):
    x = RANDOM.integers(-3, 4, shape).astype("float32")  # whole: sums are exact
    for function in ("sum", "max"):
        assert len(getattr(ops, function).plan(x, dim)) == 2
        assert np.array_equal(getattr(ops, function)(x, dim), REDUCTIONS[function](x, axis=dim))
    assert np.allclose(ops.mean(x, dim), x.mean(axis=dim), atol=1e-6)
    assert np.array_equal(ops.sum(x.astype("int32"), dim), x.astype("int32").sum(axis=dim))


def test_reductions_of_special_numbers():
    x = normal(3, 50)
    x[1, 7] = np.nan
    assert np.isnan(ops.max(x, 1)).tolist() == [False, True, False] == np.isnan(ops.min(x, 1)).tolist()
    assert ops.sum(np.zeros((3, 0), "float32"), 1).tolist() == [0, 0, 0] and np.isnan(ops.mean(np.zeros((2, 0), "float32"), 1)).all()
    least = np.full((2, 3), -(2**31), "int32")
    assert ops.max(least, 1).tolist() == [-(2**31)] * 2 and ops.min(-least - 1, 0).tolist() == [2**31 - 1] * 3


@engines
def test_transposes(engine, engine_of_calls):
    engine_of_calls(engine)
    x = RANDOM.integers(0, 100, (3, 37, 1, 70))
    for dtype in ("int8", "float16", "float32", "int64") if engine == "cpu" else ("float32",):
        y = x.astype(dtype)
        for dims in [(), (0, 1), (1, 0), (0, -1), (2, 3), (1, 1)] if dtype == "float32" else [()]:
            got = ops.transpose(y, *dims)
            assert got.flags.c_contiguous and np.array_equal(got, y.swapaxes(*(dims or (-2, -1))))


def test_dimensions_of_small_shapes():
    """Every pair of dimensions, and every set, of shapes in which 0, 1 and 2 stand anywhere."""
    for shape in itertools.chain(*(itertools.product((0, 1, 2), repeat=rank) for rank in (1, 2, 3, 4))):
        x = np.arange(math.prod(shape), dtype="float32").reshape(shape)
        for pair in itertools.combinations(range(len(shape)), 2):
            expected = x.swapaxes(*pair)
            for got in (ops.transpose(x, *pair), ops.transpose(x, *pair)):  # the second call is remembered
                assert got.shape == expected.shape and np.array_equal(got, expected), (shape, pair)
        for count in range(1, len(shape) + 1):
            for dims in itertools.combinations(range(len(shape)), count):
                for got in (ops.sum(x, dims), ops.sum(x, dims)):
                    assert got.shape == x.sum(dims).shape and np.array_equal(got, x.sum(dims)), (shape, dims)


REFUSED = [
    (lambda: ops.matmul(normal(3, 4), normal(5, 6)), "TW4007.*'a' has 4 columns to sum over, but 'b' has 5 rows", ValueError),
    (lambda: ops.matmul(normal(2, 3, 4), normal(3, 4, 6)), "TW4007.*batches \\(2,\\) and \\(3,\\)", ValueError),
    (lambda: ops.matmul(normal(3, 4), normal(4, 6, dtype="float16")), "TW4004.*'a' has dtype float32, but 'b' has float16", TypeError),
    (lambda: ops.matmul(normal(3, 4, dtype="float64"), normal(4, 6, dtype="float64")), "TW4004.*'a' has dtype float64", TypeError),
    (lambda: ops.matmul(normal(3, 4), [[1.0]]), "TW4002.*'b' must be a tensor, but is of type list", TypeError),
    (lambda: ops.matmul(normal(3, 4), normal(4, 6), activation="tanh"), "TW1080.*no activation 'tanh'", None),
    (lambda: ops.matmul(normal(3, 4), normal(4, 6), out_dtype="int32"), "TW1080.*out_dtype int32", None),
    (lambda: ops.matmul(normal(3, 4), normal(4, 6), bias=normal(3)), "TW4007.*'bias' has shape \\(3,\\), but must have \\(6,\\)", ValueError),
    (lambda: ops.matmul(normal(3, 4), normal(4, 6), residual=normal(3, 6, dtype="float16")), "TW4004.*'residual' has dtype float16", TypeError),
    (lambda: ops.softmax(np.ones((2, 3), "int32")), "TW4004.*softmax: 'x' has dtype int32", TypeError),
    (lambda: ops.softmax(np.float32(1)), "TW4007.*no dimension", ValueError),
    (lambda: ops.rms_norm(normal(2, 3), normal(4)), "TW4007.*'weight' has shape \\(4,\\), but must have \\(3,\\)", ValueError),
    (lambda: ops.sum(normal(2, 3), 2), "TW4007.*dim is 2, but 'x' has 2 dimensions", ValueError),
    (lambda: ops.sum(normal(2, 3), (0, 0)), "TW4007", ValueError),
    (lambda: ops.max(np.zeros((2, 0), "float32"), 1), "TW4007.*no elements", ValueError),
    (lambda: ops.mean(np.ones((2, 3), "int32")), "TW4004", TypeError),
    (lambda: ops.transpose(normal(2, 3), 0, 2), "TW4007.*no dimension 2", ValueError),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(number):
    call, words, also = REFUSED[number]
    with pytest.raises(tw.TilewrightError, match=words) as error:
        call()
    assert error.value.file == __file__ and (also is None or isinstance(error.value, also))


def test_options_of_the_library_are_checked():
    from tilewright import _native

    for family, options, words in (("matmull", {}, "no kernel 'matmull'"), ("matmul", {"tils": "1"}, "no option 'tils'"),
                                   ("matmul", {"tile": "64x64"}, "'tile' of 'matmul' is '64x64'"), ("matmul", {"a": "float33"}, "'float33'"),
                                   ("rows", {"function": "softmix"}, "softmix"), ("reduce", {"last": "yes"}, "'yes'")):  # fmt: skip
        with pytest.raises(tw.CompileError, match=f"TW1080.*{words}"):
            _native.library_program(family, options)


def test_what_is_planned_is_compiled_once_and_nothing_behind_the_seal():
    a, w = ops.Spec((5, 48)), ops.Spec((48, 24))
    calls = [ops.matmul.plan(a, w, bias=ops.Spec((24,))), ops.softmax.plan(ops.Spec((4, 91))), ops.matmul.plan(a, w, bias=ops.Spec((24,)))]
    assert len(ops.plan(calls)) == 2
    ops.seal()
    assert ops.matmul(normal(5, 48), normal(48, 24), bias=normal(24)).shape == (5, 24) and ops.softmax(normal(9, 91)).shape == (9, 91)
    with pytest.raises(tw.CompileError, match="TW1080.*not compiled before ops.seal\\(\\): rows\\(columns=92, function=softmax"):
        ops.softmax(normal(9, 92))
    ops.unseal()
    assert ops.softmax(normal(9, 92)).shape == (9, 92)


def test_sealed_products_take_the_best_kernel_that_is_there(engine_of_calls):
    engine_of_calls("simulator")
    first = ops.matmul.plan(ops.Spec((64, 64)), ops.Spec((64, 64)))
    ops.plan([first])
    ops.seal()
    a, b = normal(130, 64), normal(64, 160)
    assert ops.matmul.plan(a, b) == first
    expect_product(ops.matmul(a, b), a, b)


def test_sealed_products_of_other_shapes_on_the_cpu(monkeypatch):
    """There the tile follows from the shape alone: the nearest that is compiled is taken."""
    monkeypatch.setattr("tilewright.ops.calls._kernels", {})
    near, far = ops.matmul.plan(ops.Spec((64, 300)), ops.Spec((300, 64))), ops.matmul.plan(ops.Spec((1, 8)), ops.Spec((8, 8)))
    ops.plan([far, near])
    ops.seal()
    a, b = normal(300, 200), normal(200, 33)
    assert ops.matmul.plan(a, b) == near
    expect_product(ops.matmul(a, b), a, b)
    with pytest.raises(tw.CompileError, match="TW1080"):
        ops.matmul(a, b, activation="gelu")


def test_functions_are_pickled_by_their_names():
    assert pickle.loads(pickle.dumps([ops.softmax, ops.sum, ops.gelu])) == [ops.softmax, ops.sum, ops.gelu]


def test_choices_for_a_gpu():
    """By the price of plans: one tile for a whole grid of large ones, small tiles for few rows, wgmma for both."""
    def tile(m, n, k, dtype="bfloat16"):
        found = ops.matmul.choice(ops.Spec((m, k), dtype, "cuda"), ops.Spec((k, n), dtype, "cuda"))
        assert found["predicted_us"] > 0
        return [int(e) for e in found["kernels"][0].partition("tile=")[2].partition(",")[0].split("x")]

    assert tile(4096, 4096, 4096)[:2] in ([128, 256], [256, 128])
    assert tile(16, 4096, 4096)[0] == 64 and tile(64, 2112, 7168)[5] > 1
    assert tile(5000, 5000, 5000)[6] > 0 and tile(5056, 5056, 5056)[6] == 0  # rows that are no whole lines: pairs
    assert tile(8192, 8192, 8192, "float32")[0] <= 128
    a, b = ops.Spec((4096, 4096), "bfloat16", "cuda"), ops.Spec((4096, 4096), "bfloat16", "cuda")
    specialization = ops.matmul.plan(a, b)[0]
    from tilewright import _native

    text = _native.library_program("matmul", dict(specialization.options)).explain("sm_90a", False, {"M": 4096, "N": 4096, "K": 4096})
    assert "wgmma.mma_async m64n256k16" in text and "TMA load into a ring" in text


def torch_tensors(*shapes):
    torch = pytest.importorskip("torch")
    return [torch.randn(*s, requires_grad=True) for s in shapes]


def expect_gradients(ours, theirs, tensors):
    import torch

    y, expected = ours(*tensors), theirs(*tensors)
    assert torch.allclose(y, expected, atol=1e-4, rtol=1e-4)
    grad = torch.randn_like(y)
    for got, wanted in zip(torch.autograd.grad(y, tensors, grad), torch.autograd.grad(expected, tensors, grad)):
        assert got.shape == wanted.shape and torch.allclose(got, wanted, atol=2e-4, rtol=1e-4)


def test_gradients_of_products():
    pytest.importorskip("torch")
    for ta in (False, True):
        for tb in (False, True):
            tensors = torch_tensors((6, 5) if ta else (5, 6), (7, 6) if tb else (6, 7), (7,))
            expect_gradients(lambda a, b, c: ops.matmul(a, b, transpose_a=ta, transpose_b=tb, bias=c),
                             lambda a, b, c: (a.T if ta else a) @ (b.T if tb else b) + c, tensors)  # fmt: skip
    expect_gradients(ops.matmul, lambda a, b: a @ b, torch_tensors((2, 5, 6), (6, 7)))
    expect_gradients(ops.matmul, lambda a, b: a @ b, torch_tensors((2, 5, 6), (2, 6, 7)))
    expect_gradients(ops.matmul, lambda a, b: a @ b, torch_tensors((6,), (6, 7)))
    for tb in (False, True):  # one b for a batch of transposed a
        expect_gradients(lambda a, b: ops.matmul(a, b, transpose_a=True, transpose_b=tb), lambda a, b: a.mT @ (b.T if tb else b),
                         torch_tensors((2, 6, 5), (7, 6) if tb else (6, 7)))  # fmt: skip
    expect_gradients(ops.matmul, lambda a, b: a @ b, torch_tensors((2, 5, 0), (0, 7)))
    import torch

    gelu = torch.nn.functional.gelu
    expect_gradients(lambda a, b, r: ops.matmul(a, b, activation="gelu", residual=r), lambda a, b, r: gelu(a @ b) + r, torch_tensors((5, 6), (6, 7), (5, 7)))
    low = torch_tensors((5, 6), (6, 7))
    assert ops.matmul(*(t.half() for t in low), out_dtype="float32").dtype is torch.float32


def test_products_with_gradients_are_checked_as_others():
    torch = pytest.importorskip("torch")
    for gradients in (False, True):
        a, b = torch.ones(5, 6, requires_grad=gradients), torch.ones(6, 7)
        with pytest.raises(tw.CompileError, match="TW1080.*no activation 'sigmoid'"):
            ops.matmul(a, b, activation="sigmoid")
        with pytest.raises(tw.LaunchError, match="TW4004.*'bias' has dtype torch.float16|TW4004.*'bias' has dtype float16"):
            ops.matmul(a, b, bias=torch.ones(7, dtype=torch.float16))
        with pytest.raises(tw.LaunchError, match="TW4007.*'residual' has shape"):
            ops.matmul(a, b, residual=torch.ones(1, 7))


def test_gradients_of_rows():
    torch = pytest.importorskip("torch")
    f = torch.nn.functional
    expect_gradients(ops.softmax, lambda x: f.softmax(x, -1), torch_tensors((3, 4, 33)))
    expect_gradients(ops.log_softmax, lambda x: f.log_softmax(x, -1), torch_tensors((4, 33)))
    expect_gradients(lambda x, w: ops.rms_norm(x, w, epsilon=1e-5), lambda x, w: f.rms_norm(x, (33,), w, 1e-5), torch_tensors((2, 4, 33), (33,)))
    expect_gradients(ops.layer_norm, lambda x, w, b: f.layer_norm(x, (33,), w, b, 1e-5), torch_tensors((4, 33), (33,), (33,)))
    expect_gradients(ops.rms_norm, lambda x, w: f.rms_norm(x, (33,), w, 1e-6), torch_tensors((33,), (33,)))
    expect_gradients(ops.layer_norm, lambda x, w, b: f.layer_norm(x, (33,), w, b, 1e-5), torch_tensors((33,), (33,), (33,)))


def test_operators_of_torch():
    torch = pytest.importorskip("torch")

    @torch.compile(fullgraph=True, backend="aot_eager")
    def block(x, w, b, n):
        return ops.softmax(ops.matmul(ops.rms_norm(x, n), w, bias=b, activation="silu"))

    x, w, b, n = torch_tensors((6, 40), (40, 30), (30,), (40,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of code of ours that is traced
        y = block(x, w, b, n)
    y.square().sum().backward()
    assert torch.allclose(y.sum(-1), torch.ones(6), atol=1e-5) and all(t.grad is not None for t in (x, w, b, n))
    torch.library.opcheck(torch.ops.tilewright.matmul.default, (x, w, b, False, False, None, False))
    torch.library.opcheck(torch.ops.tilewright.rms_norm.default, (x, n, None, 1e-5))
    # Results are row-major, whatever the arguments are, and what torch.compile is told agrees.
    turned, operators = torch.randn(5, 6, 40).transpose(0, 1), torch.ops.tilewright
    for operator, given in ((operators.rms_norm, (turned, n, None, 1e-5)), (operators.layer_norm, (turned, n, n, 1e-5)),
                            (operators.softmax, (turned,)), (operators.log_softmax, (turned,)), (operators.softmax_backward, (turned, turned))):  # fmt: skip
        torch.library.opcheck(operator.default, given, test_utils="test_faketensor")


def test_functions_that_are_no_operators_end_a_graph():
    torch = pytest.importorskip("torch")

    @torch.compile(backend="eager")
    def block(x):
        return ops.softmax(ops.transpose(x) * 2) * ops.sum(x, 1) + ops.max(x)

    x = torch.randn(6, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of code of ours that is traced
        assert torch.allclose(block(x), torch.softmax(x.T * 2, -1) * x.sum(1) + x.max(), atol=1e-5)


def test_of_tiles_that_cost_alike_the_narrow_ones_are_left():
    spec = lambda *shape: ops.Spec(shape, "bfloat16", "cuda")  # noqa: E731
    for n, k in [(57344, 8192), (24576, 1536)]:
        found = ops.matmul.choice(spec(16, k), spec(k, n))
        columns = int(found["kernels"][0].partition("tile=")[2].split("x")[1])
        assert columns >= 64, found


def test_tensors_of_the_host_stay_there_beside_a_gpu():
    driver = pathlib.Path(__file__).resolve().parents[2] / "build/release/tests/libfake_cuda.so"
    if not driver.exists():
        pytest.skip("the C++ tests are not built")
    program = """
import numpy as np, tilewright.ops as ops
from tilewright import _native
assert _native.device_count() > 0
a = np.arange(12, dtype="float32").reshape(3, 4)
assert (ops.add(a, a) == 2 * a).all() and np.allclose(ops.matmul(a, a.T), a @ a.T)
"""
    kept = {k: v for k, v in os.environ.items() if k != "TILEWRIGHT_ENGINE"}
    environment = kept | {"TILEWRIGHT_LIBCUDA": str(driver), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [n for n in dir(ops) if isinstance(getattr(ops, n), ops.calls.Operator)])
def test_calls_that_do_not_fit_name_the_operation(name):
    pytest.importorskip("torch")
    function, x = getattr(ops, name), normal(4, 4)
    parameters = function.signature.parameters
    needed = [n for n, p in parameters.items() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    for given, named in [((), {}), ((x,) * 20, {}), ((x,) * len(needed), {"unknown": 1}), ((x,), {next(iter(parameters)): x})]:
        with pytest.raises(TypeError, match=rf"^error TW1101 build: {name}\(\) (missing|takes|too many|got|multiple)") as caught:
            function(*given, **named)
        assert isinstance(caught.value, tw.CompileError) and caught.value.help.startswith(f"it takes {name}(")


def test_what_needs_pytorch_says_so(monkeypatch):
    find = ops.argmax
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(tw.CompileError, match="ops.argmax needs PyTorch, which is not installed") as caught:
        find(np.ones((2, 3), "float32"), 1)
    assert isinstance(caught.value, ImportError) and 'pip install "tilewright[torch]"' in str(caught.value)
