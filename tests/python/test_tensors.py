"""Outputs that a call makes."""
import os
import subprocess
import sys

import numpy as np
import pytest

import tilewright
import tilewright.language as T


def test_a_call_without_tensors_has_its_outputs_where_the_engine_runs(tmp_path):
    """On a GPU that is PyTorch's memory, whether or not the program has imported PyTorch."""
    (tmp_path / "torch.py").write_text("class Tensor: pass\nint32 = 'int32'\ndef empty(shape, dtype, device): return f'on {device}'\n")
    code = "import sys; from tilewright import tensors; assert 'torch' not in sys.modules; print(*(tensors.empty(None, (2,), 'int32', e) for e in ('cpu', 'cuda')))"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert ran.stdout.split("]")[-1].strip().endswith("on cuda"), ran.stderr
    assert ran.stdout.startswith("["), ran.stdout  # NumPy's


def test_a_view_of_the_other_sign_is_refused():
    """PyTorch puts the negation of z.conj().imag off; its memory holds z.imag."""
    torch = pytest.importorskip("torch")
    s = T.dynamic("s")

    @T.prim_func
    def doubled(A: T.StridedTensor((4,), (s,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = 2 * A[i]

    kernel = tilewright.compile(doubled, engine="interpreter")
    z = torch.complex(torch.arange(4.0), torch.arange(4.0) + 1)
    b = torch.empty(4)
    kernel(z.imag, b)
    assert b.tolist() == [2, 4, 6, 8]
    with pytest.raises(tilewright.LaunchError, match=r"(?s)TW4002.*argument 0 'A'.*other sign.*resolve_neg"):
        kernel(z.conj().imag, b)
    kernel(z.conj().imag.resolve_neg(), b)
    assert b.tolist() == [-2, -4, -6, -8]
    with pytest.raises(ValueError, match="resolve_neg"):
        tilewright.tensors.to_dlpack(z.conj().imag)


@pytest.mark.parametrize("target", ["interpreter", "cpu", "simulator"])
def test_tensors_without_dimensions(target):
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), S: T.Tensor((), "float32"), N: T.Tensor((), "int32")):
        with T.Kernel(4, threads=8) as b:
            if b == 3:
                S[()] = A[b] + S[()]
            T.atomic_add(N, b)

    a, s, n = np.arange(8, dtype="float32"), np.array(0.5, "float32"), np.array(7, "int32")
    tilewright.compile(main, target=target)(a, s, n)
    assert s == 3.5 and n == 13
    assert "S[0] = " in tilewright.compile(main, target="cuda -arch=sm_90a").get_kernel_source()


@pytest.mark.parametrize("engine", ["cpu", "simulator"])
def test_a_stride_may_be_negative(engine):
    """Rows in reverse: an index by the stride is asked whether it lies before the tensor's first element."""
    @T.prim_func
    def summed(A: T.StridedTensor((2, 64), (T.dynamic("s"), 1), "float32"), B: T.Tensor((128,), "float32"), C: T.Tensor((2, 64), "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(2, 64):
                C[i, j] = A[i, j] + B[A.strides[0] + 32 + j]

    a, b, c = np.arange(128, dtype=np.float32).reshape(2, 64)[::-1], np.ones(128, np.float32), np.zeros((2, 64), np.float32)
    tilewright.compile(summed, target=engine)(a, b, c)
    assert np.array_equal(c, a + (np.arange(64) >= 32))


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
def test_columns_that_lie_side_by_side(engine):
    M, N = 100, 72

    @T.prim_func
    def turned(A: T.StridedTensor((M, N), (1, M), "float16"), B: T.Tensor((M, N), "float32"), C: T.StridedTensor((M, N), (1, M), "float16"),
               D: T.Tensor((N, M), "int8"), E: T.Tensor((M, N), "int8")):  # fmt: skip
        with T.Kernel(2, 2, threads=128) as (bx, by):
            s = T.alloc_shared((64, 64), "float16")
            f = T.alloc_fragment((64, 64), "float32")
            T.copy(A[by * 64, bx * 64], s)
            for i, j in T.Parallel(64, 64):
                f[i, j] = T.cast(s[i, j], "float32") * 2
            T.copy(f, B[by * 64, bx * 64])
            for i, j in T.Parallel(64, 64):
                C[by * 64 + i, bx * 64 + j] = A[by * 64 + i, bx * 64 + j] + A[by * 64 + i, bx * 64 + j]
            for i, j in T.Parallel(64, 64):
                if by * 64 + i < M and bx * 64 + j < N:
                    E[by * 64 + i, bx * 64 + j] = D[bx * 64 + j, by * 64 + i]

    rng = np.random.default_rng(0)
    a = np.asfortranarray(rng.standard_normal((M, N)).astype(np.float16))
    d = rng.integers(-100, 100, (N, M)).astype(np.int8)
    b, c, e = np.zeros((M, N), np.float32), np.asfortranarray(np.zeros((M, N), np.float16)), np.zeros((M, N), np.int8)
    tilewright.compile(turned, engine=engine)(a, b, c, d, e)
    assert np.array_equal(b, a.astype(np.float32) * 2) and np.array_equal(c, a + a) and np.array_equal(e, d.T)


def test_calls_that_differ_from_the_last_one():
    """In where its tensors are, and in everything else that a call is checked for: a kernel knows its last call."""
    N = T.dynamic("N")

    @T.prim_func
    def scaled(A: T.Tensor((N,), "float32"), by: T.float32, B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 64), threads=64) as block:
            for i in T.Parallel(64):
                if block * 64 + i < N:
                    B[block * 64 + i] = by * A[block * 64 + i]

    kernel = tilewright.compile(scaled, engine="cpu")
    room = np.zeros(400, "float32")

    def call(a, by, b):
        expected = np.float32(by) * a
        kernel(a, by, b)
        assert (b == expected).all()

    a = np.arange(100, dtype="float32")
    for _ in range(2):
        call(a, 2.0, np.empty_like(a))  # elsewhere
        call(a, 3, np.empty_like(a))
        call(a[:50], 2.0, np.empty_like(a)[:50])
        call(a[1:], 2.0, room[1:100])  # off the vectors' alignment
        call(a[:96], 2.0, room[:96])
        call(a[:0], 2.0, room[:0])
        call(room[:96], 0.5, room[:96])  # in place
        call(room[:96], 0.5, room[96:192])  # side by side
    wrong = [
        ((room[:96], 0.5, room[95:191]), "TW4019"), ((room[:96], 0.5, room[1:97]), "TW4019"), ((room[:96], 0.5, room[:192:2]), "TW4008"),
        ((room[:96], 0.5, room[:95]), "TW4007"), ((room[:96].astype("float64"), 0.5, room[96:192]), "TW4004"), ((room[:96], "0.5", room[96:192]), "TW4002"),
        ((room[:96], None, room[96:192]), "TW4002"), ((None, 0.5, room[96:192]), "TW4003"), ((room[:96].reshape(2, 48), 0.5, room[96:192]), "TW4005"),
        ((room[:96].view("uint8")[1:-3].view("float32"), 0.5, room[200:295]), "TW4009"),
    ]  # fmt: skip
    for given, code in wrong:
        call(room[:96], 0.5, room[96:192])
        with pytest.raises(tilewright.TilewrightError) as error:
            kernel(*given)
        assert error.value.code == code
    frozen = np.zeros(96, "float32")
    call(room[:96], 0.5, frozen)
    frozen.flags.writeable = False
    with pytest.raises(tilewright.LaunchError, match="read-only"):
        kernel(room[:96], 0.5, frozen)
    call(frozen, 0.5, room[96:192])
