"""ops.gemm_fp8 by each kind of scales, beside what they say in float64."""

import pytest

torch = pytest.importorskip("torch")

from tilewright import ops  # noqa: E402
from tilewright.errors import TilewrightError  # noqa: E402


def operands(m, n, k, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, k, generator=generator).to(torch.float8_e4m3fn) for rows in (m, n)]


def scaled(x, scale, rows):
    if scale.numel() == 1:
        return x.double() * scale.double()
    each = scale.double().repeat_interleave(rows, 0)[: x.shape[0]].repeat_interleave(128, 1)[:, : x.shape[1]]
    return x.double() * each


@pytest.mark.parametrize("m, n, k", [(130, 257, 300), (1, 128, 128), (64, 40, 1)])
@pytest.mark.parametrize("kind", ["one", "rows", "blocks", "fast"])
def test_each_kind_of_scales(m, n, k, kind):
    a, b = operands(m, n, k)
    blocks, rows_of_b = -(-k // 128), -(-n // 128)
    shapes = {"rows": ((m, blocks), (n, blocks)), "blocks": ((m, blocks), (rows_of_b, blocks))}.get(kind, ((1, 1), (1, 1)))
    scale_a, scale_b = (torch.rand(shape) + 0.5 for shape in shapes)
    got = ops.gemm_fp8(a, b, scale_a, scale_b, out_dtype="float32", fast_sum=kind == "fast")
    want = scaled(a, scale_a, 1) @ scaled(b, scale_b, 128 if kind == "blocks" else 1).T
    assert (got.double() - want).abs().max() <= 1e-5 * want.abs().max()


def test_a_fast_sum_has_one_scale():
    a, b = operands(8, 8, 256)
    with pytest.raises(TilewrightError, match=r"fast_sum with scales of shapes \(8, 2\) and \(8, 2\)"):
        ops.gemm_fp8(a, b, torch.ones(8, 2), torch.ones(8, 2), fast_sum=True)
