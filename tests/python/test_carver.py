"""Tiles that templates recommend: they fit, they compute what the template says, and the model ranks them."""
import math

import numpy as np
import pytest
import tilewright as tw
from tilewright import carver, cost
from tilewright.carver import CPU, CUDA, ConvTemplate, ElementwiseTemplate, FlashAttentionTemplate, GEMVTemplate, GeneralReductionTemplate, MatmulTemplate

RNG = np.random.default_rng(7)


def some(*shape, dtype="float16"):
    return RNG.standard_normal(shape).astype(dtype)


def attention(q, k, v, causal):
    q, k, v = (x.astype("float64") for x in (q, k, v))
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdims=True), v)


def convolved(x, w, stride, pad):
    padded = np.pad(x.astype("float64"), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[:2], axis=(1, 2))[:, ::stride, ::stride]
    return np.einsum("bhlcij,ijcf->bhlf", windows, w.astype("float64"))


def cases():
    """Of each template: it, inputs of its program, what that is to give."""
    a, b, bias = some(70, 50), some(90, 50), some(90, dtype="float32")
    yield MatmulTemplate(70, 90, 50), (a, b, bias), a.astype("float64") @ b.T.astype("float64")
    yield MatmulTemplate(70, 90, 50, trans_A=True, trans_B=False, with_bias=True), (a.T.copy(), b.T.copy(), bias), a.astype("float64") @ b.T + bias
    v, m = some(130), some(90, 130)
    yield GEMVTemplate(90, 130), (v, m, bias), m.astype("float64") @ v
    yield GEMVTemplate(90, 130, trans_B=False, with_bias=True), (v, m.T.copy(), bias), m.astype("float64") @ v + bias
    x = some(5, 33, 7, dtype="float32")
    yield ElementwiseTemplate([5, 33, 7], "float32"), (x,), x + 1
    yield ElementwiseTemplate([1000], "float32"), (x.reshape(-1)[:1000],), x.reshape(-1)[:1000] + 1
    y = some(6, 40, 50)
    for structure, axis in (("SSR", 2), ("SRS", 1), ("RSS", 0), ("RSR", (0, 2)), ("SRR", (1, 2))):
        yield GeneralReductionTemplate(structure, [6, 40, 50]), (y,), y.astype("float64").sum(axis)
    q, k = some(1, 2, 70, 64), some(1, 2, 90, 64)
    yield FlashAttentionTemplate(1, 2, 64, 70, 90), (q, k, k + 1), attention(q, k, k + 1, False)
    yield FlashAttentionTemplate(1, 2, 64, 70, 70, True), (q, q + 1, q), attention(q, q + 1, q, True)
    image, filters = some(2, 9, 10, 16), some(3, 3, 16, 24)
    yield ConvTemplate(2, 16, 9, 10, 24, 3, 2, 1, 1), (image, filters, some(24, dtype="float32")), convolved(image, filters, 2, 1)


@pytest.mark.parametrize("template, inputs, wanted", list(cases()), ids=lambda value: str(value)[:60] if hasattr(value, "candidates") else "")
def test_a_template_is_the_program_that_it_says(template, inputs, wanted):
    """At the tiles that come first and at those that come last."""
    hints = template.with_arch(CUDA("H200")).recommend_hints(100)
    assert [h.predicted_us for h in hints] == sorted(h.predicted_us for h in hints) and all(h.predicted_us > 0 for h in hints)
    for hint in {id(h): h for h in (hints[0], hints[-1])}.values():
        kernel = tw.compile(template.program(hint), out_idx=-1, engine="interpreter")
        found = kernel(*inputs).astype("float64")
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max() <= 0.02 * max(1, np.abs(wanted).max()), hint


def operations(template, arch="sm_90a"):
    facts = tw.compile(template.equivalent_function(), engine="interpreter").explain(arch, as_json=True)
    return [o for launch in facts["launches"] for o in launch["operations"]]


