"""tilewright.kernels.engram, mhc and modeling beside their references, gradients too; the package under the name of
TileKernels."""

import inspect
import os
import pathlib
import subprocess
import sys

import pytest
import tilewright as tw

torch = pytest.importorskip("torch")
import tilewright.kernels as kernels  # noqa: E402
import tilewright.kernels.torch as reference  # noqa: E402
from tilewright.kernels.modeling import EngramGateLayer, MHCPipeline  # noqa: E402
from tilewright.kernels.modeling.engram import engram_gate  # noqa: E402
from tilewright.kernels.modeling.mhc import mhc_head, mhc_post, mhc_pre, ops  # noqa: E402
from tilewright.kernels.testing.numeric import assert_equal, calc_diff  # noqa: E402
from tilewright.kernels.torch.engram import engram_gate_ref, engram_hash_ref, make_offsets  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
engines = pytest.mark.parametrize("engine", ["cpu", "interpreter", "simulator"])


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(5)


@pytest.fixture
def on(monkeypatch):
    return lambda engine: monkeypatch.setenv("TILEWRIGHT_ENGINE", engine)


def leaves(*tensors):
    return [t.clone().requires_grad_() for t in tensors]


def expect_gradients(function, wanted, tensors, rtol=1e-4, atol=1e-5):
    """Results and gradients of two functions of the same tensors; results are tensors or tuples of them."""
    mine, theirs = leaves(*tensors), leaves(*tensors)
    got, expected = function(*mine), wanted(*theirs)
    got, expected = ((x,) if isinstance(x, torch.Tensor) else x for x in (got, expected))
    grads = [torch.randn_like(e) for e in expected]
    torch.autograd.backward(got, grads)
    torch.autograd.backward(expected, grads)
    for a, b in zip((*got, *(t.grad for t in mine)), (*expected, *(t.grad for t in theirs))):
        assert a.shape == b.shape and a.dtype == b.dtype
        worse = (1.6e-2, 1e-2) if a.dtype == torch.bfloat16 else (rtol, atol)
        torch.testing.assert_close(a, b, rtol=worse[0], atol=worse[1])


# ---- engram


@engines
def test_hashes(engine, on):
    on(engine)
    ids, factors = torch.randint(0, 100000, (13, 4), dtype=torch.int32), torch.randint(0, 2**40, (2, 4))
    sizes = torch.randint(1000, 100000, (2, 3, 5), dtype=torch.int32)
    assert_equal(
        kernels.engram.engram_hash(ids, factors, sizes, make_offsets(sizes)),
        engram_hash_ref(ids, factors, sizes, make_offsets(sizes)),
    )


@engines
def test_gates_of_engrams(engine, on):
    on(engine)
    x, k = torch.randn(2, 5, 3, 40).bfloat16().unbind(0)
    v, wh, we = torch.randn(5, 40).bfloat16(), torch.randn(3, 40).bfloat16(), torch.randn(3, 40).bfloat16()
    assert_equal(kernels.engram.fused_weight(wh, we), wh.float() * we.float())
    mine, theirs = leaves(x, k, v, wh, we), leaves(x, k, v, wh.float(), we.float())
    out, wanted = engram_gate(*mine, 1e-6, 1e-20), engram_gate_ref(*theirs, 1e-6, 1e-20)
    grad = torch.randn_like(wanted)
    out.backward(grad)
    wanted.backward(grad)
    assert calc_diff(out, wanted) < 1e-6
    for a, b in zip(mine, theirs):
        assert calc_diff(a.grad, b.grad) < 2e-5


def test_gradients_that_are_kept():
    x, k, v, wh, we = (
        torch.randn(4, 2, 16).bfloat16(),
        torch.randn(4, 2, 16).bfloat16(),
        torch.randn(4, 16).bfloat16(),
        *torch.randn(2, 2, 16).bfloat16(),
    )
    wh, we = leaves(wh, we)
    wh.main_grad = torch.ones(2, 16)
    engram_gate(x, k, v, wh, we, 1e-6, 1e-20).float().sum().backward()
    assert wh.grad is None and we.grad is not None and not (wh.main_grad == 1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gates_of_rows(dtype):
    layer = EngramGateLayer(48, 10)
    x = torch.randn(3, 7, 48).to(dtype)

    def wanted(x, w):
        return (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6) @ w.float().T).to(dtype)

    def got(x, w):
        layer.weight.data, layer.weight.grad = w.data, None
        return torch.func.functional_call(layer, {"weight": w}, (x,))

    expect_gradients(
        got,
        wanted,
        (x, layer.weight.detach()),
        atol=1e-4 if dtype == torch.float32 else 2e-2,
        rtol=1e-4 if dtype == torch.float32 else 2e-2,
    )


