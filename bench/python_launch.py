"""What a call from Python costs: C = A + B on 64 elements, so that the host's work is all there is.

    PYTHONPATH=build/release/python python bench/python_launch.py [--engine cuda|cpu] [--rounds 60] [--json FILE]

The rows take turns, a short batch each, and a table gives each one's fastest batch and its median, beside torch.add's.
On a GPU only the host's side is measured: a batch is shorter than the queue of launches, which is emptied in between.
"""
import argparse
import json
import platform
import shutil
import statistics
import sys
import tempfile
import time

import numpy as np
import tilewright as tw
import tilewright.language as T

COUNT = 64
BATCH = 300  # a stream holds about a thousand launches


@T.prim_func
def add(A: T.Tensor((COUNT,), "float32"), B: T.Tensor((COUNT,), "float32"), C: T.Tensor((COUNT,), "float32")):
    with T.Kernel(1, threads=COUNT):
        for i in T.Parallel(COUNT):
            C[i] = A[i] + B[i]


@tw.jit
def eager_add(A, B):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B: T.Tensor((N,), "float32")
    C = T.empty((N,), "float32")
    with T.Kernel(1, threads=COUNT):
        for i in T.Parallel(COUNT):
            C[i] = A[i] + B[i]
    return C


def rows_of_numpy(kernel, returning):
    a, b, c = (np.ones(COUNT, "float32") for _ in range(3))
    return {
        "tilewright, three arrays of NumPy": lambda: kernel(a, b, c),
        "tilewright, NumPy's, output returned": lambda: returning(a, b),
        "numpy.add, out=": lambda: np.add(a, b, out=c),
    }


def rows_of_torch(torch, kernel, returning, device):
    a, b, c = (torch.ones(COUNT, device=device) for _ in range(3))
    rows = {
        "tilewright, three tensors": lambda: kernel(a, b, c),
        "tilewright, output returned": lambda: returning(a, b),
        "tilewright, eager function": lambda: eager_add(a, b),
        "torch.add, out=": lambda: torch.add(a, b, out=c),
        "torch.add": lambda: torch.add(a, b),
    }
    rows.update(rows_of_tvm_ffi(kernel, a, b, c))
    rows.update(rows_of_triton(torch, a, b, c))
    return rows


def rows_of_tvm_ffi(kernel, a, b, c):
    """The same kernel, exported, called through that binding."""
    try:
        import tvm_ffi
    except ImportError:
        return {}
    folder = tempfile.mkdtemp()
    try:
        kernel.export_library(f"{folder}/add.so")
        function = tvm_ffi.load_module(f"{folder}/add.so").add
    finally:
        shutil.rmtree(folder)
    return {"tvm_ffi, the kernel exported": lambda: function(a, b, c)}


def rows_of_triton(torch, a, b, c):
    if not a.is_cuda:
        return {}
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return {}

    @triton.jit
    def kernel(A, B, C, N: tl.constexpr):
        at = tl.arange(0, N)
        tl.store(C + at, tl.load(A + at) + tl.load(B + at))

    return {"triton": lambda: kernel[(1,)](a, b, c, N=COUNT)}


def measure(rows, rounds, synchronize):
    times = {name: [] for name in rows}
    for name, call in rows.items():
        call()
    synchronize()
    for _ in range(rounds):
        for name, call in rows.items():
            begin = time.perf_counter()
            for _ in range(BATCH):
                call()
            times[name].append((time.perf_counter() - begin) / BATCH * 1e6)
            synchronize()
    return {name: {"least_us": min(t), "median_us": statistics.median(t)} for name, t in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", choices=("cuda", "cpu"), default="cuda" if tw._native.device_count() else "cpu")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", metavar="FILE", help="writes the figures too")
    chosen = parser.parse_args()
    eager_add.engine = chosen.engine
    kernel, returning = tw.compile(add, engine=chosen.engine), tw.compile(add, out_idx=-1, engine=chosen.engine)
    rows, synchronize, versions = {}, lambda: None, {"python": platform.python_version(), "numpy": np.__version__}
    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None:
        rows = rows_of_torch(torch, kernel, returning, "cuda" if chosen.engine == "cuda" else "cpu")
        versions["torch"] = torch.__version__
        if chosen.engine == "cuda":
            synchronize, versions["device"] = torch.cuda.synchronize, torch.cuda.get_device_name()
    if chosen.engine == "cpu":
        rows.update(rows_of_numpy(kernel, returning))
    found = measure(rows, chosen.rounds, synchronize)
    peer = found.get("torch.add", found.get("numpy.add, out="))["median_us"]
    print(f"{'one call, host time':40}{'least us':>10}{'median us':>11}{'of torch.add' if torch else 'of numpy.add':>14}")
    for name, row in found.items():
        print(f"{name:40}{row['least_us']:10.2f}{row['median_us']:11.2f}{row['median_us'] / peer:13.2f}x")
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump({"engine": chosen.engine, "versions": versions, "rows": found}, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
