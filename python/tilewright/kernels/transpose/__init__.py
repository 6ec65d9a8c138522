"""Transposes of matrices and of batches of them."""

from __future__ import annotations

import tilewright.language as T
import torch

from ...ops.calls import chosen, name_of, place_of, refuse_shape
from ..arguments import check
from ..programs import Family


@Family
def transposed(x, tile, threads):
    """Through a tile that is read across, from rows at any distance."""
    batch, rows, columns, step, row = T.dynamic("batch, rows, columns, step, row")

    @T.prim_func
    def batched_transpose(X: T.StridedTensor((batch, rows, columns), (step, row, 1), x), Y: T.Tensor((batch, columns, rows), x)):
        with T.Kernel(T.ceildiv(columns, tile), T.ceildiv(rows, tile), batch, threads=threads) as (bx, by, b):
            lying = T.alloc_shared((tile, tile), x)
            turned = T.alloc_fragment((tile, tile), x)
            T.copy(X[b, by * tile, bx * tile], lying)
            for j, i in T.Parallel(tile, tile):
                turned[j, i] = lying[i, j]
            T.copy(turned, Y[b, bx * tile, by * tile])

    return batched_transpose


def batched_transpose(x: torch.Tensor) -> torch.Tensor:
    """x of shape (batch, m, n) as (batch, n, m). x: any dtype of 1 to 8 bytes; its rows may lie at any distance."""
    check("batched_transpose", "x", x, rank=3, compact=False)
    if x.numel() and x.shape[2] > 1 and x.stride(2) != 1:
        check("batched_transpose", "x", x)
    batch, rows, columns = x.shape
    out = torch.empty((batch, columns, rows), dtype=x.dtype, device=x.device)
    if out.numel():
        found = chosen("transpose", {"x": name_of(x.dtype)}, place_of(x), {"M": rows, "N": columns})["options"]
        transposed(x, x=name_of(x.dtype), tile=int(found["tile"]), threads=int(found["threads"]))(x, out)
    return out


def transpose(x: torch.Tensor) -> torch.Tensor:
    """x of shape (m, n) as (n, m). x: any dtype of 1 to 8 bytes; its rows may lie at any distance."""
    if getattr(x, "ndim", 2) != 2:
        refuse_shape(
            "transpose",
            f"'x' has {x.ndim} dimensions (shape {tuple(x.shape)}), but must have 2",
            "batched_transpose() takes three",
        )
    check("transpose", "x", x, compact=False)
    return batched_transpose(x[None])[0]
