"""The GEMM of gemm.cpp in Python: the same program, called with arrays of NumPy. The second part of `make demo`.

    python examples/gemm.py [--size 1024] [--original PROGRAM] [--picture FILE.svg]

PROGRAM prints the programs that the C++ examples record (tests/python/print_examples.cpp). The picture is of the result's tile on
an H200: which thread has which element.
"""
# pyright: strict
import argparse
import subprocess
import sys
import time
from typing import Any

import numpy as np
import tilewright as tw
import tilewright.language as T


# tilewright: M=1024, N=1024, K=1024, block_M=128, block_N=128, block_K=32, dtype=float16
def matmul_relu(M: Any, N: Any, K: Any, block_M: int, block_N: int, block_K: int, dtype: str):
    @T.prim_func
    def matmul_relu(A: T.Tensor[[M, K], dtype], B: T.Tensor[[K, N], dtype], C: T.Tensor[[M, N], dtype]):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), T.float32)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j], 0)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return matmul_relu


def is_the_original(printer: str):
    """Whether C++ records the same, line for line: for shapes that are known at the call, in float16."""
    M, N, K = T.dynamic("M, N, K")
    mine = matmul_relu(M, N, K, 32, 64, 16, "float16").script().strip()
    texts = subprocess.run([printer], capture_output=True, text=True, check=True).stdout.split("### ")
    return mine, any(text.startswith("gemm_relu ") and text.partition("\n")[2].strip() == mine for text in texts)


def run(size: int):
    """(seconds of a call, the largest error as a share of what is allowed there, what is allowed there): the bound of gemm.cpp."""
    kernel = tw.compile(matmul_relu(size, size, size, 128, 128, 32, "float16"), out_idx=-1, engine="cpu")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), dtype="float32").astype("float16") for _ in range(2))
    times: list[float] = []
    c = kernel(a, b)
    for _ in range(5):
        begin = time.perf_counter()
        c = kernel(a, b)
        times.append(time.perf_counter() - begin)
    wide = [x.astype("float32") for x in (a, b)]
    wanted = np.maximum(wide[0] @ wide[1], 0)
    summed = 2 * size * 2.0**-24 * (np.abs(wide[0]) @ np.abs(wide[1]))  # NumPy's own sums err as much
    error, bound = np.abs(c - wanted), summed + 2.0**-11 * (wanted + summed)
    worst = int((error / bound).argmax())
    return min(times), float(error.flat[worst]), float(bound.flat[worst])


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--original")
    parser.add_argument("--picture")
    chosen = parser.parse_args()
    print("\nThe same GEMM from Python (examples/gemm.py)")
    right = True
    if chosen.original:
        text, right = is_the_original(chosen.original)
        print(f"{text}\n{'' if right else 'not '}the program that examples/gemm.cpp records")
    seconds, error, bound = run(chosen.size)
    print(f"called with NumPy's arrays on the cpu engine: {chosen.size} x {chosen.size} x {chosen.size} float16, "
          f"{seconds * 1e3:.2f} ms, {2 * chosen.size**3 / seconds / 1e9:.0f} GFLOP/s, error {error:.2g} where {bound:.2g} is allowed")  # fmt: skip
    if chosen.picture:
        sizes = (chosen.size, chosen.size, chosen.size, 128, 128, 32)
        kernel = tw.compile(matmul_relu(*sizes, "float16"), engine="interpreter")
        tw.plot(kernel, "C_local", arch="sm_90a", first=(16, 16)).save(chosen.picture)
        print(f"a picture of its tile C_local in the registers of an H200: {chosen.picture}")
    return 0 if right and error <= bound else 1


if __name__ == "__main__":
    sys.exit(main())
