"""Choosing experts, sorting tokens by them, and adding up what comes back, at the shapes of models."""

import pytest

torch = pytest.importorskip("torch")
import tilewright.kernels.torch as reference  # noqa: E402
from tilewright.kernels import moe  # noqa: E402
from tilewright.kernels.testing.generator import generate_num_tokens  # noqa: E402
from tilewright.kernels.testing.numeric import assert_equal  # noqa: E402

shapes = pytest.mark.parametrize("tokens", generate_num_tokens())
experts = pytest.mark.parametrize("experts, topk", [(72, 6), (256, 8)])


@shapes
@experts
def test_a_layer_of_experts(device, tokens_of, tokens, experts, topk):
    logits = torch.randn((tokens_of(tokens), experts), device=device)
    weights, idx = moe.topk_gating(logits, topk)
    wanted, wanted_idx = reference.topk_gating(logits, topk)
    assert torch.equal(idx, wanted_idx) and torch.allclose(weights, wanted, rtol=1e-5)
    routing = moe.token_to_expert_map(idx, experts, alignment=16)
    assert torch.equal(routing.pos_to_expert[routing.token_topk_to_pos.long()].long(), idx)
    x = torch.randn((len(idx), 512), device=device).bfloat16()
    rows = moe.expand_to_fused(x, routing.token_topk_to_pos, routing.pos_to_expert)
    assert_equal(rows, reference.expand_to_fused(x, routing.token_topk_to_pos, routing.pos_to_expert))
    back = moe.reduce_fused(rows, weights, routing.token_topk_to_pos)
    assert_equal(back, reference.reduce_fused(rows, weights, routing.token_topk_to_pos))


@pytest.mark.benchmark
@shapes
@experts
def test_topk_gating_benchmark(device, tokens_of, tokens, experts, topk, measure):
    measure(moe.topk_gating, torch.randn((tokens_of(tokens) or 1, experts), device=device), topk)
