"""Rows of test_document_rows.py: what each is called, what checks it, and the programs that they share."""
import pathlib

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
