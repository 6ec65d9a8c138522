"""Products and attention on the CPU engine beside PyTorch (oneDNN, MKL) and NumPy (OpenBLAS), in turns in one process.

    PYTHONPATH=build/release/python python bench/cpu_peers.py [--only TEXT] [--turns 15] [--json FILE]

Functions of `tilewright.ops`, and plain programs of several tiles. A turn is a call of each contestant that wakes its threads and
one that counts, then a rest; each turn begins with another one, for threads of OpenBLAS go on for a while. Results are compared
with the peer's. Above 1: we are faster.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import sys
import time

import numpy as np
import tilewright as tw
import tilewright.language as T
import torch

SIZES = (512, 1024, 2048)
TILES = {"bfloat16": ((128, 128, 32), (128, 128, 64), (128, 256, 64), (64, 64, 64), (256, 256, 64)), "int8": ((128, 128, 64), (128, 256, 128)),
         "float32": ((128, 128, 32), (128, 128, 64), (64, 64, 32), (256, 256, 64))}  # fmt: skip
DYNAMIC = (128, 128, 64)
ATTENTIONS = ((1, 8, 1024, 64), (1, 4, 2048, 128))
ATTENTION_TILES = ((128, 128), (64, 64), (128, 64))
SUMS = {"bfloat16": "float32", "float32": "float32", "int8": "int32"}
RESULTS = {"bfloat16": "bfloat16", "float32": "float32", "int8": "int32"}


def product(M, N, K, tile, dtype, transpose_b):
    block_M, block_N, block_K = tile
    B_shape, B_tile = ((N, K), (block_N, block_K)) if transpose_b else ((K, N), (block_K, block_N))

    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor(B_shape, dtype), C: T.Tensor((M, N), RESULTS[dtype])):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared(B_tile, dtype)
            C_local = T.alloc_fragment((block_M, block_N), SUMS[dtype])
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                if transpose_b:
                    T.copy(B[bx * block_N, ko * block_K], B_shared)
                else:
                    T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=transpose_b)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


def attention(batch, heads, length, dim, tile, causal):
    block_M, block_N = tile
    scale = 1.4426950408889634 / dim**0.5
    shape = (batch, heads, length, dim)

    @T.prim_func
    def flash(Q: T.Tensor(shape, "bfloat16"), K: T.Tensor(shape, "bfloat16"), V: T.Tensor(shape, "bfloat16"), O: T.Tensor(shape, "bfloat16")):
        with T.Kernel(T.ceildiv(length, block_M), heads, batch, threads=128) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), "bfloat16")
            K_shared = T.alloc_shared((block_N, dim), "bfloat16")
            V_shared = T.alloc_shared((block_N, dim), "bfloat16")
            acc_s = T.alloc_fragment((block_M, block_N), "float32")
            acc_s_cast = T.alloc_fragment((block_M, block_N), "bfloat16")
            acc_o = T.alloc_fragment((block_M, dim), "float32")
            scores_max = T.alloc_fragment((block_M,), "float32")
            scores_max_prev = T.alloc_fragment((block_M,), "float32")
            scores_scale = T.alloc_fragment((block_M,), "float32")
            scores_sum = T.alloc_fragment((block_M,), "float32")
            logsum = T.alloc_fragment((block_M,), "float32")
            T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity("float32"))
            turns = T.ceildiv((bx + 1) * block_M, block_N) if causal else T.ceildiv(length, block_N)
            for k in T.Pipelined(turns, num_stages=1):
                T.copy(K[bz, by, k * block_N : (k + 1) * block_N, :], K_shared)
                if causal:
                    for i, j in T.Parallel(block_M, block_N):
                        acc_s[i, j] = T.if_then_else(bx * block_M + i >= k * block_N + j, 0, -T.infinity("float32"))
                else:
                    T.clear(acc_s)
                T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(scores_max, scores_max_prev)
                T.fill(scores_max, -T.infinity("float32"))
                T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    scores_max[i] = T.max(scores_max[i], scores_max_prev[i])
                for i in T.Parallel(block_M):
                    scores_scale[i] = T.exp2(scores_max_prev[i] * scale - scores_max[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
                T.reduce_sum(acc_s, scores_sum, dim=1)
                for i in T.Parallel(block_M):
                    logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]
                T.copy(acc_s, acc_s_cast)
                for i, j in T.Parallel(block_M, dim):
                    acc_o[i, j] *= scores_scale[i]
                T.copy(V[bz, by, k * block_N : (k + 1) * block_N, :], V_shared)
                T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] /= logsum[i]
            T.copy(acc_o, O[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return flash


def random(shape, dtype):
    if dtype == "int8":
        return torch.randint(-128, 128, shape, dtype=torch.int8)
    return torch.randn(shape).to(getattr(torch, dtype))


def cases():
    """(name, operations, the contestants' calls by name, ours first; the largest error that results may have)."""
    for dtype in ("bfloat16", "int8", "float32"):
        for n in SIZES:
            for transpose_b in (False, True):
                form = f"{dtype} {'NT' if transpose_b else 'NN'} {n}"
                yield form, lambda *given: products(*given), (dtype, n, transpose_b)
    for shape in ATTENTIONS:
        for causal in (False, True):
            form = f"attention {'x'.join(map(str, shape))}{' causal' if causal else ''}"
            yield form, lambda *given: attentions(*given), (shape, causal)


def products(dtype, n, transpose_b):
    a, b = random((n, n), dtype), random((n, n), dtype)
    right = b.T if transpose_b else b
    peers = {}
    if dtype == "int8":
        peers["torch"] = lambda: torch._int_mm(a, right)
    else:
        made = torch.empty(n, n, dtype=a.dtype)
        peers["torch"] = lambda: torch.matmul(a, right, out=made)
    if dtype == "float32":
        x, y, z = a.numpy(), right.numpy(), np.empty((n, n), np.float32)
        peers["numpy"] = lambda: torch.from_numpy(np.matmul(x, y, out=z))
    ours = {"ops.matmul": lambda: tw.ops.matmul(a, b, transpose_b=transpose_b)}

    def plain(name, program):
        kernel, c = tw.compile(program, engine="cpu"), torch.empty(n, n, dtype=getattr(torch, RESULTS[dtype]))
        ours[name] = lambda: (kernel(a, b, c), c)[1]

    for tile in TILES[dtype]:
        plain("x".join(map(str, tile)), product(n, n, n, tile, dtype, transpose_b))
    dynamic = [T.dynamic(x) for x in "mnk"]
    plain("dynamic " + "x".join(map(str, DYNAMIC)), product(*dynamic, DYNAMIC, dtype, transpose_b))
    return 2.0 * n**3, ours, peers, {"int8": 0, "float32": 1e-3, "bfloat16": 0.03 * n**0.5}[dtype]


def attentions(shape, causal):
    q, k, v = (random(shape, "bfloat16") for _ in range(3))
    rows = [t.transpose(1, 2).contiguous() for t in (q, k, v)]
    peers = {"torch": lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)}
    ours = {"ops.attention": lambda: tw.ops.attention(*rows, causal=causal).transpose(1, 2)}
    for tile in ATTENTION_TILES:

        def call(kernel=tw.compile(attention(*shape, tile, causal), engine="cpu"), o=torch.empty_like(q)):
            kernel(q, k, v, o)
            return o

        ours["x".join(map(str, tile))] = call
    batch, heads, length, dim = shape
    return 4.0 * batch * heads * length * length * dim / (2 if causal else 1), ours, peers, 0.03


