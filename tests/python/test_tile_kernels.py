"""tilewright.kernels beside its references, bit for bit where the arithmetic says so: formats, layouts of scales, odd shapes,
engines, refusals."""

import pytest
import tilewright as tw

torch = pytest.importorskip("torch")
import tilewright.kernels as kernels  # noqa: E402
import tilewright.kernels.torch as reference  # noqa: E402
from tilewright.kernels.testing.numeric import assert_equal, calc_diff  # noqa: E402
from tilewright.kernels.torch.cast import e2m1_numbers  # noqa: E402

engines = pytest.mark.parametrize("engine", ["cpu", "interpreter", "simulator"])
LAYOUTS = [(False, False, False), (False, True, False), (True, True, True)]  # columns, rounded, packed


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(3)


@pytest.fixture
def on(monkeypatch):
    return lambda engine: monkeypatch.setenv("TILEWRIGHT_ENGINE", engine)


def normal(*shape, dtype=torch.bfloat16):
    """Numbers of several magnitudes, zeros among them."""
    x = torch.randn(shape) * 2.0 ** torch.randint(-6, 6, shape)
    return torch.where(torch.rand(shape) < 0.05, 0.0, x).to(dtype)


def expect_pair(got, expected):
    for a, b in zip(got, expected):
        assert_equal(a, b)


# ---- quant


@engines
def test_casts_on_every_engine(engine, on):
    on(engine)
    x = normal(37, 72)
    for fmt, group, (columns, rounded, packed) in [("e4m3", 32, LAYOUTS[0]), ("e2m1", 32, LAYOUTS[2]), ("e5m6", 72, LAYOUTS[1])]:
        named = {"use_tma_aligned_col_major_sf": columns, "round_sf": rounded, "use_packed_ue8m0": packed}
        wanted = reference.cast_to_e5m6(x, group, **named) if fmt == "e5m6" else reference.cast(x, fmt, (1, group), **named)
        expect_pair(kernels.quant.per_token_cast(x, fmt, group, **named), wanted)
    for block in [(16, 16), (32, 64)]:
        expect_pair(kernels.quant.per_block_cast(x, "e4m3", block), reference.cast(x, "e4m3", block))
    odd = normal(37, 161)[:, 1:153]  # rows that begin anywhere
    expect_pair(kernels.quant.per_token_cast(odd, "e2m1", 32), reference.cast(odd.contiguous(), "e2m1", (1, 32)))
    expect_pair(kernels.quant.per_channel_cast(x, "e4m3", 32), reference.cast(x, "e4m3", (32, 1)))
    expect_pair(kernels.quant.per_channel_cast(x[:, :37].contiguous(), "e4m3", 128), reference.cast(x[:, :37], "e4m3", (128, 1)))
    values, scales = kernels.quant.per_channel_cast_and_transpose(x, "e4m3", 32, True)
    expect_pair((values.T.contiguous(), scales), reference.cast(x, "e4m3", (32, 1), round_sf=True))


@pytest.mark.parametrize(
    "columns, rounded, packed, dtype",
    [(*LAYOUTS[0], torch.float32), (*LAYOUTS[1], torch.bfloat16), (*LAYOUTS[2], torch.bfloat16)],
)
def test_layouts_of_scales(columns, rounded, packed, dtype):
    named = {"use_tma_aligned_col_major_sf": columns, "round_sf": rounded, "use_packed_ue8m0": packed}
    x = normal(45, 200, dtype=dtype)
    wide = torch.cat([x, x], 1)[:, :200]  # rows with a gap
    for fmt, group in [("e4m3", 8), ("e4m3", 200), ("e2m1", 16), ("e2m1", 64)]:
        wanted = reference.cast(x, fmt, (1, group), **named)
        values, scales = kernels.quant.per_token_cast(wide, fmt, group, **named)
        expect_pair((values, scales), wanted)
        assert_equal(kernels.quant.per_token_cast_with_sf_only(x, fmt, group, **named), scales)
        block = (1, group)
        assert_equal(
            kernels.quant.cast_back((values, scales), "fp32", block), reference.cast_back((values, scales), "fp32", block)
        )
        if not columns:
            given = kernels.quant.per_token_cast_with_precomputed_sf(x, fmt, group, sf=scales)
            assert_equal(given, reference.cast(x, fmt, block, sf=scales))


