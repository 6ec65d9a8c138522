"""What documents about TileLang, TileKernels and their tuners name, a row each: that it works here, by a program that uses it. What a
document names and is not here is refused by name, and the row says by which error."""
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

ROOT = pathlib.Path(__file__).resolve().parents[2]


def gemm(dtype="float16", sums="float32", m=128, n=128, k=32, threads=128, size=256, stages=3, clear=True, leaves=True, k_of_b=None):
    @T.prim_func
    def product(A: T.Tensor((size, size), dtype), B: T.Tensor((size, size), dtype), C: T.Tensor((size, size), dtype)):
        with T.Kernel(T.ceildiv(size, n), T.ceildiv(size, m), threads=threads) as (bx, by):
            a, b = T.alloc_shared((m, k), dtype), T.alloc_shared((k_of_b or k, n), dtype)
            c = T.alloc_fragment((m, n), sums)
            if clear:
                T.clear(c)
            for turn in T.Pipelined(T.ceildiv(size, k), num_stages=stages):
                T.copy(A[by * m, turn * k], a)
                T.copy(B[turn * k, bx * n], b)
                T.gemm(a, b, c)
            if leaves:
                T.copy(c, C[by * m, bx * n])

    return product


def explained(program, arch="sm_90a"):
    return tw.compile(program, engine="interpreter").explain(arch, as_json=True)


def gemms_of(program, arch="sm_90a"):
    return [o for launch in explained(program, arch)["launches"] for o in launch["operations"] if o["operation"] == "gemm"]


def refusal(make):
    with pytest.raises(tw.TilewrightError) as error:
        make()
    return str(error.value)


ROWS = {}


def row(document, *needs):
    def kept(check):
        ROWS[f"{document}: {check.__name__.replace('_', ' ')}"] = (check, needs)
        return check

    return kept


# ---- 000: the kernels of language models, by the document's own names and signatures


@row("000", "torch")
def packages_of_the_library(tmp_path, monkeypatch):
    import tilewright.kernels as kernels

    for name in "moe quant transpose engram mhc modeling torch testing".split():
        assert getattr(kernels, name).__name__ == f"tilewright.kernels.{name}"
    script = "import tilewright; tilewright.install_as_tile_kernels(); import tile_kernels.moe as m; assert callable(m.topk_gating)"
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})


@row("000", "torch")
def topk_gating_and_mapping(tmp_path, monkeypatch):
    import torch
    from tilewright.kernels import moe

    logits = torch.randn(33, 64)
    weights, indices = moe.topk_gating(logits, top_k=8)
    assert weights.shape == indices.shape == (33, 8)
    chosen = torch.sort(indices.long(), 1)[0]
    assert torch.equal(chosen, torch.sort(torch.topk(logits, 8).indices, 1)[0])
    assert torch.allclose(moe.weight_normalize(torch.rand(5, 8)).sum(1), torch.ones(5))
    assert len(moe.token_to_expert_map(indices, num_experts=64)) >= 2 and callable(moe.fused_expand_reduce)


@row("000", "torch")
def casts_to_float8(tmp_path, monkeypatch):
    import torch
    from tilewright.kernels import quant

    x = torch.randn(64, 256).bfloat16()
    values, scale = quant.per_token_cast_fp8(x)
    assert scale.shape == (64, 1) and torch.allclose(values.float() * scale, x.float(), rtol=0.1, atol=0.02)
    values, scale = quant.per_block_cast_fp8(torch.randn(256, 256).bfloat16(), block_size=128)
    assert values.dtype == torch.float8_e4m3fn and scale.shape == (2, 2)
    assert quant.per_channel_cast_fp8(torch.randn(256, 256).bfloat16())[0].dtype == torch.float8_e4m3fn
    values, scale = quant.fused_swiglu_quant_fp8(x, x)
    wanted = torch.nn.functional.silu(x.float()) * x.float()
    assert torch.allclose(values.float() * scale, wanted, rtol=0.1, atol=0.05 * float(wanted.abs().max()))


