"""Programs whose loops are to be unrolled around others: the host compiler is not asked for more than it can chew."""
import re

import numpy as np
import tilewright as tw
import tilewright.language as T


def products(turns):
    """Fragments that lanes exchange by shuffles, turn after turn, all of them unrolled."""

    @T.prim_func
    def main(A: T.Tensor((128, 16), "bfloat16"), C: T.Tensor((128, 16), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            own, there, sums = T.alloc_local((16,), "bfloat16"), T.alloc_local((8,), "bfloat16"), T.alloc_local((16,), "float32")
            for i in T.serial(16):
                own[i] = A[tx, i]
            T.clear(sums)
            for k in T.unroll(turns):
                for j in T.unroll(8):
                    there[j] = T.shfl_sync(own[j + k % 8], (tx + k) % 32)
                for i in T.unroll(2):
                    for j in T.unroll(8):
                        sums[i * 8 + j] += T.cast(there[j], "float32")
            for i in T.serial(16):
                C[tx, i] = sums[i]

    return main


def test_unrolled_loops_around_loops_of_threads_end_somewhere():
    few, many = (tw.compile(products(turns), engine="cpu") for turns in (4, 32))
    unrolled = lambda kernel: [int(n) for n in re.findall(r"#pragma GCC unroll (\d+)", kernel.get_kernel_source())]
    assert 4 in unrolled(few) and 8 in unrolled(few)
    assert 32 not in unrolled(many) and 8 in unrolled(many)
    a = np.random.default_rng(1).integers(-4, 5, (128, 16)).astype("float32")
    torch = __import__("pytest").importorskip("torch")
    out = np.zeros((128, 16), "float32")
    many(torch.from_numpy(a).bfloat16(), torch.from_numpy(out))
    lanes = a.reshape(4, 32, 16)
    wanted = sum(np.roll(lanes, -k, axis=1)[:, :, k % 8 : k % 8 + 8] for k in range(32)).reshape(128, 8)
    assert (out == np.tile(wanted, 2)).all()