def test_casts_of_narrow_values():
    x = normal(70, 128)
    for fmt, to, block, (columns, rounded, packed) in [
        ("e4m3", "e2m1", (32, 32), LAYOUTS[1]),
        ("e2m1", "e4m3", (16, 64), LAYOUTS[2]),
        ("e4m3", "e2m1", (8, 12), LAYOUTS[0]),
    ]:
        narrow = reference.cast(x, fmt, block, None, None, rounded, columns, packed)
        for group in (32, 64):
            wanted = reference.cast(narrow, to, (1, group), x_block_size=block)
            expect_pair(kernels.quant.per_token_cast(narrow, to, group, block), wanted)
    narrow = reference.cast(x, "e2m1", (1, 32), round_sf=True)
    for block in [(1, 128), (32, 32), (64, 64)]:
        exact = kernels.quant.per_block_cast_lossless(narrow, "e4m3", (1, 32), block)
        assert_equal(reference.cast_back(exact, "fp32", block), reference.cast_back(narrow, "fp32", (1, 32)))


def test_scales_that_are_too_far_apart():
    narrow = torch.full((1, 32), 0x22, dtype=torch.int8), torch.tensor([[2.0**20, 1.0]])
    with pytest.raises(tw.TilewrightError, match="too far apart"):
        kernels.quant.per_block_cast_lossless(narrow, "e4m3", (1, 32), (1, 64))


def test_rows_that_do_not_stay_on_chip():
    x = normal(3, 16392)
    for fmt in ("e4m3", "e2m1"):
        expect_pair(kernels.quant.per_token_cast(x, fmt, 16392, round_sf=True), reference.cast(x, fmt, (1, 16392), round_sf=True))


def test_every_number_of_narrow_formats():
    """Twelve and four bits, one after the other: what is read is written again."""
    codes = torch.arange(4096)
    finite = codes[(codes >> 6) % 32 != 31].view(-1, 8)
    one = torch.ones(finite.shape[0], 1)
    bits = torch.zeros(finite.shape[0], dtype=torch.int64), torch.zeros(finite.shape[0], dtype=torch.int64)
    for k in range(4):
        bits = bits[0] << 12 | finite[:, k], bits[1] << 12 | finite[:, 4 + k]
    words = (
        torch.stack([bits[0] >> 16, (bits[0] & 0xFFFF) << 16 | bits[1] >> 32, bits[1] & 0xFFFFFFFF], 1)
        .to(torch.uint32)
        .view(torch.uint8)
    )
    got = kernels.quant.cast_back((words, one), "fp32", (1, 8), "e5m6")
    sign, exponent, mantissa = finite >> 11, (finite >> 6) & 31, (finite & 63).double()
    number = torch.where(exponent == 0, mantissa / 64 * 2.0**-14, (1 + mantissa / 64) * 2.0 ** (exponent - 15.0))
    assert_equal(got, torch.where(sign > 0, -number, number).float())
    pairs = torch.arange(256).to(torch.uint8).view(torch.int8).view(16, 16)
    wanted = e2m1_numbers(pairs)
    assert_equal(kernels.quant.cast_back((pairs, torch.ones(16, 1)), "fp32", (1, 32)), wanted)
    assert_equal(kernels.quant.unpack_from_e2m1fn_x2(pairs), wanted)
    some = pairs.view(4, 4, 16)[:, 1:, ::3]
    for dtype in (torch.bfloat16, torch.float64, torch.int32):
        assert_equal(kernels.quant.unpack_from_e2m1fn_x2(some, dtype), e2m1_numbers(some).to(dtype))


