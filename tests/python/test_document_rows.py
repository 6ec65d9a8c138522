"""What documents about TileLang, TileKernels and their tuners name, a row each: that it works here, by a program that uses it. What a
document names and is not here is refused by name, and the row says by which error."""
import json
import os
import re
import subprocess
import sys

import document_rows_of_kernels  # noqa: F401
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from document_rows import ROOT, ROWS, explained, gemm, gemms_of, refusal, row

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
    for target, maker in (("hip", "GPUs of AMD"), ("ascend", "NPUs of Huawei"), ("maca", "GPUs of MetaX"), ("musa", "GPUs of Moore Threads"), ("webgpu", "WebGPU"),
                          ("cutedsl", "CuTe DSL"), ("hip -mcpu=gfx942", "GPUs of AMD")):  # fmt: skip
        said = refusal(lambda target=target: tw.compile(gemm(), target=target))
        assert f"TW1080 build: there is no target '{target}'" in said and f"no code is written for {maker} (docs/support.md)" in said
        assert target.partition(" ")[0] in (ROOT / "docs/support.md").read_text()


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


@row("001")
def sums_in_points_of_a_map(tmp_path, monkeypatch):
    """The guide's LayerNorm: what a number gathers in T.Parallel is refused where it stands, with what to write instead."""
    def make():
        @T.prim_func
        def norm(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
            with T.Kernel(4, threads=64) as b:
                x = T.alloc_fragment((64,), "float32")
                T.copy(A[b, 0], x)
                sum_val = T.float32(0)
                for i in T.Parallel(64):
                    sum_val += x[i]
                for i in T.Parallel(64):
                    B[b, i] = x[i] - sum_val / 64

        return norm

    with pytest.raises(tw.CompileError, match="'sum_val' is bound again in a Parallel, whose points have no order") as error:
        make()
    assert error.value.code == "TW1105" and "T.reduce_sum" in error.value.help and error.value.file == __file__


@row("001")
def facts_for_low_throughput(tmp_path, monkeypatch):
    said = tw.compile(gemm(), engine="interpreter").explain("sm_90a")
    assert all(word in said for word in ("registers", "shared memory", "blocks"))


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


@row("002")
def accumulators_that_are_read_otherwise_keep_the_tensor_cores(tmp_path, monkeypatch):
    """Elements of a result by their columns, as the article's softmax and the lightning indexer read them."""
    @T.prim_func
    def scored(A: T.Tensor((256, 64), "float16"), B: T.Tensor((256, 64), "float16"), W: T.Tensor((256,), "float32"), C: T.Tensor((256,), "float32")):
        with T.Kernel(2, threads=128) as b:
            a, k = T.alloc_shared((128, 64), "float16"), T.alloc_shared((128, 64), "float16")
            c, w, sums = T.alloc_fragment((128, 128), "float32"), T.alloc_fragment((128,), "float32"), T.alloc_fragment((128,), "float32")
            T.copy(A[b * 128, 0], a)
            T.copy(W[b * 128], w)
            T.clear(sums)
            for n in T.serial(2):
                T.copy(B[n * 128, 0], k)
                T.clear(c)
                T.gemm(a, k, c, transpose_B=True)
                for i, j in T.Parallel(128, 128):
                    c[i, j] = T.max(c[i, j], 0) * w[i]
                T.reduce_sum(c, sums, dim=1, clear=False)
            T.copy(sums, C[b * 128])

    assert gemms_of(scored)[0]["becomes"][0].startswith("wgmma")


@row("002")
def latent_attention_in_parts(tmp_path, monkeypatch):
    """num_split and combine: of the library's decoding, for one sequence of many keys."""
    import tilewright.ops as ops

    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((1, 16, 64)).astype("float16"), rng.standard_normal((1, 300, 1, 64)).astype("float16")
    made = ops.decode_attention(q, k, k).astype("float32")
    scores = np.einsum("bhd,bkgd->bhk", q.astype("float32"), k.astype("float32")) / 8
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = np.einsum("bhk,bkgd->bhd", weights / weights.sum(-1, keepdims=True), k.astype("float32"))
    assert np.allclose(made, wanted, atol=5e-3)


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


@row("004")
def templates_of_every_kind(tmp_path, monkeypatch):
    """Elementwise, GeneralReduction, GEMV, FlashAttention, Conv; roller policies; the processor: whole in test_carver.py."""
    from tilewright import carver

    for name in "MatmulTemplate GEMVTemplate ElementwiseTemplate GeneralReductionTemplate FlashAttentionTemplate ConvTemplate".split():
        assert callable(getattr(carver, name))
    hints = carver.GEMVTemplate(N=4096, K=4096).with_arch(carver.CUDA("H200")).recommend_hints(3)
    assert len(hints) == 3


@row("004")
def a_prediction_beside_the_explanation(tmp_path, monkeypatch):
    kernel = tw.compile(gemm(size=4096, k=64), engine="interpreter")
    assert kernel.explain("sm_90a", predict=True).startswith("product on an H200 (fitted to measurements): about ")


@row("004")
def logarithms_and_sines_exact_without_the_names(tmp_path, monkeypatch):
    """T.exp is not the fast one, unless that is asked for."""
    @T.prim_func
    def exact(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                B[i] = T.exp(A[i])

    assert "__expf" not in tw.compile(exact, engine="interpreter").get_kernel_source(arch="sm_90a")


@row("004")
def names_of_gpus_that_are_not_here(tmp_path, monkeypatch):
    for name in ("tcgen05_gemm", "alloc_tmem"):
        said = refusal(lambda name=name: getattr(T, name)())
        assert "sm_100" in said or "Blackwell" in said


@row("004")
def a_scale_of_several_devices_is_refused_by_name(tmp_path, monkeypatch):
    """TileScale: T.Scale, copies to other devices, signals, and a cluster in its own words."""
    for word in "Scale allreduce put_block get_block signal_op barrier_blocks get_rank FullCol Replica".split():
        with pytest.raises(tw.CompileError, match=f"Tilewright has no T.{word}") as error:
            getattr(T, word)
        assert error.value.code == "TW1102" and "a program runs on one device" in error.value.help

    def clustered():
        @T.prim_func
        def main(A: T.Tensor((64,), "float32")):
            with T.Kernel(cta_cluster=2, block=(64, 64), threads=256):
                T.clear(A)

    said = refusal(clustered)
    assert "unexpected keyword argument 'cta_cluster'" in said and "cluster_dims=" in said


@row("004")
def blocks_of_a_cluster_on_one_device(tmp_path, monkeypatch):
    """What the slides' cluster is for: blocks beside each other that wait for one another."""
    @T.prim_func
    def met(A: T.Tensor((4, 64), "int32"), S: T.Tensor((4, 64), "int32"), B: T.Tensor((4, 64), "int32")):
        with T.Kernel(4, threads=64, cluster_dims=2) as b:
            for i in T.Parallel(64):
                S[b, i] = A[b, i] + 1
            T.cluster_sync()
            for i in T.Parallel(64):
                B[b, i] = S[b ^ 1, i]

    a = np.arange(256, dtype="int32").reshape(4, 64)
    s, b = np.zeros_like(a), np.zeros_like(a)
    tw.compile(met, engine="interpreter")(a, s, b)
    assert (b == a[[1, 0, 3, 2]] + 1).all()


@row("004")
def tuning_by_measurements(tmp_path, monkeypatch):
    """Configurations that a decorator lists, the best of them kept; more in test_tuner.py."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))

    @tw.autotune(configs=[{"block": 32}, {"block": 64}], warmup=1, rep=1)
    @tw.jit(out_idx=-1, target="cpu")
    def doubled(n, block=32):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, block), threads=block) as b:
                for i in T.Parallel(block):
                    B[b * block + i] = A[b * block + i] * 2

        return main

    kernel = doubled(256)
    a = np.arange(256, dtype="float32")
    assert kernel.config["block"] in (32, 64) and kernel.latency > 0 and (kernel(a) == 2 * a).all()


@row("004", "torch")
def puzzles_with_their_checker(tmp_path, monkeypatch):
    """Ten and more, of growing difficulty, each with an answer that its checker takes; more in test_puzzles.py."""
    from tilewright import puzzles

    every = list(puzzles.every())
    assert len(every) >= 10 and all(callable(getattr(puzzles, name)) for name in ("start", "check", "hint", "solution"))


@row("004")
def a_library_of_operators(tmp_path, monkeypatch):
    """As TileOPs is one: families and functions, whole in test_families.py."""
    import tilewright.ops as ops

    assert len(ops.__all__) >= 200 and all(callable(getattr(ops, name)) for name in "gla delta_net mamba2 nsa_attention mla_decode fft fused_moe conv2d".split())


@row("004")
def products_of_the_indexer_on_tensor_cores(tmp_path, monkeypatch):
    """fp8_index: logits are read by rows, weighed and summed."""
    @T.prim_func
    def index(Q: T.Tensor((64, 128), "float8_e4m3fn"), K: T.Tensor((256, 128), "float8_e4m3fn"), W: T.Tensor((64,), "float32"), O: T.Tensor((256,), "float32")):
        with T.Kernel(4, threads=128) as b:
            q, k = T.alloc_shared((64, 128), "float8_e4m3fn"), T.alloc_shared((64, 128), "float8_e4m3fn")
            logits, w, total = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64,), "float32"), T.alloc_fragment((64,), "float32")
            T.copy(Q, q)
            T.copy(K[b * 64, 0], k)
            T.copy(W, w)
            T.clear(logits)
            T.gemm(k, q, logits, transpose_B=True)
            for h, n in T.Parallel(64, 64):
                logits[n, h] = T.max(logits[n, h], 0) * w[h]
            T.reduce_sum(logits, total, dim=1)
            T.copy(total, O[b * 64])

    assert gemms_of(index)[0]["becomes"][0].startswith("wgmma")
    assert gemms_of(index, "sm_89")[0]["becomes"][0].startswith("mma.sync")


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
    assert {name.partition(":")[0] for name in ROWS} == {"000", "001", "002", "004"} and len(ROWS) >= 50
