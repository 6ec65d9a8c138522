"""Tensors at addresses that turns of loops and points of maps look up, or whose shape they say."""
import numpy as np
import pytest

import tilewright as tw
import tilewright.language as T

N = 4


def rows(seed=0, shape=(256,), dtype="float32"):
    made = [np.random.default_rng(seed + i).integers(-2, 3, shape).astype(dtype) for i in range(8)]
    return made, np.array([r.ctypes.data for r in made], dtype=np.uint64)


def on_every_engine(program, make, want):
    for engine in ("interpreter", "cpu"):
        args = make()
        tw.compile(program, engine=engine)(*args)
        assert np.allclose(args[-1], want), engine
    for arch in ("sm_80", "sm_90a"):
        args = make()
        tw.compile(program, target="interpreter").simulate(*args, arch=arch)
        assert np.allclose(args[-1], want), arch


def test_points_look_an_address_up():
    @T.prim_func
    def main(P: T.Tensor((8,), "handle"), C: T.Tensor((N, 256), "float32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment((N, 256), "float32")
            for i, j in T.Parallel(N, 256):
                X = T.make_tensor(P[i], (256,), "float32")
                F[i, j] = X[j] + 1.0
            for i, j in T.Parallel(N, 256):
                Y = T.make_tensor(P[i + 4], (200,), "float32")
                C[i, j] = F[i, j] * 2.0 + Y[j] / (Y[0] + 3.0)

    made, table = rows()
    want = np.stack(made[:N]) * 2 + 2
    for i in range(N):
        y = made[i + 4]
        want[i, :200] += y[:200] / (y[0] + 3)
    on_every_engine(main, lambda: [table, np.zeros((N, 256), "float32")], want)


def test_points_store_at_an_address():
    @T.prim_func
    def main(P: T.Tensor((8,), "handle"), A: T.Tensor((N, 256), "float32"), C: T.Tensor((N, 256), "float32")):
        with T.Kernel(1, threads=64):
            for i, j in T.Parallel(N, 64):
                X = T.make_tensor(P[i], (256,), "float32")
                for lane in T.vectorized(4):
                    X[j * 4 + lane] = A[i, j * 4 + lane] + 1.0
            for i, j in T.Parallel(N, 256):
                Y = T.make_tensor(P[i], (256,), "float32")
                C[i, j] = Y[j] * 2.0

    made, table = rows(3)
    a = np.arange(N * 256).reshape(N, 256).astype("float32")
    on_every_engine(main, lambda: [table, a.copy(), np.zeros((N, 256), "float32")], a * 2 + 2)


def test_sums_of_points_at_addresses():
    @T.prim_func
    def main(P: T.Tensor((8,), "handle"), C: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((N,), "float32")
            T.clear(s)
            for i, j in T.Parallel(N, 256):
                X = T.make_tensor(P[i], (256,), "float32")
                T.atomic_add(s[i], X[j])
            T.copy(s, C)

    made, table = rows(5)
    on_every_engine(main, lambda: [table, np.zeros(N, "float32")], np.stack(made[:N]).sum(1))


def product(how):
    @T.prim_func
    def scaled(P: T.Tensor((8,), "handle"), A: T.Tensor((64, 32), "float16"), B: T.Tensor((256, 64), "float16"),
               C: T.Tensor((64, 64), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128):
            A_s, B_s = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float16")
            D, C_l = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            T.copy(A, A_s)
            for k in T.Pipelined(8, num_stages=3):
                X = T.make_tensor(P[k], (64, 32), "float16")
                T.copy(B[k * 32, 0], B_s)
                T.gemm(A_s, B_s, D, clear_accum=True)
                for i, j in T.Parallel(64, 64):
                    C_l[i, j] = C_l[i, j] + D[i, j] * X[i, 0]
            T.copy(C_l, C)

    @T.prim_func
    def of_growing(P: T.Tensor((8,), "handle"), A: T.Tensor((64, 32), "float16"), B: T.Tensor((256, 64), "float16"),
                   C: T.Tensor((64, 64), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128):
            A_s, B_s = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            for k in T.Pipelined(8, num_stages=3):
                X = T.make_tensor(P[0], (k * 8 + 8, 32), "float16")
                T.copy(X[0:64, 0:32], A_s)
                T.copy(B[k * 32, 0], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C)

    return scaled if how == "scaled" else of_growing


@pytest.mark.parametrize("how", ["scaled", "growing"])
def test_products_with_a_tensor_a_turn(how):
    made, table = rows(7, (64, 32), "float16")
    a, b = (np.random.default_rng(i).integers(-2, 3, s).astype("float16") for i, s in ((1, (64, 32)), (2, (256, 64))))
    want = np.zeros((64, 64), "float32")
    for k in range(8):
        part = b[k * 32 : k * 32 + 32].astype("float32")
        if how == "scaled":
            want += (a.astype("float32") @ part) * made[k][:, :1]
        else:
            want += np.where(np.arange(64)[:, None] < k * 8 + 8, made[0], 0).astype("float32") @ part
    on_every_engine(product(how), lambda: [table, a.copy(), b.copy(), np.zeros((64, 64), "float32")], want)