@engines
def test_swiglu(engine, on):
    on(engine)
    rows, hidden, topk = 21, 128, 3
    x = normal(rows, 2 * hidden)
    pairs = torch.randint(-1, 8 * topk, (rows,), dtype=torch.int32)
    weights, experts = torch.rand(8, topk), torch.where(pairs < 0, -1, 1).int()
    count, wanted_count = torch.zeros(3, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)
    values, scales = kernels.quant.swiglu_forward_and_per_token_cast(
        x, "e4m3", 128, pairs, weights, experts, swiglu_clamp_value=0.5, clamped_count=count
    )
    lives = experts >= 0
    act = reference.swiglu_forward(x[lives], pairs[lives], weights, 0.5, wanted_count)
    wanted, wanted_scales = reference.cast(act, "e4m3", (1, 128))
    if engine == "cpu":  # whose exponential the reference has
        expect_pair((values[lives], scales[lives]), (wanted, wanted_scales))
    assert torch.allclose(scales[lives], wanted_scales, rtol=1e-5) and (values[~lives].float() == 0).all()
    assert torch.equal(count, wanted_count)


def test_swiglu_as_it_is_written_and_back():
    x, gate, up = normal(128, 512), normal(9, 4104), normal(9, 4104)
    act = reference.swiglu_forward(x).bfloat16()
    expect_pair(
        kernels.quant.swiglu_forward_and_per_channel_cast_and_transpose(x, "e4m3", 32, without_transpose=True),
        reference.cast(act, "e4m3", (32, 1)),
    )
    expect_pair(
        kernels.quant.fused_swiglu_quant_fp8(gate, up),
        reference.per_token_cast_fp8(reference.swiglu_forward(torch.cat([gate, up], 1))),
    )
    narrow = kernels.quant.per_token_cast(x, "e4m3", 32)
    pairs = torch.full((128,), -1, dtype=torch.int32)
    to_pos = torch.full((32, 3), -1, dtype=torch.int32)
    pairs[:96] = torch.randperm(96).int()
    to_pos.view(-1)[pairs[:96].long()] = torch.arange(96, dtype=torch.int32)
    grad, weight = normal(128, 256), torch.rand(32, 3)
    for limit in (None, 0.5):
        out, of_x, plain, of_weight = kernels.quant.swiglu_backward_and_per_token_cast(
            narrow, grad, weight, pairs, to_pos, 32, True, limit
        )
        wanted, wanted_x, wanted_weight = reference.swiglu_backward(narrow, grad, weight, pairs, to_pos, 32, limit)
        assert_equal(out, wanted.bfloat16())
        assert_equal(plain, wanted_x.bfloat16())
        expect_pair(of_x, reference.cast(wanted_x, "e4m3", (1, 32), round_sf=True))
        assert torch.allclose(of_weight, wanted_weight, rtol=1e-4, atol=1e-6 * wanted_weight.abs().max())


# ---- transpose, moe


@engines
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.bfloat16, torch.float32])
def test_transposes(engine, dtype, on):
    on(engine)
    x = normal(2, 70, 45, dtype=torch.float32).to(dtype)
    assert_equal(kernels.transpose.batched_transpose(x), x.transpose(1, 2).contiguous())
    assert_equal(kernels.transpose.transpose(x[0][:, :40]), x[0][:, :40].T.contiguous())


def routed(tokens=41, topk=3, experts=9):
    return torch.stack([torch.randperm(experts)[:topk] for _ in range(tokens)]).masked_fill(torch.rand(tokens, topk) < 0.2, -1)


