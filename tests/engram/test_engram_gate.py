"""Gates of normalized rows and of engrams, at the shapes of models."""

import pytest

torch = pytest.importorskip("torch")
from tilewright.kernels import engram  # noqa: E402
from tilewright.kernels.testing.generator import generate_hidden_sizes, generate_num_tokens  # noqa: E402
from tilewright.kernels.testing.numeric import calc_diff  # noqa: E402
from tilewright.kernels.torch.engram import engram_gate_ref  # noqa: E402

shapes = pytest.mark.parametrize("tokens", generate_num_tokens())
widths = pytest.mark.parametrize("hidden", generate_hidden_sizes(128)[::3])


@shapes
@widths
def test_engram_gate(device, tokens_of, tokens, hidden):
    x, k = torch.randn((2, tokens_of(tokens), 4, hidden), device=device).bfloat16()
    v, (wh, we) = torch.randn((len(x), hidden), device=device).bfloat16(), torch.randn((2, 4, hidden), device=device).bfloat16()
    got = engram.engram_gate_fwd(x, k, v, engram.fused_weight(wh, we), 1e-20, 1e-6)
    for a, b in zip(got, engram_gate_ref(x, k, v, wh, we, 1e-6, 1e-20, save_for_backward=True)):
        assert calc_diff(a, b) < 2e-10


@shapes
@widths
def test_engram_gate_forward(device, tokens_of, tokens, hidden):
    x = torch.randn((tokens_of(tokens), hidden), device=device).bfloat16()
    weight = torch.randn((256, hidden), device=device).bfloat16()
    out, norm = engram.engram_gate_forward(x, weight)
    wanted = (x.float() * torch.rsqrt(x.float().square().mean(1, keepdim=True) + 1e-6)).bfloat16()
    assert calc_diff(norm, wanted) < 1e-6 and calc_diff(out, wanted.float() @ weight.float().T) < 1e-4


@pytest.mark.benchmark
@shapes
@widths
def test_engram_gate_benchmark(device, tokens_of, tokens, hidden, measure):
    x, k = torch.randn((2, tokens_of(tokens) or 1, 4, hidden), device=device).bfloat16()
    v, weight = torch.randn((len(x), hidden), device=device).bfloat16(), torch.randn((4, hidden), device=device)
    measure(engram.engram_gate_fwd, x, k, v, weight, 1e-6, 1e-6)
