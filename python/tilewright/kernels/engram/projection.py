"""Gates of normalized rows: their products with one row for each gate, forward and backward."""

from __future__ import annotations

import tilewright.language as T
import torch

from ...ops import matmul, rms_norm
from ..arguments import check
from ..programs import Family

_NAMES = {torch.bfloat16: "bfloat16", torch.float16: "float16", torch.float32: "float32"}


@Family
def norm_gradient(x, columns=2048, threads=128):
    """What comes back through a row divided by its root mean square."""
    tokens, hidden = T.dynamic("tokens, hidden")

    @T.prim_func
    def rms_norm_backward(
        dN: T.Tensor((tokens, hidden), x), X: T.Tensor((tokens, hidden), x), dX: T.Tensor((tokens, hidden), x), epsilon: T.float32
    ):
        with T.Kernel(tokens, threads=threads) as t:
            squares = T.alloc_fragment((1, columns), "float32")
            products = T.alloc_fragment((1, columns), "float32")
            square = T.alloc_fragment((1,), "float32")
            product = T.alloc_fragment((1,), "float32")
            T.clear(squares)
            T.clear(products)
            for step in T.serial(T.ceildiv(hidden, columns)):
                for i, j in T.Parallel(1, columns):
                    value, grad = T.cast(X[t, step * columns + j], "float32"), T.cast(dN[t, step * columns + j], "float32")
                    squares[i, j] = squares[i, j] + value * value
                    products[i, j] = products[i, j] + value * grad
            T.reduce_sum(squares, square, dim=1)
            T.reduce_sum(products, product, dim=1)
            for i in T.Parallel(1):
                square[i] = T.rsqrt(square[i] / T.cast(hidden, "float32") + epsilon)
                product[i] = product[i] * square[i] * square[i] / T.cast(hidden, "float32")
            for step in T.serial(T.ceildiv(hidden, columns)):
                for i, j in T.Parallel(1, columns):
                    c = step * columns + j
                    if c < hidden:
                        dX[t, c] = T.cast(square[0] * (T.cast(dN[t, c], "float32") - T.cast(X[t, c], "float32") * product[0]), x)

    return rms_norm_backward


def _check(function, hidden, weight):
    check(function, "hidden", hidden, tuple(_NAMES), rank=2)
    check(function, "weight", weight, (hidden.dtype,), shape=(None, hidden.shape[1]))


def engram_gate_forward(hidden: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> tuple[torch.Tensor, torch.Tensor]:
    """(norm_hidden @ weight^T (tokens, gates), norm_hidden): rows of hidden (tokens, hidden) divided by the root of their
    mean square plus eps.

    weight: (gates, hidden); all of one dtype, bfloat16, float16 or float32. Sums are float32.
    """
    _check("engram_gate_forward", hidden, weight)
    with torch.no_grad():
        norm = rms_norm(hidden, epsilon=eps)
        return matmul(norm, weight, transpose_b=True), norm


def engram_gate_backward(
    grad_output: torch.Tensor, hidden: torch.Tensor, weight: torch.Tensor, norm_hidden: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of hidden and weight of engram_gate_forward(): grad_output is (tokens, gates), norm_hidden what it returned."""
    name = "engram_gate_backward"
    _check(name, hidden, weight)
    check(name, "grad_output", grad_output, (hidden.dtype,), shape=(hidden.shape[0], weight.shape[0]))
    with torch.no_grad():
        of_norm = matmul(grad_output, weight)
        grad = torch.empty_like(hidden)
        if grad.numel():
            norm_gradient(hidden, x=_NAMES[hidden.dtype])(of_norm, hidden, grad, eps)
    return grad, engram_weight_grad(grad_output, norm_hidden)


def engram_weight_grad(grad_output: torch.Tensor, norm_hidden: torch.Tensor) -> torch.Tensor:
    """The gradient of the weight of engram_gate_forward(), (gates, hidden): grad_output^T @ norm_hidden, summed in float32."""
    check("engram_weight_grad", "norm_hidden", norm_hidden, tuple(_NAMES), rank=2)
    check("engram_weight_grad", "grad_output", grad_output, (norm_hidden.dtype,), shape=(norm_hidden.shape[0], None))
    with torch.no_grad():
        return matmul(grad_output, norm_hidden, transpose_a=True)