@engines
def test_routing(engine, on, monkeypatch):
    on(engine)
    idx = routed()
    assert_equal(kernels.moe.group_count(idx, 9), reference.group_count(idx, 9))
    assert calc_diff(kernels.moe.aux_fi(idx, 9, 2), reference.aux_fi(idx, 9, 2)) < 2e-7
    found = kernels.moe.token_to_expert_map(idx, 9, alignment=4)
    order = torch.cat(
        [(idx.flatten() == e).nonzero().flatten() for e in range(9)]
    )  # pairs by expert, those of one in their order
    assert torch.equal(found.pos_to_token_topk[found.pos_to_token_topk >= 0].long(), order)
    assert (found.expert_end - found.expert_start == found.num_tokens_per_expert).all() and (
        found.num_tokens_per_expert % 4 == 0
    ).all()
    rows = found.token_topk_to_pos[idx >= 0].long()
    assert torch.equal(found.pos_to_expert[rows].long(), idx[idx >= 0]) and (found.token_topk_to_pos[idx < 0] == -1).all()
    assert torch.equal(found.pos_to_token[rows].long(), (idx >= 0).nonzero()[:, 0])
    x, weights = normal(41, 40), torch.rand(41, 3)
    expanded = kernels.moe.expand_to_fused(x, found.token_topk_to_pos, found.pos_to_expert)
    assert_equal(expanded, reference.expand_to_fused(x, found.token_topk_to_pos, found.pos_to_expert))
    assert_equal(
        kernels.moe.reduce_fused(expanded, weights, found.token_topk_to_pos),
        reference.reduce_fused(expanded, weights, found.token_topk_to_pos),
    )
    assert_equal(
        kernels.moe.fused_expand_reduce(x, found, weights), reference.reduce_fused(expanded, weights, found.token_topk_to_pos)
    )


@pytest.mark.parametrize("few", [0, 1 << 17])  # pairs that blocks add up by themselves
def test_routing_of_several_blocks(few, monkeypatch):
    monkeypatch.setattr(kernels.moe.routing, "_FEW_PAIRS", few)
    idx = routed(2300, 4, 40)
    again = [kernels.moe.get_fused_mapping(idx, 40, 0, 16) for _ in range(2)]
    order = torch.cat([(idx.flatten() == e).nonzero().flatten() for e in range(40)])
    for found in again:
        assert torch.equal(found[2][found[2] >= 0].long(), order)
        assert torch.equal(found[3].flatten()[order].long(), (found[2] >= 0).nonzero().flatten())
    none = kernels.moe.get_fused_mapping(idx[:0], 40, 0, 16)
    assert none[0].shape == (0,) and none[7] == [0] * 40
    assert kernels.moe.get_fused_mapping(idx, 40, 0, 16, force_no_sync=True)[7] == []


def test_rows_that_come_back_as_they_are():
    idx = routed(9, 11, 30)
    found = kernels.moe.token_to_expert_map(idx.int(), 30, 4)
    for x in (normal(9, 7), normal(9, 1032, dtype=torch.float32), normal(9, 9000)):  # odd rows, rows of several blocks
        rows = kernels.moe.expand_to_fused(x, found.token_topk_to_pos, found.pos_to_expert)
        assert_equal(rows, reference.expand_to_fused(x, found.token_topk_to_pos, found.pos_to_expert))
        for weights in (torch.rand(9, 11), None):
            wanted = reference.reduce_fused(rows, weights, found.token_topk_to_pos)
            assert_equal(kernels.moe.reduce_fused(rows, weights, found.token_topk_to_pos), wanted)
            assert_equal(kernels.moe.fused_expand_reduce(x, found, weights), wanted)
    assert (kernels.moe.reduce_fused(rows, None, found.token_topk_to_pos[:, :0].contiguous()) == 0).all()


