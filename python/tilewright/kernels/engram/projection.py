"""Gates of normalized rows: their products with one row for each gate, forward and backward."""

from __future__ import annotations

import tilewright.language as T
import torch

from ...ops import matmul, rms_norm
from ..arguments import ceil_div, check
from ..config import get_num_sms
from ..programs import Family
from .programs import row_threads

_FEW = 64  # gates whose products are a tile beside rows; more are a product of matrices
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
def few_products(x, gates, rows=64, columns=256):
    """Rows divided by the roots of their mean squares, and their products with a few others. A block goes through its rows twice,
    backwards where it writes: what it has read last is still near."""
    tokens, hidden = T.dynamic("tokens, hidden")
    padded = (gates + 7) // 8 * 8

    @T.prim_func
    def few_gates(
        X: T.Tensor((tokens, hidden), x),
        W: T.Tensor((gates, hidden), x),
        N: T.Tensor((tokens, hidden), x),
        Y: T.Tensor((tokens, gates), x),
        epsilon: T.float32,
    ):
        with T.Kernel(T.ceildiv(tokens, rows), threads=128) as bx:
            lying = T.alloc_shared((rows, columns), x)
            w = T.alloc_shared((padded, columns), x)
            acc = T.alloc_fragment((rows, padded), "float32")
            squares = T.alloc_fragment((rows, columns), "float32")
            norm = T.alloc_fragment((rows,), "float32")
            steps = T.ceildiv(hidden, columns)
            T.clear(acc)
            T.clear(squares)
            for step in T.Pipelined(steps, num_stages=4):
                T.copy(X[bx * rows, step * columns], lying)
                T.copy(W[0, step * columns], w)
                T.gemm(lying, w, acc, transpose_B=True)
                for i, j in T.Parallel(rows, columns):
                    value = T.cast(lying[i, j], "float32")
                    squares[i, j] = squares[i, j] + value * value
            T.reduce_sum(squares, norm, dim=1)
            for i in T.Parallel(rows):
                norm[i] = T.rsqrt(norm[i] / T.cast(hidden, "float32") + epsilon)
            for i, n in T.Parallel(rows, gates):
                Y[bx * rows + i, n] = T.cast(acc[i, n] * norm[i], x)
            for done in T.Pipelined(steps, num_stages=4):
                step = steps - 1 - done
                T.copy(X[bx * rows, step * columns], lying)
                for i, j in T.Parallel(rows, columns):
                    N[bx * rows + i, step * columns + j] = T.cast(T.cast(lying[i, j], "float32") * norm[i], x)

    return few_gates


@Family
def few_gradients(x, gates, rows=64, columns=128):
    """What comes back to the rows of few_products(), which are gone through as there."""
    tokens, hidden = T.dynamic("tokens, hidden")
    depth = (gates + 15) // 16 * 16

    @T.prim_func
    def few_gates_backward(
        dY: T.Tensor((tokens, gates), x),
        W: T.Tensor((gates, hidden), x),
        X: T.Tensor((tokens, hidden), x),
        dX: T.Tensor((tokens, hidden), x),
        epsilon: T.float32,
    ):
        with T.Kernel(T.ceildiv(tokens, rows), threads=256) as bx:
            given = T.alloc_shared((rows, depth), x)
            w = T.alloc_shared((depth, columns), x)
            lying, made = (T.alloc_shared((rows, columns), x) for _ in range(2))
            grad, squares, products = (T.alloc_fragment((rows, columns), "float32") for _ in range(3))
            norm, product = (T.alloc_fragment((rows,), "float32") for _ in range(2))
            steps = T.ceildiv(hidden, columns)
            T.copy(dY[bx * rows, 0], given)
            T.clear(squares)
            T.clear(products)
            for step in T.Pipelined(steps, num_stages=4):
                T.copy(W[0, step * columns], w)
                T.copy(X[bx * rows, step * columns], lying)
                T.gemm(given, w, grad, clear_accum=True)
                for i, j in T.Parallel(rows, columns):
                    value = T.cast(lying[i, j], "float32")
                    squares[i, j] = squares[i, j] + value * value
                    products[i, j] = products[i, j] + value * grad[i, j]
            T.reduce_sum(squares, norm, dim=1)
            T.reduce_sum(products, product, dim=1)
            for i in T.Parallel(rows):
                norm[i] = T.rsqrt(norm[i] / T.cast(hidden, "float32") + epsilon)
                product[i] = product[i] * norm[i] * norm[i] / T.cast(hidden, "float32")
            for done in T.Pipelined(steps, num_stages=4):
                step = steps - 1 - done
                T.copy(W[0, step * columns], w)
                T.copy(X[bx * rows, step * columns], lying)
                T.gemm(given, w, grad, clear_accum=True)
                for i, j in T.Parallel(rows, columns):
                    found = norm[i] * (grad[i, j] - T.cast(lying[i, j], "float32") * product[i])
                    made[i, j] = T.cast(found, x)
                T.copy(made, dX[bx * rows, step * columns])

    return few_gates_backward