@pytest.mark.parametrize("machine", ["H200", "H100"])
@pytest.mark.parametrize("size", [4096, 8192])
def test_large_products_get_tiles_of_warpgroups_first(machine, size):
    template = MatmulTemplate(size, size, size).with_arch(CUDA(machine))
    first = template.recommend_hints(1)[0]
    assert first.block[0] * first.block[1] >= 128 * 192 and first.rstep == [64] and first.pipeline_stage >= 3
    assert math.prod(b // w for b, w in zip(first.block, first.warp)) * 32 == first.threads
    assert any("wgmma" in became for o in operations(template) for became in o.get("becomes", ()))


def test_the_time_of_a_hint_is_the_models():
    template = MatmulTemplate(4096, 4096, 4096).with_arch(CUDA("H200"))
    for hint in template.recommend_hints(3):
        assert cost.predict(template.program(hint), "H200").us == hint.predicted_us
    on_a100 = MatmulTemplate(4096, 4096, 4096).with_arch(CUDA("A100")).recommend_hints(1)[0]
    assert on_a100.predicted_us > 2 * template.recommend_hints(1)[0].predicted_us


def test_small_and_narrow_products():
    hints = MatmulTemplate(16, 4096, 4096).with_arch(CUDA("H200")).recommend_hints(5)
    assert hints[0].block[0] == 16
    assert MatmulTemplate(64, 64, 64).recommend_hints(1)[0].rasterization_plan is carver.NoRasterization
    assert isinstance(MatmulTemplate(4096, 4096, 4096).recommend_hints(1)[0].rasterization_plan, carver.Rasterization2DRow)


def test_machines_by_their_names():
    for target, name in {"H100": "H100", "nvidia/nvidia-a100": "A100", "cuda -arch=sm_80": "A100", "nvidia/geforce-rtx-4090": "L40S",
                         "cuda -arch=sm_89": "L40S", "b200": "B200"}.items():  # fmt: skip
        assert CUDA(target).machine.name == name, target
    arch = carver.get_arch("cuda -arch=sm_90a")
    assert arch.smem_cap == 232448 and arch.compute_max_core == 132 and carver.arch.is_hopper_arch(arch) and not carver.arch.is_ampere_arch(arch)
    assert [64, 256] in arch.get_avaliable_tensorintrin_shapes() and carver.arch.has_mma_support(arch)
    assert carver.arch.is_tensorcore_supported_precision("float8_e4m3fn", "float32", arch)
    assert not carver.arch.is_tensorcore_supported_precision("float8_e4m3", "float32", CUDA("A100"))
    with pytest.raises(ValueError, match="TW1080.*no machine 'nvidia/v9'(?s:.*)one of H200, H100, A100, L40S, B200"):
        CUDA("nvidia/v9")


def test_a_machine_of_ones_own():
    import dataclasses

    half = dataclasses.replace(cost.machines()["H200"], multiply_adds=1024.0)
    slow, fast = (MatmulTemplate(8192, 8192, 8192).with_arch(CUDA(m)).recommend_hints(1)[0].predicted_us for m in (half, "H200"))
    assert 1.8 < slow / fast < 2.1


def test_the_processor():
    arch = carver.get_arch("llvm")
    assert isinstance(arch, CPU) and carver.arch.is_cpu_arch(arch)
    for template in (MatmulTemplate(512, 512, 512), GEMVTemplate(512, 512), ElementwiseTemplate([512, 512]), GeneralReductionTemplate("SR", [512, 512]),
                     FlashAttentionTemplate(1, 2, 64, 256, 256), ConvTemplate(1, 32, 16, 16, 32, 3, 1, 1, 1)):  # fmt: skip
        hints = template.with_arch(arch).recommend_hints(4)
        assert hints and not hints[0].use_tc and hints[0].arch is arch
        assert all(template.work(h)[2] <= arch.smem_cap for h in hints), template


def test_policies():
    template = MatmulTemplate(1024, 1024, 1024).with_arch(CUDA("H200"))
    function = template.equivalent_function()
    by_policy = carver.TensorCorePolicy.from_prim_func(function, arch=CUDA("H200"), tags={}).emit_config(5)
    assert [h.to_dict() for h in by_policy] == [h.to_dict() for h in template.recommend_hints(5)]
    assert len(carver.get_roller_hints_from_func(function, arch=CUDA("H200"), topk=3)) == 3
    assert len(carver.get_roller_hints_from_output_nodes(template.output_nodes, arch=CUDA("H200"), topk=3)) == 3
    rows = ElementwiseTemplate([64, 64]).with_arch(CUDA("H200")).equivalent_function()
    assert carver.get_roller_hints_from_func(rows, arch=CUDA("H200"), tensorcore_only=True) is None
    with pytest.raises(ValueError, match="hints are for what a template of tilewright.carver makes"):
        carver.DefaultPolicy.from_prim_func(lambda: 0, arch=CUDA("H200"))


@pytest.mark.parametrize("make, said", [
    (lambda: MatmulTemplate(0, 4, 4), "MatmulTemplate with M=0"),
    (lambda: ConvTemplate(1, 2, 3, 4, 5, 6, 0, 1, 0), "ConvTemplate with S=0"),
    (lambda: ElementwiseTemplate([]), r"ElementwiseTemplate with shape=\[\]"),
    (lambda: GeneralReductionTemplate("SSX", [1, 2, 3]), "structure='SSX' of 3 dimensions"),
    (lambda: GeneralReductionTemplate("SS", [1, 2]), "an S or an R for each, at least one of both"),
    (lambda: MatmulTemplate(64, 64, 64).with_arch(carver.CDNA()).recommend_hints(), "tiles for CDNA"),
])  # fmt: skip
def test_mistakes(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_hints_as_programs_read_them():
    hint = MatmulTemplate(1024, 1024, 1024).recommend_hints(1)[0]
    words = hint.to_dict()
    assert {"block", "warp", "rstep", "use_tc"} <= set(words) and carver.Hint.from_dict(words).block == hint.block
    assert str(hint) == str(words)


def test_under_tilelangs_names():
    from tilewright.as_tilelang import _modules

    modules = _modules()
    for module, names in {"tilelang.carver": "MatmulTemplate GEMVTemplate ElementwiseTemplate GeneralReductionTemplate FlashAttentionTemplate CUDA CDNA",
                          "tilelang.carver.template": "ConvTemplate MatmulTemplate", "tilelang.carver.arch": "CUDA CPU TileDevice get_arch auto_infer_current_arch",
                          "tilelang.carver.roller": "Hint DefaultPolicy TensorCorePolicy", "tilelang.carver.utils": "get_roller_hints_from_func",
                          "tilelang.carver.roller.policy": "TensorCorePolicy", "tilelang.carver.roller.rasterization": "NoRasterization Rasterization2DRow"}.items():  # fmt: skip
        for name in names.split():
            assert name in modules[module] if isinstance(modules[module], dict) else hasattr(modules[module], name), (module, name)
