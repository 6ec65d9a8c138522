"""Tile programs compiled by Tilewright and by TileLang, and the vendor's libraries, in one process and in turns.

    python bench/gpu/peers.py --examples TILELANG/examples [--json FILE] [--only TEXT]... [--side 8] [--seconds 400]
    python bench/gpu/peers.py --random 300 [--seed 1] ...    products of shapes, tiles, types and orders that nobody chose

Needs a GPU, torch and Tilewright; TileLang and its examples take part when they are there, so do DeepGEMM, and cuBLAS and
cuDNN as torch calls them. Programs are the public examples at their published tile sizes and the same source for both compilers.
Each case is a process of its own; `--side` of them compile at once while one measures. Times are taken as in
docs/measuring.md: 256 MB written before each call, `burst` after a rest, `sustained` in turns without one; medians.
"""

import argparse
import contextlib
import datetime
import fcntl
import functools
import importlib
import importlib.util
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from turns import FLUSH_BYTES  # noqa: E402

_GROUP = 10
_ALIASED = ("tilelang", "tvm")  # modules that each frontend has under the same names


class Frontend:
    """`import tilelang` as one of the two packages: what is loaded inside of `with frontend.imported()` sees that one."""

    def __init__(self, name):
        self.name = name
        self._modules = {}
        with self.imported():
            if name == "tilewright":
                importlib.import_module("tilewright").install_as_tilelang(force=True)
            self.tilelang = importlib.import_module("tilelang")
            if getattr(self.tilelang, "__tilewright__", False) != (name == "tilewright"):
                raise ImportError(f"`import tilelang` gave {self.tilelang}, which is not {name}'s")
            self.T = importlib.import_module("tilelang.language")

    @contextlib.contextmanager
    def imported(self):
        kept = _take_aliased()
        finders = list(sys.meta_path)
        sys.modules.update(self._modules)
        if self._modules:
            sys.meta_path[:] = self._finders
        try:
            yield self
        finally:
            self._modules = _take_aliased()
            self._finders = list(sys.meta_path)
            sys.meta_path[:] = finders
            sys.modules.update(kept)

    def load(self, path):
        """A module from a file, of its own for each frontend."""
        with self.imported():
            sys.path.insert(0, os.path.dirname(path))
            try:
                spec = importlib.util.spec_from_file_location(f"{self.name}_{os.path.basename(path)[:-3]}", path)
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
            finally:
                sys.path.pop(0)
        return module


def _take_aliased():
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in _ALIASED}


@functools.cache
def frontends():
    found = [Frontend("tilewright")]
    try:
        found.append(Frontend("tilelang"))
    except ImportError:
        pass
    return found