@pytest.mark.parametrize("gates", [3, 10])
def test_few_gates_of_many_rows(gates, on):
    on("simulator")
    x, w, grad = (torch.randn(*shape).bfloat16() for shape in ((70, 264), (gates, 264), (70, gates)))
    rows, weight = leaves(x.float(), w.float())
    normal = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6)
    out, norm = kernels.engram.engram_gate_forward(x, w)
    (normal @ weight.T).backward(grad.float())
    of_x, of_w = kernels.engram.engram_gate_backward(grad, x, w, norm)
    for got, expected in ((out, normal @ weight.T), (norm, normal), (of_x, rows.grad), (of_w, weight.grad)):
        torch.testing.assert_close(got.float(), expected, rtol=1.6e-2, atol=5e-2)


# ---- hyper-connections


@engines
@pytest.mark.parametrize("streams", [2, 3])
def test_streams(engine, streams, on):
    on(engine)
    x, residual = torch.randn(2, 3, 24).bfloat16(), torch.randn(2, 3, streams, 24).bfloat16()
    mix, comb = torch.rand(2, 3, streams, 1), torch.rand(2, 3, streams, streams)
    expect_gradients(lambda x: ops.expand_to_mhc(x, streams), lambda x: reference.expand_to_mhc_ref(x, streams), (x,))
    expect_gradients(ops.mhc_pre_apply_mix, reference.mhc_pre_apply_mix_ref, (residual, mix))
    expect_gradients(mhc_post, reference.mhc_post_ref, (x, residual, mix, comb))


@engines
def test_weights_of_streams(engine, on):
    on(engine)
    mixes, scale, base = torch.randn(2, 9, 15), torch.randn(3), torch.randn(15)
    expect_gradients(
        lambda *t: ops.mhc_pre_split_mixes(*t, 3, 2.0, 1e-2),
        lambda *t: reference.mhc_pre_split_mixes_ref(*t, 3, 2.0, 1e-2),
        (mixes, scale, base),
    )
    expect_gradients(
        lambda *t: ops.mhc_head_compute_mix(*t, 1e-2),
        lambda *t: reference.mhc_head_compute_mix_ref(*t, 1e-2),
        (mixes, scale[:1], base),
    )
    for shape, repeat in [((5, 3, 3), 4), ((2, 4, 6), 1)]:
        x = torch.randn(shape)
        expect_gradients(lambda x: ops.sinkhorn_normalize(x, repeat), lambda x: reference.sinkhorn_normalize_ref(x, repeat), (x,))
    done = kernels.mhc.sinkhorn_normalize(torch.randn(3, 3), num_iters=30)
    assert torch.allclose(done.sum(0), torch.ones(3), atol=1e-5) and torch.allclose(done.sum(1), torch.ones(3), atol=1e-3)


@engines
def test_products_of_normalized_streams(engine, on):
    on(engine)
    residual, fn, weight = torch.randn(5, 2, 72).bfloat16(), torch.randn(8, 144) * 0.1, torch.rand(144) + 0.5
    expect_gradients(
        lambda *t: ops.mhc_pre_norm_fn(*t, 1e-6, n_splits=3),
        lambda *t: reference.mhc_pre_norm_fn_ref(*t, 1e-6),
        (residual, fn, weight),
        atol=1e-4,
    )
    expect_gradients(
        lambda r, f: ops.mhc_pre_norm_fn(r, f, None, 1e-6),
        lambda r, f: reference.mhc_pre_norm_fn_ref(r, f, None, 1e-6),
        (residual, fn),
        atol=1e-4,
    )


def test_a_layer_between_streams():
    block = MHCPipeline(2, 32)

    def wanted(x, *parameters):
        fn, scale, base = parameters
        pre, post, comb = reference.mhc_pre_split_mixes_ref(
            reference.mhc_pre_norm_fn_ref(x, fn, None, 1e-6), scale, base, 2, 2.0, 1e-6
        )
        comb = reference.sinkhorn_normalize_ref(comb)
        return reference.mhc_post_ref(reference.mhc_pre_apply_mix_ref(x, pre) * 2, x, post, comb)

    def got(x, *parameters):
        return torch.func.functional_call(block, dict(zip(("fn", "scale", "base"), parameters)), (x, lambda y: y * 2))

    expect_gradients(
        got, wanted, (torch.randn(2, 6, 2, 32).bfloat16(), *(p.detach() for p in block.parameters())), rtol=2e-2, atol=2e-2
    )
    x = torch.randn(6, 32).bfloat16()
    assert block(x).shape == (6, 2, 32)
    with torch.no_grad():
        residual = torch.randn(2, 6, 2, 32).bfloat16()
        fused, _ = mhc_pre(residual, block.fn, block.scale, block.base, mhc_mult=2)
    assert_equal(fused, mhc_pre(residual, block.fn, block.scale, block.base, mhc_mult=2)[0].detach())
    assert mhc_head(residual, block.fn, torch.ones(1), torch.zeros(2), mhc_mult=2).shape == (2, 6, 32)


