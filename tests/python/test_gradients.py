"""Kernels between tensors that want gradients: none is lost without a word, and nothing else changes."""
import pytest
import tilewright as tw
import tilewright.language as T

torch = pytest.importorskip("torch")


@T.prim_func
def doubled(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            B[i] = A[i] * 2


@T.prim_func
def both(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32"), C: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            B[i] = A[i] * 2
            C[i] = i


def lost():
    return pytest.raises(tw.LaunchError, match="TW4022 launch: a gradient of '(doubled|both)' is asked for")


@pytest.fixture
def weight():
    return torch.ones(8, requires_grad=True)


def test_what_is_made_and_returned(weight):
    made = tw.compile(doubled, out_idx=-1, engine="interpreter")(weight)
    assert made.requires_grad and torch.equal(made.detach(), torch.full((8,), 2.0))
    with lost() as caught:
        (made + weight).sum().backward()
    assert caught.value.file == __file__ and isinstance(caught.value, NotImplementedError)


def test_what_is_given_and_written(weight):
    kernel = tw.compile(doubled, engine="interpreter")
    given = torch.zeros(8)
    kernel(weight, given)
    assert torch.equal(given.detach(), torch.full((8,), 2.0))
    with lost():
        given.sum().backward()
    later = torch.zeros(8)
    tw.compile(doubled, out_idx=-1, engine="interpreter")(weight.detach(), later)
    assert not later.requires_grad


def test_several_results_of_which_one_is_of_integers(weight):
    b, c = tw.compile(both, out_idx=[1, 2], engine="interpreter")(weight)
    assert b.requires_grad and not c.requires_grad and c.tolist() == list(range(8))
    with lost():
        b.sum().backward()


def test_a_parameter_that_is_written_in_place_stays_one(weight):
    """As an optimizer's step does it: the parameter is a leaf before and after."""
    kernel = tw.compile(doubled, engine="interpreter")
    parameter = torch.zeros(8, requires_grad=True)
    kernel(torch.ones(8), parameter)
    assert parameter.is_leaf and parameter.grad_fn is None and torch.equal(parameter.detach(), torch.full((8,), 2.0))


def test_where_no_gradient_is_wanted(weight):
    kernel = tw.compile(doubled, out_idx=-1, engine="interpreter")
    with torch.no_grad():
        assert not kernel(weight).requires_grad
    with torch.inference_mode():
        assert not kernel(weight).requires_grad
    assert not kernel(weight.detach()).requires_grad and kernel(torch.ones(8)).grad_fn is None


def test_functions_with_a_gradient_of_their_own(weight):
    kernel = tw.compile(doubled, out_idx=-1, engine="interpreter")

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return kernel(x)

        @staticmethod
        def backward(ctx, grad):
            return kernel(grad.contiguous())

    Doubled.apply(weight).sum().backward()
    assert torch.equal(weight.grad, torch.full((8,), 2.0))
    weight.grad = None
    tw.custom_op("gradients::doubled", kernel, backward=lambda ctx, grad: grad * 2)(weight).sum().backward()
    assert torch.equal(weight.grad, torch.full((8,), 2.0))


def test_other_gradients_of_a_module_go_on(weight):
    """What does not depend on the kernel's result has its gradient."""
    tw.compile(doubled, out_idx=-1, engine="interpreter")(weight)
    (weight * 3).sum().backward()
    assert torch.equal(weight.grad, torch.full((8,), 3.0))


def test_tensors_that_libraries_derive(weight):
    kernel = tw.compile(doubled, out_idx=-1, engine="interpreter")
    with lost():
        kernel(torch.nn.Parameter(torch.ones(8))).sum().backward()
    with lost():
        kernel(weight * 1.0).sum().backward()


@T.prim_func
def squared(A: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            A[i] = A[i] * A[i]


def test_what_is_written_over_had_a_gradient(weight):
    for write in (lambda h: tw.compile(squared, engine="interpreter")(h), lambda h: tw.compile(doubled, engine="interpreter")(torch.ones(8), h)):
        hidden = weight * 3
        write(hidden)
        with pytest.raises(tw.LaunchError, match="TW4022"):
            hidden.sum().backward()


def test_what_pytorch_saved_of_it_is_not_what_it_was(weight):
    hidden = weight * 1
    wanted = hidden.square().sum()
    tw.compile(doubled, engine="interpreter")(torch.ones(8), hidden)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        wanted.backward()


def test_rows_of_an_output_in_a_loop(weight):
    rows = torch.zeros(3, 8)
    with pytest.warns(UserWarning, match="'doubled' wrote to a part of a tensor whose gradients PyTorch cannot follow"):
        for row in rows:
            tw.compile(doubled, engine="interpreter")(weight, row)
    assert torch.equal(rows, torch.full((3, 8), 2.0))


def test_simulated_and_checked_calls(weight):
    kernel = tw.compile(doubled, out_idx=-1, engine="interpreter")
    for made in (kernel.simulate(weight)[0], kernel.check(weight)):
        with pytest.raises(tw.LaunchError, match="TW4022"):
            made.sum().backward()