@row("000", "torch")
def transpose_sinkhorn_layers_and_measuring(tmp_path, monkeypatch):
    import torch
    from tilewright.kernels import engram, mhc, modeling, testing, transpose

    x = torch.randn(2, 128, 256).bfloat16()
    assert torch.equal(transpose.batched_transpose(x), x.transpose(1, 2).contiguous())
    doubly = mhc.sinkhorn_normalize(torch.rand(8, 4, 4), num_iters=20)
    assert torch.allclose(doubly.sum(-1), torch.ones(8, 4), atol=1e-3) and torch.allclose(doubly.sum(-2), torch.ones(8, 4), atol=1e-3)
    for module, names in ((engram, "engram_gate_forward engram_gate_backward engram_weight_grad"), (mhc, "mhc_mix_split mhc_mix_apply")):
        assert all(callable(getattr(module, name)) for name in names.split())
    assert issubclass(modeling.EngramGateLayer, torch.nn.Module) and issubclass(modeling.MHCPipeline, torch.nn.Module)
    measured = testing.benchmark_kernel(lambda t: t + 1, args=(torch.ones(64),), warmup=1, rep=2)
    assert measured.mean > 0 and measured.gbps > 0


@row("000", "torch")
def a_kernel_without_a_launch(tmp_path, monkeypatch):
    @T.prim_func
    def scale(A: T.Tensor((8, 9), "float32"), B: T.Tensor((8, 9), "float32")):
        for i, j in T.grid(8, 9):
            B[i, j] = A[i, j] * 2

    a = np.arange(72, dtype="float32").reshape(8, 9)
    assert (tw.compile(scale, out_idx=-1, target="cpu")(a) == 2 * a).all()


@row("000")
def memory_of_vectors(tmp_path, monkeypatch):
    @T.prim_func
    def pairs(A: T.Tensor((8,), "bfloat16"), B: T.Tensor((8,), "bfloat16")):
        with T.Kernel(1, threads=1):
            values = T.alloc_local((4,), T.bfloat16x2)
            for i in T.serial(4):
                values[i] = T.bfloat16x2(A[2 * i + 1], A[2 * i])
            for i in T.serial(4):
                B[2 * i : 2 * i + 2] = values[i]

    assert "bfloat16" in pairs.script()
    torch = pytest.importorskip("torch")
    a = torch.arange(8).bfloat16()
    assert tw.compile(pairs, out_idx=-1, engine="interpreter")(a).tolist() == [1, 0, 3, 2, 5, 4, 7, 6]


@row("000")
def copies_of_a_thread_after_a_return(tmp_path, monkeypatch):
    @T.prim_func
    def some(A: T.Tensor((8, 4), "int32"), B: T.Tensor((8, 4), "int32")):
        with T.Kernel(1, threads=32):
            thread = T.get_thread_binding()
            if thread >= 8:
                T.thread_return()
            own = T.alloc_local((4,), "int32")
            T.copy(A[thread, 0:4], own)
            for i in T.serial(4):
                B[thread, i] = own[i] + 1

    a = np.arange(32, dtype="int32").reshape(8, 4)
    assert (tw.compile(some, out_idx=-1, engine="interpreter")(a) == a + 1).all()


@row("000")
def architectures_that_are_not_here(tmp_path, monkeypatch):
    assert "TW8201" in refusal(lambda: explained(gemm(), "sm_100a")) and "sm_90a" in refusal(lambda: explained(gemm(), "sm_100a"))


# ---- 001: the developer's guide


@row("001", "torch")
def a_script_without_a_gpu(tmp_path, monkeypatch):
    script = tmp_path / "steps.py"
    script.write_text("import torch\nimport tilelang\nimport tilelang.language as T\n\n@tilelang.jit(out_idx=[-1])\ndef add(N):\n    @T.prim_func\n"
                      "    def main(A: T.Tensor((N,), 'float32'), B: T.Tensor((N,), 'float32')):\n        with T.Kernel(T.ceildiv(N, 64), threads=64) as b:\n"
                      "            for i in T.Parallel(64):\n                B[b * 64 + i] = A[b * 64 + i] + 1\n    return main\n\n"
                      "x = torch.ones(128, device='cuda')\nassert (add(128)(x) == 2).all()\nprint('done')\n")  # fmt: skip
    ran = subprocess.run([sys.executable, "-m", "tilewright", "--without-gpu", "steps.py"], cwd=tmp_path, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})  # fmt: skip
    assert ran.returncode == 0 and "done" in ran.stdout, ran.stderr[-2000:]


@row("001")
def makers_whose_gpus_are_not_here(tmp_path, monkeypatch):
    for target in ("hip", "ascend", "webgpu", "cutedsl", "musa"):
        assert f"TW1080 build: there is no target '{target}'" in refusal(lambda target=target: tw.compile(gemm(), target=target))