@pytest.mark.parametrize("layers, behind", [(3, 2), (4, 4), (6, 5)])
def test_layers_that_are_made_again(layers, behind):
    first = torch.randn(1, 6, 2, 24).bfloat16()
    mixes, comb = [torch.rand(1, 6, 2, 1) for _ in range(layers)], [torch.rand(1, 6, 2, 2) for _ in range(layers)]
    outputs = [torch.randn(1, 6, 24).bfloat16() for _ in range(layers)]
    inputs, residuals = [torch.empty(1, 6, 24).bfloat16() for _ in range(layers)], [torch.empty_like(first) for _ in range(behind)]
    ops.mhc_multilayer_recompute(first, mixes, outputs[:behind], mixes[:behind], comb[:behind], inputs, residuals)
    residual = first
    for layer in range(layers):
        assert_equal(inputs[layer], ops.mhc_pre_apply_mix(residual, mixes[layer]))
        if layer < behind:
            residual = mhc_post(outputs[layer], residual, mixes[layer], comb[layer])
            assert_equal(residuals[layer], residual)
    with pytest.raises(tw.TilewrightError, match=f"{layers} layers with {layers} inputs"):
        ops.mhc_multilayer_recompute(first, mixes, outputs[:1], mixes[:1], comb[:1], inputs, residuals[:1])


# ---- the package


def public_functions():
    for part in ("moe", "quant", "transpose", "engram", "mhc"):
        module = getattr(kernels, part)
        for name, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__.startswith("tilewright.kernels") and not name.startswith("_"):
                yield part, name, value


def test_every_function_is_on_the_page():
    page = (ROOT / "docs/kernels.md").read_text()
    helpers = {"check", "refuse_option", "chosen", "name_of", "place_of", "refuse_shape"}
    found = {name for _, name, value in public_functions() if value.__doc__ and name not in helpers}
    assert len(found) > 40
    assert not [name for name in found if name not in page]
    assert not [
        name
        for name in (*vars(reference), *ops.__dict__)
        if callable(vars(ops).get(name)) and not name.startswith("_") and name not in page
    ]


def run(program):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)


def test_the_other_name():
    program = """
import sys, tilewright
assert "torch" not in sys.modules and "tilewright.kernels" not in sys.modules
tilewright.install_as_tile_kernels()
import tile_kernels, tilewright.kernels
from tile_kernels.torch.per_channel_cast_fused import per_channel_cast_fused
from tile_kernels.testing.bench import make_param_id
import tile_kernels.torch as references
assert tile_kernels is tilewright.kernels and references.per_channel_cast_fused is per_channel_cast_fused
assert tile_kernels.quant is tilewright.kernels.quant and tile_kernels.__spec__.name == "tilewright.kernels"
try:
    import tile_kernels.no_such_part
except ModuleNotFoundError as error:
    print(error)
"""
    done = run(program)
    assert done.returncode == 0 and "no_such_part" in done.stdout, done.stderr


def test_an_installed_package_is_not_hidden(tmp_path):
    (tmp_path / "tile_kernels").mkdir()
    (tmp_path / "tile_kernels" / "__init__.py").write_text("real = True\n")
    program = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import tilewright
try:
    tilewright.install_as_tile_kernels()
except tilewright.TilewrightError as error:
    print("refused" if "force=True" in str(error) else error)
import tile_kernels
assert tile_kernels.real
tilewright.install_as_tile_kernels(force=True)
import tile_kernels
print(tile_kernels.__name__)
"""
    done = run(program)
    assert done.stdout.split() == ["refused", "tilewright.kernels"], done.stderr


def test_measuring():
    from tilewright.kernels.testing import benchmark_kernel

    x = torch.randn(1, 64, 64)
    found = benchmark_kernel(fn=kernels.transpose.batched_transpose, args=(x,), warmup=1, rep=1)
    assert found.min > 0 and abs(found.gbps - 2 * 64 * 64 * 4 / found.mean / 1e6) < 1e-6 * found.gbps


def test_steps_that_are_known_at_the_call():
    import numpy as np
    import tilewright.language as T

    @tw.jit(engine="interpreter")
    def strided(A, step: T.int32):
        N = T.const("N")
        A: T.Tensor((N,), "int32")
        B = T.empty((N,), "int32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = 0
            if T.get_thread_binding() == 0:
                for i in T.serial(1, N, step):
                    B[i] = A[i]
        return B

    a = np.arange(1, 11, dtype="int32")
    assert strided(a, 4).tolist() == [0, 2, 0, 0, 0, 6, 0, 0, 0, 10]
