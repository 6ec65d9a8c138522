"""Kernels that wait for those before them and let those after them begin: T.pdl_sync() and T.pdl_trigger()."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

try:
    import torch

    GPU = torch.cuda.is_available()
except ImportError:
    GPU = False

N = 300


@T.prim_func
def produced_and_consumed(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
        T.pdl_trigger()
        for i in T.Parallel(64):
            x = T.alloc_var("float32", init=A[bx * 64 + i])
            for _ in T.serial(500):
                x = x * 1.5
                x = x / 1.5
            B[bx * 64 + i] = x + 1
    with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
        T.pdl_sync()
        for i in T.Parallel(64):
            C[bx * 64 + i] = B[bx * 64 + i] * 2


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
def test_engines(engine):
    a, b, c = np.arange(N, dtype="float32"), np.zeros(N, "float32"), np.zeros(N, "float32")
    tw.compile(produced_and_consumed, engine=engine)(a, b, c)
    np.testing.assert_allclose(c, 2 * (a + 1), rtol=1e-4)


# Weights come before the wait, and the rest is pipelined behind it.
@T.prim_func
def scaled_rows(
    scale: T.Tensor((4, 4), "float32"), X: T.Tensor((64, 4, 256), "bfloat16"), Y: T.Tensor((64, 4, 256), "bfloat16")
):
    with T.Kernel(64, threads=128) as row:
        x_shared = T.alloc_shared((4, 64), "bfloat16")
        x = T.alloc_fragment((4, 64), "float32")
        y = T.alloc_fragment((4, 64), "float32")
        weights = T.alloc_fragment((4, 4), "float32")
        T.copy(scale, weights)
        T.pdl_sync()
        for k in T.Pipelined(4, num_stages=2):
            T.copy(X[row, 0, k * 64], x_shared)
            T.copy(x_shared, x)
            for i, j in T.Parallel(4, 64):
                y[i, j] = 0
                for s in T.serial(4):
                    y[i, j] += weights[i, s] * x[s, j]
            T.copy(y, Y[row, 0, k * 64])
        T.pdl_trigger()


def cuda_text(program, arch="sm_90a"):
    from tilewright import _native

    return _native.Kernel(program.program, "cuda", arch, []).source


def test_the_wait_stands_where_it_is_written():
    kernel = cuda_text(scaled_rows).split("__global__")[-1]
    before, behind = kernel.split("cudaGridDependencySynchronize();")
    assert "scale" in before.split("{", 1)[1] and "X" not in before.split("{", 1)[1]
    assert "X" in behind and "cudaTriggerProgrammaticLaunchCompletion();" in behind


def test_older_gpus_run_one_after_the_other():
    text = cuda_text(produced_and_consumed, "sm_80")
    assert "cudaGridDependency" not in text and "cudaTrigger" not in text
    assert "griddepcontrol" in cuda_text(produced_and_consumed)


def test_mistakes():
    def program(early):
        @T.prim_func
        def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                for i in T.Parallel(64):
                    B[i] = A[i]
            with T.Kernel(1, threads=64):
                x = T.alloc_fragment((64,), "float32")
                if early:
                    T.copy(B, x)
                    T.pdl_sync()
                else:
                    for k in T.serial(2):
                        T.pdl_sync()
                    T.copy(B, x)
                T.copy(x, A)

        return main

    with pytest.raises(tw.CompileError, match="'B' is read before the wait for the launches before, of which .* may still run") as e:
        tw.compile(program(True), engine="interpreter")
    assert e.value.code == "TW3096" and "pdl_sync" in str(e.value)
    with pytest.raises(tw.CompileError, match="TW3095.*stands under for"):
        tw.compile(program(False), engine="cpu")


@pytest.mark.skipif(not GPU, reason="needs a CUDA device")
def test_on_a_device_and_in_a_graph():
    kernel = tw.compile(produced_and_consumed, engine="cuda")
    a, b, c = (torch.zeros(N, device="cuda") for _ in range(3))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        kernel(a, b, c)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(a, b, c)
        kernel(a, b, c)
    for _ in range(10):
        a.normal_()
        b.zero_()
        graph.replay()
        torch.testing.assert_close(c, 2 * (a + 1), rtol=1e-4, atol=1e-4)
        a.normal_()
        kernel(a, b, c)
        torch.testing.assert_close(c, 2 * (a + 1), rtol=1e-4, atol=1e-4)
