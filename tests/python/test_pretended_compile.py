"""torch.compile without a GPU: products that are added are rounded once, as on a GPU."""
from fractions import Fraction

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from tilewright.pretended_compile import compile as compiled  # noqa: E402


def rounded(exact):
    """The nearest float32 of a fraction, of two the even one."""
    near = np.float32(float(exact))
    around = [np.nextafter(near, np.float32(d)) for d in (-np.inf, np.inf)] + [near]
    return min(around, key=lambda f: (abs(Fraction(float(f)) - exact), int(f.view(np.uint32)) & 1))


SUMS = [
    (lambda a, b, c: a * b + c, 1, 1), (lambda a, b, c: c + a * b, 1, 1), (lambda a, b, c: torch.mul(a, b) - c, 1, -1),
    (lambda a, b, c: c - a * b, -1, 1), (lambda a, b, c: (a * b).sub(c), 1, -1),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SUMS)))
def test_a_product_and_a_sum_are_one_rounding(number):
    function, sign, other = SUMS[number]
    torch.manual_seed(number)
    a, b = torch.randn(2, 500)
    c = -(a * b) * torch.tensor([1.0, 1e-3, 3e4, -1.0, 1.0]).repeat(100)  # sums that nearly cancel, too
    # Halfway but for a part beyond float64's last bit, and below the least normal number.
    a[0], b[0], c[0] = (1 + 2.0**-23) * 2.0**-12 * sign * other, (1 - 2.0**-23) * 2.0**-12, 1 + 2.0**-23
    a[1], b[1], c[1] = 2.0**-70, (1 + 2.0**-23) * 2.0**-70, 2.0**-140
    got, apart = compiled(function)(a, b, c), function(a, b, c)
    want = [rounded(sign * Fraction(x) * Fraction(y) + other * Fraction(z)) for x, y, z in zip(a.tolist(), b.tolist(), c.tolist())]
    assert got.tolist() == [float(w) for w in want]
    assert got.tolist() != apart.tolist()


def test_numbers_broadcasting_and_what_is_not_a_number():
    a, c = torch.tensor([[1.0 + 2.0**-23], [torch.inf]]), torch.tensor([1.0, -torch.inf, torch.nan])
    got = compiled(lambda: a * (1.0 - 2.0**-23) + c)()
    assert got.shape == (2, 3) and got[0, 0] == 2.0 and got[0, 1] == -torch.inf and got[1, 0] == torch.inf
    assert got[0, 2].isnan() and got[1, 1].isnan()
    assert (compiled(lambda: a[:1] * (1.0 - 2.0**-23) - 1.0)() == -(2.0**-46)).all()


def test_what_changed_since_is_added_as_it_is():
    a = torch.tensor([1.0 + 2.0**-23])

    def function():
        product = a * a
        product += 1
        return product - 1

    assert compiled(function)() == function()


def test_other_types_gradients_and_ways_to_say_it():
    a = torch.tensor([1.0 + 2.0**-10], dtype=torch.float16)
    assert compiled(lambda: a * a - 1)() == a * a - 1  # left as it is
    b = torch.tensor([3.0], requires_grad=True)
    compiled(lambda: b * b + b)().backward()
    assert b.grad.item() == 7.0
    model = torch.nn.Linear(2, 2)
    assert compiled(model) is model

    @compiled
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    assert Doubled.apply(torch.tensor([2.0])) == 4.0

    @compiled(dynamic=True)
    def named(x):
        return x * x + x

    assert named.__name__ == "named" and named(torch.tensor([2.0])) == 6.0


def test_tensors_of_inference_mode_are_left_as_they_are():
    a = torch.tensor([1.0 + 2.0**-23])
    with torch.inference_mode():
        assert compiled(lambda: a * a - 1)() == a * a - 1
        assert compiled(lambda: (a + 0) * a - (a + 1))() == (a + 0) * a - (a + 1)