def test_rows_with_scales():
    idx, x = routed(), normal(41, 256)
    found = kernels.moe.token_to_expert_map(idx, 9)
    for columns, rounded, packed in LAYOUTS:
        values, scales = kernels.quant.per_token_cast(x, "e4m3", 32, None, columns, rounded, packed)
        given = ((values, scales.contiguous()), 32, found.token_topk_to_pos, found.pos_to_expert, columns)
        expect_pair(kernels.moe.expand_to_fused_with_sf(*given), reference.expand_to_fused_with_sf(*given))
    values, scales = kernels.quant.per_token_cast(x, "e4m3", 128)
    pos = found.pos_to_token
    expect_pair(
        kernels.quant.per_channel_cast_fused((values, scales), "e4m3", 128, True, 128, pos),
        reference.per_channel_cast_fused((values, scales), 128, 128, True, pos),
    )
    rows, factor = normal(len(pos), 64, dtype=torch.float32), torch.rand(len(pos))
    wanted = reference.reduce_fused((rows, factor), None, found.token_topk_to_pos, "e4m3", torch.tensor([0.3]))
    assert_equal(kernels.moe.reduce_fused((rows, factor), None, found.token_topk_to_pos, "e4m3", torch.tensor([0.3])), wanted)


@engines
def test_choices(engine, on):
    on(engine)
    scores = torch.randn(19, 24).bfloat16().float()  # equal ones among them
    scores[2] = -float("inf")
    assert_equal(kernels.moe.topk_gate(scores, 7), reference.stable_topk(scores, 7))
    weights, idx = kernels.moe.topk_gating(scores[3:], 4)
    wanted = reference.topk_gating(scores[3:], 4)
    assert torch.equal(idx, wanted[1]) and torch.allclose(weights, wanted[0], rtol=1e-5)
    grouped = torch.randn(19, 6, 4)
    for summed in (1, 2):
        assert_equal(
            kernels.moe.topk_sum_and_topk_group_idx(grouped, summed, 3), reference.topk_sum_and_topk_group_idx(grouped, summed, 3)
        )
    total, normalized = kernels.moe.normalize_weight(grouped[:, :, 0].abs().contiguous())
    expect_pair((total, normalized), reference.normalize_weight(grouped[:, :, 0].abs()))
    groups = torch.randint(-1, 5, (33, 6))
    wanted = groups.clone()
    reference.inplace_unique_group_indices(wanted, 5)
    kernels.moe.inplace_unique_group_indices(groups, 5)
    assert torch.equal(groups, wanted)
    for rank in range(2):
        assert_equal(
            kernels.moe.mask_indices_by_tp(groups + 3, 8, 4, rank, 2), reference.mask_indices_by_tp(groups + 3, 8, 4, rank, 2)
        )


@pytest.mark.parametrize("engine", ["interpreter", "simulator"])
def test_choices_among_equal_scores(engine, on):
    """More than lanes have, all of a row the same, several to a lane, groups of a whole warp."""
    on(engine)
    for experts, topk in [(70, 70), (256, 8), (5, 1)]:
        scores = torch.randint(0, 4, (3, experts)).float()
        scores[0], scores[-1, ::2] = 0.0, -float("inf")
        assert_equal(kernels.moe.topk_gate(scores, topk), reference.stable_topk(scores, topk))
    for groups, width in [(4, 32), (2, 64), (40, 4)]:
        scores = torch.randint(0, 3, (3, groups, width)).float()
        assert_equal(
            kernels.moe.topk_sum_and_topk_group_idx(scores, 2, 2), reference.topk_sum_and_topk_group_idx(scores, 2, 2)
        )
        gate = scores.view(3, -1), torch.zeros(groups * width), 4, 2, groups, False, 0, 1.0, 0, 1, 0, 1, "sigmoid"
        for got, wanted in zip(kernels.moe.top2_sum_gate(*gate), reference.top2_sum_gate(*gate)):
            assert torch.allclose(got, wanted, rtol=1e-5)


def test_a_score_that_is_no_number_counts_as_infinity():
    scores = torch.tensor([[0.0, float("nan"), 1.0, float("inf")]])
    assert kernels.moe.topk_gate(scores, 3).tolist() == [[1, 3, 2]]