class Race:
    """Contestants of one case: name -> a call without arguments. The first one that is added to `ours` is what ratios are of."""

    def __init__(self, case, flops=0, moved=0):
        self.case, self.flops, self.moved = case, flops, moved
        self.calls, self.notes = {}, {}

    def add(self, name, prepare, front=None):
        """prepare() gives (call, result to compare or None); a failure is a row of its own and stops nothing."""
        import torch

        start = time.time()
        try:
            with front.imported() if front else contextlib.nullcontext():
                call, result = prepare()
            torch.cuda.synchronize()
        except Exception as error:  # a peer that fails must not take the others along
            self.notes[name] = {"failed": f"{type(error).__name__}: {error}"[:300]}
            return None
        self.calls[name] = call
        self.notes[name] = {"compile_s": round(time.time() - start, 3)}
        return result

    def error(self, name, result, expected):
        if result is None:
            return
        difference = (result.float() - expected.float()).abs().max().item()
        self.notes[name]["error"] = float(f"{difference:.3e}")
        self.notes[name]["largest"] = float(f"{expected.float().abs().max().item():.3e}")

    def run(self, turns=30):
        import torch

        flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
        taken = {name: {"burst": [], "sustained": []} for name in self.calls}
        pending = []

        def once(name, kind):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            begin.record()
            self.calls[name]()
            end.record()
            if kind:
                pending.append((name, kind, begin, end))

        def collect():
            torch.cuda.synchronize()
            for name, kind, begin, end in pending:
                taken[name][kind].append(begin.elapsed_time(end))
            pending.clear()

        with open(os.path.join(tempfile.gettempdir(), "tilewright_peers.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for name in self.calls:
                for _ in range(3):
                    once(name, None)
            for _ in range(0, turns, _GROUP):
                for name in self.calls:
                    collect()
                    time.sleep(0.05)
                    for _ in range(_GROUP):
                        once(name, "burst")
            collect()
            begin = time.time()
            while time.time() - begin < 0.3:
                for name in self.calls:
                    once(name, None)
                torch.cuda.synchronize()
            for _ in range(turns):  # without a rest: who comes first in a turn would show what its call costs the processor
                for name in self.calls:
                    once(name, "sustained")
            collect()
        return self._rows(taken)

    def _rows(self, taken):
        rows = []
        for name, note in self.notes.items():
            row = {"case": self.case, "name": name, **note}
            for kind, times in taken.get(name, {}).items():
                ms = statistics.median(times)
                row[kind] = {"us": round(ms * 1e3, 2)}
                if self.flops:
                    row[kind]["tflops"] = round(self.flops / ms / 1e9, 1)
                if self.moved:
                    row[kind]["gbs"] = round(self.moved / ms / 1e6, 1)
            rows.append(row)
        return rows


# Each case below is one function of text arguments, as the list of cases names it.


def gemm(mnk, form, *tiles):
    """C = A * B; `form` is nt, nn, tn or tt, in bf16, or as f16.nt; tiles as BLOCK_MxBLOCK_NxBLOCK_K:STAGES:THREADS, the same
    program for each."""
    import torch

    M, N, K = (int(x) for x in mnk.split("x"))
    operand = "float16" if form.startswith("f16.") else "bfloat16"
    order = form[-2:]
    dtype = getattr(torch, operand)
    a = torch.randn(*((K, M) if order[0] == "t" else (M, K)), device="cuda", dtype=dtype)
    b = torch.randn(*((N, K) if order[1] == "t" else (K, N)), device="cuda", dtype=dtype)
    left, right = (a.T if order[0] == "t" else a), (b.T if order[1] == "t" else b)
    out = torch.empty(M, N, device="cuda", dtype=dtype)
    race = Race(f"gemm {operand} {order} {mnk}", flops=2 * M * N * K)
    expected = race.add("cublas", lambda: (lambda: torch.mm(left, right, out=out), torch.mm(left, right)))
    for tile in tiles:
        shape, stages, threads = tile.split(":")
        for front in frontends():
            name = f"{front.name} {tile}"

            def prepare(front=front, shape=shape, stages=stages, threads=threads):
                blocks = (int(x) for x in shape.split("x"))
                kernel = _gemm_program(front, M, N, K, order, *blocks, int(stages), int(threads), operand)
                return (lambda: kernel(a, b)), kernel(a, b)

            race.error(name, race.add(name, prepare, front), expected)
    return race.run()


def _gemm_program(front, M, N, K, order, block_M, block_N, block_K, stages, threads, operand="bfloat16", result=None):
    tilelang, T = front.tilelang, front.T
    left, transposed, result = order[0] == "t", order[1] == "t", result or operand

    @tilelang.jit(out_idx=[-1])
    def matmul():
        @T.prim_func
        def main(
            A: T.Tensor((K, M) if left else (M, K), operand),
            B: T.Tensor((N, K) if transposed else (K, N), operand),
            C: T.Tensor((M, N), result),
        ):
            with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
                A_shared = T.alloc_shared((block_K, block_M) if left else (block_M, block_K), operand)
                B_shared = T.alloc_shared((block_N, block_K) if transposed else (block_K, block_N), operand)
                C_local = T.alloc_fragment((block_M, block_N), T.float32)
                C_shared = T.alloc_shared((block_M, block_N), result)
                T.use_swizzle(panel_size=10)
                T.clear(C_local)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                    if left:
                        T.copy(A[k * block_K, by * block_M], A_shared)
                    else:
                        T.copy(A[by * block_M, k * block_K], A_shared)
                    if transposed:
                        T.copy(B[bx * block_N, k * block_K], B_shared)
                    else:
                        T.copy(B[k * block_K, bx * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local, transpose_A=left, transpose_B=transposed)
                T.copy(C_local, C_shared)
                T.copy(C_shared, C[by * block_M, bx * block_N])

        return main

    return matmul()


def _cudnn(q, k, v, causal):
    """Scaled dot-product attention by cuDNN; tensors as (batch, position, head, dim)."""
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        out = F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), is_causal=causal)
    return out.transpose(1, 2)


def forward(batch, heads, length, dim, causal, *configs):
    """FlashAttention forward, float16; configs as BLOCK_MxBLOCK_N:STAGES:THREADS of the public example."""
    import torch

    batch, heads, length, dim, causal = (int(x) for x in (batch, heads, length, dim, causal))
    q, k, v = (torch.randn(batch, length, heads, dim, device="cuda", dtype=torch.float16) for _ in range(3))
    race = Race(
        f"attention forward f16 {batch}x{heads}x{length} d{dim}{' causal' if causal else ''}",
        flops=4 * batch * heads * length * length * dim // (1 + causal),
    )
    expected = race.add("cudnn", lambda: (lambda: _cudnn(q, k, v, bool(causal)), _cudnn(q, k, v, bool(causal))))
    for config in configs:
        tile, stages, threads = config.split(":")
        block_M, block_N = (int(x) for x in tile.split("x"))
        for front in frontends():
            name = f"{front.name} {config}"

            def prepare(front=front, block_M=block_M, block_N=block_N, stages=stages, threads=threads):
                module = front.load(f"{EXAMPLES}/flash_attention/example_mha_fwd_bshd.py")
                kernel = module.flashattn(
                    batch, heads, length, dim, bool(causal), block_M=block_M, block_N=block_N,
                    num_stages=int(stages), threads=int(threads),
                )  # fmt: skip
                return (lambda: kernel(q, k, v)), kernel(q, k, v)

            race.error(name, race.add(name, prepare, front), expected)
    return race.run()


def backward(batch, heads, length, dim, causal, *configs):
    """FlashAttention backward, float16, of the public example (three kernels); configs as BLOCK_MxBLOCK_N."""
    import torch

    batch, heads, length, dim, causal = (int(x) for x in (batch, heads, length, dim, causal))
    q, k, v, do = (torch.randn(batch, length, heads, dim, device="cuda", dtype=torch.float16) for _ in range(4))
    race = Race(
        f"attention backward f16 {batch}x{heads}x{length} d{dim}{' causal' if causal else ''}",
        flops=10 * batch * heads * length * length * dim // (1 + causal),
    )

    def by_cudnn():
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        out = _cudnn(*leaves, bool(causal))
        call = lambda: torch.autograd.grad(out, leaves, do, retain_graph=True)  # noqa: E731
        return call, call()[1]

    expected = race.add("cudnn", by_cudnn)
    for config in configs:
        block_M, block_N = (int(x) for x in config.split("x"))
        for front in frontends():
            name = f"{front.name} {config}"

            def prepare(front=front, block_M=block_M, block_N=block_N):
                module = front.load(f"{EXAMPLES}/flash_attention/example_mha_bwd_bshd.py")
                forward_kernel = module.flashattn_fwd(batch, heads, length, dim, bool(causal), 128, 64)
                before = module.flashattn_bwd_preprocess(batch, heads, length, dim)
                kernel = module.flashattn_bwd(batch, heads, length, dim, bool(causal), block_M, block_N)
                after = module.flashattn_bwd_postprocess(batch, heads, length, dim)
                out, lse = forward_kernel(q, k, v)
                dq = torch.zeros(batch, length, heads, dim, device="cuda")
                dk, dv = torch.zeros_like(q), torch.zeros_like(q)

                def call():
                    delta = before(out, do)
                    dq.zero_()
                    kernel(q, k, v, do, lse, delta, dq, dk, dv)
                    return after(dq)

                call()
                return call, dk

            race.error(name, race.add(name, prepare, front), expected)
    return race.run(turns=10)


def mla(kind, batch, heads, keys):
    """MLA decode, float16, one query, 512 + 64: the public example, written plainly or (ws) for warps with roles."""
    import torch

    batch, heads, keys = int(batch), int(heads), int(keys)
    dim, pe = 512, 64
    scale = (dim + pe) ** -0.5
    q, q_pe = (torch.randn(batch, heads, d, device="cuda", dtype=torch.float16) for d in (dim, pe))
    kv, k_pe = (torch.randn(batch, keys, 1, d, device="cuda", dtype=torch.float16) for d in (dim, pe))
    scores = torch.einsum("bhd,bnd->bhn", torch.cat([q, q_pe], -1)[:4].float(), torch.cat([kv, k_pe], -1)[:4, :, 0].float())
    expected = torch.einsum("bhn,bnd->bhd", (scores * scale).softmax(-1), kv[:4, :, 0].float())
    race = Race(
        f"mla {kind} b{batch} h{heads} kv{keys}", flops=2 * batch * heads * keys * (2 * dim + pe),
        moved=2 * batch * keys * (dim + pe),
    )  # fmt: skip
    for front in frontends():

        def prepare(front=front):
            module = front.load(f"{EXAMPLES}/deepseek_mla/example_mla_decode{'_ws' if kind == 'ws' else ''}.py")
            kernel = module.flashattn(batch, heads, 1, keys, dim, pe, 64, min(64, heads), 1, scale)
            args = [q, q_pe, kv, k_pe]
            if kind == "ws":  # its partial results are arguments
                args += [torch.empty(batch, heads, *of, device="cuda", dtype=torch.float16) for of in ((1,), (1, dim))]
            return (lambda: kernel(*args)), kernel(*args)[:4].reshape(4, heads, dim)

        race.error(front.name, race.add(front.name, prepare, front), expected)
    return race.run()


def sparse(kind, length, keys, topk):
    """Sparse MLA forward, bfloat16, 128 heads of 512 + 64, of the public examples (`pipelined`, `seesaw`), whose loaders
    gather rows by cp.async."""
    import torch

    length, keys, topk, first = int(length), int(keys), int(topk), int(keys) - int(length)
    heads, dim, tail = 128, 512, 64
    q = torch.randn(1, length, heads, dim + tail, device="cuda", dtype=torch.bfloat16)
    kv = torch.randn(1, keys, 1, dim + tail, device="cuda", dtype=torch.bfloat16)
    seen = torch.arange(first + 1, first + length + 1, device="cuda")[:, None]
    indices = (torch.rand(length, topk, device="cuda") * seen).to(torch.int32).view(1, length, 1, topk)
    start = torch.tensor([first], dtype=torch.int32, device="cuda")
    race = Race(f"sparse mla {kind} {length} of {keys}, {topk}", flops=2 * length * heads * topk * (2 * dim + tail))
    expected = None
    for front in frontends():

        def prepare(front=front):
            module = front.load(f"{EXAMPLES}/deepseek_v32/sparse_mla_fwd_{kind}.py")
            call = lambda: module.sparse_mla_fwd(q, kv, indices, start, heads, dim, tail, topk, 1, 1, None, True, first == 0)  # noqa: E731
            return call, call()[0]

        result = race.add(front.name, prepare, front)
        expected = result if expected is None else expected
        if expected is not None:
            race.error(front.name, result, expected)
    return race.run(turns=10)


def fp8(mnk, block_N):
    """Block-scaled e4m3 product with two-level accumulation: the public example and its tile (64 rows, 128 deep)."""
    import torch

    M, N, K = (int(x) for x in mnk.split("x"))
    race = Race(f"fp8 block-scaled {mnk}", flops=2 * M * N * K)
    operands = None
    first = None
    for front in frontends():

        def prepare(front=front):
            nonlocal operands
            module = front.load(f"{EXAMPLES}/deepseek_deepgemm/example_deepgemm_fp8_2xAcc.py")
            if operands is None:
                a, b = (torch.randn(n, K, device="cuda", dtype=torch.bfloat16) for n in (M, N))
                operands = [*module.per_token_cast_to_fp8(a), *module.per_block_cast_to_fp8(b)]
            a, scale_a, b, scale_b = operands
            T = front.T
            call = lambda: module.tl_gemm(a, b, scale_a, scale_b, int(block_N), T.float8_e4m3fn, T.bfloat16, T.float32)  # noqa: E731
            return call, call()

        result = race.add(front.name, prepare, front)
        first = result if first is None else first
        if first is not None:
            race.error(front.name, result, first)
    return race.run()


def scaled(mnk):
    """Block-scaled e4m3 product, scales of 1x128 and 128x128, beside DeepGEMM; and one with no scales, beside cuBLASLt.
    Ours are examples/fp8_gemm.cpp in Python and the plain product with tiles of 128x256."""
    import torch

    M, N, K = (int(x) for x in mnk.split("x"))
    e4m3 = torch.float8_e4m3fn
    a, b = (torch.randn(n, K, device="cuda", dtype=torch.bfloat16) for n in (M, N))
    of_a, of_b = a.view(M, K // 128, 128), b.view(N // 128, 128, K // 128, 128)
    scale_a = of_a.abs().float().amax(-1).clamp(1e-4) / 448
    scale_b = of_b.abs().float().amax((1, 3)).clamp(1e-4) / 448
    a, b = (of_a / scale_a[..., None]).to(e4m3), (of_b / scale_b[:, None, :, None]).to(e4m3)
    expected = (a.float() * scale_a[..., None]).view(M, K) @ (b.float() * scale_b[:, None, :, None]).view(N, K).T
    a, b, scale_a = a.view(M, K), b.view(N, K), scale_a.T.contiguous()
    race = Race(f"fp8 scaled {mnk}", flops=2 * M * N * K)
    front = frontends()[0]

    def by_deepgemm():
        import deep_gemm

        out = torch.empty(M, N, device="cuda", dtype=torch.bfloat16)
        call = lambda: deep_gemm.fp8_gemm_nt((a, scale_a.T), (b, scale_b), out)  # noqa: E731
        call()
        return call, out.clone()

    def by_us():
        kernel = _scaled_program(front, M, N, K)
        return (lambda: kernel(a, b, scale_a, scale_b)), kernel(a, b, scale_a, scale_b)

    def plain():
        kernel = _gemm_program(front, M, N, K, "nt", 128, 256, 128, 4, 256, "float8_e4m3fn", "bfloat16")
        return (lambda: kernel(a, b)), kernel(a, b)

    def by_cublaslt(fast):
        one = torch.ones((), device="cuda")
        return (lambda: torch._scaled_mm(a, b.T, one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)), None

    race.error("deepgemm", race.add("deepgemm", by_deepgemm), expected)
    race.error(front.name, race.add(front.name, by_us, front), expected)
    race.add("cublaslt, no scales", lambda: by_cublaslt(False))
    race.add("cublaslt, no scales, fast sums", lambda: by_cublaslt(True))
    name = f"{front.name}, no scales"
    race.error(name, race.add(name, plain, front), a.float() @ b.float().T)
    return race.run()


def _scaled_program(front, M, N, K):
    tilelang, T = front.tilelang, front.T
    group, rows, columns = 128, 128, 64  # a scale's elements; the part of a tile whose products are summed on their own

    @tilelang.jit(out_idx=[-1])
    def matmul():
        @T.macro
        def scale_and_add(sums, inner, scales, scale):
            for i, j in T.Parallel(rows, columns):
                sums[i, j] += inner[i, j] * (scales[i] * scale)

        @T.prim_func
        def main(
            A: T.Tensor((M, K), T.float8_e4m3fn),
            B: T.Tensor((N, K), T.float8_e4m3fn),
            SA: T.Tensor((K // group, M), T.float32),
            SB: T.Tensor((N // group, K // group), T.float32),
            C: T.Tensor((M, N), T.bfloat16),
        ):
            with T.Kernel(T.ceildiv(N, 2 * columns), T.ceildiv(M, 2 * rows), threads=256) as (bx, by):
                T.use_swizzle(8)
                B_shared = T.alloc_shared((2 * columns, group), T.float8_e4m3fn)
                A_0 = T.alloc_shared((rows, group), T.float8_e4m3fn)
                A_1 = T.alloc_shared((rows, group), T.float8_e4m3fn)
                SA_0 = T.alloc_shared((rows,), T.float32)
                SA_1 = T.alloc_shared((rows,), T.float32)
                scales_0 = T.alloc_fragment((rows,), T.float32)
                scales_1 = T.alloc_fragment((rows,), T.float32)
                inner_0 = T.alloc_fragment((rows, columns), T.float32)
                inner_1 = T.alloc_fragment((rows, columns), T.float32)
                sums_00 = T.alloc_fragment((rows, columns), T.float32)
                sums_01 = T.alloc_fragment((rows, columns), T.float32)
                sums_10 = T.alloc_fragment((rows, columns), T.float32)
                sums_11 = T.alloc_fragment((rows, columns), T.float32)
                T.clear(sums_00)
                T.clear(sums_01)
                T.clear(sums_10)
                T.clear(sums_11)
                for k in T.Pipelined(K // group, num_stages=3):
                    T.copy(B[bx * 2 * columns, k * group], B_shared)
                    T.copy(A[by * 2 * rows, k * group], A_0)
                    T.copy(SA[k, by * 2 * rows], SA_0)
                    T.copy(SA_0, scales_0)
                    T.copy(A[by * 2 * rows + rows, k * group], A_1)
                    T.copy(SA[k, by * 2 * rows + rows], SA_1)
                    T.copy(SA_1, scales_1)
                    scale = SB[bx * 2 * columns // group, k]
                    T.gemm(A_0, B_shared[:columns, :], inner_0, transpose_B=True, clear_accum=True)
                    T.gemm(A_0, B_shared[columns:, :], inner_1, transpose_B=True, clear_accum=True)
                    scale_and_add(sums_00, inner_0, scales_0, scale)
                    T.gemm(A_1, B_shared[:columns, :], inner_0, transpose_B=True, clear_accum=True)
                    scale_and_add(sums_01, inner_1, scales_0, scale)
                    T.gemm(A_1, B_shared[columns:, :], inner_1, transpose_B=True, clear_accum=True)
                    scale_and_add(sums_10, inner_0, scales_1, scale)
                    scale_and_add(sums_11, inner_1, scales_1, scale)
                T.copy(sums_00, C[by * 2 * rows, bx * 2 * columns])
                T.copy(sums_01, C[by * 2 * rows, bx * 2 * columns + columns])
                T.copy(sums_10, C[by * 2 * rows + rows, bx * 2 * columns])
                T.copy(sums_11, C[by * 2 * rows + rows, bx * 2 * columns + columns])

        return main

    return matmul()


def gemm_sp(mnk, *tiles):
    """C = A * B in f16, where two of each four elements of A are kept: the public example; tiles as for gemm."""
    import torch

    M, N, K = (int(x) for x in mnk.split("x"))
    a = torch.randn(M, K // 4, 4, device="cuda")
    a = a.scatter(-1, a.abs().topk(2, dim=-1, largest=False).indices, 0).view(M, K).half()
    b = torch.randn(K, N, device="cuda", dtype=torch.float16)
    race = Race(f"sparse gemm f16 {mnk}", flops=2 * M * N * K)
    expected = race.add("cublas, dense", lambda: (lambda: torch.mm(a, b), torch.mm(a, b)))

    def by_cusparselt():
        kept = torch.sparse.to_sparse_semi_structured(a)
        return (lambda: torch.mm(kept, b)), torch.mm(kept, b)

    race.error("cusparselt", race.add("cusparselt", by_cusparselt), expected)
    for tile in tiles:
        shape, stages, threads = tile.split(":")
        for front in frontends():
            name = f"{front.name} {tile}"

            def prepare(front=front, shape=shape, stages=stages, threads=threads):
                module = front.load(f"{EXAMPLES}/gemm_sp/example_gemm_sp.py")
                utils = front.load(f"{EXAMPLES}/gemm_sp/sparse_utils.py")
                kept, metadata = utils.torch_compress(a)
                T, block = front.T, (int(x) for x in shape.split("x"))
                policy = T.GemmWarpPolicy.Square
                kernel = module.matmul_sp_fp16(M, N, K, T.float32, T.int16, *block, int(stages), int(threads), policy, True)
                return (lambda: kernel(kept, metadata, b)), kernel(kept, metadata, b)

            race.error(name, race.add(name, prepare, front), expected)
    return race.run()


def norm(rows, columns, block):
    """RMS normalization in float32 by the public example."""
    import torch

    a = torch.randn(int(rows), int(columns), device="cuda")
    out = torch.empty_like(a)
    race = Race(f"rms_norm f32 {rows}x{columns}", moved=8 * a.numel())
    race.add("copy", lambda: (lambda: out.copy_(a), None))
    expected = a * torch.rsqrt(a.pow(2).mean(-1, keepdim=True) + 1e-12)
    for front in frontends():

        def prepare(front=front):
            module = front.load(f"{EXAMPLES}/norm/rms_norm.py")
            call = lambda: module.rms_norm(a, int(block))  # noqa: E731
            return call, call()

        race.error(front.name, race.add(front.name, prepare, front), expected)
    return race.run()


def rows(kind, rows, columns, *tiles):
    """Softmax or RMS normalization of rows in bf16, a row whole on chip; tiles as ROWS:THREADS."""
    import torch

    rows, columns = int(rows), int(columns)
    a = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)
    race = Race(f"{kind} bf16 {rows}x{columns}", moved=4 * a.numel())
    race.add("copy", lambda: (lambda: out.copy_(a), None))
    if kind == "softmax":
        expected = torch.softmax(a.float(), -1)
    else:
        expected = a.float() * torch.rsqrt(a.float().pow(2).mean(-1, keepdim=True) + 1e-6)
    for tile in tiles:
        block, threads = (int(x) for x in tile.split(":"))
        for front in frontends():

            def prepare(front=front, block=block, threads=threads):
                kernel = _rows_program(front, kind, rows, columns, block, threads)
                return (lambda: kernel(a)), kernel(a)

            name = f"{front.name} {tile}"
            race.error(name, race.add(name, prepare, front), expected)
    return race.run()


def _rows_program(front, kind, rows, columns, block, threads):
    tilelang, T = front.tilelang, front.T

    @tilelang.jit(out_idx=[-1])
    def softmax():
        @T.prim_func
        def main(A: T.Tensor((rows, columns), T.bfloat16), B: T.Tensor((rows, columns), T.bfloat16)):
            with T.Kernel(T.ceildiv(rows, block), threads=threads) as bx:
                x = T.alloc_fragment((block, columns), T.float32)
                largest = T.alloc_fragment((block,), T.float32)
                total = T.alloc_fragment((block,), T.float32)
                T.copy(A[bx * block, 0], x)
                T.reduce_max(x, largest, dim=1)
                for i, j in T.Parallel(block, columns):
                    x[i, j] = T.exp(x[i, j] - largest[i])
                T.reduce_sum(x, total, dim=1)
                for i, j in T.Parallel(block, columns):
                    x[i, j] = x[i, j] / total[i]
                T.copy(x, B[bx * block, 0])

        return main

    @tilelang.jit(out_idx=[-1])
    def rms_norm():
        @T.prim_func
        def main(A: T.Tensor((rows, columns), T.bfloat16), B: T.Tensor((rows, columns), T.bfloat16)):
            with T.Kernel(T.ceildiv(rows, block), threads=threads) as bx:
                x = T.alloc_fragment((block, columns), T.float32)
                squares = T.alloc_fragment((block, columns), T.float32)
                total = T.alloc_fragment((block,), T.float32)
                T.copy(A[bx * block, 0], x)
                for i, j in T.Parallel(block, columns):
                    squares[i, j] = x[i, j] * x[i, j]
                T.reduce_sum(squares, total, dim=1)
                for i in T.Parallel(block):
                    total[i] = T.rsqrt(total[i] / columns + 1e-6)
                for i, j in T.Parallel(block, columns):
                    x[i, j] = x[i, j] * total[i]
                T.copy(x, B[bx * block, 0])

        return main

    return {"softmax": softmax, "rms_norm": rms_norm}[kind]()


def copy(rows, columns, *tiles):
    """A copy in bf16 by a tile program; tiles as ROWSxCOLUMNS:THREADS."""
    import torch

    rows, columns = int(rows), int(columns)
    a = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)
    race = Race(f"copy bf16 {rows}x{columns}", moved=4 * a.numel())
    race.add("copy", lambda: (lambda: out.copy_(a), None))
    for tile in tiles:
        shape, threads = tile.split(":")
        block_M, block_N = (int(x) for x in shape.split("x"))
        for front in frontends():
            tilelang, T = front.tilelang, front.T

            def prepare(front=front, tilelang=tilelang, T=T, block_M=block_M, block_N=block_N, threads=int(threads)):
                @tilelang.jit(out_idx=[-1])
                def made():
                    @T.prim_func
                    def main(A: T.Tensor((rows, columns), T.bfloat16), B: T.Tensor((rows, columns), T.bfloat16)):
                        with T.Kernel(T.ceildiv(columns, block_N), T.ceildiv(rows, block_M), threads=threads) as (bx, by):
                            rows_of, columns_of = by * block_M, bx * block_N
                            T.copy(
                                A[rows_of : rows_of + block_M, columns_of : columns_of + block_N],
                                B[rows_of : rows_of + block_M, columns_of : columns_of + block_N],
                            )

                    return main

                kernel = made()
                return (lambda: kernel(a)), kernel(a)

            name = f"{front.name} {tile}"
            race.error(name, race.add(name, prepare, front), a)
    return race.run()


CASES = [
    "gemm 8192x8192x8192 nt 128x256x64:4:256 128x256x64:3:256",
    "gemm 4096x4096x4096 nt 128x256x64:4:256 128x128x64:4:128",
    "gemm 4096x7168x16384 nt 128x256x64:4:256",
    "gemm 2048x2048x2048 nt 128x128x64:4:128 128x256x64:4:256",
    "gemm 4096x24576x1536 nt 128x256x64:4:256 128x208x64:5:128",
    "gemm 8192x8192x8192 nn 128x256x64:4:256",
    "gemm 4096x4096x4096 nn 128x256x64:4:256 128x128x64:4:128",
    "gemm 128x4096x7168 nt 128x128x64:4:128 64x64x128:4:128",
    "forward 4 32 4096 128 0 128x128:2:256 128x176:1:256 128x176:2:256 128x64:2:256",
    "forward 4 32 4096 128 1 128x128:2:256 128x128:1:256 128x64:2:256",
    "forward 4 32 4096 64 0 128x128:2:256 192x128:2:384 128x128:2:128",
    "forward 4 32 4096 64 1 128x128:2:256 192x128:2:384 128x128:2:128",
    "forward 2 16 4096 256 0 128x64:1:256 128x80:1:256 128x64:2:256",
    "forward 1 32 16384 128 1 128x128:2:256",
    "backward 4 32 4096 128 0 64x64 128x128 64x128",
    "backward 4 32 4096 128 1 64x64 128x128 64x128",
    *(f"mla {kind} 128 {heads} 8192" for kind in ("auto", "ws") for heads in (128, 16)),
    "mla auto 128 128 32768",
    "sparse pipelined 4096 8192 2048",
    "sparse seesaw 4096 8192 2048",
    *(f"fp8 {mnk} 128" for mnk in ("4096x7168x16384", "4096x4096x7168", "128x4096x7168", "64x7168x2048")),
    *(f"scaled {mnk}" for mnk in ("4096x7168x16384", "4096x4096x7168")),
    "gemm_sp 8192x8192x8192 128x256x128:2:256 128x128x128:3:256 128x256x64:3:256",
    "norm 65536 8192 1",
    "norm 65536 8192 2",
    "copy 32768 16384 1x2048:256 8x1024:128 64x128:128",
    # Tiles and shapes that nobody had tuned for, and that were behind once.
    "gemm 6144x5120x4096 nn 192x192x64:3:256",
    "gemm 3072x1024x1024 nt 192x192x128:2:256",
    "gemm 5000x5000x5000 nt 128x256x64:3:256 128x128x64:4:128 128x128x32:4:128",
    "gemm 6144x4096x8192 nt 256x64x32:3:256",
    *(f"gemm {mnk} {form} 128x256x64:4:256 128x224x64:4:256" for mnk in ("5000x5000x5056", "5056x5056x5000", "5000x5056x5056", "5056x5056x5056") for form in ("nt", "nn")),
    "gemm 16x14336x4096 nt 64x128x64:4:128",
    "gemm 64x7168x16384 nt 64x64x128:3:128",
    "gemm 2048x7168x8192 nn 256x96x128:2:128",
    "rows rms_norm 65536 1024 8:128",
    "rows softmax 16384 32768 1:1024",
]


_SHARED_BYTES, _THREAD_REGISTERS = 227 << 10, 255  # of a block, of a thread (CUDA C++ Programming Guide, compute capability 9.0)


def random_tile(r):
    """A tile that fits: operands in all stages and the result in shared memory, the sums in registers."""
    while True:
        block_M, block_N = r.choice((64, 128, 192, 256)), r.choice((32, 64, 96, 128, 160, 192, 208, 256))
        block_K, stages, threads = r.choice((32, 64, 128)), r.choice((2, 3, 4, 5)), r.choice((128, 256))
        in_shared = 2 * ((block_M + block_N) * block_K * stages + block_M * block_N)
        sums = block_M * block_N // threads
        if in_shared <= _SHARED_BYTES and sums + 40 <= _THREAD_REGISTERS and block_M >= threads // 2:
            return f"{block_M}x{block_N}x{block_K}:{stages}:{threads}"


def random_gemms(count, seed):
    """At least `count` products, three tiles to a shape, as cases of gemm(). A seed always gives the same."""
    r = random.Random(seed)
    cases = []
    while 3 * len(cases) < count:
        kind = r.randrange(4)
        if kind == 0:  # squares
            M = N = K = r.choice((512, 1024, 1536, 2048, 3072, 4096, 5000, 6144, 8192))
        elif kind == 1:  # few rows
            M, N, K = r.choice((16, 64, 128, 256)), r.choice((2048, 4096, 7168, 14336, 24576)), r.choice((2048, 4096, 7168, 16384))
        else:
            M, N, K = (r.choice((8, 64, 128)) * r.randint(1, 64) for _ in range(3))
        if not 1e9 <= 2 * M * N * K <= 4e12:
            continue
        form = r.choice(("nt", "nt", "nn", "nn", "tn", "tt"))
        cases.append(f"gemm {M}x{N}x{K} {r.choice(('', 'f16.'))}{form} " + " ".join(random_tile(r) for _ in range(3)))
    return cases


def against_tilelang(rows, kind="sustained"):
    """(ratios of our rate to TileLang's by case and tile, the geometric mean)."""
    took = {(row["case"], row["name"]): row[kind]["us"] for row in rows if kind in row}
    ratios = {}
    for (case, name), us in took.items():
        front, _, tile = name.partition(" ")
        peer = took.get((case, f"tilelang {tile}"))
        if front == "tilewright" and peer:
            ratios[f"{case} {tile}"] = peer / us
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios)) if ratios else None
    return ratios, mean


def _start(case):
    log = tempfile.TemporaryFile("w+")
    command = [sys.executable, os.path.abspath(__file__), "--examples", EXAMPLES, "--case", case]
    return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT), log, time.time()


def _finish(case, process, log):
    log.seek(0)
    text = log.read()
    rows = [json.loads(line) for line in text.splitlines() if line.startswith('{"case"')]
    if process.returncode:
        rows.append({"case": case, "name": "process", "failed": f"exit {process.returncode}: {text[-600:]}"})
    for row in rows:
        print(json.dumps(row), flush=True)
    return rows


def run_all(cases, side, seconds, limit=200):
    """Runs the cases, `side` processes at a time; none is started after `seconds`. Returns the rows of all."""
    end = time.time() + seconds
    waiting, running, rows = list(cases), {}, []
    while waiting or running:
        while waiting and len(running) < side and time.time() < end:
            case = waiting.pop(0)
            running[case] = _start(case)
        for case, (process, log, begun) in list(running.items()):
            if process.poll() is None and time.time() - begun < limit:
                continue
            process.kill()
            process.wait()
            rows += _finish(case, process, log)
            del running[case]
        if waiting and not running and time.time() >= end:
            rows += [{"case": case, "name": "process", "failed": "not run: out of time"} for case in waiting]
            break
        time.sleep(0.1)
    return rows


def main():
    global EXAMPLES
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", default="", help="folder of TileLang's examples")
    parser.add_argument("--json", help="file for the results")
    parser.add_argument("--only", action="append", help="cases that contain this text")
    parser.add_argument("--side", type=int, default=6, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=400, help="start no case after this time")
    parser.add_argument("--case", action="append", help="exactly this case, in this process")
    parser.add_argument("--random", type=int, default=0, help="so many random products instead of the list")
    parser.add_argument("--seed", type=int, default=1, help="of the random products")
    options = parser.parse_args()
    EXAMPLES = options.examples
    if options.case:
        for case in options.case:
            kind, *arguments = case.split()
            for row in globals()[kind](*arguments):
                print(json.dumps(row), flush=True)
        return 0
    cases = random_gemms(options.random, options.seed) if options.random else CASES
    cases = [c for c in cases if not options.only or any(text in c for text in options.only)]
    rows = run_all(cases, options.side, options.seconds)
    ratios, mean = against_tilelang(rows)
    if ratios:
        below = sorted((ratio, case) for case, ratio in ratios.items() if ratio < 0.98)
        print(f"{len(ratios)} beside TileLang: {mean:.3f} in geometric mean, {len(below)} below 0.98")
        for ratio, case in below:
            print(f"  {ratio:.3f} {case}")
    if options.json:
        import torch

        machine = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__, "cuda": torch.version.cuda}
        with open(options.json, "w") as out:
            drawn = f"--random {options.random} --seed {options.seed} " if options.random else ""
            command = f"python bench/gpu/peers.py {drawn}" + " ".join(f"--only '{text}'" for text in options.only or [])
            result = {"date": str(datetime.date.today()), "command": command.strip(), "machine": machine, "rows": rows}
            json.dump(result, out, indent=1)
    return 1 if any("failed" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