def seconds_of(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="cases whose name this regular expression is found in")
    parser.add_argument("--programs", default="", help="contestants of ours, likewise")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--rest", type=float, default=0.1, help="seconds after each contestant: threads of OpenBLAS go on for tens of milliseconds")
    parser.add_argument("--json", metavar="FILE", help="writes the figures too")
    chosen = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)
    rows = []
    print(f"{'case':34}{'ours':20}{'peer':8}{'GFLOP/s':>9}{'peer':>9}{'best':>7}{'median':>8}")
    for name, make, given in cases():
        if not re.search(chosen.only, name):
            continue
        flops, ours, peers, most = make(*given)
        ours = {n: call for n, call in ours.items() if re.search(chosen.programs, n)}
        calls = {**ours, **peers}
        expected = peers["torch"]().double()
        worst = {n: (call().double() - expected).abs().max().item() for n, call in calls.items()}
        times = {n: [] for n in calls}
        order = list(calls.items())
        for _ in range(chosen.turns):
            order = order[1:] + order[:1]
            for n, call in order:
                call()
                times[n].append(seconds_of(call))
                time.sleep(chosen.rest)
        for n in ours:
            for peer in peers:
                best, of_peer = min(times[n]), min(times[peer])
                row = {"case": name, "ours": n, "peer": peer, "flops": flops, "best_seconds": best, "peer_best_seconds": of_peer,
                       "median_seconds": statistics.median(times[n]), "peer_median_seconds": statistics.median(times[peer]),
                       "ratio_best": of_peer / best, "error": worst[n]}  # fmt: skip
                row["ratio"] = row["peer_median_seconds"] / row["median_seconds"]
                if not worst[n] <= most:
                    row["bad"] = f"differs from the peer by {worst[n]}"
                rows.append(row)
                print(f"{name:34}{n:20}{peer:8}{flops / best * 1e-9:9.0f}{flops / of_peer * 1e-9:9.0f}{row['ratio_best']:7.2f}{row['ratio']:8.2f}"
                      f"  {row.get('bad', '')}", flush=True)  # fmt: skip
    if chosen.json:
        machine = next((line.partition(":")[2].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "")
        found = {"date": datetime.date.today().isoformat(), "machine": machine, "threads": torch.get_num_threads(), "load": os.getloadavg(),
                 "torch": torch.__version__, "numpy": np.__version__, "turns": chosen.turns, "rows": rows}  # fmt: skip
        pathlib.Path(chosen.json).write_text(json.dumps(found, indent=1) + "\n")
    return any("bad" in row for row in rows)


if __name__ == "__main__":
    sys.exit(main())
