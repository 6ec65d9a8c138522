"""Gates of normalized rows: their products with one row for each gate, forward and backward."""

from __future__ import annotations

import tilewright.language as T
import torch

from ...ops import matmul, rms_norm
from ..arguments import ceil_div, check
from ..config import get_num_sms
from ..programs import Family, range_of
from .programs import row_threads

_FEW = 8  # gates whose sums a thread keeps; a product of matrices makes tiles of many more
_NAMES = {torch.bfloat16: "bfloat16", torch.float16: "float16", torch.float32: "float32"}


@Family
def norm_gradient(x, hidden, threads):
    """What comes back through a row divided by its root mean square. Rows stay in registers."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def rms_norm_backward(
        dN: T.Tensor((tokens, hidden), x), X: T.Tensor((tokens, hidden), x), dX: T.Tensor((tokens, hidden), x), epsilon: T.float32
    ):
        with T.Kernel(tokens, threads=threads) as t:
            grad, value = (T.alloc_fragment((1, hidden), x) for _ in range(2))
            part = T.alloc_fragment((1, hidden), "float32")
            square, product = (T.alloc_fragment((1,), "float32") for _ in range(2))
            T.copy(X[t, 0], value)
            T.copy(dN[t, 0], grad)
            for i, j in T.Parallel(1, hidden):
                part[i, j] = T.cast(value[i, j], "float32") * T.cast(value[i, j], "float32")
            T.reduce_sum(part, square, dim=1)
            for i, j in T.Parallel(1, hidden):
                part[i, j] = T.cast(value[i, j], "float32") * T.cast(grad[i, j], "float32")
            T.reduce_sum(part, product, dim=1)
            for i in T.Parallel(1):
                square[i] = T.rsqrt(square[i] / hidden + epsilon)
                product[i] = product[i] * square[i] * square[i] / hidden
            for i, j in T.Parallel(1, hidden):
                found = square[0] * (T.cast(grad[i, j], "float32") - T.cast(value[i, j], "float32") * product[0])
                dX[t, j] = T.cast(found, x)

    return rms_norm_backward


@Family
def few_sums(x, gates, columns=1024, together=16):
    """Sums over tokens of products of a few gates' gradients with rows: a block has some columns and a run of tokens, a thread
    eight columns of all gates. Then its parts are added up."""
    tokens, hidden, parts = T.dynamic("tokens, hidden, parts")
    numbers = range_of(gates)

    @T.prim_func
    def few_weight_gradients(
        dY: T.Tensor((tokens, gates), x),
        N: T.Tensor((tokens, hidden), x),
        sums: T.Tensor((parts, gates, hidden), "float32"),
        dW: T.Tensor((gates, hidden), x),
    ):
        with T.Kernel(T.ceildiv(hidden, columns), parts, threads=128) as (bx, part):
            lying = T.alloc_shared((together, columns), x)
            given = T.alloc_shared((together, gates), x)
            total = [T.alloc_fragment((columns,), "float32") for _ in numbers]
            steps = T.ceildiv(T.ceildiv(tokens, together), parts)
            for each in total:
                T.clear(each)
            for step in T.Pipelined(steps, num_stages=3):
                first = (part * steps + step) * together
                T.copy(N[first, bx * columns], lying)
                T.copy(dY[first, 0], given)
                for i in T.serial(together):
                    for g in numbers:
                        for j in T.Parallel(columns):
                            total[g][j] = total[g][j] + T.cast(given[i, g], "float32") * T.cast(lying[i, j], "float32")
            for g in numbers:
                T.copy(total[g], sums[part, g, bx * columns])
        with T.Kernel(T.ceildiv(hidden, 256), gates, threads=64) as (bx, g):
            total = T.alloc_fragment((256,), "float32")
            T.clear(total)
            for part in T.unroll(parts, unroll_factor=8):
                for j in T.Parallel(256):
                    total[j] = total[j] + sums[part, g, bx * 256 + j]
            T.copy(total, dW[g, bx * 256])

    return few_weight_gradients


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
            kernel = norm_gradient(hidden, x=_NAMES[hidden.dtype], hidden=hidden.shape[1], threads=row_threads(hidden.shape[1]))
            kernel(of_norm, hidden, grad, eps)
    return grad, engram_weight_grad(grad_output, norm_hidden)


def engram_weight_grad(grad_output: torch.Tensor, norm_hidden: torch.Tensor) -> torch.Tensor:
    """The gradient of the weight of engram_gate_forward(), (gates, hidden): grad_output^T @ norm_hidden, summed in float32."""
    check("engram_weight_grad", "norm_hidden", norm_hidden, tuple(_NAMES), rank=2)
    check("engram_weight_grad", "grad_output", grad_output, (norm_hidden.dtype,), shape=(norm_hidden.shape[0], None))
    (tokens, gates), hidden = grad_output.shape, norm_hidden.shape[1]
    with torch.no_grad():
        if gates > _FEW or not grad_output.numel() or not hidden:
            return matmul(grad_output, norm_hidden, transpose_a=True)
        parts = max(1, min(2 * get_num_sms() // ceil_div(hidden, 1024), ceil_div(tokens, 64)))
        made = norm_hidden.new_empty((gates, hidden))
        few_sums(norm_hidden, x=_NAMES[norm_hidden.dtype], gates=gates)(
            grad_output, norm_hidden, made.new_empty((parts, gates, hidden), dtype=torch.float32), made
        )
        return made
