"""Which tiles of a product a block takes, measured: one, one after the other, parts of a loop's turns by clusters, runs of turns
(stream-K), each by a line of its plan, beside cuBLAS and tilewright.ops, in turns in one process.

    python bench/gpu/works.py [--only TEXT]... [--json FILE] [--seconds N]
    python bench/gpu/works.py --check      without a GPU: compiles all for sm_90a, and says what is refused

Needs a GPU, torch and Tilewright. Times are taken as in docs/measuring.md; results are compared with cuBLAS's, and a second call of
stream-K with the first, bit for bit. C = A * B^T in bfloat16."""

import argparse
import concurrent.futures
import datetime
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

SHAPES = [  # M, N, K
    (1, 8192, 8192), (16, 14336, 4096), (16, 4096, 7168), (16, 5120, 27648), (64, 7168, 16384), (64, 4096, 7168), (64, 2112, 7168),
    (128, 2112, 7168), (128, 4096, 7168), (128, 7168, 16384), (128, 8192, 28672), (256, 4096, 14336), (256, 2112, 7168),
    (512, 4096, 7168), (640, 384, 5760), (1024, 2112, 7168), (1024, 10240, 8192), (1536, 1536, 8192), (2048, 2048, 2048),
    (3072, 1024, 1024), (3072, 3072, 3072), (4096, 576, 7168), (4096, 4096, 4096), (4096, 7168, 2048), (6144, 2560, 8192),
]  # fmt: skip
MULTIPROCESSORS = 132
WORKS = ["one_tile", "persistent", "split k=2", "stream_k"]
_FEW, _MANY = [(64, 64, 128, 4, 128), (64, 128, 128, 4, 128)], [(128, 128, 64, 4, 256), (128, 256, 64, 4, 256)]


def tiles_of(M):
    return _FEW if M <= 64 else [_FEW[1], _MANY[0]] if M <= 128 else _MANY


def product(M, N, K, block_M, block_N, block_K, stages, threads):
    import tilewright.language as T

    @T.prim_func
    def product(A: T.Tensor[[M, K], T.bfloat16], B: T.Tensor[[N, K], T.bfloat16], C: T.Tensor[[M, N], T.bfloat16]):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "bfloat16")
            B_shared = T.alloc_shared((block_N, block_K), "bfloat16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return product


def compiled(shape, tile, work, target):
    """The kernel, or why there is none."""
    import tilewright as tw

    try:
        return tw.compile(product(*shape, *tile), out_idx=[-1], plan=f"work {work}", target=target)
    except tw.CompileError as error:
        return str(error).splitlines()[0]


def works_of(shape, tile):
    """One wave of tiles has no block that takes a second one."""
    tiles = -(-shape[0] // tile[0]) * -(-shape[1] // tile[1])
    return [work for work in WORKS if work != "persistent" or tiles > MULTIPROCESSORS]


def contestants(shapes):
    return [(shape, tile, work) for shape in shapes for tile in tiles_of(shape[0]) for work in works_of(shape, tile)]


def name_of(tile, work):
    return "{}x{}x{}:{}:{} ".format(*tile) + work


def compile_all(shapes, target):
    wanted = contestants(shapes)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(wanted, pool.map(lambda w: compiled(*w, target), wanted)))


def race_of(shape, kernels):
    import torch
    from peers import Race
    import tilewright.ops as ops

    M, N, K = shape
    a, b = (torch.randn(rows, K, device="cuda", dtype=torch.bfloat16) for rows in (M, N))
    race = Race("x".join(map(str, shape)), flops=2 * M * N * K, moved=2 * (M * N + M * K + N * K))
    want = race.add("cublas", lambda: (lambda: a @ b.T, a @ b.T))
    race.error("tilewright.ops", race.add("tilewright.ops", lambda: (lambda: ops.matmul(a, b.T), ops.matmul(a, b.T))), want)
    for tile in tiles_of(M):
        for work in works_of(shape, tile):
            kernel, name = kernels[shape, tile, work], name_of(tile, work)
            if isinstance(kernel, str):
                race.notes[name] = {"failed": kernel}
                continue
            got = race.add(name, lambda kernel=kernel: (lambda: kernel(a, b), kernel(a, b)))
            race.error(name, got, want)
            if got is not None and work == "stream_k" and not all(torch.equal(kernel(a, b), got) for _ in range(3)):
                race.notes[name]["failed"] = "calls differ from each other"
    return race


def measure(options, shapes):
    import torch

    start = time.time()
    kernels = compile_all(shapes, "cuda")
    print(f"{len(kernels)} kernels compiled in {time.time() - start:.1f} s", flush=True)
    found = {"date": datetime.date.today().isoformat(), "device": torch.cuda.get_device_name(), "rows": []}
    for shape in shapes:
        if time.time() - start > options.seconds:
            print(f"stopped behind {options.seconds} s")
            break
        rows = race_of(shape, kernels).run(turns=options.turns)
        found["rows"] += rows
        print(rows[0]["case"], " | ".join(f"{r['name']} {r['burst']['us'] if 'burst' in r else r.get('failed')}" for r in rows), flush=True)
        torch.cuda.empty_cache()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)


def check(shapes):
    """What has no kernel for sm_90a, without a GPU."""
    for wanted, kernel in compile_all(shapes, "simulator -arch=sm_90a").items():
        print(*wanted, kernel if isinstance(kernel, str) else "compiled")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--json")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    taken = [s for s in SHAPES if not given.only or any(t in "x".join(map(str, s)) for t in given.only)]
    check(taken) if given.check else measure(given, taken)