@Family
def few_sums(x, gates, columns=256, together=64):
    """Sums over tokens of products of a few gates' gradients with rows: a block has some columns and a run of tokens. Then the
    runs' sums are added up."""
    tokens, hidden, parts = T.dynamic("tokens, hidden, parts")
    padded = (gates + 15) // 16 * 16

    @T.prim_func
    def few_weight_gradients(
        dY: T.Tensor((tokens, gates), x),
        N: T.Tensor((tokens, hidden), x),
        sums: T.Tensor((parts, gates, hidden), "float32"),
        dW: T.Tensor((gates, hidden), x),
    ):
        with T.Kernel(T.ceildiv(hidden, columns), parts, threads=256) as (bx, part):
            lying = T.alloc_shared((together, columns), x)
            given = T.alloc_shared((together, padded), x)
            acc = T.alloc_fragment((columns, padded), "float32")
            steps = T.ceildiv(T.ceildiv(tokens, together), parts)
            T.clear(acc)
            for step in T.Pipelined(steps, num_stages=4):
                first = (part * steps + step) * together
                T.copy(N[first, bx * columns], lying)
                T.copy(dY[first, 0], given)
                T.gemm(lying, given, acc, transpose_A=True)
            for j, g in T.Parallel(columns, gates):
                sums[part, g, bx * columns + j] = acc[j, g]
        with T.Kernel(T.ceildiv(hidden, 256), gates, threads=64) as (bx, g):
            total = T.alloc_fragment((256,), "float32")
            T.clear(total)
            for part in T.unroll(parts, unroll_factor=4):
                for j in T.Parallel(256):
                    total[j] = total[j] + sums[part, g, bx * 256 + j]
            T.copy(total, dW[g, bx * 256])

    return few_weight_gradients


def _check(function, hidden, weight):
    check(function, "hidden", hidden, tuple(_NAMES), rank=2)
    check(function, "weight", weight, (hidden.dtype,), shape=(None, hidden.shape[1]))


def _is_few(hidden, gates):
    """Whether products have programs here: those of few gates, that tensor cores make of such numbers."""
    return hidden.dtype != torch.float32 and 0 < gates <= _FEW and hidden.numel() > 0


def engram_gate_forward(hidden: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> tuple[torch.Tensor, torch.Tensor]:
    """(norm_hidden @ weight^T (tokens, gates), norm_hidden): rows of hidden (tokens, hidden) divided by the root of their
    mean square plus eps.

    weight: (gates, hidden); all of one dtype, bfloat16, float16 or float32. Sums are float32.
    """
    _check("engram_gate_forward", hidden, weight)
    with torch.no_grad():
        if _is_few(hidden, weight.shape[0]):
            norm, out = torch.empty_like(hidden), hidden.new_empty((hidden.shape[0], weight.shape[0]))
            few_products(hidden, x=_NAMES[hidden.dtype], gates=weight.shape[0])(hidden, weight, norm, out, eps)
            return out, norm
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
        grad = torch.empty_like(hidden)
        if _is_few(hidden, weight.shape[0]):
            kernel = few_gradients(hidden, x=_NAMES[hidden.dtype], gates=weight.shape[0])
            kernel(grad_output, weight, hidden, grad, eps)
        elif grad.numel():
            kernel = norm_gradient(hidden, x=_NAMES[hidden.dtype], hidden=hidden.shape[1], threads=row_threads(hidden.shape[1]))
            kernel(matmul(grad_output, weight), hidden, grad, eps)
    return grad, engram_weight_grad(grad_output, norm_hidden)


def engram_weight_grad(grad_output: torch.Tensor, norm_hidden: torch.Tensor) -> torch.Tensor:
    """The gradient of the weight of engram_gate_forward(), (gates, hidden): grad_output^T @ norm_hidden, summed in float32."""
    check("engram_weight_grad", "norm_hidden", norm_hidden, tuple(_NAMES), rank=2)
    check("engram_weight_grad", "grad_output", grad_output, (norm_hidden.dtype,), shape=(norm_hidden.shape[0], None))
    (tokens, gates), hidden = grad_output.shape, norm_hidden.shape[1]
    with torch.no_grad():
        if not _is_few(norm_hidden, gates):
            return matmul(grad_output, norm_hidden, transpose_a=True)
        parts = max(1, min(get_num_sms() // ceil_div(hidden, 256), ceil_div(tokens, 64)))
        made = norm_hidden.new_empty((gates, hidden))
        few_sums(norm_hidden, x=_NAMES[norm_hidden.dtype], gates=gates)(
            grad_output, norm_hidden, made.new_empty((parts, gates, hidden), dtype=torch.float32), made
        )
        return made
