"""Kernels as operators of PyTorch: fake tensors, torch.compile, gradients, CUDA graphs."""
import pytest

torch = pytest.importorskip("torch")

import tilewright as tw  # noqa: E402
import tilewright.language as T  # noqa: E402
from tilewright.torch_ops import custom_op  # noqa: E402

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
N = T.dynamic("N")


@T.prim_func
def scale_program(A: T.Tensor((N, 8), "float32"), factor: T.float32, B: T.Tensor((N, 8), "float32"),
                  C: T.Tensor((N + 1,), "int32")):  # fmt: skip
    with T.Kernel(N, threads=32) as bx:
        for j in T.Parallel(8):
            B[bx, j] = A[bx, j] * factor
        C[bx + 1] = bx
        C[0] = 7


@T.prim_func
def double_program(A: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 32), threads=32) as bx:
        for i in T.Parallel(32):
            if bx * 32 + i < N:
                A[bx * 32 + i] = A[bx * 32 + i] * 2


@tw.jit
def silu(X, sharp: int = 1):
    M, K = T.const("M, K")
    X: T.Tensor((M, K), "float32")
    Y = T.empty((M, K), "float32")
    with T.Kernel(M, threads=32) as bx:
        for j in T.Parallel(K):
            Y[bx, j] = X[bx, j] / (1 + T.exp(-sharp * X[bx, j]))
    return Y


def silu_gradient(ctx, grad):
    x, _ = ctx.saved_tensors
    s = torch.sigmoid(x)
    return grad * (s + x * s * (1 - s)), None


scale = custom_op("tilewright_test::scale", tw.compile(scale_program, out_idx=[2, 3]))
double_ = custom_op("tilewright_test::double_", tw.compile(double_program), mutates=("A",))
silu_op = custom_op("tilewright_test::silu", silu, backward=silu_gradient)


def test_schemas():
    assert str(scale._opoverload._schema).endswith("scale(Tensor A, float factor) -> (Tensor, Tensor)")
    assert str(double_._opoverload._schema).endswith("double_(Tensor(a0!) A) -> ()")
    assert str(silu_op._opoverload._schema).endswith("silu(Tensor X, int sharp=1) -> Tensor")
    with pytest.raises(ValueError, match=r"no tensor \['Z'\]"):
        custom_op("tilewright_test::none", tw.compile(double_program), mutates=("Z",))
    with pytest.raises(TypeError, match="custom_op.. takes a kernel or a function under @jit, not int"):
        custom_op("tilewright_test::none", 3)


def test_operators_pass_pytorchs_own_checks():
    torch.library.opcheck(scale, (torch.randn(4, 8, device=DEVICE), 2.0))
    torch.library.opcheck(double_, (torch.randn(40, device=DEVICE),))
    torch.library.opcheck(silu_op, (torch.randn(4, 8, device=DEVICE, requires_grad=True),))


def test_fake_tensors_have_the_shapes_of_real_ones():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        b, c = scale(torch.empty(5, 8, device=DEVICE), 2.0)
        assert b.shape == (5, 8) and b.dtype == torch.float32 and c.shape == (6,) and c.dtype == torch.int32
        assert silu_op(torch.empty(3, 7, device=DEVICE)).shape == (3, 7)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"] if GPU else ["aot_eager"])
def test_compiled_whole(backend):
    torch._dynamo.reset()

    def model(x, w):
        y = silu_op(x @ w)
        b, c = scale(y.detach() + 1, 3.0)
        d = b.flatten()
        double_(d)
        return y, d, c

    compiled = torch.compile(model, fullgraph=True, backend=backend)
    for rows in (4, 6, 9):
        x, w = torch.randn(rows, 5, device=DEVICE), torch.randn(5, 8, device=DEVICE, requires_grad=True)
        y, d, c = compiled(x, w)
        wanted = torch.nn.functional.silu(x @ w)
        torch.testing.assert_close(y, wanted)
        torch.testing.assert_close(d, ((wanted + 1) * 6).flatten())
        assert c.tolist() == [7, *range(rows)]
        gradient = torch.autograd.grad(y.square().sum(), w)
        torch.testing.assert_close(gradient, torch.autograd.grad(wanted.square().sum(), w))


def test_plain_calls_break_the_graph():
    torch._dynamo.reset()
    kernel = tw.compile(scale_program, out_idx=[2, 3])

    def model(x):
        return silu(kernel(x + 1, 2.0)[0]).sin()

    x = torch.randn(4, 8, device=DEVICE)
    torch.testing.assert_close(torch.compile(model, backend="aot_eager")(x), model(x))


def test_gradients():
    x = torch.randn(6, 8, device=DEVICE, dtype=torch.float32, requires_grad=True)
    silu_op(x).sum().backward()
    found, x.grad = x.grad, None
    torch.nn.functional.silu(x).sum().backward()
    torch.testing.assert_close(found, x.grad)
    y = torch.randn(6, 8, device=DEVICE)
    torch.testing.assert_close(silu_op(y, 1), torch.nn.functional.silu(y))


@pytest.mark.skipif(not GPU, reason="needs a CUDA device")
def test_cuda_graphs():
    kernel = tw.compile(scale_program, out_idx=[2, 3])
    a = torch.randn(64, 8, device="cuda")
    into = torch.empty_like(a), torch.zeros(65, dtype=torch.int32, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        kernel(a, 2.0, *into)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(a, 2.0, *into)
        made, _ = kernel(into[0], 2.0)
    for _ in range(3):
        a.normal_()
        graph.replay()
        assert torch.equal(into[0], a * 2) and torch.equal(made, a * 4)


@pytest.mark.skipif(not GPU, reason="needs a CUDA device")
def test_what_cannot_be_captured_says_so():
    @T.prim_func
    def prints(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=1):
            T.print(A[0])

    kernel, a = tw.compile(prints), torch.zeros(4, device="cuda")
    kernel(a)
    with pytest.raises(tw.LaunchError, match="prints or assertions cannot be captured"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            kernel(a)


@pytest.mark.skipif(not GPU, reason="needs a CUDA device")
def test_calls_go_to_the_current_stream():
    kernel = tw.compile(double_program)
    a = torch.ones(1 << 20, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        for _ in range(3):
            kernel(a)
    assert not stream.query()
    stream.synchronize()
    assert (a == 8).all()


def test_what_a_kernel_writes_must_be_told():
    with pytest.raises(tw.CompileError, match=r"'double_program' writes to A, which custom_op\(\) is not told") as error:
        custom_op("tilewright_test::hidden", tw.compile(double_program))
    assert "mutates=('A',)" in str(error.value)