@row("001")
def larger_blocks_on_a_hopper_gpu(tmp_path, monkeypatch):
    """256 x 128 x 32 in 128 threads: registers for it are found."""
    program = gemm(m=256, n=128, k=32, stages=4, size=1024)
    assert gemms_of(program)[0]["becomes"][0].startswith("wgmma.mma_async") and "spill" not in json.dumps(explained(program)["warnings"])


@row("001")
def sums_in_float16(tmp_path, monkeypatch):
    assert gemms_of(gemm(sums="float16"))[0]["becomes"][0].startswith("wgmma.mma_async m64n128k16.")


@row("001")
def extents_that_differ_in_a_product(tmp_path, monkeypatch):
    said = refusal(lambda: gemm(k_of_b=64))
    assert "TW1063" in said and "help: A is (M, K) and B is (K, N)" in said and ".transpose_B" not in said


@row("001")
def an_accumulator_that_nobody_cleared(tmp_path, monkeypatch):
    said = refusal(lambda: tw.compile(gemm(clear=False), engine="interpreter"))
    assert "TW1090" in said and "gemm adds to 'c': clear it before" in said


@row("001")
def a_result_that_nobody_writes(tmp_path, monkeypatch):
    said = refusal(lambda: tw.compile(gemm(leaves=False), out_idx=-1, engine="interpreter"))
    assert "TW1092" in said and "names 'C', which every call makes anew, but no statement writes to it" in said


@row("001")
def a_product_that_no_matrix_unit_takes(tmp_path, monkeypatch):
    facts = gemms_of(gemm(dtype="float32"), "sm_80")[0]
    assert "fused multiply-adds" in facts["becomes"][0] and any("mma.sync" in why for why in facts["rejected"])


