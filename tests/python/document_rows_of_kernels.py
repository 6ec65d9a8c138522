"""What the document about TileKernels names, a row each: functions, layers, formats, test files, patterns of use."""
import os
import subprocess
import sys

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from document_rows import ROOT, explained, gemm, refusal, row

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


@row("000", "torch")
def routing_by_its_own_functions(tmp_path, monkeypatch):
    """group_count, aux_fi, inplace_unique_group_indices, mask_indices_by_tp, top2_sum_gate, topk_sum_and_topk_group_idx: beside PyTorch in
    test_tile_kernels.py."""
    import torch
    from tilewright.kernels import moe

    groups = torch.tensor([[0, 2], [2, 3], [0, 0]])
    assert moe.group_count(groups, 4).tolist() == [3, 0, 2, 1] and moe.aux_fi(groups, 4, 2).shape == (4,)
    moe.inplace_unique_group_indices(groups, 4)
    assert groups.tolist() == [[0, 2], [2, 3], [0, -1]]
    assert moe.mask_indices_by_tp(torch.tensor([[0, 5], [6, 1]]), 8, 1, 0, 2).shape == (2, 2)
    assert moe.topk_sum_and_topk_group_idx(torch.rand(5, 4, 8), 2, 2).shape == (5, 2) and callable(moe.top2_sum_gate)


@row("000", "torch")
def experts_and_back(tmp_path, monkeypatch):
    """The pattern of a dispatch, and fused_expand_reduce: rows of each expert lie together and come back by their weights."""
    import torch
    from tilewright.kernels.moe import fused_expand_reduce, token_to_expert_map, topk_gating
    from tilewright.kernels.quant import per_token_cast_fp8

    hidden, gate = torch.randn(24, 256).bfloat16(), torch.randn(16, 256).bfloat16()
    weights, indices = topk_gating(torch.mm(hidden, gate.T).float(), top_k=4)
    routing = token_to_expert_map(indices, num_experts=gate.shape[0])
    values, scale = per_token_cast_fp8(hidden)
    assert values.shape == hidden.shape and scale.shape == (24, 1)
    back = fused_expand_reduce(hidden, routing, weights, fn=lambda rows, routing: rows * 2)
    assert torch.allclose(back.float(), 2 * hidden.float() * weights.sum(1, keepdim=True), atol=0.1, rtol=0.02)


@row("000", "torch")
def casts_to_four_and_twelve_bits(tmp_path, monkeypatch):
    import torch
    from tilewright.kernels import quant
    from tilewright.kernels import torch as reference

    x = torch.randn(64, 256).bfloat16()
    for fmt, group, back in (("e2m1", 32, 0.3), ("e5m6", 256, 0.02)):
        made = quant.per_token_cast(x, fmt, group)
        wanted = reference.cast_to_e5m6(x, group) if fmt == "e5m6" else reference.cast(x, fmt, (1, group))
        assert all(torch.equal(a, b) for a, b in zip(made, wanted))
        kind = {"x_special_fmt": "e5m6"} if fmt == "e5m6" else {}
        again = quant.per_token_cast_back(made, "fp32", group, **kind)
        assert torch.allclose(again, x.float(), rtol=back, atol=back)


@row("000", "torch")
def swiglu_casts_and_transposes(tmp_path, monkeypatch):
    import torch
    from tilewright.kernels import quant

    x = torch.randn(128, 512).bfloat16()
    values, scales = quant.swiglu_forward_and_per_channel_cast_and_transpose(x, "e4m3", 128)
    gate, up = x.float().chunk(2, 1)
    wanted = torch.nn.functional.silu(gate) * up
    assert values.shape == (256, 128) and values.dtype == torch.float8_e4m3fn
    assert torch.allclose(values.float().T * scales.reshape(1, 256), wanted, rtol=0.1, atol=0.02 * float(wanted.abs().max()))


