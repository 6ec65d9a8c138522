"""Products of float8 with scales: one each, of rows, of blocks of 128 x 128, in each tile that a GPU may take."""

import json

import pytest
import tilewright as tw
import torch
from tilewright import _native, ops
from tilewright.ops import quantized
from tilewright.ops.calls import Place, specialization
from tilewright.ops.products import kernel_for


def _operands(m, n, k, scales, seed=0):
    draw = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(rows, k, generator=draw).to(torch.float8_e4m3fn) for rows in (m, n))
    blocks = -(-k // 128)
    shapes = {"one": ((1, 1), (1, 1)), "fast": ((1, 1), (1, 1)), "rows": ((m, blocks), (n, blocks)), "blocks": ((m, blocks), (-(-n // 128), blocks))}[scales]
    return a, b, *(torch.rand(shape, generator=draw) + 0.5 for shape in shapes)


def _expected(a, b, scale_a, scale_b):
    def wide(x, scale):
        rows = scale if scale.shape[0] == x.shape[0] else scale.repeat_interleave(128, 0)[: x.shape[0]]
        return x.double() * rows.double().repeat_interleave(128, 1)[:, : x.shape[1]]

    if scale_a.numel() == scale_b.numel() == 1:
        return (a.double() * scale_a.double()) @ (b.double() * scale_b.double()).T
    return wide(a, scale_a) @ wide(b, scale_b).T


def _agrees(m, n, k, scales, across=False):
    given = list(_operands(m, n, k, scales))
    if across:
        given[2] = given[2].T.contiguous().T
    made, expected = ops.gemm_fp8(*given, out_dtype="float32", fast_sum=scales == "fast").double(), _expected(*given)
    assert made.shape == (m, n)
    assert ((made - expected).abs() <= 2e-3 * (1 + given[0].double().abs() @ given[1].double().abs().T)).all()
    assert (made - expected).norm() <= 2e-3 * expected.norm()


@pytest.mark.parametrize("scales", ["one", "rows", "blocks", "fast"])
@pytest.mark.parametrize("shape", [(70, 200, 300), (1, 129, 128), (128, 1, 64)])
def test_on_the_cpu(scales, shape, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "cpu")
    _agrees(*shape, scales)


# Two warpgroups with all sums at once and some at a time, by columns and by rows; one; three; columns that share no scale;
# steps of two and three blocks.
_TILES = ("128x128x128x4x256x1x0", "128x256x128x3x256x1x0", "256x128x128x3x256x1x0", "64x64x128x4x128x1x0",
          "192x128x128x4x384x1x0", "128x224x128x3x256x1x0", "64x64x128x4x128x2x0", "64x128x128x2x128x3x0")  # fmt: skip


@pytest.mark.parametrize("scales", ["one", "rows", "blocks"])
@pytest.mark.parametrize("tile", _TILES)
def test_each_tile_of_a_gpu_in_the_simulator(scales, tile, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "simulator")
    monkeypatch.setattr(quantized, "kernel_for", lambda o, place, _, outputs: (specialization("matmul", {**o, "tile": tile}, place, outputs), 0))
    _agrees(140, 272, 272, scales)
    if scales != "one":
        _agrees(140, 272, 272, scales, across=True)


@pytest.mark.parametrize("scales", ["rows", "blocks"])
def test_scales_of_many_rows_are_turned_once(scales, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "simulator")
    seen = []
    monkeypatch.setattr(quantized, "_MANY_ROWS", 128)
    monkeypatch.setattr(quantized, "kernel_for", lambda o, *rest: seen.append(o["transpose_scale_a"]) or kernel_for(o, *rest))
    for m in (132, 130, 124):  # their own number of rows is no whole pieces of 16 bytes; few rows
        _agrees(m, 144, 272, scales)
    assert seen == [True, False, False]


def test_a_fast_sum_in_the_simulator(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "simulator")
    _agrees(140, 272, 272, "fast")


def _chosen(m, n, k, scales, fast=False):
    options = {"a": "float8_e4m3fn", "b": "float8_e4m3fn", "result": "bfloat16", "transpose_b": True, "scales": scales, "fast_sum": fast}
    wanted, _ = kernel_for(options, Place("cuda", "sm_90a"), {"M": m, "N": n, "K": k}, ())
    return dict(wanted.options)


def test_a_fast_sum_has_a_loader():
    """Its loop is that of a product."""
    program = _native.library_program("matmul", _chosen(4096, 7168, 4096, "one", fast=True))
    plan = json.loads(program.explain("sm_90a", True, {}))
    assert plan["launches"][0]["plan"]["loader_role"]


@pytest.mark.parametrize("scales", ["one", "rows", "blocks"])
def test_a_tile_is_chosen_by_its_price(scales):
    rows, columns, depth, *_ = map(int, _chosen(4096, 7168, 16384, scales)["tile"].split("x"))
    assert rows * columns > 128 * 128 and depth == 128  # sums in parts: operands are read less often
    rows, columns, *_ = map(int, _chosen(16, 2112, 7168, scales)["tile"].split("x"))
    assert rows == 64 and columns <= 32  # of larger ones there are too few for the device


def test_a_fast_sum_is_of_one_scale():
    a, b, scale_a, scale_b = _operands(8, 8, 256, "rows")
    with pytest.raises(tw.TilewrightError, match=r"fast_sum with scales of shapes \(8, 2\) and \(8, 2\)"):
        ops.gemm_fp8(a, b, scale_a, scale_b, fast_sum=True)


def test_blocks_that_do_not_cover_b_are_refused():
    a, b, scale_a, scale_b = _operands(8, 200, 256, "blocks")
    with pytest.raises(tw.TilewrightError, match=r"\(8, 2\) and \(200, 2\) or \(2, 2\)"):
        ops.gemm_fp8(a, b, scale_a, scale_b[:1])
