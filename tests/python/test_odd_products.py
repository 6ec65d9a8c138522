"""Products whose steps, depths, widths or orders no matrix instruction takes as they stand, and tiles that loops change where they arrive."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

WGMMA, MMA = "wgmma.mma_async", "mma.sync"


def _check(program, arch, seed=0, exact=True):
    """What explain says on the architecture, where the simulator makes of small integers what the interpreter does."""
    rng = np.random.default_rng(seed)
    want = [rng.integers(-2, 3, p.shape).astype(str(p.dtype)) for p in program.params]
    got = [a.copy() for a in want]
    tw.compile(program, engine="interpreter")(*want)
    kernel = tw.compile(program, engine="cpu")
    kernel.simulate(*got, arch=arch)
    for a, b in zip(want, got, strict=True):
        assert (a == b).all() if exact else np.allclose(a, b, rtol=2e-3, atol=2e-3)
    return str(kernel.explain(arch))


def _steps(step, depth, turns, transposed):
    @T.prim_func
    def main(A: T.Tensor((64, depth), "float16"), B: T.Tensor((64, depth) if transposed else (depth, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            As, Bs = T.alloc_shared((64, step), "float16"), T.alloc_shared((64, step) if transposed else (step, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(turns, num_stages=2):
                T.copy(A[0, k * step], As)
                if transposed:
                    T.copy(B[0, k * step], Bs)
                else:
                    T.copy(B[k * step, 0], Bs)
                T.gemm(As, Bs, c, transpose_B=transposed)
            T.copy(c, C)

    return main


@pytest.mark.parametrize("transposed", (True, False))
@pytest.mark.parametrize("step", (24, 40, 72))
@pytest.mark.parametrize("arch, instruction", (("sm_90a", WGMMA), ("sm_80", MMA + " m16n8k16")))
def test_steps_that_no_instruction_multiplies_are_cut_anew(step, transposed, arch, instruction):
    assert instruction in _check(_steps(step, 200, -(-200 // step), transposed), arch)


# What lies behind such steps is not zero, and their number is odd: an instruction of half the depth takes them.
@pytest.mark.parametrize("transposed", (True, False))
@pytest.mark.parametrize("arch", ("sm_90a", "sm_80"))
def test_steps_of_half_an_instruction_have_their_own(transposed, arch):
    assert "mma.sync m16n8k8" in _check(_steps(24, 256, 5, transposed), arch)


def _depth(dtype, depth, order):
    result = "int32" if dtype == "int8" else "float32"

    @T.prim_func
    def main(A: T.Tensor((128, 64) if order[0] == "t" else (64, 128), dtype), B: T.Tensor((64, 128) if order[1] == "t" else (128, 64), dtype), C: T.Tensor((64, 64), result)):
        with T.Kernel(1, threads=128):
            As = T.alloc_shared((depth, 64) if order[0] == "t" else (64, depth), dtype)
            Bs = T.alloc_shared((64, depth) if order[1] == "t" else (depth, 64), dtype)
            c = T.alloc_fragment((64, 64), result)
            T.copy(A[0, 0], As)
            T.copy(B[0, 0], Bs)
            T.clear(c)
            T.gemm(As, Bs, c, transpose_A=order[0] == "t", transpose_B=order[1] == "t")
            T.copy(c, C)

    return main


@pytest.mark.parametrize("dtype, depth, instruction", (("float16", 24, "m16n8k8"), ("float16", 8, "m16n8k8"), ("int8", 48, "m16n8k16.row.col.s32")))
@pytest.mark.parametrize("order", ("nn", "nt", "tn", "tt"))
def test_depths_of_half_an_instruction(dtype, depth, instruction, order):
    assert instruction in _check(_depth(dtype, depth, order), "sm_80")


# Words along k that ldmatrix cannot gather: bytes of the other order are copied to tiles that have it.
@pytest.mark.parametrize("arch, instruction", (("sm_90a", WGMMA), ("sm_80", MMA + " m16n8k32")))
@pytest.mark.parametrize("order", ("nn", "tn", "tt"))
def test_bytes_that_do_not_lie_along_k_are_turned(order, arch, instruction):
    text = _check(_depth("int8", 64, order), arch)
    assert instruction in text and "by single elements" not in text


def _attention(head):
    @T.prim_func
    def main(Q: T.Tensor((64, head), "float16"), K: T.Tensor((128, head), "float16"), V: T.Tensor((128, head), "float16"), O: T.Tensor((64, head), "float16")):
        with T.Kernel(1, threads=128):
            q, k, v = (T.alloc_shared((64, head), "float16") for _ in range(3))
            s, p = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float16")
            o = T.alloc_fragment((64, head), "float32")
            total, part = T.alloc_fragment((64,), "float32"), T.alloc_fragment((64,), "float32")
            T.copy(Q, q)
            T.clear(o)
            T.clear(total)
            for i in T.Pipelined(2, num_stages=2):
                T.copy(K[i * 64, 0], k)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                for x, y in T.Parallel(64, 64):
                    s[x, y] = T.exp2(s[x, y] * 0.125)
                T.reduce_sum(s, part, dim=1)
                for x in T.Parallel(64):
                    total[x] += part[x]
                T.copy(s, p)
                T.copy(V[i * 64, 0], v)
                T.gemm(p, v, o)
            for x, y in T.Parallel(64, head):
                o[x, y] /= total[x]
            T.copy(o, O)

    return main


@pytest.mark.parametrize("head", (40, 72))
@pytest.mark.parametrize("arch, instruction", (("sm_90a", WGMMA), ("sm_80", MMA + " m16n8k16")))
def test_heads_that_no_instruction_multiplies_have_zeros_behind_them(head, arch, instruction):
    assert _check(_attention(head), arch, exact=False).count(instruction) == 2


def _in_place(masked):
    @T.prim_func
    def main(A: T.Tensor((64, 256), "float16"), B: T.Tensor((64, 256), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            As, Bs = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 64], As)
                T.copy(B[0, k * 64], Bs)
                for i, j in T.Parallel(64, 64):
                    if masked:
                        if k * 64 + j > i:
                            As[i, j] = 0
                    else:
                        As[i, j] = T.max(As[i, j], 0)
                T.gemm(As, Bs, c, transpose_B=True)
            T.copy(c, C)

    return main


@pytest.mark.parametrize("masked", (False, True))
@pytest.mark.parametrize("arch, how", (("sm_90a", "TMA load into a ring"), ("sm_80", "cp.async into a ring")))
def test_tiles_that_are_changed_where_they_arrive_have_rings(masked, arch, how):
    assert _check(_in_place(masked), arch).count(how) == 2


# A row of several narrow panels, each with room for eight rows, was refused: 1.1 MB of shared memory.
@pytest.mark.parametrize("columns, dtype", ((24000, "float16"), (24000, "float32"), (30000, "float16")))
def test_rows_of_any_whole_pieces_are_brought_ahead(columns, dtype):
    @T.prim_func
    def main(X: T.Tensor((8192, columns), dtype), Y: T.Tensor((8192, columns), dtype)):
        with T.Kernel(8192, threads=1024) as bx:
            x = T.alloc_fragment((1, columns), "float32")
            largest, total = T.alloc_fragment((1,), "float32"), T.alloc_fragment((1,), "float32")
            T.copy(X[bx, 0], x)
            T.reduce_max(x, largest, dim=1)
            for i, j in T.Parallel(1, columns):
                x[i, j] = T.exp(x[i, j] - largest[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(1, columns):
                x[i, j] /= total[i]
            T.copy(x, Y[bx, 0])

    assert "brings the next meanwhile" in str(tw.compile(main, engine="cpu").explain("sm_90a"))