@row("000", "torch")
def engrams_forward_and_backward(tmp_path, monkeypatch):
    import torch
    from tilewright.kernels import engram

    hidden, weight = torch.randn(64, 256), torch.randn(16, 256) / 16
    output, normal = engram.engram_gate_forward(hidden.bfloat16(), weight.bfloat16())
    wide = torch.nn.functional.rms_norm(hidden.bfloat16().float(), (256,), eps=1e-6)
    assert torch.allclose(normal.float(), wide, rtol=0.02, atol=0.02)
    assert torch.allclose(output.float(), normal.float() @ weight.bfloat16().float().T, rtol=0.05, atol=0.05)
    grad = torch.randn_like(output)
    of_weight = engram.engram_weight_grad(grad, normal)
    assert torch.allclose(of_weight.float(), grad.float().T @ normal.float(), rtol=0.05, atol=0.3)
    assert callable(engram.engram_gate_backward) and callable(engram.engram_hash)


@row("000", "torch")
def connections_mixed(tmp_path, monkeypatch):
    """The document's own shape of connection weights, which is not square."""
    import torch
    from tilewright.kernels.mhc import sinkhorn_normalize

    normal = sinkhorn_normalize(torch.randn(8, 64).exp(), num_iters=20)
    assert normal.shape == (8, 64) and torch.isfinite(normal).all()


@row("000", "torch")
def layers_with_gradients(tmp_path, monkeypatch):
    import torch
    from tilewright.kernels.modeling import EngramGateLayer, MHCPipeline

    layer, x = EngramGateLayer(hidden_size=256, num_experts=16), torch.randn(32, 256).bfloat16().requires_grad_()
    made = layer(x)
    (made[0] if isinstance(made, tuple) else made).float().square().sum().backward()
    assert x.grad is not None and x.grad.isfinite().all() and all(p.grad is not None for p in layer.parameters())
    assert isinstance(MHCPipeline(num_connections=4, hidden_size=256), torch.nn.Module)


@row("000", "torch")
def kernels_beside_their_references(tmp_path, monkeypatch):
    import torch
    from tilewright.kernels.quant import per_token_cast_fp8
    from tilewright.kernels.torch import per_token_cast_fp8 as per_token_cast_fp8_ref

    x = torch.randn(64, 512).bfloat16()
    (values, scale), (wanted, wanted_scale) = per_token_cast_fp8(x), per_token_cast_fp8_ref(x)
    assert torch.equal(values.view(torch.uint8), wanted.view(torch.uint8)) and torch.equal(scale, wanted_scale)


@row("000", "torch")
def test_files_by_their_paths(tmp_path, monkeypatch):
    """pytest tests/transpose/test_transpose.py, tests/moe/, tests/quant/test_fp8_cast.py, tests/engram/ with --run-benchmark."""
    for path in ("transpose/test_transpose.py", "moe", "quant/test_fp8_cast.py", "engram"):
        assert (ROOT / "tests" / path).exists()
    command = [sys.executable, "-m", "pytest", "-q", str(ROOT / "tests/transpose/test_transpose.py"), "--run-benchmark", "-k", "batched and bfloat16",
               "-p", "no:cacheprovider"]  # fmt: skip
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
    assert ran.returncode == 0 and "GB/s" in ran.stdout, ran.stdout[-2000:] + ran.stderr[-2000:]


@row("000")
def programs_that_compat_finds(tmp_path, monkeypatch):
    """python -m tilewright.compat tests, of this project, whose files say tilewright where others say tilelang."""
    from tilewright.compat import programs

    assert len(programs.of_paths([str(ROOT / "tests/moe"), str(ROOT / "tests/transpose")])) >= 2


@row("000")
def barriers_of_the_grid_and_roles_on_the_processor(tmp_path, monkeypatch):
    @T.prim_func
    def turned(A: T.Tensor((4, 32), "int32"), S: T.Tensor((4, 32), "int32"), B: T.Tensor((4, 32), "int32")):
        with T.Kernel(4, threads=32) as b:
            t = T.get_thread_binding()
            S[b, t] = A[b, t] * 2
            T.sync_grid()
            B[b, t] = S[3 - b, t]

    a = np.arange(128, dtype="int32").reshape(4, 32)
    b, s = np.zeros_like(a), np.zeros_like(a)
    tw.compile(turned, target="cpu")(a, s, b)
    assert (b == 2 * a[::-1]).all()