@row("001")
def numbers_that_a_loop_changes(tmp_path, monkeypatch):
    @T.prim_func
    def sums(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(4, threads=64) as b:
            row_sum = T.float32(0)
            for i in T.serial(64):
                row_sum = row_sum + A[b, i]
            B[b] = row_sum

    a = np.ones((4, 64), "float32")
    assert (tw.compile(sums, out_idx=-1, engine="interpreter")(a) == 64).all()


# ---- 002: the article


@row("002")
def layouts_by_the_articles_spelling(tmp_path, monkeypatch):
    @T.prim_func
    def copied(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            S_shared = T.alloc_shared((64, 64), "float16")
            T.annotate_layout({S_shared: T.layout.make_swizzled_layout(S_shared)})
            T.copy(A, S_shared)
            T.copy(S_shared, B)

    a = np.arange(4096, dtype="float16").reshape(64, 64)
    assert (tw.compile(copied, out_idx=-1, engine="interpreter")(a) == a).all()
    assert "shared S_shared: float16[64, 64] layout=swizzled" in copied.script()


@row("002")
def the_text_for_a_gpu_without_one(tmp_path, monkeypatch):
    assert "__global__" in tw.compile(gemm(), target="cuda -arch=sm_90a").get_kernel_source()
    kernel = tw.compile(gemm(), engine="interpreter")
    assert "wgmma" in kernel.get_kernel_source(arch="sm_90a") and "mma.sync" in kernel.get_kernel_source(arch="sm_80")
    assert "__global__" not in kernel.get_kernel_source()


@row("002")
def pictures_of_layouts_by_an_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tw.compile(gemm(), engine="interpreter", pass_configs={"tl.layout_visualization_enable": True, "tl.layout_visualization_formats": "svg,txt"})
    made = {path.name for path in (tmp_path / "tmp").iterdir()}
    assert {"product.a.svg", "product.b.svg", "product.c.svg", "product.c.txt"} <= made
    assert (tmp_path / "tmp/product.c.svg").read_text().startswith("<svg") and "thread" in (tmp_path / "tmp/product.c.svg").read_text()
    with pytest.warns(UserWarning, match="the format 'png'"):
        tw.compile(gemm(size=128), engine="interpreter", pass_configs={"tl.layout_visualization_enable": True, "tl.layout_visualization_formats": "png"})


@row("002")
def pictures_by_a_function(tmp_path, monkeypatch):
    from tilewright.plot_layout import plot_layout

    plot_layout(T.Layout((8, 8), lambda i, j: i * 8 + (j ^ i)), save_directory=str(tmp_path), name="drawn", formats="svg")
    assert list(tmp_path.glob("*.svg"))


# ---- 004: tuning, models, numerics, dumps


@row("004")
def tiles_by_the_carver(tmp_path, monkeypatch):
    """In test_carver.py whole: 4096 cubed on an H200 gets a tile of warpgroups first."""
    from tilewright.carver import CUDA, MatmulTemplate

    template = MatmulTemplate(4096, 4096, 4096).with_arch(CUDA("H200"))
    assert "wgmma.mma_async.sync.aligned.m64n" in tw.compile(template.equivalent_function(), engine="interpreter").get_kernel_source(arch="sm_90a")
    first = template.recommend_hints(1)[0]
    assert first.block[0] * first.block[1] >= 128 * 192


@row("004")
def what_a_program_costs_by_unit(tmp_path, monkeypatch):
    from tilewright import cost

    prediction = cost.predict(gemm(size=4096, k=64), "H200")
    assert {"matrix", "shared", "l2", "memory", "issue", "special", "results", "barriers"} == set(prediction.utilization)
    assert 100 < prediction.us < 1000 and cost.predict(gemm(size=4096, k=64), "A100").us > prediction.us


@row("004")
def a_dump_of_what_is_compiled(tmp_path, monkeypatch):
    tw.compile(gemm(), target="cpu", pass_configs={"tl.enable_dump_ir": True, "tl.dump_ir_dir": str(tmp_path)})
    assert {path.suffix for path in tmp_path.iterdir()} == {".tile", ".txt"}


@row("004")
def options_that_nobody_knows(tmp_path, monkeypatch):
    with pytest.warns(UserWarning, match="'tl.of_no_option' is not known"):
        tw.compile(gemm(), engine="interpreter", pass_configs={"tl.of_no_option": True})
    assert "the nearest is 'tl.enable_fast_math'" in refusal(lambda: tw.compile(gemm(), engine="interpreter", pass_configs={"tl.enabel_fast_math": True}))
    assert "got an unexpected keyword argument 'outidx'" in refusal(lambda: tw.jit(outidx=1))


@row("004")
def fast_functions_by_their_names(tmp_path, monkeypatch):
    @T.prim_func
    def fast(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                B[i] = T.__exp(A[i]) + T.__log(A[i] + 2) + T.__sin(A[i])

    source = tw.compile(fast, engine="interpreter").get_kernel_source(arch="sm_90a")
    assert all(re.search(rf"{name}\(", source) for name in ("__expf", "__logf", "__sinf"))
    x = np.linspace(0, 1, 64, dtype="float32")
    assert np.allclose(tw.compile(fast, out_idx=-1, engine="interpreter")(x), np.exp(x) + np.log(x + 2) + np.sin(x), rtol=1e-4)


@row("004")
def roundings_by_their_names(tmp_path, monkeypatch):
    x = np.linspace(0.1, 10, 64, dtype="float32")
    root = {}
    for mode in ("rn", "rz", "ru", "rd"):
        @T.prim_func
        def rounded(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                for i in T.Parallel(64):
                    B[i] = T.ieee_sqrt(A[i], rounding_mode=mode)

        root[mode] = tw.compile(rounded, out_idx=-1, engine="interpreter")(x)
    exact = np.sqrt(x.astype("float64"))
    assert (root["rd"] <= exact).all() and (root["ru"] >= exact).all() and (root["rz"] == root["rd"]).all() and (root["ru"] > root["rd"]).any()
    assert (root["rn"] == exact.astype("float32")).all()


@row("004", "torch")
def a_callback_for_texts_is_said_to_do_nothing(tmp_path, monkeypatch):
    from tilewright.as_tilelang import register_cuda_postproc_callback

    with pytest.warns(UserWarning):
        register_cuda_postproc_callback(lambda code, target: code)


@row("004")
def one_wheel_for_many_pythons(tmp_path, monkeypatch):
    from tilewright import _native

    assert 'wheel.py-api = "cp310"' in (ROOT / "pyproject.toml").read_text() and ".abi3." in _native.__file__


@pytest.mark.parametrize("name", ROWS)
def test_row(name, tmp_path, monkeypatch):
    check, needs = ROWS[name]
    for package in needs:
        pytest.importorskip(package)
    check(tmp_path, monkeypatch)


def test_every_document_has_rows():
    assert {name.partition(":")[0] for name in ROWS} == {"000", "001", "002", "004"} and len(ROWS) >= 28
