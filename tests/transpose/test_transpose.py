"""Transposes at the shapes of experts' weights."""

import pytest

torch = pytest.importorskip("torch")
from tilewright.kernels.testing.generator import generate_hidden_sizes, generate_num_tokens  # noqa: E402
from tilewright.kernels.testing.numeric import assert_equal  # noqa: E402
from tilewright.kernels.transpose import batched_transpose, transpose  # noqa: E402

shapes = pytest.mark.parametrize("tokens", generate_num_tokens(64))
widths = pytest.mark.parametrize("hidden", generate_hidden_sizes()[::3])
dtypes = pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.bfloat16, torch.float32], ids=str)


def made(device, dtype, *shape):
    return torch.randn(shape, device=device).to(dtype)


@shapes
@widths
@dtypes
def test_transpose(device, tokens_of, tokens, hidden, dtype):
    wide = made(device, dtype, tokens_of(tokens), 2 * hidden)
    for x in (wide[:, :hidden], wide):
        assert_equal(transpose(x), x.T.contiguous())


@dtypes
def test_batched_transpose(device, tokens_of, dtype):
    x = made(device, dtype, 3, tokens_of(1024), 576)
    assert_equal(batched_transpose(x), x.transpose(1, 2).contiguous())


@pytest.mark.benchmark
@shapes
@widths
@dtypes
def test_batched_transpose_benchmark(device, tokens_of, tokens, hidden, dtype, measure):
    measure(batched_transpose, made(device, dtype, 8, tokens_of(tokens) or 1, hidden))