@row("000", "torch")
def tensors_by_a_table_of_addresses(tmp_path, monkeypatch):
    import torch

    @T.prim_func
    def summed(table: T.Tensor((3,), T.ptr), B: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=16):
            t = T.get_thread_binding()
            B[t] = 0.0
            for i in T.serial(3):
                x = T.make_tensor(table[i], (16,), "float32")
                B[t] = B[t] + x[t]

    rows = [torch.full((16,), float(i + 1)) for i in range(3)]
    for engine in ("cpu", "simulator"):
        made = torch.zeros(16)
        tw.compile(summed, engine=engine)(torch.tensor([r.data_ptr() for r in rows]), made)
        assert (made == 6).all()


@row("000", "torch")
def kernels_that_say_cuda_on_the_processor(tmp_path, monkeypatch):
    """The library's functions, and those of tilewright.ops, where "cuda" is pretended."""
    script = ("import tilewright; tilewright.without_gpu(); tilewright.install_as_tile_kernels()\n"
              "import torch, tile_kernels, tilewright.ops as ops\n"
              "x = torch.tensor([[0, 2], [2, 3]], device='cuda')\n"
              "assert tile_kernels.moe.group_count(x, 4).tolist() == [1, 0, 2, 1]\n"
              "y = torch.ones(5, device='cuda')\n"
              "assert all(ops.add(y, y).tolist() == [2] * 5 for _ in range(3)) and ops.cumsum(y).tolist() == [1, 2, 3, 4, 5]\n")  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TILEWRIGHT_ENGINE": "interpreter"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, cwd=tmp_path)


@row("000", "torch")
def products_of_ten_bits_where_a_gpu_is_pretended(tmp_path, monkeypatch):
    """As TileKernels' test of mhc_pre_norm_fn compares them: with a reference whose products PyTorch makes of tfloat32."""
    script = ("import tilewright; tilewright.without_gpu(); tilewright.install_as_tile_kernels()\n"
              "import torch\n"
              "from tile_kernels.modeling.mhc.ops import mhc_pre_norm_fn\n"
              "from tile_kernels.torch.mhc import mhc_pre_norm_fn_ref\n"
              "x, given, grad = torch.randn(1, 64, 2, 128).bfloat16(), torch.randn(8, 256), torch.randn(1, 64, 8)\n"
              "def of_fn(function, tf32):\n"
              "    torch.backends.cuda.matmul.allow_tf32 = tf32\n"
              "    fn, own = given.clone().requires_grad_(), x.clone().requires_grad_()\n"
              "    own.untyped_storage().grad_from_mhc_post = torch.zeros_like(own)\n"
              "    function(own, fn, None, 1e-6).backward(grad)\n"
              "    return fn.grad\n"
              "ours, exact, rounded = of_fn(mhc_pre_norm_fn, False), of_fn(mhc_pre_norm_fn_ref, False), of_fn(mhc_pre_norm_fn_ref, True)\n"
              "assert (ours - rounded).abs().max() < 1e-4 < (ours - exact).abs().max()\n")  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TILEWRIGHT_ENGINE": "cpu"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, cwd=tmp_path)


@row("000")
def a_skill_for_agents(tmp_path, monkeypatch):
    """Its pages run in test_skills.py."""
    head = (ROOT / "skills/tilewright/SKILL.md").read_text().split("---")[1]
    assert "name:" in head and "description:" in head


@row("000")
def architectures_that_are_not_here(tmp_path, monkeypatch):
    assert "TW8201" in refusal(lambda: explained(gemm(), "sm_75")) and "sm_90a" in refusal(lambda: explained(gemm(), "sm_75"))


@row("000")
def blackwell_runs_what_names_no_instruction_of_it(tmp_path, monkeypatch):
    """Products on mma.sync; tensor memory is refused by name (in row 004)."""
    for arch in ("sm_100a", "sm_120a"):
        assert "mma.sync" in tw.compile(gemm(), engine="interpreter").get_kernel_source(arch=arch)
