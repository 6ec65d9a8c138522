"""Tensors of PyTorch, where it is installed."""
import pytest

torch = pytest.importorskip("torch")

import tilewright as tw  # noqa: E402
import tilewright.language as T  # noqa: E402


@tw.jit(engine="interpreter")
def add(A, B, dtype: str = "float32"):
    N = T.const("N")
    A: T.Tensor((N,), dtype)
    B: T.Tensor((N,), dtype)
    C = T.empty((N,), dtype)
    with T.Kernel(T.ceildiv(N, 32), threads=32) as bx:
        for i in T.Parallel(32):
            C[bx * 32 + i] = A[bx * 32 + i] + B[bx * 32 + i]
    return C


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "float64"])
def test_results_are_torchs(dtype):
    kind = getattr(torch, dtype)
    a, b = (torch.randint(-8, 8, (100,)).to(kind) for _ in range(2))
    c = add(a, b, dtype)
    assert isinstance(c, torch.Tensor) and c.dtype == kind and torch.equal(c, a + b)
    assert torch.equal(add(a, b, kind), c)  # dtypes of torch name dtypes of the language


def test_float8_and_bool():
    @T.prim_func
    def cast(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float8_e4m3fn"), C: T.Tensor((16,), "bool")):
        with T.Kernel(1, threads=16):
            for i in T.Parallel(16):
                B[i] = A[i]
                C[i] = A[i] > 3

    a = torch.linspace(-20, 20, 16)
    b, c = tw.compile(cast, out_idx=[1, 2], engine="interpreter")(a)
    assert torch.equal(b.view(torch.uint8), a.to(torch.float8_e4m3fn).view(torch.uint8)) and torch.equal(c, a > 3)


def test_gradients_strides_and_devices():
    a = torch.ones(32, requires_grad=True)
    assert torch.equal(add(a, a).detach(), torch.full((32,), 2.0))
    wide = torch.ones(64)
    with pytest.raises(tw.LaunchError, match="TW4008"):
        add(wide[::2], wide[::2])
    assert torch.equal(add(wide[32:], wide[:32]), torch.full((32,), 2.0))


def test_profiler():
    kernel = add.compile(N=64)
    profiler = kernel.get_profiler()
    profiler.assert_allclose(lambda a, b: a + b)
    with pytest.raises(AssertionError, match="differ in"):
        profiler.assert_allclose(lambda a, b: a - b)
    assert profiler.do_bench(warmup=1, rep=2) > 0


def test_calls_are_seen_by_profilers():
    """Each call is a range under the kernel's name while PyTorch's profiler is on; of one that fails, too."""
    a = torch.ones(32)
    add(a, a)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        add(a, a)
        add(a, a)
        with pytest.raises(tw.LaunchError, match="TW4007"):
            add.compile(N=32)(a, torch.ones(31))
        torch.add(a, a)
    found = {event.key: event.count for event in seen.key_averages()}
    assert found["add"] == 3 and found["aten::add"] == 1, found
    add(a, a)
    assert {event.key: event.count for event in seen.key_averages()} == found