@pytest.mark.parametrize("kind", ["sigmoid", "sqrtsoftplus", "softmax"])
def test_gates(kind):
    tokens, experts, topk = 30, 32, 4
    logits, bias = torch.randn(tokens, experts), torch.randn(experts)
    raw = torch.randint(0, experts, (tokens, topk))
    for groups, kept, shared, mapped, fixed in [(8, 2, 0, True, False), (4, 4, 1, True, True)]:
        more = {}
        if mapped:
            more = {
                "to_physical_map": torch.randint(0, 36, (experts + shared, 5), dtype=torch.int32),
                "logical_count": torch.randint(1, 6, (experts + shared,), dtype=torch.int32),
            }
        if fixed:
            more.update(mask=torch.rand(tokens) < 0.8, fix_routing_mask=torch.rand(tokens) < 0.5)
        results = []
        for gate in (kernels.moe.top2_sum_gate, reference.top2_sum_gate):
            unmapped = raw.clone()
            found = gate(
                logits, bias, topk, kept, groups, shared > 0, shared, 1.5, 1, 4, 1, 2, kind, unmapped_topk_idx=unmapped, **more
            )
            results.append((*found, unmapped))
        assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][2], results[1][2])
        assert torch.allclose(results[0][1], results[1][1], rtol=1e-5)


# ---- what is refused


def test_refusals():
    x = normal(8, 64)
    for call, code, words in [
        (lambda: kernels.quant.per_token_cast(x.half(), "e4m3", 32), "TW4004", "'x' has dtype float16"),
        (lambda: kernels.quant.per_token_cast(x, "e3m4", 32), "TW1080", "fmt is 'e3m4'"),
        (lambda: kernels.quant.per_token_cast(x, "e4m3", 24), "TW1080", "num_per_channels is 24"),
        (lambda: kernels.quant.per_token_cast(x, "e4m3", 32, use_packed_ue8m0=True), "TW1080", "pass round_sf=True"),
        (lambda: kernels.quant.per_token_cast(x.T, "e4m3", 8), "TW4007", "pass x.contiguous()"),
        (lambda: kernels.quant.cast_back((x, x), "bf16", (1, 32)), "TW4004", "float8_e4m3fn"),
        (lambda: kernels.quant.cast_back(x, "bf16", (1, 32)), "TW4002", "a pair of tensors"),
        (lambda: kernels.moe.topk_gate(x.float(), 65), "TW1080", "num_topk is 65"),
        (lambda: kernels.moe.reduce_fused(x, None, torch.zeros((2, 2))), "TW4004", "'token_topk_to_pos' has dtype float32"),
        (
            lambda: kernels.moe.expand_to_fused(x, torch.zeros((9, 2), dtype=torch.int32), torch.zeros(4, dtype=torch.int32)),
            "TW4007",
            "must have (8, *)",
        ),
        (lambda: kernels.set_num_sms(0), "TW1080", "set_num_sms"),
    ]:
        with pytest.raises(tw.TilewrightError) as caught:
            call()
        assert caught.value.code == code and words in str(caught.value), str(caught.value)


def test_nothing_in_nothing_out():
    x = torch.empty((0, 64), dtype=torch.bfloat16)
    values, scales = kernels.quant.per_token_cast(x, "e4m3", 32)
    assert values.shape == (0, 64) and scales.shape == (0, 2)
    assert kernels.transpose.transpose(x).shape == (64, 0)
    assert kernels.moe.topk_gate(x.float(), 2).shape == (0, 2)
    pos = torch.full((4,), -1, dtype=torch.int32)
    assert (kernels.moe.expand_to_fused(x, torch.empty((0, 2), dtype=torch.int32), pos) == 0).all()


def test_kernels_are_planned_and_sealed():
    import tilewright.ops as ops
    from tilewright.kernels.moe.choice_programs import topk

    specification = topk.specialization(ops.Spec((10, 13), "float32"), experts=13, topk=2, warps=2)
    assert "choice_programs.topk(experts=13" in str(specification)
    ops.plan([[specification]])
    ops.seal()
    try:
        kernels.moe.topk_gate(torch.randn(4, 13), 2)
        with pytest.raises(tw.CompileError, match="not compiled before ops.seal"):
            kernels.moe.topk_gate(torch.randn(4, 14), 2)
    finally:
        ops.unseal()
