"""Shared tiles that one loop fills, and then another, or the same turn once more: each loop has its ring."""
import numpy as np
import pytest

import tilewright as tw
import tilewright.language as T

M, N, K, TILE = 128, 64, 192, 64


def two_loops(a, b, a2, b2):
    """The tiles of the second loop by other names, which may be the first's."""

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), B2: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(M // TILE, threads=128) as bx:
            tiles = [T.alloc_shared((TILE, TILE), "float16") for _ in range(4)]
            c = T.alloc_fragment((TILE, N), "float32")
            T.clear(c)
            for k in T.Pipelined(K // TILE, num_stages=2):
                T.copy(A[bx * TILE, k * TILE], tiles[a])
                T.copy(B[k * TILE, 0], tiles[b])
                T.gemm(tiles[a], tiles[b], c)
            for i, j in T.Parallel(TILE, N):
                c[i, j] = c[i, j] * 2
            for k in T.Pipelined(K // TILE, num_stages=2):
                T.copy(A[bx * TILE, k * TILE], tiles[a2])
                T.copy(B2[k * TILE, 0], tiles[b2])
                T.gemm(tiles[a2], tiles[b2], c)
            T.copy(c, C[bx * TILE, 0])

    return main


def twice_in_a_turn(begin):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), B2: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(M // TILE, threads=128) as bx:
            a = T.alloc_shared((TILE, TILE), "float16")
            b = T.alloc_shared((TILE, N), "float16")
            c = T.alloc_fragment((TILE, N), "float32")
            if begin == 0:
                T.clear(c)
            else:  # the first turn by itself
                T.copy(A[bx * TILE, 0], a)
                for i, j in T.Parallel(TILE, N):
                    b[i, j] = B[i, j] * 2 + B2[i, j]
                T.gemm(a, b, c, clear_accum=True)
            for k in T.Pipelined(begin, K // TILE, num_stages=2):
                T.copy(A[bx * TILE, k * TILE], a)
                T.copy(B[k * TILE, 0], b)
                T.gemm(a, b, c)
                T.gemm(a, b, c)
                T.copy(B2[k * TILE, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C[bx * TILE, 0])

    return main


PROGRAMS = {"two loops": two_loops(0, 1, 0, 1), "tiles change places": two_loops(0, 1, 1, 0), "twice in a turn": twice_in_a_turn(0),
            "first turn by itself": twice_in_a_turn(1)}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_loop_has_its_ring(name):
    program = PROGRAMS[name]
    random = np.random.default_rng(1)
    a, b, b2 = (random.integers(-3, 4, shape).astype("float16") for shape in ((M, K), (K, N), (K, N)))
    want = a.astype("float32") @ (2 * b + b2).astype("float32")
    for arch in ("sm_80", "sm_90a"):
        kernel = tw.compile(program, target="interpreter")
        c = np.zeros((M, N), "float32")
        kernel.simulate(a, b, b2, c, arch=arch)
        assert np.array_equal(c, want), arch
        of_loops = [o for o in kernel.explain(arch, as_json=True)["launches"][0]["operations"] if o["operation"] == "copy" and "k * 64" in o["text"]]
        assert len(of_loops) > 2
        for copy in of_loops:
            assert any("into a ring" in what for what in copy["becomes"]), (arch, copy)
