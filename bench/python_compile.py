"""How long users wait: for `import tilewright`, and from a GEMM's Python to its kernel, beyond the device's or the host's
compiler.

    PYTHONPATH=build/release/python python bench/python_compile.py [--engine cuda|cpu] [--json FILE]

Fresh processes compile a few shapes, first with an empty kernel cache, then again with what the first has left there: the
second time is all but the compiler's.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

SHAPES = [(128, 128, 32, 3), (128, 256, 64, 4), (64, 64, 32, 2), (128, 128, 64, 2)]


def child(engine):
    begin = time.perf_counter()
    import tilewright as tw
    import tilewright.language as T

    imported = time.perf_counter() - begin

    @tw.jit(out_idx=-1, engine=engine)
    def matmul(M, N, K, block_M, block_N, block_K, stages):
        @T.prim_func
        def gemm(A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((K, N), "bfloat16"), C: T.Tensor((M, N), "bfloat16")):
            with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
                a = T.alloc_shared((block_M, block_K), "bfloat16")
                b = T.alloc_shared((block_K, block_N), "bfloat16")
                c = T.alloc_fragment((block_M, block_N), "float32")
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                    T.copy(A[by * block_M, k * block_K], a)
                    T.copy(B[k * block_K, bx * block_N], b)
                    T.gemm(a, b, c)
                T.copy(c, C[by * block_M, bx * block_N])

        return gemm

    if engine == "cuda":
        import torch

        torch.zeros(1, device="cuda")  # the context is not the kernel's
    times, traces = [], []
    for m, n, k, stages in SHAPES:
        begin = time.perf_counter()
        program = matmul.func(1024, 1024, 1024, m, n, k, stages)
        traces.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        tw.compile(program, out_idx=-1, engine=engine)
        times.append(time.perf_counter() - begin)
    return {"import_ms": imported * 1e3, "trace_ms": [t * 1e3 for t in traces], "compile_ms": [t * 1e3 for t in times]}


def run(engine, cache):
    environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": cache}
    out = subprocess.run([sys.executable, __file__, "--child", engine], env=environment, check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", choices=("cuda", "cpu"))
    parser.add_argument("--json", metavar="FILE", help="writes the figures too")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps(child(chosen.child)))
        return
    if chosen.engine is None:
        import tilewright as tw

        chosen.engine = "cuda" if tw._native.device_count() else "cpu"
    with tempfile.TemporaryDirectory() as cache:
        cold = run(chosen.engine, cache)
        warm = [run(chosen.engine, cache) for _ in range(5)]
    first = [t + c for w in warm for t, c in zip(w["trace_ms"][:1], w["compile_ms"][:1])]
    later = [t + c for w in warm for t, c in zip(w["trace_ms"][1:], w["compile_ms"][1:])]
    found = {
        "import tilewright": min(w["import_ms"] for w in warm),
        "a process's first GEMM, trace and compile beyond the compiler": statistics.median(first),
        "later GEMMs, trace and compile beyond the compiler": statistics.median(later),
        "of that, the trace": statistics.median(t for w in warm for t in w["trace_ms"][1:]),
        "later GEMMs with the compiler": statistics.median(t + c for t, c in zip(cold["trace_ms"][1:], cold["compile_ms"][1:])),
    }
    for name, milliseconds in found.items():
        print(f"{name:65}{milliseconds:9.1f} ms")
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump({"engine": chosen.engine, "milliseconds": found}, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
