"""Casts to float8 at the shapes of activations and weights."""

import pytest

torch = pytest.importorskip("torch")
import tilewright.kernels.torch as reference  # noqa: E402
from tilewright.kernels.quant import (
    fused_swiglu_quant_fp8,
    per_block_cast_fp8,
    per_channel_cast_fp8,
    per_token_cast_fp8,
)  # noqa: E402
from tilewright.kernels.testing.generator import generate_hidden_sizes, generate_num_tokens  # noqa: E402
from tilewright.kernels.testing.numeric import assert_equal  # noqa: E402

shapes = pytest.mark.parametrize("tokens", generate_num_tokens())
widths = pytest.mark.parametrize("hidden", generate_hidden_sizes()[::3])
casts = pytest.mark.parametrize(
    "cast", [per_token_cast_fp8, per_block_cast_fp8, per_channel_cast_fp8], ids=lambda cast: cast.__name__
)


@shapes
@widths
@casts
def test_casts(device, tokens_of, tokens, hidden, cast):
    x = torch.randn((tokens_of(tokens), hidden), device=device).bfloat16()
    for got, wanted in zip(cast(x), getattr(reference, cast.__name__)(x)):
        assert_equal(got, wanted)


@shapes
@widths
def test_fused_swiglu(device, tokens_of, tokens, hidden):
    gate, up = torch.randn((2, tokens_of(tokens), hidden), device=device).bfloat16()
    wanted = reference.per_token_cast_fp8(reference.swiglu_forward(torch.cat([gate, up], 1)))
    for got, expected in zip(fused_swiglu_quant_fp8(gate, up), wanted):
        assert_equal(got, expected)


@pytest.mark.benchmark
@shapes
@widths
@casts
def test_casts_benchmark(device, tokens_of, tokens, hidden, cast, measure):
    measure(cast, torch.randn((tokens_of(tokens) or 1, hidden), device=device).bfloat16())
